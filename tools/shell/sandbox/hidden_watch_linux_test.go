package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// forest is a random tree of folders whose modification times are old, so that those of folders without a watch are believed.
type forest struct {
	t    *testing.T
	r    *rand.Rand
	root string
	past time.Time
}

// folder is some folder of the tree, the root among them. Inside of a dependencies folder changes are not noticed.
func (f *forest) folder() string {
	var all []string
	_ = filepath.WalkDir(f.root, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && !strings.Contains(p, "/node_modules/") {
			all = append(all, p)
		}
		return nil
	})
	return all[f.r.IntN(len(all))]
}

// age gives new folders and changed ones an old time.
func (f *forest) age() {
	f.past = f.past.Add(time.Second)
	_ = filepath.WalkDir(f.root, func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && time.Since(info.ModTime()) < time.Hour {
			_ = os.Chtimes(p, f.past, f.past)
		}
		return nil
	})
}

func (f *forest) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// change does something to the tree, and gives the folders that it changed an old time that they did not have before.
func (f *forest) change() string {
	dir := f.folder()
	defer f.age()
	switch f.r.IntN(8) {
	case 0:
		f.must(os.MkdirAll(filepath.Join(dir, fmt.Sprint("n", f.r.IntN(4)), "deep"), 0o755))
		return "new folders in " + dir
	case 1, 2:
		f.must(os.WriteFile(filepath.Join(dir, ".env"), nil, 0o644))
		return "a file in " + dir
	case 3:
		_ = os.Remove(filepath.Join(dir, ".env"))
		return "a file less in " + dir
	case 4:
		if dir != f.root {
			f.must(os.RemoveAll(dir))
		}
		return "removed " + dir
	case 5: // a folder takes the place of another, and of all that is remembered below it
		to := filepath.Join(f.folder(), fmt.Sprint("n", f.r.IntN(4)))
		if dir != f.root && !strings.HasPrefix(to+"/", dir+"/") && !strings.HasPrefix(dir+"/", to+"/") {
			_ = os.RemoveAll(to)
			if _, err := os.Stat(filepath.Dir(to)); err == nil {
				f.must(os.Rename(dir, to))
			}
		}
		return "moved " + dir + " to " + to
	case 6: // two folders change places
		other := f.folder()
		if dir != f.root && other != f.root && !strings.HasPrefix(other+"/", dir+"/") && !strings.HasPrefix(dir+"/", other+"/") {
			f.must(os.Rename(dir, f.root+".x"))
			f.must(os.Rename(other, dir))
			f.must(os.Rename(f.root+".x", other))
		}
		return "exchanged " + dir + " and " + other
	default: // the root itself
		up := []string{f.root, filepath.Dir(f.root)}[f.r.IntN(2)] // or one above it
		f.must(os.RemoveAll(up + ".old"))                         // stays until then: nothing tells that it was removed
		f.must(os.Rename(up, up+".old"))
		f.must(os.MkdirAll(filepath.Join(f.root, "n0", "n1"), 0o755))
		f.must(os.WriteFile(filepath.Join(f.root, "n0", ".env"), nil, 0o644))
		if f.r.IntN(2) == 0 {
			f.must(os.RemoveAll(up))
			f.must(os.Rename(up+".old", up))
			return "another root for a moment"
		}
		for i := range 2 * fewFolders {
			f.must(os.MkdirAll(filepath.Join(f.root, fmt.Sprint("n", i%4), fmt.Sprint("m", i)), 0o755))
		}
		return "another root"
	}
}

