package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// ServerOptions are what a Server is made of. Only Runtime and Conn are needed.
type ServerOptions struct {
	Runtime *agent.Runtime
	Conn    io.ReadWriteCloser // the editor
	Editors *editors.Registry  // where questions of the runtime's sessions arrive; nil makes its own
	Buffers *editors.Buffers   // nil makes its own
	Live    *liveProblems      // changed problems, for editors that follow them; nil: none
	Theirs  *editors.Problems  // takes the editor's own problems; nil: they are not wanted
	Open    string             // the session that the first session/new opens instead of a new one; empty: none
	Version string             // Pillion's
	Log     *slog.Logger       // nil is silent
	Rested  func()             // told when a prompt has been answered; nil: nobody is

	Modes    func(cwd string) []agent.Agent   // the agents to choose from; nil: the runtime's
	Models   func(cwd string) []models.Choice // the models to choose from; nil offers none
	Auth     Auth                             // keys of model providers; nil: the editor has no say
	Commands func(cwd string) []slash.Command // slash commands besides the built-in ones

	Desk   *review.Desk                               // reviews what was applied; nil: nothing can be undone
	Rules  func(cwd, agent string) permission.Ruleset // the rules in force; nil: not shown
	Grants permission.Grants                          // remembered permissions; nil: not shown
	// Terminals are a session's; nil: none are offered.
	Terminals func(session string) *run.Terminals
	Finder    *mention.Finder // what @ may mention; nil: not searched

	AuthMethods  []protocol.AuthMethod // ways to get a key; none is needed for the built-in model
	Authenticate func(ctx context.Context, method string) error
	Logout       func(ctx context.Context) error // nil: not announced
	// Trust is told what the editor says about a folder, nil for nothing, and returns what the person must know about
	// its configuration; nil: not asked.
	Trust func(cwd string, said *bool) (note string)
	// MCP is told of the MCP servers an editor passes in, before its session starts; nil: they are refused with a notice.
	MCP func(cwd string, servers []protocol.MCPServer) error
}

// Server is one connection to an editor: the Agent Client Protocol on one side, the agent's sessions on the other.
type Server struct {
	o      ServerOptions
	log    *slog.Logger
	wire   *wire
	editor *editors.Editor // what it announced, shows and can do
	ctx    context.Context // ends with the connection; the one place a context is kept, for work no request started
	stop   context.CancelFunc

	wired chan struct{} // closed when wire is set: messages may come before newWire has returned

	selection selection // where the person is

	screens screens // terminals the editor follows
	relays  relays  // commands its own terminals show

	asked review.Texts // changes that wait for the person

	mu       sync.Mutex
	sessions map[string]*editorSession // guarded by mu
	lines    map[string]chan struct{}  // of sessions being opened or closed: what came last, closed at its end; guarded by mu
	attached bool                      // o.Open has been opened; guarded by mu
}

type rawMessage = json.RawMessage

