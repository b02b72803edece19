package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/lend"
	"github.com/pillion-dev/pillion/sidecar/terminal"
)

// served connects a client to a server of dir's tools. ask answers what the person is asked; nil: the client cannot ask.
func served(t *testing.T, dir string, how terminal.Approve, ask func(*sdk.ElicitParams) *sdk.ElicitResult) *sdk.ClientSession {
	t.Helper()
	atHome(t)
	l := lend.New(lend.Options{App: app.Options{Place: app.NewWorkplace(version), NoLSP: true}, Dir: dir, Approve: how, Tools: lend.DefaultTools})
	t.Cleanup(l.Close)
	s, err := l.ForClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	here, there := sdk.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	o := &sdk.ClientOptions{}
	if ask != nil {
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) { return ask(r.Params), nil }
	}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "other", Version: "1"}, o).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func callTool(t *testing.T, c *sdk.ClientSession, name string, input any) (string, bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: input})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text := ""
	for _, x := range r.Content {
		if x, ok := x.(*sdk.TextContent); ok {
			text += x.Text
		}
	}
	return text, r.IsError
}

func scratch(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestToolsAreServed(t *testing.T) {
	dir := scratch(t)
	var asked []string
	c := served(t, dir, terminal.Ask, func(p *sdk.ElicitParams) *sdk.ElicitResult {
		asked = append(asked, p.Message)
		if len(asked) == 1 {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "reject", "message": "not in capitals"}}
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}
	})
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range list.Tools {
		names = append(names, x.Name)
	}
	for _, want := range []string{"read", "grep", "edit", "apply_patch", "lsp", "symbol_rename"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not served: %v", want, names)
		}
	}
	for _, no := range []string{"bash", "task", "invalid", "todowrite"} {
		if slices.Contains(names, no) {
			t.Errorf("%s is served", no)
		}
	}
	edit := map[string]any{"filePath": "a.txt", "oldString": "one", "newString": "ONE"}
	loosely := map[string]any{"filePath": "a.txt", "oldString": "  one", "newString": "ONE"} // no exact quotation shows that it was read
	if out, failed := callTool(t, c, "edit", loosely); !failed || !strings.Contains(out, "read") {
		t.Errorf("an edit of an unread file: %q", out)
	}
	if out, failed := callTool(t, c, "read", map[string]any{"filePath": "a.txt"}); failed || !strings.Contains(out, "1: one") {
		t.Errorf("%q", out)
	}
	if out, failed := callTool(t, c, "edit", edit); !failed || !strings.Contains(out, "not in capitals") {
		t.Errorf("a rejected edit: %q", out)
	}
	if out, failed := callTool(t, c, "edit", edit); failed {
		t.Errorf("an accepted edit: %q", out)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "ONE\ntwo\n" {
		t.Errorf("%q", b)
	}
	if len(asked) != 2 || !strings.Contains(asked[0], "-one\n+ONE") {
		t.Errorf("asked %q", asked)
	}
	if out, failed := callTool(t, c, "edit", map[string]any{"filePath": 5}); !failed || !strings.Contains(out, "filePath") {
		t.Errorf("%q", out)
	}
}

