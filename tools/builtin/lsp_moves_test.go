package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// moveBridge answers what follows from a move.
type moveBridge struct {
	edits   func(dir string) []lspbridge.FileEdit
	err     error
	dir     string
	renames []lspbridge.FileRename
	changed []lspbridge.Proposal
}

func (b *moveBridge) WillRename(_ context.Context, r []lspbridge.FileRename) ([]lspbridge.FileEdit, error) {
	b.renames = r
	return b.edits(b.dir), b.err
}
func (b *moveBridge) Check(context.Context, []lspbridge.Proposal) lspbridge.Delta {
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
}
func (b *moveBridge) Changed(_ context.Context, p []lspbridge.Proposal) lspbridge.Delta {
	b.changed = p
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
}
func (b *moveBridge) Diagnostics(_ context.Context, path string) lspbridge.FileReport {
	return lspbridge.FileReport{Path: path, Certainty: change.Fresh}
}
func (b *moveBridge) Warm(string) {}

// movePatch moves b.ts and changes its last line; c.ts and locked.ts are not named by it.
const movePatch = "*** Begin Patch\n*** Update File: b.ts\n*** Move to: lib/b.ts\n@@\n-last\n+LAST\n*** End Patch"

func TestMoveIsFollowed(t *testing.T) {
	s := newLSPSession(t, func(string) Bridge { return nil }, permission.Rule{Permission: "edit", Pattern: "locked.ts", Action: permission.Deny})
	for name, text := range map[string]string{"b.ts": "import './x'\n\nmiddle\nlast\n", "c.ts": "import './b'\n", "locked.ts": "import './b'\n", "old.ts": "newer text\n"} {
		put(t, filepath.Join(s.dir, name), text)
	}
	b := &moveBridge{dir: s.dir, err: errors.New("tardy is starting"), edits: func(dir string) []lspbridge.FileEdit {
		edit := func(name, old, text string) lspbridge.FileEdit {
			return lspbridge.FileEdit{Path: filepath.Join(dir, name), Kind: "edit", Old: old, New: text}
		}
		return []lspbridge.FileEdit{
			edit("b.ts", "import './x'\n\nmiddle\nlast\n", "import '../x'\n\nmiddle\nlast\n"),
			edit("c.ts", "import './b'\n", "import './lib/b'\n"),
			edit("locked.ts", "import './b'\n", "import './lib/b'\n"),
			edit("old.ts", "import './b'\n", "import './lib/b'\n"),
			edit("../elsewhere.ts", "import './b'\n", "import './lib/b'\n"),
		}
	}}
	env := Env{Cwd: s.dir, Root: s.dir, StateDir: t.TempDir(), Bridge: b}
	tool := ApplyPatch(env)
	input, _ := json.Marshal(map[string]string{"patchText": movePatch})
	r, err := tool.Run(t.Context(), input, s.call)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.renames) != 1 || b.renames[0].New != filepath.Join(s.dir, "lib", "b.ts") {
		t.Errorf("asked about %+v", b.renames)
	}
	for name, want := range map[string]string{"lib/b.ts": "import '../x'\n\nmiddle\nLAST\n", "c.ts": "import './lib/b'\n", "locked.ts": "import './b'\n", "old.ts": "newer text\n"} {
		if got, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, want := range []string{"adapted the imports in b.ts, c.ts.", "locked.ts (editing it is denied)", "old.ts (the file has changed since)", "elsewhere.ts (outside the project)", "did not answer: tardy is starting."} {
		if !strings.Contains(r.Output, want) {
			t.Errorf("%s\nlacks %s", r.Output, want)
		}
	}
	from := ""
	for _, p := range b.changed {
		from += p.From
	}
	if from != filepath.Join(s.dir, "b.ts") {
		t.Errorf("the servers were told of a move from %q", from)
	}
	if n := len(r.Metadata["files"].([]map[string]any)); n != 2 {
		t.Errorf("%d files in the change set", n)
	}
}

// The real thing: the importer and the moved file's own imports follow, as one change.
func TestMoveIsFollowedByTypescript(t *testing.T) {
	bin, _ := filepath.Abs("../../.cache/servers/node_modules/.bin")
	s := newLSPSession(t, func(string) Bridge { return nil })
	m := lspbridge.New(lspbridge.Options{Root: s.dir, Bin: []string{bin}})
	t.Cleanup(func() { m.Close(context.Background()) })
	for _, l := range m.Doctor() {
		if l.ID == "typescript" && !l.Found || testing.Short() {
			t.Skip("typescript-language-server is not installed: " + l.Install)
		}
	}
	for name, text := range map[string]string{"tsconfig.json": "{}", "b.ts": "import { x } from './x'\nexport const y = x\n// last\n", "x.ts": "export const x = 1\n", "c.ts": "import { y } from './b'\nconsole.log(y)\n"} {
		put(t, filepath.Join(s.dir, name), text)
	}
	warm, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m.Diagnostics(warm, filepath.Join(s.dir, "b.ts"))
	tool := ApplyPatch(Env{Cwd: s.dir, Root: s.dir, StateDir: t.TempDir(), Bridge: m})
	input, _ := json.Marshal(map[string]string{"patchText": strings.NewReplacer("-last", "-// last", "+LAST", "+// LAST").Replace(movePatch)})
	r, err := tool.Run(t.Context(), input, s.call)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lib/b.ts": "import { x } from '../x'\nexport const y = x\n// LAST\n", "c.ts": "import { y } from './lib/b'\nconsole.log(y)\n"} {
		if got, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v\n%s", name, got, err, r.Output)
		}
	}
}
