package lspbridge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// Actions that are commands make the server ask for its edits: they come to whoever runs the action, who can check
// and write them while the server waits, or refuse.
func TestCommandsOfServers(t *testing.T) {
	const ts = "export function twice(n: number) {\n  const x = 2 * n;\n  return x;\n}\nexport class A { b = 1; }\n"
	for _, c := range []struct {
		server         string
		files          map[string]string
		file, word     string
		title          string
		makes          string // a file that comes of it
		contains, says string
	}{
		{"gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib.go": "package x\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n"}, "lib.go", "Add(", "Add test for Add", "lib_test.go", "func TestAdd(t *testing.T)", "create"},
		{"typescript", map[string]string{"tsconfig.json": "{}", "a.ts": ts}, "a.ts", "export class A { b = 1; }", "Move to a new file", "A.ts", "export class A { b = 1; }", "create"},
		{"typescript", map[string]string{"tsconfig.json": "{}", "a.ts": ts}, "a.ts", "2 * n", "Extract to function in module scope", "a.ts", "function newFunction", "edit"},
	} {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			m, root := project(t, c.server, c.files)
			ctx, path := longer(t), filepath.Join(root, c.file)
			if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh {
				t.Fatalf("%s %q", r.Certainty, r.Reason)
			}
			p := at(c.files[c.file], c.word)
			find := func() Action {
				list, err := m.CodeActions(ctx, path, Range{p, Position{p.Line, p.Character + len(c.word)}}, nil, nil)
				i := slices.IndexFunc(list, func(a Action) bool { return a.Title == c.title && a.Disabled == "" })
				if err != nil || i < 0 {
					t.Fatalf("%+v %v", list, err)
				}
				return list[i]
			}
			no := errors.New("the person said no")
			clear := func(edits []FileEdit) { // what the change pipeline does before it asks
				for _, e := range edits {
					if e.Made {
						if err := os.Remove(e.Path); err != nil {
							t.Error(err)
						}
					}
				}
			}
			if err := m.RunAction(ctx, find(), func(_ context.Context, _ string, edits []FileEdit) error { clear(edits); return no }); c.server == "gopls" && err == nil {
				t.Error("a refusal went well")
			}
			if _, err := os.Stat(filepath.Join(root, c.makes)); c.says == "create" && err == nil {
				t.Error("something was written")
			}
			var kinds []string
			err := m.RunAction(ctx, find(), func(ctx context.Context, _ string, edits []FileEdit) error {
				clear(edits)
				var files []Proposal
				for _, e := range edits {
					kinds = append(kinds, e.Kind)
					files = append(files, Proposal{Path: e.Path, Text: e.New, Old: e.Old})
				}
				if d := m.Check(ctx, files); d.Certainty != change.Pending || !strings.Contains(d.Reason, "runs a command") {
					t.Errorf("checked meanwhile: %s %q", d.Certainty, d.Reason)
				}
				for _, f := range files {
					write(t, f.Path, f.Text)
				}
				m.Changed(ctx, files)
				return nil
			})
			b, _ := os.ReadFile(filepath.Join(root, c.makes))
			if err != nil || !slices.Contains(kinds, c.says) || !strings.Contains(string(b), c.contains) {
				t.Errorf("%v %q: %s", err, kinds, b)
			}
			if r := m.Diagnostics(ctx, filepath.Join(root, c.makes)); r.Certainty != change.Fresh {
				t.Errorf("afterwards %s %q", r.Certainty, r.Reason)
			}
		})
	}
}

// collect takes edits and says that they were applied.
func collect(to *[]FileEdit) Apply {
	return func(_ context.Context, _ string, edits []FileEdit) error {
		*to = append(*to, edits...)
		return nil
	}
}
