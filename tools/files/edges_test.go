//go:build unix

package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
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

// A single move is a rename only where that is all that is asked.
func TestAMoveAloneSetsTheMode(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, filepath.Join(dir, "a"), "x"), filepath.Join(dir, "b")
	if err := Commit(bg, []Op{{Kind: Move, Path: a, NewPath: b, Mode: 0o600, Base: Hash([]byte("x"))}}, nil); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(b); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
}

// Only the bits for writing make a file writable: one that may be run is read-only without them, before and after the change.
func TestARunnableFileCanBeReadOnly(t *testing.T) {
	for mode, refused := range map[os.FileMode]bool{0: true, 0o555: true, 0o111: true, 0o755: false} {
		p := write(t, filepath.Join(t.TempDir(), "a.sh"), "x")
		if err := os.Chmod(p, 0o555); err != nil {
			t.Fatal(err)
		}
		err := Commit(bg, []Op{{Kind: Write, Path: p, Data: []byte("y"), Base: Hash([]byte("x")), Mode: mode}}, nil)
		if errors.Is(err, ErrReadOnly) != refused || !refused && err != nil {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

// A change of the mode alone has the same bytes before and after; a crash at any point leaves all old or all new.
func TestCrashAtEveryPointWithModesOnly(t *testing.T) {
	look := func(dir string) map[string]string {
		out := tree(dir)
		for path := range out {
			fi, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			out[path] += fi.Mode().String()
		}
		return out
	}
	dieEverywhere(t, 8, look, func(dir string, _ int) (ops []Op, old, new map[string]string) {
		for _, name := range []string{"a", "b"} {
			p := write(t, filepath.Join(dir, name), name)
			if err := os.Chmod(p, 0o644); err != nil {
				t.Fatal(err)
			}
			ops = append(ops, Op{Kind: Write, Path: p, Data: []byte(name), Base: Hash([]byte(name)), Mode: 0o755})
		}
		old, new = look(dir), map[string]string{}
		for path, text := range old {
			new[path] = strings.Replace(text, "-rw-r--r--", "-rwxr-xr-x", 1)
		}
		return ops, old, new
	})
}

// An entry that was only noted is ended like one that was begun.
func TestACommitLeavesNoEntry(t *testing.T) {
	dir := t.TempDir()
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	for _, names := range [][]string{{"a"}, {"b", "c"}} {
		var ops []Op
		for _, name := range names {
			ops = append(ops, Op{Kind: Write, Path: filepath.Join(dir, name), Data: []byte("x")})
		}
		if err := Commit(bg, ops, j); err != nil {
			t.Fatal(err)
		}
		if list, err := j.Pending(bg); err != nil || len(list) != 0 {
			t.Errorf("%v: %v, %v", names, list, err)
		}
	}
}

// The oldest entry is recovered first, whatever its id.
func TestEntriesAreInTheOrderOfTheirTimes(t *testing.T) {
	j := &DirJournal{t.TempDir()}
	start := time.Now().Add(-time.Hour)
	for n, id := range []string{"wc", "wa", "wd", "wb"} {
		if err := j.Begin(bg, id, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		at := start.Add(time.Duration(n) * time.Minute)
		if err := os.Chtimes(j.path(id), at, at); err != nil {
			t.Fatal(err)
		}
	}
	list, err := j.Pending(bg)
	var ids []string
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	if err != nil || !slices.Equal(ids, []string{"wc", "wa", "wd", "wb"}) {
		t.Errorf("%v, %v", ids, err)
	}
}

// While one process writes, another waits, and gives up only with its call.
func TestOneWriterAtATime(t *testing.T) {
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	unlock, err := j.writing(bg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := (&DirJournal{j.Dir}).writing(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second writer: %v", err)
	}
	unlock()
	again, err := (&DirJournal{j.Dir}).writing(ctx)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again()
}

// A plan is another's while its process may run: a process id alone may have been given to a new one.
func TestWhoseAPlanIs(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	parent := os.Getppid()
	if _, err := os.Stat("/proc/self/stat"); err == nil && processStart(parent) == "" {
		t.Error("the start of a process is not known")
	}
	for name, c := range map[string]struct {
		plan plan
		want bool
	}{
		"this process":                       {plan{Host: host, PID: os.Getpid(), Start: processStart(os.Getpid())}, true},
		"an earlier one with its id":         {plan{Host: host, PID: os.Getpid(), Start: "1"}, false},
		"another that runs":                  {plan{Host: host, PID: parent, Start: processStart(parent)}, true},
		"another that runs, without a start": {plan{Host: host, PID: parent}, true},
		"an earlier one with another's id":   {plan{Host: host, PID: parent, Start: "1"}, false},
		"none":                               {plan{Host: host, PID: 1 << 30}, false},
		"on another machine":                 {plan{Host: host + "x", PID: 1 << 30}, true},
	} {
		if got := c.plan.alive(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// A temporary file is not removed while it is being flushed, so the wait ends with the last flush.
func TestAWaitEndsWithTheLastFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flushes
		hold, over := make(chan struct{}), false
		f.add(func() error { <-hold; return nil })
		go func() {
			if err := f.wait(); err != nil {
				t.Error(err)
			}
			over = true
		}()
		synctest.Wait()
		if over {
			t.Error("the wait ended before the flush")
		}
		close(hold)
		synctest.Wait()
		if !over {
			t.Error("the wait has not ended with the flush")
		}
	})
}

// What the person sees of a file is read: its line endings, and the buffer under whichever of its names the editor uses.
func TestOpenedAsThePersonSeesIt(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real, link := write(t, filepath.Join(dir, "real"), "a\r\nb\r\n"), filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bufs bufs
		text string
		eol  EOL
	}{
		"no buffer":               {nil, "a\r\nb\r\n", CRLF},
		"under the link":          {bufs{link: {Text: "mine\n", Dirty: true}}, "mine\n", LF},
		"under the file":          {bufs{real: {Text: "mine", Dirty: true}}, "mine", None},
		"under both, as asked":    {bufs{link: {Text: "link\n", Dirty: true}, real: {Text: "real", Dirty: true}}, "link\n", LF},
		"one that was not edited": {bufs{real: {Text: "old"}}, "a\r\nb\r\n", CRLF},
	} {
		f, err := Open(link, c.bufs)
		if err != nil || f.Text != c.text || f.EOL != c.eol {
			t.Errorf("%s: %q %q, %v", name, f.Text, f.EOL, err)
		}
	}
}

// Of a text that was too long to keep nothing is kept.
func TestALongTextIsNotKept(t *testing.T) {
	var tr Tracker
	tr.Know("/a", strings.Repeat("x", keepText+1))
	var stale *StaleError
	if err := tr.Check(&File{Path: "/a", Real: "/a", Exists: true}); !errors.As(err, &stale) || stale.HasThen || stale.Then != "" {
		t.Errorf("%d bytes", len(stale.Then))
	}
}

// The character that stands for what is no text may be in a text itself, and is not a stray byte then.
func TestReplacementCharactersAreText(t *testing.T) {
	for _, e := range []Encoding{UTF16LE, UTF16BE} {
		b, err := Encode("a\ufffdb", e)
		if err != nil {
			t.Fatal(err)
		}
		if got, enc := Decode(b); got != "a\ufffdb" || enc != e {
			t.Errorf("%q %s", got, enc)
		}
		if _, err := Encode("a\nb\xff", e); !errors.Is(err, ErrUnencodable) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("a stray byte: %v", err)
		}
	}
}

// Names of temporary files and entries come from the id, so two commits at once must not have the same.
func TestPlansHaveTheirOwnNames(t *testing.T) {
	a, b := startPlan(), startPlan()
	if a.ID == b.ID || a.side("/p/f", 0, "tmp") == b.side("/p/f", 0, "tmp") {
		t.Errorf("%s, %s", a.ID, b.ID)
	}
}

// A backup in a folder that is gone is gone as well, and nobody is sent to look for it.
func TestABackupInAFolderThatIsGone(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("made"), "g")
	p := &plan{ID: "w1", Steps: []step{
		{Kind: stepReplace, Path: in("gone/f"), Temp: in("gone/temp"), Backup: in("gone/backup"), OldHash: Hash([]byte("old")), NewHash: Hash([]byte("new"))},
		{Kind: stepCreate, Path: in("made"), Temp: in("madetemp"), NewHash: Hash([]byte("g"))},
	}}
	r, err := p.recover()
	if err != nil || r.Outcome != RolledBack || r.Detail != "" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(in("made")); err == nil {
		t.Error("the other file of the commit stays")
	}
}

// A file that keeps its inode gets its mode there too, and nobody else can read the journal, which has its texts.
func TestModesOfWhatIsWrittenInPlace(t *testing.T) {
	dir := t.TempDir()
	p := write(t, filepath.Join(dir, "a"), "x")
	if err := os.Link(p, filepath.Join(dir, "other name")); err != nil {
		t.Fatal(err)
	}
	j := &DirJournal{filepath.Join(dir, "j")}
	if err := Commit(bg, []Op{{Kind: Write, Path: p, Data: []byte("y"), Base: Hash([]byte("x")), Mode: 0o640}}, j); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{p: 0o640, j.Dir: 0o700} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, fi.Mode(), err)
		}
	}
}

