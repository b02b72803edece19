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

// maxMessage is what one message of a server may weigh, in bytes: symbols of a big project run to tens of megabytes.
const maxMessage = 64 << 20

// errGone: the connection to the server has ended.
var errGone = errors.New("the language server stopped")

// connection is one run of a server as somebody to talk to: the wire, the process behind it, and whether it still answers.
type connection struct {
	id      string // of the server in the table
	log     *slog.Logger
	notice  func(server, text string) // something a person should know, once
	patient patient
	peer    *rpc.Peer
	proc    *process      // nil for a server over pipes
	gone    chan struct{} // closed when the connection has ended
	changed broadcast     // woken by whatever may end a wait

	health health
}

// patient is what is asked about a server that has been silent for long.
type patient interface {
	// busy reports whether the server has said what it is doing.
	busy() bool
	// probe is a question that any server answers at once; method is "" when there is none.
	probe() (method string, params any)
}

// connect starts talking over a server's output and input. It takes both over.
func (c *connection) connect(r io.ReadCloser, w io.WriteCloser, handle rpc.Handler) {
	out := rpc.NewOutbox(w, rpc.OutboxOptions{}) // never blocks its writers, so a server that stopped reading stops nobody
	stream := rpc.NewHeaderStream(r, out, rpc.StreamOptions{MaxMessage: maxMessage, OnBad: c.noise, Trace: c.traced})
	c.peer = rpc.NewPeer(stream, rpc.PeerOptions{Handler: handle, Codec: rpc.LSP, Cancel: rpc.CancelLSP,
		Log: func(err error) { c.log.Warn("server message", "server", c.id, "err", err) }})
	go func() {
		<-c.peer.Done()
		close(c.gone)
		c.changed.wake()
	}()
}

// traced sees every frame.
func (c *connection) traced(direction byte, _ []byte) {
	if direction == '<' {
		c.health.hear()
	}
}

// await waits until cond is true. cond takes the locks it needs; whoever changes what it looks at wakes c.changed after.
func (c *connection) await(ctx context.Context, cond func() bool) error {
	for {
		if c.dead() { // what it said last is no answer any more
			return errGone
		}
		next := c.changed.next() // before the look: what changes during it is not missed
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

// call asks the server. result is decoded with encoding/json, which forgives more than the protocol library.
func (c *connection) call(ctx context.Context, method string, params, result any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil {
		p = nil
	}
	var raw json.RawMessage
	var send any
	if p != nil {
		send = json.RawMessage(p)
	}
	traced, end := span(ctx, "language server "+method, attribute.String("rpc.system.name", "jsonrpc"), attribute.String("rpc.method", method), attribute.String("pillion.server", c.id))
	wait, done := c.patience(traced)
	err = c.peer.Call(wait, method, send, &raw)
	end(err)
	done(err)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, jsonrpc2.ErrClientClosing) {
			select { // the connection is ending; whoever asks next must see that it has
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

// notify queues a notification; it never waits for the server.
func (c *connection) notify(method string, params any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.peer.Notify(context.Background(), method, json.RawMessage(p))
}

// Times a server gets to go by itself.
const (
	shutdownWait = time.Second
	exitWait     = 500 * time.Millisecond
)

// stop ends the server: shutdown, exit, closed pipe, then the whole group is killed.
func (c *connection) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownWait)
	defer cancel()
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

// Silence. A server that was asked something and says nothing at all is probed; one that fails the probe is frozen:
// nobody waits for it any more, the person is told once, and in the end it is started anew.
const (
	silentFor  = 10 * time.Second       // asked and silent so long: it is probed
	probeFor   = 5 * time.Second        // what the probe waits for any word
	frozenFor  = 3 * time.Minute        // frozen so long: it is ended and started again
	frozenWait = 100 * time.Millisecond // what an edit waits for a frozen server
	bannerFor  = 5 * time.Second        // from the first line that is no message to the first that is one
)

// health is what a client knows of whether its server is alive.
type health struct {
	mu      sync.Mutex // guards what follows
	banner  string     // the first output that was no message
	heard   bool       // a message has come
	waiting time.Time  // since when somebody waits in vain; zero: nobody, or it spoke meanwhile
	probing bool
	frozen  bool
}

// hear notes a sign of life.
func (h *health) hear() {
	h.mu.Lock()
	h.heard, h.frozen, h.waiting = true, false, time.Time{}
	h.mu.Unlock()
}

// garbage is what the server prints instead of messages; "" when it has ever sent one.
func (c *connection) garbage() string {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	if c.health.heard {
		return ""
	}
	return c.health.banner
}

// noise takes output that is no message. A server that prints and prints and never speaks is given up.
func (c *connection) noise(err error) {
	c.log.Warn("bad message", "server", c.id, "err", err)
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	if c.health.heard || c.health.banner != "" {
		return
	}
	_, text, ok := strings.Cut(err.Error(), rpc.NotLSP)
	if !ok {
		text = err.Error()
	}
	c.health.banner = text
	time.AfterFunc(bannerFor, func() {
		if c.garbage() != "" && !c.dead() {
			c.end()
		}
	})
}

// end ends a run that has gone wrong; the slot sees to what comes after.
func (c *connection) end() {
	if c.proc != nil {
		c.proc.kill()
	}
	_ = c.peer.Close()
}

// patience is the context of a wait for the server: that of its asker, shorter while the server is frozen. done says
// how the wait ended.
func (c *connection) patience(ctx context.Context) (wait context.Context, done func(error)) {
	c.health.mu.Lock()
	frozen := c.health.frozen
	first := c.health.waiting.IsZero()
	if first {
		c.health.waiting = time.Now()
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
			if first { // there was nothing to wait for
				c.health.waiting = time.Time{}
			}
		case c.health.waiting.IsZero() || c.health.probing || c.dead():
		case time.Since(c.health.waiting) >= silentFor:
			c.health.probing = true
			go c.checkAlive()
		}
	}
}

// checkAlive asks what any server can answer, so that one that merely has nothing to say is not taken for dead.
func (c *connection) checkAlive() {
	defer func() {
		c.health.mu.Lock()
		c.health.probing = false
		c.health.mu.Unlock()
	}()
	if c.patient.busy() {
		return // it has said what it is doing
	}
	method, params := c.patient.probe()
	ask := func(wait time.Duration) bool {
		if method == "" {
			return true // nothing it has promised to answer
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		_ = c.peer.Call(ctx, method, params, nil)
		return ctx.Err() == nil || c.spoke()
	}
	if ask(probeFor) || c.dead() {
		return
	}
	c.health.mu.Lock()
	c.health.frozen = true
	c.health.mu.Unlock()
	c.notice(c.id, fmt.Sprintf("%s has not answered for %v. Changes go on without waiting for it; it is started again if it stays silent.", c.id, silentFor+probeFor))
	if !ask(frozenFor) && !c.dead() {
		c.log.Warn("frozen server is ended", "server", c.id)
		c.end()
	}
}

func (c *connection) isFrozen() bool {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.frozen
}

// spoke reports a sign of life since somebody began to wait.
func (c *connection) spoke() bool {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.waiting.IsZero()
}
