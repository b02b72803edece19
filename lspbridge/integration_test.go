package lspbridge

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// testBins is where testdata/install-servers.sh puts what npm installs.
func testBins(t *testing.T) []string {
	dir := os.Getenv("PILLION_TEST_SERVERS")
	if dir == "" {
		dir = filepath.Join("..", ".cache", "servers")
	}
	if filepath.Base(dir) != ".bin" { // either is taken: a wrong one would skip everything in silence
		dir = filepath.Join(dir, "node_modules", ".bin")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return []string{abs}
}

// project writes files into a new directory and gives a manager for it. The server must be installed.
func project(t *testing.T, server string, files map[string]string) (*Manager, string) {
	t.Helper()
	return projectIn(t, server, "", files)
}

// projectIn is project, with a manager for a folder of the new directory.
func projectIn(t *testing.T, server, folder string, files map[string]string) (*Manager, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("real servers are slow")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	m := New(Options{Root: filepath.Join(root, folder), Bin: testBins(t), Trusted: true, Idle: -1, Baseline: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	for _, l := range m.Doctor() {
		if l.ID == server && !l.Found {
			t.Skipf("%s is not installed: %s, or testdata/install-servers.sh", server, l.Install)
		}
	}
	t.Cleanup(func() { m.Close(context.Background()) })
	return m, root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// longer is time enough for a real server on a machine that is busy with other things.
func longer(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func messages(list []change.Problem) string {
	var out []string
	for _, d := range list {
		out = append(out, filepath.Base(d.Path)+": "+d.Message)
	}
	return strings.Join(out, "\n")
}

// at is the position of the first occurrence of a word in a text.
func at(text, word string) Position { return OffsetPosition(text, strings.Index(text, word)) }

const goMain = `package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println(Add(1, 2))
	undefinedThing()
}
`

const goLib = `package main

// Add adds.
func Add(a, b int) int { return a + b }
`

func goProject(t *testing.T) (*Manager, string) {
	return project(t, "gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "main.go": goMain, "lib.go": goLib,
		"sub/sub.go": "package sub\n\nfunc F() int { return \"x\" }\n"})
}

func TestGoplsProject(t *testing.T) {
	m, root := goProject(t)
	main, lib := filepath.Join(root, "main.go"), filepath.Join(root, "lib.go")
	ctx := longer(t)

	reports := m.ProjectDiagnostics(ctx)
	all := ""
	for _, r := range reports {
		if r.Certainty != change.Fresh {
			t.Errorf("%s is %s: %s", r.Path, r.Certainty, r.Reason)
		}
		all += messages(r.Items) + "\n"
	}
	for _, want := range []string{`main.go: "os" imported and not used`, "main.go: undefined: undefinedThing", `sub.go: cannot use "x"`} {
		if !strings.Contains(all, want) {
			t.Errorf("the project lacks %q:\n%s", want, all)
		}
	}

	// Before approval: a fix, and a break that only other files show.
	fixed := strings.Replace(strings.Replace(goMain, "\tundefinedThing()\n", "", 1), "\t\"os\"\n", "", 1)
	d := m.Check(ctx, []Proposal{{Path: main, Text: fixed}})
	if d.Certainty != change.Fresh || len(d.Fixed) != 2 || len(d.Introduced) != 0 {
		t.Errorf("fixing both: %s %q, fixed %q, introduced %q", d.Certainty, d.Reason, messages(d.Fixed), messages(d.Introduced))
	}
	d = m.Check(ctx, []Proposal{{Path: lib, Text: strings.Replace(goLib, "a, b int", "a int", 1)}})
	if got := messages(d.Introduced); d.Certainty != change.Fresh || !strings.Contains(got, "main.go: too many arguments") || !strings.Contains(got, "lib.go: undefined: b") {
		t.Errorf("breaking the importer: %s %q", d.Certainty, got)
	}
	d = m.Check(ctx, []Proposal{
		{Path: filepath.Join(root, "new", "new.go"), Text: "package new\n\nfunc N() {}\n"},
		{Path: main, Text: strings.NewReplacer("\"os\"", "\"x/new\"", "undefinedThing", "new.N").Replace(goMain)},
	})
	if d.Certainty != change.Fresh || len(d.Introduced) != 0 || len(d.Fixed) != 2 {
		t.Errorf("a new package and its importer: %s, fixed %q, introduced %q", d.Certainty, messages(d.Fixed), messages(d.Introduced))
	}
	d = m.Check(ctx, []Proposal{{Path: lib, Delete: true}})
	if d.Certainty != change.Partial || !strings.Contains(messages(d.Introduced), "undefined: Add") {
		t.Errorf("deleting a file: %s, introduced %q", d.Certainty, messages(d.Introduced))
	}
	if r := m.Diagnostics(ctx, main); r.Certainty != change.Fresh || len(r.Items) != 2 {
		t.Errorf("the proposals left traces: %s %q", r.Certainty, messages(r.Items))
	}

	// After the write.
	write(t, main, fixed)
	d = m.Changed(ctx, []Proposal{{Path: main, Text: fixed}})
	if d.Certainty != change.Fresh || len(d.Fixed) != 2 || len(d.Files) != 1 || len(d.Files[0].Items) != 0 {
		t.Errorf("after the write: %s %q, fixed %q", d.Certainty, d.Reason, messages(d.Fixed))
	}
}

// Without the go command gopls loads nothing and reports nothing, which must not read as "no problems". VS Code started from a desktop's menu
// often has a PATH without it.
func TestGoplsWithoutGo(t *testing.T) {
	m, root := goProject(t)
	row := gopls()
	row.Env = append(row.Env, "PATH="+t.TempDir())
	m.rows = func() []Server { return []Server{row} }
	path := filepath.Join(root, "main.go")
	for name, reports := range map[string][]FileReport{"file": {m.Diagnostics(longer(t), path)}, "project": m.ProjectDiagnostics(longer(t), root)} {
		for _, r := range reports {
			if r.Certainty != change.Unavailable || !strings.Contains(r.Reason, "needs the go command") {
				t.Errorf("%s: %s %q", name, r.Certainty, r.Reason)
			}
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := m.Check(longer(t), []Proposal{{Path: path, Old: string(text), Text: string(text) + "\nvar x int = \"\"\n"}})
	if d.Certainty != change.Unavailable || !strings.Contains(d.Reason, "needs the go command") {
		t.Errorf("check: %s %q", d.Certainty, d.Reason)
	}
}

func TestGoplsActionsAndQueries(t *testing.T) {
	m, root := goProject(t)
	main, lib := filepath.Join(root, "main.go"), filepath.Join(root, "lib.go")
	ctx := longer(t)
	if syms, err := m.WorkspaceSymbols(ctx, "", "Add"); err != nil || len(syms) == 0 { // the first question starts the project's server
		t.Errorf("cold workspace symbols %+v, %v", syms, err)
	}
	if r := m.Diagnostics(ctx, main); len(r.Items) != 2 {
		t.Fatalf("%s %s: %q", r.Certainty, r.Reason, messages(r.Items))
	}
	p := at(goMain, "undefinedThing")
	actions, err := m.CodeActions(ctx, main, Range{p, p}, []string{"quickfix"}, nil)
	i := slices.IndexFunc(actions, func(a Action) bool { return strings.Contains(a.Title, "undefinedThing") })
	if err != nil || i < 0 {
		t.Fatalf("actions %v, %v", actions, err)
	}
	edits, err := m.ResolveAction(ctx, actions[i])
	if err != nil || len(edits) != 1 || !strings.Contains(edits[0].New, "func undefinedThing()") || edits[0].Old != goMain {
		t.Errorf("%s gives %+v, %v", actions[i].Title, edits, err)
	}
	sorted, err := m.CodeActions(ctx, main, Range{}, []string{"source.organizeImports"}, []change.Problem{})
	if err != nil || len(sorted) != 1 {
		t.Fatalf("organize imports is %+v, %v", sorted, err)
	}
	edits, err = m.ResolveAction(ctx, sorted[0])
	if err != nil || len(edits) != 1 || strings.Contains(edits[0].New, `"os"`) {
		t.Errorf("organize imports gives %+v, %v", edits, err)
	}
	edits, err = m.Rename(ctx, lib, at(goLib, "Add("), "Sum")
	if err != nil || len(edits) != 2 {
		t.Errorf("rename gives %+v, %v", edits, err)
	}
	if _, err = m.Rename(ctx, lib, at(goLib, "return"), "Sum"); err == nil {
		t.Error("a keyword was renamed")
	}
	locs, err := m.Definition(ctx, main, at(goMain, "Add("))
	if err != nil || len(locs) != 1 || locs[0].Path != lib || locs[0].Range.Start != at(goLib, "Add(") {
		t.Errorf("definition %+v, %v", locs, err)
	}
	if locs, err = m.References(ctx, lib, at(goLib, "Add(")); err != nil || len(locs) != 2 {
		t.Errorf("references %+v, %v", locs, err)
	}
	if text, err := m.Hover(ctx, main, at(goMain, "Add(")); err != nil || !strings.Contains(text, "Add adds.") {
		t.Errorf("hover %q, %v", text, err)
	}
	syms, err := m.DocumentSymbols(ctx, lib)
	if err != nil || len(syms) != 1 || syms[0].Name != "Add" {
		t.Errorf("symbols %+v, %v", syms, err)
	}
	if syms, err = m.WorkspaceSymbols(ctx, "", "Add"); err != nil || len(syms) == 0 {
		t.Errorf("workspace symbols %+v, %v", syms, err)
	}
	in, err := m.IncomingCalls(ctx, lib, at(goLib, "Add("))
	if err != nil || len(in) != 1 || in[0].Name != "main" || len(in[0].FromRanges) != 1 {
		t.Errorf("incoming %+v, %v", in, err)
	}
	out, err := m.OutgoingCalls(ctx, main, at(goMain, "main()"))
	if err != nil || !slices.ContainsFunc(out, func(c CallItem) bool { return c.Name == "Add" }) {
		t.Errorf("outgoing %+v, %v", out, err)
	}
	edits, err = m.Format(ctx, lib)
	if err != nil || len(edits) != 0 {
		t.Errorf("formatting what is formatted: %+v, %v", edits, err)
	}
}

func TestGoplsIsKilledAndComesBack(t *testing.T) {
	m, root := goProject(t)
	main := filepath.Join(root, "main.go")
	ctx := longer(t)
	if r := m.Diagnostics(ctx, main); r.Certainty != change.Fresh {
		t.Fatalf("%s: %s", r.Certainty, r.Reason)
	}
	c := m.running()[0].current()
	c.proc.kill()
	<-c.gone
	if r := m.Diagnostics(ctx, main); r.Certainty != change.Fresh || len(r.Items) != 2 {
		t.Errorf("after the crash %s %q: %q", r.Certainty, r.Reason, messages(r.Items))
	}
	again := m.running()[0].current() // a second process
	if again == c || again == nil {
		t.Error("the dead client was used")
	}
	m.Close(ctx)
	select {
	case <-again.proc.exited:
	default:
		t.Error("Close left the process running")
	}
}

// Edits in quick succession: every answer is of its own text, never of the one before.
func TestGoplsNeverAnswersStale(t *testing.T) {
	m, root := goProject(t)
	path := filepath.Join(root, "lib.go")
	ctx := longer(t)
	for i := range 60 {
		text := goLib
		if i%3 != 2 {
			text += fmt.Sprintf("\nvar x int = \"mistake %d\"\n", i)
		}
		own := fmt.Sprintf("mistake %d\"", i)
		var now []change.Problem
		if i%2 == 0 {
			d := m.Check(ctx, []Proposal{{Path: path, Text: text}})
			if d.Certainty != change.Fresh {
				t.Fatalf("%d: %s %q", i, d.Certainty, d.Reason)
			}
			now = d.Files[0].Items
		} else {
			d := m.Changed(ctx, []Proposal{{Path: path, Text: text}})
			if d.Certainty != change.Fresh {
				t.Fatalf("%d: %s %q", i, d.Certainty, d.Reason)
			}
			now = d.Files[0].Items
		}
		if said := messages(now); text == goLib && said != "" || text != goLib && (len(now) != 1 || !strings.Contains(said, own)) {
			t.Fatalf("round %d is answered with %q", i, said)
		}
		write(t, path, text)
		if i%2 == 0 { // what was only proposed is put back
			write(t, path, goLib)
		}
	}
}

func TestColdServerDoesNotHoldTheEdit(t *testing.T) {
	m, root := goProject(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	d := m.Check(ctx, []Proposal{{Path: filepath.Join(root, "main.go"), Text: goMain}})
	if d.Certainty != change.Pending || !strings.Contains(d.Reason, "gopls") {
		t.Errorf("%s %q", d.Certainty, d.Reason)
	}
}

func TestOtherProgramsChangesAreSeen(t *testing.T) {
	m, root := goProject(t)
	main := filepath.Join(root, "main.go")
	ctx := longer(t)
	if r := m.Diagnostics(ctx, main); len(r.Items) != 2 {
		t.Fatalf("%s: %s", r.Certainty, r.Reason)
	}
	m.mu.Lock()
	w := m.watcher
	m.mu.Unlock()
	<-w.ready
	if out, err := exec.Command("sh", "-c", "mkdir -p "+root+"/deep/er && printf 'package main\\n\\nfunc undefinedThing() {}\\n' > "+root+"/thing.go").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	// Asked right away, the answer is about what the other program left.
	said := ""
	for _, r := range m.ProjectDiagnostics(ctx) {
		said += messages(r.Items) + "\n"
	}
	if strings.Contains(said, "undefinedThing") {
		t.Errorf("the project is answered as it was:\n%s", said)
	}
	if r := m.Diagnostics(ctx, main); r.Certainty != change.Fresh || len(r.Items) != 1 {
		t.Errorf("%s %q", r.Certainty, messages(r.Items))
	}
}
