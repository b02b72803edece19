package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Limits of what is examined before and after a command. They delay a command by at most twice lookFor plus readFor. Beyond them the
// command runs all the same, and its result says what cannot be undone.
const (
	lookAt   = 50_000                 // files
	lookFor  = 400 * time.Millisecond // listing them and their times
	readFor  = 600 * time.Millisecond // copying those that neither Git nor an earlier copy has
	readMost = 4 << 20                // bytes of one file
	keepMost = 1000                   // files of one command's change
	keepSize = 64 << 20               // bytes of them
)

// Tree finds out what a command did to the files below a folder. It compares their times and sizes before and after; the earlier content
// is known because it was copied before, if it is not too large, or because Git has it. It only reads the project. It is safe for
// concurrent use; several commands share the copies.
type Tree struct {
	Root  string
	Blobs *Blobs
	// List gives the files and links to watch, relative to Root with slashes, at most limit of them; more says that there are others.
	// It leaves out ignored files; Tree itself knows no ignore rules.
	List func(ctx context.Context, root string, limit int) (files []string, more bool, err error)

	mu    sync.Mutex
	held  map[string]copied // by absolute path; guarded by mu
	index *gitIndex         // guarded by mu
}

// copied is a content in Blobs, and the stamp of the file when it was read.
type copied struct {
	stamp
	ref string
}

// stamp is what lstat says of a file: equal stamps are taken for equal contents. size is in bytes, mtime in nanoseconds since
// 1970.
type stamp struct {
	size, mtime int64
	mode        os.FileMode
	inode       uint64
}

// stampOf is the stamp of a file or of a symbolic link itself, whose target may be outside the project; ok is false for anything else,
// and where nothing is.
func stampOf(path string) (stamp, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, false
	}
	s := stamp{info.Size(), info.ModTime().UnixNano(), info.Mode().Perm(), inode(info)}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		// The mode of a link means nothing on most systems, so one value stands for all.
		s.mode = os.ModeSymlink
	case !info.Mode().IsRegular():
		return stamp{}, false
	}
	return s, true
}

// content is what a file holds; of a symbolic link only where it leads.
func (s stamp) content(path string) ([]byte, error) {
	if s.mode != os.ModeSymlink {
		return os.ReadFile(path)
	}
	target, err := os.Readlink(path)
	// A change set holds text; a target in other bytes could not be written back.
	if err == nil && !utf8.ValidString(target) {
		err = errors.New("the link's target is not UTF-8")
	}
	return []byte(target), err
}

// Look is the state of the files before a command. Before makes it, and After uses it once.
type Look struct {
	tree  *Tree
	files map[string]stamp  // by absolute path
	git   map[string]string // object ids of files that Git has unchanged, by absolute path
	named []string          // absolute paths that the command is known to write
	index *gitIndex         // as it was before the command, which may change it
	more  bool              // not all files could be examined
}

// Change is what a command did to a file.
type Change struct {
	Path             string
	Before, After    []byte
	Existed, Exists  bool
	OldMode, NewMode os.FileMode // os.ModeSymlink alone: a link, and the content is where it leads
}

// Before records the files before a command, and copies contents that would be lost otherwise. named are the absolute paths that the
// command is known to write; they are watched even where they are ignored.
func (t *Tree) Before(ctx context.Context, named []string) *Look {
	l := &Look{tree: t, named: named, git: map[string]string{}}
	l.files, l.more = t.look(ctx, named)
	// mu is held while the index is read, so that two commands do not both read it.
	t.mu.Lock()
	if t.held == nil {
		t.held = map[string]copied{}
	}
	if x := t.index; x == nil || indexMoved(x) {
		t.index = readIndex(t.Root)
	}
	l.index = t.index
	var copies []string
	for path, s := range l.files {
		// an equal stamp: the content was copied before an earlier command
		if t.held[path].stamp == s {
			continue
		}
		if rel, err := filepath.Rel(t.Root, path); err == nil && s.mode != os.ModeSymlink {
			// Git has it: a copy would be a second one
			if id, ok := l.index.clean(filepath.ToSlash(rel), s); ok {
				l.git[path] = id
				continue
			}
		}
		copies = append(copies, path)
	}
	t.mu.Unlock()
	// Files that the command names come first, then the latest written: the time may not suffice for all, and these are most likely
	// to change.
	sort.Slice(copies, func(i, j int) bool {
		a, b := slices.Contains(named, copies[i]), slices.Contains(named, copies[j])
		return a != b && a || a == b && l.files[copies[i]].mtime > l.files[copies[j]].mtime
	})
	// A file that is not copied in time is reported when the command has changed it.
	until := time.Now().Add(readFor)
	for _, path := range copies {
		if time.Now().After(until) || ctx.Err() != nil {
			break
		}
		t.copy(path, l.files[path])
	}
	return l
}

// indexMoved reports whether git wrote its index after x was read. A deleted index counts as moved, and is then read as none.
func indexMoved(x *gitIndex) bool {
	info, err := os.Stat(filepath.Join(x.dir, "index"))
	return err != nil || !info.ModTime().Equal(x.written)
}

