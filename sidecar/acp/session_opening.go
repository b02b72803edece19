package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// openings are the methods that open, close and list sessions.
type openings struct {
	*conn
	*shared
	sessions *sessionTable
	folders  Folders
	attached sessionOnce // the session that the first session/new opens instead of a new one
}

// sessionOnce is a session's id that is taken once.
type sessionOnce struct {
	mu sync.Mutex
	id string // guarded by mu; empty once it was taken
}

func (x *sessionOnce) take() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := x.id
	x.id = ""
	return id
}

func (s *openings) newEditorSession() *editorSession {
	es := &editorSession{conn: s.conn, shared: s.shared, ready: make(chan struct{}), order: closedChan(), turns: closedChan(), prompts: map[*context.CancelFunc]string{}, own: map[string]bool{}}
	es.view = newView(es)
	return es
}

// opening is a request to open a stored session. It has its place as soon as it has come: what the editor asks next
// finds the session, and waits until it is there.
type opening struct {
	*openings
	id   string
	es   *editorSession
	turn <-chan struct{} // closed when those before it have been opened or closed
	done func()          // lets those behind it go

	task bool // it is a sub-agent's at work: it ends with its task
}

// errGone: a session came up as its editor went.
var errGone = errors.New("the editor has closed the connection")

func (s *openings) opening(id string) *opening {
	o := &opening{openings: s, id: id, es: s.sessions.claim(id, s.newEditorSession())}
	o.turn, o.done = s.sessions.inLine(id)
	return o
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
			o.es = o.sessions.claim(o.id, o.newEditorSession()) // it could not be opened: this is another try
		default:
			opened = false
		}
	}
	if bad != nil {
		return nil, false, o.fail(bad)
	}
	if err := o.registry.Enter(ctx, o.id); err != nil {
		return nil, false, o.fail(err)
	}
	_, at := o.rt.Session(o.id)
	live, err := o.rt.LoadSession(ctx, o.id)
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
	if have := live.Info().Cwd; !SameDir(have, cwd) {
		return rpc.InvalidParams("cwd: session %s belongs to %s, not to %s", o.id, have, cwd)
	}
	return nil
}

// settle ends the opening of a session that was loaded: from now on it is this editor's, or err says why not.
func (o *opening) settle(err error) error {
	e := o.registry
	if err == nil && !e.Bind(o.id, o.editor) {
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
	o.sessions.drop(o.id, o.es)
	close(o.es.ready)
	return err
}
