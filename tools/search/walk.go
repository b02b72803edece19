package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// walk visits the regular files under root that no ignore file hides. It visits hidden files, never .git, and never follows
// symbolic links. visit is called from several goroutines, each with a worker number below workers; each call gets some of the
// files of one folder. The type of an entry is the one that the folder gives, without a stat; this is the main reason why the walk
// is fast.
type walk struct {
	root    string
	prune   []string // absolute folders that are not entered
	include *Pattern // nil: all
	visit   func(worker int, dir string, names []string)
	links   bool                         // symbolic links are visited like files, but not followed
	failed  func(path string, err error) // a folder or file that could not be read
	scope   *scope                       // the rules above root
	mu      sync.Mutex
	more    sync.Cond // on mu
	todo    []job     // guarded by mu; a stack, so that the memory depends on the depth of the tree and not on its size
	busy    int       // guarded by mu; workers with a job, which may add jobs; the walk is over at 0 with an empty stack
	stopped bool      // guarded by mu; the context has ended
}

// job is a folder to read, or a batch of files of one folder, so that one large folder keeps every worker busy. For a folder, scope
// is the parent's. For files it is not used, because they were checked with the ignore rules before.
type job struct {
	dir   string
	scope *scope
	files []string // nil: the folder is to be read
}

const (
	batchFiles   = 64   // files in one job
	maxBatches   = 1024 // waiting jobs; if there are more, the worker that reads the folder visits its files too
	chunkEntries = 4096 // folder entries read at once; a folder with a million entries is never held as a whole
)

// maxWorkers is ripgrep's limit: further threads only compete for locks in the file system.
const maxWorkers = 12

// At least two, so that one can wait for the disk while the other matches.
func workers() int { return min(maxWorkers, max(2, runtime.GOMAXPROCS(0))) }

// run walks until everything was visited or ctx ends; then it returns ctx's error. No visit runs after it has returned. A walk is
// used once.
func (w *walk) run(ctx context.Context) error {
	w.more.L = &w.mu
	w.todo = []job{{dir: w.root, scope: w.scope}}
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		w.stopped = true
		w.mu.Unlock()
		w.more.Broadcast()
	})
	defer stop()
	var wg sync.WaitGroup
	for n := range workers() {
		wg.Go(func() { w.work(ctx, n) })
	}
	wg.Wait()
	return ctx.Err()
}

// work is one worker. It takes jobs until there are none and no busy worker can add one.
func (w *walk) work(ctx context.Context, n int) {
	for {
		w.mu.Lock()
		// A busy worker may still find folders, so an empty stack is not the end.
		for len(w.todo) == 0 && w.busy > 0 && !w.stopped {
			w.more.Wait()
		}
		if len(w.todo) == 0 || w.stopped {
			w.mu.Unlock()
			w.more.Broadcast()
			return
		}
		j := w.todo[len(w.todo)-1]
		// The array of the stack is kept, so an entry that is not cleared would keep the names of a finished folder in memory.
		w.todo[len(w.todo)-1] = job{}
		w.todo = w.todo[:len(w.todo)-1]
		w.busy++
		w.mu.Unlock()

		if j.files == nil {
			w.read(ctx, n, j)
		} else {
			w.visit(n, j.dir, j.files)
		}

		w.mu.Lock()
		w.busy--
		// The last worker wakes the others, which then see that the walk is over.
		if w.busy == 0 || len(w.todo) > 0 {
			w.more.Broadcast()
		}
		w.mu.Unlock()
	}
}

// push adds jobs and wakes workers for them. All workers are woken, because several jobs may have come at once.
func (w *walk) push(jobs ...job) {
	w.mu.Lock()
	w.todo = append(w.todo, jobs...)
	w.mu.Unlock()
	w.more.Broadcast()
}

// read reads a folder in chunks and distributes its entries. The ignore files must be known before the first entry is checked. If
// the folder is larger than a chunk, they are looked up by name. If a folder cannot be read, that is reported and the walk
// continues.
func (w *walk) read(ctx context.Context, n int, j job) {
	f, err := openDir(j.dir)
	if err != nil {
		w.fail(j.dir, err)
		return
	}
	defer f.Close()
	prefix := withSeparator(j.dir)
	base := len(withSeparator(w.root))
	scope := j.scope
	for first := true; ctx.Err() == nil; first = false {
		entries, err := f.ReadDir(chunkEntries)
		if first {
			special := specialEntries(entries)
			// An ignore file may be in a later chunk, but applies to the first entries too.
			if len(entries) == chunkEntries { // more may follow
				special = specialNames(j.dir)
			}
			scope = j.scope.enter(j.dir, special)
		}
		var files []string
		var dirs []job
		for _, e := range entries {
			name := e.Name()
			isDir := e.IsDir()
			if name == ".git" || !isDir && !e.Type().IsRegular() && !(w.links && e.Type()&fs.ModeSymlink != 0) {
				continue
			}
			path := prefix + name
			if !isDir && w.include != nil && !w.include.Wants(filepath.ToSlash(path[base:])) {
				continue
			}
			if scope.ignored(path, isDir) {
				continue
			}
			if !isDir {
				files = append(files, name)
			} else if !slices.Contains(w.prune, path) {
				dirs = append(dirs, job{dir: path, scope: scope})
			}
		}
		w.share(ctx, n, j.dir, files, dirs)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.fail(j.dir, err)
			}
			return
		}
	}
}

// share gives the folders and all batches of files except the last to other workers, and visits the last batch itself. The number
// of waiting jobs may have changed by then, so maxBatches is approximate.
func (w *walk) share(ctx context.Context, n int, dir string, files []string, dirs []job) {
	w.mu.Lock()
	room := maxBatches - len(w.todo)
	w.mu.Unlock()
	for ; len(files) > batchFiles && room > 0; room-- {
		dirs = append(dirs, job{dir: dir, files: files[:batchFiles]})
		files = files[batchFiles:]
	}
	if len(dirs) > 0 {
		w.push(dirs...)
	}
	if len(files) > 0 && ctx.Err() == nil {
		w.visit(n, dir, files)
	}
}

// fail reports what could not be read. It is called from several goroutines. A path that was removed after its folder was read is
// not an error: projects change while they are searched.
func (w *walk) fail(path string, err error) {
	if w.failed != nil && !errors.Is(err, fs.ErrNotExist) { // removed since the folder was read
		w.failed(path, err)
	}
}

// specialEntries are the names among the entries that change the scope: .git and ignore files.
func specialEntries(entries []fs.DirEntry) []string {
	var out []string
	for _, e := range entries {
		if name := e.Name(); name[0] == '.' && (name == ".git" || slices.Contains(ignoreNames[:], name)) {
			out = append(out, name)
		}
	}
	return out
}
