//go:build unix

package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Two callers that name the same paths in opposite order cannot wait for each other: a waiter holds nothing that sorts behind what it
// waits for. And a lock that is given back goes to the next in line.
func TestLocksAreTakenInOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks
		unlock, err := l.Lock(bg, "/a")
		if err != nil {
			t.Fatal(err)
		}
		both := make(chan func())
		go func() {
			unlock, err := l.Lock(bg, "/b", "/a")
			if err != nil {
				t.Error(err)
			}
			both <- unlock
		}()
		synctest.Wait() // it waits for /a
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		unlockB, err := l.Lock(ctx, "/b")
		if err != nil {
			t.Fatalf("the waiter for /a holds /b: %v", err)
		}
		unlockB()
		unlock()
		(<-both)()
		if len(l.held) != 0 {
			t.Errorf("entries stay: %v", l.held)
		}
	})
}

func TestTrackerOfSeveralThings(t *testing.T) {
	var nobody *Tracker
	if nobody.States() != nil || nobody.Files(3) != nil || !nobody.Known("/a") || !nobody.HasSeen("/a", "x") {
		t.Error("no tracker knows every file and lists none")
	}
	var tr Tracker
	tr.Know("/a", "text")
	tr.Note("/b", "state of b")
	if got := tr.States(); len(got) != 2 || got["/a"] != Hash([]byte("text")) || got["/b"] != "state of b" {
		t.Errorf("states: %v", got)
	}
	tr.Saw("/c", "func f() {}")
	for range 2 { // twice: the first must give its lock back
		if !tr.HasSeen("/c", "f()") || tr.HasSeen("/c", "g()") || tr.HasSeen("/a", "f()") {
			t.Error("a passage is seen in its own file and text only")
		}
	}
	if tr.Known("/c") {
		t.Error("a passage is not the file")
	}
}

// Texts are kept up to a sum; beyond it the oldest go, and never what decides: the hash.
func TestTrackerKeepsTheLatestTexts(t *testing.T) {
	var tr Tracker
	text := strings.Repeat("x", keepText)
	name := func(i int) string { return "/" + string(rune('a'+i)) }
	most := keepTexts / keepText
	for i := range most + 1 {
		tr.Know(name(i), text)
		tr.Know(name(i), text) // again counts once
	}
	stale := func(i int) *StaleError {
		var e *StaleError
		if err := tr.Check(&File{Path: name(i), Real: name(i), Exists: true, Text: "other"}); !errors.As(err, &e) {
			t.Fatalf("%s: %v", name(i), err)
		}
		return e
	}
	if stale(0).HasThen || !stale(1).HasThen || stale(1).Then != text || !stale(most).HasThen {
		t.Error("not the oldest text was dropped")
	}
	tr.Know("/big", text+"x")
	if e := tr.Check(&File{Path: "/big", Real: "/big", Exists: true}); e.(*StaleError).HasThen {
		t.Error("a text over the limit was kept")
	}
	tr.Forget(name(1))
	if tr.kept != (most-1)*keepText || len(tr.order) != most-1 {
		t.Errorf("%d bytes of %d texts are counted", tr.kept, len(tr.order))
	}
}

func TestKindsAreNamed(t *testing.T) {
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "s")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{fifo: "but a named pipe", socket: "but a socket", os.DevNull: "but a device"} {
		fi, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := kind(path, fi); !errors.Is(err, ErrNotRegular) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	fi, _ := os.Lstat(write(t, filepath.Join(dir, "a"), ""))
	if err := kind("a", fi); err != nil {
		t.Error(err)
	}
}

func TestMissingFoldersOutermostFirst(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if got := MissingDirs(in("a/b/c")); !slices.Equal(got, []string{in("a"), in("a/b")}) {
		t.Errorf("%v", got)
	}
	if got := MissingDirs(in("c")); len(got) != 0 {
		t.Errorf("%v", got)
	}
	// a link that leads nowhere is there: no folder can be made in its place
	os.Symlink("nowhere", in("link"))
	if got := MissingDirs(in("link/x/c")); !slices.Equal(got, []string{in("link/x")}) {
		t.Errorf("%v", got)
	}
}

// A judged place is the one that is written: a link may be removed or moved as the name it is, while it leads where it led.
func TestANameThatWasJudged(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	target := write(t, filepath.Join(dir, "target"), "x")
	other := write(t, filepath.Join(dir, "other"), "y")
	link := filepath.Join(dir, "link")
	os.Symlink("target", link)
	for _, c := range []struct{ path, real, want string }{
		{link, "", link}, {target, target, target}, {link, target, link}, {link, other, ""}, {target, other, ""}, {filepath.Join(dir, "none"), other, ""},
	} {
		got, err := named(c.path, c.real)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, ErrStale) {
			t.Errorf("%s judged as %q: %q, %v", c.path, c.real, got, err)
		}
	}
}

func TestAMoveAloneComparesTheText(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, filepath.Join(dir, "a"), "mine"), filepath.Join(dir, "b")
	err := Commit(bg, []Op{{Kind: Move, Path: a, NewPath: b, Base: Hash([]byte("yours"))}}, nil)
	if !errors.Is(err, ErrStale) || read(t, a) != "mine" {
		t.Errorf("moved another text: %v", err)
	}
	for _, base := range []string{Hash([]byte("mine")), ""} {
		if err := Commit(bg, []Op{{Kind: Move, Path: a, NewPath: b, Base: base}}, nil); err != nil || read(t, b) != "mine" {
			t.Errorf("base %q: %v", base, err)
		}
		a, b = b, a
	}
}

