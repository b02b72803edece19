package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/custom"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/permission"
)

// outsideAsked are the programs that a person has let run in a session's draft, or outside of it. It is not stored: after a restart of the
// sidecar the person is asked again.
type outsideAsked struct {
	mu sync.Mutex
	// done is guarded by mu; by the session that a person talks to and what was asked about. A sub-agent's call counts for its parent.
	done map[[2]string]bool
}

// programTools are tools that programs of this machine carry out, so that a draft can start such a program in its view.
type programTools interface {
	// program names the program of a tool, for the question; "" if there is none, as for a server at an address.
	program(info agent.SessionInfo, tool string) string
	// inDraft is the tool as a program in the draft's view carries it out. It starts the program, once for each draft.
	inDraft(ctx context.Context, o *openDraft, info agent.SessionInfo, tool string) (tools.Tool, error)
}

// beside are tools of MCP servers, of the person's own code and of editors as they are called in a session. In a draft their programs are
// started anew in its view, in the sandbox of commands with the network: what they write to the project is part of the draft. What has no
// program here (an editor's tools, a server at an address), and a program that does not start in the sandbox, runs outside: it does not see
// the draft, and what it writes is in the project at once.
//
// Both are asked about once in a session, also where a rule allows the tool. Outside, because a draft promises that nothing is written
// before its end. Inside, because the program may run code that the agent wrote a moment ago, and has the network. from is nil for tools
// that never have a program.
func (d *Drafts) beside(list []tools.Tool, from programTools) []tools.Tool {
	out := slices.Clone(list)
	for i, t := range out {
		// The review style is looked up at each call, since it can be changed while the list is in use.
		out[i].Run = func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
			s, ok := d.app.Runtime.Session(call.SessionID)
			if !ok {
				return t.Run(ctx, input, call)
			}
			info := s.Info()
			top := d.top(info)
			if d.app.Runtime.ReviewOf(top) != agent.ReviewDraft {
				return t.Run(ctx, input, call)
			}
			name := ""
			if from != nil {
				name = from.program(info, t.ID)
			}
			why := ""
			if name != "" {
				r, ran, err := d.runInside(ctx, from, t, name, info, input, call)
				if ran || err == nil {
					return r, err
				}
				if errors.Is(err, permission.ErrRejected) || errors.Is(err, permission.ErrDenied) || ctx.Err() != nil {
					return tools.Result{}, err
				}
				why = "it could not be started in the draft (" + err.Error() + "); "
			}
			err := d.askFirst(ctx, top.ID, "outside "+t.ID, call, permission.Request{Permission: t.ID, Title: "Use " + t.ID + " outside of the draft",
				Why: why + "its process does not see the draft, and what it writes is in the project at once; the answer holds for this session", Metadata: map[string]any{"input": input}})
			if err != nil {
				return tools.Result{}, err
			}
			r, err := t.Run(ctx, input, call)
			r.Output = strings.TrimRight(r.Output, "\n") + "\n\n(" + t.ID + " ran outside of the draft: it saw the project as the user has it, and what it wrote is there.)"
			return r, err
		}
	}
	return out
}

// runInside runs a tool by a program in the draft's view. ran is false if the tool has not begun, because of a refusal or because its
// program could not be started.
func (d *Drafts) runInside(ctx context.Context, from programTools, t tools.Tool, name string, info agent.SessionInfo, input json.RawMessage, call *tools.Call) (r tools.Result, ran bool, err error) {
	o, err := d.of(ctx, info)
	if err != nil {
		return r, true, err
	}
	if o == nil {
		r, err = t.Run(ctx, input, call)
		return r, true, err
	}
	if o.Head().View == draft.Copy {
		return r, false, fmt.Errorf("the draft is a copy under another path")
	}
	asked := false
	err = d.askFirst(ctx, d.top(info).ID, name, call, permission.Request{Permission: t.ID, Title: "Start " + name + " in the draft",
		Why: "it runs in the draft's sandbox: what it writes to the project waits for your decision. It can use the network, and code of the project that it runs is the agent's; the answer holds for this session", Metadata: map[string]any{"input": input}},
		func() { asked = true })
	if err != nil {
		return r, false, err
	}
	inside, err := from.inDraft(ctx, o, info, t.ID)
	if err != nil {
		return r, false, err
	}
	if asked { // the same permission, a moment ago and for this very call
		c := *call
		c.Host.Gate = grantedGate{call.Host.Gate, t.ID}
		call = &c
	}
	start := time.Now()
	r, err = inside.Run(ctx, input, call)
	return r, true, o.record(start, err)
}

// grantedGate is a session's gate in which one permission was given already.
type grantedGate struct {
	tools.Gate
	permission string
}

// Ask implements tools.Gate.
func (g grantedGate) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	if r.Permission == g.permission {
		return permission.Reply{Kind: permission.Once}, nil
	}
	return g.Gate.Ask(ctx, r)
}

