//go:build unix

package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
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
		{"UTF-32 of no text", "\xff\xfe\x00\x00", Bytes},
		{"UTF-16 of one letter", "\xff\xfea\x00", UTF16LE},
		{"UTF-16 that ends with a pair", "\xff\xfea\x00\x3d\xd8\x00\xde", UTF16LE},
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
