package checkpoint

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("git %v: %v %s", args, err, b)
	}
	return string(b)
}

// The index as git writes it, in every version: what is clean is known by its object, and read back whole.
func TestWhatGitHoldsNeedsNoCopy(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		t.Run("version "+version, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"a.txt": "a\n", "deep/er/b.txt": strings.Repeat("b\n", 5000), "deep/er/bc.txt": "", "ü ö.txt": "umlauts\n", "bin": "\x00\x01\xff"}
			old := time.Now().Add(-time.Hour)
			for name, text := range files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, old, old); err != nil {
					t.Fatal(err)
				}
			}
			git(t, dir, "init", "-q")
			git(t, dir, "config", "index.version", version)
			git(t, dir, "add", "-A")
			if version == "3" { // an extended flag makes it so
				git(t, dir, "update-index", "--skip-worktree", "a.txt")
				delete(files, "a.txt")
			}
			x := readIndex(dir)
			if x == nil {
				t.Fatal("the index was not read")
			}
			want := map[string]int64{}
			by := map[string]string{}
			for name, text := range files {
				s, _ := stampOf(filepath.Join(dir, name))
				id, ok := x.clean(name, s)
				if !ok {
					t.Errorf("%s is not clean", name)
				}
				want[id], by[id] = int64(len(text)), text
				s.mtime++
				if _, ok := x.clean(name, s); ok {
					t.Errorf("%s is clean though its time is another", name)
				}
			}
			if _, ok := x.clean("nothing", stamp{}); ok {
				t.Error("a file git does not know is clean")
			}
			want[strings.Repeat("0", 40)] = 1
			got := x.objects(context.Background(), want)
			if len(got) != len(by) {
				t.Errorf("%d of %d objects", len(got), len(by))
			}
			for id, text := range got {
				if text != by[id] {
					t.Errorf("%q, want %q", text, by[id])
				}
			}
		})
	}
}

// A file written in the same tick of the clock as the index may differ from it: it is copied.
func TestARacilyCleanFileIsNotTrusted(t *testing.T) {
	x := &gitIndex{written: time.Unix(100, 0), entries: map[string]gitEntry{"a": {mtime: 100e9, size: 1, id: "x"}}}
	if _, ok := x.clean("a", stamp{size: 1, mtime: 100e9}); ok {
		t.Error("trusted")
	}
}

func FuzzGitIndex(f *testing.F) {
	dir := f.TempDir()
	_ = os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o644)
	if exec.Command("git", "-C", dir, "init", "-q").Run() == nil && exec.Command("git", "-C", dir, "add", "-A").Run() == nil {
		if b, err := os.ReadFile(filepath.Join(dir, ".git", "index")); err == nil {
			f.Add(b)
			b[7] = 4
			f.Add(b)
		}
	}
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseIndex(b)
		if err == nil && len(entries) > len(b)/62 {
			t.Errorf("%d entries in %d bytes", len(entries), len(b))
		}
	})
}

// Every version of the index, with names of all lengths and files that are only announced, says what git says; and one that is cut off
// anywhere says nothing that is not so.
func TestAnIndexSaysWhatGitSays(t *testing.T) {
	for _, version := range []string{"2", "4"} {
		dir := t.TempDir()
		long := strings.Repeat("x", 100)
		var names []string
		for i, name := range []string{"a", "ab", strings.Repeat("d/", 90) + "e", long + "/" + long + "/z", long + "/zz", "short", "z" + long} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Repeat("y", i)), 0o644); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		git(t, dir, "init", "-q")
		git(t, dir, "config", "index.version", version)
		git(t, dir, "add", "-A")
		if err := os.WriteFile(filepath.Join(dir, "announced"), []byte("n"), 0o644); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "add", "-N", "announced") // an entry with extended flags
		want := map[string]string{}
		for line := range strings.Lines(git(t, dir, "ls-files", "-s")) {
			head, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
			want[name] = strings.Fields(head)[1]
		}
		b, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := parseIndex(b)
		if err != nil || len(whole) != len(want) {
			t.Fatalf("version %s: %d entries of %d, %v", version, len(whole), len(want), err)
		}
		for name, e := range whole {
			if e.id != want[name] {
				t.Errorf("version %s: %s is %s, want %s", version, name, e.id, want[name])
			}
		}
		for _, name := range names {
			if _, ok := whole[name]; !ok {
				t.Errorf("version %s: %s is missing", version, name)
			}
		}
		for i := range b {
			part, err := parseIndex(b[:i])
			if err == nil && len(part) != len(whole) {
				t.Errorf("version %s, cut off after %d bytes: %d entries", version, i, len(part))
			}
			for name, e := range part {
				if whole[name] != e {
					t.Errorf("version %s, cut off after %d bytes: %s is %v", version, i, name, e)
				}
			}
		}
		for at, c := range map[int]byte{0: 'd', 7: 1, 6: 1, 11: 255} { // the mark, the version, and the number of entries
			other := bytes.Clone(b)
			other[at] = c
			if _, err := parseIndex(other); err == nil {
				t.Errorf("version %s: read with byte %d as %d", version, at, c)
			}
		}
	}
}

func TestOffsetNumbers(t *testing.T) {
	for _, c := range []struct {
		b    string
		v, n int
	}{
		{"\x7f", 127, 1}, {"\x80\x00", 128, 2}, {"\x80\x00x", 128, 2}, {"\x81\x00", 256, 2}, {"\x80\x80\x00", 16512, 3}, {"", 0, 0}, {"\x80", 0, 0},
		{"\x80\x80\x80\x80\x00", 270549120, 5}, {"\x80\x80\x80\x80\x80\x00", 0, 0},
	} {
		if v, n := uvarint([]byte(c.b)); v != c.v || n != c.n {
			t.Errorf("%x: %d of %d bytes, want %d of %d", c.b, v, n, c.v, c.n)
		}
	}
}

// A file .git leads to the repository, by a path that counts from the worktree (as in submodules) or from the root.
func TestAnIndexBehindAGitFile(t *testing.T) {
	top := t.TempDir()
	dir, repo := filepath.Join(top, "work"), filepath.Join(top, "repo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	if err := os.Rename(filepath.Join(dir, ".git"), repo); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"gitdir: ../repo\n": true, "gitdir: " + repo + "\n": true, "gitdir: ../nowhere\n": false, repo: false} {
		if err := os.WriteFile(filepath.Join(dir, ".git"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		x := readIndex(dir)
		if got := x != nil && len(x.entries) == 1 && x.dir == repo; got != want {
			t.Errorf("%q: %+v", text, x)
		}
	}
}