// State is of the text that the person sees: of the buffer where it is unsaved, and the same in every encoding.
func TestStateIsOfTheTextThatIsSeen(t *testing.T) {
	dir := t.TempDir()
	utf16, err := Encode("text", UTF16LE)
	if err != nil {
		t.Fatal(err)
	}
	plain, wide, none := write(t, filepath.Join(dir, "a"), "text"), write(t, filepath.Join(dir, "b"), string(utf16)), filepath.Join(dir, "none")
	for _, c := range []struct {
		path, buffer, want string
	}{{plain, "", "text"}, {plain, "typed", "typed"}, {wide, "", "text"}, {wide, "typed", "typed"}, {none, "", ""}, {none, "typed", "typed"}} {
		var open bufs
		if c.buffer != "" {
			open = bufs{c.path: {Text: c.buffer, Dirty: true}}
		}
		f, err := Open(c.path, open)
		if err != nil || f.State() != Hash([]byte(c.want)) {
			t.Errorf("%s with %q in its buffer: %v", c.path, c.buffer, err)
		}
	}
}

// Where nothing waits, recovery leaves no trace.
func TestRecoveryOfNothingMakesNoFolder(t *testing.T) {
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	if got, err := Recover(bg, j); len(got) != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := os.Stat(j.Dir); err == nil {
		t.Error("the folder of the journal was made")
	}
}

