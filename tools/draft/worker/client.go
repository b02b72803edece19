package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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

// Client is the host's side of a running worker. Its methods are safe for concurrent use. Whoever starts a worker must Close it: it
// does not end by itself while its standard input is open.
type Client struct {
	peer *rpc.Peer
	cmd  *exec.Cmd
	host Host
	// settings are those that the worker was started with.
	settings Settings
	said     *tail // the end of the worker's standard error
	// ended is closed when the process has ended and its exit status has been read.
	ended chan struct{}
	// launches announces programs to the worker, see Start; nil where Start needs no worker.
	launches *net.UnixConn

	// A call is in calls from before it is sent until it is answered, so the messages of the worker about a running call find it.
	mu    sync.Mutex
	calls map[int64]*tools.Call // guarded by mu; by key
	last  int64                 // guarded by mu; the key of the latest call
}

// startLimit is how long a worker may take to mount its view and answer setup. It is generous, as a view that cannot be mounted fails at
// once; only a busy machine needs more than a moment.
const startLimit = 30 * time.Second

// closeLimit is how long a worker may take to end its commands. After that it is killed, and the next worker does not learn which files
// the session has read.
const closeLimit = 5 * time.Second

// Start starts a worker and sends it its settings. cmd comes from draft.Draft.Command; Start sets its streams. ctx bounds the start only.
// If the view could not be entered, the error is what the helper wrote to its standard error.
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
	// Standard error has a pipe of its own: it explains why a mount failed, when there is no connection yet.
	errs, errOut, err := os.Pipe()
	if err != nil {
		for _, f := range []*os.File{in, toWorker, fromWorker, out} {
			f.Close()
		}
		return nil, err
	}
	// Files, not writers: for a writer exec starts a goroutine, and Wait would wait until every process that inherited the stream ends.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errOut
	c := &Client{cmd: cmd, host: host, settings: s, said: &tail{}, ended: make(chan struct{}), calls: map[int64]*tools.Call{}}
	var theirs *os.File
	if c.launches, theirs, err = launchSocket(); theirs != nil {
		cmd.ExtraFiles, s.Launches = []*os.File{theirs}, true
		defer theirs.Close()
	}
	if err == nil {
		err = guard.Start(cmd)
	}
	// The child has its own copies. A write end left open in this process would keep the reader from noticing that the worker has died.
	for _, f := range []*os.File{in, out, errOut} {
		f.Close()
	}
	if err != nil {
		for _, f := range []*os.File{toWorker, fromWorker, errs} {
			f.Close()
		}
		c.closeLaunches()
		return nil, fmt.Errorf("the draft's worker could not be started: %w", err)
	}
	go func() { _, _ = io.Copy(c.said, errs); errs.Close() }() // ends when the worker and all that inherited its standard error have ended
	go func() { _ = cmd.Wait(); close(c.ended) }()
	c.peer = rpc.NewPeer(rpc.NewLineStream(fromWorker, toWorker, rpc.StreamOptions{MaxMessage: maxMessage}), rpc.PeerOptions{Handler: c.handle})
	// Tell the worker what the host offers, because a request that the host cannot answer would cost each call a round trip.
	s.Servers, s.MoreEnv = host.Bridge != nil, host.Environ != nil
	// An answer also proves that the view is mounted, since the helper executes the worker only after mounting.
	within, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := c.peer.Call(within, methodSetup, s, nil); err != nil {
		c.kill()
		// The helper's message says more than "connection closed".
		if said := strings.TrimSpace(c.said.String()); said != "" {
			return nil, errors.New(said)
		}
		return nil, fmt.Errorf("the draft's worker did not start: %w", err)
	}
	return c, nil
}

// Call runs a tool in the draft. The caller has validated the input against the tool's schema. When ctx is cancelled, Call tells the
// worker and still waits for the answer, which has what the tool did until then. If the worker dies, the error is a tools.Error of kind
// "draft" that tells the model to call again, as the next call starts another worker.
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
	// The request itself is not cancelled, or its answer would be dropped, and with it what the tool has done already.
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
		return tools.Result{}, &tools.Error{Kind: "draft", Message: "the draft's worker ended during this call; call again: " + err.Error(), Err: err}
	}
	return a.Result, a.Error.err()
}

// Alive reports whether the worker still serves. The caller replaces a dead one at the next call.
func (c *Client) Alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return c.peer.Err() == nil
	}
}

