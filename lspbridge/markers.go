package lspbridge

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/paths"
)

// markers knows which folders hold which root markers. Every edit asks, for a dozen servers and every folder on the way
// up: a folder is looked into again only when its time of change is another one.
type markers struct {
	mu   sync.Mutex
	dirs map[string]*markedDir
}

// markedDir is what was found in a folder while it was as it was then.
type markedDir struct {
	changed time.Time
	racy    bool // looked at so soon after its last change that the next one may bear the same time
	holds   map[string]bool
}

const (
	maxMarked = 10_000          // folders remembered
	racyFor   = 2 * time.Second // as coarse as the clock of any file system is
)

// look begins one question: a folder is asked for its time once in it.
func (m *markers) look() *look { return &look{of: m, dirs: map[string]*markedDir{}} }

type look struct {
	of   *markers
	dirs map[string]*markedDir
}

// root is the nearest directory at or above path's that holds one of the markers (globs allowed), not above top.
// Without one it is top, or path's own directory when path is not inside top.
func (l *look) root(path, top string, markers []string) string {
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

// outermost is the folder farthest up from root, not above top, that holds one of the markers. What holds one of stops
// is the last one looked at.
func (l *look) outermost(root, top string, markers, stops []string) string {
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

// holds reports whether a folder holds one of the markers.
func (l *look) holds(dir string, markers []string) bool {
	if len(markers) == 0 {
		return false
	}
	d := l.dir(dir)
	for _, m := range markers {
		l.of.mu.Lock()
		there, known := d.holds[m]
		l.of.mu.Unlock()
		if !known {
			there = isThere(dir, m)
			if !strings.ContainsRune(m, '/') { // deeper down nothing changes the folder's time
				l.of.mu.Lock()
				d.holds[m] = there
				l.of.mu.Unlock()
			}
		}
		if there {
			return true
		}
	}
	return false
}

// dir is what is known of a folder as it is now.
func (l *look) dir(dir string) *markedDir {
	if d := l.dirs[dir]; d != nil {
		return d
	}
	d := &markedDir{racy: true, holds: map[string]bool{}}
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

func isThere(dir, marker string) bool {
	if strings.ContainsAny(marker, "*?[") {
		found, _ := filepath.Glob(filepath.Join(dir, marker))
		return len(found) > 0
	}
	_, err := os.Lstat(filepath.Join(dir, marker))
	return err == nil
}
