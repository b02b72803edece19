package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// The kernel has many names for one file below /proc and /dev/fd. A rule, and a person who is asked, must get the place
// that the name leads to: neither is a denied folder reached through /proc, nor is a file outside named as if it were
// the system's.
func TestNamesBelowProcAreJudgedByWhereTheyLead(t *testing.T) {
	s := newBackgroundSession(t, `{"external_directory": "ask", "read": "allow", "edit": "allow"}`)
	s.answer = permission.Reply{Kind: permission.Reject}
	outside := filepath.Join(s.env.Home, "elsewhere")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(outside, "notes.txt")
	if err := os.WriteFile(file, []byte("content of it\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	folder, err := os.Open(outside)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	t.Chdir(s.env.Home) // /proc/self/cwd leads here, wherever the sources lie
	up := filepath.Base(outside)
	pid := os.Getpid()
	for _, dir := range []string{
		"/proc/self/root" + outside, "/proc/thread-self/root" + outside, fmt.Sprintf("/proc/%d/root%s", pid, outside), fmt.Sprintf("/proc/self/task/%d/root%s", pid, outside),
		"/proc/self/cwd/" + up, "/proc/thread-self/cwd/" + up, "/proc/self/root/proc/self/root" + outside, "/proc/self/root/../../self/root" + outside,
		fmt.Sprintf("/proc/self/fd/%d", folder.Fd()), fmt.Sprintf("/proc/thread-self/fd/%d", folder.Fd()), fmt.Sprintf("/dev/fd/%d", folder.Fd()),
		"//proc//self/./root/" + outside,
	} {
		path := dir + "/notes.txt"
		for tool, input := range map[string]map[string]any{
			"read":  {"filePath": path},
			"write": {"filePath": path, "content": "other"},
			"edit":  {"filePath": path, "oldString": "content", "newString": "other"},
			"list":  {"path": dir},
			"glob":  {"path": dir, "pattern": "*"},
			"grep":  {"path": dir, "pattern": "content"},
		} {
			r, err := s.tool(tool, input)
			if err == nil || strings.Contains(r.Output, "content") || !askedFor(s, outside+"/*") {
				t.Errorf("%s %s: asked %s, %v, %q", tool, input, s.asks(), err, r.Output)
			}
		}
	}
	for _, path := range []string{fmt.Sprintf("/dev/fd/%d", opened.Fd()), fmt.Sprintf("/proc/self/fd/%d", opened.Fd())} {
		if r, err := s.tool("read", map[string]any{"filePath": path}); err == nil || !askedFor(s, outside+"/*") {
			t.Errorf("%s: asked %s, %v, %q", path, s.asks(), err, r.Output)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "content of it\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// askedFor reports whether the only question was one for a folder outside.
func askedFor(s *bashSession, pattern string) bool {
	return len(s.asked) == 1 && s.asked[0].Permission == "external_directory" && slices.Equal(s.asked[0].Patterns, []string{pattern})
}
