package rules

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		".claude/rules/style.md":                      "Write short lines.",
		".claude/rules/api/paths.md":                  "---\npaths:\n  - src/api/**\n  - \"*.proto\"\n---\nCheck input.",
		".cursor/rules/always.mdc":                    "---\ndescription: x\nalwaysApply: true\n---\nAlways.",
		".cursor/rules/ts.mdc":                        "---\nglobs: *.ts,src/{a,b}/*.js\nalwaysApply: false\n---\nTypes.",
		".cursor/rules/asked.mdc":                     "---\ndescription: for releases\n---\nOnly when asked.",
		".cursor/rules/notes.md":                      "no rule",
		".github/instructions/go.instructions.md":     "---\napplyTo: '**/*.go'\n---\nGo.",
		".github/instructions/all.instructions.md":    "---\napplyTo: '**'\n---\nAll.",
		".github/instructions/broken.instructions.md": "---\napplyTo: [\n---\nX",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(root, ".claude/rules/link.md")); err != nil {
		t.Fatal(err)
	}
	got := map[string]Rule{}
	for _, r := range Find(root) {
		got[filepath.Base(r.Path)] = r
	}
	if len(got) != 7 {
		t.Errorf("%d rules: %v", len(got), got)
	}
	for name, always := range map[string]bool{"style.md": true, "paths.md": false, "always.mdc": true, "ts.mdc": false, "asked.mdc": false, "go.instructions.md": false, "all.instructions.md": true} {
		if got[name].Always() != always {
			t.Errorf("%s: always is %v", name, !always)
		}
	}
	for _, c := range []struct {
		name, path string
		want       bool
	}{
		{"paths.md", "src/api/a/b.ts", true}, {"paths.md", "src/web/a.ts", false}, {"paths.md", "x/y.proto", true},
		{"ts.mdc", "deep/x.ts", true}, {"ts.mdc", "src/b/x.js", true}, {"ts.mdc", "src/c/x.js", false}, {"go.instructions.md", "a.go", true}, {"asked.mdc", "a.go", false},
	} {
		if got[c.name].Matches(c.path) != c.want {
			t.Errorf("%s on %s: %v", c.name, c.path, !c.want)
		}
	}
}
