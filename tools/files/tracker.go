package files

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrUnread: the session has not read the file. ErrStale: it changed since.
var (
	ErrUnread = errors.New("has not been read in this session")
	ErrStale  = errors.New("has been modified since it was last read")
)

// UnreadError names the file. errors.Is(err, ErrUnread) holds.
type UnreadError struct{ Path string }

func (e *UnreadError) Error() string {
	return fmt.Sprintf("You must read the file %s before changing it: it exists and %v. Use the read tool first, then repeat this call.", e.Path, ErrUnread)
}
func (e *UnreadError) Is(t error) bool { return t == ErrUnread }

// StaleError carries what the session knew and what is there now. errors.Is(err, ErrStale) holds.
type StaleError struct {
	Path     string
	LastRead time.Time
	Then     string // the text last read
	HasThen  bool   // Then was kept (big files are not)
	Now      *File
}

func (e *StaleError) Error() string {
	if e.Now != nil && !e.Now.Exists && !e.Now.Dirty {
		return fmt.Sprintf("File %s has been deleted since it was last read.", e.Path)
	}
	return fmt.Sprintf("File %s %v. Please read the file again before modifying it.", e.Path, ErrStale)
}
func (e *StaleError) Is(t error) bool { return t == ErrStale }

const (
	keepText  = 256 << 10 // bytes of a text kept to say what changed
	keepTexts = 4 << 20   // bytes of all of them in a session
)

// Tracker remembers what a session knows of files, by the hash of the text. The zero value is ready; a nil Tracker
// lets everything pass.
type Tracker struct {
	mu    sync.Mutex
	seen  map[string]seen // by real path; guarded by mu
	kept  int             // bytes of texts in seen; guarded by mu
	order []string        // real paths with a kept text, oldest first; guarded by mu
}

type seen struct {
	state string
	at    time.Time
	text  string
	has   bool
}

// Read notes that the session knows the file as it is in f.
func (t *Tracker) Read(f *File) {
	if t == nil {
		return
	}
	t.note(f.Real, seen{state: f.State(), at: time.Now(), text: f.Text, has: len(f.Text) <= keepText})
}

// Know is Read for a file that was just written with this text.
func (t *Tracker) Know(real, text string) {
	if t != nil {
		t.note(real, seen{state: Hash([]byte(text)), at: time.Now(), text: text, has: len(text) <= keepText})
	}
}

// Note is Read for a file that was streamed: its real path and the State its text has.
func (t *Tracker) Note(real, state string) {
	if t != nil {
		t.note(real, seen{state: state, at: time.Now()})
	}
}

func (t *Tracker) note(real string, s seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[string]seen{}
	}
	t.drop(real)
	if !s.has {
		s.text = ""
	} else {
		t.kept += len(s.text)
		t.order = append(t.order, real)
	}
	t.seen[real] = s
	for t.kept > keepTexts {
		old := t.seen[t.order[0]]
		t.kept -= len(old.text)
		old.text, old.has = "", false
		t.seen[t.order[0]] = old
		t.order = t.order[1:]
	}
}

// drop forgets a kept text; mu is held.
func (t *Tracker) drop(real string) {
	old, ok := t.seen[real]
	if !ok || !old.has {
		return
	}
	t.kept -= len(old.text)
	for i, p := range t.order {
		if p == real {
			t.order = append(t.order[:i:i], t.order[i+1:]...)
			break
		}
	}
}

// Forget drops a file that is gone.
func (t *Tracker) Forget(real string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(real)
	delete(t.seen, real)
}

// Files are the real paths of files the session knows, at most so many, in no order.
func (t *Tracker) Files(most int) []string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]string, 0, min(most, len(t.seen)))
	for path := range t.seen {
		if len(out) == most {
			break
		}
		out = append(out, path)
	}
	return out
}

// Known says whether the session has read the file at all.
func (t *Tracker) Known(real string) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.seen[real]
	return ok
}

// Check says whether the session may change f: an existing file must have been read (*UnreadError) and still have
// that text (*StaleError). A file that does not exist, and was never known, passes.
func (t *Tracker) Check(f *File) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	s, ok := t.seen[f.Real]
	t.mu.Unlock()
	exists := f.Exists || f.Dirty
	switch {
	case !ok && !exists:
		return nil
	case !ok:
		return &UnreadError{f.Path}
	case exists && s.state == f.State():
		return nil
	}
	return &StaleError{Path: f.Path, LastRead: s.at, Then: s.text, HasThen: s.has, Now: f}
}
