// Package lend serves Pillion's tools to other agents over MCP (`pillion mcp`). It leaves the command line and the
// listening socket to its caller, and what a tool does to sidecar/app. Each client gets a session of its own, so that
// what one has read does not let another one edit.
//
//	s := lend.New(lend.Options{App: app.Options{Place: place}, Dir: dir, Approve: terminal.Ask, Tools: lend.DefaultTools})
//	defer s.Close()
//	err := s.Run(ctx, &mcp.StdioTransport{})
package lend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/permission"
)

// instructions are sent to clients at initialize; their model reads them beside the tools' descriptions.
const instructions = "Tools that read, search and edit this project, and ask its language servers. Edits are checked against the language servers before they are applied, may be shown to the user for approval, and answer with what was applied and which problems remain. Read a file before you edit it. The symbol_ tools need no line numbers: they take names such as Type.Method."

// DefaultTools are the patterns (path.Match) of the tools that are served by default: those for files, search and
// language servers. Shell commands are missing on purpose: the other agent has its own, with its own approvals.
var DefaultTools = []string{"read", "list", "glob", "grep", "write", "edit", "multiedit", "apply_patch", "lsp", "symbol_*"}

// protocols are the MCP versions in which a server may send elicitation/create in the middle of a call. In the version
// after them the client must end the call and repeat it for each question, which an edit under locks does not survive.
var protocols = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Options configure a Server.
type Options struct {
	App     app.Options      // Place, Log, NoLSP, Verdict; New sets Asker and Ephemeral
	Dir     string           // absolute path of the project that the tools work in
	Approve terminal.Approve // how approval requests are answered; Ask passes them to the client
	// Editor passes the approval request of a client that cannot ask to the person's editor. program names the client. It fails with
	// ErrNoEditor where no editor has the folder open. nil: such a request is refused.
	Editor  func(ctx context.Context, program string, r permission.Request) (permission.Reply, error)
	Tools   []string // patterns (path.Match) of the tools to serve
	Version string   // of this program, sent to clients
}

// ErrNoEditor is Options.Editor's error where no editor can be asked.
var ErrNoEditor = errors.New("no editor has the folder open")

// Server serves the tools of one project to any number of clients.
type Server struct {
	app     *app.App
	dir     string
	approve terminal.Approve
	editor  func(context.Context, string, permission.Request) (permission.Reply, error)
	tools   []string
	version string
	log     *slog.Logger

	mu      sync.Mutex
	clients map[string]*sdk.ServerSession // guarded by mu; by our session's id, to ask the person behind the client
}

// New assembles the project's tools. Close ends them.
func New(o Options) *Server {
	s := &Server{dir: o.Dir, approve: o.Approve, editor: o.Editor, tools: o.Tools, version: o.Version, clients: map[string]*sdk.ServerSession{}}
	o.App.Asker, o.App.Ephemeral = s, true // the client keeps the conversation: our sessions hold nothing to go back to
	s.app = app.New(o.App)
	s.log = s.app.O.Log
	return s
}

// Close ends the sessions, language servers and commands.
func (l *Server) Close() { l.app.Close() }

// Run serves one client until it disconnects. It returns nil when ctx ends.
func (l *Server) Run(ctx context.Context, t sdk.Transport) error {
	s, err := l.ForClient(ctx)
	if err != nil {
		return err
	}
	if err = s.Run(ctx, t); ctx.Err() != nil {
		return nil
	}
	return err
}