// Close ends the worker and all that it started, including commands in the background. It returns the states of the files that the
// session has read, for Settings.Read of the next worker; nil if the worker did not answer within closeLimit.
func (c *Client) Close() (read map[string]string) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = c.peer.Call(ctx, methodClose, nil, &read)
	c.kill()
	return read
}

// kill ends the process and waits for it. The worker is the first process of its PID namespace, so all others in it end too. Without such
// a namespace methodClose has ended the commands, and package guard finds the rest by its marks.
func (c *Client) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	_ = c.peer.Close()
	c.closeLaunches()
}

// closeLaunches closes the socket of launches, which ends the worker's loop serveLaunches.
func (c *Client) closeLaunches() {
	if c.launches != nil {
		_ = c.launches.Close()
	}
}

// call finds the running call that a message of the worker is about. It fails for a call that has ended: a process in the background
// must not get approvals in the name of that call.
func (c *Client) call(key int64) (*tools.Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[key]; call != nil {
		return call, nil
	}
	return nil, errors.New("that call has ended")
}

// handle answers the worker's requests. The model's commands run beside the worker, so a message is not trusted: its key finds the call,
// and gate, session and tool are those of the call. A case that may wait for a person or a server calls Async first; otherwise no other
// message of the worker would be read meanwhile.
func (c *Client) handle(ctx context.Context, r *rpc.Request) (any, error) {
	switch r.Method {
	case methodUpdate: // without Async, so that updates arrive in order
		var p updateParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		// A late update of a call that has ended is dropped.
		if call, err := c.call(p.Key); err == nil {
			call.Report(p.Update)
		}
		return nil, nil
	case methodRules:
		var p askParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		call, err := c.call(p.Key)
		if err != nil {
			return nil, err
		}
		if g, ok := call.Host.Gate.(tools.RuleReader); ok {
			return g.Rulesets(), nil
		}
		return []permission.Ruleset{}, nil
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
		// Identity comes from the call, whatever the message claims: with another session's id it could use that session's grants.
		q := p.request()
		q.ID, q.SessionID, q.CallID, q.Tool = "", call.SessionID, call.CallID, call.Tool
		if r.Method == methodWould {
			if g, ok := call.Host.Gate.(tools.Foreteller); ok {
				return g.Would(ctx, q), nil
			}
			return permission.Ask, nil
		}
		// Without a gate there is no user to ask. Unanswered tells the turn that the rejection is not a person's decision.
		if call.Host.Gate == nil {
			return askAnswer{Error: toWire(&permission.RejectedError{Message: "no user is connected", Unanswered: true})}, nil
		}
		reply, err := call.Host.Gate.Ask(ctx, q)
		return askAnswer{reply, toWire(err)}, nil
	// Plugins run in the host, so the worker asks for their environment before each command.
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
	// The worker has no language servers of its own; see servers in serve.go.
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
		// Texts is called for each question, as the draft changes between questions.
		if c.host.Texts != nil {
			ctx = lspbridge.WithTexts(ctx, c.host.Texts())
		}
		return c.question(ctx, q), nil
	}
	return nil, rpc.MethodNotFound(r.Method)
}

// question asks one of the host's servers after the other, until one answers, for at most q.Wait milliseconds together.
func (c *Client) question(ctx context.Context, q question) (a questionAnswer) {
	end := time.Now().Add(time.Duration(q.Wait) * time.Millisecond)
	list := c.host.Queries()
	for i, h := range list {
		within, cancel := ctx, context.CancelFunc(func() {})
		if q.Wait > 0 {
			// One that starts for this question must leave time for the next one.
			share := time.Until(end)
			if i < len(list)-1 {
				share = share * 2 / 3
			}
			within, cancel = context.WithTimeout(ctx, share)
		}
		a = answer(within, h, q)
		cancel()
		if a.Error == nil {
			break
		}
	}
	return a
}

// servers asks the language servers, for at most p.Wait milliseconds; after that the worker no longer waits for the answer.
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

// tail keeps the last maxTail bytes of a worker's standard error: a failed mount, a panic. If the connection breaks, nothing else
// explains why.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

// maxTail is in bytes: enough for a Go panic with the stacks of several goroutines.
const maxTail = 8 << 10

// Write implements io.Writer. It never fails: if io.Copy stopped reading, the worker would block when it writes to standard error.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - maxTail; over > 0 {
		t.b = bytes.Clone(t.b[over:])
	}
	return len(p), nil
}

// String is the kept text. It may begin in the middle of a line or of a character.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
