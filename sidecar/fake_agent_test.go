package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	coder "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fakeAgent is an external agent over another implementation of the protocol. Each line of a prompt is one thing that it does; anything else
// is ignored, so that what Pillion adds to a prompt does no harm. Its conversations are files in FAKE_AGENT_STATE.
//
//	say TEXT · write PATH TEXT · self PATH TEXT · read PATH · run COMMAND · kill COMMAND · start COMMAND · wait · ask-run COMMAND ·
//	ask-run-bare COMMAND · ask-edit PATH TEXT · plan TEXT
//	die · hang · recall · chosen · offered · env NAME · tools · lent TOOL ARGUMENTS · lent-keyless TOOL ARGUMENTS
type fakeAgent struct {
	conn *coder.AgentSideConnection

	mu     sync.Mutex
	cancel map[coder.SessionId]context.CancelFunc // guarded by mu
	cwd    map[coder.SessionId]string             // guarded by mu
	calls  int                                    // guarded by mu
	server *coder.McpServerHttpInline             // guarded by mu; the first MCP server over HTTP that the client named
	mode   coder.SessionModeId                    // guarded by mu
	effort coder.SessionConfigValueId             // guarded by mu

	fs      coder.FileSystemCapabilities // what the client offers; set by Initialize
	started []string                     // the terminals of "start"; of the one prompt that runs
}

// runFakeAgent serves on standard input and output until the client goes.
func runFakeAgent() {
	a := &fakeAgent{cancel: map[coder.SessionId]context.CancelFunc{}, cwd: map[coder.SessionId]string{}, mode: "code", effort: "low"}
	if mode := os.Getenv("FAKE_AGENT_MODE"); mode != "" {
		a.mode = coder.SessionModeId(mode)
	}
	a.conn = coder.NewAgentSideConnection(a, os.Stdout, os.Stdin)
	<-a.conn.Done()
}

func (a *fakeAgent) file(id coder.SessionId) string {
	return filepath.Join(os.Getenv("FAKE_AGENT_STATE"), string(id))
}

func (a *fakeAgent) Authenticate(context.Context, coder.AuthenticateRequest) (coder.AuthenticateResponse, error) {
	return coder.AuthenticateResponse{}, nil
}

func (a *fakeAgent) Initialize(_ context.Context, p coder.InitializeRequest) (coder.InitializeResponse, error) {
	if a.fs = p.ClientCapabilities.Fs; !p.ClientCapabilities.Terminal {
		return coder.InitializeResponse{}, fmt.Errorf("the client offers too little: %+v", p.ClientCapabilities)
	}
	return coder.InitializeResponse{ProtocolVersion: coder.ProtocolVersionNumber, AgentCapabilities: coder.AgentCapabilities{LoadSession: os.Getenv("FAKE_AGENT_STATE") != "", McpCapabilities: coder.McpCapabilities{Http: true}}}, nil
}

func (a *fakeAgent) Cancel(_ context.Context, p coder.CancelNotification) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.cancel[p.SessionId]; c != nil {
		c()
	}
	return nil
}

func (a *fakeAgent) NewSession(_ context.Context, p coder.NewSessionRequest) (coder.NewSessionResponse, error) {
	if os.Getenv("FAKE_AGENT_SIGNED_OUT") != "" {
		return coder.NewSessionResponse{}, coder.NewAuthRequired(nil)
	}
	id := coder.SessionId(fmt.Sprintf("fake-%d", os.Getpid()))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cwd[id] = p.Cwd
	a.serve(p.McpServers)
	return coder.NewSessionResponse{SessionId: id, Modes: a.modes(), ConfigOptions: a.options()}, nil
}

// LoadSession replays what was said, as the protocol asks.
func (a *fakeAgent) LoadSession(ctx context.Context, p coder.LoadSessionRequest) (coder.LoadSessionResponse, error) {
	b, err := os.ReadFile(a.file(p.SessionId))
	if err != nil {
		return coder.LoadSessionResponse{}, err
	}
	a.mu.Lock()
	a.cwd[p.SessionId] = p.Cwd
	a.serve(p.McpServers)
	a.mu.Unlock()
	_ = a.conn.SessionUpdate(ctx, coder.SessionNotification{SessionId: p.SessionId, Update: coder.UpdateAgentMessageText("replayed: " + string(b))})
	a.mu.Lock()
	defer a.mu.Unlock()
	return coder.LoadSessionResponse{Modes: a.modes(), ConfigOptions: a.options()}, nil
}

// serve notes a session's MCP server; a.mu is held.
func (a *fakeAgent) serve(all []coder.McpServer) {
	for _, s := range all {
		if s.Http != nil {
			a.server = s.Http
		}
	}
}

