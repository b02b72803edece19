package lspbridge

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Limits and times of watching.
const (
	maxWatchedDirs = 20_000                 // all programs of a user share one limit of inotify watches (inotify(7))
	quietFor       = 50 * time.Millisecond  // a batch ends after this time without an event …
	batchFor       = 250 * time.Millisecond // … or this time after its first event
	askedQuiet     = 10 * time.Millisecond  // … or after this pause, when a question waits for it and there is no mark
	watchLock      = 10 * time.Second       // how long a batch waits to acquire a server's documents
)

// watcher watches the project's folders. Events are only hints, because they may be merged, late or lost: what counts is what is on disk
// when a batch is read.
type watcher struct {
	fleet *fleet
	fs    *fsnotify.Watcher
	done  chan struct{} // closed when run has ended
	// ready is closed even when the limit of folders is reached, so that a test that waits for it never hangs.
	ready   chan struct{}      // closed when all folders are watched
	flushes chan chan struct{} // each is closed when all earlier events were delivered
	busy    atomic.Bool        // an event has arrived and is not delivered yet
	// mark is a file without a name that is watched too. Its event comes behind all that the kernel had queued when it was touched, so a
	// question need not guess how long they may take. nil: the system has no such order, or no file could be made.
	mark *os.File

	// known distinguishes created from changed files, which the kernel's events do not do reliably: editors save by a rename.
	known map[string]bool // the project's files; used only by run
	dirs  map[string]bool // watched folders; used only by run
	// packages are the watched folders of installed packages (node_modules, and @scope in it). Only what comes and goes in them is looked at, not
	// what is in a package. Used only by run.
	packages map[string]bool
	since    time.Time // time of the last batch; used only by run

	mu      sync.Mutex          // guards written
	written map[string][32]byte // by path: hash of what Pillion wrote; zero: it deleted the file
}

// watchSoon starts the watcher together with the first server, so that a session without servers has none. Where the system cannot watch,
// it logs a warning and nothing fails: servers then do not learn what other programs write.
func (f *fleet) watchSoon() {
	f.mu.Lock()
	if f.o.NoWatch || f.closed || f.watcher != nil {
		f.mu.Unlock()
		return
	}
	n, err := fsnotify.NewWatcher()
	if err != nil {
		f.mu.Unlock()
		f.log.Warn("files are not watched", "err", err)
		return
	}
	w := &watcher{fleet: f, fs: n, mark: newMark(n), done: make(chan struct{}), ready: make(chan struct{}), flushes: make(chan chan struct{}), known: map[string]bool{}, dirs: map[string]bool{}, packages: map[string]bool{}, written: map[string][32]byte{}}
	f.watcher = w
	f.mu.Unlock()
	go w.run()
}

