package editors

import (
	"slices"
	"sync"
)

// lagging are files that Pillion wrote and whose new text an editor has not reported yet. Some editors load a file again
// only when the person looks at it, and report the old text until then. That old text is not unsaved work. After the
// editor has reported the new text, the old text would be unsaved work: the person has undone the change.
type lagging struct {
	mu    sync.Mutex
	files map[string]*lag // by path; guarded by mu
}

// lag is one file that was written. Hashes stand for the older texts, which may be long.
type lag struct {
	before []string // hashes of plain texts the editor may still show, oldest first
	now    string   // what the disk holds, as we wrote it
	editor bool     // it was written by the editor
}

// maxLag is how many texts of a file are remembered that an editor may lag behind; older ones then count as the person's own, which
// refuses a write but loses nothing.
const maxLag = 32

// wrote takes note of a write from old to now, while the editor shows shown.
func (l *lagging) wrote(path, old, now string, editor bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.files[path]
	if f == nil {
		f = &lag{}
		if l.files == nil {
			l.files = map[string]*lag{}
		}
		l.files[path] = f
	}
	if h := hash(plain(old)); !slices.Contains(f.before, h) {
		f.before = append(f.before, h)
	}
	if len(f.before) > maxLag {
		f.before = f.before[len(f.before)-maxLag:]
	}
	f.now, f.editor = now, editor
}

// behind reports that an editor shows text because it has not loaded the file again since we wrote it. disk is what
// the file holds.
func (l *lagging) behind(path, text, disk string) (lags, byEditor bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.files[path]
	switch {
	case f == nil:
		return false, false
	case sameText(text, f.now) || disk != f.now: // it has caught up, or somebody else wrote the file
		delete(l.files, path)
		return false, false
	}
	return slices.Contains(f.before, hash(plain(text))), f.editor
}
