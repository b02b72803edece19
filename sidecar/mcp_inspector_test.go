package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The official inspector's command line against the real program.
func TestTheInspector(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	cli, err := filepath.Abs("../node_modules/@modelcontextprotocol/inspector-cli/build/cli.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cli); err != nil {
		t.Skip("npm ci first: " + err.Error())
	}
	atHome(t)
	dir := scratch(t)
	inspect := func(server []string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, slices.Concat([]string{cli, "--cli", os.Args[0], "mcp"}, server, args)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PILLION_TEST_MAIN=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", args, err.(*exec.ExitError).Stderr)
		}
		return string(out)
	}
	var list struct {
		Tools []struct {
			Name, Description string
			InputSchema       struct{ Type string }
			Annotations       struct{ ReadOnlyHint bool }
		}
	}
	if err := json.Unmarshal([]byte(inspect(nil, "--method", "tools/list")), &list); err != nil {
		t.Fatal(err)
	}
	readOnly := map[string]bool{}
	for _, x := range list.Tools {
		readOnly[x.Name] = x.Annotations.ReadOnlyHint
		if x.InputSchema.Type != "object" || x.Description == "" {
			t.Errorf("%+v", x)
		}
	}
	if edits, ok := readOnly["edit"]; !readOnly["read"] || edits || !ok {
		t.Errorf("%v", readOnly)
	}
	if out := inspect(nil, "--method", "tools/call", "--tool-name", "read", "--tool-arg", "filePath=a.txt"); !strings.Contains(out, "1: one") || strings.Contains(out, `"isError": true`) {
		t.Error(out)
	}
	if out := inspect(nil, "--method", "tools/call", "--tool-name", "write", "--tool-arg", "filePath=b.txt", "--tool-arg", "content=two"); !strings.Contains(out, `"isError": true`) || !strings.Contains(out, "--approve all") {
		t.Error(out)
	}
	if out := inspect([]string{"--approve=all"}, "--method", "tools/call", "--tool-name", "write", "--tool-arg", "filePath=b.txt", "--tool-arg", "content=two"); strings.Contains(out, `"isError": true`) {
		t.Error(out)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b.txt")); err != nil || string(b) != "two" {
		t.Errorf("%q %v", b, err)
	}
}
