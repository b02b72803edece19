// Package checkpoint stores earlier contents of files, and works out how to restore them: contents under their hash in a folder of its
// own (never in the project's repository), change sets that refer to them, and plans that undo what was done since a moment, merged
// with what the person wrote in between. It writes no project file: a plan is a change set.
//
//	blobs := &checkpoint.Blobs{Dir: dir}
//	packed := blobs.Pack(set)                              // small, for the event log
//	plan := checkpoint.New(entries, present, blobs.Load)   // what to do to be back before the entries
package checkpoint

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"
)

// ErrPruned is the error for a content that Prune has removed, because it was too old or there was too much. It cannot be restored.
var ErrPruned = errors.New("is no longer kept")

// Blobs stores contents under their SHA-256, compressed, one file each. Several processes may share the folder. It is created with the
// first content. It is safe for concurrent use.
type Blobs struct {
	Dir string // absolute

	mu     sync.Mutex
	recent []named // the last contents put, oldest first; guarded by mu
}

// named is a content and its SHA-256 in hex.
type named struct{ text, ref string }

// keepRecent is how many contents Put remembers with their hash. An agent that edits the same few files puts the same texts at every
// step; hashing one and touching its file costs more than comparing it with these.
const keepRecent = 8

// maxRecent is the size of a content, in bytes, above which it is not remembered: its memory would cost more than hashing it once more.
const maxRecent = 1 << 20

// path is the file of a content, in a folder named after the first two digits of its hash, so that no folder has many thousands of
// files.
func (b *Blobs) path(ref string) string { return filepath.Join(b.Dir, ref[:2], ref[2:]+".z") }

// Put keeps a content and returns its name, 64 hex digits. A content that is there already gets a new modification time,
// which is its age for Prune. The error means that nothing was kept.
func (b *Blobs) Put(text string) (ref string, err error) {
	b.mu.Lock()
	for _, n := range b.recent {
		if n.text == text {
			b.mu.Unlock()
			return n.ref, nil
		}
	}
	b.mu.Unlock()
	sum := sha256.New()
	_ = writeText(sum, text) // a hash takes everything
	ref = hex.EncodeToString(sum.Sum(nil))
	path, now := b.path(ref), time.Now()
	// Setting the time also tests whether the content is stored already.
	if os.Chtimes(path, now, now) != nil {
		if err := b.write(path, text); err != nil {
			return "", fmt.Errorf("a checkpoint's content could not be stored: %w", err)
		}
	}
	if len(text) > maxRecent {
		return ref, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recent = append(b.recent, named{text, ref}); len(b.recent) > keepRecent {
		// A new slice, so that the dropped text can be garbage-collected.
		b.recent = append([]named(nil), b.recent[1:]...)
	}
	return ref, nil
}

// deflaters compress contents, with BestSpeed because an edit waits for it. A new one takes 1.2 MB, which a large change would allocate and
// clear for each of its files.
var deflaters = sync.Pool{New: func() any {
	z, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is a valid one
	return z
}}

// write writes a temporary file and renames it, so that a crash or another process never leaves or sees half a content under
// its name. It does not sync to disk: Get checks the hash, and a content lost in a power failure is reported as damaged.
func (b *Blobs) write(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if errors.Is(err, fs.ErrNotExist) {
		// 0700: contents are the project's source code.
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err = os.CreateTemp(filepath.Dir(path), ".new-*")
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	z := deflaters.Get().(*flate.Writer)
	z.Reset(f)
	if err = writeText(z, text); err == nil {
		err = z.Close()
	}
	z.Reset(io.Discard) // the pool must not keep the file
	deflaters.Put(z)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeText writes a text in pieces. Most writers take bytes only, and io.WriteString would copy all of a text for them.
func writeText(w io.Writer, text string) error {
	if len(text) < 64<<10 { // less than io.Copy's buffer takes
		_, err := io.WriteString(w, text)
		return err
	}
	_, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(text)}) // without strings.Reader's WriteTo, which is io.WriteString
	return err
}

// Get reads a content and checks it against its name. Errors: ErrPruned (wrapped) when it is no longer there, another when it
// is damaged. ref comes from stored events, so it is checked before it becomes a path.
func (b *Blobs) Get(ref string) (string, error) {
	if ref == unkept {
		return "", errors.New("was only proposed, so its texts were not kept")
	}
	// A name with a slash or dots could lead out of the folder.
	if len(ref) != 2*sha256.Size || filepath.Base(ref) != ref {
		return "", fmt.Errorf("%q names no content", ref)
	}
	z, err := os.ReadFile(b.path(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("content %s… %w", ref[:8], ErrPruned)
	}
	if err != nil {
		return "", err
	}
	r := flate.NewReader(bytes.NewReader(z))
	text, err := io.ReadAll(r)
	// A damaged file may decompress without an error; the hash finds it.
	if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != ref {
		return "", fmt.Errorf("content %s… is damaged", ref[:8])
	}
	return string(text), nil
}

// Limits say how much is kept, and for how long.
type Limits struct {
	Age  time.Duration // since a content was last put
	Size int64         // bytes on the disk, of all contents
}

// Default is sixty days and 2 GiB on the disk; beyond the size, Prune removes the oldest contents first.
var Default = Limits{Age: 60 * 24 * time.Hour, Size: 2 << 30}

// Prune removes what is too old, and of the rest the oldest beyond the size; also what a killed write left.
func (b *Blobs) Prune(l Limits) error {
	type file struct {
		path string
		size int64
		at   time.Time
	}
	var all []file
	var total int64
	// Another process may remove files and folders at the same time, so a missing one is not an error.
	err := filepath.WalkDir(b.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // gone meanwhile
		}
		switch age := time.Since(info.ModTime()); {
		// Contents and their temporary files are in subfolders: a file directly in the folder belongs to something else.
		case filepath.Ext(path) != ".z" && filepath.Dir(path) == b.Dir:
		// A temporary file older than an hour is of a killed process; another process may be writing a younger one.
		case filepath.Ext(path) != ".z":
			if age > time.Hour {
				_ = os.Remove(path)
			}
		case l.Age > 0 && age > l.Age:
			_ = os.Remove(path)
		default:
			all = append(all, file{path, info.Size(), info.ModTime()})
			total += info.Size()
		}
		return nil
	})
	sort.Slice(all, func(i, j int) bool { return all[i].at.Before(all[j].at) })
	// Oldest first, until the rest fits.
	for _, f := range all {
		if l.Size <= 0 || total <= l.Size {
			break
		}
		if os.Remove(f.path) == nil {
			total -= f.size
		}
	}
	b.mu.Lock()
	// The remembered contents may have been removed: Put must look at the disk again.
	b.recent = nil
	b.mu.Unlock()
	return err
}
