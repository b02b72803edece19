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

// walk visits the regular files under root that no ignore file hides: hidden ones too, .git never, symbolic links
// never followed. visit runs on several goroutines at once, each with a worker number below workers; it gets some
// of the files of one folder. An entry is judged by the type that the folder gives, without a stat: that is most of what
// makes the walk fast.
type walk struct {
	root    string
	prune   []string // absolute folders that are not entered
	include *Pattern // nil: all
	visit   func(worker int, dir string, names []string)
	links   bool                         // symbolic links are files too; none is followed
	failed  func(path string, err error) // a folder or file that could not be read
	scope   *scope                       // what holds above root
	mu      sync.Mutex
	more    sync.Cond // on mu
	todo    []job     // guarded by mu; a stack, so that memory follows the depth, not the size
	busy    int       // guarded by mu; workers with a job, which may add jobs; the walk is over at 0 with an empty stack
	stopped bool      // guarded by mu; the context has ended
}

// job is a folder to read, or a batch of files of one folder, so that one large folder keeps every worker busy. For a folder its scope is
// the parent's; for files it is unused, as they have passed the ignore rules already.
type job struct {
	dir   string
	scope *scope
	files []string // nil: the folder is to be read
}

const (
	batchFiles   = 64   // files in one job
	maxBatches   = 1024 // waiting jobs; beyond, whoever reads the folder visits the files too
	chunkEntries = 4096 // folder entries read at once; a folder with a million of them is never held whole
)

// maxWorkers is ripgrep's limit: further threads only compete for locks in the file system.
const maxWorkers = 12

// Two at least, so that one can wait for the disk while the other matches.
func workers() int { return min(maxWorkers, max(2, runtime.GOMAXPROCS(0))) }

// run walks until everything was visited or ctx ends, whose error it returns. No visit runs any more then. A walk is used
// once.
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

// work is one worker. It takes jobs until there are none and no busy worker could add one.
func (w *walk) work(ctx context.Context, n int) {
	for {
		w.mu.Lock()
		// A worker that is busy may still find folders, so an empty stack is not the end.
		for len(w.todo) == 0 && w.busy > 0 && !w.stopped {
			w.more.Wait()
		}
		if len(w.todo) == 0 || w.stopped {
			w.mu.Unlock()
			w.more.Broadcast()
			return
		}
		j := w.todo[len(w.todo)-1]
		// The stack keeps its memory, and an entry that is not cleared would keep the names of a finished folder.
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

// read reads a folder in chunks and shares out what is in it. Ignore files must be known before the first entry is judged:
// where the folder is larger than a chunk they are looked for by name. A folder that cannot be read is reported and does
// not end the walk.
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
			// An ignore file may be in a later chunk, but counts for the first entries as well.
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

// share gives the folders and all batches of files but one to free workers and visits the last batch itself. The number of waiting jobs may
// have changed by then, so maxBatches is approximate.
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

// fail reports what could not be read. It is called from several goroutines. A path that has gone since the folder was
// read is no error: projects change while they are searched.
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
