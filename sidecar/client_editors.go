package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Applier writes an accepted change set; it has builtin.Applier's shape.
type Applier interface {
	Apply(ctx context.Context, set *change.Set) error
}

// Editors know which editor has which session open. They are the person as the agent sees one: questions and
// permission requests go to the session's editor, and so do reads and writes of what it has open. A sub-agent's
// session belongs to the editor of the session it was started from.
//
//	editors := NewEditors()
//	rt := agent.New(agent.Options{Asker: editors, Questions: editors, Tools: func(…) {
//		env.Buffers = editors.Files(info.ID)
//		env.Applier = editors.Applier(info.ID, disk{env})
//	}})
//	NewServer(ServerOptions{Runtime: rt, Editors: editors, …})
type Editors struct {
	// Pack makes a change set small enough to be kept, its contents beside the sessions; nil: sets are kept as they are.
	Pack func(*change.Set) *change.Set

	mu      sync.Mutex
	servers map[*Server]bool         // false: it is about to go; guarded by mu
	bound   map[string][]*Server     // by session, the one that opened it first; guarded by mu
	coming  map[string]int           // editors that open a session and are not bound yet; guarded by mu
	ends    map[string]chan struct{} // sessions that end with their last editor, closed when they have; guarded by mu
	asks    []*openAsk               // what waits for the person; guarded by mu; replaced, never changed in place
	decide  map[string]*sync.Mutex   // by session: held while somebody decides about its changes; guarded by mu
}

var (
	_ permission.Asker = (*Editors)(nil)
	_ tools.Questioner = (*Editors)(nil)
)

// NewEditors knows no editor yet.
func NewEditors() *Editors {
	return &Editors{servers: map[*Server]bool{}, bound: map[string][]*Server{}, coming: map[string]int{}, ends: map[string]chan struct{}{}}
}

// deciding keeps decisions about a session's changes apart, whichever editors they come from.
func (e *Editors) deciding(session string) *sync.Mutex {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.decide == nil {
		e.decide = map[string]*sync.Mutex{}
	}
	m := e.decide[session]
	if m == nil {
		m = new(sync.Mutex)
		e.decide[session] = m
	}
	return m
}

func (e *Editors) attach(s *Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers[s] = true
}

func (e *Editors) detach(s *Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.servers, s)
	for id := range e.bound {
		e.drop(id, s)
	}
}

// bind reports whether the editor has the session from now on; one that is about to go does not.
func (e *Editors) bind(session string, s *Server) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.servers[s] {
		return false
	}
	if !slices.Contains(e.bound[session], s) {
		e.bound[session] = append(slices.Clip(e.bound[session]), s)
		e.moved(session)
	}
	return true
}

// enter keeps a session in memory while an editor opens it, until entered. One that is just ending is waited for:
// it is opened anew then.
func (e *Editors) enter(ctx context.Context, session string) error {
	for {
		e.mu.Lock()
		end := e.ends[session]
		if end == nil {
			e.coming[session]++
			e.mu.Unlock()
			return nil
		}
		e.mu.Unlock()
		select {
		case <-end:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// entered ends enter. last: nobody has the session open, so that it ends.
func (e *Editors) entered(session string) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.coming[session]--; e.coming[session] <= 0 {
		delete(e.coming, session)
	}
	return !e.wanted(session)
}

// wanted reports whether an editor has a session open, or is opening it; else it ends now, until ended. mu is held.
func (e *Editors) wanted(session string) bool {
	if len(e.bound[session]) > 0 || e.coming[session] > 0 {
		return true
	}
	e.end(session)
	return false
}

// end keeps editors from opening a session until ended. mu is held.
func (e *Editors) end(session string) {
	if e.ends[session] == nil {
		e.ends[session] = make(chan struct{})
	}
}

// ending keeps editors from opening a session until ended.
func (e *Editors) ending(session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(session)
}

// ended says that a session is out of memory.
func (e *Editors) ended(session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end := e.ends[session]; end != nil {
		delete(e.ends, session)
		close(end)
	}
}

// retire says that an editor is about to go. last are the sessions that end with it.
func (e *Editors) retire(s *Server) (last map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers[s] = false
	last = map[string]bool{}
	for id, all := range e.bound {
		if len(all) == 1 && all[0] == s && e.coming[id] == 0 {
			e.end(id)
			last[id] = true
		}
	}
	return last
}

// moved lets a session's editors know that another came or went. mu is held.
func (e *Editors) moved(session string) {
	for _, s := range e.bound[session] {
		go func() {
			if es := s.lookup(session); es != nil {
				es.poke()
			}
		}()
	}
}

// unbind reports whether other editors still have the session open. If not it ends now: call ended when it has.
func (e *Editors) unbind(session string, s *Server) (others bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(session, s)
	return e.wanted(session)
}

// drop takes an editor off a session. mu is held.
func (e *Editors) drop(session string, s *Server) {
	left := slices.DeleteFunc(slices.Clone(e.bound[session]), func(x *Server) bool { return x == s })
	if len(left) == 0 {
		delete(e.bound, session)
		return
	}
	changed := len(left) != len(e.bound[session])
	e.bound[session] = left
	if changed {
		e.moved(session)
	}
}

// readers is how many editors have a session open.
func (e *Editors) readers(session string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.bound[session])
}

// errNoEditor: nobody can be asked. It fails closed.
var errNoEditor = errors.New("no editor is connected to this session, so nobody can answer")

// maxParents is how deep sub-agents may nest before a cycle is assumed.
const maxParents = 16

// of finds the first editor of a session, and the session it knows: the session itself or the one that started it.
func (e *Editors) of(session string) (*Server, string, bool) {
	all, session := e.all(session)
	if len(all) == 0 {
		return nil, "", false
	}
	return all[0], session, true
}

// all finds every editor of a session, and the session they know.
func (e *Editors) all(session string) ([]*Server, string) {
	e.mu.Lock()
	var any *Server
	for s := range e.servers {
		any = s
	}
	e.mu.Unlock()
	for range maxParents {
		e.mu.Lock()
		all := e.bound[session]
		e.mu.Unlock()
		if len(all) > 0 {
			return all, session
		}
		if any == nil {
			break
		}
		live, ok := any.o.Runtime.Session(session)
		if !ok || live.Info().Parent == "" {
			break
		}
		session = live.Info().Parent
	}
	return nil, ""
}

// AskPermission implements permission.Asker.
func (e *Editors) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	e.keepAsked(r)
	reply, err := askAll(ctx, e, r.SessionID, func(ctx context.Context, s *Server, session string) (permission.Reply, error) {
		return s.askPermission(ctx, session, r)
	}, func(reply permission.Reply) string {
		if reply.Kind == permission.Reject {
			return "rejected"
		}
		return "allowed"
	})
	if errors.Is(err, errNoEditor) {
		return permission.Reply{}, &permission.RejectedError{Message: errNoEditor.Error()}
	}
	return reply, err
}

// AskQuestions implements tools.Questioner.
func (e *Editors) AskQuestions(ctx context.Context, call *tools.Call, qs []tools.Question) ([][]string, error) {
	return askAll(ctx, e, call.SessionID, func(ctx context.Context, s *Server, session string) ([][]string, error) {
		return s.askQuestions(ctx, session, call, qs)
	}, func([][]string) string { return "answered" })
}

// Files are a session's open documents, whichever editor has it open when they are asked for.
func (e *Editors) Files(session string) files.Buffers { return sessionFiles{e, session} }

// Applier writes a session's changes where its editor shows them, and the rest through disk.
func (e *Editors) Applier(session string, disk Applier) Applier {
	return sessionApplier{e, session, disk}
}