// RoundTrip implements http.RoundTripper: it adds the headers that the client named.
func (a *fakeAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for _, h := range a.server.Headers {
		r.Header.Set(h.Name, h.Value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// lent opens the client's MCP server, with or without the headers that it asked for.
func (a *fakeAgent) lent(ctx context.Context, headers bool) (*mcp.ClientSession, error) {
	if a.server == nil {
		return nil, errors.New("the client named no MCP server")
	}
	t := &mcp.StreamableClientTransport{Endpoint: a.server.Url}
	if headers {
		t.HTTPClient = &http.Client{Transport: a}
	}
	return mcp.NewClient(&mcp.Implementation{Name: "fake"}, nil).Connect(ctx, t, nil)
}

func (a *fakeAgent) CloseSession(context.Context, coder.CloseSessionRequest) (coder.CloseSessionResponse, error) {
	return coder.CloseSessionResponse{}, nil
}
func (a *fakeAgent) ListSessions(context.Context, coder.ListSessionsRequest) (coder.ListSessionsResponse, error) {
	return coder.ListSessionsResponse{}, nil
}
func (a *fakeAgent) ResumeSession(context.Context, coder.ResumeSessionRequest) (coder.ResumeSessionResponse, error) {
	return coder.ResumeSessionResponse{}, nil
}
func (a *fakeAgent) SetSessionConfigOption(_ context.Context, p coder.SetSessionConfigOptionRequest) (coder.SetSessionConfigOptionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.effort = p.ValueId.Value
	return coder.SetSessionConfigOptionResponse{ConfigOptions: a.options()}, nil
}
func (a *fakeAgent) SetSessionMode(_ context.Context, p coder.SetSessionModeRequest) (coder.SetSessionModeResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = p.ModeId
	return coder.SetSessionModeResponse{}, nil
}

// modes are the agent's modes; a.mu is held.
func (a *fakeAgent) modes() *coder.SessionModeState {
	return &coder.SessionModeState{CurrentModeId: a.mode, AvailableModes: []coder.SessionMode{{Id: "code", Name: "Code"}, {Id: "plan", Name: "Plan"}, {Id: "auto", Name: "Auto"}, {Id: "default", Name: "Manual"}}}
}

// options are the agent's configuration options; a.mu is held.
func (a *fakeAgent) options() []coder.SessionConfigOption {
	return []coder.SessionConfigOption{{Select: &coder.SessionConfigOptionSelect{Id: "effort", Name: "Effort", Type: "select", CurrentValue: a.effort,
		Options: coder.SessionConfigSelectOptions{Ungrouped: &coder.SessionConfigSelectOptionsUngrouped{{Name: "Low", Value: "low"}, {Name: "High", Value: "high"}}}}}}
}

func (a *fakeAgent) Prompt(ctx context.Context, p coder.PromptRequest) (coder.PromptResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.mu.Lock()
	a.cancel[p.SessionId] = cancel
	cwd := a.cwd[p.SessionId]
	a.mu.Unlock()
	var text strings.Builder
	for _, b := range p.Prompt {
		if b.Text != nil {
			text.WriteString(b.Text.Text + "\n")
		}
	}
	if os.Getenv("FAKE_AGENT_STATE") != "" {
		f, err := os.OpenFile(a.file(p.SessionId), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return coder.PromptResponse{}, err
		}
		fmt.Fprint(f, text.String())
		_ = f.Close()
	}
	for line := range strings.Lines(text.String()) {
		if err := a.do(ctx, p.SessionId, cwd, strings.TrimSpace(line)); err != nil {
			a.say(ctx, p.SessionId, "failed: "+err.Error())
		}
		if ctx.Err() != nil {
			return coder.PromptResponse{StopReason: coder.StopReasonCancelled}, nil
		}
	}
	return coder.PromptResponse{StopReason: coder.StopReasonEndTurn}, nil
}

func (a *fakeAgent) say(ctx context.Context, id coder.SessionId, text string) {
	_ = a.conn.SessionUpdate(context.WithoutCancel(ctx), coder.SessionNotification{SessionId: id, Update: coder.UpdateAgentMessageText(text + "\n")})
}

// call shows a call of the agent's own and returns its id.
func (a *fakeAgent) call(ctx context.Context, id coder.SessionId, title string, kind coder.ToolKind, input any) coder.ToolCallId {
	a.mu.Lock()
	a.calls++
	call := coder.ToolCallId(fmt.Sprintf("own_%d", a.calls))
	a.mu.Unlock()
	_ = a.conn.SessionUpdate(ctx, coder.SessionNotification{SessionId: id, Update: coder.StartToolCall(call, title, coder.WithStartKind(kind), coder.WithStartStatus(coder.ToolCallStatusInProgress), coder.WithStartRawInput(input))})
	return call
}

// ask asks for a permission, and reports whether it was given.
func (a *fakeAgent) ask(ctx context.Context, id coder.SessionId, call coder.ToolCallId, title string, kind coder.ToolKind, input any, content []coder.ToolCallContent) (bool, error) {
	return a.askAbout(ctx, id, coder.ToolCallUpdate{ToolCallId: call, Title: &title, Kind: &kind, RawInput: input, Content: content})
}

// askAbout asks for a permission with this call.
func (a *fakeAgent) askAbout(ctx context.Context, id coder.SessionId, call coder.ToolCallUpdate) (bool, error) {
	r, err := a.conn.RequestPermission(ctx, coder.RequestPermissionRequest{SessionId: id, ToolCall: call,
		// As Qwen Code and Codex do: always in two scopes, and two ways to go on after a no.
		Options: []coder.PermissionOption{{OptionId: "always", Name: "Always here", Kind: coder.PermissionOptionKindAllowAlways}, {OptionId: "always", Name: "Always everywhere", Kind: coder.PermissionOptionKindAllowAlways},
			{OptionId: "yes", Name: "Yes", Kind: coder.PermissionOptionKindAllowOnce}, {OptionId: "no", Name: "No", Kind: coder.PermissionOptionKindRejectOnce}, {OptionId: "stop", Name: "No, and stop", Kind: coder.PermissionOptionKindRejectOnce}}})
	if err != nil || r.Outcome.Selected == nil {
		return false, err
	}
	if r.Outcome.Selected.OptionId == "always" {
		return false, fmt.Errorf("the client gave an always of its own")
	}
	return r.Outcome.Selected.OptionId == "yes", nil
}

// end ends a call of the agent's own.
func (a *fakeAgent) end(ctx context.Context, id coder.SessionId, call coder.ToolCallId, ok bool, text string) {
	status := coder.ToolCallStatusCompleted
	if !ok {
		status = coder.ToolCallStatusFailed
	}
	_ = a.conn.SessionUpdate(context.WithoutCancel(ctx), coder.SessionNotification{SessionId: id, Update: coder.UpdateToolCall(call, coder.WithUpdateStatus(status), coder.WithUpdateContent([]coder.ToolCallContent{coder.ToolContent(coder.TextBlock(text))}))})
}

// do carries out one line of a prompt.
func (a *fakeAgent) do(ctx context.Context, id coder.SessionId, cwd, line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	name, text, _ := strings.Cut(rest, " ")
	path := filepath.Join(cwd, name)
	switch verb {
	case "say":
		a.say(ctx, id, rest)
	case "env":
		a.say(ctx, id, rest+"="+os.Getenv(rest))
	case "recall":
		b, err := os.ReadFile(a.file(id))
		if err != nil {
			return err
		}
		a.say(ctx, id, fmt.Sprintf("I remember %d lines", strings.Count(string(b), "\n")))
	case "tools":
		s, err := a.lent(ctx, true)
		if err != nil {
			return err
		}
		defer s.Close()
		list, err := s.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		for _, t := range list.Tools {
			a.say(ctx, id, "tool "+t.Name)
		}
	case "lent", "lent-keyless":
		s, err := a.lent(ctx, verb == "lent")
		if err != nil {
			return err
		}
		defer s.Close()
		call := a.call(ctx, id, "mcp__pillion__"+name, coder.ToolKindOther, json.RawMessage(text))
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(text)})
		if err != nil {
			return err
		}
		said := r.Content[0].(*mcp.TextContent).Text
		a.end(ctx, id, call, !r.IsError, said)
		a.say(ctx, id, name+" says: "+said)
	case "plan":
		_ = a.conn.SessionUpdate(ctx, coder.SessionNotification{SessionId: id, Update: coder.UpdatePlan(coder.PlanEntry{Content: rest, Priority: coder.PlanEntryPriorityHigh, Status: coder.PlanEntryStatusInProgress})})
	case "chosen":
		a.mu.Lock()
		mode, effort := a.mode, a.effort
		a.mu.Unlock()
		a.say(ctx, id, fmt.Sprintf("mode %s, effort %s", mode, effort))
	case "offered":
		a.say(ctx, id, fmt.Sprintf("offered: read %v, write %v", a.fs.ReadTextFile, a.fs.WriteTextFile))
	case "die":
		fmt.Fprintln(os.Stderr, "fatal: out of cheese")
		os.Exit(3)
	case "hang":
		a.say(ctx, id, "hanging")
		<-ctx.Done()
		return os.WriteFile(filepath.Join(os.Getenv("FAKE_AGENT_STATE"), "cancelled"), nil, 0o600)
	case "read":
		r, err := a.conn.ReadTextFile(ctx, coder.ReadTextFileRequest{SessionId: id, Path: path})
		if err != nil {
			return err
		}
		a.say(ctx, id, fmt.Sprintf("%s is %q", name, r.Content))
	case "write":
		if _, err := a.conn.WriteTextFile(ctx, coder.WriteTextFileRequest{SessionId: id, Path: path, Content: text + "\n"}); err != nil {
			return err
		}
	case "self":
		call := a.call(ctx, id, "Edit "+name, coder.ToolKindEdit, map[string]any{"file_path": path})
		err := os.WriteFile(path, []byte(text+"\n"), 0o644)
		a.end(ctx, id, call, err == nil, "done")
		return err
	case "ask-edit":
		call := a.call(ctx, id, "Edit "+name, coder.ToolKindEdit, map[string]any{"file_path": path})
		ok, err := a.ask(ctx, id, call, "Edit "+name, coder.ToolKindEdit, map[string]any{"file_path": path}, []coder.ToolCallContent{coder.ToolDiffContent(path, text+"\n")})
		if ok {
			err = os.WriteFile(path, []byte(text+"\n"), 0o644)
		}
		a.end(ctx, id, call, ok && err == nil, "done")
		return err
	case "ask-run", "ask-run-bare":
		call := a.call(ctx, id, rest, coder.ToolKindExecute, map[string]any{"command": rest})
		var ok bool
		var err error
		if verb == "ask-run" {
			ok, err = a.ask(ctx, id, call, rest, coder.ToolKindExecute, map[string]any{"command": rest}, nil)
		} else {
			ok, err = a.askAbout(ctx, id, coder.ToolCallUpdate{ToolCallId: call})
		}
		if err != nil {
			return err
		}
		if !ok {
			a.end(ctx, id, call, false, "rejected")
			a.say(ctx, id, "not allowed: "+rest)
			return nil
		}
		cmd := exec.CommandContext(ctx, "bash", "-c", rest)
		cmd.Dir = cwd
		out, err := cmd.CombinedOutput()
		a.end(ctx, id, call, err == nil, string(out))
		a.say(ctx, id, "ran: "+strings.TrimSpace(string(out)))
	case "start":
		r, err := a.conn.CreateTerminal(ctx, coder.CreateTerminalRequest{SessionId: id, Command: rest, Cwd: &cwd})
		if err != nil {
			return err
		}
		a.started = append(a.started, r.TerminalId)
	case "wait", "kill":
		for _, t := range a.started {
			if verb == "kill" {
				// It must have begun: a command that is killed while the person is asked about it never runs.
				for out := ""; !strings.Contains(out, "ready"); {
					r, err := a.conn.TerminalOutput(ctx, coder.TerminalOutputRequest{SessionId: id, TerminalId: t})
					if err != nil {
						return err
					}
					out = r.Output
				}
				if _, err := a.conn.KillTerminal(ctx, coder.KillTerminalRequest{SessionId: id, TerminalId: t}); err != nil {
					return err
				}
			}
			if err := a.ended(ctx, id, t); err != nil {
				return err
			}
		}
		a.started = nil
	case "run":
		r, err := a.conn.CreateTerminal(ctx, coder.CreateTerminalRequest{SessionId: id, Command: rest, Cwd: &cwd})
		if err != nil {
			return err
		}
		return a.ended(ctx, id, r.TerminalId)
	}
	return nil
}

// ended waits until a command has ended, says how, and releases its terminal.
func (a *fakeAgent) ended(ctx context.Context, id coder.SessionId, t string) error {
	end, err := a.conn.WaitForTerminalExit(ctx, coder.WaitForTerminalExitRequest{SessionId: id, TerminalId: t})
	if err != nil {
		return err
	}
	out, err := a.conn.TerminalOutput(ctx, coder.TerminalOutputRequest{SessionId: id, TerminalId: t})
	if err != nil {
		return err
	}
	if _, err := a.conn.ReleaseTerminal(ctx, coder.ReleaseTerminalRequest{SessionId: id, TerminalId: t}); err != nil {
		return err
	}
	how := "exit -1"
	if end.ExitCode != nil {
		how = fmt.Sprintf("exit %d", *end.ExitCode)
	}
	if end.Signal != nil {
		how += " signal " + *end.Signal
	}
	a.say(ctx, id, fmt.Sprintf("%s: %s", how, strings.TrimSpace(out.Output)))
	return nil
}
