// Package acp is one editor's connection: the Agent Client Protocol and the _pillion methods on one side, the agent's
// sessions on the other. A Host holds what the connections of a sidecar share, a Connection serves one of them, and
// methods.go says which type answers which method. Updates leave in the order of a session's events (view), questions
// reach the user of the editor (person).
//
// It does not know how a folder's parts are assembled (Folders, Terminals and Auth are given), and it writes no file.
package acp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
)

// Connection is one connection to an editor: the Agent Client Protocol on one side, the agent's sessions on the other. It
// starts and ends the connection; what is asked on it is answered by small types of their own (see methods.go).
type Connection struct {
	*conn
	// host is shared by all connections of this process; the rest belongs to this one.
	host     *Host
	stream   io.ReadWriteCloser
	sessions *sessionTable
	methods  map[string]method // by name; never changed
	stop     context.CancelFunc
	wired    chan struct{} // closed when wire is set: messages may come before newWire has returned
}

// NewConnection makes the connection of one editor, which speaks on stream. buffers mirrors what the editor has open. open is
// the session that the first session/new opens instead of a new one; empty: none. Nothing is read before Serve.
func NewConnection(h *Host, stream io.ReadWriteCloser, buffers *editors.Buffers, open string) *Connection {
	log := h.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Connection{conn: &conn{log: log}, host: h, stream: stream, sessions: newSessionTable(), wired: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	who := &person{conn: s.conn, sessions: s.sessions, rt: h.Runtime, texts: &review.Texts{}}
	s.editor = editors.NewEditor(s.ctx, who, buffers)
	s.methods = s.table(who, open)
	return s
}

// How long things may take after the editor has closed the connection; together less than two seconds. An editor that
// is being closed kills what does not end.
const (
	shutdownLimit = 1200 * time.Millisecond // sessions, to end their turns
	answerLimit   = 250 * time.Millisecond  // answers, to leave; three times at most
)

// Serve answers the editor until it closes the connection or ctx ends; then it cancels running turns and ends the
// sessions. It returns within two seconds of that, with the connection's error, if it had one.
func (s *Connection) Serve(ctx context.Context) error {
	// Problems may be reported before the wire exists: the listener waits for it instead of dropping them.
	wired := s.wired
	live, leave := s.host.Problems.join()
	defer leave()
	live.follow(func(r lspbridge.FileReport) { <-wired; s.sendProblems(r) })
	defer live.follow(nil)
	defer s.host.enter(s)()
	s.wire = newWire(s.stream, s.handle, func(err error) { s.log.Warn("editor", "err", err) })
	s.editor.Connect(s.wire.peer)
	// Before the first message is handled: a session cannot be given to an editor that is not connected.
	s.host.Editors.Connect(s.editor)
	defer s.host.Editors.Disconnect(s.editor)
	close(wired)
	select {
	case <-ctx.Done():
	case <-s.wire.ended:
	}
	// The order matters: the sessions are marked before the context ends, since a request that is cut off by it is
	// stored at once, as rejected where the session is not marked.
	s.markClosing()
	s.stop()
	s.endSessions()
	if ctx.Err() == nil {
		// Requests from before the editor closed its end are still answered: a script may write them all, close its end and
		// read the answers.
		within(answerLimit, func() { <-s.wire.peer.Done() })
	}
	flush, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	_ = s.wire.out.Flush(flush)
	within(answerLimit, func() { _ = s.wire.peer.Close() }) // closing waits for a write, and the editor may have stopped reading
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

// markClosing marks the sessions that end with this connection, so that their pending approval requests are stored as
// interrupted and asked again later, and not as rejected.
func (s *Connection) markClosing() {
	last := s.host.Editors.Retire(s.editor)
	mine := s.sessions.all()
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

// endSessions cancels every turn and ends the sessions at the same time. Sessions that other editors have open are
// only left.
func (s *Connection) endSessions() {
	// Later requests of this connection find no session. One that they open after this is closed again by finish,
	// because the registry binds nothing to an editor that is disconnecting.
	mine := s.sessions.clear()
	all := map[string]*editorSession{}
	for id, es := range mine {
		if s.host.Editors.Unbind(id, s.editor) {
			es.leave()
		} else {
			all[id] = es
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	var wg sync.WaitGroup
	for id, es := range all {
		// One session that hangs must not use up the time of the others.
		wg.Go(func() {
			defer s.host.Editors.Ended(id)
			if err := es.end(ctx); err != nil {
				s.log.Warn("session did not end well", "session", id, "err", err)
			}
		})
	}
	within(shutdownLimit, wg.Wait)
}

// handle dispatches one message. Quick ones are answered here, in the order in which they arrived; a longer one takes
// its place in its session's order here and continues in the background.
func (s *Connection) handle(ctx context.Context, r *rpc.Request) (any, error) {
	<-s.wired
	result, err := s.dispatch(ctx, r)
	return result, wireError(err)
}

// eachSession calls f for each session that the editor knows.
func (s *Connection) eachSession(f func(*editorSession)) {
	for _, es := range s.sessions.all() {
		select {
		case <-es.ready:
		default:
			continue // it is being opened, and gets all that is current then
		}
		es.mu.Lock()
		known := es.announced // before that the editor does not know the session
		es.mu.Unlock()
		if es.err == nil && known {
			f(es)
		}
	}
}

// decode reads a request's parameters; missing ones count as {}. It fails with InvalidParams.
func decode[P any](r *rpc.Request) (*P, error) {
	p := new(P)
	raw := r.Params
	// JSON-RPC allows params to be left out.
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

// async answers a request in the background, so that the requests behind it need not wait.
func async[P, R any](ctx context.Context, r *rpc.Request, f func(context.Context, *P) (R, error)) (any, error) {
	p, err := decode[P](r)
	if err != nil {
		return nil, err
	}
	r.Async()
	return result(f(ctx, p))
}

// result keeps a typed nil out of the answer: beside an error the peer must get no value.
func result[R any](v R, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// wireError gives an error its JSON-RPC code: its own, or InternalError. A cancelled request keeps its error, which
// package rpc translates.
func wireError(err error) error {
	var coded *jsonrpc2.Error
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, context.Canceled):
		return err
	}
	return jsonrpc2.NewError(jsonrpc2.InternalError, err.Error())
}
