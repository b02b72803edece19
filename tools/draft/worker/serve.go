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
	"github.com/pillion-dev/pillion/tools/skill"
)

// Tools are the ids of the tools that run in a draft: all that read, change or run what is in the project. The others
// (questions, tasks, the web) have nothing to do with where files are.
var Tools = []string{
	"read", "write", "edit", "multiedit", "apply_patch", "list", "glob", "grep", "bash", "bash_output", "bash_input", "bash_kill", "lsp",
	"symbol_find", "symbol_read", "symbol_replace", "symbol_insert_before", "symbol_insert_after", "symbol_references", "symbol_rename", "symbol_delete",
}

// Main serves until the host closes the connection. It returns the exit code.
func Main() int {
	in, out := os.Stdin, os.Stdout
	null, err := os.Open(os.DevNull)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pillion:", err)
		return 1
	}
	os.Stdin, os.Stdout = null, os.Stderr // a library that prints must not end in the protocol
	s := &server{calls: map[int64]context.CancelFunc{}}
	s.peer = rpc.NewPeer(rpc.NewLineStream(in, out, rpc.StreamOptions{MaxMessage: maxMessage}), rpc.PeerOptions{Handler: s.handle, Log: func(err error) {
		fmt.Fprintln(os.Stderr, "pillion:", err)
	}})
	<-s.peer.Done()
	s.env.Shell.Close()
	return 0
}

// server is the worker's side.
type server struct {
	peer  *rpc.Peer
	env   builtin.Env
	tools []tools.Tool

	mu    sync.Mutex
	calls map[int64]context.CancelFunc // guarded by mu: how to cancel each
}

// handle answers the host.
func (s *server) handle(ctx context.Context, r *rpc.Request) (any, error) {
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
		r.Async()
		call := &tools.Call{SessionID: p.SessionID, MessageID: p.MessageID, CallID: p.CallID, Agent: p.Agent, Tool: p.Tool, Host: tools.Host{Gate: gate{s, p.Key}},
			OnMetadata: func(u tools.Update) {
				if u.Title == "" && len(u.Metadata) == 0 && u.Locations == nil {
					return // news of a change set: in a draft it is none of the project's
				}
				_ = s.peer.Notify(context.WithoutCancel(ctx), methodUpdate, updateParams{p.Key, u})
			}}
		result, err := s.tools[i].Run(context.WithValue(ctx, keyOf{}, p.Key), p.Input, call)
		return callAnswer{result, toWire(err)}, nil
	case methodClose:
		r.Async()
		s.env.Shell.Close()
		return s.env.Tracker.States(), nil
	}
	return nil, rpc.MethodNotFound(r.Method)
}

// keyOf carries the call's key to what has only its context.
type keyOf struct{}

// setup makes the tools.
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
	env := builtin.Env{
		Cwd: set.Cwd, Root: set.Root, Own: set.Own, StateDir: set.StateDir, Home: set.Home, Tracker: &files.Tracker{}, Locks: &files.Locks{},
		Search: search.New(search.Options{Ripgrep: set.Ripgrep}), Skills: skill.New(set.Skills),
		Shell: builtin.BashOptions{Shell: set.Shell, Runner: &run.Runner{}, Background: &run.Background{}, Programs: known, Sandbox: builtin.SandboxSettings{
			Mode: set.Sandbox.Mode, Network: set.Sandbox.Network, AutoAllow: set.Sandbox.AutoAllow, Auto: func() bool { return set.Sandbox.ByEffects }, Writable: set.Sandbox.Writable, Processes: set.Sandbox.Processes,
		}},
	}
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
	for _, t := range builtin.All(env) {
		if slices.Contains(Tools, t.ID) {
			s.tools = append(s.tools, t)
		}
	}
	return nil
}

// gate asks the host.
type gate struct {
	s   *server
	key int64
}

func (g gate) params(r permission.Request) askParams {
	p := askParams{Key: g.key, Request: r, AskIf: r.AskIf}
	p.Request.Change = nil
	return p
}

// Ask implements tools.Gate.
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

// servers is the host's language servers. They see the draft as texts laid over the project's.
type servers struct{ s *server }

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

// question asks what is beyond builtin.Bridge.
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
