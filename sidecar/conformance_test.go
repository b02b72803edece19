package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	coder "github.com/coder/acp-go-sdk"
	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/editors"
)

// coderClient is an editor written with somebody else's library.
type coderClient struct {
	mu      sync.Mutex
	text    strings.Builder
	kinds   []string
	asked   []coder.RequestPermissionRequest
	choose  string
	content map[string]string
}

func (c *coderClient) ReadTextFile(_ context.Context, p coder.ReadTextFileRequest) (coder.ReadTextFileResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := c.content[p.Path]
	if !ok {
		return coder.ReadTextFileResponse{}, errors.New("no such document")
	}
	return coder.ReadTextFileResponse{Content: text}, nil
}

func (c *coderClient) WriteTextFile(_ context.Context, p coder.WriteTextFileRequest) (coder.WriteTextFileResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.content[p.Path] = p.Content
	return coder.WriteTextFileResponse{}, nil
}

func (c *coderClient) RequestPermission(_ context.Context, p coder.RequestPermissionRequest) (coder.RequestPermissionResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, p)
	return coder.RequestPermissionResponse{Outcome: coder.NewRequestPermissionOutcomeSelected(coder.PermissionOptionId(c.choose))}, nil
}

func (c *coderClient) SessionUpdate(_ context.Context, n coder.SessionNotification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil:
		c.text.WriteString(u.AgentMessageChunk.Content.Text.Text)
	case u.ToolCall != nil:
		c.kinds = append(c.kinds, string(u.ToolCall.Kind))
	}
	return nil
}

var errNotOffered = errors.New("not announced")

func (c *coderClient) CreateTerminal(context.Context, coder.CreateTerminalRequest) (coder.CreateTerminalResponse, error) {
	return coder.CreateTerminalResponse{}, errNotOffered
}
func (c *coderClient) KillTerminal(context.Context, coder.KillTerminalRequest) (coder.KillTerminalResponse, error) {
	return coder.KillTerminalResponse{}, errNotOffered
}
func (c *coderClient) TerminalOutput(context.Context, coder.TerminalOutputRequest) (coder.TerminalOutputResponse, error) {
	return coder.TerminalOutputResponse{}, errNotOffered
}
func (c *coderClient) ReleaseTerminal(context.Context, coder.ReleaseTerminalRequest) (coder.ReleaseTerminalResponse, error) {
	return coder.ReleaseTerminalResponse{}, errNotOffered
}
func (c *coderClient) WaitForTerminalExit(context.Context, coder.WaitForTerminalExitRequest) (coder.WaitForTerminalExitResponse, error) {
	return coder.WaitForTerminalExitResponse{}, errNotOffered
}

func TestConformanceWithCodersClient(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	path := filepath.Join(r.cwd, "a.txt")
	write(t, path, "one\ntwo\n")
	c := &coderClient{choose: "once", content: map[string]string{path: "one\ntwo\n"}}
	// The rig's own editor reads the same pipe; this client takes its place.
	a, b := pipes()
	served := make(chan error, 1)
	go func() {
		served <- acp.NewConnection(r.host, b, editors.NewBuffers(nil), "").Serve(context.Background())
	}()
	conn := coder.NewClientSideConnection(c, a, a)
	ctx := t.Context()
	init, err := conn.Initialize(ctx, coder.InitializeRequest{ProtocolVersion: coder.ProtocolVersionNumber, ClientCapabilities: coder.ClientCapabilities{Fs: coder.FileSystemCapabilities{ReadTextFile: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if init.ProtocolVersion != 1 || !init.AgentCapabilities.LoadSession {
		t.Errorf("initialize: %+v", init)
	}
	session, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: r.cwd, McpServers: []coder.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"two","newString":"TWO"}`), says("Done."))
	end, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: session.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock("go")}})
	if err != nil {
		t.Fatal(err)
	}
	if end.StopReason != coder.StopReasonEndTurn {
		t.Errorf("stop reason %s", end.StopReason)
	}
	started := make(chan struct{})
	r.model.steps = append(r.model.steps, hangs(started))
	go func() {
		<-started
		_ = conn.Cancel(ctx, coder.CancelNotification{SessionId: session.SessionId})
	}()
	if end, err = conn.Prompt(ctx, coder.PromptRequest{SessionId: session.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock("hang")}}); err != nil || end.StopReason != coder.StopReasonCancelled {
		t.Errorf("cancel: %+v, %v", end, err)
	}
	if _, err := conn.SetSessionMode(ctx, coder.SetSessionModeRequest{SessionId: session.SessionId, ModeId: "plan"}); err != nil {
		t.Error(err)
	}
	if _, err := conn.SetSessionMode(ctx, coder.SetSessionModeRequest{SessionId: session.SessionId, ModeId: "none"}); err == nil {
		t.Error("an unknown mode was accepted")
	}
	_ = a.Close()
	<-served
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := read(t, path); got != "one\nTWO\n" {
		t.Errorf("the file is %q", got)
	}
	if got := strings.Join(c.kinds, " "); got != "read edit" {
		t.Errorf("tool calls: %s", got)
	}
	if !strings.HasPrefix(c.text.String(), "Done.") {
		t.Errorf("text: %q", c.text.String())
	}
	if len(c.asked) != 1 || len(c.asked[0].ToolCall.Content) == 0 || c.asked[0].ToolCall.Content[0].Diff == nil {
		t.Errorf("asked: %+v", c.asked)
	}
}
