package lspbridge

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A marker that comes or goes counts at once, also in a folder that has long been the same.
func TestMarkersComeAndGo(t *testing.T) {
	top := t.TempDir()
	sub := filepath.Join(top, "a", "b")
	path := filepath.Join(sub, "x.go")
	write(t, path, "")
	long := func() { // nothing has changed for a while
		for _, d := range []string{top, filepath.Dir(sub), sub} {
			if err := os.Chtimes(d, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var m markers
	root := func(want string) {
		t.Helper()
		for range 2 {
			if got := m.search().root(path, top, []string{"go.mod", "*.sln", ".x/deep"}); got != want {
				t.Errorf("root %s, want %s", got, want)
			}
		}
	}
	long()
	root(top)
	write(t, filepath.Join(top, "a", "go.mod"), "")
	root(filepath.Join(top, "a"))
	write(t, filepath.Join(sub, "p.sln"), "") // right after the last one: the folder's time may not tell
	root(sub)
	if err := os.Remove(filepath.Join(sub, "p.sln")); err != nil {
		t.Fatal(err)
	}
	root(filepath.Join(top, "a"))
	if err := os.Mkdir(filepath.Join(sub, ".x"), 0o755); err != nil {
		t.Fatal(err)
	}
	long()
	root(filepath.Dir(sub))
	write(t, filepath.Join(sub, ".x", "deep"), "") // of which b's own time says nothing
	root(sub)
	if n := len(m.dirs); n != 3 {
		t.Errorf("%d folders are remembered", n)
	}
}

// Projects that refer to one another are one server's, also where nothing was installed; one with its own compiler is
// its own.
func TestProjectsOfOneServer(t *testing.T) {
	top := t.TempDir()
	for _, f := range []string{"go.mod", "web/tsconfig.json", "web/core/tsconfig.json", "web/core/src/a.ts", "web/app/tsconfig.json", "web/app/b.ts", "web/own/package.json", "web/own/node_modules/typescript/package.json", "web/own/c.ts",
		"locked/package.json", "locked/in/yarn.lock", "locked/in/d.ts", "loose/e.ts"} {
		write(t, filepath.Join(top, filepath.FromSlash(f)), "")
	}
	m := New(Options{Root: top, NoWatch: true})
	for file, want := range map[string]string{"web/core/src/a.ts": "web", "web/app/b.ts": "web", "web/own/c.ts": "web/own", "locked/in/d.ts": "locked/in", "loose/e.ts": ""} {
		slots := m.slotsFor(filepath.Join(top, filepath.FromSlash(file)))
		if len(slots) == 0 || slots[0].spec.ID != "typescript" || slots[0].root != filepath.Join(top, filepath.FromSlash(want)) {
			t.Errorf("%s: %v", file, slots[0].root)
		}
	}
	outside := filepath.Join(t.TempDir(), "x", "f.ts")
	write(t, filepath.Join(filepath.Dir(outside), "package.json"), "")
	write(t, filepath.Join(filepath.Dir(filepath.Dir(outside)), "package.json"), "")
	if got := New(Options{Root: top, NoWatch: true}).slotsFor(outside)[0].root; got != filepath.Dir(outside) {
		t.Errorf("outside of the project: %s", got)
	}
}

// A question about a file of a language with many possible roots.
func BenchmarkSlotsFor(b *testing.B) {
	root := b.TempDir()
	path := filepath.Join(root, "src", "deep", "a.ts")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "tsconfig.json"), nil, 0o644); err != nil {
		b.Fatal(err)
	}
	for _, d := range []string{root, filepath.Join(root, "src"), filepath.Dir(path)} {
		_ = os.Chtimes(d, time.Time{}, time.Now().Add(-time.Hour))
	}
	m := New(Options{Root: root, NoWatch: true})
	for b.Loop() {
		if len(m.slotsFor(path)) == 0 {
			b.Fatal("no server")
		}
	}
}