// newMark makes the file of watcher.mark. Only inotify queues the events of all folders in one order.
func newMark(n *fsnotify.Watcher) *os.File {
	if runtime.GOOS != "linux" {
		return nil
	}
	f, err := os.CreateTemp("", "pillion-mark-*")
	if err != nil {
		return nil
	}
	err = n.Add(f.Name())
	// Open files need no name, and a name would stay behind when Pillion is killed.
	if gone := os.Remove(f.Name()); err != nil || gone != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// touchMark makes the mark's event follow those that are queued, and reports whether there will be one.
func (w *watcher) touchMark() bool { return w.mark != nil && w.mark.Chmod(0o600) == nil }

// close ends the watcher and waits for run, so that no event is delivered to a closed fleet.
func (w *watcher) close() {
	_ = w.fs.Close()
	<-w.done
	if w.mark != nil {
		_ = w.mark.Close()
	}
}

// noteOwnWrite records what Pillion itself has written: Changed tells the servers, and the event of the same write must not make them check
// twice. It keeps hashes instead of texts; echo finds out when an editor has written another text than the recorded one.
func (w *watcher) noteOwnWrite(files []Proposal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Forgetting an entry costs a superfluous event, never a missing one.
	if len(w.written) > 10_000 {
		clear(w.written)
	}
	for _, f := range files {
		if f.Delete {
			w.written[f.Path] = [32]byte{}
		} else {
			w.written[f.Path] = sha256.Sum256([]byte(f.Text))
		}
	}
}

// echo reports whether a file on disk is as Pillion has written it, so that its event is only the echo of that write. It reads the file
// outside mu. A file that differs is dropped from written: later events are not Pillion's.
func (w *watcher) echo(path string) bool {
	w.mu.Lock()
	want, ours := w.written[path]
	w.mu.Unlock()
	if !ours {
		return false
	}
	b, err := os.ReadFile(path)
	var got [32]byte
	if err == nil {
		got = sha256.Sum256(b)
	}
	if got == want {
		return true
	}
	w.mu.Lock()
	delete(w.written, path)
	w.mu.Unlock()
	return false
}

// run collects events into batches and delivers them. Only run uses known, dirs and since, so they need no lock. It ends when the fsnotify
// watcher is closed, and then releases the callers of Flush.
func (w *watcher) run() {
	defer close(w.done)
	w.since = time.Now()
	w.scan()
	close(w.ready)
	touched := map[string]bool{}
	var first time.Time
	// The timer must exist before the first event; if an hour passes, an empty batch delivers nothing.
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	overflow := false
	// asked are the questions that the next delivery answers, later those that came after the mark was touched: it proves nothing of them.
	var asked, later []chan struct{}
	marked := false // the mark was touched for asked
	defer func() {
		for _, a := range slices.Concat(asked, later) {
			close(a)
		}
	}()
	ask := func(questions ...chan struct{}) {
		asked = append(asked, questions...)
		if marked = w.touchMark(); !marked {
			timer.Reset(askedQuiet)
		}
	}
	deliver := func() {
		// Taken before the disk is read: what is written during the reading also belongs to the next batch.
		started := time.Now()
		events := w.read(touched)
		if overflow {
			events = append(events, w.rescan(touched)...)
		}
		clear(touched)
		overflow, w.since = false, started
		w.deliver(events)
		w.busy.Store(false)
		for _, a := range asked {
			close(a)
		}
		asked, marked = nil, false
		if len(later) > 0 {
			next := later
			later = nil
			ask(next...)
		}
	}
	for {
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if w.mark != nil && e.Name == w.mark.Name() {
				if marked {
					deliver()
				}
				continue
			}
			if e.Op == fsnotify.Chmod { // the content is the same
				continue
			}
			if len(touched) == 0 {
				first = time.Now()
			}
			touched[e.Name] = true
			w.busy.Store(true)
			quiet := quietFor
			if len(asked) > 0 {
				quiet = askedQuiet
			}
			// Else a build that writes without a pause would keep the batch open until its end.
			timer.Reset(min(quiet, max(0, batchFor-time.Since(first))))
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				// The kernel has dropped events, perhaps the mark's too, so only a comparison of the whole project finds the changes.
				overflow = true
				timer.Reset(quietFor)
			}
		// A question waits: end the batch soon, but after the events that the kernel has already queued.
		case a := <-w.flushes:
			if marked {
				later = append(later, a)
			} else {
				ask(a)
			}
		case <-timer.C:
			if !marked || overflow {
				deliver()
			}
		}
	}
}

// Flush blocks until the servers have been told what other programs have changed on disk so far. A question right after a shell command is
// then about the result of the command. It returns early when ctx or the watcher ends.
func (f *fleet) Flush(ctx context.Context) {
	f.mu.Lock()
	w := f.watcher
	f.mu.Unlock()
	if w == nil {
		return
	}
	delivered := make(chan struct{})
	select {
	case w.flushes <- delivered:
	case <-w.done:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-delivered:
	case <-ctx.Done():
		return
	}
	// The watcher has only queued the events; each server's queue sends them when it can.
	for _, s := range f.running() {
		if c := s.current(); c != nil {
			_ = c.await(ctx, c.disk.isIdle)
		}
	}
}

// flushIfBusy is Flush if an event is not delivered yet; otherwise it costs nothing. It misses events that the kernel has not reported yet.
func (f *fleet) flushIfBusy(ctx context.Context) {
	f.mu.Lock()
	w := f.watcher
	f.mu.Unlock()
	if w != nil && w.busy.Load() {
		f.Flush(ctx)
	}
}

// scan lists the project's files and watches their folders, and those above them up to the root. Only folders with files that are not
// ignored are watched, so node_modules uses no watches.
func (w *watcher) scan() {
	w.watchDir(w.fleet.o.Root)
	for _, f := range projectFiles(context.Background(), w.fleet.o.Root) {
		w.known[f] = true
		for dir := filepath.Dir(f); !w.dirs[dir] && paths.Within(w.fleet.o.Root, dir); dir = filepath.Dir(dir) {
			if !w.watchDir(dir) {
				return
			}
		}
	}
}

