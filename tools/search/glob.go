package search

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// GlobQuery asks for file names. Show is where permission rules hide files, so it may be slow.
type GlobQuery struct {
	Root    string            // absolute folder; nothing outside it is looked at
	Pattern string            // see Pattern; SplitPattern first moves its fixed folders into Root
	Limit   int               // names returned; 0: DefaultLimit
	Show    func(string) bool // nil shows all; called at once from several goroutines
}

// Names is what a glob found, newest first.
type Names struct {
	Paths   []string // absolute
	More    bool     // there are more than Limit
	Partial bool     // time was up
	Unread  Unread
}

// Glob finds files by name. If a pattern with white space around it finds nothing, it is tried without: file names may begin or end with a
// blank, but in a pattern of a model it is usually a slip.
func (s *Searcher) Glob(ctx context.Context, q GlobQuery) (Names, error) {
	out, err := s.glob(ctx, q)
	if trimmed := strings.TrimSpace(q.Pattern); err == nil && len(out.Paths) == 0 && !out.Partial && trimmed != q.Pattern {
		q.Pattern = trimmed
		return s.glob(ctx, q)
	}
	return out, err
}

// glob is one search for the pattern as it is given.
func (s *Searcher) glob(ctx context.Context, q GlobQuery) (Names, error) {
	if q.Pattern == "" {
		return Names{}, &PatternError{"pattern is required"}
	}
	root := q.Root
	p, err := ParsePattern(q.Pattern)
	if err != nil {
		return Names{}, &PatternError{err.Error()}
	}
	if info, err := os.Stat(root); err != nil {
		return Names{}, notFound(root, err)
	} else if !info.IsDir() {
		return Names{}, &PathError{Message: "glob path must be a directory: " + root}
	}
	if insideGit(root) {
		return Names{}, nil
	}
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	// One more than is returned, to know whether there are more.
	top := newest{n: limit + 1, show: q.Show}
	var out Names
	x := s.indexOf(root)
	defer x.timed()()
	if !x.glob(root, p, &top, out.Unread.add) {
		if err := s.globWalk(ctx, root, p, &top, &out); err != nil {
			return Names{}, err
		}
	}
	out.More = len(top.files) > limit
	for _, f := range top.files[:min(limit, len(top.files))] {
		out.Paths = append(out.Paths, f.path)
	}
	return out, nil
}

// globWalk finds the names by a walk. Only the end of ctx is an error.
func (s *Searcher) globWalk(ctx context.Context, root string, p *Pattern, top *newest, out *Names) error {
	var mu sync.Mutex // out.Unread
	sc, _ := start(root)
	w := walk{
		root: root, prune: s.private(root), include: p, scope: sc,
		visit: func(_ int, dir string, names []string) {
			d, err := openFolder(dir)
			if err != nil {
				return // gone since it was read
			}
			defer d.Close()
			in := withSeparator(dir)
			for _, name := range names {
				if at, err := d.modTime(name); err == nil && !top.late(at) {
					top.put(aged{in + name, at})
				}
			}
		},
		failed: func(path string, err error) {
			mu.Lock()
			defer mu.Unlock()
			out.Unread.add(describe(path, err))
		},
	}
	within, cancel := context.WithTimeout(ctx, s.timeout())
	defer cancel()
	if err := w.run(within); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		out.Partial = true
	}
	return nil
}

// SplitPattern moves the fixed folders at the beginning of a pattern into the root, so that src/**/*.go is walked
// from src, and absolute patterns work. The rest stays anchored where it was. A leading slash means the root of
// the search, as in ignore files, unless the pattern names a folder of the file system that root does not have. Callers
// ask permission for the folder it returns, so it must be called before a search and not inside it.
func SplitPattern(root, pattern string) (dir, rest string) {
	pattern = strings.TrimPrefix(pattern, "./")
	slashed := filepath.ToSlash(pattern)
	dir = root
	abs := filepath.IsAbs(pattern) && namesAbsolute(root, slashed)
	if abs {
		volume := filepath.VolumeName(pattern)
		dir, slashed = volume+string(filepath.Separator), strings.TrimPrefix(slashed[len(volume):], "/")
	} else if strings.HasPrefix(slashed, "/") && len(slashed) > 1 {
		if slashed = slashed[1:]; !strings.Contains(slashed, "/") {
			return dir, "/" + slashed
		}
	}
	anchored := abs
	for {
		comp, tail, ok := strings.Cut(slashed, "/")
		if !ok || strings.ContainsAny(comp, meta) {
			break
		}
		next := filepath.Join(dir, filepath.FromSlash(comp))
		if info, err := os.Stat(next); err != nil || !info.IsDir() {
			break // a missing folder finds nothing; it is not an error
		}
		dir, slashed, anchored = next, tail, true
	}
	switch {
	case slashed == "":
		slashed = "**"
	case anchored && !strings.Contains(slashed, "/"):
		slashed = "/" + slashed // a/*.go is not a/**/*.go
	}
	return dir, slashed
}

