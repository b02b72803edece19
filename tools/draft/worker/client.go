package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Client is a running worker, as the process sees it that started it. Its methods are safe for concurrent use. Whoever starts one
// must Close it: the worker does not end by itself while its input is open.
type Client struct {
	peer *rpc.Peer
	cmd  *exec.Cmd
	host Host
	said *tail // the worker's standard error
	// ended is closed when the process has been waited for.
	ended chan struct{}

	// calls has an entry from before a call is sent until it is answered; last is the key given last.
	mu    sync.Mutex
	calls map[int64]*tools.Call // guarded by mu: those that run
	last  int64                 // guarded by mu
}

// startLimit is how long a worker has to mount its view and answer setup. It is generous: a view that cannot be mounted
// fails at once, and only a busy machine needs more than a moment.
const startLimit = 30 * time.Second

// closeLimit is how long a worker has to end its commands; after that it is killed, and what its tools had read is lost.
const closeLimit = 5 * time.Second

// Start starts a worker and gives it its settings. cmd comes from draft.Draft.Command; its streams are set here. ctx bounds the start
// only. The error says what the helper said where the view could not be entered.
func Start(ctx context.Context, cmd *exec.Cmd, s Settings, host Host) (*Client, error) {
	in, toWorker, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromWorker, out, err := os.Pipe()
	if err != nil {
		in.Close()
		toWorker.Close()
		return nil, err
	}
	// Standard error has a pipe of its own: it tells why a mount failed, before there is a protocol.
	errs, errOut, err := os.Pipe()
	if err != nil {
		for _, f := range []*os.File{in, toWorker, fromWorker, out} {
			f.Close()
		}
		return nil, err
	}
	// Files, not writers: with those, exec starts goroutines of its own, and Wait would wait for every process that inherited a stream.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errOut
	c := &Client{cmd: cmd, host: host, said: &tail{}, ended: make(chan struct{}), calls: map[int64]*tools.Call{}}
	// The child has its own copies. An end left open in this process would hide from the reader that the worker has died.
	err = guard.Start(cmd)
	for _, f := range []*os.File{in, out, errOut} {
		f.Close()
	}
	if err != nil {
		for _, f := range []*os.File{toWorker, fromWorker, errs} {
			f.Close()
		}
		return nil, fmt.Errorf("the draft's worker could not be started: %w", err)
	}
	go func() { _, _ = io.Copy(c.said, errs); errs.Close() }() // ends with the worker and all that holds its standard error
	go func() { _ = cmd.Wait(); close(c.ended) }()
	c.peer = rpc.NewPeer(rpc.NewLineStream(fromWorker, toWorker, rpc.StreamOptions{MaxMessage: maxMessage}), rpc.PeerOptions{Handler: c.handle})
	// The worker must know what it can ask for: a question that the host cannot answer would cost a round trip in every call.
	s.Servers, s.MoreEnv = host.Bridge != nil, host.Environ != nil
	// The call also proves that the view is mounted: the helper becomes the worker only after that.
	within, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := c.peer.Call(within, methodSetup, s, nil); err != nil {
		c.kill()
		// The helper's own words say more than a connection that was closed.
		if said := strings.TrimSpace(c.said.String()); said != "" {
			return nil, errors.New(said)
		}
		return nil, fmt.Errorf("the draft's worker did not start: %w", err)
	}
	return c, nil
}

// Call runs a tool in the draft. The input has been checked against the tool's schema. A cancelled call is told, and waited
// for: what it did until then is in its result. When the worker dies meanwhile, the error is a tools.Error of kind "draft": the next
// call starts another worker, so the model is told to call again.
func (c *Client) Call(ctx context.Context, tool string, input json.RawMessage, call *tools.Call) (tools.Result, error) {
	c.mu.Lock()
	c.last++
	key := c.last
	c.calls[key] = call
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, key)
		c.mu.Unlock()
	}()
	// The request itself is not cancelled: its answer would be dropped, and with it what the tool has already done.
	stop := context.AfterFunc(ctx, func() {
		_ = c.peer.Notify(context.WithoutCancel(ctx), methodCancel, key)
	})
	defer stop()
	var a callAnswer
	p := callParams{Key: key, Tool: tool, Input: input, SessionID: call.SessionID, MessageID: call.MessageID, CallID: call.CallID, Agent: call.Agent}
	if err := c.peer.Call(context.WithoutCancel(ctx), methodCall, p, &a); err != nil {
		if ctx.Err() != nil {
			return tools.Result{}, ctx.Err()
		}
		if said := strings.TrimSpace(c.said.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return tools.Result{}, &tools.Error{Kind: "draft", Message: "the draft's worker ended in the middle of this call; call again: " + err.Error(), Err: err}
	}
	return a.Result, a.Error.err()
}