// NewServer makes a Server; nothing is read before Serve.
func NewServer(o ServerOptions) *Server {
	if o.Editors == nil {
		o.Editors = editors.NewRegistry()
	}
	if o.Buffers == nil {
		o.Buffers = editors.NewBuffers(nil)
	}
	if o.Desk == nil {
		o.Desk = review.NewDesk(nil)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Modes == nil && o.Runtime != nil {
		o.Modes = o.Runtime.Agents
	}
	s := &Server{o: o, log: o.Log, sessions: map[string]*editorSession{}, lines: map[string]chan struct{}{}, wired: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.editor = editors.NewEditor(s.ctx, s, o.Buffers)
	return s
}

// How long things may take once the editor is gone; together under two seconds.
const (
	shutdownLimit = 1200 * time.Millisecond // sessions, to end their turns
	answerLimit   = 250 * time.Millisecond  // answers, to leave; three times at most
)

// Serve answers the editor until it goes away or ctx ends; then it cancels what runs and ends the sessions. It returns
// within two seconds of that, with the connection's error, if it had one.
func (s *Server) Serve(ctx context.Context) error {
	wired := s.wired
	if s.o.Live != nil {
		s.o.Live.follow(func(r lspbridge.FileReport) { <-wired; s.tellProblems(r) })
		defer s.o.Live.follow(nil)
	}
	s.wire = newWire(s.o.Conn, s.handle, func(err error) { s.log.Warn("editor", "err", err) })
	s.editor.Connect(s.wire.peer)
	close(wired)
	s.o.Editors.Connect(s.editor)
	defer s.o.Editors.Disconnect(s.editor)
	select {
	case <-ctx.Done():
	case <-s.wire.ended:
	}
	s.closing()
	s.stop()
	s.endSessions()
	if ctx.Err() == nil {
		// What was asked before the editor closed its end is still answered; it may be a pipe that somebody reads.
		within(answerLimit, func() { <-s.wire.peer.Done() })
	}
	flush, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	_ = s.wire.out.Flush(flush)
	within(answerLimit, func() { _ = s.wire.peer.Close() }) // a write nobody reads cannot be ended
	if ctx.Err() != nil {
		return nil
	}
	return s.wire.peer.Err()
}

// within waits for f, but not longer than limit.
func within(limit time.Duration, f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// closing marks the sessions that end with this connection: what waits for the person there was interrupted.
func (s *Server) closing() {
	last := s.o.Editors.Retire(s.editor)
	s.mu.Lock()
	mine := maps.Clone(s.sessions)
	s.mu.Unlock()
	for id, es := range mine {
		select {
		case <-es.ready:
			if es.err == nil && last[id] {
				es.Session.Closing()
			}
		default:
		}
	}
}

// endSessions cancels every turn and ends the sessions, all at once, but those that others have open.
func (s *Server) endSessions() {
	s.mu.Lock()
	mine := maps.Clone(s.sessions)
	clear(s.sessions)
	s.mu.Unlock()
	all := map[string]*editorSession{}
	for id, es := range mine {
		if s.o.Editors.Unbind(id, s.editor) {
			es.leave()
		} else {
			all[id] = es
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	var wg sync.WaitGroup
	for id, es := range all {
		wg.Go(func() {
			defer s.o.Editors.Ended(id)
			if err := es.end(ctx); err != nil {
				s.log.Warn("session did not end well", "session", id, "err", err)
			}
		})
	}
	within(shutdownLimit, wg.Wait)
}

// ReadersChanged implements Person.
func (s *Server) ReadersChanged(session string) {
	if es := s.lookup(session); es != nil {
		es.poke()
	}
}

// AnsweredElsewhere implements Person.
func (s *Server) AnsweredElsewhere(session, decision string) {
	if es := s.lookup(session); es != nil {
		es.view.notice("info", "Another window of this session decided first: "+decision+". A decision made here at the same moment does not count.")
	}
}

// handle dispatches one message. Quick ones run here, one after the other in the order they came; what may take time
// goes async after its place in its session's order is taken.
func (s *Server) handle(ctx context.Context, r *rpc.Request) (any, error) {
	<-s.wired
	result, err := s.dispatch(ctx, r)
	return result, wireError(err)
}

func (s *Server) dispatch(ctx context.Context, r *rpc.Request) (any, error) {
	switch r.Method {
	case protocol.MethodInitialize:
		return handle(r, s.initialize)
	case protocol.MethodAuthenticate:
		return async(ctx, r, s.authenticate)
	case protocol.MethodLogout:
		return async(ctx, r, s.logout)
	case protocol.MethodSessionNew:
		return s.newSession(ctx, r)
	case protocol.MethodSessionLoad:
		return s.loadSession(ctx, r)
	case protocol.MethodSessionResume:
		return s.resumeSession(ctx, r)
	case protocol.MethodSessionList:
		return async(ctx, r, s.listSessions)
	case protocol.MethodSessionClose:
		return s.closeSession(ctx, r)
	case protocol.MethodSessionDelete:
		return s.deleteSession(ctx, r)
	case protocol.MethodSessionPrompt:
		return s.prompt(ctx, r)
	case protocol.MethodSessionCancel:
		return handle(r, s.cancel)
	case protocol.MethodSessionSetMode:
		return inOrder(ctx, s, r, func(p *protocol.SetSessionModeRequest) string { return p.SessionID }, s.setMode)
	case protocol.MethodSessionSetConfigOption:
		return inOrder(ctx, s, r, func(p *protocol.SetSessionConfigOptionRequest) string { return p.SessionID }, s.setConfigOption)
	case protocol.MethodSessionSteering:
		return inOrder(ctx, s, r, func(p *protocol.SteeringRequest) string { return p.SessionID }, s.steer)
	}
	if f, ok := s.extensions()[r.Method]; ok {
		return f(ctx, r)
	}
	if !r.IsCall {
		s.log.Debug("ignored a notification", "method", r.Method)
		return nil, nil
	}
	return nil, rpc.MethodNotFound(r.Method)
}

// decode reads a request's parameters.
func decode[P any](r *rpc.Request) (*P, error) {
	p := new(P)
	raw := r.Params
	if raw == nil {
		raw = []byte("{}")
	}
	if err := protocol.Decode(raw, p); err != nil {
		return nil, rpc.InvalidParams("invalid params: %v", err)
	}
	return p, nil
}

// handle answers a quick request in place.
func handle[P, R any](r *rpc.Request, f func(*P) (R, error)) (any, error) {
	p, err := decode[P](r)
	if err != nil {
		return nil, err
	}
	return result(f(p))
}

// async answers a request beside those that follow it.
func async[P, R any](ctx context.Context, r *rpc.Request, f func(context.Context, *P) (R, error)) (any, error) {
	p, err := decode[P](r)
	if err != nil {
		return nil, err
	}
	r.Async()
	return result(f(ctx, p))
}

func result[R any](v R, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// wireError gives an error its JSON-RPC code.
func wireError(err error) error {
	var coded *jsonrpc2.Error
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, context.Canceled):
		return err
	}
	return jsonrpc2.NewError(jsonrpc2.InternalError, err.Error())
}
