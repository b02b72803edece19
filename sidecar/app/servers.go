package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/builtin"
)

// servers is a worktree's language servers and the sessions that use them: what the servers have to say of their own
// accord reaches a person through one of these.
type servers struct {
	*lspbridge.Manager

	mu     sync.Mutex // guards what follows
	uses   map[string]func()
	unheld []string // notices from before the first session
}

// errNobody: there is no session that could ask.
var errNobody = errors.New("no session is open for this project, so nobody can be asked; nothing was changed")

// hold keeps the servers for a session. What was to be told before there was one is told now.
func (s *servers) hold(session string) (before []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses[session] == nil {
		s.uses[session] = s.Use()
	}
	before, s.unheld = s.unheld, nil
	return before
}

// release lets go of them; with their last session they end soon.
func (s *servers) release(session string) {
	s.mu.Lock()
	done := s.uses[session]
	delete(s.uses, session)
	s.mu.Unlock()
	if done != nil {
		done()
	}
}

func (s *servers) sessions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.uses))
	for id := range s.uses {
		out = append(out, id)
	}
	return out
}

// maxUnheld bounds what waits for a first session.
const maxUnheld = 20

// tell shows a person what became of a server: in every session that uses it.
func (a *App) tell(s *servers, text string) {
	told := false
	for _, id := range s.sessions() {
		if session, ok := a.Runtime.Session(id); ok {
			session.Notice("warning", text)
			told = true
		}
	}
	if told {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unheld) < maxUnheld {
		s.unheld = append(s.unheld, text)
	}
}

// applyEdit takes an edit that a server asks for of its own accord to the person, in the session that was busy last.
func (a *App) applyEdit(ctx context.Context, s *servers, server, label string, edits []lspbridge.FileEdit) error {
	var best *agent.Session
	for _, id := range s.sessions() {
		session, ok := a.Runtime.Session(id)
		if ok && (best == nil || session.Info().Updated.After(best.Info().Updated)) {
			best = session
		}
	}
	if best == nil {
		return errNobody
	}
	tool, answer := builtin.ServerEdit(a.Env(best.Info()), server, label, edits)
	data, err := best.ToolBeside(ctx, tool, json.RawMessage(`{}`))
	switch {
	case err != nil:
		return err
	case answer() != nil:
		return answer()
	case data.Status != agent.ToolCompleted:
		return fmt.Errorf("nothing was changed: %s", data.Error)
	}
	return nil
}
