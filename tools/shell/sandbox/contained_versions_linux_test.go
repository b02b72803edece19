//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Containment pretends to be on each older kernel in turn: what that Landlock does not know, the filter has to hold.
func TestContainmentHoldsWithEveryLandlock(t *testing.T) {
	if ok, why := CanContain(); !ok {
		t.Skip(why)
	}
	for version := 1; version <= landlockVersion(); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			file, secret := filepath.Join(root, "a"), filepath.Join(outside, "secret")
			for _, path := range []string{file, secret} {
				if err := os.WriteFile(path, []byte("text"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			c, err := Contain(ContainOptions{Root: root, Dir: root, Getenv: func(string) string { return "" }, Temp: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			did := make(chan map[string]error)
			go func() {
				runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
				if err := c.restrict(version); err != nil {
					did <- map[string]error{"restrict": nil}
					return
				}
				try := map[string]error{}
				open := func(path string, flags int) error {
					fd, err := unix.Open(path, flags, 0o644)
					if err == nil {
						_ = unix.Close(fd)
					}
					return err
				}
				try["empty it, open for reading"] = open(file, unix.O_RDONLY|unix.O_TRUNC)
				try["write"] = open(file, unix.O_WRONLY)
				try["create"] = open(filepath.Join(root, "new"), unix.O_WRONLY|unix.O_CREAT)
				try["read outside"] = open(secret, unix.O_RDONLY)
				try["truncate"] = unix.Truncate(file, 0)
				try["mode"] = unix.Chmod(file, 0o777)
				try["link"] = unix.Link(file, filepath.Join(root, "hard"))
				try["rename"] = unix.Rename(file, filepath.Join(root, "b"))
				try["remove"] = unix.Unlink(file)
				try["times"] = unix.Utimes(file, make([]unix.Timeval, 2))
				try["signal"] = unix.Kill(os.Getppid(), 0)
				try["socket"] = openSocket(unix.AF_INET, unix.SOCK_STREAM)
				try["Unix socket"] = openSocket(unix.AF_UNIX, unix.SOCK_DGRAM)
				try["namespace"] = unix.Unshare(unix.CLONE_NEWUSER)
				if err := open(file, unix.O_RDONLY); err != nil {
					try["reading is forbidden too"] = nil
				}
				did <- try
			}()
			for what, err := range <-did {
				if err == nil {
					t.Errorf("with Landlock %d: %s", version, what)
				}
			}
			if text, err := os.ReadFile(file); string(text) != "text" {
				t.Errorf("%q %v", text, err)
			}
		})
	}
	if err := tryContain(0); err == nil {
		t.Error("without Landlock commands count as contained")
	}
}

func openSocket(domain, kind int) error {
	fd, err := unix.Socket(domain, kind, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}
