package agent

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
)

// loan is the agent and model of one prompt that names its own, as slash commands may. The session gets its own back when the turn ends.
type loan struct{ agent, model string }

// Head is what the event log says of a session as a whole: its present agent, model, title and plan. It has a mutex of its own, because
// editors read the head while a turn runs.
type Head struct {
	rt  *Runtime
	log *EventLog

	mu     sync.Mutex
	info   SessionInfo  // guarded by mu
	todos  []tools.Todo // guarded by mu
	lent   loan         // guarded by mu: the agent and model of the running turn, in place of the session's own
	before string       // guarded by mu: the agent before the present one
}

// Info is the session's head as it is now.
func (h *Head) Info() SessionInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.info
}

// acting is Info with the agent and model that the running turn uses.
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

// adopt takes the head, the todo list and the diff from the events. Updated stays, because reading a session is no use of it. The stored
// head counts only when it is of this session and has a directory.
func (h *Head) adopt(hist *history) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if info := hist.info; info.ID == h.info.ID && info.Cwd != "" {
		info.Updated = h.info.Updated
		h.info = info
	}
	h.info.Diff = hist.did.stat()
	h.todos = hist.todos
}

// setDiff notes what the turns have changed, in memory: the next touch stores it.
func (h *Head) setDiff(d *DiffStat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.info.Diff = d
}

// SetAgent changes the agent from the next step on. An agent with a model of its own sets the model too. ErrNoAgent when there is no such
// agent.
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
		// The person's choice ends what a slash command has lent to the turn.
		h.lent.agent = ""
		i.Agent = name
		if a.Model != "" {
			i.Model = a.Model
		}
	})
	return nil
}

// sessionAgents is the session's agent as the plan tools see it.
type sessionAgents struct{ *Head }

func (a sessionAgents) Agent() string { return a.acting().Agent }

// Before is the agent that plan_exit returns to.
func (a sessionAgents) Before() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.before == "" {
		return DefaultAgent
	}
	return a.before
}

// SetModel changes the model from the next step on. It is resolved at once, so that the person learns of a wrong name now and not from a
// failed turn. The error is that of Models.
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

// SetEffort changes the thinking effort, from the next step on; empty is the model's own.
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

// change applies f to the head. When something differs, the head is stored and emitted. Otherwise nothing happens, or an editor that sets
// every option when it connects would fill the event log.
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

// touch sets the time of last use, by which lists of sessions are sorted. It stores the head and emits no event, because editors show
// nothing of it.
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

func (t todoList) Get() []tools.Todo {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A copy, because the caller may keep it.
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