// Alive reports whether the worker still serves. A dead one is replaced at the next call.
func (c *Client) Alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return c.peer.Err() == nil
	}
}

// Close ends the worker with all that it started, commands in the background included. It returns the files that the
// worker's session knows, for Settings.Read of the next one; nil where the worker did not answer.
func (c *Client) Close() (read map[string]string) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = c.peer.Call(ctx, methodClose, nil, &read)
	c.kill()
	return read
}

// kill ends the process. In a namespace of processes all that is in it ends too, as the worker is its first process; elsewhere close
// has ended the commands, and the guard knows the rest by its marks.
func (c *Client) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	_ = c.peer.Close()
}

// call is the running call that a message of the worker is about. A key of a call that has ended is an error: its session's gate must
// not answer for something that goes on in the background.
func (c *Client) call(key int64) (*tools.Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[key]; call != nil {
		return call, nil
	}
	return nil, errors.New("that call has ended")
}

// handle answers the worker. Commands of the model run in the same view, so nothing in a message is trusted: a key finds the call,
// and the call says whose gate, session and tool it is. Whatever may wait for a person or a server calls Async first, or no other
// message of the worker would be read meanwhile.
func (c *Client) handle(ctx context.Context, r *rpc.Request) (any, error) {
	switch r.Method {
	case methodUpdate: // in order
		var p updateParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		// A late update of a call that has ended is dropped.
		if call, err := c.call(p.Key); err == nil {
			call.Report(p.Update)
		}
		return nil, nil
	case methodAsk, methodWould:
		var p askParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		call, err := c.call(p.Key)
		if err != nil {
			return nil, err
		}
		r.Async()
		// The request comes from a process in which commands ran. Whose it is, is not its to say.
		q := p.request()
		q.ID, q.SessionID, q.CallID, q.Tool = "", call.SessionID, call.CallID, call.Tool
		if r.Method == methodWould {
			if g, ok := call.Host.Gate.(tools.Foreteller); ok {
				return g.Would(ctx, q), nil
			}
			return permission.Ask, nil
		}
		// Without a gate nobody can allow it; Unanswered tells the loop that no person said no.
		if call.Host.Gate == nil {
			return askAnswer{Error: toWire(&permission.RejectedError{Message: "no user is connected", Unanswered: true})}, nil
		}
		reply, err := call.Host.Gate.Ask(ctx, q)
		return askAnswer{reply, toWire(err)}, nil
	// Plugins run outside, so the worker asks once for each command.
	case methodEnviron:
		var p environParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		call, err := c.call(p.Key)
		if err != nil || c.host.Environ == nil {
			return map[string]string{}, err
		}
		r.Async()
		return c.host.Environ(ctx, p.Dir, call), nil
	// The worker has no servers of its own; see servers in serve.go.
	case methodServers:
		var p serversParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		if c.host.Bridge == nil {
			return serversAnswer{}, nil
		}
		r.Async()
		return c.servers(ctx, p), nil
	}
	if r.Method == methodQuestion {
		var q question
		if err := json.Unmarshal(r.Params, &q); err != nil {
			return nil, err
		}
		if c.host.Queries == nil {
			return questionAnswer{Error: toWire(&tools.Error{Kind: "unavailable", Message: "there are no language servers here"})}, nil
		}
		r.Async()
		if q.Wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(q.Wait)*time.Millisecond)
			defer cancel()
		}
		// Read for each question: the draft changes between two of them.
		if c.host.Texts != nil {
			ctx = lspbridge.WithTexts(ctx, c.host.Texts())
		}
		return answer(ctx, c.host.Queries, q), nil
	}
	return nil, rpc.MethodNotFound(r.Method)
}

// servers asks the language servers, for at most the time that the worker's own context has left: it waits no longer than that.
func (c *Client) servers(ctx context.Context, p serversParams) serversAnswer {
	if p.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(p.Wait)*time.Millisecond)
		defer cancel()
	}
	b := c.host.Bridge
	switch p.Op {
	case "check":
		return serversAnswer{Delta: b.Check(ctx, p.Files)}
	case "changed":
		return serversAnswer{Delta: b.Changed(ctx, p.Files)}
	case "diagnostics":
		report := b.Diagnostics(ctx, p.Path)
		return serversAnswer{Report: report, Sent: withSent(report.Items)}
	case "warm":
		b.Warm(p.Path)
	}
	return serversAnswer{}
}

// tail keeps the last bytes of what a worker says of itself: a mount that failed, a panic. It is the only explanation when the
// connection breaks.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

// maxTail holds a Go panic with the stacks of several goroutines.
const maxTail = 8 << 10 // bytes

// Write implements io.Writer. It never fails: io.Copy must go on reading, or the worker would block on its standard error.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - maxTail; over > 0 {
		t.b = bytes.Clone(t.b[over:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
