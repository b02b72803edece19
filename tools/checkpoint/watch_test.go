package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a project folder on the disk. Its clock only moves between commands, so that no two texts of a file share a time.
type watched struct {
	t     *testing.T
	dir   string
	tree  *Tree
	clock time.Time
}

// newWatched makes an empty project. Files below ignored are not listed.
func newWatched(t *testing.T) *watched {
	w := &watched{t: t, dir: t.TempDir(), clock: time.Now().Add(-24 * time.Hour)}
	w.tree = &Tree{Root: w.dir, Blobs: &Blobs{Dir: filepath.Join(t.TempDir(), "blobs")}, List: func(_ context.Context, root string, limit int) ([]string, bool, error) {
		var out []string
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "ignored") {
				return fs.SkipDir
			}
			if rel, e := filepath.Rel(root, path); err == nil && e == nil && !d.IsDir() {
				out = append(out, filepath.ToSlash(rel))
			}
			return err
		})
		return out[:min(limit, len(out))], len(out) > limit, err
	}}
	return w
}

func (w *watched) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// put writes a file, or with a text that begins with "->" a link, at the next tick of the clock.
func (w *watched) put(name, text string) {
	w.t.Helper()
	path := w.path(name)
	check := func(err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	check(os.RemoveAll(path))
	check(os.MkdirAll(filepath.Dir(path), 0o755))
	if target, link := strings.CutPrefix(text, "->"); link {
		check(os.Symlink(target, path))
		return
	}
	check(os.WriteFile(path, []byte(text), 0o644))
	w.tick(name)
}

func (w *watched) tick(name string) {
	w.clock = w.clock.Add(time.Second)
	if err := os.Chtimes(w.path(name), w.clock, w.clock); err != nil {
		w.t.Fatal(err)
	}
}

// content is a file or link as it is on the disk.
type content struct {
	text string
	mode os.FileMode
}

// contents are all files of the project, ignored ones included.
func (w *watched) contents() map[string]content {
	out := map[string]content{}
	filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.Type()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			out[path] = content{target, os.ModeSymlink}
		case d.Type().IsRegular():
			b, _ := os.ReadFile(path)
			info, _ := d.Info()
			out[path] = content{string(b), info.Mode().Perm()}
		}
		return nil
	})
	return out
}

// shown is a change in one line that begins with its path.
func shown(c Change) string {
	return fmt.Sprintf("%s: %q %t %v, then %q %t %v", c.Path, c.Before, c.Existed, c.OldMode, c.After, c.Exists, c.NewMode)
}

// Whatever a command does, with or without Git, the change is what the folder shows that was compared before and after: every file once,
// with both contents and modes, and nothing that is as it was.
func TestATreeFindsWhatACommandDid(t *testing.T) {
	seen := 0
	for seed := range uint64(24) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			w := newWatched(t)
			names := []string{"a", "b.txt", "deep/c", "deep/d/e", "ü ö", "run.sh", "ignored/n", "ignored/m"}
			text := func() string { return fmt.Sprintf("%d\n", r.IntN(1000)) }
			for _, name := range names {
				if r.IntN(4) > 0 {
					w.put(name, text())
				}
			}
			if seed%4 == 0 {
				git(t, w.dir, "init", "-q")
				git(t, w.dir, "add", "-A")
			}
			for range 4 {
				var named []string
				if r.IntN(2) == 0 {
					named = []string{w.path("ignored/n")}
				}
				before := w.contents()
				look := w.tree.Before(t.Context(), named)
				for range r.IntN(6) {
					name := names[r.IntN(len(names))]
					_, err := os.Lstat(w.path(name))
					switch there := err == nil; r.IntN(7) {
					case 0:
						os.RemoveAll(w.path(name))
					case 1:
						w.put(name, "->"+text())
					case 2:
						if info, err := os.Stat(w.path(name)); err == nil && info.Mode().IsRegular() {
							os.Chmod(w.path(name), 0o644^info.Mode().Perm()^0o755)
						}
					case 3:
						if info, err := os.Stat(w.path(name)); there && err == nil && info.Mode().IsRegular() {
							w.tick(name) // the same bytes, written again
						}
					default:
						w.put(name, text())
					}
				}
				after := w.contents()
				all := maps.Clone(before)
				maps.Copy(all, after)
				var want []string
				for path := range all {
					was, existed := before[path]
					is, exists := after[path]
					if (was != is || existed != exists) && (!strings.Contains(path, "ignored") || slices.Contains(named, path)) {
						want = append(want, shown(Change{path, []byte(was.text), []byte(is.text), existed, exists, was.mode, is.mode}))
					}
				}
				slices.Sort(want)
				changes, uncaught := look.After(t.Context())
				var got []string
				for _, c := range changes {
					got = append(got, shown(c))
				}
				if !slices.Equal(got, want) || uncaught != "" {
					t.Fatalf("seed %d: %s\ngot  %s\nwant %s", seed, uncaught, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
				}
				seen += len(want)
			}
		})
	}
	if seen < 100 {
		t.Errorf("only %d changes were made", seen)
	}
}

