package app

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/external"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/draft/worker"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// ExternalAgents offers the agents of other makers that the configuration names or that are installed. It implements models.External, and
// external.Place, which decides where each agent runs.
type ExternalAgents struct {
	app     *App
	running *external.Agents
	// Changed is called when the Menu of a session has changed; it must not block. It is set before the first session; nil: nobody shows it.
	Changed func(session string)
}

// newExternalAgents starts no process.
func newExternalAgents(a *App) *ExternalAgents {
	x := &ExternalAgents{app: a}
	x.running = external.New(external.Options{Place: x, Tools: x.tools, Lent: x.lent, Dir: filepath.Join(a.Place.State, "agents"), Version: a.Place.version, Log: a.O.Log, MenuChanged: x.menuChanged})
	return x
}

func (x *ExternalAgents) menuChanged(session string) {
	if x.Changed != nil {
		x.Changed(session)
	}
}

// of returns the agent that is a session's model.
func (x *ExternalAgents) of(s agent.SessionInfo) (external.Agent, bool) {
	id, ok := strings.CutPrefix(s.Model, external.ProviderID+"/")
	if !ok {
		return external.Agent{}, false
	}
	return x.find(s.Cwd, id)
}

// Menu returns what the agent that is a session's model lets a person choose, and its slash commands; nothing for other models.
func (x *ExternalAgents) Menu(s agent.SessionInfo) ([]protocol.SessionConfigOption, []protocol.AvailableCommand) {
	a, ok := x.of(s)
	if !ok {
		return nil, nil
	}
	return x.running.Menu(s.ID, a)
}

// Choose sets an option of the agent that is a session's model.
func (x *ExternalAgents) Choose(ctx context.Context, s agent.SessionInfo, option, value string) error {
	a, ok := x.of(s)
	if !ok {
		return fmt.Errorf("the session's model is no agent with options")
	}
	return x.running.Choose(ctx, s.ID, a, option, value)
}

// all returns the agents of a directory: those of the configuration, then installed ones.
func (x *ExternalAgents) all(cwd string) []external.Agent {
	return ExternalAgentsOf(x.app.ConfigOf(cwd), x.app.Place.Home)
}

// ExternalAgentsOf returns the agents that a configuration names, sorted by name, then the installed known agents that it does not name. A
// section of the configuration overrides single members of the known agent that its command starts, or else whose name it has. Disabled agents are left out, and those without a configured
// command whose program is not installed.
func ExternalAgentsOf(c *config.Config, home string) (out []external.Agent) {
	for _, id := range slices.Sorted(maps.Keys(c.Agents)) {
		set := c.Agents[id]
		if set.Disabled {
			continue
		}
		known, ok := external.Running(set.ACP)
		if !ok {
			known, _ = external.Find(id)
		}
		a := known.Agent
		a.ID, a.Reason = id, c.Reason("agents."+id)
		a.Folders = external.Folders(home, append(slices.Clone(known.Home), set.Folders...))
		if a.Command = set.ACP; len(a.Command) == 0 {
			a.Command = known.Installed()
		}
		if len(a.Command) == 0 {
			continue
		}
		if set.Name != "" {
			a.Name = set.Name
		}
		if a.Name == "" {
			a.Name = id
		}
		if set.SignIn != "" {
			a.SignIn = set.SignIn
		}
		env := map[string]string{}
		maps.Copy(env, known.Env)
		maps.Copy(env, set.Env)
		a.Env = env
		a.Keys, a.Asks = append(slices.Clone(a.Keys), set.Keys...), set.Edits == "client"
		out = append(out, a)
	}
	for _, k := range external.KnownAgents() {
		if _, named := c.Agents[k.ID]; named {
			continue
		}
		if k.Command = k.Installed(); k.Command != nil {
			k.Folders = external.Folders(home, k.Home)
			out = append(out, k.Agent)
		}
	}
	return out
}

// Agents implements models.External.
func (x *ExternalAgents) Agents(cwd string) (out []models.Info) {
	for _, a := range x.all(cwd) {
		out = append(out, models.Info{Origin: strings.Join(a.Command, " "), Model: a.Model()})
	}
	return out
}

// find returns an agent of a directory.
func (x *ExternalAgents) find(cwd, id string) (external.Agent, bool) {
	all := x.all(cwd)
	i := slices.IndexFunc(all, func(a external.Agent) bool { return a.ID == id })
	if i < 0 {
		return external.Agent{}, false
	}
	return all[i], true
}

