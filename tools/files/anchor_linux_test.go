package files

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// At every point of a commit the folder is moved away and a link to another one takes its name. Nothing there may change,
// although the files have the same names and texts, and neither may recovery after a crash at that point touch it.
func TestACommitStaysInTheFolderThatWasJudged(t *testing.T) {
	names := []string{"edited", "gone", "moved", "linked"}
	fill := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names, "twice") {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("old "+name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(filepath.Join(dir, "twice"), filepath.Join(dir, "other name")); err != nil {
			t.Fatal(err)
		}
	}
	state := func(dir string) map[string]string {
		out := map[string]string{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
			info, _ := e.Info()
			out[e.Name()] = fmt.Sprint(string(b), info.Mode())
		}
		return out
	}
	ops := func(dir string) map[string][]Op {
		real := func(o Op) Op {
			o.Path = filepath.Join(dir, o.Path)
			o.Real = o.Path
			if o.NewPath != "" {
				o.NewPath = filepath.Join(dir, o.NewPath)
				o.NewReal = o.NewPath
			}
			return o
		}
		base := func(name string) string { return Hash([]byte("old " + name)) }
		edit := real(Op{Kind: Write, Path: "edited", Data: []byte("new"), Base: base("edited"), Mode: 0o600})
		create := real(Op{Kind: Write, Path: "made", Data: []byte("new")})
		below := real(Op{Kind: Write, Path: "sub/folder/made", Data: []byte("new")})
		remove := real(Op{Kind: Remove, Path: "gone", Base: base("gone")})
		move := real(Op{Kind: Move, Path: "moved", NewPath: "sub/moved", Data: []byte("changed"), Base: base("moved")})
		inPlace := real(Op{Kind: Write, Path: "twice", Data: []byte("new"), Base: base("twice")})
		link := real(Op{Kind: Link, Path: "link", Data: []byte("/etc/passwd")})
		return map[string][]Op{
			"edit": {edit}, "create": {create}, "below": {below}, "remove": {remove}, "move": {move}, "in place": {inPlace}, "link": {link},
			"rename": {real(Op{Kind: Move, Path: "moved", NewPath: "renamed", Base: base("moved")})}, "all": {edit, create, below, remove, move, inPlace, link},
		}
	}
	defer func() { crash = nil }()
	for what := range ops("") {
		for _, dies := range []bool{false, true} {
			for n := 0; ; n++ {
				root, err := filepath.EvalSymlinks(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				dir, outside := filepath.Join(root, "project", "dir"), filepath.Join(root, "outside")
				fill(dir)
				fill(outside)
				before := state(outside)
				swapped := false
				swap := func() {
					swapped = true
					if err := os.Rename(dir, dir+".away"); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(outside, dir); err != nil {
						t.Fatal(err)
					}
				}
				points := 0
				crash = func(string) error {
					if points++; points == n {
						swap()
						if dies {
							return errCrash
						}
					}
					return nil
				}
				if n == 0 { // after the decision, before the commit
					swap()
				}
				j := &DirJournal{filepath.Join(root, "journal")}
				err = Commit(bg, ops(dir)[what], j)
				crash = nil
				if n == 0 && err == nil {
					t.Errorf("%s: the commit went through a link that came after the decision", what)
				}
				pretendDead(t, j)
				_, _ = Recover(bg, j)
				if now := state(outside); !maps.Equal(now, before) {
					t.Fatalf("%s, swapped at point %d, crash %v: outside there is\n%v\nand was\n%v", what, n, dies, now, before)
				}
				if !swapped {
					if n < 2 || err != nil {
						t.Errorf("%s: %d points, %v", what, n, err)
					}
					break
				}
			}
		}
	}
}
