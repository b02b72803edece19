package lspbridge

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

var alternatingEdits = flag.Int("alternating", 10, "edits a server of TestAlternatingEdits; 200 for the whole proof")

// Every version has a mistake of its own, or none, by turns; half of them are proposals that are taken back, the others
// are typed or written. An answer names exactly its own version's mistake: an older one's would be stale, and so would be
// "no problems" where there is one.
func TestAlternatingEdits(t *testing.T) {
	for _, c := range []struct {
		name, server string
		files        map[string]string
		file         string
		mistake      string // %s is its name
		bin          string // below .cache/servers; "" is node_modules/.bin
	}{
		{"gopls", "gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "a.go": "package x\n\nvar N = 1\n"}, "a.go", "var _ = %s\n", ""},
		{"typescript-language-server", "typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true}}`, "a.ts": "export const n = 1;\n"}, "a.ts", "%s;\n", ""},
		{"typescript 7", "typescript", map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true}}`, "a.ts": "export const n = 1;\n"}, "a.ts", "%s;\n", "ts7"},
		{"pyright", "pyright", map[string]string{"pyproject.toml": "", "a.py": "n = 1\n"}, "a.py", "print(%s)\n", ""},
		{"clangd", "clangd", map[string]string{"compile_flags.txt": "-std=c++17\n", "a.cpp": "int n = 1;\n"}, "a.cpp", "int f() { return %s; }\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, root := project(t, c.server, c.files)
			if c.bin != "" {
				bin := filepath.Join(filepath.Dir(filepath.Dir(m.o.Bin[0])), c.bin, "node_modules", ".bin")
				m = New(Options{Root: root, Bin: []string{bin}, Trusted: true, Idle: -1})
				t.Cleanup(func() { m.Close(context.Background()) })
				if m.programs.typescript7(root) == nil {
					t.Skip("TypeScript 7 is not installed: testdata/install-servers.sh")
				}
			}
			path, base := filepath.Join(root, c.file), c.files[c.file]
			var mu sync.Mutex
			typed, isTyped := "", false
			m.o.Buffer = func(p string) (string, bool) {
				mu.Lock()
				defer mu.Unlock()
				return typed, isTyped && p == path
			}
			ctx := longer(t)
			if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh || len(r.Items) != 0 {
				t.Fatalf("at first %s %q %q", r.Certainty, r.Reason, messages(r.Items))
			}
			var took time.Duration
			for i := range *alternatingEdits {
				mark := fmt.Sprintf("missing%dx", i)
				text := base
				if i%2 == 0 {
					text += fmt.Sprintf(c.mistake, mark)
				}
				edit := []Proposal{{Path: path, Text: text}}
				ctx, began := longer(t), time.Now()
				var items []change.Problem
				var state change.Certainty
				how := []string{"proposed", "proposed", "typed", "typed", "written", "written"}[i%6]
				switch how {
				case "proposed":
					d := m.Check(ctx, edit)
					items, state = d.Files[0].Items, d.Certainty
				case "typed":
					mu.Lock()
					typed, isTyped = text, true
					mu.Unlock()
					r := m.Diagnostics(ctx, path)
					items, state = r.Items, r.Certainty
				case "written":
					mu.Lock()
					isTyped = false
					mu.Unlock()
					write(t, path, text)
					d := m.Changed(ctx, edit)
					items, state = d.Files[0].Items, d.Certainty
				}
				took += time.Since(began)
				said := messages(items)
				if state != change.Fresh || strings.Count(said, "missing") != strings.Count(said, mark) || strings.Contains(said, mark) != (i%2 == 0) {
					t.Fatalf("edit %d, %s: %s, of %s it says %q", i, how, state, mark, said)
				}
			}
			t.Logf("%d edits, none stale, %v each", *alternatingEdits, (took / time.Duration(*alternatingEdits)).Round(time.Millisecond))
		})
	}
}
