package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/config"
)

// A project's instructions import what its rules let the model read without a question, and files outside only in a trusted folder, where no
// rule denies them.
func TestWhatInstructionsMayImport(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "pillion.jsonc"), []byte(`{"permission": {"read": {"secret/*": "deny", "asked/*": "ask", "`+home+`/private/*": "deny"}, "external_directory": {"`+home+`/closed/*": "deny"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []bool{false, true} {
		c, problems := config.Load(config.Sources{Cwd: root, Root: root, Trusted: trusted})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		o := Imports(c, root)
		for path, want := range map[string]bool{"a.json": true, "docs/README": true, ".env": false, "x/.env.local": false, "secret/a.md": false, "asked/a.md": false} {
			if o.Inside(filepath.Join(root, path)) != want {
				t.Errorf("trusted %v: inside %s: want %v", trusted, path, want)
			}
		}
		for path, want := range map[string]bool{"style.md": true, "private/a.md": false, "closed/a.md": false} {
			if o.Outside(filepath.Join(home, path)) != (want && trusted) {
				t.Errorf("trusted %v: outside %s", trusted, path)
			}
		}
	}
}