// More files than may be open at a time are flushed one after the other, at most mostFlushes at once.
func TestFlushesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flushes
		release, done := make(chan struct{}), make(chan struct{})
		var running, most, ended int
		var mu sync.Mutex
		go func() {
			defer close(done)
			for range 3 * mostFlushes {
				f.add(func() error {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					<-release
					mu.Lock()
					running--
					ended++
					mu.Unlock()
					return nil
				})
			}
			f.wait()
		}()
		synctest.Wait()
		close(release)
		<-done
		if most != mostFlushes || ended != 3*mostFlushes {
			t.Errorf("%d at once, %d ended", most, ended)
		}
	})
}

// A path is read as it is written, before its links are followed: a tool's ".." leads where its caller reads that it leads.
func TestDotsAreReadBeforeLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "elsewhere", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("elsewhere", "deep"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "elsewhere", "there"), "x")
	for _, name := range []string{"there", "none"} {
		if got, err := Real(dir + "/link/../" + name); err != nil || got != filepath.Join(dir, name) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// Entries hold texts of files that others may not read, from the first one on.
func TestEntriesAreTheUsersOwn(t *testing.T) {
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	for _, id := range []string{"wa", "wb"} { // the first makes the folder
		if err := j.Begin(bg, id, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(j.path(id)); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", id, fi, err)
		}
	}
}

// during calls do when a commit comes to a point for the first time.
func during(t *testing.T, point string, do func()) {
	t.Helper()
	reached := false
	crash = func(at string) error {
		if at == point && !reached {
			reached = true
			do()
		}
		return nil
	}
	t.Cleanup(func() {
		crash = nil
		if !reached {
			t.Errorf("the commit did not come to %q", point)
		}
	})
}

// Another program made the folder first: the commit uses it, and takes it back only when it is empty.
func TestAFolderThatAppearsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	during(t, "begun", func() { write(t, in("new/theirs"), "x") })
	ops := []Op{{Kind: Write, Path: in("new/a"), Data: []byte("a")}, {Kind: Write, Path: in("new/b"), Data: []byte("b")}}
	if err := Commit(bg, ops, &DirJournal{in("j")}); err != nil || read(t, in("new/a")) != "a" || read(t, in("new/theirs")) != "x" {
		t.Errorf("%v, %v", err, tree(in("new")))
	}
}

