package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// terminal is a command that the agent asked its client to run: a call of Pillion's tool bash, with its rules and its sandbox.
type terminal struct {
	kill context.CancelCauseFunc // with an agent.Stopped: the agent has killed it
	done chan struct{}           // closed when the call has ended and exit is set

	mu    sync.Mutex
	out   string                       // guarded by mu; the output so far, at most what the tool bash shows of a running command
	limit int                          // bytes of output that the agent wants; 0: all
	exit  *protocol.TerminalExitStatus // guarded by mu; nil while it runs
}

// commandLimit is the timeout of a command in milliseconds: one day, because the agent kills a command that takes it too long.
const commandLimit = 24 * 60 * 60 * 1000

// refusedExit is the exit code of a command that was not run; POSIX shells use it for a command that was found but cannot be executed.
const refusedExit = 126

// createTerminal answers terminal/create at once; the command runs after that, and only if it is allowed.
func (t *turn) createTerminal(_ context.Context, params json.RawMessage) (any, error) {
	var p protocol.CreateTerminalRequest
	if err := protocol.Decode(params, &p); err != nil {
		return nil, rpc.InvalidParams("%s", err)
	}
	line := p.Command
	if len(p.Args) > 0 {
		line = commandLine(append([]string{p.Command}, p.Args...))
	}
	// As part of the line, the analysis and the person see these variables too.
	for i := len(p.Env) - 1; i >= 0; i-- {
		line = "export " + p.Env[i].Name + "=" + quote(p.Env[i].Value) + "; " + line
	}
	input := map[string]any{"command": line, "timeout": commandLimit}
	if p.Cwd != "" {
		input["workdir"] = p.Cwd
	}
	// The command may outlive this request, but not the prompt.
	ctx, cancel := context.WithCancelCause(t.ctx)
	x := &terminal{kill: cancel, done: make(chan struct{})}
	if p.OutputByteLimit != nil {
		x.limit = int(max(*p.OutputByteLimit, 0))
	}
	t.link.mu.Lock()
	t.lastID++
	id := fmt.Sprintf("terminal_%d", t.lastID)
	t.terminals[id] = x
	t.link.mu.Unlock()
	t.calls.Add(1) // safe beside Wait: this request is counted too, so the counter is not 0
	go func() {
		defer t.calls.Done()
		defer close(x.done)
		defer cancel(nil)
		d, err := t.run(ctx, "", t.agents.o.Tools(t.info).Bash, input, x.heard)
		var by agent.Stopped
		x.end(d, err, errors.As(context.Cause(ctx), &by))
	}()
	return protocol.CreateTerminalResponse{TerminalID: id}, nil
}

// heard stores the output of the running command.
func (x *terminal) heard(u tools.Update) {
	if out, ok := u.Metadata["output"].(string); ok {
		x.mu.Lock()
		x.out = out
		x.mu.Unlock()
	}
}

// end records how the command ended. Where it was not run, the output says why, because the agent's model reads that. killed means that the
// agent has killed it.
func (x *terminal) end(d agent.ToolData, err error, killed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if body, _, ok := strings.Cut(d.Output, "\n\n<bash_metadata>"); ok {
		if x.out = body; body == "(no output)" {
			x.out = ""
		}
	}
	x.exit = &protocol.TerminalExitStatus{}
	code := int64(-1)
	switch v := d.Metadata["exit"].(type) {
	case int:
		code = int64(v)
	case float64: // from a draft's worker, through JSON
		code = int64(v)
	}
	if s, ok := d.Metadata["signal"].(string); ok {
		x.exit.Signal = s
	}
	if killed && code < 0 && x.exit.Signal == "" {
		x.exit.Signal = "SIGTERM"
	}
	if err != nil && code < 0 && !killed {
		code = refusedExit
		text := d.Error
		var no *permission.RejectedError
		if errors.As(err, &no) && no.Message != "" {
			if text = no.Message; !no.Unanswered {
				text = "The user rejected this command and says: " + text
			}
		}
		x.out = strings.TrimLeft(x.out+"\n"+text, "\n")
	}
	if code >= 0 {
		x.exit.ExitCode = &code
	}
}

// state returns the output so far, whether its beginning was cut off, and the exit status; nil while the command runs. OutputByteLimit of
// terminal/create asks for a cut at the beginning and at a character boundary.
func (x *terminal) state() (out string, truncated bool, exit *protocol.TerminalExitStatus) {
	x.mu.Lock()
	defer x.mu.Unlock()
	out = x.out
	if x.limit > 0 && len(out) > x.limit {
		out, truncated = out[len(out)-x.limit:], true
		for len(out) > 0 && !utf8.RuneStart(out[0]) {
			out = out[1:]
		}
	}
	return out, truncated, x.exit
}

// terminal returns the terminal that a request names.
func (t *turn) terminal(params json.RawMessage) (x *terminal, id string, err error) {
	var p protocol.TerminalOutputRequest // the requests of all terminal/* methods that name a terminal have these members
	if err := protocol.Decode(params, &p); err != nil {
		return nil, "", rpc.InvalidParams("%s", err)
	}
	t.link.mu.Lock()
	defer t.link.mu.Unlock()
	if x = t.terminals[p.TerminalID]; x == nil {
		return nil, "", protocol.NotFound("there is no terminal %s", p.TerminalID)
	}
	return x, p.TerminalID, nil
}

// stopped is the cause of a command's end that the agent has killed.
func (t *turn) stopped() error { return agent.Stopped(t.agent.Name + " stopped this command.") }

// terminalOutput answers terminal/output with the output so far.
func (t *turn) terminalOutput(_ context.Context, params json.RawMessage) (any, error) {
	x, _, err := t.terminal(params)
	if err != nil {
		return nil, err
	}
	out, truncated, exit := x.state()
	return protocol.TerminalOutputResponse{Output: out, Truncated: truncated, ExitStatus: exit}, nil
}

// waitForTerminal answers terminal/wait_for_exit when the command has ended.
func (t *turn) waitForTerminal(ctx context.Context, params json.RawMessage) (any, error) {
	x, _, err := t.terminal(params)
	if err != nil {
		return nil, err
	}
	select {
	case <-x.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	_, _, exit := x.state()
	return protocol.WaitForTerminalExitResponse{ExitCode: exit.ExitCode, Signal: exit.Signal}, nil
}

// killTerminal answers terminal/kill. The terminal stays, so that the agent can still read its output (ACP).
func (t *turn) killTerminal(_ context.Context, params json.RawMessage) (any, error) {
	x, _, err := t.terminal(params)
	if err != nil {
		return nil, err
	}
	x.kill(t.stopped())
	return protocol.KillTerminalResponse{}, nil
}

// releaseTerminal answers terminal/release: it kills the command and forgets the terminal.
func (t *turn) releaseTerminal(_ context.Context, params json.RawMessage) (any, error) {
	x, id, err := t.terminal(params)
	if err != nil {
		return nil, err
	}
	x.kill(t.stopped())
	t.link.mu.Lock()
	delete(t.terminals, id)
	t.link.mu.Unlock()
	return protocol.ReleaseTerminalResponse{}, nil
}