func TestCopyFileCopiesAll(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, filepath.Join(dir, "a"), "old text"), filepath.Join(dir, "b")
	os.Chmod(a, 0o640)
	if err := copyFile(a, b); err != nil || read(t, b) != "old text" {
		t.Fatalf("%v", err)
	}
	if fi, _ := os.Stat(b); fi.Mode() != 0o640 {
		t.Errorf("mode %v", fi.Mode())
	}
	if err := copyFile(a, b); !errors.Is(err, os.ErrExist) {
		t.Errorf("written over what is there: %v", err)
	}
}

func TestOverwriteOfALongerFile(t *testing.T) {
	a := write(t, filepath.Join(t.TempDir(), "a"), "a long text")
	if err := overwrite(a, []byte("a long text"), []byte("short")); err != nil || read(t, a) != "short" {
		t.Errorf("%q, %v", read(t, a), err)
	}
}

func TestTheFirstFailedFlushIsTold(t *testing.T) {
	var f flushes
	first := errors.New("first")
	f.add(func() error { return first })
	f.all.Wait()
	f.add(func() error { return errors.New("second") })
	f.add(func() error { return nil })
	if err := f.wait(); err != first {
		t.Errorf("%v", err)
	}
}

func TestStaleIsNotExplainedAway(t *testing.T) {
	stale := &BaseError{"/a"}
	if err := explain("/a", stale); err != stale {
		t.Errorf("%v", err)
	}
	if err := explain("/a", syscall.EROFS); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("%v", err)
	}
}

func TestRecoveredNamesFiveFiles(t *testing.T) {
	files := strings.Split("abcdefg", "")
	for n, want := range map[int]string{5: "rolled back: a, b, c, d, e", 6: "rolled back: a, b, c, d, e and 1 more", 7: "rolled back: a, b, c, d, e and 2 more"} {
		if got := (Recovered{Outcome: "rolled back", Files: files[:n]}).String(); got != want {
			t.Errorf("%q", got)
		}
	}
}

// The length of a torn file is between those of the two texts.
func TestTornOfEveryLength(t *testing.T) {
	for _, c := range []struct {
		b, old, new string
		want        bool
	}{
		{"abc", "ab", "abcd", true}, {"abcd", "ab", "abcd", true}, {"ab", "ab", "abcd", true}, {"a", "ab", "abcd", false}, {"abcde", "ab", "abcd", false},
		{"new, lot", "old slot", "new, l", true}, {"newXslot", "old slot", "new", false},
	} {
		if got := torn([]byte(c.b), []byte(c.old), []byte(c.new)); got != c.want {
			t.Errorf("%q of %q and %q: %v", c.b, c.old, c.new, got)
		}
	}
}

// counting counts what a commit says to its journal.
type counting struct {
	*DirJournal
	begun int
}

func (c *counting) Begin(ctx context.Context, id string, data []byte) error {
	c.begun++
	return c.DirJournal.Begin(ctx, id, data)
}

// Each entry is flushed, which is most of what a small edit costs. One step that is atomic by itself needs none; others have one before
// the first step and one that says that all are done.
func TestEntriesOfACommit(t *testing.T) {
	dir := t.TempDir()
	op := func(name, base string) Op {
		if base != "" {
			base = Hash([]byte(base))
		}
		return Op{Kind: Write, Path: filepath.Join(dir, name), Data: []byte("x"), Base: base}
	}
	write(t, filepath.Join(dir, "one"), "old")
	os.Link(write(t, filepath.Join(dir, "linked"), "old"), filepath.Join(dir, "other name"))
	for name, c := range map[string]struct {
		want int
		ops  []Op
	}{
		"a new file":     {0, []Op{op("a", "")}},
		"a changed file": {0, []Op{op("one", "old")}},
		"in place":       {2, []Op{op("linked", "old")}},
		"two files":      {2, []Op{op("b", ""), op("c", "")}},
	} {
		j := &counting{DirJournal: &DirJournal{filepath.Join(t.TempDir(), "j")}}
		if err := Commit(bg, c.ops, j); err != nil || j.begun != c.want {
			t.Errorf("%s: %d entries, %v", name, j.begun, err)
		}
	}
}

// What a killed Begin left is no entry; it is removed when no running one can still be writing it.
func TestHalfWrittenEntries(t *testing.T) {
	j := &DirJournal{t.TempDir()}
	fresh, old := write(t, filepath.Join(j.Dir, "x.json.tmp"), "{"), write(t, filepath.Join(j.Dir, "y.json.tmp"), "{")
	then := time.Now().Add(-2 * time.Hour)
	os.Chtimes(old, then, then)
	if err := j.Begin(bg, "z", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	pending, err := j.Pending(bg)
	if err != nil || len(pending) != 1 || pending[0].ID != "z" {
		t.Errorf("%v, %v", pending, err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("removed what may still be written")
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the old one stays")
	}
}