func TestAClientThatCannotAskIsRefused(t *testing.T) {
	dir := scratch(t)
	c := served(t, dir, terminal.Ask, nil)
	if out, failed := callTool(t, c, "write", map[string]any{"filePath": "new.txt", "content": "x"}); !failed || !strings.Contains(out, "--approve all") {
		t.Errorf("%q", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
		t.Error("written without approval")
	}
	c = served(t, dir, terminal.All, nil)
	if out, failed := callTool(t, c, "write", map[string]any{"filePath": "new.txt", "content": "x"}); failed {
		t.Errorf("%q", out)
	}
}

// The real program, over HTTP: only with its token, only on loopback.
func TestServedOverHTTP(t *testing.T) {
	atHome(t)
	dir := scratch(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "mcp", "--http", "127.0.0.1:0", "--cwd", dir)
	cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", tokenVariable+"=0123456789abcdef")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	var address string
	if _, err := fmt.Fscanf(out, "pillion: MCP on %s\n", &address); err != nil {
		t.Fatal(err)
	}
	r, err := http.Post(address, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%v %v", r, err)
	}
	_ = r.Body.Close()
	// A page of another origin is refused even where it has learned the token.
	fromPage, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer 0123456789abcdef", "Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"} {
		fromPage.Header.Set(name, value)
	}
	if r, err = http.DefaultClient.Do(fromPage); err != nil || r.StatusCode != http.StatusForbidden {
		t.Fatalf("from another origin: %v %v", r, err)
	}
	_ = r.Body.Close()
	tr := &sdk.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: tokenTripper("0123456789abcdef")}}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "other", Version: "1"}, nil).Connect(t.Context(), tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, failed := callTool(t, c, "read", map[string]any{"filePath": "a.txt"}); failed || !strings.Contains(text, "1: one") {
		t.Errorf("%q", text)
	}
	for _, bad := range []string{"0.0.0.0:0", "192.168.1.1:80", "nonsense"} {
		if err := serveMCP(t.Context(), dir, terminal.None, nil, bad); err == nil {
			t.Errorf("%s: served", bad)
		}
	}
}

type tokenTripper string

func (k tokenTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// Pillion uses Pillion: a configured MCP server's tool, called by hand like a model's, asked under its own name.
func TestAConfiguredServersTools(t *testing.T) {
	home := atHome(t)
	dir := scratch(t)
	user := filepath.Join(home, "config", "pillion")
	if err := os.MkdirAll(user, 0o700); err != nil {
		t.Fatal(err)
	}
	conf, _ := json.Marshal(map[string]any{"mcp": map[string]any{
		"self": map[string]any{"command": []string{os.Args[0], "mcp", "--tools", "read"}, "environment": map[string]string{"PILLION_TEST_MAIN": "1", "GORACE": os.Getenv("GORACE")}},
		"off":  map[string]any{"command": []string{"/no/such"}, "enabled": false},
	}})
	if err := os.WriteFile(filepath.Join(user, "pillion.jsonc"), conf, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1"), dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := run("mcp", "list"); !strings.Contains(out, "self  ready") || !strings.Contains(out, "1 tools") || strings.Contains(out, "off") {
		t.Errorf("%s", out)
	}
	if out := run("mcp", "test", "self"); !strings.Contains(out, "tool    self_read") {
		t.Errorf("%s", out)
	}
	if out := run("tool", "call", "self_read", "--input", `{"filePath":"a.txt"}`, "--approve", "none"); !strings.Contains(out, "no user can answer") {
		t.Errorf("without approval: %s", out)
	}
	if out := run("tool", "call", "self_read", "--input", `{"filePath":"a.txt"}`, "--approve", "all"); !strings.Contains(out, "1: one") {
		t.Errorf("%s", out)
	}
}

func TestServersAreAddedAndRemoved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", "pillion.jsonc")
	if err := editConfig(file, []string{"mcp", "a/b"}, map[string]any{"url": "https://x.example"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{\n\t// mine\n\t\"model\": \"x/y\", // the best\n\t\"mcp\": {\"old\": {\"url\": \"https://o.example\"}},\n}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := editConfig(file, []string{"mcp", "new"}, map[string]any{"command": []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	if err := editConfig(file, []string{"mcp", "old"}, nil); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(file)
	for _, want := range []string{"// mine", "// the best", `"new"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if info, _ := os.Stat(file); strings.Contains(string(got), "old") || info.Mode().Perm() != 0o640 {
		t.Errorf("%s %v", got, info.Mode())
	}
	if err := editConfig(file, []string{"mcp", "old"}, nil); err == nil {
		t.Error("removed twice")
	}
	if err := os.WriteFile(file, []byte("{nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := editConfig(file, []string{"mcp", "x"}, 1); err == nil || !strings.Contains(err.Error(), "config check") {
		t.Error(err)
	}
}
