package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.opentelemetry.io/otel/attribute"
)

// maxMessage limits one message of a server, in bytes. The workspace symbols of a large project take tens of megabytes.
const maxMessage = 64 << 20

// errGone means that the connection to the server has ended: the server crashed or was stopped.
var errGone = errors.New("the language server stopped")

// connection is the connection to one run of a server: the stream, the process, and whether the server still answers. It knows nothing of
// documents or diagnostics.
type connection struct {
	id       string // of the server in the table
	log      *slog.Logger
	notice   func(server, text string) // shows the person a text, once
	liveness liveness
	peer     *rpc.Peer
	proc     *process      // nil for a server over pipes
	gone     chan struct{} // closed when the connection has ended
	changed  broadcast     // woken by every change that may end a wait

	alone map[string]chan struct{} // a turn for each method of Quirks.Alone

	health health
}

// liveness tells whether a silent server is really frozen.
type liveness interface {
	// busy reports whether the server has announced long work by progress, which explains its silence.
	busy() bool
	// probe returns a request that a working server answers at once; method is "" when there is none.
	probe() (method string, params any)
}

// connect starts reading messages from r and writing messages to w, and owns both from then on. handle may be called before connect
// returns.
func (c *connection) connect(r io.ReadCloser, w io.WriteCloser, handle rpc.Handler) {
	out := rpc.NewOutbox(w, rpc.OutboxOptions{}) // never blocks its callers, even when the server has stopped reading
	stream := rpc.NewHeaderStream(r, out, rpc.StreamOptions{MaxMessage: maxMessage, OnBad: c.handleGarbage, Trace: c.traced})
	c.peer = rpc.NewPeer(stream, rpc.PeerOptions{Handler: handle, Codec: rpc.LSP, Cancel: rpc.CancelLSP,
		Log: func(err error) { c.log.Warn("server message", "server", c.id, "err", err) }})
	go func() {
		<-c.peer.Done()
		close(c.gone)
		c.changed.wake()
	}()
}

// traced is called with every frame: any message from the server proves that it is alive.
func (c *connection) traced(direction byte, _ []byte) {
	if direction == '<' {
		c.health.markAlive()
	}
}

// await blocks until cond is true. It returns errGone when the connection ends first, or ctx's error. cond acquires the locks that it
// needs; every change of what cond reads must be followed by c.changed.wake.
func (c *connection) await(ctx context.Context, cond func() bool) error {
	for {
		if c.dead() { // what it sent before its end does not count
			return errGone
		}
		next := c.changed.next() // before cond, so that a change during cond closes this channel
		if cond() {
			return nil
		}
		select {
		case <-next:
		case <-c.gone:
			return errGone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// dead reports that the connection has ended.
func (c *connection) dead() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// call sends a request and decodes the answer into result; nil discards it. It decodes with encoding/json, which is more lenient than the
// protocol library. It returns errGone when the connection has ended, and another error when the answer has the wrong shape.
func (c *connection) call(ctx context.Context, method string, params, result any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return err
	}
	// Omit the member without parameters: params is an object or an array, never null (JSON-RPC 2.0, section 4.2).
	if params == nil {
		p = nil
	}
	var raw json.RawMessage
	var send any
	if p != nil {
		send = json.RawMessage(p)
	}
	traced, end := span(ctx, "language server "+method, attribute.String("rpc.system.name", "jsonrpc"), attribute.String("rpc.method", method), attribute.String("pillion.server", c.id))
	if turn := c.alone[method]; turn != nil {
		raw, err = c.callAlone(traced, turn, method, send)
	} else {
		wait, done := c.boundWait(traced)
		err = c.peer.Call(wait, method, send, &raw)
		done(err)
	}
	end(err)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, jsonrpc2.ErrClientClosing) {
			select { // the peer notices the end before gone is closed; without this wait the next request would go to the same dead run
			case <-c.gone:
			case <-ctx.Done():
			}
		}
		if c.dead() {
			return errGone
		}
		return err
	}
	if result == nil {
		return nil
	}
	// Callers decode answers with several possible shapes themselves.
	if r, ok := result.(*json.RawMessage); ok {
		*r = raw
		return nil
	}
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("%s: the answer has the wrong shape: %w", method, err)
	}
	return nil
}

