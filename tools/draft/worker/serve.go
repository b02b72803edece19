package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/shell/programs"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/skill"
)

// Tools are the ids of the tools that run in a draft: all that read, change or run what is in the project. The others
// (questions, tasks, the web) have nothing to do with where files are. A tool that touches files and is missing here would write the
// project itself behind the draft.
var Tools = []string{
	"read", "write", "edit", "multiedit", "apply_patch", "list", "glob", "grep", "bash", "bash_output", "bash_input", "bash_kill", "lsp",
	"symbol_find", "symbol_read", "symbol_replace", "symbol_insert_before", "symbol_insert_after", "symbol_references", "symbol_rename", "symbol_delete",
}

// Main serves until the host closes the connection, which also happens when the host dies. It returns the exit code. Its streams are
// the connection, so standard input is empty and standard output goes to standard error for everything else in the process.
func Main() int {
	in, out := os.Stdin, os.Stdout
	// A tool that reads standard input would otherwise take bytes of the protocol.
	null, err := os.Open(os.DevNull)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pillion:", err)
		return 1
	}
	os.Stdin, os.Stdout = null, os.Stderr // a library that prints must not end in the protocol
	s := &server{ready: make(chan struct{}), calls: map[int64]context.CancelFunc{}}
	s.peer = rpc.NewPeer(rpc.NewLineStream(in, out, rpc.StreamOptions{MaxMessage: maxMessage}), rpc.PeerOptions{Handler: s.handle, Log: func(err error) {
		fmt.Fprintln(os.Stderr, "pillion:", err)
	}})
	close(s.ready)
	<-s.peer.Done()
	// Commands in the background would outlive the worker where there is no namespace of processes.
	s.env.Shell.Close()
	return 0
}

// server is the worker's side. env and tools are set by setup, the first message, before any other is handled.
type server struct {
	ready chan struct{} // closed when peer is set: it reads messages before NewPeer has returned
	peer  *rpc.Peer
	env   builtin.Env
	tools []tools.Tool
	// bash is the tool of that name where its sandbox is to be found first; nil: it is in tools as it is.
	bash func() tools.Tool

	mu    sync.Mutex
	calls map[int64]context.CancelFunc // guarded by mu: how to cancel each
}

// handle answers the host. Calls run beside each other; setup and cancel are handled in the order in which they arrive.
func (s *server) handle(ctx context.Context, r *rpc.Request) (any, error) {
	<-s.ready
	switch r.Method {
	case methodSetup:
		var set Settings
		if err := json.Unmarshal(r.Params, &set); err != nil {
			return nil, err
		}
		return nil, s.setup(set)
	case methodCancel:
		var key int64
		if err := json.Unmarshal(r.Params, &key); err != nil {
			return nil, err
		}
		s.mu.Lock()
		cancel := s.calls[key]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
		return nil, nil
	case methodCall:
		var p callParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		// The list has been cut to Tools: the host cannot be brought to run a tool that belongs outside.
		i := slices.IndexFunc(s.tools, func(t tools.Tool) bool { return t.ID == p.Tool })
		if i < 0 {
			return nil, rpc.InvalidParams("no tool %q runs in a draft", p.Tool)
		}
		ctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.calls[p.Key] = cancel // before the next message, which may cancel it
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.calls, p.Key)
			s.mu.Unlock()
			cancel()
		}()
		// From here on other messages are read: a cancellation, and the answers that this call waits for.
		r.Async()
		call := &tools.Call{SessionID: p.SessionID, MessageID: p.MessageID, CallID: p.CallID, Agent: p.Agent, Tool: p.Tool, Host: tools.Host{Gate: gate{s, p.Key}},
			OnMetadata: func(u tools.Update) {
				if u.Title == "" && len(u.Metadata) == 0 && u.Locations == nil {
					return // news of a change set: in a draft it is none of the project's
				}
				_ = s.peer.Notify(context.WithoutCancel(ctx), methodUpdate, updateParams{p.Key, u})
			}}
		tool := s.tools[i]
		if tool.ID == "bash" && s.bash != nil {
			tool = s.bash()
		}
		result, err := tool.Run(context.WithValue(ctx, keyOf{}, p.Key), p.Input, call)
		return callAnswer{result, toWire(err)}, nil
	// What the tools have read goes back, so that the next worker, or the tools in the project, need not read it again.
	case methodClose:
		r.Async()
		s.env.Shell.Close()
		return s.env.Tracker.States(), nil
	}
	return nil, rpc.MethodNotFound(r.Method)
}

// keyOf is the context key under which a call's number reaches what has only its context: the environment of a command.
type keyOf struct{}

