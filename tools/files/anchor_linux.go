package files

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Anchors are the folders in which a commit works, held open. A path through an anchor leads into the folder that was judged,
// whatever has taken its name since: a command that runs meanwhile could move the folder away and put a symbolic link in its place.
// The zero value is ready; it belongs to one goroutine.
type Anchors struct {
	open map[string]*os.File
}

// At is another name of a resolved path: through its folder as it was when first used. It fails with ErrSwapped when a part of
// the folder's path is a symbolic link by then. What the last part is, the caller's system call decides: those that commits use
// do not follow a link there.
func (a *Anchors) At(path string) (string, error) {
	dir := filepath.Dir(path)
	f := a.open[dir]
	if f == nil {
		fd, err := openExact(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
		if err != nil {
			return "", &os.PathError{Op: "open", Path: dir, Err: err}
		}
		f = os.NewFile(uintptr(fd), dir)
		if a.open == nil {
			a.open = map[string]*os.File{}
		}
		a.open[dir] = f
	}
	through := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	// Without /proc (a chroot) the name must do; the folder was looked at just now.
	if !procMounted() {
		return path, nil
	}
	return through + "/" + filepath.Base(path), nil
}

// procMounted reports whether descriptors have names here.
func procMounted() bool {
	_, err := os.Lstat("/proc/self/fd")
	return err == nil
}

// Close closes the folders.
func (a *Anchors) Close() {
	for _, f := range a.open {
		f.Close()
	}
	a.open = nil
}