// What the kernel tells must be what a look at everything finds, whatever happens between two searches and however many watches there are.
func TestWatchedFoldersAreWhatTheyWere(t *testing.T) {
	system := watchBudget
	defer func() { watchBudget = system }()
	for _, most := range []int64{1 << 20, 40} {
		var left atomic.Int64
		left.Store(most)
		watchBudget = func() *atomic.Int64 { return &left }
		f := &forest{t: t, r: rand.New(rand.NewPCG(7, uint64(most))), root: filepath.Join(t.TempDir(), "up", "root"), past: time.Now().Add(-24 * time.Hour).Truncate(time.Second)}
		for i := range 3 * fewFolders {
			f.must(os.MkdirAll(filepath.Join(f.root, fmt.Sprint("n", i%4), fmt.Sprint("m", i)), 0o755))
		}
		f.must(os.MkdirAll(filepath.Join(f.root, "n1", "node_modules", "a", "b"), 0o755))
		f.age()
		hidden := func(p string) bool { return filepath.Base(p) == ".env" }
		var h HiddenFiles
		watched := 0
		var did []string
		for step := range 150 {
			for range f.r.IntN(4) {
				did = append(did, f.change())
			}
			found, unseen := h.find([]string{f.root}, hidden, nil, "")
			var fresh HiddenFiles
			want, _ := fresh.find([]string{f.root}, hidden, nil, "")
			slices.Sort(found)
			slices.Sort(want)
			if !slices.Equal(found, want) || len(unseen) > 0 {
				t.Fatalf("%d watches, step %d: %q, and there are %q; not seen %q\n%s", most, step, found, want, unseen, strings.Join(did, "\n"))
			}
			did = nil
			n := 0
			for _, x := range h.folders {
				if x.watched {
					n++
				}
			}
			watched = max(watched, n)
		}
		if want := min(most, 2*fewFolders); int64(watched) < want || int64(watched) > most {
			t.Errorf("at most %d folders were watched", watched)
		}
		if n := int(most - left.Load()); n != len(h.watch.by) || n != len(h.watch.paths) {
			t.Errorf("%d watches are counted, and there are %d, of %d paths", n, len(h.watch.paths), len(h.watch.by))
		}
		if h.watch.close(); left.Load() != most {
			t.Errorf("%d of %d watches are left after all were given back", left.Load(), most)
		}
	}
}

// A command in a large project that has not changed looks at no folder of it.
func TestALargeProjectIsNotLookedAtAgain(t *testing.T) {
	root := t.TempDir()
	for i := range 3 * fewFolders {
		if err := os.MkdirAll(filepath.Join(root, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var h HiddenFiles
	find := func() ([]string, []string) {
		return h.find([]string{root}, func(p string) bool { return filepath.Base(p) == ".env" }, nil, "")
	}
	find()
	find()
	for dir, f := range h.folders {
		if !f.watched {
			t.Fatalf("%s is not watched", dir)
		}
		f.suspects = append(f.suspects, filepath.Join(dir, ".env")) // a look at the folder would not find it
	}
	h.last.suspects = []string{filepath.Join(root, "0", ".env")}
	if found, _ := find(); len(found) != 1 {
		t.Errorf("nothing has changed, and the last answer was not given again: %d", len(found))
	}
	if err := os.WriteFile(filepath.Join(root, "0", "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if found, _ := find(); len(found) != len(h.folders)-1 {
		t.Errorf("%d of %d folders were taken as they were", len(found), len(h.folders))
	}
}

// Lost events are no reason to believe what was remembered.
func TestLostEventsAreNotMissed(t *testing.T) {
	root := t.TempDir()
	for i := range 2 * fewFolders {
		if err := os.MkdirAll(filepath.Join(root, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var h HiddenFiles
	hidden := func(p string) bool { return filepath.Base(p) == ".env" }
	find := func() []string {
		found, _ := h.find([]string{root}, hidden, nil, "")
		return found
	}
	find()
	find()
	var most int
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(b), &most); err != nil {
		t.Fatal(err)
	}
	for range most/2 + 1 { // two events each
		if err := os.WriteFile(filepath.Join(root, "0", "x"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(root, "0", "x")); err != nil {
			t.Fatal(err)
		}
	}
	replaced := filepath.Join(root, "1")
	if err := errors.Join(os.Rename(replaced, filepath.Join(t.TempDir(), "elsewhere")), os.Mkdir(replaced, 0o755)); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, dir := range []string{filepath.Join(root, "2"), replaced} {
		if err := os.WriteFile(filepath.Join(dir, ".env"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		want = append(want, filepath.Join(dir, ".env"))
		for range 3 {
			found := find()
			slices.Sort(found)
			if slices.Sort(want); !slices.Equal(found, want) {
				t.Fatalf("found %q", found)
			}
		}
	}
}

// A folder that was moved and is watched under its new name is gone under the old one, although its event has not come yet.
func TestAFolderIsWatchedUnderOneName(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := openFolderWatch()
	defer w.close()
	if ok, _ := w.root(root); !ok {
		t.Skip("the file system of temporary files does not report its changes")
	}
	for _, dir := range []string{root, filepath.Join(root, "a"), filepath.Join(root, "a", "b")} {
		if !w.add(dir, root) {
			t.Fatal(dir, "is not watched")
		}
	}
	if err := os.Rename(filepath.Join(root, "a"), filepath.Join(root, "c")); err != nil {
		t.Fatal(err)
	}
	if !w.add(filepath.Join(root, "c"), root) {
		t.Fatal("the folder is not watched under its new name")
	}
	if _, gone, ok := w.catchUp(); !ok || !gone[filepath.Join(root, "a")] {
		t.Errorf("%v, gone: %v", ok, gone)
	}
}
