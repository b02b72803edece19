package editors

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Sessions is what the registry must know of the sessions that run.
type Sessions interface {
	// Parent is the session that started a sub-agent's; empty for one that a person started.
	Parent(session string) string
	// Remember stores what an approval request is about, so that it outlives the process. It does not wait.
	Remember(r permission.Request)
}

// Registry knows which editor has which session open. To the agent it is the person: questions and permission requests
// go to the session's editors, and so do reads and writes of what they have open. A sub-agent's session belongs to the
// editors of the session it was started from.
//
//	registry := NewRegistry()
//	rt := agent.New(agent.Options{Asker: registry, Questions: registry, Toolbox: toolbox})
//	registry.Follow(sessions{rt})
type Registry struct {
	questions questions // what waits for the person

	mu       sync.Mutex
	sessions Sessions                 // guarded by mu; nil until Follow
	editors  map[*Editor]bool         // false: it is about to go; guarded by mu
	bound    map[string][]*Editor     // by session, the one that opened it first; guarded by mu
	coming   map[string]int           // editors that open a session and are not bound yet; guarded by mu
	ends     map[string]chan struct{} // sessions that end with their last editor, closed when they have; guarded by mu

	verdictWait time.Duration // how long a generic client's request waits for its verdict; guarded by mu
}

var (
	_ permission.Asker = (*Registry)(nil)
	_ tools.Questioner = (*Registry)(nil)
)

// NewRegistry makes a registry without editors.
func NewRegistry() *Registry {
	return &Registry{editors: map[*Editor]bool{}, bound: map[string][]*Editor{}, coming: map[string]int{}, ends: map[string]chan struct{}{}, verdictWait: genericVerdictWait}
}

// Follow says whose sessions these are. It is separate from NewRegistry because the runtime that has the sessions is made
// with the registry as its Asker.
func (r *Registry) Follow(s Sessions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions = s
}

// Connect adds an editor, which has no session yet.
func (r *Registry) Connect(ed *Editor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.editors[ed] = true
}

// Disconnect removes an editor from the registry and from every session. Retire comes first, to learn which sessions end.
func (r *Registry) Disconnect(ed *Editor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.editors, ed)
	for id := range r.bound {
		r.drop(id, ed)
	}
}

// Bind gives a session to an editor, and reports whether it did: an editor that is disconnecting gets none, as nobody
// would take the session from it again.
func (r *Registry) Bind(session string, ed *Editor) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.editors[ed] {
		return false
	}
	if !slices.Contains(r.bound[session], ed) {
		r.bound[session] = append(slices.Clip(r.bound[session]), ed)
		r.moved(session)
	}
	return true
}

