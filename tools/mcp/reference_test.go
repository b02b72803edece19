package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools"
)

// reference starts one of the servers that MCP's own authors publish, as npm installed it for the tests.
func reference(t *testing.T, name string, args []string, change func(*Options)) *Set {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	file, err := filepath.Abs("../../node_modules/@modelcontextprotocol/server-" + name + "/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Skip("npm ci first: " + err.Error())
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Root: root, Servers: []Server{{Name: name, Command: append([]string{node, file}, args...)}}}
	if change != nil {
		change(&o)
	}
	s := started(t, New(o))
	if st := s.Statuses()[0]; st.State != Ready {
		t.Fatalf("%+v", st)
	}
	return s
}

// eventually waits for a tool that comes with a changed list.
func eventually(t *testing.T, s *Set, id string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) { // the server tells the set, nobody tells the test
		if slices.ContainsFunc(s.Tools(t.Context(), "ses"), func(x tools.Tool) bool { return x.ID == id }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", id)
		}
	}
}

// person answers a form by the titles of its fields; what it does not know it leaves empty.
type person map[string][]string

func (p person) AskQuestions(_ context.Context, _ *tools.Call, qs []tools.Question) ([][]string, error) {
	if p == nil {
		return nil, tools.ErrDismissed
	}
	out := make([][]string, len(qs))
	for i, q := range qs {
		out[i] = p[q.Header]
	}
	return out, nil
}