// copy stores a file's content. It takes the stamp again after reading: a file that was written meanwhile is left out, because the bytes
// may be half of one text and half of another.
func (t *Tree) copy(path string, s stamp) {
	// a file that is too large is reported as lost if the command changes it
	if s.size > readMost {
		return
	}
	b, err := s.content(path)
	if now, ok := stampOf(path); err != nil || !ok || now != s || int64(len(b)) != s.size {
		return
	}
	ref, err := t.Blobs.Put(string(b))
	if err != nil {
		return
	}
	t.mu.Lock()
	t.held[path] = copied{s, ref}
	t.mu.Unlock()
}

// look lists the files and how they look.
func (t *Tree) look(ctx context.Context, named []string) (map[string]stamp, bool) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	names, more, err := t.List(ctx, t.Root, lookAt)
	more = more || err != nil
	out := make(map[string]stamp, len(names))
	for i, name := range names {
		// the clock is asked at every 256th file only
		if i%256 == 0 && ctx.Err() != nil {
			more = true
			break
		}
		path := filepath.Join(t.Root, filepath.FromSlash(name))
		if s, ok := stampOf(path); ok {
			out[path] = s
		}
	}
	// Files that the command names are looked at even if they are ignored.
	for _, path := range named {
		if s, ok := stampOf(path); ok {
			out[path] = s
		}
	}
	return out, more
}

// After compares the files with Before. changes are sorted by path; uncaught says in words what the command changed and cannot be undone,
// empty for nothing.
func (l *Look) After(ctx context.Context) (changes []Change, uncaught string) {
	now, more := l.tree.look(ctx, l.named)
	var touched []string
	for path, was := range l.files {
		is, there := now[path]
		if !there && more {
			// The listing was cut short, so a file that is missing from it may exist.
			is, there = stampOf(path)
		}
		if !there || is != was {
			touched = append(touched, path)
		}
	}
	for path := range now {
		// With a first look that was cut short, a file that appears may have been there before.
		if _, known := l.files[path]; !known && !l.more {
			touched = append(touched, path)
		}
	}
	slices.Sort(touched)
	before := l.contents(ctx, touched)
	var lost []string
	total := 0
	for _, path := range touched {
		c := Change{Path: path}
		was, existed := l.files[path]
		is, exists := stampOf(path)
		c.Existed, c.Exists, c.OldMode, c.NewMode = existed, exists, was.mode, is.mode
		ok := true
		if existed {
			var text string
			text, ok = before[path]
			c.Before = []byte(text)
		}
		// what the command wrote cannot be kept either
		if exists && is.size > readMost {
			ok = false
		} else if exists {
			b, err := is.content(path)
			c.After, ok = b, ok && err == nil
		}
		// a file that was written with the same bytes has not changed
		same := existed == exists && string(c.Before) == string(c.After) && c.OldMode == c.NewMode
		// in bytes, before and after together
		total += len(c.Before) + len(c.After)
		switch {
		case ok && same:
		case !ok || len(changes) == keepMost || total > keepSize:
			lost = append(lost, path)
		default:
			changes = append(changes, c)
		}
	}
	return changes, l.words(lost, more)
}

// contents are what files held before.
func (l *Look) contents(ctx context.Context, paths []string) map[string]string {
	out := map[string]string{}
	want := map[string]int64{}
	t := l.tree
	for _, path := range paths {
		was, existed := l.files[path]
		if !existed {
			continue
		}
		t.mu.Lock()
		c, held := t.held[path]
		t.mu.Unlock()
		if held && c.stamp == was {
			if text, err := t.Blobs.Get(c.ref); err == nil {
				out[path] = text
			}
		} else if id, ok := l.git[path]; ok && was.size <= readMost {
			// Git's objects are read only for files that changed, all with one process.
			want[id] = was.size
		}
	}
	if len(want) > 0 {
		have := l.index.objects(ctx, want)
		for _, path := range paths {
			if text, ok := have[l.git[path]]; ok && int64(len(text)) == l.files[path].size {
				out[path] = text
			}
		}
	}
	return out
}

// words says which changes cannot be undone: the files of lost, and any others where a listing was cut short.
func (l *Look) words(lost []string, more bool) string {
	var parts []string
	// five names are enough for a sentence
	if n := len(lost); n > 0 {
		names := make([]string, 0, 5)
		for _, p := range lost[:min(n, 5)] {
			if rel, err := filepath.Rel(l.tree.Root, p); err == nil {
				p = rel
			}
			names = append(names, p)
		}
		s := strings.Join(names, ", ")
		if n > 5 {
			s += fmt.Sprintf(" and %d more", n-5)
		}
		parts = append(parts, "changed, but what they held before was not kept (too large, too many, or new to Pillion): "+s)
	}
	if l.more || more {
		parts = append(parts, "the project is too large to look at whole, so other files may have changed too")
	}
	return strings.Join(parts, "; ")
}
