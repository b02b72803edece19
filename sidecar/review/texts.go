package review

import (
	"fmt"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
)

// maxChangeText is how long both texts of a file may be together, in bytes: JSON escapes can double them, and a message may have 32 MiB.
const maxChangeText = 14 << 20

// Texts are the change sets of open approval requests. A request leaves out the texts of a large change set; the editor
// fetches them from here by their id while the request is open.
type Texts struct {
	mu   sync.Mutex
	sets map[string]*change.Set // by session and id; guarded by mu
}

// Hold keeps a set until release is called, when its approval request has ended. nil is nothing to keep. The set must not be changed
// meanwhile.
func (a *Texts) Hold(session string, set *change.Set) (release func()) {
	if set == nil {
		return func() {}
	}
	// No session id holds a NUL, so two pairs never give one key.
	key := session + "\x00" + set.ID
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sets == nil {
		a.sets = map[string]*change.Set{}
	}
	a.sets[key] = set
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.sets, key)
	}
}

// get is a set that is held.
func (a *Texts) get(session, id string) (*change.Set, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	set, ok := a.sets[session+"\x00"+id]
	return set, ok
}

// Decided returns a change set whose approval is pending, and what would be written of it with these decisions. It fails with InvalidParams
// for a set that has none pending, and for decisions about hunks that it does not have.
func (a *Texts) Decided(session, id string, d change.Decisions) (set, decided *change.Set, err error) {
	set, ok := a.get(session, id)
	if !ok {
		return nil, nil, rpc.InvalidParams("changeSet: %s has no pending approval request", id)
	}
	// The held set stays as it is; Decide makes another one.
	ruled, err := set.Decide(d)
	if err != nil {
		return nil, nil, rpc.InvalidParams("hunks: %v", err)
	}
	return set, ruled.Set, nil
}

// Text returns both texts of one file of a change set whose approval is pending. It fails for one that would not fit
// into a message.
func (a *Texts) Text(session, id, uri string) (*protocol.ChangeTextResponse, error) {
	set, ok := a.get(session, id)
	if !ok {
		return nil, rpc.InvalidParams("changeSet: %s has no pending approval request", id)
	}
	for _, f := range set.Files {
		if editors.PathURI(f.Path) != uri {
			continue
		}
		if n := len(f.Old) + len(f.New); n > maxChangeText {
			return nil, fmt.Errorf("%s is too large to show: its texts have %d MB, and a message can have %d", f.Path, n>>20, maxChangeText>>20)
		}
		return &protocol.ChangeTextResponse{OldText: f.Old, NewText: f.New}, nil
	}
	return nil, rpc.InvalidParams("uri: %s is none of the files of %s", uri, id)
}
