package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// mcpInstructions is what other agents read about our tools.
const mcpInstructions = "Tools that read, search and edit this project, and ask its language servers. Edits are checked against the language servers before they are applied, may be shown to the user for approval, and answer with what was applied and which problems remain. Read a file before you edit it. The symbol_ tools need no line numbers: they take names such as Type.Method."

// mcpOffered are the tools that are lent by default: those for files, search and language servers. Commands are the
// other agent's own business.
var mcpOffered = []string{"read", "list", "glob", "grep", "write", "edit", "multiedit", "apply_patch", "lsp", "symbol_*"}

// mcpProtocols are the versions in which a server may ask in the middle of a call. The one after them wants a call to
// be given up and made again for each question.
var mcpProtocols = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// mcpLender lends Pillion's tools to other agents. Each client gets a session of its own.
type mcpLender struct {
	app     *app.App
	dir     string
	approve terminal.Approve
	tools   []string // patterns
	log     *slog.Logger

	mu      sync.Mutex
	clients map[string]*sdk.ServerSession // guarded by mu; by our session, to ask the person behind it
}

// server makes a server for one client. Its session starts with the first call.
func (l *mcpLender) server(ctx context.Context) (*sdk.Server, error) {
	list, err := l.app.Toolbox().Tools(ctx, agent.SessionInfo{ID: "mcp-list", Cwd: l.dir})
	if err != nil {
		return nil, err
	}
	l.app.Sessions.Ended("mcp-list")
	s := sdk.NewServer(&sdk.Implementation{Name: "pillion", Title: "Pillion", Version: version}, &sdk.ServerOptions{
		Instructions: mcpInstructions, Logger: l.log, SupportedProtocolVersions: mcpProtocols, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	lent := &lentSession{lender: l}
	offered := tools.Offer(list, tools.OfferOptions{Rules: l.app.Rules(l.dir, agent.DefaultAgent), Switches: l.app.ConfigOf(l.dir).Tools})
	for _, t := range list {
		// Offer chooses one way to edit for a model that is known; here it is not, so both are lent.
		if t.ID == "apply_patch" && !slices.ContainsFunc(offered, func(o tools.Tool) bool { return o.ID == t.ID }) {
			offered = append(offered, t)
		}
	}
	for _, t := range offered {
		if !slices.ContainsFunc(l.tools, func(p string) bool { ok, _ := filepath.Match(p, t.ID); return ok }) {
			continue
		}
		safe := false
		s.AddTool(&sdk.Tool{Name: t.ID, Description: t.Description, InputSchema: t.Parameters, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, OpenWorldHint: &safe}}, lent.call)
	}
	return s, nil
}

// lentSession is the session behind one client.
type lentSession struct {
	lender *mcpLender

	mu sync.Mutex
	s  *agent.Session // guarded by mu; made at the first call
}

func (l *lentSession) session(ctx context.Context, client *sdk.ServerSession) (*agent.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.s != nil {
		return l.s, nil
	}
	name := "MCP client"
	if p := client.InitializeParams(); p != nil && p.ClientInfo != nil {
		name = strings.TrimSpace(p.ClientInfo.Name + " " + p.ClientInfo.Version)
	}
	s, err := l.lender.app.Runtime.NewSession(ctx, agent.SessionOptions{Cwd: l.lender.dir, Title: "Tools for " + name})
	if err != nil {
		return nil, err
	}
	l.s = s
	l.lender.mu.Lock()
	l.lender.clients[s.ID()] = client
	l.lender.mu.Unlock()
	go func() {
		_ = client.Wait()
		l.lender.mu.Lock()
		delete(l.lender.clients, s.ID())
		l.lender.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		s.Close(ctx)
	}()
	return s, nil
}

// signOfLife is how often a client hears that a call is still under way: many give up after a minute of silence, and
// a person may need longer to decide.
const signOfLife = 10 * time.Second

func (l *lentSession) call(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	s, err := l.session(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	if token := r.Params.GetProgressToken(); token != nil {
		alive, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			tick := time.NewTicker(signOfLife)
			defer tick.Stop()
			for n := 1; ; n++ {
				select {
				case <-tick.C:
					_ = r.Session.NotifyProgress(alive, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: r.Params.Name + " is under way"})
				case <-alive.Done():
					return
				}
			}
		}()
	}
	input := r.Params.Arguments
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	d, err := s.Tool(ctx, r.Params.Name, input)
	x := answer(nil, d, err)
	if x.Error != nil {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: x.Error.Message}}, Meta: sdk.Meta{"pillion": map[string]any{"kind": x.Error.Kind}}}, nil
	}
	out := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: x.Output}}, Meta: sdk.Meta{"pillion": map[string]any{"title": x.Title, "metadata": x.Metadata}}}
	for _, f := range x.Attachments {
		if strings.HasPrefix(f.Mime, "image/") {
			out.Content = append(out.Content, &sdk.ImageContent{MIMEType: f.Mime, Data: f.Data})
		} else {
			out.Content = append(out.Content, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "attachment:" + f.Name, MIMEType: f.Mime, Blob: f.Data}})
		}
	}
	return out, nil
}