// namesAbsolute decides what a leading slash means: a pattern is absolute when it begins with the root, or when its first
// folder exists at the top of the file system and not in the root. A model that writes /src/*.go means the project's src,
// and one that writes /etc/*.conf means the system's.
func namesAbsolute(root, pattern string) bool {
	if volume := filepath.VolumeName(pattern); volume != "" {
		return true
	}
	if strings.HasPrefix(pattern, withSlash(filepath.ToSlash(root))) {
		return true
	}
	first, _, ok := strings.Cut(pattern[1:], "/")
	if !ok || first == "" || strings.ContainsAny(first, meta) {
		return false
	}
	if _, err := os.Lstat(filepath.Join(root, first)); err == nil {
		return false
	}
	_, err := os.Lstat("/" + first)
	return err == nil
}

// withSlash ends a path with one slash, so that /a is not taken for the parent of /ab.
func withSlash(s string) string { return strings.TrimSuffix(s, "/") + "/" }

// meta are the characters that make a component a pattern.
const meta = `*?[]{}\!`

// insideGit reports whether a path is git's own folder or in it. Nothing there is ever searched. The folder is known by
// its name alone, wherever it is.
func insideGit(path string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if part == ".git" {
			return true
		}
	}
	return false
}

// describe names a path once with its error; most errors of the system repeat it. The text goes into Unread.
func describe(path string, err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return path + ": " + err.Error()
}

// newest keeps the n newest of any number of files. It is safe for concurrent use. It exists because sorting all names of a large project
// would take longer than finding them.
type newest struct {
	n     int
	show  func(path string) bool // nil: all; called only for files that would be kept
	mu    sync.Mutex
	files []aged               // guarded by mu; newest first, ties by path
	last  atomic.Pointer[aged] // the oldest of files once there are n; most files are older and need no lock
}

// aged is a path with its modification time, by which results are sorted. Ties are broken by path, so that equal times
// give the same order each time.
type aged struct {
	path string
	time time.Time
}

// compare orders the newest first, as the results are.
func (a aged) compare(b aged) int {
	return cmp.Or(b.time.Compare(a.time), cmp.Compare(a.path, b.path))
}

// add looks up the file's time. One that is gone since is left out.
func (t *newest) add(path string) {
	if at, err := modTime(path); err == nil {
		t.put(aged{path, at})
	}
}

// late reports that a file of that time is too old to be kept, whatever its path. It takes no lock, and it rejects most files.
func (t *newest) late(at time.Time) bool {
	last := t.last.Load()
	return last != nil && at.Before(last.time)
}

// put keeps a file if it is among the n newest. show is called without the lock, because it may be slow. The first test takes no lock
// either and may use an old value, which costs an insertion and nothing else.
func (t *newest) put(a aged) {
	if last := t.last.Load(); last != nil && a.compare(*last) >= 0 || t.show != nil && !t.show(a.path) {
		return
	}
	t.keep(a)
}

// keep is put of a file that is known to be shown.
func (t *newest) keep(a aged) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, _ := slices.BinarySearchFunc(t.files, a, aged.compare)
	if i == t.n {
		return
	}
	t.files = slices.Insert(t.files, i, a)
	t.files = t.files[:min(len(t.files), t.n)]
	if len(t.files) == t.n {
		last := t.files[t.n-1]
		t.last.Store(&last)
	}
}

// Files lists what no ignore file hides below root: paths relative to it, with slashes, in no order; at most limit.
// more says that there are others, or that time was up.
func (s *Searcher) Files(ctx context.Context, root string, limit int) (paths []string, more bool, err error) {
	return s.list(ctx, root, limit, false)
}

// FilesAndLinks is Files with the symbolic links, which are not followed.
func (s *Searcher) FilesAndLinks(ctx context.Context, root string, limit int) (paths []string, more bool, err error) {
	return s.list(ctx, root, limit, true)
}

// list walks until there are limit paths. The order depends on the workers, so a cut list is not the same each time. Only
// the end of the caller's own ctx is an error; after the time limit the paths found so far are returned and more is true.
func (s *Searcher) list(ctx context.Context, root string, limit int, links bool) (paths []string, more bool, err error) {
	if info, err := os.Stat(root); err != nil {
		return nil, false, notFound(root, err)
	} else if !info.IsDir() {
		return nil, false, &PathError{Message: root + " is not a directory"}
	}
	if insideGit(root) {
		return nil, false, nil
	}
	within, cancel := context.WithTimeout(ctx, s.timeout())
	defer cancel()
	var mu sync.Mutex // paths, more
	base := len(withSeparator(root))
	sc, _ := start(root)
	w := walk{root: root, links: links, prune: s.private(root), scope: sc, failed: func(string, error) {},
		visit: func(_ int, dir string, names []string) {
			prefix := filepath.ToSlash(withSeparator(dir)[base:])
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				if len(paths) == limit {
					more = true
					cancel()
					return
				}
				paths = append(paths, strings.Clone(prefix+name))
			}
		}}
	if err := w.run(within); err != nil && !errors.Is(ctx.Err(), err) {
		more = true
	}
	return paths, more, ctx.Err()
}
