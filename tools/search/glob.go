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
	Root    string            // absolute folder
	Pattern string            // see Pattern
	Limit   int               // names returned; 0 is all
	Show    func(string) bool // nil shows all; called at once from several goroutines
	Buffers []Buffer          // open documents; those that are not on disk yet count too
}

// Names is what a glob found, newest first.
type Names struct {
	Paths   []string // absolute
	Total   int      // how many there are
	Partial bool     // time was up
	Unread  Unread
}

// Glob finds files by name.
func (s *Searcher) Glob(ctx context.Context, q GlobQuery) (Names, error) {
	root, pattern := SplitPattern(q.Root, q.Pattern)
	p, err := ParsePattern(pattern)
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
		limit = 1 << 30
	}
	top := newest{n: limit}
	var out Names
	var mu sync.Mutex // out.Unread
	sc, _ := start(root)
	w := walk{
		root: root, prune: s.private(root), include: p, scope: sc,
		visit: func(_ int, path string) {
			if q.Show == nil || q.Show(path) {
				top.add(path)
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
	out.Total = top.total
	for _, f := range top.files {
		out.Paths = append(out.Paths, f.path)
	}
	return out, nil
}

// SplitPattern moves the fixed folders at the beginning of a pattern into the root, so that src/**/*.go is walked
// from src, and absolute patterns work. The rest stays anchored where it was.
func SplitPattern(root, pattern string) (dir, rest string) {
	pattern = strings.TrimPrefix(pattern, "./")
	abs := filepath.IsAbs(pattern)
	slashed := filepath.ToSlash(pattern)
	dir = root
	if abs {
		volume := filepath.VolumeName(pattern)
		dir, slashed = volume+string(filepath.Separator), strings.TrimPrefix(slashed[len(volume):], "/")
	}
	anchored := abs
	for {
		comp, tail, ok := strings.Cut(slashed, "/")
		if !ok || strings.ContainsAny(comp, `*?[]{}\!`) {
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
