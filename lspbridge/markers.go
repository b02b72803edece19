package lspbridge

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/paths"
)

// markers caches which folders contain which root markers. Every edit needs this for a dozen servers and all folders up to the root, so a
// folder is read again only when its modification time differs.
type markers struct {
	mu   sync.Mutex // guards dirs and the maps in each
	dirs map[string]*markedDir
}

// markedDir is what a folder contained at a modification time.
type markedDir struct {
	changed time.Time // the folder's modification time when it was read
	racy    bool      // read so soon after a change that a later change may have the same time; not reused
	marked  map[string]bool
}

// Limits of the cache.
const (
	maxMarked = 10_000          // folders; the cache is emptied when it has more
	racyFor   = 2 * time.Second // the coarsest timestamp of common file systems (FAT)
)

// search begins a search for roots, which reads each folder's modification time only once.
func (m *markers) search() *rootSearch { return &rootSearch{of: m, dirs: map[string]*markedDir{}} }

// rootSearch is one search for roots.
type rootSearch struct {
	of   *markers
	dirs map[string]*markedDir
}

// root returns the nearest folder at or above path's own that contains one of the markers (globs allowed), but not above top. Without one
// it returns top, or path's own folder when path is outside top.
func (l *rootSearch) root(path, top string, markers []string) string {
	if !paths.Within(top, path) {
		top = ""
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if l.holds(dir, markers) {
			return dir
		}
		if dir == top || dir == filepath.Dir(dir) {
			break
		}
	}
	if top == "" {
		return filepath.Dir(path)
	}
	return top
}

// outermost returns the highest folder above root, up to top, that contains one of the markers: in a monorepo the server of the whole
// repository knows all users of a symbol. A folder that contains one of stops ends the search.
func (l *rootSearch) outermost(root, top string, markers, stops []string) string {
	if !paths.Within(top, root) {
		return root
	}
	for dir := root; dir != top && !l.holds(dir, stops); {
		if dir = filepath.Dir(dir); l.holds(dir, markers) {
			root = dir
		}
	}
	return root
}

// holds reports whether a folder contains one of the markers.
func (l *rootSearch) holds(dir string, markers []string) bool {
	if len(markers) == 0 {
		return false
	}
	d := l.dir(dir)
	for _, m := range markers {
		l.of.mu.Lock()
		there, known := d.marked[m]
		l.of.mu.Unlock()
		if !known {
			there = isThere(dir, m)
			if !strings.ContainsRune(m, '/') { // not cached for deeper markers: a change there does not change this folder's time
				l.of.mu.Lock()
				d.marked[m] = there
				l.of.mu.Unlock()
			}
		}
		if there {
			return true
		}
	}
	return false
}

// dir returns the cache entry of a folder in its present state.
func (l *rootSearch) dir(dir string) *markedDir {
	if d := l.dirs[dir]; d != nil {
		return d
	}
	d := &markedDir{racy: true, marked: map[string]bool{}}
	if fi, err := os.Stat(dir); err == nil {
		d.changed = fi.ModTime()
		d.racy = time.Since(d.changed) < racyFor
		l.of.mu.Lock()
		if l.of.dirs == nil || len(l.of.dirs) >= maxMarked {
			l.of.dirs = map[string]*markedDir{}
		}
		if old := l.of.dirs[dir]; old != nil && !old.racy && old.changed.Equal(d.changed) {
			d = old
		} else {
			l.of.dirs[dir] = d
		}
		l.of.mu.Unlock()
	}
	l.dirs[dir] = d
	return d
}

// isThere reports whether a folder contains a marker, which may be a glob.
func isThere(dir, marker string) bool {
	if strings.ContainsAny(marker, "*?[") {
		found, _ := filepath.Glob(filepath.Join(dir, marker))
		return len(found) > 0
	}
	_, err := os.Lstat(filepath.Join(dir, marker))
	return err == nil
}