// Agent implements models.External.
func (x *ExternalAgents) Agent(cwd, id string) (provider.Provider, provider.Model, error) {
	a, ok := x.find(cwd, id)
	if !ok {
		return nil, provider.Model{}, fmt.Errorf("model %q: there is no such agent, or it is not installed; see pillion agents list", external.ProviderID+"/"+id)
	}
	return x.running.Provider(a), a.Model(), nil
}

// WritesItself implements models.External. An unknown agent counts as one that writes files itself, which is the safer answer.
func (x *ExternalAgents) WritesItself(cwd, id string) bool {
	a, ok := x.find(cwd, id)
	return !ok || !a.Asks
}

// Forget implements models.External.
func (x *ExternalAgents) Forget(session string) { x.running.Forget(session) }

// tools returns the tools that carry out an agent's requests in a session; in a draft they work in the draft.
func (x *ExternalAgents) tools(s agent.SessionInfo) external.Tools {
	env := x.app.Sessions.Env(s)
	list := x.app.Drafts.wrap([]tools.Tool{builtin.ReadText(env), builtin.WriteText(env), builtin.Bash(env)}, s)
	return external.Tools{Read: list[0], Write: list[1], Bash: list[2], AskCommand: builtin.AskCommand(env, x.app.Drafts.holdsCommands(s))}
}

// lent returns the tools that an agent is offered besides its own: what language servers know, edits by name, and the verdict on its draft.
func (x *ExternalAgents) lent(s agent.SessionInfo) []tools.Tool {
	env := x.app.Sessions.Env(s)
	list := x.app.Drafts.wrap(builtin.All(env), s)
	list = slices.DeleteFunc(list, func(t tools.Tool) bool { return t.ID != "lsp" && !strings.HasPrefix(t.ID, "symbol_") })
	if env.Bridge != nil && x.app.Runtime.ReviewOf(x.app.Drafts.top(s)) == agent.ReviewDraft {
		list = append(list, x.app.Drafts.verdictTool(env, s))
	}
	return list
}

// Process implements external.Place. An agent that changes files itself runs in the session's draft, as a child of the draft's worker,
// because only the worker's children share its mounts. One that asks its client for each change runs outside, with the project read-only.
// Neither runs in an untrusted folder: agents run what a project configures for them (hooks, servers) when they start.
func (x *ExternalAgents) Process(ctx context.Context, s agent.SessionInfo, a external.Agent) (*external.Process, error) {
	c := x.app.ConfigOf(s.Cwd)
	if !c.Trusted() {
		root := trust.RealPath(paths.Worktree(s.Cwd))
		return nil, fmt.Errorf("the folder %s is not trusted, and agents run what a project configures for them; run: pillion trust %s", root, trust.QuoteArg(root))
	}
	if err := a.Reason.Check(); err != nil {
		return nil, err
	}
	program, err := exec.LookPath(a.Command[0])
	if err != nil {
		return nil, err
	}
	argv := append([]string{program}, a.Command[1:]...)
	environ := guard.Environ(guard.Agent, program)
	if sandbox.Probe().Usable() {
		argv = append(argv, a.Contained...)
		for _, name := range slices.Sorted(maps.Keys(a.ContainedEnv)) {
			environ = append(environ, name+"="+a.ContainedEnv[name])
		}
	}
	var writable []string
	for _, f := range a.Folders {
		// A Landlock rule can only name what exists, and an agent that cannot create its folder keeps no conversation. What has an extension
		// is a file: .claude.json, beside the folder .claude.
		if filepath.Ext(strings.TrimPrefix(filepath.Base(f), ".")) == "" {
			_ = os.MkdirAll(f, 0o700)
		}
		if _, err := os.Stat(f); err == nil {
			writable = append(writable, f)
		}
	}
	o, err := x.app.Drafts.of(ctx, s)
	if err != nil {
		return nil, err
	}
	if o == nil {
		if !a.Asks {
			return nil, fmt.Errorf("%s changes files by itself, so it works in a draft only, and this session has none: choose it for the whole session, or set \"review\": \"draft\"", a.Name)
		}
		return x.beside(s, argv, environ, writable)
	}
	if _, err := o.worker(ctx, s); err != nil {
		return nil, err
	}
	names := o.translation()
	for i, v := range argv {
		argv[i] = string(names.in([]byte(v)))
	}
	return &external.Process{Cwd: o.inside(s.Cwd), Held: true, Worked: o.worked(),
		Start: func(_ context.Context, more []string, stderr io.Writer) (external.Program, error) {
			cmd := guard.Command(guard.Agent, argv...)
			cmd.Dir, cmd.Env = o.inside(s.Cwd), append(environ[:len(environ):len(environ)], more...)
			guard.OwnGroup(cmd)
			// An external agent needs the network for its maker's service.
			return external.Start(cmd, stderr, o.start(o.app.Drafts.top(s), worker.Rights{Agent: true, Network: true, Writable: writable}))
		}}, nil
}

