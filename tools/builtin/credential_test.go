//go:build unix && cgo

package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// "external_directory": "allow" is for other projects, not for keys: those are asked all the same.
func TestNoRuleForEverythingOutsideReadsCredentials(t *testing.T) {
	s := newBackgroundSession(t, `{"external_directory": "allow", "read": "allow"}`)
	s.answer = permission.Reply{Kind: permission.Reject}
	for name, asked := range map[string]bool{".ssh/id_rsa": true, ".aws/credentials": true, ".config/gh/hosts.yml": true, ".docker/config.json": true, "db/.pgpass": true, "old/.bash_history": true, ".config/pillion/pillion.jsonc": true, "other/notes.txt": false} {
		path := filepath.Join(s.env.Home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of it"), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := s.tool("read", map[string]any{"filePath": path})
		if asked != (len(s.asked) == 1) || asked != (err != nil) || asked == strings.Contains(r.Output, "content of it") {
			t.Errorf("%s: asked %s, %v, %q", name, s.asks(), err, r.Output)
		}
		if r, _ := s.tool("grep", map[string]any{"pattern": "content", "path": filepath.Dir(path)}); asked == strings.Contains(r.Output, "content of it") {
			t.Errorf("grep in %s: %q", name, r.Output)
		}
	}
	for _, path := range []string{"/etc/shadow", "/proc/self/environ", "/proc/thread-self/environ", "/proc/1/environ", "/proc/self/task/1/environ", "/proc/self/mem"} {
		if !secretive(path) {
			t.Errorf("%s counts as harmless", path)
		}
	}
	if r, err := s.tool("read", map[string]any{"filePath": "/proc/self/environ"}); err == nil {
		t.Errorf("this program's environment: %.80q", r.Output)
	}
	state := filepath.Join(s.env.StateDir, "auth.json")
	if err := os.MkdirAll(s.env.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, []byte("content of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := s.tool("read", map[string]any{"filePath": state}); err == nil {
		t.Errorf("Pillion's own keys: %q", r.Output)
	}
}
