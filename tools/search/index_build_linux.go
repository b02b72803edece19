package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/tools/inotify"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/search/trigram"
	"golang.org/x/sys/unix"
)

// The limits of a build.
const (
	maxIndexedFile = 64 << 20 // bytes; larger files are searched each time
	buildMemory    = 96 << 20 // bytes that the collector keeps to
)

// BuildMain is the program that makes segments: `whole|delta DIR ROOT`. withheld reports files whose text must not be kept, by their path
// relative to the root with slashes; they are searched each time. It returns the exit code.
func BuildMain(args []string, withheld func(rel string) bool) int {
	if len(args) != 3 && len(args) != 4 {
		return 2
	}
	if len(args) == 3 {
		// The priority belongs to a thread and is inherited by those that it starts, and this process has several by now. So it starts anew.
		runtime.LockOSThread()
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19)
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, 1, 0, 3<<13) // IOPRIO_WHO_PROCESS, IOPRIO_CLASS_IDLE (ioprio_set(2))
		if self, err := os.Executable(); err == nil {
			_ = syscall.Exec(self, slices.Concat(os.Args, []string{"low"}), os.Environ())
		}
	}
	runtime.GOMAXPROCS(1)
	debug.SetMemoryLimit(buildMemory)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := Build(ctx, args[1], args[2], args[0] == "whole", withheld)
	switch {
	case errors.Is(err, errBusy):
		return exitBusy
	case err != nil:
		return 1
	}
	return 0
}

// errBusy says that another process builds the same index.
var errBusy = errors.New("another process makes this index")

// Build makes a segment of a project below the folder of all indexes: of the whole project, or of what is not in the first segment as it is.
func Build(ctx context.Context, dir, root string, whole bool, withheld func(rel string) bool) error {
	own := indexDir(dir, root)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	release, err := lockBuild(own)
	if err != nil {
		return err
	}
	defer release()
	prune(dir, own)
	known := map[string]trigram.State{} // what the first segment has
	name := baseName
	if !whole {
		name = deltaName
		base, err := trigram.Open(filepath.Join(own, baseName))
		if err != nil {
			return err
		}
		err = base.Each(func(folder string, docs []trigram.Doc) bool {
			for _, d := range docs {
				known[folder+"/"+d.Name] = d.State
			}
			return true
		})
		if err = errors.Join(err, base.Close()); err != nil {
			return err
		}
	}
	// What changes from here on has later times than what is read.
	wait(ctx, clockResolution)
	folders, err := listForIndex(ctx, root)
	if err != nil {
		return err
	}
	w, err := trigram.NewWriter(filepath.Join(own, name), root)
	if err != nil {
		return err
	}
	b := build{w: w, root: root, known: known, withheld: withheld, buf: make([]byte, firstRead)}
	for _, f := range folders {
		if err := ctx.Err(); err != nil {
			w.Abort()
			return err
		}
		b.folder(f)
	}
	if err := w.Close(); err != nil {
		return err
	}
	if whole { // the second one has only what the old first one had not
		_ = os.Remove(filepath.Join(own, deltaName))
	}
	return nil
}

// lockBuild makes this process the only one that builds the index; a kill releases the lock. What another one has left half-written is removed.
func lockBuild(own string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(own, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, errBusy
	}
	left, _ := filepath.Glob(filepath.Join(own, "*-*.*"))
	for _, p := range left {
		_ = os.Remove(p)
	}
	return func() { f.Close() }, nil
}

// listedFolder is a folder with the names of its files.
type listedFolder struct {
	path  string
	names []string
}

// listForIndex walks as a search does.
func listForIndex(ctx context.Context, root string) ([]listedFolder, error) {
	var mu sync.Mutex // out
	var out []listedFolder
	n := 0
	sc, _ := start(root)
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	w := walk{root: root, scope: sc, visit: func(_ int, dir string, names []string) {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, listedFolder{dir, slices.Clone(names)})
		if n += len(names); n > maxIndexFiles {
			cancel()
		}
	}}
	if err := w.run(limited); err != nil {
		if ctx.Err() == nil {
			err = errIndexLarge
		}
		return nil, err
	}
	slices.SortFunc(out, func(a, b listedFolder) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.names[0], b.names[0]))
	})
	return out, nil
}

