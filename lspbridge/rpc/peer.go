package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"
)

// Names of the cancel notification.
const (
	CancelACP = "$/cancel_request" // params {requestId}
	CancelLSP = "$/cancelRequest"  // params {id}
)

// CodeCancelled is the error code of a cancelled request: RequestCancelled in LSP 3.17, and the same
// number in ACP.
const CodeCancelled jsonrpc2.Code = -32800

// Request is one message from the peer. The handler owns it and its Params, and may keep them after it
// returns.
type Request struct {
	ID     jsonrpc2.ID // zero for a notification
	Method string
	Params json.RawMessage // nil when absent or null
	IsCall bool            // an answer is expected

	async func() // releases the next message; nil after Async
}

// Async lets the next message be handled while this handler still runs. A handler must call it before it
// waits for the peer: the answer is read only after the handler has returned or called Async. Further
// calls do nothing.
func (r *Request) Async() {
	if r.async != nil {
		r.async()
		r.async = nil
	}
}

// Handler answers the peer. Its context ends when the peer cancels the request or when the connection
// ends. The error of a notification is only logged, since there is nobody to answer; a panic is logged and
// answered with InternalError. Neither ends the connection.
type Handler func(ctx context.Context, r *Request) (any, error)

// PeerOptions configures NewPeer. The zero value rejects every call.
type PeerOptions struct {
	Handler Handler        // nil: every call is answered with MethodNotFound
	Codec   jsonrpc2.Codec // nil: JSON
	Cancel  string         // the notification Call sends when its context ends: CancelACP (default) or CancelLSP
	// Log hears of panics and of notifications that failed. It must not block.
	Log func(error)
}

// Peer is one end of a connection: it serves the peer's requests and sends our own. Its methods may be
// called concurrently.
type Peer struct {
	conn   jsonrpc2.Conn
	stream *guarded // closed before conn; see Close
	o      PeerOptions
	stop   context.CancelFunc // ends the context of every handler

	mu      sync.Mutex
	running map[jsonrpc2.ID]context.CancelCauseFunc // guarded by mu: how to cancel each call of the peer that is being handled
}

// ErrCancelledByPeer is the context.Cause of a request that the peer cancelled. It tells a handler that
// the person stopped it, and that the connection has not ended.
var ErrCancelledByPeer = errors.New("cancelled by the peer")

