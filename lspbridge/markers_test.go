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
			if got := m.look().root(path, top, []string{"go.mod", "*.sln", ".x/deep"}); got != want {
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
