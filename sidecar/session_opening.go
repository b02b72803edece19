package main

import (
	"context"
	"errors"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// opening is a request to open a stored session. It has its place as soon as it has come: what the editor asks next
// finds the session, and waits until it is there.
type opening struct {
	s    *Server
	id   string
	es   *editorSession
	turn <-chan struct{} // closed when those before it have been opened or closed
	done func()          // lets those behind it go

	task bool // it is a sub-agent's at work: it ends with its task
}

// errGone: a session came up as its editor went.
var errGone = errors.New("the editor has closed the connection")

func (s *Server) opening(id string) *opening {
	o := &opening{s: s, id: id, es: s.claim(id)}
	o.turn, o.done = s.inLine(id)
	return o
}

// claim is the session of that id on this connection, be it one that is to be opened.
func (s *Server) claim(id string) *editorSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	es := s.sessions[id]
	if es == nil {
		es = s.newEditorSession()
		s.sessions[id] = es
	}
	return es
}

// inLine keeps what opens and closes a session in the order it came: turn is closed when those before have called done.
func (s *Server) inLine(id string) (turn <-chan struct{}, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, mine := s.lines[id], make(chan struct{})
	if before == nil {
		before = closedChan()
	}
	s.lines[id] = mine
	return before, func() {
		<-before
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.lines[id] == mine {
			delete(s.lines, id)
		}
		close(mine)
	}
}

// open loads a stored session, or takes the one this connection has open already. One that it has loaded is settled
// by the caller.
func (o *opening) open(ctx context.Context, cwd string, extra []string) (*editorSession, bool, error) {
	<-o.turn
	bad := checkDirs(cwd, extra)
	for opened := true; opened; {
		select {
		case <-o.es.ready:
			if o.es.err == nil {
				if bad == nil {
					bad = o.fits(o.es.Session, cwd)
				}
				return o.es, true, bad
			}
			o.es = o.s.claim(o.id) // it could not be opened: this is another try
		default:
			opened = false
		}
	}
	s := o.s
	if bad != nil {
		return nil, false, o.fail(bad)
	}
	if err := s.o.Editors.Enter(ctx, o.id); err != nil {
		return nil, false, o.fail(err)
	}
	_, at := s.o.Runtime.Session(o.id)
	live, err := s.o.Runtime.LoadSession(ctx, o.id)
	if err == nil {
		o.es.Session, o.task = live, at && live.Info().Parent != ""
		err = o.fits(live, cwd)
	} else if ctx.Err() == nil {
		err = protocol.NotFound("session %q cannot be opened: %v; session/list shows the stored ones", o.id, err)
	}
	if err != nil {
		return nil, false, o.settle(err)
	}
	return o.es, false, nil
}

// fits reports that a session is not one of the editor's folder.
func (o *opening) fits(live *agent.Session, cwd string) error {
	if have := live.Info().Cwd; !sameDir(have, cwd) {
		return rpc.InvalidParams("cwd: session %s belongs to %s, not to %s", o.id, have, cwd)
	}
	return nil
}

// settle ends the opening of a session that was loaded: from now on it is this editor's, or err says why not.
func (o *opening) settle(err error) error {
	e := o.s.o.Editors
	if err == nil && !e.Bind(o.id, o.s.editor) {
		err = errGone
	}
	last := e.Entered(o.id)
	if err == nil {
		close(o.es.ready)
		return nil
	}
	if last {
		defer e.Ended(o.id)
	}
	o.es.unfollow()
	if last && o.es.Session != nil && !o.task {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
		defer cancel()
		o.es.Session.Close(ctx)
	}
	return o.fail(err)
}

// fail gives up. What has been asked of the session meanwhile fails too; a later opening tries again.
func (o *opening) fail(err error) error {
	o.es.err = err
	if errors.Is(err, context.Canceled) {
		o.es.err = protocol.NotFound("session %q is not open: opening it was cancelled", o.id)
	}
	o.s.mu.Lock()
	if o.s.sessions[o.id] == o.es {
		delete(o.s.sessions, o.id)
	}
	o.s.mu.Unlock()
	close(o.es.ready)
	return err
}
