//go:build unix

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// clean fails when a commit left something of its own behind.
func clean(t *testing.T, dir string) {
	t.Helper()
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(p), ".pillion-") {
			t.Errorf("left behind: %s", p)
		}
		return nil
	})
}

var bg = context.Background()

func TestEveryByteSurvivesDecodeAndEncode(t *testing.T) {
	for _, c := range []struct {
		name string
		b    string
		enc  Encoding
	}{
		{"plain", "a\nb", UTF8},
		{"empty", "", UTF8},
		{"BOM", "\xef\xbb\xbfä\r\n", UTF8BOM},
		{"only a BOM", "\xef\xbb\xbf", UTF8BOM},
		{"UTF-16 LE", "\xff\xfea\x00\n\x00", UTF16LE},
		{"UTF-16 BE with a pair", "\xfe\xff\xd8\x3d\xde\x00", UTF16BE},
		{"UTF-16 with a lone surrogate", "\xff\xfe\x00\xd8", Bytes},
		{"UTF-16 of odd length", "\xff\xfea", Bytes},
		{"UTF-32", "\xff\xfe\x00\x00a\x00\x00\x00", Bytes},
		{"Latin-1", "caf\xe9", Bytes},
		{"BOM and rubbish", "\xef\xbb\xbf\xff", Bytes},
		{"NUL", "a\x00b", UTF8},
	} {
		text, enc := Decode([]byte(c.b))
		if enc != c.enc {
			t.Errorf("%s: is %s, want %s", c.name, enc, c.enc)
		}
		if b, err := Encode(text, enc); err != nil || string(b) != c.b {
			t.Errorf("%s: comes back as %q, %v", c.name, b, err)
		}
	}
}

func FuzzEncoding(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"))
	f.Add([]byte("\xfe\xff\xd8\x3d\xde\x00"))
	f.Add([]byte("x\xe9"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, enc := Decode(b)
		if back, err := Encode(text, enc); err != nil || !bytes.Equal(b, back) {
			t.Fatalf("%q (%s) comes back as %q, %v", b, enc, back, err)
		}
	})
}

func TestLatin1RefusesWhatItCannotHold(t *testing.T) {
	_, err := Encode("caf\u00e9\nsnow \u2603", Bytes)
	if !errors.Is(err, ErrUnencodable) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v", err)
	}
}

func TestRealFollowsLinksThatDangle(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	os.Symlink(filepath.Join(dir, "outside", "new"), filepath.Join(dir, "dangling"))
	os.Symlink("loop", filepath.Join(dir, "loop"))
	os.Mkdir(filepath.Join(dir, "sub"), 0o755)
	os.Symlink("../other", filepath.Join(dir, "sub", "rel"))
	for _, c := range [][2]string{
		{"dangling", "outside/new"}, {"sub/rel/x/y", "other/x/y"}, {"nothing/here", "nothing/here"}, {"sub/../a", "a"},
	} {
		if got, err := Real(filepath.Join(dir, c[0])); err != nil || got != filepath.Join(dir, c[1]) {
			t.Errorf("Real(%s) = %s, %v, want %s", c[0], got, err, c[1])
		}
	}
	if _, err := Real(filepath.Join(dir, "loop", "x")); err == nil {
		t.Error("a loop of links was resolved")
	}
	if _, err := Real("rel"); err == nil {
		t.Error("a relative path was resolved")
	}
}

// Each of these would make a plain read wait for ever.
func TestOpenNeverWaits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux's special files")
	}
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{fifo: ErrNotRegular, "/dev/zero": ErrNotRegular, "/dev/tty": ErrNotRegular, dir: ErrIsDir} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if _, err := Open(path, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if f, err := Open("/proc/self/status", nil); err != nil || !strings.Contains(f.Text, "Pid:") {
		t.Errorf("/proc/self/status: %v", err)
	}
	if _, err := os.Stat("/proc/kmsg"); err == nil && os.Geteuid() == 0 {
		if r, err := OpenRaw("/proc/kmsg"); err == nil {
			defer r.Close()
			_, err := io.Copy(io.Discard, io.LimitReader(r, 64<<20))
			if err != nil && !errors.Is(err, ErrBlocks) {
				t.Log("kmsg:", err)
			}
		}
	}
}