// Enter keeps a session in memory while an editor opens it, until Entered. Where the session is just ending it waits for
// Ended first, so that the editor opens it from the store and not a session that is about to close. It fails with ctx.
func (r *Registry) Enter(ctx context.Context, session string) error {
	for {
		r.mu.Lock()
		end := r.ends[session]
		if end == nil {
			r.coming[session]++
			r.mu.Unlock()
			return nil
		}
		r.mu.Unlock()
		select {
		case <-end:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Entered ends Enter. last says that no editor has the session open: the caller closes it, then calls Ended.
func (r *Registry) Entered(session string) (last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.coming[session]--; r.coming[session] <= 0 {
		delete(r.coming, session)
	}
	return !r.wanted(session)
}

// wanted reports whether an editor has a session open, or is opening it; else it ends now, until ended. mu is held.
func (r *Registry) wanted(session string) bool {
	if len(r.bound[session]) > 0 || r.coming[session] > 0 {
		return true
	}
	r.end(session)
	return false
}

// end keeps editors from opening a session until ended. mu is held.
func (r *Registry) end(session string) {
	if r.ends[session] == nil {
		r.ends[session] = make(chan struct{})
	}
}

// Ending keeps editors from opening a session until Ended.
func (r *Registry) Ending(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(session)
}

// Ended says that a session is out of memory: editors that wait in Enter open it from the store.
func (r *Registry) Ended(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end := r.ends[session]; end != nil {
		delete(r.ends, session)
		close(end)
	}
}

// Retire says that an editor is disconnecting. last are the sessions that no other editor has: the caller closes each and
// calls Ended.
func (r *Registry) Retire(ed *Editor) (last map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.editors[ed] = false
	last = map[string]bool{}
	for id, all := range r.bound {
		if len(all) == 1 && all[0] == ed && r.coming[id] == 0 {
			r.end(id)
			last[id] = true
		}
	}
	return last
}

// moved lets a session's editors know that another came or went, in goroutines: they write to connections, and a slow
// editor must not hold up everybody who needs the lock. mu is held.
func (r *Registry) moved(session string) {
	for _, ed := range r.bound[session] {
		go ed.Person.ReadersChanged(session)
	}
}

// Unbind takes an editor off a session and reports whether others still have it open. If not, the caller closes the
// session and calls Ended; until then Enter waits.
func (r *Registry) Unbind(session string, ed *Editor) (others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(session, ed)
	return r.wanted(session)
}

// drop takes an editor off a session. mu is held.
func (r *Registry) drop(session string, ed *Editor) {
	left := slices.DeleteFunc(slices.Clone(r.bound[session]), func(x *Editor) bool { return x == ed })
	if len(left) == 0 {
		delete(r.bound, session)
		return
	}
	changed := len(left) != len(r.bound[session])
	r.bound[session] = left
	if changed {
		r.moved(session)
	}
}

// Readers is how many editors have a session open.
func (r *Registry) Readers(session string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.bound[session])
}

// ErrNoEditor means that a question has no editor to go to. It counts as a rejection: nothing is done without an answer.
var ErrNoEditor = errors.New("no editor is connected to this session")

// MaxParents is how many parents of a session are followed to find its editors; more are taken for a cycle.
const MaxParents = 16

// First is the editor that opened a session first, and the id under which it knows the session: the session's own, or that
// of the session which started it.
func (r *Registry) First(session string) (*Editor, string, bool) {
	all, session := r.all(session)
	if len(all) == 0 {
		return nil, "", false
	}
	return all[0], session, true
}

// all finds every editor of a session, and the session they know: its own, or the nearest parent that an editor has open. The list is never
// written to, so it may be used without the lock. Sessions.Parent is called without it.
func (r *Registry) all(session string) ([]*Editor, string) {
	r.mu.Lock()
	sessions := r.sessions
	r.mu.Unlock()
	for range MaxParents {
		r.mu.Lock()
		all := r.bound[session]
		r.mu.Unlock()
		if len(all) > 0 {
			return all, session
		}
		if sessions == nil {
			break
		}
		if session = sessions.Parent(session); session == "" {
			break
		}
	}
	return nil, ""
}

// AskPermission implements permission.Asker: the first decision of any of the session's editors. Without an editor it fails as a rejection
// that says so, see ErrNoEditor.
func (r *Registry) AskPermission(ctx context.Context, q permission.Request) (permission.Reply, error) {
	r.remember(q)
	reply, err := r.askPermission(ctx, q.SessionID, q)
	if errors.Is(err, ErrNoEditor) {
		return permission.Reply{}, permission.NoUser(q.Permission, ErrNoEditor.Error())
	}
	return reply, err
}

// AskForOther puts the approval request of another program to the editors of a session. q.SessionID is empty. Nothing is stored in the
// session, because the request ends with that program. It fails with ErrNoEditor also when the last editor goes before it has answered.
func (r *Registry) AskForOther(ctx context.Context, session string, q permission.Request) (permission.Reply, error) {
	reply, err := r.askPermission(ctx, session, q)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = ErrNoEditor
	}
	return reply, err
}

// askPermission asks every editor of a session.
func (r *Registry) askPermission(ctx context.Context, session string, q permission.Request) (permission.Reply, error) {
	return askAll(ctx, r, session, func(ctx context.Context, ed *Editor, session string) (permission.Reply, error) {
		return ed.Person.AskPermission(ctx, session, q)
	}, func(reply permission.Reply) string {
		if reply.Kind == permission.Reject {
			return "rejected"
		}
		return "allowed"
	})
}

// remember stores what a person is about to be asked. Without an editor nobody is asked.
func (r *Registry) remember(q permission.Request) {
	r.mu.Lock()
	sessions := r.sessions
	r.mu.Unlock()
	if all, _ := r.all(q.SessionID); len(all) > 0 && sessions != nil {
		sessions.Remember(q)
	}
}

// AskQuestions implements tools.Questioner.
func (r *Registry) AskQuestions(ctx context.Context, call *tools.Call, qs []tools.Question) ([][]string, error) {
	return askAll(ctx, r, call.SessionID, func(ctx context.Context, ed *Editor, session string) ([][]string, error) {
		return ed.Person.AskQuestions(ctx, session, call, qs)
	}, func([][]string) string { return "answered" })
}

// Tools are those that a session's editors lend it, of all editors together; two may offer the same one.
func (r *Registry) Tools(session string) []tools.Tool {
	all, _ := r.all(session)
	var out []tools.Tool
	for _, ed := range all {
		out = append(out, ed.tools()...)
	}
	return out
}

// Files are a session's open documents, whichever editor has it open when they are asked for.
func (r *Registry) Files(session string) files.Buffers { return sessionFiles{r, session} }

// Applier writes a session's changes where its editor shows them, and the rest through disk.
func (r *Registry) Applier(session string, disk Applier) Applier {
	return sessionApplier{r, session, disk}
}

// AnyBuffer is a document as some editor shows it, unsaved text before saved: it is for language servers, which know no
// sessions.
func (r *Registry) AnyBuffer(path string) (files.Buffer, bool) {
	r.mu.Lock()
	all := make([]*Editor, 0, len(r.editors))
	for ed := range r.editors {
		all = append(all, ed)
	}
	r.mu.Unlock()
	return firstDirty(all, func(ed *Editor) (files.Buffer, bool) {
		if b, ok := ed.Buffers.Buffer(path); ok {
			return b, true
		}
		return ed.docs.knownUnsaved(path)
	})
}

// Unsaved are the paths of the documents whose text is not the disk's, of all editors.
func (r *Registry) Unsaved() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for ed := range r.editors {
		for _, b := range ed.Buffers.Dirty() {
			out = append(out, b.Path)
		}
		out = append(out, ed.docs.unsaved.paths()...)
	}
	return out
}