// build reads the files of a project.
type build struct {
	w        *trigram.Writer
	root     string
	known    map[string]trigram.State
	withheld func(rel string) bool
	buf      []byte
}

// folder adds the files of a folder that are as they were before they were read.
func (b *build) folder(f listedFolder) {
	d, err := openFolder(f.path)
	if err != nil {
		return
	}
	defer d.Close()
	rel := strings.TrimSuffix(below(b.root, f.path), "/")
	slices.Sort(f.names)
	for _, name := range f.names {
		if b.withheld != nil && b.withheld(strings.TrimPrefix(rel+"/"+name, "/")) {
			continue
		}
		b.file(d, rel, name)
	}
}

// file adds one file. One that changes while it is read, or has just changed, is left to the next build.
func (b *build) file(d folder, rel, name string) {
	var st, after unix.Stat_t
	if unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1 || st.Size > maxIndexedFile {
		return
	}
	state := stateFrom(&st)
	if b.known[rel+"/"+name] == state || young(state, time.Now()) {
		return
	}
	in, err := d.open(name)
	if err != nil {
		return
	}
	defer in.Close()
	err = b.text(in)
	if err != nil || unix.Fstat(int(in), &after) != nil || stateFrom(&after) != state {
		b.w.Skip()
		return
	}
	b.w.Doc(rel, name, state)
}

// text adds what a search of the file would look at: decoded, and to the first NUL.
func (b *build) text(in io.Reader) error {
	for first := true; ; first = false {
		n, err := in.Read(b.buf)
		p := b.buf[:n]
		if first {
			if r := decoded(p, in); r != nil {
				in = r
				continue
			}
		}
		end := slices.Index(p, 0)
		if end >= 0 {
			p = p[:end]
		}
		if b.w.Text(p); end >= 0 || err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// young reports a change within the resolution of the file system's clock.
func young(s trigram.State, now time.Time) bool {
	resolution := clockResolution
	if s.Changed%int64(time.Second) == 0 && s.Modified%int64(time.Second) == 0 {
		resolution = coarseClock
	}
	return s.Changed > now.Add(-resolution).UnixNano()
}

// prune removes indexes that nobody has used for long, and those used longest ago where all together are too large.
func prune(dir, own string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type old struct {
		path string
		used time.Time
		size int64
	}
	var all []old
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() || path == own {
			continue
		}
		size := int64(0)
		_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			if err == nil {
				if info, err := d.Info(); err == nil {
					size += info.Size()
				}
			}
			return nil
		})
		all = append(all, old{path, info.ModTime(), size})
	}
	slices.SortFunc(all, func(a, b old) int { return b.used.Compare(a.used) })
	total := int64(0)
	for _, o := range all {
		if total += o.size; total > maxIndexBytes || time.Since(o.used) > unusedFor {
			_ = os.RemoveAll(o.path)
		}
	}
}

// IndexReport says in one line what an index would do for a folder, for `pillion doctor`. ok is false where the system allows none.
func IndexReport(dir, folder string) (text string, ok bool) {
	root := paths.Worktree(folder)
	if ok, err := inotify.Reports(root); err != nil || !ok {
		return errIndexSystem.Error(), false
	}
	if _, err := watchesToUse(); err != nil {
		return err.Error(), false
	}
	q, err := inotify.Open()
	if err != nil {
		return errIndexWatches.Error(), false
	}
	q.Close()
	own := indexDir(dir, root)
	info, err := os.Stat(filepath.Join(own, baseName))
	if err != nil {
		return fmt.Sprintf("none yet of %s; projects of %d files and more get one after a search", root, minIndexFiles), true
	}
	s, err := trigram.Open(filepath.Join(own, baseName))
	if err != nil {
		return fmt.Sprintf("that of %s cannot be used (%v); the next search makes it anew", root, err), true
	}
	defer s.Close()
	return fmt.Sprintf("%d files of %s, %.1f MB in %s, made %s", s.Docs(), root, float64(s.Size())/1e6, own, info.ModTime().Format(time.DateTime)), true
}