// What cannot be undone is named: five files and a number, and where the listing ended early, that there may be more.
func TestWhatATreeCannotTakeBackIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		big := []string{"1", "2", "3", "4", "5", "6", "7"}
		size := func(name string, n int64) {
			if err := os.Truncate(w.path(name), n); err != nil {
				t.Fatal(err)
			}
			w.tick(name)
		}
		for _, name := range append(big, "limit", "grows", "small") {
			w.put(name, "x")
		}
		for _, name := range big {
			size(name, readMost+1)
		}
		size("limit", readMost)
		look := w.tree.Before(t.Context(), nil)
		for _, name := range big {
			size(name, 3)
		}
		size("limit", 3)
		size("grows", readMost+1)
		size("small", readMost)
		changes, uncaught := look.After(t.Context())
		if len(changes) != 2 || changes[0].Path != w.path("limit") || len(changes[0].Before) != readMost || changes[1].Path != w.path("small") {
			t.Errorf("%d changes", len(changes))
		}
		if want := "changed, but what they held before was not kept (too large, too many, or new to Pillion): 1, 2, 3, 4, 5 and 3 more"; uncaught != want {
			t.Errorf("%s", uncaught)
		}
	})
}

// A listing that was cut short proves nothing about the files that it lacks.
func TestAListingThatEndsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		first, second bool // cut short
		want          []string
	}{
		"none":       {false, false, []string{"changed", "gone", "made"}},
		"the first":  {true, false, []string{"changed", "gone"}},
		"the second": {false, true, []string{"changed", "gone"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatched(t)
			for _, name := range []string{"changed", "gone", "same"} {
				w.put(name, name)
			}
			looks := 0
			w.tree.List = func(context.Context, string, int) ([]string, bool, error) {
				if looks++; looks == 2 && c.second {
					return nil, true, nil
				}
				return []string{"changed", "gone", "same", "made"}, looks == 1 && c.first, nil
			}
			look := w.tree.Before(t.Context(), nil)
			w.put("changed", "other")
			w.put("made", "new")
			os.Remove(w.path("gone"))
			changes, uncaught := look.After(t.Context())
			var got []string
			for _, x := range changes {
				got = append(got, filepath.Base(x.Path))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
			if said := strings.Contains(uncaught, "too large to look at whole"); said != (c.first || c.second) {
				t.Errorf("%s: %q", name, uncaught)
			}
		})
	}
}

// A result keeps so many bytes and so many files at most; the others are named as lost.
func TestAChangeOfTooManyBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		look := w.tree.Before(t.Context(), nil)
		for i := range keepSize/readMost + 1 {
			w.put(fmt.Sprintf("f%02d", i), "")
			if err := os.Truncate(w.path(fmt.Sprintf("f%02d", i)), readMost); err != nil {
				t.Fatal(err)
			}
		}
		changes, uncaught := look.After(t.Context())
		if len(changes) != keepSize/readMost || !strings.HasSuffix(uncaught, ": f16") {
			t.Errorf("%d changes, %q", len(changes), uncaught)
		}
	})
}

func TestAChangeOfTooManyFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		look := w.tree.Before(t.Context(), nil)
		for i := range keepMost + 2 {
			if err := os.WriteFile(w.path(fmt.Sprintf("f%05d", i)), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		changes, uncaught := look.After(t.Context())
		if len(changes) != keepMost || !strings.HasSuffix(uncaught, ": f01000, f01001") {
			t.Errorf("%d changes, %q", len(changes), uncaught)
		}
	})
}

// A link whose target is no text could not be made again, so it is named.
func TestALinkThatIsNoText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		w.put("link", "->\xff")
		look := w.tree.Before(t.Context(), nil)
		w.put("link", "->other")
		if changes, uncaught := look.After(t.Context()); len(changes) != 0 || !strings.HasSuffix(uncaught, ": link") {
			t.Errorf("%v, %q", changes, uncaught)
		}
	})
}