// askFirst asks about something at its first use in a session. A person who has said yes is not asked again in it; one who has said no is,
// at the next call. The error is the gate's. then is called after a question that was answered with yes.
func (d *Drafts) askFirst(ctx context.Context, session, about string, call *tools.Call, r permission.Request, then ...func()) error {
	key := [2]string{session, about}
	d.asked.mu.Lock()
	done := d.asked.done[key]
	d.asked.mu.Unlock()
	if done {
		return nil
	}
	// mu is not held while the person thinks, so two first calls side by side may both ask. The tool's own permission is what is asked for:
	// a rule that denies it still counts.
	r.SessionID, r.CallID, r.Tool, r.Patterns, r.Added, r.MustAsk = call.SessionID, call.CallID, call.Tool, []string{"*"}, true, true
	if _, err := call.Host.Gate.Ask(ctx, r); err != nil {
		return err
	}
	d.asked.mu.Lock()
	defer d.asked.mu.Unlock()
	if d.asked.done == nil {
		d.asked.done = map[[2]string]bool{}
	}
	d.asked.done[key] = true
	for _, f := range then {
		f()
	}
	return nil
}

// draftPrograms are the programs that run in a draft's view beside its tools. They end with its worker.
type draftPrograms struct {
	mu     sync.Mutex
	mcp    map[string]*mcp.Set // guarded by mu; by server
	custom *custom.Host        // guarded by mu; nil: no custom tool was called
	ended  bool                // guarded by mu; the draft's worker was ended, so no server is started any more

	servers  *lspbridge.Manager // guarded by mu; the language servers in the view, see draft_servers.go; nil: none
	bulk     string             // guarded by mu; what servers have read on the disk
	answer   lspbridge.Delta    // guarded by mu; the last fresh answer of servers
	answered string             // guarded by mu; what answer is about
}

// close ends the programs. Those of a draft whose worker has died have ended already.
func (p *draftPrograms) close() {
	p.mu.Lock()
	sets, host, servers := p.mcp, p.custom, p.servers
	p.mcp, p.custom, p.servers, p.ended = nil, nil, nil, true
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), programsEnd)
	defer cancel()
	for _, set := range sets {
		set.Close(ctx)
	}
	if servers != nil {
		servers.Close(ctx)
	}
	if host != nil {
		host.Close()
	}
}

// programsEnd is how long a draft's programs may take to end; the end of its worker kills the rest.
const programsEnd = 3 * time.Second

// start starts a program in the draft's view, in place of guard.Start.
func (o *openDraft) start(info agent.SessionInfo, network, confined bool) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		w, err := o.worker(context.Background(), info)
		if err != nil {
			return err
		}
		return w.Start(cmd, network, confined)
	}
}

// program implements programTools: the server's name.
func (m *MCPServers) program(info agent.SessionInfo, tool string) string {
	set := m.of(info.Cwd)
	if set == nil {
		return ""
	}
	if server, ok := set.Program(tool); ok {
		return "the MCP server " + server.Name
	}
	return ""
}

// inDraft implements programTools. Each server has a set of its own, so that a call starts no other server.
func (m *MCPServers) inDraft(ctx context.Context, o *openDraft, info agent.SessionInfo, tool string) (tools.Tool, error) {
	all := m.of(info.Cwd)
	if all == nil {
		return tools.Tool{}, fmt.Errorf("no MCP server is configured any more")
	}
	server, ok := all.Program(tool)
	if !ok {
		return tools.Tool{}, fmt.Errorf("no MCP server has this tool any more")
	}
	o.programs.mu.Lock()
	set := o.programs.mcp[server.Name]
	if set == nil {
		if o.programs.mcp == nil {
			o.programs.mcp = map[string]*mcp.Set{}
		}
		options := m.options(info.Cwd, m.app.ConfigOf(info.Cwd), []mcp.Server{server})
		// The offer of tools is that of the servers outside; these only carry calls out.
		options.Start, options.Changed, options.Root = o.start(o.app.Drafts.top(info), true, false), nil, o.root
		set = mcp.New(options)
		o.programs.mcp[server.Name] = set
	}
	o.programs.mu.Unlock()
	set.Await(ctx, tool)
	for _, t := range set.Offered() {
		if t.ID == tool {
			return t, nil
		}
	}
	reason := ""
	if list := set.Statuses(); len(list) > 0 {
		reason = list[0].Reason
	}
	// It would be tried again and again, and the next call asks anew.
	o.programs.mu.Lock()
	delete(o.programs.mcp, server.Name)
	o.programs.mu.Unlock()
	go set.Close(context.WithoutCancel(ctx))
	return tools.Tool{}, fmt.Errorf("%s", cmp.Or(reason, "it offers no such tool there"))
}

// program implements programTools: each of the person's own tools is a program, or code in one.
func (c *Plugins) program(_ agent.SessionInfo, tool string) string { return "the custom tool " + tool }

// inDraft implements programTools. The code is what the project has, and not the draft: an agent must not change a tool and call it.
func (c *Plugins) inDraft(ctx context.Context, o *openDraft, info agent.SessionInfo, tool string) (tools.Tool, error) {
	o.programs.mu.Lock()
	if o.programs.custom == nil {
		options := c.options(info.Cwd, c.app.ConfigOf(info.Cwd))
		options.Start = o.start(o.app.Drafts.top(info), true, false)
		o.programs.custom = custom.New(options)
	}
	h := o.programs.custom
	o.programs.mu.Unlock()
	for _, t := range h.Tools(ctx) {
		if t.ID == tool {
			return t, nil
		}
	}
	return tools.Tool{}, fmt.Errorf("it could not be loaded there")
}
