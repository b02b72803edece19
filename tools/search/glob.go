package search

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// GlobQuery asks for file names.
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

// Glob finds files by name.
func (s *Searcher) Glob(ctx context.Context, q GlobQuery) (Names, error) {
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
	top := newest{n: limit + 1, show: q.Show}
	var out Names
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
			return Names{}, ctx.Err()
		}
		out.Partial = true
	}
	out.More = len(top.files) > limit
	for _, f := range top.files[:min(limit, len(top.files))] {
		out.Paths = append(out.Paths, f.path)
	}
	return out, nil
}

// SplitPattern moves the fixed folders at the beginning of a pattern into the root, so that src/**/*.go is walked
// from src, and absolute patterns work. The rest stays anchored where it was. A leading slash means the root of
// the search, as in ignore files, unless the pattern names a folder of the file system that root does not have.
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
			break // a missing folder finds nothing; it is no error
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

func withSlash(s string) string { return strings.TrimSuffix(s, "/") + "/" }

// meta are the characters that make a component a pattern.
const meta = `*?[]{}\!`

// insideGit reports whether a path is git's own folder or in it. Nothing there is ever searched.
func insideGit(path string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if part == ".git" {
			return true
		}
	}
	return false
}

func describe(path string, err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return path + ": " + err.Error()
}
