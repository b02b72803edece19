//go:build unix

package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// A name in the project may be another name of a file outside. No rule for edits in the project covers that one.
func TestAChangeThroughAHardLinkIsAsked(t *testing.T) {
	s := newBackgroundSession(t, `{"edit": "allow", "read": "allow", "external_directory": "allow"}`)
	outside, linked, single := filepath.Join(s.env.Home, "notes.txt"), filepath.Join(s.env.Cwd, "linked.txt"), filepath.Join(s.env.Cwd, "single.txt")
	if err := os.MkdirAll(s.env.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{outside, single} {
		if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(outside, linked); err != nil {
		t.Fatal(err)
	}
	change := map[string]map[string]any{
		"write":       {"filePath": linked, "content": "two\n"},
		"edit":        {"filePath": linked, "oldString": "one", "newString": "two"},
		"multiedit":   {"filePath": linked, "edits": []map[string]any{{"oldString": "one", "newString": "two"}}},
		"apply_patch": {"patchText": "*** Begin Patch\n*** Update File: linked.txt\n@@\n-one\n+two\n*** End Patch"},
	}
	s.answer = permission.Reply{Kind: permission.Reject}
	for _, path := range []string{linked, single} {
		s.must("read", map[string]any{"filePath": path})
	}
	for tool, input := range change {
		_, err := s.tool(tool, input)
		if err == nil || len(s.asked) != 1 || !s.asked[0].MustAsk || len(s.asked[0].Always) != 0 || !strings.Contains(s.asked[0].Why, "linked.txt is a hard link: the file has 2 names") {
			t.Errorf("%s: %v, asked %+v", tool, err, s.asked)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "one\n" {
		t.Errorf("changed without a yes: %q, %v", b, err)
	}
	if _, err := s.tool("edit", map[string]any{"filePath": single, "oldString": "one", "newString": "two"}); err != nil || len(s.asked) != 0 {
		t.Errorf("a file with one name: %v, asked %+v", err, s.asked)
	}
	s.answer = permission.Reply{Kind: permission.Once}
	if _, err := s.tool("edit", change["edit"]); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "two\n" {
		t.Errorf("after the yes: %q, %v", b, err)
	}
}
