package acp

import (
	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// liveSessions are the runtime's, as the registry of editors must know them.
type liveSessions struct {
	rt   *agent.Runtime
	pack func(*change.Set) *change.Set // makes a set small enough to be stored, its contents beside the sessions
}

// Sessions gives the registry of editors what it must know of a runtime's sessions. pack makes a change set small enough to
// be stored with the approval request about it.
func Sessions(rt *agent.Runtime, pack func(*change.Set) *change.Set) editors.Sessions {
	return liveSessions{rt, pack}
}

// Parent implements Sessions.
func (l liveSessions) Parent(session string) string {
	s, ok := l.rt.Session(session)
	if !ok {
		return ""
	}
	return s.Info().Parent
}

// Remember implements Sessions: the contents of a change are stored beside the approval request about it.
func (l liveSessions) Remember(r permission.Request) {
	if r.Change == nil {
		return
	}
	if live, ok := l.rt.Session(r.SessionID); ok {
		go func() {
			live.RecordAsk(agent.AskData{ID: r.ID, CallID: r.CallID, Permission: r.Permission, Patterns: r.Patterns, Set: l.pack(r.Change)})
		}()
	}
}