// A file that another program changes or exchanges between the comparison and the step is not overwritten: another file, another time and
// another size are each enough to notice.
func TestAFileThatChangesBeforeTheStep(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, a string){
		"another file":  func(t *testing.T, a string) { os.Rename(write(t, a+".theirs", "mine 2"), a) },
		"another text":  func(t *testing.T, a string) { os.WriteFile(a, []byte("mine 2"), 0o600) },
		"a longer text": func(t *testing.T, a string) { os.WriteFile(a, []byte("mine 234"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := write(t, filepath.Join(dir, "a"), "mine 1")
			then := time.Now().Add(-time.Hour)
			if err := os.Chtimes(a, then, then); err != nil {
				t.Fatal(err)
			}
			during(t, "apply", func() {
				do(t, a)
				if name != "another text" {
					os.Chtimes(a, then, then)
				}
			})
			err := Commit(bg, []Op{{Kind: Write, Path: a, Data: []byte("new"), Base: Hash([]byte("mine 1"))}}, &DirJournal{filepath.Join(dir, "j")})
			if !errors.Is(err, ErrStale) || !strings.HasPrefix(read(t, a), "mine 2") {
				t.Errorf("%q, %v", read(t, a), err)
			}
		})
	}
}

// What cannot be undone is said, and its old text and its entry stay for the next start.
func TestAStepThatCannotBeUndone(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	j := &DirJournal{in("j")}
	steps := 0
	crash = func(point string) error {
		if point == "apply" {
			if steps++; steps == 3 { // b is made; its name becomes a folder with something in it, and c has changed
				os.Remove(in("b"))
				write(t, in("b/theirs"), "x")
				write(t, in("c"), "theirs")
			}
		}
		return nil
	}
	defer func() { crash = nil }()
	write(t, in("a"), "a old")
	write(t, in("c"), "c old")
	err := Commit(bg, []Op{{Kind: Write, Path: in("a"), Data: []byte("a new"), Base: Hash([]byte("a old"))}, {Kind: Write, Path: in("b"), Data: []byte("b new")},
		{Kind: Write, Path: in("c"), Data: []byte("c new"), Base: Hash([]byte("c old"))}}, j)
	if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "undoing the change failed too: ["+in("b")) {
		t.Errorf("%v", err)
	}
	if read(t, in("a")) != "a old" || read(t, in("c")) != "theirs" || read(t, in("b/theirs")) != "x" {
		t.Errorf("%v", tree(dir))
	}
	if pending, _ := j.Pending(bg); len(pending) != 1 {
		t.Errorf("%d entries wait for the next start", len(pending))
	}
}

// The folder of the journal has locks too, which stay however old they are.
func TestOldLocksStay(t *testing.T) {
	j := &DirJournal{t.TempDir()}
	lock := write(t, filepath.Join(j.Dir, ".write.lock"), "")
	then := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(lock, then, then); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Pending(bg); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Error(err)
	}
}

// Files of one commit share new folders, each of which is made once, at whatever place it is named.
func TestSharedNewFoldersAreMadeOnce(t *testing.T) {
	dir := t.TempDir()
	var have []string
	for _, name := range []string{"a/b", "a", "c", "a/b"} {
		have = missingDirs(have, filepath.Join(dir, name))
	}
	if want := []string{filepath.Join(dir, "a"), filepath.Join(dir, "a/b"), filepath.Join(dir, "c")}; !slices.Equal(have, want) {
		t.Errorf("%v", have)
	}
}

// A file of nothing but its mark is an empty text, and keeps the mark.
func TestAMarkAloneIsAnEmptyText(t *testing.T) {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\xef\xbb\xbf"} {
		text, enc := Decode([]byte(mark))
		if b, err := Encode(text, enc); text != "" || err != nil || string(b) != mark {
			t.Errorf("%x: %q as %s, %x, %v", mark, text, enc, b, err)
		}
	}
}

