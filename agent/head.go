package agent

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
)

// loan is the agent and model of one prompt that names its own, as slash commands may. When the turn ends, the session's own count again.
type loan struct{ agent, model string }

// Head is the state of the session as a whole: its present agent, model, title and plan. It has a mutex of its own, because editors read it
// while a turn runs.
type Head struct {
	rt  *Runtime
	log *EventLog

	mu     sync.Mutex
	info   SessionInfo  // guarded by mu
	todos  []tools.Todo // guarded by mu
	lent   loan         // guarded by mu; the agent and model of the running turn where they replace the session's own
	before string       // guarded by mu; the agent before the present one, for plan_exit
	cutOff string       // guarded by mu; see CutOff
}

// Info returns the session's present head.
func (h *Head) Info() SessionInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.info
}

// acting returns Info with the agent and model that the running turn uses.
func (h *Head) acting() SessionInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	info := h.info
	if h.lent.agent != "" {
		info.Agent = h.lent.agent
	}
	if h.lent.model != "" {
		info.Model = h.lent.model
	}
	return info
}

// lend sets the agent and model of the running turn; the zero loan ends that.
func (h *Head) lend(l loan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lent = l
}

// adopt sets the head, the todo list and the diff from the history. Updated stays, because reading a session is not using it. A stored head
// that is of another session, or has no directory, is ignored.
func (h *Head) adopt(hist *history) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if info := hist.info; info.ID == h.info.ID && info.Cwd != "" {
		info.Updated = h.info.Updated
		h.info = info
	}
	h.info.Diff = hist.did.stat()
	h.todos, h.cutOff = hist.todos, hist.cutOff
}

// CutOff returns what the person must know when Pillion had ended in the middle of the last turn before the session was opened; "" otherwise.
func (h *Head) CutOff() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cutOff
}

// setDiff sets what the turns have changed. It does not store the head; the next touch does.
func (h *Head) setDiff(d *DiffStat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.info.Diff = d
}

// SetAgent changes the agent from the next step on. An agent with a model of its own also sets the model. It fails with ErrNoAgent when
// there is no such agent.
func (h *Head) SetAgent(name string) error {
	cwd := h.Info().Cwd
	a, ok := h.rt.agent(cwd, name)
	if !ok {
		return h.rt.noAgent(cwd, name)
	}
	h.change(func(i *SessionInfo) {
		if i.Agent != name {
			h.before = i.Agent
		}
		// The person's choice replaces the agent that a slash command has lent to the turn.
		h.lent.agent = ""
		i.Agent = name
		if a.Model != "" {
			i.Model = a.Model
		}
	})
	return nil
}

// sessionAgents shows the session's agent to the plan tools.
type sessionAgents struct{ *Head }

// Agent returns the agent that acts in the running turn.
func (a sessionAgents) Agent() string { return a.acting().Agent }

// Before returns the agent that plan_exit switches back to.
func (a sessionAgents) Before() string {
	a.mu.Lock()
	before, cwd := a.before, a.info.Cwd
	a.mu.Unlock()
	if before == "" {
		return a.rt.DefaultAgentOf(cwd)
	}
	return before
}

// SetModel changes the model from the next step on. It resolves the name at once, so that the person learns of a wrong name here and not
// from a failed turn. The error is that of Models.
func (h *Head) SetModel(id string) error {
	if h.rt.o.Models != nil {
		_, m, err := h.rt.o.Models.Resolve(context.Background(), h.Info().Cwd, id)
		if err != nil {
			return err
		}
		id = m.String()
	}
	h.change(func(i *SessionInfo) { i.Model = id })
	return nil
}

// SetEffort changes the reasoning effort from the next step on; "" means the model's own.
func (h *Head) SetEffort(effort string) error {
	switch effort {
	case "", "low", "medium", "high":
	default:
		return errors.New("effort is low, medium, high, or empty for the model's own; not " + effort)
	}
	h.change(func(i *SessionInfo) { i.Effort = effort })
	return nil
}

// SetTitle renames the session.
func (h *Head) SetTitle(title string) error {
	title = strings.TrimSpace(title)
	if title == "" {
		return errors.New("the title is empty")
	}
	h.change(func(i *SessionInfo) { i.Title = title })
	return nil
}

// change applies f to the head, then stores and emits the head if it differs. Without that test, an editor that sets every option when it
// connects would fill the event log.
func (h *Head) change(f func(*SessionInfo)) {
	h.mu.Lock()
	before := h.info
	f(&h.info)
	after := h.info
	same := after.Agent == before.Agent && after.Model == before.Model && after.Effort == before.Effort && after.Title == before.Title && after.Review == before.Review && after.Permission == before.Permission
	if !same {
		h.info.Updated = now()
		after = h.info
		h.saveHead(after) // under the lock, so that the last change is the last stored
		h.log.emit(EventSession, after)
	}
	h.mu.Unlock()
}

// touch sets the time of last use, by which lists of sessions are sorted. It stores the head but emits no event, because editors do not
// show the time.
func (h *Head) touch() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.info.Updated = now()
	h.saveHead(h.info)
}

// saveHead stores the head. The caller holds mu, so that the last change is stored last.
func (h *Head) saveHead(info SessionInfo) {
	h.rt.st.PutSession(store.Session{ID: info.ID, Cwd: info.Cwd, Title: info.Title, Parent: info.Parent,
		Created: info.Created, Updated: info.Updated, Info: encode(info)})
}

// todoList is the session's plan as tools see it.
type todoList struct{ *Head }

// Get returns a copy of the list.
func (t todoList) Get() []tools.Todo {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]tools.Todo(nil), t.todos...)
}

// Set replaces the list and emits it. A cancelled call must not change the plan: it gets the error of ctx.
func (t todoList) Set(ctx context.Context, todos []tools.Todo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// A copy, because the list belongs to the arguments of the call.
	todos = append([]tools.Todo(nil), todos...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.todos = todos
	t.log.emit(EventPlan, PlanData{Todos: todos})
	return nil
}
