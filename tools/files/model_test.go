//go:build unix

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// entry is a name of the model: a file with its permission bits, or a link.
type entry struct {
	text string // of a link, where it leads
	mode fs.FileMode
	link bool
}

// entries are all names below a folder, those of folders with mode 0 left out.
func entries(t *testing.T, dir string) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			out[name] = entry{text: to, link: true}
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		out[name] = entry{text: read(t, p), mode: fi.Mode().Perm()}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Random commits on a few names, so that ops meet each other: what is there afterwards is what the ops say one after the other, modes and
// links included. A commit with one op that does not fit changes nothing at all.
func TestACommitIsItsOpsInTheirOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	names := []string{"a", "b", "d/c", "new/deep/x", "link"}
	const linked = "b" // where the link leads at first
	fresh := 0o666 &^ umask(t)
	counts := map[string]int{}
	for trial := range 400 {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		in := func(name string) string { return filepath.Join(dir, name) }
		for _, name := range []string{"a", "b", "d/c"} {
			if r.IntN(4) > 0 {
				write(t, in(name), "old "+name)
				if err := os.Chmod(in(name), []fs.FileMode{0o644, 0o600, 0o755}[r.IntN(3)]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Symlink(linked, in("link")); err != nil {
			t.Fatal(err)
		}
		old := entries(t, dir)
		now := maps.Clone(old)
		base := func(name string) string {
			if e, ok := old[name]; ok && !e.link {
				return Hash([]byte(e.text))
			}
			return ""
		}
		touched := map[string]bool{}
		var ops []Op
		for len(ops) < 1+r.IntN(5) {
			name := pick(names)
			e, exists := now[name]
			_, before := old[name]
			switch kind := r.IntN(4); {
			case kind == 0 && !(e.link && touched[name]): // a write goes through a link that was there before
				at := name
				if e.link {
					at = linked
				}
				was, there := now[at]
				if was.link {
					continue
				}
				op := Op{Kind: Write, Path: in(name), Data: fmt.Appendf(nil, "write %d", len(ops)), Mode: []fs.FileMode{0, 0, 0o640}[r.IntN(3)]}
				next := entry{text: string(op.Data), mode: was.mode}
				if there {
					op.Base = base(at)
				} else {
					next.mode = fresh
					if o, ok := old[at]; ok && !o.link {
						next.mode = o.mode // it takes the place of the one that was there
					}
				}
				if op.Mode != 0 {
					next.mode = op.Mode
				}
				now[at], touched[at] = next, true
				ops = append(ops, op)
			case kind == 1 && exists && before:
				ops = append(ops, Op{Kind: Remove, Path: in(name), Base: base(name)})
				delete(now, name)
				touched[name] = true
			case kind == 2 && exists && before && !e.link && !old[name].link:
				to := pick(names)
				if _, taken := now[to]; taken {
					continue
				}
				op := Op{Kind: Move, Path: in(name), NewPath: in(to), Base: base(name)}
				if r.IntN(2) == 0 {
					op.Data = fmt.Appendf(nil, "moved %d", len(ops))
					e.text = string(op.Data)
				}
				if r.IntN(3) == 0 {
					op.Mode = 0o640
					e.mode = op.Mode
				}
				ops = append(ops, op)
				delete(now, name)
				now[to], touched[to], touched[name] = e, true, true
			case kind == 3:
				ops = append(ops, Op{Kind: Link, Path: in(name), Base: base(name), Data: []byte("elsewhere")})
				now[name], touched[name] = entry{text: "elsewhere", link: true}, true
			}
		}
		var j Journal
		if r.IntN(2) == 0 {
			j = &DirJournal{filepath.Join(t.TempDir(), "j")}
		}
		// One op that does not fit spoils the commit, wherever it is in it.
		wrong, want := "", error(nil)
		bad := Op{}
		switch r.IntN(8) {
		case 0:
			wrong, bad, want = "another base", Op{Kind: Write, Path: in("a"), Data: []byte("n"), Base: Hash([]byte("else"))}, ErrStale
		case 1:
			wrong, bad, want = "nothing to remove", Op{Kind: Remove, Path: in("nothing")}, fs.ErrNotExist
		case 2:
			wrong, bad, want = "nothing to move", Op{Kind: Move, Path: in("nothing"), NewPath: in("to")}, fs.ErrNotExist
		case 3:
			if len(ops) > 0 && ops[0].Kind == Remove {
				wrong, bad, want = "removed twice", ops[0], fs.ErrNotExist
			}
		}
		if wrong != "" {
			at := r.IntN(len(ops) + 1)
			if wrong == "removed twice" {
				at = 1
			}
			ops = slices.Insert(ops, at, bad)
		}
		err = Commit(bg, ops, j)
		got := entries(t, dir)
		shown := func() string {
			return fmt.Sprintf("trial %d: %+v\nbefore %+v\nafter  %+v\nwant   %+v", trial, ops, old, got, now)
		}
		switch {
		case wrong != "" && (!errors.Is(err, want) || !maps.Equal(got, old)):
			t.Fatalf("%s: %v, want %v and no change\n%s", wrong, err, want, shown())
		case wrong == "" && (err != nil || !maps.Equal(got, now)):
			t.Fatalf("%v\n%s", err, shown())
		}
		if wrong != "" {
			if _, err := os.Stat(in("new")); err == nil {
				t.Fatalf("%s: a folder was made", wrong)
			}
		}
		counts[wrong]++
	}
	for _, kind := range []string{"", "another base", "nothing to remove", "nothing to move", "removed twice"} {
		if counts[kind] < 5 {
			t.Errorf("%d commits of the kind %q", counts[kind], kind)
		}
	}
}

// umask is that of this process, found by making a file.
func umask(t *testing.T) fs.FileMode {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return 0o666 &^ fi.Mode().Perm()
}