// nobodyBehind is what a client reads that cannot show the person a question.
const nobodyBehind = "Not done: this needs the user's approval, and this client cannot ask (it has no elicitation). The user can start `pillion mcp --approve all`, or allow it in pillion.jsonc."

// AskPermission asks the person behind a client, through the client.
func (l *mcpLender) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	switch l.approve {
	case terminal.All:
		return permission.Reply{Kind: permission.Once, Asked: true}, nil
	case terminal.IfClean:
		if r.Change != nil && r.Why == "" {
			return terminal.ByVerdict(r.Change.Verdict), nil
		}
		return permission.Reply{Kind: permission.Reject, Message: "Not done: only changes of files with a clean verdict are allowed here (--approve clean).", Asked: true}, nil
	case terminal.None:
		return permission.Reply{Kind: permission.Reject, Message: "Not done: approvals are off here (--approve none).", Asked: true}, nil
	}
	l.mu.Lock()
	client := l.clients[r.SessionID]
	l.mu.Unlock()
	if client == nil || !elicits(client) {
		return permission.Reply{Kind: permission.Reject, Message: nobodyBehind, Asked: true}, nil
	}
	choices := []any{map[string]any{"const": "once", "title": "Allow once"}}
	if len(r.Always) > 0 {
		choices = append(choices, map[string]any{"const": "session", "title": "Allow in this session: " + r.Remembers()},
			map[string]any{"const": "project", "title": "Always allow in this project: " + r.Remembers()})
	}
	choices = append(choices, map[string]any{"const": "reject", "title": "Reject"})
	answer, err := client.Elicit(ctx, &sdk.ElicitParams{Message: l.question(r), RequestedSchema: map[string]any{
		"type": "object", "required": []string{"decision"},
		"properties": map[string]any{
			"decision": map[string]any{"type": "string", "title": "Decision", "oneOf": choices},
			"message":  map[string]any{"type": "string", "title": "Words for the agent", "description": "with Reject: what to do instead"},
		},
	}})
	if err != nil {
		return permission.Reply{}, err
	}
	words, _ := answer.Content["message"].(string)
	if answer.Action != "accept" {
		return permission.Reply{Kind: permission.Reject, Message: "The user did not approve this.", Asked: true}, nil
	}
	switch answer.Content["decision"] {
	case "once":
		return permission.Reply{Kind: permission.Once, Message: words, Asked: true}, nil
	case "session":
		return permission.Reply{Kind: permission.Always, Scope: permission.ScopeSession, Message: words, Asked: true}, nil
	case "project":
		return permission.Reply{Kind: permission.Always, Scope: permission.ScopeProject, Message: words, Asked: true}, nil
	}
	if words == "" {
		words = "The user did not approve this."
	}
	return permission.Reply{Kind: permission.Reject, Message: words, Asked: true}, nil
}

func elicits(client *sdk.ServerSession) bool {
	p := client.InitializeParams()
	return p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil
}

const maxQuestion = 12 << 10 // bytes of a diff in a question

// question is what the person reads: what would be done, why it is asked, and for an edit its diff and its problems.
func (l *mcpLender) question(r permission.Request) string {
	var b strings.Builder
	b.WriteString(terminal.Clean(r.Title))
	for _, p := range r.Patterns {
		if p != r.Title && p != "*" {
			b.WriteString("\n  " + terminal.Clean(p))
		}
	}
	if r.Why != "" {
		b.WriteString("\n" + terminal.Clean(r.Why))
	}
	set := r.Change
	if set == nil {
		return b.String()
	}
	if c := set.Verdict; c != nil {
		fmt.Fprintf(&b, "\nThis change %s (%s).", c.Headline(), c.Certainty)
	}
	diff := set.Unified(func(path string) string {
		if rel, err := filepath.Rel(l.dir, path); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
		return path
	})
	if len(diff) > maxQuestion {
		diff = strings.ToValidUTF8(diff[:maxQuestion], "") + fmt.Sprintf("\n… %d more bytes", len(diff)-maxQuestion)
	}
	b.WriteString("\n\n" + diff)
	return b.String()
}
