//go:build unix && cgo

package builtin

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
)

// Parameters under the names that other programs' tools have for them.
func TestParametersAsModelsCallThem(t *testing.T) {
	b := newBench(t, nil)
	b.put("src/a.go", "one\ntwo\nthree\n")
	b.put("src/b.txt", "two\n")
	for _, c := range []struct {
		tool        tools.Tool
		input, want string
	}{
		{Read(b.env), `{"path":"src/a.go","start_line":2,"max_lines":1}`, "2: two"},
		{Read(b.env), `{"target_file":"src/a.go"}`, "3: three"},
		{Glob(b.env), `{"glob_pattern":"*.txt","target_directory":"src"}`, "b.txt"},
		{Grep(b.env), `{"query":"two","dir":"src","glob":"*.txt"}`, "b.txt:"},
		{List(b.env), `{"dir":"src"}`, "a.go"},
		{Edit(b.env), `{"path":"src/a.go","old_str":"one","new_str":"1"}`, ""},
		{MultiEdit(b.env), `{"file":"src/a.go","changes":[{"old_string":"two","new_string":"2"}]}`, ""},
		{ApplyPatch(b.env), `{"input":"*** Begin Patch\n*** Update File: src/a.go\n@@\n-three\n+3\n*** End Patch"}`, ""},
		{Write(b.env), `{"file":"src/c.go","contents":"new\n"}`, ""},
	} {
		r, err := b.call(c.tool, c.input)
		if err != nil || !strings.Contains(r.Output, c.want) {
			t.Errorf("%s %s: %v\n%s", c.tool.ID, c.input, err, r.Output)
		}
	}
	if got := b.text("src/a.go"); got != "1\n2\n3\n" {
		t.Errorf("a.go: %q", got)
	}
	if got := b.text("src/c.go"); got != "new\n" {
		t.Errorf("c.go: %q", got)
	}
	bash := newBashSession(t, `{"bash": "allow"}`)
	r, err := tools.Invoke(t.Context(), Bash(bash.env), []byte(`{"cmd":"pwd","cwd":"sub"}`), &tools.Call{SessionID: "s", CallID: "c", Tool: "bash", Host: tools.Host{Gate: bash.gate}}, tools.CapOptions{})
	if err != nil || !strings.Contains(r.Output, "/sub") {
		t.Errorf("bash: %v %s", err, r.Output)
	}
	// What is there counts; another name beside it means nothing.
	if r, err := b.call(Grep(b.env), `{"pattern":"new","query":"zzz"}`); err != nil || !strings.Contains(r.Output, "c.go") {
		t.Errorf("%v %s", err, r.Output)
	}
}