// watchDir watches a folder. false means that no more folders can be watched. A folder that cannot be read is skipped with a warning.
func (w *watcher) watchDir(dir string) bool {
	if w.dirs[dir] {
		return true
	}
	if len(w.dirs) >= maxWatchedDirs {
		w.fleet.log.Warn("too many directories to watch all of them", "watched", len(w.dirs))
		return false
	}
	if err := w.fs.Add(dir); err != nil {
		// A temporary folder may already be gone.
		if !errors.Is(err, fs.ErrNotExist) {
			w.fleet.log.Warn("directory is not watched", "dir", dir, "err", err)
		}
		return !errors.Is(err, fsnotify.ErrClosed)
	}
	w.dirs[dir] = true
	w.watchPackages(filepath.Join(dir, packagesDir))
	return true
}

// packagesDir is where npm, pnpm and yarn install packages.
const packagesDir = "node_modules"

// watchPackages watches a folder of installed packages if there is one, and the scopes in it.
func (w *watcher) watchPackages(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(w.dirs)+len(w.packages) >= maxWatchedDirs || w.fs.Add(dir) != nil {
		return
	}
	w.packages[dir] = true
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] == '@' {
			w.watchPackages(filepath.Join(dir, e.Name()))
		}
	}
}

// read turns the touched paths into events by looking at the disk: a file that was written and removed within the batch is one deletion, or
// nothing when it was not known before.
func (w *watcher) read(touched map[string]bool) []fileEvent {
	var out []fileEvent
	for p := range touched {
		fi, err := os.Lstat(p)
		switch {
		case w.packages[filepath.Dir(p)] || filepath.Base(p) == packagesDir:
			kind := 1
			if err != nil {
				kind = 3
				delete(w.packages, p)
			} else if fi.IsDir() && (filepath.Base(p) == packagesDir || filepath.Base(p)[0] == '@') {
				w.watchPackages(p)
			}
			out = append(out, fileEvent{p, kind})
		// The kernel reports only the folder; its files are gone with it.
		case err != nil && w.dirs[p]:
			delete(w.dirs, p)
			for f := range w.known {
				if paths.Within(p, f) {
					delete(w.known, f)
					out = append(out, fileEvent{f, 3})
				}
			}
		case err != nil:
			if w.known[p] && !w.echo(p) {
				out = append(out, fileEvent{p, 3})
			}
			delete(w.known, p)
		case fi.IsDir():
			// Folders of packages or build output would use up the watches.
			if skippedDir(fi.Name()) {
				continue
			}
			// What was created inside before the watch was set up has no event of its own.
			_ = filepath.WalkDir(p, func(q string, d fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return nil
				case d.IsDir() && q != p && skippedDir(d.Name()):
					return filepath.SkipDir
				case d.IsDir():
					w.watchDir(q)
				case !w.known[q]:
					w.known[q] = true
					out = append(out, fileEvent{q, 1})
				}
				return nil
			})
		case fi.Mode().IsRegular():
			kind := 2
			if !w.known[p] {
				kind = 1
			}
			w.known[p] = true
			if !w.echo(p) {
				out = append(out, fileEvent{p, kind})
			}
		}
	}
	return out
}

// rescan compares the whole project with what is known, after the kernel has dropped events. done are paths that were handled. It finds a
// change by the modification time alone, with a tolerance of a second for file systems that store whole seconds.
func (w *watcher) rescan(done map[string]bool) []fileEvent {
	var out []fileEvent
	now := map[string]bool{}
	for _, f := range projectFiles(context.Background(), w.fleet.o.Root) {
		fi, err := os.Lstat(f)
		if err != nil {
			continue
		}
		now[f] = true
		w.watchDir(filepath.Dir(f))
		switch {
		case done[f]:
		case !w.known[f]:
			out = append(out, fileEvent{f, 1})
		case fi.ModTime().After(w.since.Add(-time.Second)) && !w.echo(f):
			out = append(out, fileEvent{f, 2})
		}
	}
	for f := range w.known {
		if !now[f] && !done[f] {
			out = append(out, fileEvent{f, 3})
		}
	}
	w.known = now
	return out
}

// deliver queues the events for every running server. It does not wait for the servers: one that hangs must not stop the watcher, whose
// kernel queue would overflow.
func (w *watcher) deliver(events []fileEvent) {
	if len(events) == 0 {
		return
	}
	for _, s := range w.fleet.running() {
		if c := s.current(); c != nil {
			s.outdate(events)
			c.disk.add(events)
		}
	}
}