type bufs map[string]Buffer

func (b bufs) Buffer(p string) (Buffer, bool) { x, ok := b[p]; return x, ok }
func (b bufs) Dirty() []Buffer                { return nil }

func TestR12DirtyBufferWinsCleanOneFollowsTheDisk(t *testing.T) {
	p := write(t, filepath.Join(t.TempDir(), "a"), "disk\n")
	f, err := Open(p, bufs{p: {Path: p, Text: "unsaved\n", Version: 3, Dirty: true}})
	if err != nil || f.Text != "unsaved\n" || !f.Dirty || *f.Version != 3 || f.Hash != Hash([]byte("disk\n")) {
		t.Errorf("dirty: %+v %v", f, err)
	}
	f, _ = Open(p, bufs{p: {Path: p, Text: "old\n", Version: 4}})
	if f.Text != "disk\n" || f.Dirty || *f.Version != 4 {
		t.Errorf("clean: %+v", f)
	}
	f, _ = Open(p+"new", bufs{p + "new": {Text: "never saved"}})
	if f.Exists || f.Text != "never saved" || !f.Dirty {
		t.Errorf("new: %+v", f)
	}
}

func TestTooBigIsRefusedUnread(t *testing.T) {
	p := filepath.Join(t.TempDir(), "big")
	f, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	f.Truncate(1 << 30)
	f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Open(p, nil)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooBig) || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%v after %d bytes", err, after.TotalAlloc-before.TotalAlloc)
	}
}