func TestTheReferenceServer(t *testing.T) {
	s := reference(t, "everything", nil, func(o *Options) {
		o.Sample = func(_ context.Context, _ string, r Sample) (Sampled, error) {
			return Sampled{Text: "heard: " + r.Messages[0].Text, Model: "scripted", Stop: "endTurn"}, nil
		}
	})
	if r, err := run(t, s, "everything_echo", `{"message":"hello"}`, tools.Host{}); err != nil || r.Output != "Echo: hello" {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := run(t, s, "everything_get-sum", `{"a":"x"}`, tools.Host{}); err == nil || !strings.Contains(err.Error(), "a") {
		t.Errorf("wrong arguments: %v", err)
	}
	r, err := run(t, s, "everything_get-tiny-image", `{}`, tools.Host{})
	if err != nil || len(r.Attachments) != 1 || r.Attachments[0].Mime != "image/png" || !strings.HasPrefix(string(r.Attachments[0].Data), "\x89PNG") || !strings.Contains(r.Output, "MCP logo") {
		t.Errorf("%q %d %v", r.Output, len(r.Attachments), err)
	}
	if r, err := run(t, s, "everything_get-structured-content", `{"location":"New York"}`, tools.Host{}); err != nil || r.Metadata["structured"] == nil || !strings.Contains(r.Output, "temperature") {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := run(t, s, "everything_get-resource-links", `{"count":2}`, tools.Host{}); err != nil || strings.Count(r.Output, "demo://resource/") != 2 {
		t.Errorf("%q %v", r.Output, err)
	}
	var seen atomic.Int32 // the last notification may still be under way when the answer is there
	tool := byName(t, s.Tools(t.Context(), "ses"), "everything_trigger-long-running-operation")
	r, err = tool.Run(t.Context(), json.RawMessage(`{"duration":0.2,"steps":4}`), &tools.Call{CallID: "c1", Host: tools.Host{Gate: &gate{}}, OnMetadata: func(u tools.Update) {
		if _, ok := u.Metadata["progress"].(float64); ok {
			seen.Add(1)
		}
	}})
	if err != nil || seen.Load() == 0 || !strings.Contains(r.Output, "completed") {
		t.Errorf("%q %v, told %d times", r.Output, err, seen.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = tool.Run(ctx, json.RawMessage(`{"duration":600,"steps":6000}`), &tools.Call{CallID: "c2", Host: tools.Host{Gate: &gate{}}, OnMetadata: func(tools.Update) { cancel() }})
	if cancel(); !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: %v", err)
	}

	// What depends on the client comes after the handshake, with a changed list.
	eventually(t, s, "everything_trigger-elicitation-request")
	answers := person{"String": {"Ann"}, "Boolean": {"Yes"}, "String with email format": {"ann@example.com"}, "Number in range 1-1000": {"7.5"}, "Titled Single Select Enum": {"Wonder Woman"},
		"Untitled Multiple Select Enum": {"Piano", "Bass"}, "Titled Multiple Select Enum": {"Trout"}, "Legacy Titled Single Select Enu…": {"Fish"}, "String with date format": {"2000-02-29"}}
	r, err = run(t, s, "everything_trigger-elicitation-request", `{}`, tools.Host{Questions: answers})
	if err != nil {
		t.Fatal(err)
	}
	_, raw, _ := strings.Cut(r.Output, "Raw result: ")
	var got struct {
		Action  string
		Content map[string]any
	}
	if err := json.Unmarshal([]byte(raw), &got); err != nil || got.Action != "accept" {
		t.Fatalf("%q %v", r.Output, err)
	}
	for name, want := range map[string]any{"name": "Ann", "check": true, "email": "ann@example.com", "number": 7.5, "integer": 42.0, "titledSingleSelectEnum": "hero-3", "untitledSingleSelectEnum": "Monica", "birthdate": "2000-02-29"} {
		if got.Content[name] != want {
			t.Errorf("%s: %v", name, got.Content[name])
		}
	}
	if _, ok := got.Content["homepage"]; ok {
		t.Errorf("a field that was left out: %v", got.Content)
	}
	if r, err := run(t, s, "everything_trigger-elicitation-request", `{}`, tools.Host{Questions: person(nil)}); err != nil || !strings.Contains(r.Output, "cancelled") {
		t.Errorf("dismissed: %q %v", r.Output, err)
	}
	eventually(t, s, "everything_trigger-sampling-request")
	g := &gate{}
	if r, err := run(t, s, "everything_trigger-sampling-request", `{"prompt":"why"}`, tools.Host{Gate: g}); err != nil || !strings.Contains(r.Output, "heard: Resource trigger-sampling-request context: why") || !slices.Contains(g.asked, "mcp_sampling everything") {
		t.Errorf("%q %v %v", r.Output, err, g.asked)
	}
}

func TestTheReferenceServersResourcesAndPrompts(t *testing.T) {
	s := reference(t, "everything", nil, nil)
	all := s.Resources(t.Context(), "everything")
	if !slices.ContainsFunc(all, func(r Resource) bool { return r.Template && r.URI == "demo://resource/dynamic/text/{resourceId}" }) || !slices.ContainsFunc(all, func(r Resource) bool { return strings.HasSuffix(r.URI, "architecture.md") }) {
		t.Errorf("%+v", all)
	}
	if r, err := run(t, s, "read_mcp_resource", `{"server":"everything","uri":"demo://resource/dynamic/text/7"}`, tools.Host{}); err != nil || !strings.Contains(r.Output, "Resource 7: This is a plaintext resource") {
		t.Errorf("%q %v", r.Output, err)
	}
	if _, err := run(t, s, "read_mcp_resource", `{"server":"everything","uri":"demo://nowhere"}`, tools.Host{}); err == nil || !strings.Contains(err.Error(), "everything: ") {
		t.Error(err)
	}
	if r, err := s.Expand(t.Context(), "everything:args-prompt", []string{"Bonn", "North", "Rhine"}); err != nil || r.Output != "What's weather in Bonn, North Rhine?" {
		t.Errorf("%q %v", r.Output, err)
	}
	if _, err := s.Expand(t.Context(), "everything:args-prompt", nil); err == nil || !strings.Contains(err.Error(), "needs city") {
		t.Error(err)
	}
}

func TestTheReferenceFilesystem(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// It serves the client's roots in the place of the folder it was started with.
	s := reference(t, "filesystem", []string{dir}, func(o *Options) { o.Root = dir })
	path := filepath.Join(dir, "a b.txt")
	in, _ := json.Marshal(map[string]string{"path": path, "content": "one\n"})
	if _, err := run(t, s, "filesystem_write_file", string(in), tools.Host{}); err != nil {
		t.Fatal(err)
	}
	if r, err := run(t, s, "filesystem_read_text_file", string(in), tools.Host{}); err != nil || r.Output != "one\n" {
		t.Errorf("%q %v", r.Output, err)
	}
	out, _ := json.Marshal(map[string]string{"path": "/etc/passwd"})
	if _, err := run(t, s, "filesystem_read_text_file", string(out), tools.Host{}); err == nil || !strings.Contains(err.Error(), "outside allowed directories") {
		t.Errorf("%v", err)
	}
}