// beside returns how to start an agent that asks its client for each change. The sandbox enforces that: the project is not among the
// folders that the agent may write.
func (x *ExternalAgents) beside(s agent.SessionInfo, argv, environ, writable []string) (*external.Process, error) {
	own := filepath.Join(x.app.Place.State, "agents", "work")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, err
	}
	box := sandbox.New(sandbox.Options{Root: own, Dir: s.Cwd, Home: x.app.Place.Home, Writable: writable, Network: true})
	// Where the project is inside a writable folder, such as the temporary one, it is mounted read-only.
	root := trust.RealPath(paths.Worktree(s.Cwd))
	if slices.ContainsFunc(box.Writable, func(w string) bool { return paths.Within(w, root) }) {
		if !box.Support.Mounts {
			return nil, fmt.Errorf(`%s lies in a folder that programs may write to, and nothing here can keep it read-only; set agents.NAME.edits to "draft"`, root)
		}
		box.ReadOnly = append(box.ReadOnly, root)
	}
	program, args, err := box.Argv(argv[0], argv[1:])
	if err != nil {
		return nil, fmt.Errorf(`nothing here can keep the project read-only for it (%w); set agents.NAME.edits to "draft"`, err)
	}
	return &external.Process{Cwd: s.Cwd, Start: func(_ context.Context, more []string, stderr io.Writer) (external.Program, error) {
		helper := box.ForHelper()
		defer helper.Close() // also correct for nil
		cmd := guard.Command(guard.Agent, append([]string{program}, args...)...)
		cmd.Dir, cmd.Env = s.Cwd, box.Environ(append(environ[:len(environ):len(environ)], more...))
		if helper != nil {
			cmd.ExtraFiles = []*os.File{helper}
			// Made again: the helper's command line tells whether it is supervised, which ForHelper has just decided.
			if program, args, err = box.Argv(argv[0], argv[1:]); err != nil {
				return nil, err
			}
			cmd.Args = append([]string{program}, args...)
		}
		guard.OwnGroup(cmd)
		if cmd.SysProcAttr == nil { // on Windows OwnGroup does not set it
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		box.Attributes(cmd.SysProcAttr)
		p, err := external.Start(cmd, stderr, guard.Start)
		box.Supervise() // also after a failed start, when it ends at once
		if err == nil {
			go func() { // ends with the program
				<-p.Exited()
				box.Release(cmd.Process.Pid)
			}()
		}
		return p, err
	}}, nil
}

// worked returns a function that records what the draft has changed since its last call, together with the project's version of those
// files. The sooner it runs after a write, the less likely the person has edited such a file in between.
func (o *openDraft) worked() func() {
	var mu sync.Mutex
	since := time.Now()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		from := since
		since = time.Now()
		if err := o.Record(from, o.ignored()); err != nil {
			o.app.O.Log.Warn("recording what an agent did", "draft", o.Dir, "err", err)
		}
	}
}

// close ends all agents.
func (x *ExternalAgents) close() { x.running.Close() }

// Try starts an agent for a session, opens its conversation, and describes what it offers. The error says what a person can do.
func (x *ExternalAgents) Try(ctx context.Context, s agent.SessionInfo, id string) (string, error) {
	a, ok := x.find(s.Cwd, id)
	if !ok {
		_, _, err := x.Agent(s.Cwd, id)
		return "", err
	}
	defer x.app.Drafts.discard(s.ID)
	return x.running.Try(ctx, a, s)
}

// discard drops a session's draft that holds no work worth keeping, such as the one of Try.
func (d *Drafts) discard(session string) {
	d.mu.Lock()
	o := d.open[session]
	delete(d.open, session)
	d.mu.Unlock()
	if o != nil {
		o.stop()
		_ = o.Drop()
		o.release()
	}
}