func TestTracker(t *testing.T) {
	dir := t.TempDir()
	p := write(t, filepath.Join(dir, "a"), "one\n")
	open := func() *File {
		f, err := Open(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var tr Tracker
	if err := tr.Check(open()); !errors.Is(err, ErrUnread) {
		t.Errorf("unread: %v", err)
	}
	tr.Read(open())
	now := time.Now().Add(time.Hour)
	os.Chtimes(p, now, now)
	if err := tr.Check(open()); err != nil {
		t.Errorf("only touched: %v", err)
	}
	write(t, p, "two\n")
	var stale *StaleError
	if err := tr.Check(open()); !errors.As(err, &stale) || stale.Then != "one\n" || !stale.HasThen || stale.Now.Text != "two\n" {
		t.Errorf("stale: %v %+v", err, stale)
	}
	// The same text in another encoding is the same text to the model.
	write(t, p, "\xef\xbb\xbfone\n")
	if err := tr.Check(open()); err != nil {
		t.Errorf("re-encoded: %v", err)
	}
	os.Remove(p)
	if err := tr.Check(open()); !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("deleted: %v", err)
	}
	tr.Forget(open().Real)
	if err := tr.Check(open()); err != nil {
		t.Errorf("new file: %v", err)
	}
}

func TestTrackerKeepsFewTexts(t *testing.T) {
	var tr Tracker
	text := strings.Repeat("x", keepText)
	for i := range 100 {
		tr.Read(&File{Real: string(rune('a' + i)), Exists: true, Text: text})
	}
	if tr.kept > keepTexts {
		t.Errorf("keeps %d bytes", tr.kept)
	}
	var s *StaleError
	if err := tr.Check(&File{Real: "a", Exists: true, Text: "other"}); !errors.As(err, &s) || s.HasThen {
		t.Errorf("the oldest: %v %v", err, s)
	}
}

func TestLocks(t *testing.T) {
	var l Locks
	unlock, err := l.Lock(bg, "/b", "/a", "/a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bg)
	got := make(chan error)
	go func() { _, err := l.Lock(ctx, "/z", "/a"); got <- err }()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting lock: %v", err)
	}
	go func() {
		u, err := l.Lock(bg, "/a", "/b")
		if err == nil {
			u()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if len(l.held) != 0 {
		t.Errorf("%d locks are never freed", len(l.held))
	}
}

func TestWriteKeepsModeOwnerAndAttributes(t *testing.T) {
	dir := t.TempDir()
	p := write(t, filepath.Join(dir, "a.sh"), "old")
	os.Chmod(p, 0o751)
	xattr := unix.Setxattr(p, "user.pillion", []byte("v"), 0) == nil
	root := os.Geteuid() == 0
	if root {
		os.Chown(p, 1234, 4321)
	}
	if err := Commit(bg, []Op{{Kind: Write, Path: p, Data: []byte("new"), Base: Hash([]byte("old"))}}, nil); err != nil {
		t.Fatal(err)
	}
	fi, _ := os.Stat(p)
	st := fi.Sys().(*syscall.Stat_t)
	if read(t, p) != "new" || fi.Mode().Perm() != 0o751 || root && (st.Uid != 1234 || st.Gid != 4321) {
		t.Errorf("%q %v %d:%d", read(t, p), fi.Mode(), st.Uid, st.Gid)
	}
	v := make([]byte, 8)
	if n, err := unix.Getxattr(p, "user.pillion", v); xattr && (err != nil || string(v[:n]) != "v") {
		t.Errorf("attribute: %q %v", v[:max(n, 0)], err)
	}
	clean(t, dir)
}

func TestWriteThroughSymlinkKeepsTheLink(t *testing.T) {
	dir := t.TempDir()
	target := write(t, filepath.Join(dir, "real", "a"), "old")
	link := filepath.Join(dir, "link")
	os.Symlink("real/a", link)
	if err := Commit(bg, []Op{{Kind: Write, Path: link, Data: []byte("new"), Base: Hash([]byte("old"))}}, nil); err != nil {
		t.Fatal(err)
	}
	if fi, _ := os.Lstat(link); fi.Mode()&os.ModeSymlink == 0 || read(t, target) != "new" {
		t.Error("the link was replaced")
	}
	// Removing the link leaves its target.
	if err := Commit(bg, []Op{{Kind: Remove, Path: link}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(link); err == nil || read(t, target) != "new" {
		t.Error("the link is still there or its target gone")
	}
	clean(t, dir)
}

func TestHardLinksStayOneFile(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a"), "old text")
	b := filepath.Join(dir, "b")
	os.Link(a, b)
	j := &DirJournal{filepath.Join(dir, "j")}
	if err := Commit(bg, []Op{{Kind: Write, Path: a, Data: []byte("new"), Base: Hash([]byte("old text"))}}, j); err != nil {
		t.Fatal(err)
	}
	if read(t, b) != "new" {
		t.Errorf("the other name has %q", read(t, b))
	}
	if p, _ := j.Pending(bg); len(p) != 0 {
		t.Error("the journal was not closed")
	}
}

func TestCommitRefuses(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a"), "a")
	ro := write(t, filepath.Join(dir, "ro"), "ro")
	os.Chmod(ro, 0o444)
	rodir := filepath.Join(dir, "rodir")
	inro := write(t, filepath.Join(rodir, "x"), "x")
	os.Chmod(rodir, 0o555)
	defer os.Chmod(rodir, 0o755)
	h := func(s string) string { return Hash([]byte(s)) }
	for _, c := range []struct {
		name string
		ops  []Op
		want error
	}{
		{"another base", []Op{{Kind: Write, Path: a, Data: []byte("n"), Base: h("b")}}, ErrStale},
		{"vanished", []Op{{Kind: Write, Path: a + "1", Data: []byte("n"), Base: h("b")}}, ErrStale},
		{"new over old", []Op{{Kind: Write, Path: a, Data: []byte("n")}}, ErrExists},
		{"move over old", []Op{{Kind: Move, Path: a, NewPath: inro, Base: h("a")}}, ErrExists},
		{"read-only file", []Op{{Kind: Write, Path: ro, Data: []byte("n"), Base: h("ro")}}, ErrReadOnly},
		{"new in read-only folder", []Op{{Kind: Write, Path: filepath.Join(rodir, "y"), Data: []byte("n")}}, ErrReadOnly},
		{"remove in read-only folder", []Op{{Kind: Remove, Path: inro, Base: h("x")}}, ErrReadOnly},
		{"second of two", []Op{{Kind: Write, Path: a, Data: []byte("n"), Base: h("a")}, {Kind: Write, Path: ro, Data: []byte("n"), Base: h("ro")}}, ErrReadOnly},
		{"folder", []Op{{Kind: Write, Path: dir, Data: []byte("n")}}, ErrIsDir},
	} {
		if err := Commit(bg, c.ops, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if read(t, a) != "a" || read(t, ro) != "ro" {
		t.Error("something was written")
	}
	clean(t, dir)
	// The text of a file in a read-only folder can still change.
	if err := Commit(bg, []Op{{Kind: Write, Path: inro, Data: []byte("new"), Base: h("x")}}, nil); err != nil || read(t, inro) != "new" {
		t.Errorf("in place: %v", err)
	}
}

func TestSwapOfTwoNames(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, filepath.Join(dir, "a"), "A"), write(t, filepath.Join(dir, "b"), "B")
	tmp := filepath.Join(dir, "c")
	err := Commit(bg, []Op{
		{Kind: Move, Path: a, NewPath: tmp, Base: Hash([]byte("A"))},
		{Kind: Move, Path: b, NewPath: a, Base: Hash([]byte("B"))},
	}, nil)
	if err != nil || read(t, a) != "B" || read(t, tmp) != "A" {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(b); err == nil {
		t.Error("b is still there")
	}
	clean(t, dir)
}

func TestRemoveAndCreateOfOnePath(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a"), "A")
	err := Commit(bg, []Op{{Kind: Remove, Path: a, Base: Hash([]byte("A"))}, {Kind: Write, Path: a, Data: []byte("N")}}, nil)
	if err != nil || read(t, a) != "N" {
		t.Errorf("%v %q", err, read(t, a))
	}
}

func TestCancelledCommitLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	err := Commit(ctx, []Op{{Kind: Write, Path: filepath.Join(dir, "new", "deep", "a"), Data: []byte("x")}}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if des, _ := os.ReadDir(dir); len(des) != 0 {
		t.Errorf("left %v", des)
	}
}

// patch20 is a commit of twenty files: writes, creations in new folders, removals, a move, a hard link.
func patch20(t *testing.T, dir string, r *rand.Rand) (ops []Op, old, new map[string]string) {
	old, new = map[string]string{}, map[string]string{}
	for i := range 20 {
		p := filepath.Join(dir, "d"+string(rune('a'+i%4)), "f"+string(rune('a'+i)))
		body := strings.Repeat("old "+p+"\n", 1+r.IntN(50))
		fresh := strings.Repeat("new "+p+"\n", 1+r.IntN(50))
		switch i % 7 {
		case 3:
			p = filepath.Join(dir, "fresh", "deep", "f"+string(rune('a'+i)))
			ops = append(ops, Op{Kind: Write, Path: p, Data: []byte(fresh)})
			new[p] = fresh
		case 4:
			write(t, p, body)
			ops = append(ops, Op{Kind: Remove, Path: p, Base: Hash([]byte(body))})
			old[p] = body
		case 5:
			write(t, p, body)
			ops = append(ops, Op{Kind: Move, Path: p, NewPath: p + ".moved", Data: []byte(fresh), Base: Hash([]byte(body))})
			old[p], new[p+".moved"] = body, fresh
		default:
			write(t, p, body)
			if i == 6 {
				os.Link(p, p+".link")
				old[p+".link"], new[p+".link"] = body, fresh
			}
			ops = append(ops, Op{Kind: Write, Path: p, Data: []byte(fresh), Base: Hash([]byte(body))})
			old[p], new[p] = body, fresh
		}
	}
	return ops, old, new
}

// tree is every file's text under dir.
func tree(dir string) map[string]string {
	out := map[string]string{}
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, _ := os.ReadFile(p)
			out[p] = string(b)
		}
		return nil
	})
	return out
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// The process dies at each point of the commit in turn; the next start must find all files old or all new.
func TestCrashAtEveryPoint(t *testing.T) {
	defer func() { crash = nil }()
	outcomes := map[Outcome]int{}
	for n := 0; ; n++ {
		dir := t.TempDir()
		j := &DirJournal{filepath.Join(t.TempDir(), "j")}
		ops, old, new := patch20(t, dir, rand.New(rand.NewPCG(uint64(n), 1)))
		points := 0
		crash = func(string) error {
			if points++; points > n {
				return errCrash
			}
			return nil
		}
		err := Commit(bg, ops, j)
		crash = nil
		if err == nil {
			if n < 40 {
				t.Fatalf("only %d points", n)
			}
			if !equal(tree(dir), new) {
				t.Fatal("the commit that ran through is wrong")
			}
			break
		}
		pretendDead(t, j)
		rs, err := Recover(bg, j)
		if err != nil || len(rs) != 1 {
			t.Fatalf("point %d: %v %v", n, rs, err)
		}
		outcomes[rs[0].Outcome]++
		got := tree(dir)
		if want := map[Outcome]map[string]string{Finished: new, RolledBack: old}[rs[0].Outcome]; !equal(got, want) {
			t.Fatalf("point %d: %s, but the files are\n%v\nwant\n%v", n, rs[0].Outcome, got, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "fresh")); err == nil && rs[0].Outcome == RolledBack {
			t.Errorf("point %d: made folders stay", n)
		}
		if p, _ := j.Pending(bg); len(p) != 0 {
			t.Fatalf("point %d: still pending", n)
		}
	}
	if outcomes[Finished] < 10 || outcomes[RolledBack] < 10 {
		t.Errorf("outcomes %v", outcomes)
	}
}

// pretendDead makes the journal's entries those of a process that is gone.
func pretendDead(t *testing.T, j *DirJournal) {
	t.Helper()
	es, err := j.Pending(bg)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		b := bytes.Replace(e.Data, []byte(`"start":"`), []byte(`"start":"0`), 1)
		if err := j.Begin(bg, e.ID, b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecoverLeavesTheLivingAlone(t *testing.T) {
	defer func() { crash = nil }()
	dir := t.TempDir()
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	ops, _, _ := patch20(t, dir, rand.New(rand.NewPCG(1, 1)))
	crash = func(p string) error { return map[string]error{"apply": errCrash}[p] }
	if err := Commit(bg, ops, j); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	crash = nil
	if rs, err := Recover(bg, j); err != nil || len(rs) != 0 {
		t.Errorf("%v %v", rs, err)
	}
	pretendDead(t, j)
	if rs, err := Recover(bg, j); err != nil || len(rs) != 1 || rs[0].Outcome != RolledBack {
		t.Errorf("%v %v", rs, err)
	}
}

// Between the crash and the next start the person edited one of the files: it is theirs.
func TestRecoverKeepsLaterEdits(t *testing.T) {
	defer func() { crash = nil }()
	dir := t.TempDir()
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	a, b := write(t, filepath.Join(dir, "a"), "a"), write(t, filepath.Join(dir, "b"), "b")
	n := 0
	crash = func(p string) error {
		if p == "apply" {
			if n++; n == 2 {
				return errCrash
			}
		}
		return nil
	}
	Commit(bg, []Op{{Kind: Write, Path: a, Data: []byte("A"), Base: Hash([]byte("a"))}, {Kind: Write, Path: b, Data: []byte("B"), Base: Hash([]byte("b"))}}, j)
	crash = nil
	write(t, b, "mine")
	pretendDead(t, j)
	rs, err := Recover(bg, j)
	if err != nil || len(rs) != 1 || rs[0].Outcome != RolledBack {
		t.Fatalf("%+v %v", rs, err)
	}
	if read(t, a) != "a" || read(t, b) != "mine" {
		t.Errorf("a %q, b %q", read(t, a), read(t, b))
	}
	clean(t, dir)
}

// failing is a journal that stops working at its nth Begin.
type failing struct {
	DirJournal
	n int
}

func (j *failing) Begin(ctx context.Context, id string, data []byte) error {
	if j.n--; j.n < 0 {
		return syscall.ENOSPC
	}
	return j.DirJournal.Begin(ctx, id, data)
}

func TestFailureInTheMiddleTakesAllBack(t *testing.T) {
	defer func() { crash = nil }()
	for _, c := range []struct {
		name  string
		n     int // Begins that work
		spoil int // before this step somebody changes the last file; 0: never
	}{
		{"journal cannot begin", 0, 0},
		{"journal fails at the end", 1, 0},
		{"a file changes at the last moment", 9, 17},
	} {
		dir := t.TempDir()
		ops, old, _ := patch20(t, dir, rand.New(rand.NewPCG(3, 3)))
		last := ops[len(ops)-1].Path
		step := 0
		crash = func(p string) error {
			if p == "apply" {
				if step++; step == c.spoil {
					old[last] = "theirs"
					return os.WriteFile(last, []byte("theirs"), 0o644)
				}
			}
			return nil
		}
		j := &failing{DirJournal{filepath.Join(t.TempDir(), "j")}, c.n}
		err := Commit(bg, ops, j)
		crash = nil
		if err == nil || c.spoil > 0 && !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := tree(dir); !equal(got, old) {
			t.Errorf("%s: the files are %v", c.name, got)
		}
		if p, _ := j.Pending(bg); len(p) != 0 {
			t.Errorf("%s: still pending", c.name)
		}
		if _, err := os.Stat(filepath.Join(dir, "fresh")); err == nil {
			t.Errorf("%s: made folders stay", c.name)
		}
	}
}

// A kill between writing a plan and giving it its name leaves a file that nobody asks for.
func TestJournalSweepsWhatItLeft(t *testing.T) {
	j := &DirJournal{t.TempDir()}
	old, fresh := write(t, filepath.Join(j.Dir, ".w1.tmp"), "{"), write(t, filepath.Join(j.Dir, ".w2.tmp"), "{")
	hours := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, hours, hours); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one is still there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the one that may be in use is gone: %v", err)
	}
}

// Two writers that both compared the same base: the second must see what the first wrote, never write over it.
func TestWritersOfOneFileLoseNothing(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "f"), "")
	const writers, each = 4, 25
	var wait sync.WaitGroup
	for w := range writers {
		j := &DirJournal{filepath.Join(dir, "j")} // one each, as of as many processes
		wait.Go(func() {
			for n := 0; n < each; {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Error(err)
					return
				}
				err = Commit(t.Context(), []Op{{Kind: Write, Path: path, Data: fmt.Appendf(b, "%d %d\n", w, n), Base: Hash(b)}}, j)
				if err == nil {
					n++
				} else if !errors.Is(err, ErrStale) {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	b, err := os.ReadFile(path)
	if got := strings.Count(string(b), "\n"); err != nil || got != writers*each {
		t.Errorf("%d of %d lines are there: %v", got, writers*each, err)
	}
}

// A commit that cannot have its turn ends with its call.
func TestWaitingForAnotherWriterIsCancelled(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "f"), "a")
	j := &DirJournal{filepath.Join(dir, "j")}
	unlock, err := j.writing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Commit(ctx, []Op{{Kind: Write, Path: path, Data: []byte("b"), Base: Hash([]byte("a"))}}, j); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
