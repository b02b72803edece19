package files

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Why a session may not change a file; the errors returned wrap them and name the file.
var (
	ErrUnread = errors.New("has not been read in this session")        // *UnreadError
	ErrStale  = errors.New("has been modified since it was last read") // *StaleError, *BaseError
)

// UnreadError is returned for an existing file that the session has not read. Its text is for the model. errors.Is(err,
// ErrUnread) holds.
type UnreadError struct{ Path string }

// Error is for the model, so it names the next step.
func (e *UnreadError) Error() string {
	return fmt.Sprintf("You must read the file %s before changing it: it exists and %v. Use the read tool first, then repeat this call.", e.Path, ErrUnread)
}

// Is matches ErrUnread.
func (e *UnreadError) Is(t error) bool { return t == ErrUnread }

// StaleError is returned for a file whose text is not the one the session knows. It carries both, so that the caller can
// show the difference to the model instead of having it read the file again. errors.Is(err, ErrStale) holds.
type StaleError struct {
	Path     string
	LastRead time.Time
	Then     string // the text last read
	HasThen  bool   // Then was kept (big files are not)
	Now      *File
}

// Error has OpenCode's words, which models know.
func (e *StaleError) Error() string {
	if e.Now != nil && !e.Now.Exists && !e.Now.Dirty {
		return fmt.Sprintf("File %s has been deleted since it was last read.", e.Path)
	}
	return fmt.Sprintf("File %s %v. Please read the file again before modifying it.", e.Path, ErrStale)
}

// Is matches ErrStale.
func (e *StaleError) Is(t error) bool { return t == ErrStale }

// keepText and keepTexts bound the memory of a session that reads many files. A text that was dropped only makes the message of
// StaleError shorter.
const (
	keepText  = 256 << 10 // bytes of a text that is kept to show what changed; of larger ones only the hash
	keepTexts = 4 << 20   // bytes of all of them in a session
)

// Tracker remembers what a session knows of files, by the hash of the text and not by the time of modification: a checkout that
// restores the same text is not a change, and two writes within one clock tick have the same time. The zero value is ready; a nil
// Tracker knows every file and lets every change pass. It is safe for concurrent use.
type Tracker struct {
	mu    sync.Mutex
	seen  map[string]seen // by real path; guarded by mu
	kept  int             // bytes of texts in seen; guarded by mu
	order []string        // real paths with a kept text, oldest first; guarded by mu

	passages []passage // oldest first; guarded by mu
}

// passage is a part of a file that the session was shown.
type passage struct{ real, text string }

// keepPassages is how many passages a session remembers, the latest; most are one declaration. A passage that was forgotten has
// to be read again.
const keepPassages = 256

// seen is what the session knows of a file. text serves StaleError; Check decides by state alone.
type seen struct {
	state string    // see File.State
	at    time.Time // of the reading
	text  string    // "" unless has
	has   bool      // the text is kept
}

// Read notes that the session knows the file as it is in f.
func (t *Tracker) Read(f *File) {
	if t == nil {
		return
	}
	t.note(f.Real, seen{state: f.State(), at: time.Now(), text: f.Text, has: len(f.Text) <= keepText})
}

// Know is Read for a file that the session has just written with this text: it need not be read before the next edit.
func (t *Tracker) Know(real, text string) {
	if t != nil {
		t.note(real, seen{state: hashText(text), at: time.Now(), text: text, has: len(text) <= keepText})
	}
}

// Note is Read for a file that was streamed: its real path and the State its text has.
func (t *Tracker) Note(real, state string) {
	if t != nil {
		t.note(real, seen{state: state, at: time.Now()})
	}
}

// Saw notes that the session was shown a passage of a file, such as one declaration, and not the whole: enough to replace that passage,
// not to overwrite the file.
func (t *Tracker) Saw(real, text string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.passages = append(t.passages, passage{real, text}); len(t.passages) > keepPassages {
		t.passages = t.passages[1:]
	}
}

// HasSeen reports whether a passage given to Saw includes exactly this text. text comes from the file as it is now, so a passage
// that has changed since does not count. A nil Tracker has seen everything.
func (t *Tracker) HasSeen(real, text string) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.passages, func(p passage) bool { return p.real == real && strings.Contains(p.text, text) })
}

// note replaces what is known of a file, and drops the oldest texts beyond keepTexts, but never a hash.
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
	// Oldest first: the next refusal is most likely about a file that was read lately.
	for t.kept > keepTexts {
		old := t.seen[t.order[0]]
		t.kept -= len(old.text)
		old.text, old.has = "", false
		t.seen[t.order[0]] = old
		t.order = t.order[1:]
	}
}

// drop forgets a kept text and takes it out of order; the hash stays. mu is held.
func (t *Tracker) drop(real string) {
	old, ok := t.seen[real]
	if !ok || !old.has {
		return
	}
	t.kept -= len(old.text)
	t.order = slices.DeleteFunc(t.order, func(p string) bool { return p == real })
}

// Forget drops a file that was deleted or moved away, so that a new one at its path can be made without reading.
func (t *Tracker) Forget(real string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(real)
	delete(t.seen, real)
}

// Files returns the real paths of at most most files that the session knows, in random order.
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

// States maps the real path of each file that the session knows to its state, as Note takes it. With it, another process can
// continue with what this one knew.
func (t *Tracker) States() map[string]string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]string, len(t.seen))
	for path, s := range t.seen {
		out[path] = s.state
	}
	return out
}

// Known reports whether the session has read or written the file, in whatever state.
func (t *Tracker) Known(real string) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.seen[real]
	return ok
}

// Check returns nil when the session may change f: an existing file must have been read (*UnreadError) and still have that text
// (*StaleError). A file that neither exists nor was known passes. Without this check, a model that works from memory overwrites
// what the person has typed.
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