// setup makes the tools from the host's settings. It is accepted once, so that calls which run keep the tools they began with.
func (s *server) setup(set Settings) error {
	if s.tools != nil {
		return errors.New("the worker has its tools already")
	}
	if err := os.Chdir(set.Cwd); err != nil {
		return err
	}
	known, err := programs.NewSet(set.Programs)
	if err != nil { // those that are right count, as outside
		fmt.Fprintln(os.Stderr, "pillion:", err)
	}
	// No Applier and no Buffers: no editor shows a draft's files, so they are read from and written to the disk of the view.
	env := builtin.Env{
		Cwd: set.Cwd, Root: set.Root, Own: set.Own, StateDir: set.StateDir, Home: set.Home, Tracker: &files.Tracker{}, Locks: &files.Locks{},
		Search: search.New(search.Options{Ripgrep: set.Ripgrep}), Skills: skill.New(set.Skills),
		Shell: builtin.BashOptions{Shell: set.Shell, Runner: &run.Runner{}, Background: &run.Background{}, Programs: known, Sandbox: builtin.SandboxSettings{
			Mode: set.Sandbox.Mode, Network: set.Sandbox.Network, AutoAllow: set.Sandbox.AutoAllow, Auto: func() bool { return set.Sandbox.ByEffects }, Writable: set.Sandbox.Writable, Processes: set.Sandbox.Processes,
		}},
	}
	// Edits require that a file was read before; without these states a new worker would refuse edits of files the model has seen.
	for path, state := range set.Read {
		env.Tracker.Note(path, state)
	}
	if set.Format != nil {
		env.Format = builtin.NewFormatter(*set.Format)
	}
	if set.Servers {
		env.Bridge = servers{s}
	}
	if set.MoreEnv {
		env.Shell.More = func(ctx context.Context, dir string, _ *tools.Call) map[string]string {
			key, _ := ctx.Value(keyOf{}).(int64)
			var more map[string]string
			if s.peer.Call(ctx, methodEnviron, environParams{key, dir}, &more) != nil {
				return nil
			}
			return more
		}
	}
	s.env = env
	if set.Sandbox.Draft {
		s.bash = sync.OnceValue(func() tools.Tool {
			if held := env; sandbox.Probe().Usable() {
				held.Shell.Sandbox = builtin.DraftSandbox(held.Shell.Sandbox)
				return builtin.Bash(held)
			}
			return builtin.Bash(env)
		})
	}
	for _, t := range builtin.All(env) {
		if slices.Contains(Tools, t.ID) {
			s.tools = append(s.tools, t)
		}
	}
	return nil
}

// gate asks the host; it is the tools.Gate of every call in the worker. It holds no rules and no grants: a process beside which commands
// run must not decide.
type gate struct {
	s   *server
	key int64
}

// params leaves the change set out; see askParams.
func (g gate) params(r permission.Request) askParams {
	p := askParams{Key: g.key, Request: r, AskIf: r.AskIf}
	p.Request.Change = nil
	return p
}

// Ask implements tools.Gate. It waits as long as the person takes; a broken connection is an error, so nothing is allowed by it.
func (g gate) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	var a askAnswer
	if err := g.s.peer.Call(ctx, methodAsk, g.params(r), &a); err != nil {
		return permission.Reply{}, err
	}
	return a.Reply, a.Error.err()
}

// Would implements tools.Foreteller. A host that does not answer allows nothing.
func (g gate) Would(ctx context.Context, r permission.Request) permission.Action {
	action := permission.Ask
	if err := g.s.peer.Call(ctx, methodWould, g.params(r), &action); err != nil {
		return permission.Ask
	}
	return action
}

// servers is the host's language servers. They see the draft as texts laid over the project's: a server of its own for each draft would
// index the whole project again.
type servers struct{ s *server }

// ask sends a question with the time that is left for it. Where no answer comes the verdict is Pending, never "no problems".
func (b servers) ask(ctx context.Context, p serversParams) serversAnswer {
	if at, ok := ctx.Deadline(); ok {
		p.Wait = max(time.Until(at).Milliseconds(), 1)
	}
	var a serversAnswer
	if err := b.s.peer.Call(ctx, methodServers, p, &a); err != nil {
		why := change.Verdict{Certainty: change.Pending, Reason: "the language servers did not answer in time"}
		a = serversAnswer{Delta: lspbridge.Delta{Verdict: why}, Report: lspbridge.FileReport{Path: p.Path, Certainty: why.Certainty, Reason: why.Reason}}
	}
	return a
}

// question asks what is beyond builtin.Bridge. Unlike ask it returns the error: these answers have no certainty to say it with.
func (b servers) question(ctx context.Context, q question) (a questionAnswer, err error) {
	if at, ok := ctx.Deadline(); ok {
		q.Wait = max(time.Until(at).Milliseconds(), 1)
	}
	err = b.s.peer.Call(ctx, methodQuestion, q, &a)
	return a, err
}

// Check implements builtin.Bridge.
func (b servers) Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	return b.ask(ctx, serversParams{Op: "check", Files: files}).Delta
}

// Changed implements builtin.Bridge.
func (b servers) Changed(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	return b.ask(ctx, serversParams{Op: "changed", Files: files}).Delta
}

// Diagnostics implements builtin.Bridge.
func (b servers) Diagnostics(ctx context.Context, path string) lspbridge.FileReport {
	a := b.ask(ctx, serversParams{Op: "diagnostics", Path: path})
	if a.Sent != nil {
		a.Report.Items = withRaw(a.Sent)
	}
	return a.Report
}

// Warm implements builtin.Bridge.
func (b servers) Warm(path string) {
	b.ask(context.Background(), serversParams{Op: "warm", Path: path})
}