// NewPeer starts to serve stream in the background and returns at once. Done tells when the stream has
// ended.
func NewPeer(stream Stream, o PeerOptions) *Peer {
	if o.Codec == nil {
		o.Codec = JSON
	}
	if o.Cancel == "" {
		o.Cancel = CancelACP
	}
	if o.Log == nil {
		o.Log = func(error) {}
	}
	if o.Handler == nil {
		o.Handler = func(_ context.Context, r *Request) (any, error) { return nil, MethodNotFound(r.Method) }
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Peer{o: o, stop: stop, running: map[jsonrpc2.ID]context.CancelCauseFunc{}}
	p.stream = &guarded{Stream: stream, ended: stop}
	p.conn = jsonrpc2.NewConn(p.stream, jsonrpc2.WithCodec(o.Codec))
	p.conn.Go(ctx, p.handle)
	return p
}

// Stream is a jsonrpc2.Stream that also reads and writes encoded frames. Conn uses those two methods, when
// they exist, to read messages and to answer batches. NewLineStream and NewHeaderStream return one.
type Stream interface {
	jsonrpc2.Stream
	ReadFrame(context.Context) ([]byte, int64, error)
	WriteFrame(context.Context, []byte) (int64, error)
}

// guarded ends the contexts of the handlers as soon as reading ends. Conn alone would wait for handlers
// that wait for the peer that has gone. It also closes the stream only once, because both Close and Conn
// do.
type guarded struct {
	Stream
	ended func()
	once  sync.Once
	err   error
	long  json.RawMessage // parameters of the message that ReadFrame returned last, when it left them out
}

// giver is a stream that can give its last frame away; see Request.Params.
type giver interface{ given() bool }

// ReadFrame reports any error as the end: Conn stops reading after it.
//
// The parameters of a long message do not pass through Conn, which would copy them and keep the copy until the handler has returned. A
// handler runs before the next frame is read, or calls Async first, so there is one set of such parameters at a time.
func (g *guarded) ReadFrame(ctx context.Context) ([]byte, int64, error) {
	b, n, err := g.Stream.ReadFrame(ctx)
	g.long = nil
	if err != nil {
		g.ended()
	} else if s, ok := g.Stream.(giver); ok && s.given() && len(b) > longLine {
		if msg, err := jsonrpc2.DecodeMessage(b); err == nil {
			switch m := msg.(type) {
			case *jsonrpc2.Call:
				g.long, b = json.RawMessage(m.Params()), jsonrpc2.AppendMessage(nil, jsonrpc2.NewCall(m.ID(), m.Method(), nil))
			case *jsonrpc2.Notification:
				g.long, b = json.RawMessage(m.Params()), jsonrpc2.AppendMessage(nil, jsonrpc2.NewNotification(m.Method(), nil))
			}
		}
	}
	return b, n, err
}

// params returns the parameters of the request that is being handled, which belong to the handler.
func (g *guarded) params(req *jsonrpc2.Request) json.RawMessage {
	if long := g.long; long != nil {
		g.long = nil
		return long
	}
	return bytes.Clone(req.Params())
}

func (g *guarded) Close() error {
	g.once.Do(func() { g.err = g.Stream.Close() })
	return g.err
}

// handle calls the handler. It never panics, and never returns an error for a notification: Conn would end
// the connection for either.
func (p *Peer) handle(ctx context.Context, req *jsonrpc2.Request) (result any, err error) {
	// The method and the parameters are borrowed from the read buffer: take them before anything else.
	r := &Request{ID: req.ID(), Method: strings.Clone(req.Method()), Params: p.stream.params(req), IsCall: req.IsCall()}
	if r.Method == CancelACP || r.Method == CancelLSP {
		p.cancel(r.Params)
		return nil, nil
	}
	parent := jsonrpc2.DetachContext(ctx)
	work, cancel := context.WithCancelCause(parent)
	if r.IsCall {
		// Registered before the handler can go async: the next message may be its cancellation.
		if !p.register(r.ID, cancel) {
			cancel(nil)
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidRequest, "request id %v is still being worked on", r.ID)
		}
	}
	var released atomic.Bool
	r.async = func() {
		if released.CompareAndSwap(false, true) {
			jsonrpc2.Async(ctx)
		}
	}
	defer func() {
		if x := recover(); x != nil {
			p.o.Log(fmt.Errorf("%s panicked: %v\n%s", r.Method, x, debug.Stack()))
			result, err = nil, nil
			if r.IsCall {
				err = jsonrpc2.Errorf(jsonrpc2.InternalError, "internal error in %s: %v", r.Method, x)
			}
		}
		if r.IsCall {
			p.mu.Lock()
			delete(p.running, r.ID)
			p.mu.Unlock()
		} else if err != nil {
			p.o.Log(fmt.Errorf("%s: %w", r.Method, err))
			result, err = nil, nil
		}
		if err != nil {
			err = answerable(err)
		}
		if err == nil && r.IsCall && result == nil {
			result = json.RawMessage("null") // a call's answer always has a result
		}
		cancel(nil)
	}()
	return p.o.Handler(work, r)
}

// answerable is a handler's error as it can be sent: with a code, and in valid UTF-8, since its text may quote the peer
// or the name of a file.
func answerable(err error) error {
	coded := (*jsonrpc2.Error)(nil)
	switch {
	case errors.As(err, &coded):
	case errors.Is(err, context.Canceled):
		return jsonrpc2.NewError(CodeCancelled, "Request cancelled")
	default:
		coded = jsonrpc2.NewError(jsonrpc2.InternalError, err.Error())
	}
	if utf8.ValidString(coded.Message) {
		return coded
	}
	valid := *coded
	valid.Message = strings.ToValidUTF8(coded.Message, "\ufffd")
	return &valid
}