// A move takes a file's text along, so what the same commit made a link is not moved either.
func TestALinkOfTheSameCommitIsNotMoved(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a"), "x")
	err := Commit(bg, []Op{{Kind: Link, Path: a, Data: []byte("elsewhere"), Base: Hash([]byte("x"))}, {Kind: Move, Path: a, NewPath: filepath.Join(dir, "b"), Base: Hash([]byte("x"))}}, nil)
	if err == nil || !strings.Contains(err.Error(), "is a symbolic link") || read(t, a) != "x" {
		t.Errorf("%v", err)
	}
}

// Neither is a link that was there before, nor a file that the same commit makes: the move would take along a text that nobody has read.
func TestWhatIsNotMovedWithOtherChanges(t *testing.T) {
	dir := t.TempDir()
	target, link, other := write(t, filepath.Join(dir, "target"), "x"), filepath.Join(dir, "link"), filepath.Join(dir, "other")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	err := Commit(bg, []Op{{Kind: Write, Path: other, Data: []byte("y")}, {Kind: Move, Path: link, NewPath: filepath.Join(dir, "b")}}, nil)
	if to, e := os.Readlink(link); err == nil || !strings.Contains(err.Error(), "is a symbolic link") || e != nil || to != target {
		t.Errorf("%v; the link leads to %q, %v", err, to, e)
	}
	for _, op := range []Op{{Kind: Move, Path: other, NewPath: filepath.Join(dir, "b")}, {Kind: Remove, Path: other}} {
		if err := Commit(bg, []Op{{Kind: Write, Path: other, Data: []byte("y")}, op}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of a new file: %v", op.Kind, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// A file that was expected to have a certain text is read whole wherever it differs, and a string of exactly that text is not made again.
func TestOpenLikeReadsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	text := strings.Repeat("0123456789abcde\n", 20_000) // several buffers
	for _, at := range []int{0, 1, 64 << 10, 64<<10 + 1, 150_000, len(text) - 1, len(text)} {
		for name, now := range map[string]string{"cut": text[:at], "changed": text[:at] + "X" + text[min(at+1, len(text)):], "inserted": text[:at] + "XY" + text[at:], "same": text} {
			write(t, path, now)
			f, err := OpenLike(path, path, text, nil)
			if err != nil || f.Text != now || f.Hash != Hash([]byte(now)) {
				t.Errorf("%s at %d: %d bytes of %d, %v", name, at, len(f.Text), len(now), err)
			}
		}
	}
	write(t, path, text)
	if f, err := OpenLike(path, path, text, nil); err != nil || unsafe.StringData(f.Text) != unsafe.StringData(text) {
		t.Errorf("the text was copied: %v", err)
	}
}

// What grows while it is read is never a text that ends at the limit.
func TestReadTextEndsBeyondTheLimit(t *testing.T) {
	block := strings.Repeat("x", 64<<10)
	for _, like := range []string{"", strings.Repeat(block, MaxText/len(block)+1)} {
		var all []io.Reader
		for range MaxText / len(block) {
			all = append(all, strings.NewReader(block))
		}
		text, _, err := readText(io.MultiReader(append(all, strings.NewReader("more"))...), 64<<10, like)
		if err != nil || len(text) <= MaxText {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	}
	path := filepath.Join(t.TempDir(), "a.txt")
	write(t, path, strings.Repeat(block, MaxText/len(block)))
	if f, err := OpenLike(path, path, "", nil); err != nil || len(f.Text) != MaxText {
		t.Errorf("a text of exactly the limit: %v", err)
	}
}

// An entry that could not be made leaves nothing beside it, and locks are the user's own.
func TestWhatAFailedEntryLeaves(t *testing.T) {
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	write(t, filepath.Join(j.path("wa"), "in its place"), "x")
	if err := j.Begin(bg, "wa", []byte("{}")); err == nil {
		t.Fatal("a folder was replaced")
	}
	unlock, err := j.writing(bg)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	list, err := os.ReadDir(j.Dir)
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if fi, err := os.Stat(filepath.Join(j.Dir, ".write.lock")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
}
