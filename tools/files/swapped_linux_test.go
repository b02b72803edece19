package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A folder that turns into a link between judging and opening, as fast as the machine can: nothing outside is read.
func TestAPathThatIsSwappedAfterItWasJudgedIsNotRead(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inside, outside := filepath.Join(base, "project"), filepath.Join(base, "outside")
	for _, dir := range []string{filepath.Join(inside, "dir"), outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(filepath.Base(dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir, link := filepath.Join(inside, "dir"), filepath.Join(inside, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	tries := 100_000
	if testing.Short() {
		tries = 10_000
	}
	read, swapped := 0, 0
	for range tries {
		path := filepath.Join(dir, "f")
		real, err := Real(path)
		if err != nil || !strings.HasPrefix(real, inside+"/") {
			continue // judged to be outside: it would be asked
		}
		f, err := OpenAt(path, real, nil)
		switch {
		case errors.Is(err, ErrSwapped):
			swapped++
		case err != nil:
			t.Fatal(err)
		case f.Exists && f.Text != "dir":
			t.Fatalf("read %q, which is outside", f.Text)
		default:
			read++
		}
	}
	close(stop)
	<-stopped
	if read == 0 || swapped == 0 {
		t.Errorf("%d reads, %d swaps: there was no race to lose", read, swapped)
	}
}
