// Package windows drives the program for Windows under Wine, as an ACP editor that runs on Linux. scripts/windows-test.sh builds it.
package windows

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coder "github.com/coder/acp-go-sdk"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// machine is a Windows with a project on drive C.
type machine struct {
	t       *testing.T
	exe     string
	prefix  string
	project string // as Linux names it
	dir     string // as Windows names it
	env     []string
}

// newMachine makes an empty project and, for the program, an empty home folder. model is what it asks.
func newMachine(t *testing.T, model *wiretest.Server) *machine {
	exe, prefix := os.Getenv("PILLION_WINDOWS_EXE"), os.Getenv("WINEPREFIX")
	if exe == "" {
		t.Skip("not on Windows: scripts/windows-test.sh runs this under Wine")
	}
	root, err := os.MkdirTemp(filepath.Join(prefix, "drive_c"), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	m := &machine{t: t, exe: exe, prefix: prefix, project: filepath.Join(root, "My Project"), dir: `C:\` + filepath.Base(root) + `\My Project`}
	home := `C:\` + filepath.Base(root) + `\home`
	m.env = append(os.Environ(), "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home, "XDG_DATA_HOME="+home, "WINEPATH=")
	m.put(filepath.Join(root, "home", "pillion", "pillion.jsonc"), fmt.Sprintf(`{"lsp": false, "model": "mine/m", "small_model": "mine/m", "provider": {"mine": {"baseURL": %q, "models": ["m"]}}}`, model.OpenAIURL()))
	m.put(filepath.Join(m.project, "a.txt"), "one\r\ntwo\r\n")
	return m
}

func (m *machine) put(path, text string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), "wine", append([]string{m.exe}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = m.env, m.project, m.t.Output()
	return cmd
}

// run runs the program to its end and returns what it printed.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).Output()
	if err != nil {
		m.t.Fatalf("pillion %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// editor is an editor whose person allows everything.
type editor struct {
	coder.Client // what is not needed

	mu     sync.Mutex
	titles []string            // guarded by mu; of tool calls
	asked  []string            // guarded by mu; of approval requests
	files  map[string]struct{} // guarded by mu; paths of diffs
}

func (e *editor) RequestPermission(_ context.Context, p coder.RequestPermissionRequest) (coder.RequestPermissionResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.ToolCall.Title != nil {
		e.asked = append(e.asked, *p.ToolCall.Title)
	}
	for _, c := range p.ToolCall.Content {
		if c.Diff != nil {
			e.files[c.Diff.Path] = struct{}{}
		}
	}
	return coder.RequestPermissionResponse{Outcome: coder.NewRequestPermissionOutcomeSelected("once")}, nil
}

func (e *editor) SessionUpdate(context.Context, coder.SessionNotification) error { return nil }

// connect starts `pillion acp`. kill ends it as the system does, without a word.
func (m *machine) connect(ctx context.Context) (e *editor, conn *coder.ClientSideConnection, kill func()) {
	m.t.Helper()
	cmd := m.command("acp")
	in, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	m.t.Cleanup(kill)
	e = &editor{files: map[string]struct{}{}}
	conn = coder.NewClientSideConnection(e, in, out)
	if _, err := conn.Initialize(ctx, coder.InitializeRequest{ProtocolVersion: coder.ProtocolVersionNumber}); err != nil {
		m.t.Fatal(err)
	}
	return e, conn, kill
}

func call(name, input string) wiretest.Step {
	return wiretest.Step{Calls: []wiretest.Call{{Name: name, Input: []byte(input)}}}
}

// A turn edits a file with CRLF line ends, meets names that are none, and a command without a shell; the session is there after a kill.
func TestATurnOnWindows(t *testing.T) {
	model := wiretest.New(t,
		// The session's title is asked for beside the turn. Without a step of its own that request took one of the turn's when it came early.
		wiretest.Step{When: "You name a conversation after its first message", Text: "A change"},
		call("read", `{"filePath":"a.txt"}`),
		call("edit", `{"filePath":"A.TXT","oldString":"one\ntwo","newString":"one\nTWO\nthree"}`),
		call("write", `{"filePath":"aux.go","content":"package aux"}`),
		call("read", `{"filePath":"a.txt::$DATA"}`),
		call("read", `{"filePath":"\\\\127.0.0.1\\c$\\x"}`),
		call("bash", `{"command":"echo hello"}`),
		wiretest.Step{Text: "Done."})
	m := newMachine(t, model)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e, conn, kill := m.connect(ctx)
	made, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: m.dir, McpServers: []coder.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: made.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock("change it")}}); err != nil {
		t.Fatal(err)
	}
	kill()
	if got, err := os.ReadFile(filepath.Join(m.project, "a.txt")); string(got) != "one\r\nTWO\r\nthree\r\n" {
		t.Errorf("a.txt is %q, %v", got, err)
	}
	if _, ok := e.files[m.dir+`\A.TXT`]; !ok { // as the model named it
		t.Errorf("the proposal was for %v, and the model was told %v", e.files, model.Requests()[2].Results())
	}
	said := ""
	for _, r := range model.Requests() {
		said += string(r.Body) + "\n"
	}
	for _, want := range []string{"is the name of a device on Windows", "a name cannot contain", "is on another machine", "install Git for Windows"} {
		if !strings.Contains(said, want) {
			t.Errorf("the model was not told %q", want)
		}
	}
	if list := m.run("sessions", "list"); !strings.Contains(list, string(made.SessionId)) {
		t.Errorf("after the kill the session is not in\n%s", list)
	}
}

// Cancel ends a turn whose model does not answer.
func TestCancelOnWindows(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	model := wiretest.New(t, wiretest.Step{Text: "never", Wait: never})
	m := newMachine(t, model)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, conn, _ := m.connect(ctx)
	made, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: m.dir, McpServers: []coder.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if _, err := model.Await(ctx, 1); err == nil {
			_ = conn.Cancel(ctx, coder.CancelNotification{SessionId: made.SessionId})
		}
	}()
	got, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: made.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock("wait")}})
	if err != nil || got.StopReason != coder.StopReasonCancelled {
		t.Errorf("%v, %v", got.StopReason, err)
	}
}
