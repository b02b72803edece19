package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// missing remembers which folders are not there, so that nothing below them is looked for. Skills may be in dozens of places
// (.claude/skills, .cursor/skills …), of which a project has one or two, and they are looked for at each step of a session. A folder can
// only come into being by a change of the folder that holds it, whose time tells. The zero value knows nothing.
type missing struct {
	in map[string]*holding // by the folder that holds others
}

// holding is a folder, and what is known of the folders in it as of its time.
type holding struct {
	time  time.Time
	there map[string]bool // by path
}

// settled is how long a folder must have been unchanged for its time to be believed: two changes within one tick of a file system's clock
// have the same time. FAT's ticks of two seconds are the longest.
const settled = 3 * time.Second

// stampOf combines the times and sizes of paths; it is never empty. A missing path is included, so that its creation is noticed.
func (m *missing) stampOf(paths []string) string {
	b := strings.Builder{}
	b.WriteByte('.')
	now, looked := time.Now(), map[string]*holding{}
	for _, p := range paths {
		if !m.below(filepath.Dir(p), now, looked) {
			if info, err := os.Stat(p); err == nil {
				fmt.Fprintf(&b, "%d %d;", info.ModTime().UnixNano(), info.Size())
				continue
			}
		}
		b.WriteString("-;")
	}
	return b.String()
}

// below reports whether dir is known to be missing, so that nothing can be below it. looked has the folders whose time was compared already,
// nil for those that cannot be relied on at present.
func (m *missing) below(dir string, now time.Time, looked map[string]*holding) bool {
	in := filepath.Dir(dir)
	h, ok := looked[in]
	if !ok {
		h = m.look(in, now)
		looked[in] = h
	}
	if h == nil {
		return false
	}
	there, known := h.there[dir]
	if !known { // after the folder's time was read: what is made from now on changes it
		_, err := os.Lstat(dir)
		there = !errors.Is(err, fs.ErrNotExist)
		h.there[dir] = there
	}
	return !there
}

// look compares a folder's time and returns what is known in it; nil where the time says nothing.
func (m *missing) look(dir string, now time.Time) *holding {
	info, err := os.Stat(dir)
	if err != nil || now.Sub(info.ModTime()) < settled || runtime.GOOS == "windows" { // Windows may write the time later
		delete(m.in, dir)
		return nil
	}
	h := m.in[dir]
	if h == nil || !h.time.Equal(info.ModTime()) {
		h = &holding{info.ModTime(), map[string]bool{}}
		if m.in == nil {
			m.in = map[string]*holding{}
		}
		m.in[dir] = h
	}
	return h
}
