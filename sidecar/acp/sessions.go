package acp

import (
	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// liveSessions implements editors.Sessions with the runtime's sessions.
type liveSessions struct {
	rt   *agent.Runtime
	pack func(*change.Set) *change.Set // makes a set small enough to be stored, its contents beside the sessions
}

// Sessions tells the registry of editors what it must know of a runtime's sessions. pack makes a change set small
// enough to be stored with its approval request.
func Sessions(rt *agent.Runtime, pack func(*change.Set) *change.Set) editors.Sessions {
	return liveSessions{rt, pack}
}

// Parent implements editors.Sessions; "" for a session that no task has started.
func (l liveSessions) Parent(session string) string {
	s, ok := l.rt.Session(session)
	if !ok {
		return ""
	}
	return s.Info().Parent
}

// Remember implements editors.Sessions: it stores an approval request with its change, so that it can be asked again
// after a crash. It does not wait for the disk.
func (l liveSessions) Remember(r permission.Request) {
	if r.Change == nil {
		return
	}
	if live, ok := l.rt.Session(r.SessionID); ok {
		// Packing writes the texts of the change beside the sessions.
		go func() {
			live.RecordAsk(agent.AskData{ID: r.ID, CallID: r.CallID, Permission: r.Permission, Patterns: r.Patterns, Set: l.pack(r.Change)})
		}()
	}
}