// ForClient makes the MCP server of one client. It fails where the tools cannot be listed. The client's session starts
// with its first call, so that a client that only lists the tools leaves none.
func (l *Server) ForClient(ctx context.Context) (*sdk.Server, error) {
	list, err := l.app.Toolbox().Tools(ctx, agent.SessionInfo{ID: "mcp-list", Cwd: l.dir})
	if err != nil {
		return nil, err
	}
	// Listing has made an environment for a session of this id, which never begins.
	l.app.Sessions.Ended("mcp-list")
	s := sdk.NewServer(&sdk.Implementation{Name: "pillion", Title: "Pillion", Version: l.version}, &sdk.ServerOptions{
		Instructions: instructions, Logger: l.log, SupportedProtocolVersions: protocols, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	session := &clientSession{server: l}
	offered := tools.Offer(list, tools.OfferOptions{Rules: l.app.Rules(l.dir, agent.DefaultAgent), Switches: l.app.ConfigOf(l.dir).Tools})
	for _, t := range list {
		// Offer chooses one way to edit by the model; the client's model is unknown, so both are served.
		if t.ID == "apply_patch" && !slices.ContainsFunc(offered, func(o tools.Tool) bool { return o.ID == t.ID }) {
			offered = append(offered, t)
		}
	}
	for _, t := range offered {
		if !slices.ContainsFunc(l.tools, func(p string) bool { ok, _ := filepath.Match(p, t.ID); return ok }) {
			continue
		}
		s.AddTool(mcp.Offer(t), session.call)
	}
	return s, nil
}

// Handler serves streamable HTTP to requests that carry token, each client with a server of its own.
func (l *Server) Handler(ctx context.Context, token string) http.Handler {
	return mcp.Handler(token, func() *sdk.Server {
		s, err := l.ForClient(ctx)
		if err != nil {
			l.log.Error("mcp", "err", err)
			return nil
		}
		return s
	}, l.log)
}

// clientSession is the session behind one client.
type clientSession struct {
	server *Server

	mu sync.Mutex
	s  *agent.Session // guarded by mu; nil before the first call
}

// session makes the session at the first call. It is closed when the client disconnects.
func (l *clientSession) session(ctx context.Context, client *sdk.ServerSession) (*agent.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.s != nil {
		return l.s, nil
	}
	s, err := l.server.app.Runtime.NewSession(ctx, agent.SessionOptions{Cwd: l.server.dir, Title: "Tools for " + nameOf(client)})
	if err != nil {
		return nil, err
	}
	l.s = s
	l.server.mu.Lock()
	l.server.clients[s.ID()] = client
	l.server.mu.Unlock()
	// The session ends with its client and not with ctx, which is that of the first call.
	go func() {
		_ = client.Wait()
		l.server.mu.Lock()
		delete(l.server.clients, s.ID())
		l.server.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		s.Close(ctx)
	}()
	return s, nil
}

// nameOf is what a client calls itself.
func nameOf(client *sdk.ServerSession) string {
	if p := client.InitializeParams(); p != nil && p.ClientInfo != nil {
		if name := strings.TrimSpace(p.ClientInfo.Name + " " + p.ClientInfo.Version); name != "" {
			return name
		}
	}
	return "MCP client"
}

// progressInterval is how often a client is told that a call still runs: many clients time out after a minute without
// a message, and a person may need longer to decide.
const progressInterval = 10 * time.Second

// call answers tools/call. A failure inside the tool is a result with isError, which the client's model reads; an error
// is one of the protocol.
func (l *clientSession) call(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	s, err := l.session(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	// Only a client that sends a progress token wants progress notifications (MCP, progress).
	if token := r.Params.GetProgressToken(); token != nil {
		alive, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			tick := time.NewTicker(progressInterval)
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
	// arguments may be missing in tools/call; tools expect an object.
	input := r.Params.Arguments
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	d, err := s.Tool(ctx, r.Params.Name, input)
	if f := d.Failure(err); f != nil {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: f.Message}}, Meta: sdk.Meta{"pillion": map[string]any{"kind": f.Kind}}}, nil
	}
	if d.Metadata == nil {
		d.Metadata = map[string]any{} // clients get an object, not null
	}
	out := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: d.Output}}, Meta: sdk.Meta{"pillion": map[string]any{"title": d.Title, "metadata": d.Metadata}}}
	for _, f := range d.Attachments {
		if strings.HasPrefix(f.Mime, "image/") {
			out.Content = append(out.Content, &sdk.ImageContent{MIMEType: f.Mime, Data: f.Data})
		} else {
			out.Content = append(out.Content, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "attachment:" + f.Name, MIMEType: f.Mime, Blob: f.Data}})
		}
	}
	return out, nil
}

// cannotAsk is the answer to a client without elicitation where no editor can be asked either. It names every way out, because the
// client's model shows it to the user.
func (l *Server) cannotAsk(r permission.Request) string {
	out := "Not done: this needs the user's approval, this client cannot ask (it has no elicitation), and no editor has a session of Pillion open in " + l.dir +
		". The user can open one there, which is asked then"
	if r.Managed != "" {
		return out + ". Nothing else answers: the managed rule " + r.Managed + " wants a person."
	}
	return out + ", start `pillion mcp --approve all`, or allow it in pillion.jsonc."
}

// askEditor asks in the person's editor, for a client that cannot ask.
func (l *Server) askEditor(ctx context.Context, client *sdk.ServerSession, r permission.Request) (permission.Reply, error) {
	refused := permission.Reply{Kind: permission.Reject, Message: l.cannotAsk(r), Asked: true}
	if client == nil || l.editor == nil {
		return refused, nil
	}
	reply, err := l.editor(ctx, nameOf(client), r)
	if errors.Is(err, ErrNoEditor) {
		return refused, nil
	}
	reply.Asked = true
	return reply, err
}

// AskPermission asks the person behind a client with elicitation/create, or in their editor where the client has none, unless Approve
// answers. Every answer has Asked set: the rules said ask, so it must not be remembered as a rule's decision.
func (l *Server) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	switch l.approve.For(r) {
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
		return l.askEditor(ctx, client, r)
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
	// A decision that was not offered is a rejection too: it must never allow anything.
	if words == "" {
		words = "The user did not approve this."
	}
	return permission.Reply{Kind: permission.Reject, Message: words, Asked: true}, nil
}

// elicits reports whether the client can show a form to its user.
func elicits(client *sdk.ServerSession) bool {
	p := client.InitializeParams()
	return p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil
}

// maxQuestion is the most bytes of a diff in a question: clients show it in a dialog.
const maxQuestion = 12 << 10

// question is the text of an approval request: the action, the reason, and for an edit its verdict and its diff. What the
// model wrote goes through terminal.Clean, since a client may print it to a terminal.
func (l *Server) question(r permission.Request) string {
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
	if text := set.EvidenceText(); text != "" {
		b.WriteString("\n" + terminal.Clean(text))
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