// register notes how to cancel a call. It returns false when a call with the same id is still being
// handled: a cancellation could not tell the two apart.
func (p *Peer) register(id jsonrpc2.ID, cancel context.CancelCauseFunc) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.running[id]; taken {
		return false
	}
	p.running[id] = cancel
	return true
}

// cancel handles the cancel notification of either protocol. An id that is unknown is ignored: the answer
// may have crossed the cancellation on the wire.
func (p *Peer) cancel(params json.RawMessage) {
	var c struct{ ID, RequestID json.RawMessage }
	_ = json.Unmarshal(params, &c)
	raw := c.ID
	if raw == nil {
		raw = c.RequestID
	}
	raw, ok := canonicalID(raw)
	if !ok || raw == nil {
		return
	}
	var id jsonrpc2.ID
	if raw[0] == '"' {
		var s string
		_ = json.Unmarshal(raw, &s)
		id = jsonrpc2.NewStringID(s)
	} else {
		var n int64
		_ = json.Unmarshal(raw, &n)
		id = jsonrpc2.NewNumberID(n)
	}
	p.mu.Lock()
	cancel := p.running[id]
	p.mu.Unlock()
	if cancel != nil {
		cancel(ErrCancelledByPeer)
	}
}

// Call sends a request, waits for the answer and decodes it into result; a nil result discards it. When
// ctx ends first, Call sends the cancel notification and returns ctx's error without waiting for the peer.
// An error that the peer answered is a *jsonrpc2.Error.
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id, err := p.conn.Call(ctx, method, params, result)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && id.IsValid() {
		key := "requestId"
		if p.o.Cancel == CancelLSP {
			key = "id"
		}
		// Conn numbers our requests. The notification must go out although ctx has ended.
		n, _ := id.Number()
		_ = p.conn.Notify(context.WithoutCancel(ctx), p.o.Cancel, json.RawMessage(fmt.Sprintf(`{%q:%d}`, key, n)))
	}
	return err
}

// Notify sends a notification. It returns when the notification has been handed to the stream, not when
// the peer has read it.
func (p *Peer) Notify(ctx context.Context, method string, params any) error {
	return p.conn.Notify(ctx, method, params)
}

// Done is closed when the connection has ended and every handler has returned.
func (p *Peer) Done() <-chan struct{} { return p.conn.Done() }

// Err returns why the connection ended; nil for a clean end.
func (p *Peer) Err() error { return p.conn.Err() }

// Close ends the connection: it ends the contexts of the handlers, fails the calls that wait, and waits
// for the handlers to return. A handler must not call it.
func (p *Peer) Close() error {
	p.stop()
	// The stream first: Conn's own Close waits for answers a silent peer never gives.
	err := p.stream.Close()
	_ = p.conn.Close()
	return err
}

// MethodNotFound is the error (-32601) for a method that the handler does not know.
func MethodNotFound(method string) error {
	return jsonrpc2.Errorf(jsonrpc2.MethodNotFound, "method not found: %s", shownName(method))
}

// maxName is how many bytes of a method's name an error quotes. Without it, a peer could make us echo
// megabytes.
const maxName = 200

// shownName is a method's name as an error may quote it: clipped, and valid UTF-8, because the answer must
// be valid JSON.
func shownName(method string) string {
	if len(method) > maxName {
		method = method[:maxName] + "…"
	}
	return strings.ToValidUTF8(method, "\ufffd")
}

// InvalidParams is the error (-32602) for parameters that cannot be used; the text says why, as for
// fmt.Sprintf.
func InvalidParams(format string, args ...any) error {
	return jsonrpc2.Errorf(jsonrpc2.InvalidParams, format, args...)
}
