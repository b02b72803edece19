package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// openings opens stored sessions for a connection.
type openings struct {
	*conn
	*sessionServices
	sessions *sessionTable
	folders  Folders
	attached sessionOnce // the session that the first session/new opens instead of a new one
}

// sessionOnce is a session's id that can be taken once.
type sessionOnce struct {
	mu sync.Mutex
	id string // guarded by mu; empty once it was taken
}

// take returns the id the first time, then "". Two session/new at once must not both get the session.
func (x *sessionOnce) take() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := x.id
	x.id = ""
	return id
}

// newEditorSession is a session that is not open yet: requests wait for ready.
func (s *openings) newEditorSession() *editorSession {
	es := &editorSession{conn: s.conn, sessionServices: s.sessionServices, ready: make(chan struct{}), order: closedChan(), turns: closedChan(), prompts: map[*context.CancelFunc]string{}, own: map[string]bool{}}
	es.view = newView(es)
	return es
}

// opening is a request to open a stored session. It takes its place when it arrives, in the order of the wire: later
// requests find the session and wait until it is open. Requests of other sessions are answered meanwhile.
type opening struct {
	*openings
	id   string
	es   *editorSession
	turn <-chan struct{} // closed when earlier openings and closings are done
	done func()          // lets later ones begin

	shows bool // the past is shown to the editor while it is read
	task  bool // it belongs to a sub-agent that works: closing it would end the task
}

// errEditorGone ends the opening of a session whose editor has disconnected meanwhile.
var errEditorGone = errors.New("the editor has closed the connection")

// opening takes the request's place. The caller must call done.
func (s *openings) opening(id string) *opening {
	o := &opening{openings: s, id: id, es: s.sessions.claim(id, s.newEditorSession())}
	o.turn, o.done = s.sessions.queueOpening(id)
	return o
}

// open loads the session, or returns the one that this connection has open already; the bool reports that. After
// loading it the caller must call finish.
func (o *opening) open(ctx context.Context, cwd string, extra []string) (*editorSession, bool, error) {
	// The wait does not end with ctx: a request keeps its place until the earlier ones are done.
	<-o.turn
	bad := checkDirs(cwd, extra)
	for opened := true; opened; {
		select {
		case <-o.es.ready:
			if o.es.err == nil {
				if bad == nil {
					bad = o.checkFolder(o.es.Session, cwd)
				}
				return o.es, true, bad
			}
			o.es = o.sessions.claim(o.id, o.newEditorSession()) // the earlier opening failed: try again
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
	// LoadSession returns the live session where there is one; at tells whether it was live before.
	_, at := o.rt.Session(o.id)
	var foreign error // the session belongs to another folder: nothing of it may be shown
	var with *agent.Reader
	if o.shows {
		with = o.es.reader(func(s *agent.Session) error {
			foreign = o.checkFolder(s, cwd)
			return foreign
		})
	}
	live, err := o.rt.ReadSession(ctx, o.id, with)
	if o.es.Session = live; err == nil {
		o.task = at && live.Info().Parent != ""
		err = o.checkFolder(live, cwd)
	} else if foreign == nil && ctx.Err() == nil {
		err = protocol.NotFound("session %q cannot be opened: %v; session/list shows the stored ones", o.id, err)
	}
	if err != nil {
		return nil, false, o.finish(err)
	}
	return o.es, false, nil
}

// checkFolder fails when a session belongs to another folder than the editor's: its paths would be outside the
// project.
func (o *opening) checkFolder(live *agent.Session, cwd string) error {
	if have := live.Info().Cwd; !SameDir(have, cwd) {
		return rpc.InvalidParams("cwd: session %s belongs to %s, not to %s", o.id, have, cwd)
	}
	return nil
}

// finish ends the opening of a loaded session: it becomes this editor's, or it is closed again because of err.
func (o *opening) finish(err error) error {
	e := o.registry
	if err == nil && !e.Bind(o.id, o.editor) {
		err = errEditorGone
	}
	// Bind has to come before this line: otherwise the session would have no editor for a moment, and another
	// goroutine would close it.
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
		// The request may be cancelled; the session is closed all the same.
		ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
		defer cancel()
		o.es.Session.Close(ctx)
	}
	return o.fail(err)
}

// fail gives up: requests that wait for the session fail with err too. A later opening tries again.
func (o *opening) fail(err error) error {
	o.es.err = err
	// Other requests wait for this session, and "cancelled" would be true of the opening only, not of them.
	if errors.Is(err, context.Canceled) {
		o.es.err = protocol.NotFound("session %q is not open: opening it was cancelled", o.id)
	}
	o.sessions.drop(o.id, o.es)
	close(o.es.ready)
	return err
}
