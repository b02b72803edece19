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

// Tools are the ids of the tools that run in a draft: all that read, change or run files of the project. The others (questions, tasks,
// the web) run in the host. A tool that changes files must be in this list, or it would write to the project itself.
var Tools = []string{
	"read", "write", "edit", "multiedit", "apply_patch", "list", "glob", "grep", "bash", "bash_output", "bash_input", "bash_kill", "lsp",
	"symbol_find", "symbol_read", "symbol_replace", "symbol_insert_before", "symbol_insert_after", "symbol_references", "symbol_rename", "symbol_delete",
	builtin.ReadTextID, builtin.WriteTextID,
}

// Main serves until the host closes the connection, which also happens when the host dies, and returns the exit code. The connection uses
// standard input and output; for everything else in the process, standard input is empty and standard output goes to standard error.
func Main() int {
	withhold()
	in, out := os.Stdin, os.Stdout
	// A tool that reads standard input would otherwise take bytes of the protocol.
	null, err := os.Open(os.DevNull)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pillion:", err)
		return 1
	}
	os.Stdin, os.Stdout = null, os.Stderr // a library that prints must not corrupt the protocol
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

// server is the worker's side of the connection. setup, the first message, sets env, tools and bash before any other message is handled.
type server struct {
	ready chan struct{} // closed when peer is set; NewPeer may call handle before it has returned
	peer  *rpc.Peer
	env   builtin.Env
	tools []tools.Tool
	// bash returns the bash tool with Settings.Sandbox.Draft, where its first call probes for a sandbox; nil: the tool in tools is used.
	bash func() tools.Tool

	mu    sync.Mutex
	calls map[int64]context.CancelFunc // guarded by mu; by key
}

// handle answers the host's requests. Calls run concurrently; setup and cancel are handled in the order in which they arrive.
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
		// s.tools has only the tools of the list Tools; any other is an error of the host.
		i := slices.IndexFunc(s.tools, func(t tools.Tool) bool { return t.ID == p.Tool })
		if i < 0 {
			return nil, rpc.InvalidParams("no tool %q runs in a draft", p.Tool)
		}
		ctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.calls[p.Key] = cancel // before Async: the next message may cancel this call
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.calls, p.Key)
			s.mu.Unlock()
			cancel()
		}()
		// From here on other messages are read: cancellations, further calls, and the answers that this call waits for.
		r.Async()
		call := &tools.Call{SessionID: p.SessionID, MessageID: p.MessageID, CallID: p.CallID, Agent: p.Agent, Tool: p.Tool, Host: tools.Host{Gate: gate{s, p.Key}},
			OnMetadata: func(u tools.Update) {
				if u.Title == "" && len(u.Metadata) == 0 && u.Locations == nil {
					return // an update of a change set only, which is not sent: it is about the draft's files, not the project's
				}
				_ = s.peer.Notify(context.WithoutCancel(ctx), methodUpdate, updateParams{p.Key, u})
			}}
		tool := s.tools[i]
		if tool.ID == "bash" && s.bash != nil {
			tool = s.bash()
		}
		result, err := tool.Run(context.WithValue(ctx, keyOf{}, p.Key), p.Input, call)
		return callAnswer{result, toWire(err)}, nil
	// The answer has the files that the tools have read, for Settings.Read of the next worker.
	case methodClose:
		r.Async()
		s.env.Shell.Close()
		return s.env.Tracker.States(), nil
	}
	return nil, rpc.MethodNotFound(r.Method)
}

// keyOf is the context key for callParams.Key. Shell.More needs that key for its request, and gets only the context of the call.
type keyOf struct{}

// setup builds the tools from the host's settings. A second one is an error, as running calls read env and tools without a lock.
func (s *server) setup(set Settings) error {
	if s.tools != nil {
		return errors.New("the worker has its tools already")
	}
	if err := os.Chdir(set.Cwd); err != nil {
		return err
	}
	known, err := programs.NewSet(set.Programs)
	if err != nil { // the valid records are used, as in the host
		fmt.Fprintln(os.Stderr, "pillion:", err)
	}
	// No Applier and no Buffers: no editor shows a draft's files, so they are read from and written to the disk of the view.
	env := builtin.Env{
		Cwd: set.Cwd, Root: set.Root, Own: set.Own, StateDir: set.StateDir, Home: set.Home, Tracker: &files.Tracker{}, Locks: &files.Locks{},
		Search: search.New(search.Options{Ripgrep: set.Ripgrep}), Skills: skill.New(set.Skills),
		Shell: builtin.BashOptions{Shell: set.Shell, Runner: &run.Runner{}, Background: &run.Background{}, UntilTurn: true, Programs: known, Sandbox: builtin.SandboxSettings{
			Mode: set.Sandbox.Mode, Network: set.Sandbox.Network, AutoAllow: set.Sandbox.AutoAllow, Auto: func() bool { return set.Sandbox.ByEffects }, Writable: set.Sandbox.Writable, Processes: set.Sandbox.Processes,
		}},
	}
	// An edit requires that the file was read before; without these states a new worker would refuse edits of files that the model has read.
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
	for _, t := range append(builtin.All(env), builtin.ReadText(env), builtin.WriteText(env)) {
		if slices.Contains(Tools, t.ID) {
			s.tools = append(s.tools, t)
		}
	}
	if set.Launches {
		go s.serveLaunches() // ends with the host, whose end of the socket closes then
	}
	return nil
}

// gate is the tools.Gate of every call in the worker; it asks the host. It has no rules and no grants, because a process in the same
// view as the model's commands must not decide about them.
type gate struct {
	s   *server
	key int64
}

// params are r for the wire, without the change set; see askParams.
func (g gate) params(r permission.Request) askParams {
	p := askParams{Key: g.key, Request: r, AskIf: r.AskIf}
	p.Request.Change = nil
	return p
}

// Ask implements tools.Gate. It waits as long as the person takes. A broken connection is an error, which allows nothing.
func (g gate) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	var a askAnswer
	if err := g.s.peer.Call(ctx, methodAsk, g.params(r), &a); err != nil {
		return permission.Reply{}, err
	}
	return a.Reply, a.Error.err()
}

// Would implements tools.Foreteller. If the host does not answer, it is permission.Ask, so nothing runs without approval.
func (g gate) Would(ctx context.Context, r permission.Request) permission.Action {
	action := permission.Ask
	if err := g.s.peer.Call(ctx, methodWould, g.params(r), &action); err != nil {
		return permission.Ask
	}
	return action
}

// Rulesets implements tools.RuleReader. Without an answer from the host there are no rules, and Would is called for each file.
func (g gate) Rulesets() []permission.Ruleset {
	var sets []permission.Ruleset
	if g.s.peer.Call(context.Background(), methodRules, g.params(permission.Request{}), &sets) != nil {
		return nil
	}
	return sets
}

// servers gives the worker's tools the host's language servers; it implements builtin.Bridge and builtin.Queries. The servers see the
// draft as texts laid over the project's files: a server for each draft would have to index the whole project again.
type servers struct{ s *server }

// ask sends a request with the time that is left in ctx. Without an answer the verdict is Pending, never "no problems".
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

// question sends one query of builtin.Queries. Unlike ask it returns the error, as these answers have no certainty that could express it.
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

// Warm implements builtin.Bridge. It has no context, so it waits for the host's answer without a deadline.
func (b servers) Warm(path string) {
	b.ask(context.Background(), serversParams{Op: "warm", Path: path})
}
