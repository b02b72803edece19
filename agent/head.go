package agent

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
)

// loan is what one prompt asks for instead of the session's own agent and model.
type loan struct{ agent, model string }

// Info is the session's head as it is now.
func (s *Session) Info() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// acting is Info with what the running turn uses instead.
func (s *Session) acting() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	if s.lent.agent != "" {
		info.Agent = s.lent.agent
	}
	if s.lent.model != "" {
		info.Model = s.lent.model
	}
	return info
}

func (s *Session) lend(l loan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent = l
}

// adopt takes over what the events say of the session's head and plan.
func (s *Session) adopt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hist.info; h.ID == s.info.ID && h.Cwd != "" {
		h.Updated = s.info.Updated
		s.info = h
	}
	s.info.Diff = s.hist.did.stat()
	s.todos = s.hist.todos
	s.adoptQueue(s.hist.queue)
}

// SetAgent changes the agent, for what comes next. ErrNoAgent. An agent with a model of its own brings it along.
func (s *Session) SetAgent(name string) error {
	cwd := s.Info().Cwd
	a, ok := s.rt.agent(cwd, name)
	if !ok {
		return s.rt.noAgent(cwd, name)
	}
	s.change(func(i *SessionInfo) {
		if i.Agent != name {
			s.before = i.Agent
		}
		s.lent.agent = ""
		i.Agent = name
		if a.Model != "" {
			i.Model = a.Model
		}
	})
	return nil
}

// Agents is the session's agent as tools see it.
type sessionAgents struct{ s *Session }

func (a sessionAgents) Agent() string { return a.s.acting().Agent }

func (a sessionAgents) SetAgent(name string) error { return a.s.SetAgent(name) }

func (a sessionAgents) Before() string {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.s.before == "" {
		return DefaultAgent
	}
	return a.s.before
}

// SetModel changes the model, from the next step on. The error is the one of Models.
func (s *Session) SetModel(id string) error {
	if s.rt.o.Models != nil {
		_, m, err := s.rt.o.Models.Resolve(context.Background(), s.Info().Cwd, id)
		if err != nil {
			return err
		}
		id = m.String()
	}
	s.change(func(i *SessionInfo) { i.Model = id })
	return nil
}

// SetEffort changes the thinking effort, from the next step on; empty is the model's own.
func (s *Session) SetEffort(effort string) error {
	switch effort {
	case "", "low", "medium", "high":
	default:
		return errors.New("effort is low, medium, high, or empty for the model's own; not " + effort)
	}
	s.change(func(i *SessionInfo) { i.Effort = effort })
	return nil
}

// SetTitle renames the session.
func (s *Session) SetTitle(title string) error {
	title = strings.TrimSpace(title)
	if title == "" {
		return errors.New("the title is empty")
	}
	s.change(func(i *SessionInfo) { i.Title = title })
	return nil
}

// change makes a new head and tells it, when it differs.
func (s *Session) change(f func(*SessionInfo)) {
	s.mu.Lock()
	before := s.info
	f(&s.info)
	after := s.info
	same := after.Agent == before.Agent && after.Model == before.Model && after.Effort == before.Effort && after.Title == before.Title && after.Review == before.Review
	if !same {
		s.info.Updated = now()
		after = s.info
		s.saveHead(after) // under the lock, so that the last change is the last stored
		s.log.emit(EventSession, after)
	}
	s.mu.Unlock()
}

// touch says that the session was used.
func (s *Session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info.Updated = now()
	s.saveHead(s.info)
}

func (s *Session) saveHead(info SessionInfo) {
	s.rt.st.PutSession(store.Session{ID: info.ID, Cwd: info.Cwd, Title: info.Title, Parent: info.Parent,
		Created: info.Created, Updated: info.Updated, Info: encode(info)})
}

// todoList is the session's plan as tools see it.
type todoList struct{ s *Session }

func (t todoList) Get() []tools.Todo {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return append([]tools.Todo(nil), t.s.todos...)
}

func (t todoList) Set(ctx context.Context, todos []tools.Todo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	todos = append([]tools.Todo(nil), todos...)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.todos = todos
	t.s.log.emit(EventPlan, PlanData{Todos: todos})
	return nil
}

// titleOf makes a title of a prompt: its first line of text, cut at a word.
func titleOf(parts []provider.Part) string {
	const most = 72 // characters
	for _, p := range parts {
		if p.Type != provider.PartText || p.Synthetic {
			continue
		}
		for _, line := range strings.Split(p.Text, "\n") {
			line = strings.Join(strings.Fields(strings.ToValidUTF8(line, "")), " ")
			if line == "" {
				continue
			}
			if utf8.RuneCountInString(line) <= most {
				return line
			}
			cut := string([]rune(line)[:most])
			if i := strings.LastIndexByte(cut, ' '); i > most/2 {
				cut = cut[:i]
			}
			return cut + "…"
		}
	}
	return ""
}