// callAlone sends a request of a method whose requests must not overlap or be cancelled (Quirks.Alone). When ctx ends it returns at once,
// and the request keeps its turn until the server has answered it.
func (c *connection) callAlone(ctx context.Context, turn chan struct{}, method string, params any) (json.RawMessage, error) {
	select {
	case turn <- struct{}{}:
	case <-c.gone:
		return nil, errGone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type reply struct {
		raw json.RawMessage
		err error
	}
	answer := make(chan reply, 1)
	go func() { // ends with the answer, or with the connection
		var r reply
		r.err = c.peer.Call(context.WithoutCancel(ctx), method, params, &r.raw)
		<-turn
		answer <- r
	}()
	select {
	case r := <-answer:
		return r.raw, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// notify queues a notification. It never blocks on the server.
func (c *connection) notify(method string, params any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.peer.Notify(context.Background(), method, json.RawMessage(p))
}

// How long a server may take to stop by itself before it is killed.
const (
	shutdownWait = time.Second
	exitWait     = 500 * time.Millisecond
)

// stop ends the server as LSP requires (shutdown, then exit), and kills its process group if it does not exit.
func (c *connection) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownWait)
	defer cancel()
	if c.proc != nil {
		left := descendants(c.proc.pid)
		defer func() { reap(left) }()
	}
	select {
	case <-c.gone:
	default:
		if err := c.call(ctx, protocol.MethodShutdown, nil, nil); err == nil {
			_ = c.peer.Notify(ctx, protocol.MethodExit, nil)
			if c.proc != nil {
				select {
				case <-c.proc.exited:
				case <-ctx.Done():
				case <-time.After(exitWait):
				}
			}
		}
	}
	if c.proc != nil {
		select {
		case <-c.proc.exited:
		default:
			c.proc.kill()
			<-c.proc.exited
		}
	}
	_ = c.peer.Close()
}

// A server that owes an answer and sends nothing at all for silenceLimit is probed. When it does not react to the probe either, it counts
// as frozen: edits wait for it only frozenWait, the person is told once, and after frozenLimit it is killed and thereby restarted.
const (
	silenceLimit  = 10 * time.Second       // silence before the probe
	probeTimeout  = 5 * time.Second        // how long the probe waits for any message
	frozenLimit   = 3 * time.Minute        // time in the frozen state before the kill
	frozenWait    = 100 * time.Millisecond // how long an edit waits for a frozen server; not zero, so that a recovery is noticed
	bannerTimeout = 5 * time.Second        // from the first output that is not a message to the first message
)

// health records whether the server is alive.
type health struct {
	mu           sync.Mutex // guards what follows
	banner       string     // the first output that is not a message
	alive        bool       // a message has arrived
	waitingSince time.Time  // when a caller began to wait with no message since; zero without a waiter or after a message
	probing      bool       // checkAlive runs
	frozen       bool
}

// markAlive records that a message has arrived, which ends the frozen state.
func (h *health) markAlive() {
	h.mu.Lock()
	h.alive, h.frozen, h.waitingSince = true, false, time.Time{}
	h.mu.Unlock()
}

// garbage returns what the program printed instead of messages; "" once it has sent a message.
func (c *connection) garbage() string {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	if c.health.alive {
		return ""
	}
	return c.health.banner
}

// handleGarbage handles output that is not a message. A program that prints, but sends no message within bannerTimeout, is killed: the
// configured command is most likely not a language server.
func (c *connection) handleGarbage(err error) {
	c.log.Warn("bad message", "server", c.id, "err", err)
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	if c.health.alive || c.health.banner != "" {
		return
	}
	_, text, ok := strings.Cut(err.Error(), rpc.NotLSP)
	if !ok {
		text = err.Error()
	}
	c.health.banner = text
	time.AfterFunc(bannerTimeout, func() {
		if c.garbage() != "" && !c.dead() {
			c.kill()
		}
	})
}

// kill kills a run that has failed; the slot then restarts the server or turns it off.
func (c *connection) kill() {
	if c.proc != nil {
		c.proc.kill()
	}
	_ = c.peer.Close()
}

// boundWait limits a wait for the server: to the caller's context, and to frozenWait while the server is frozen. The caller must call done
// with the result of the wait; a failed wait may start checkAlive.
func (c *connection) boundWait(ctx context.Context) (wait context.Context, done func(error)) {
	c.health.mu.Lock()
	frozen := c.health.frozen
	first := c.health.waitingSince.IsZero()
	if first {
		c.health.waitingSince = time.Now()
	}
	c.health.mu.Unlock()
	cancel := context.CancelFunc(func() {})
	if wait = ctx; frozen {
		wait, cancel = context.WithTimeout(ctx, frozenWait)
	}
	return wait, func(err error) {
		cancel()
		c.health.mu.Lock()
		defer c.health.mu.Unlock()
		switch {
		case err == nil:
			if first { // the answer was already there
				c.health.waitingSince = time.Time{}
			}
		case c.health.waitingSince.IsZero() || c.health.probing || c.dead():
		case time.Since(c.health.waitingSince) >= silenceLimit:
			c.health.probing = true
			go c.checkAlive()
		}
	}
}

// checkAlive probes a silent server. Silence alone proves nothing: a server may have no diagnostics to publish.
func (c *connection) checkAlive() {
	defer func() {
		c.health.mu.Lock()
		c.health.probing = false
		c.health.mu.Unlock()
	}()
	if c.liveness.busy() {
		return // long work that it has announced is not a failure
	}
	method, params := c.liveness.probe()
	ask := func(wait time.Duration) bool {
		if method == "" {
			return true // it supports no request that could be a probe, so nothing can be concluded
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		_ = c.peer.Call(ctx, method, params, nil)
		return ctx.Err() == nil || c.heardSince()
	}
	if ask(probeTimeout) || c.dead() {
		return
	}
	c.health.mu.Lock()
	c.health.frozen = true
	c.health.mu.Unlock()
	c.notice(c.id, fmt.Sprintf("%s has not answered for %v. Edits no longer wait for it; Pillion restarts it if it stays silent.", c.id, silenceLimit+probeTimeout))
	if !ask(frozenLimit) && !c.dead() {
		c.log.Warn("frozen server is ended", "server", c.id)
		c.kill()
	}
}

// isFrozen reports whether the server has failed its probe and has sent nothing since.
func (c *connection) isFrozen() bool {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.frozen
}

// heardSince reports whether a message has arrived since the last wait began.
func (c *connection) heardSince() bool {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.waitingSince.IsZero()
}
