package sandbox

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pillion-dev/pillion/tools/inotify"
	"golang.org/x/sys/unix"
)

// folderWatch knows which folders are still as they were read, by the kernel's events. A folder is watched only below a watched one or as
// a root: what moves or replaces it is then an event too, and its path still leads to it. Everything else is compared by its times.
type folderWatch struct {
	queue  *inotify.Queue
	mounts *inotify.Mounts
	paths  map[int32]string // by watch
	by     map[string]int32 // watches by path; with a folder each one above it, up to a root
	roots  map[string]rootID
	gone   map[string]bool // folders that are no longer at their path, with all below them
	share  *watchShare
}

// watchShare is what one folderWatch takes of the process's watches.
type watchShare struct {
	left  *atomic.Int64 // of watchBudget
	taken atomic.Int64
}

// take is false when nothing is left.
func (s *watchShare) take() bool {
	if s.left.Add(-1) < 0 {
		s.left.Add(1)
		return false
	}
	s.taken.Add(1)
	return true
}

func (s *watchShare) giveBack() {
	s.taken.Add(-1)
	s.left.Add(1)
}

func (s *watchShare) giveAllBack() { s.left.Add(s.taken.Swap(0)) }

// rootID says which folder a root is, and whether the kernel reports its changes.
type rootID struct {
	device, inode uint64
	reported      bool
}

// watchBudget is how many folders this process may watch for hidden files: an eighth of what a person's programs have together. Editors need
// most of it, and the search index takes a quarter.
var watchBudget = sync.OnceValue(func() *atomic.Int64 {
	var left atomic.Int64
	if limit, err := inotify.Watches(); err == nil {
		left.Store(int64(limit / 8))
	}
	return &left
})

// openFolderWatch is nil where the system has no queue or no mounts to look at.
func openFolderWatch() *folderWatch {
	queue, err := inotify.Open()
	if err != nil {
		return nil
	}
	mounts, err := inotify.OpenMounts()
	if err != nil {
		queue.Close()
		return nil
	}
	w := &folderWatch{queue: queue, mounts: mounts, paths: map[int32]string{}, by: map[string]int32{}, roots: map[string]rootID{}, gone: map[string]bool{}, share: &watchShare{left: watchBudget()}}
	runtime.AddCleanup(w, (*watchShare).giveAllBack, w.share)
	return w
}

func (w *folderWatch) close() {
	w.queue.Close()
	w.mounts.Close()
	w.share.giveAllBack()
}

// catchUp says what has changed until now: the folders whose entries did, and those that are no longer at their path, with all below them.
// After an error, or when something was mounted, nothing is known of any folder.
func (w *folderWatch) catchUp() (changed, gone map[string]bool, ok bool) {
	changed = map[string]bool{}
	err := w.queue.Drain(func(watch int32, mask uint32, _ string) error {
		path, known := w.paths[watch]
		switch {
		case !known:
		case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
			w.gone[path] = true
		default:
			changed[path] = true
		}
		return nil
	})
	mounted, mountErr := w.mounts.Changed()
	gone, w.gone = w.gone, map[string]bool{}
	return changed, gone, err == nil && mountErr == nil && !mounted
}

// forget ends the watches of folders and of all below them.
func (w *folderWatch) forget(gone map[string]bool) {
	for path, watch := range w.by {
		if within(gone, path) {
			w.queue.Remove(watch)
			delete(w.paths, watch)
			delete(w.by, path)
			w.share.giveBack()
		}
	}
}

// root reports whether a root can be watched. Folders above it are not: moved says that its path leads to another folder than before.
func (w *folderWatch) root(path string) (ok, moved bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return false, true
	}
	was, known := w.roots[path]
	if !known || was.device != st.Dev || was.inode != st.Ino {
		reported, err := inotify.Reports(path)
		w.roots[path] = rootID{st.Dev, st.Ino, err == nil && reported}
	}
	return w.roots[path].reported, known && w.roots[path] != was
}

// add watches a folder; false if it cannot be. What changes in it from now on is an event. device is the one of its root: below a mount
// point other rules may hold.
func (w *folderWatch) add(path, root string) bool {
	if _, ok := w.by[path]; ok {
		return true // below a watched folder it is the same one, or an event is waiting
	}
	if !w.share.take() {
		return false
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil && st.Dev != w.roots[root].device {
			err = unix.EXDEV
		}
	}
	var watch int32
	if err == nil {
		watch, err = w.queue.Add(fd, unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR|unix.IN_EXCL_UNLINK)
	}
	if err != nil {
		w.share.giveBack()
		return false
	}
	if old, ok := w.paths[watch]; ok { // it was moved here, and the event is still to come
		delete(w.by, old)
		w.gone[old] = true
		w.share.giveBack()
	}
	w.paths[watch], w.by[path] = path, watch
	return true
}
