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
	"github.com/pillion-dev/pillion/tools/draft/worker"
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/permission"
)

// outsideAsked remembers which programs a person has approved for a session's draft, or for running outside of it. It is not stored: after a
// restart of the sidecar the person is asked again.
type outsideAsked struct {
	mu sync.Mutex
	// done is guarded by mu. Its keys are the id of the top session (see Drafts.top) and the about of askFirst.
	done map[[2]string]bool
}

// programTools are tools that local programs carry out (MCP servers, custom tools), so that a draft can start these programs in its view.
type programTools interface {
	// program names the program of a tool, for the approval request; "" if there is none, as for a remote server.
	program(info agent.SessionInfo, tool string) string
	// inDraft returns the tool, carried out by a program in the draft's view. It starts the program if the draft does not have it yet.
	inDraft(ctx context.Context, o *openDraft, info agent.SessionInfo, tool string) (tools.Tool, error)
}

// beside wraps the tools of MCP servers, of the person's own code and of editors for sessions that may work in a draft. In a draft it starts
// their programs again in the draft's view, in the sandbox of commands but with the network, so what they write to the project is part of the
// draft. Tools without a local program (an editor's tools, a remote server), and programs that do not start in the sandbox, run outside: they
// do not see the draft, and what they write is in the project at once.
//
// Each needs approval once in a session, even if a rule allows the tool. Outside, because a draft promises that nothing is written to the
// project before the decision. Inside, because the program has the network and may run code that the agent has just written. from is nil for
// tools that never have a program.
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

// runInside runs a tool in a program in the draft's view. ran is false if the tool has not begun, because it was not approved or because its
// program could not be started; the caller may then run it outside.
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
	if asked { // the person has just approved this call, so the tool must not ask for the same permission again
		c := *call
		c.Host.Gate = grantedGate{call.Host.Gate, t.ID}
		call = &c
	}
	start := time.Now()
	r, err = inside.Run(ctx, input, call)
	return r, true, o.record(start, err)
}

// grantedGate is a session's gate that allows one permission, which the person has just approved for this call.
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

// askFirst asks for approval at the first use of something in a session. An approval holds for the session; after a rejection the next call
// asks again. The error is the gate's. then is called if the person was asked and has approved.
func (d *Drafts) askFirst(ctx context.Context, session, about string, call *tools.Call, r permission.Request, then ...func()) error {
	key := [2]string{session, about}
	d.asked.mu.Lock()
	done := d.asked.done[key]
	d.asked.mu.Unlock()
	if done {
		return nil
	}
	// mu is not held while the person decides, so two concurrent first calls may both ask. The request is for the tool's own permission, so
	// a rule that denies the tool still counts.
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

// draftPrograms are the programs that run in a draft's view beside its worker. They end when the worker ends.
type draftPrograms struct {
	mu     sync.Mutex
	mcp    map[string]*mcp.Set // guarded by mu; by server
	custom *custom.Host        // guarded by mu; nil: no custom tool was called
	ended  bool                // guarded by mu; close was called, so no language server may be started

	servers  *lspbridge.Manager // guarded by mu; the language servers in the view, see draft_servers.go; nil: none
	bulk     string             // guarded by mu; the bulkVersion that the draft had when servers were started
	answer   lspbridge.Delta    // guarded by mu; the last fresh verdict of servers
	answered string             // guarded by mu; the key of answer: bulkVersion and textsVersion
}

// close ends the programs. If the worker has crashed, they have ended already.
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

// programsEnd is how long a draft's programs may take to end by themselves; the end of the worker kills those that remain.
const programsEnd = 3 * time.Second

// start returns a function that starts a program in the draft's view, for use in place of guard.Start.
func (o *openDraft) start(info agent.SessionInfo, r worker.Rights) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		w, err := o.worker(context.Background(), info)
		if err != nil {
			return err
		}
		return w.Start(cmd, r)
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
		// Changed is nil: which tools are offered depends on the servers outside; those in the view only carry out calls.
		options.Start, options.Changed, options.Root = o.start(o.app.Drafts.top(info), worker.Rights{Network: true}), nil, o.root
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
	// Removed, so that it is not restarted in the background; the next call starts it again.
	o.programs.mu.Lock()
	delete(o.programs.mcp, server.Name)
	o.programs.mu.Unlock()
	go set.Close(context.WithoutCancel(ctx))
	return tools.Tool{}, fmt.Errorf("%s", cmp.Or(reason, "it offers no such tool there"))
}

// program implements programTools: a local program runs every custom tool.
func (c *Plugins) program(_ agent.SessionInfo, tool string) string { return "the custom tool " + tool }

// inDraft implements programTools. It uses the tool's code in the project and not that in the draft, so that an agent cannot change a tool
// and then call it.
func (c *Plugins) inDraft(ctx context.Context, o *openDraft, info agent.SessionInfo, tool string) (tools.Tool, error) {
	o.programs.mu.Lock()
	if o.programs.custom == nil {
		options := c.options(info.Cwd, c.app.ConfigOf(info.Cwd))
		options.Start = o.start(o.app.Drafts.top(info), worker.Rights{Network: true})
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
