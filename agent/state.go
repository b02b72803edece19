package agent

import (
	"context"
	"slices"

	"github.com/pillion-dev/pillion/tools"
)

// State is what a session is doing.
type State struct {
	Turn    string   // message id of the running turn's prompt; empty between turns
	Busy    bool     // a turn or a call by hand runs
	Waiting []string // calls that wait for the person
	Last    TurnData // the end of the last turn since the session was opened
}

// State is what the session is doing now.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Busy: s.now != nil, Waiting: slices.Clone(s.asking), Last: s.last}
	if s.now != nil && s.now.item != nil {
		st.Turn = s.now.item.ID
	}
	return st
}

// Watch calls f whenever Queue or State may say something else. f must not block and must not call Watch; it may be
// called by several goroutines at once. After stop no call begins.
func (s *Session) Watch(f func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watcher{f}
	s.watchers = append(slices.Clone(s.watchers), w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers = slices.DeleteFunc(slices.Clone(s.watchers), func(x *watcher) bool { return x == w })
	}
}

type watcher struct{ f func() }

// changed tells the watchers. mu is not held.
func (s *Session) changed() {
	s.mu.Lock()
	all := s.watchers
	s.mu.Unlock()
	for _, w := range all {
		w.f()
	}
}

// waitsFor notes that a call waits for the person, until answered is called.
func (s *Session) waitsFor(call string) {
	s.mu.Lock()
	s.asking = append(slices.Clone(s.asking), call)
	s.mu.Unlock()
	s.changed()
	if p := s.of.parent; p != nil {
		p.waitsFor(call)
	}
}

func (s *Session) answered(call string) {
	s.mu.Lock()
	if i := slices.Index(s.asking, call); i >= 0 {
		s.asking = slices.Delete(slices.Clone(s.asking), i, i+1)
	}
	s.mu.Unlock()
	s.changed()
	if p := s.of.parent; p != nil {
		p.answered(call)
	}
}

// questions is the person as a tool's questions reach them; meanwhile the session waits.
type questions struct {
	s *Session
	q tools.Questioner
}

func (q questions) AskQuestions(ctx context.Context, call *tools.Call, qs []tools.Question) ([][]string, error) {
	q.s.waitsFor(call.CallID)
	defer q.s.answered(call.CallID)
	return q.q.AskQuestions(ctx, call, qs)
}

// questioner is nil where nobody answers.
func (s *Session) questioner() tools.Questioner {
	if s.rt.o.Questions == nil {
		return nil
	}
	if s.of.parent != nil {
		return questions{s, childQuestions{s.rt.o.Questions, s.of.label}}
	}
	return questions{s, s.rt.o.Questions}
}
