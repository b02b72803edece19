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

// Client is a running worker, as the process sees it that started it. Its methods are safe for concurrent use.
type Client struct {
	peer  *rpc.Peer
	cmd   *exec.Cmd
	host  Host
	said  *tail // the worker's standard error
	ended chan struct{}

	mu    sync.Mutex
	calls map[int64]*tools.Call // guarded by mu: those that run
	last  int64                 // guarded by mu
}

// startLimit is how long a worker has to mount its view and answer.
const startLimit = 30 * time.Second

// closeLimit is how long it has to end its commands.
const closeLimit = 5 * time.Second

// Start starts a worker. The error says what the helper said where the view could not be entered.
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
	errs, errOut, err := os.Pipe()
	if err != nil {
		for _, f := range []*os.File{in, toWorker, fromWorker, out} {
			f.Close()
		}
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errOut
	c := &Client{cmd: cmd, host: host, said: &tail{}, ended: make(chan struct{}), calls: map[int64]*tools.Call{}}
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
	s.Servers, s.MoreEnv = host.Bridge != nil, host.Environ != nil
	within, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := c.peer.Call(within, methodSetup, s, nil); err != nil {
		c.kill()
		if said := strings.TrimSpace(c.said.String()); said != "" {
			return nil, errors.New(said)
		}
		return nil, fmt.Errorf("the draft's worker did not start: %w", err)
	}
	return c, nil
}

// Call runs a tool in the draft. The input has been checked against the tool's schema. A cancelled call is told, and waited
// for: what it did until then is in its result.
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

// Alive reports whether the worker still serves.
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

// kill ends the process. In a namespace of processes all that is in it ends too; elsewhere close has ended the commands, and
// the guard knows the rest by its marks.
func (c *Client) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	_ = c.peer.Close()
}

// call is the running call that a message of the worker is about.
func (c *Client) call(key int64) (*tools.Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[key]; call != nil {
		return call, nil
	}
	return nil, errors.New("that call has ended")
}

// handle answers the worker.
func (c *Client) handle(ctx context.Context, r *rpc.Request) (any, error) {
	switch r.Method {
	case methodUpdate: // in order
		var p updateParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
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
		if call.Host.Gate == nil {
			return askAnswer{Error: toWire(&permission.RejectedError{Message: "no user is connected", Unanswered: true})}, nil
		}
		reply, err := call.Host.Gate.Ask(ctx, q)
		return askAnswer{reply, toWire(err)}, nil
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
		if c.host.Texts != nil {
			ctx = lspbridge.WithTexts(ctx, c.host.Texts())
		}
		return answer(ctx, c.host.Queries, q), nil
	}
	return nil, rpc.MethodNotFound(r.Method)
}

// servers asks the language servers.
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

// tail keeps the last bytes of what a worker says of itself: a mount that failed, a panic.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

const maxTail = 8 << 10 // bytes

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
