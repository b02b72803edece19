package draft

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/whole"
)

// maxShared is how many bytes of one ignored folder (node_modules, a build folder) a clone copies; a larger one is shared
// read-only where the view can mount it, and left out otherwise. The first call of a turn waits for the copy.
const maxShared = 256 << 20

// manifest says what a clone was made of, so that what the draft changed can be told later. A clone has no layer of its own: the
// kernel notes nothing, and comparing with the project would take the person's own edits for changes of the draft.
type manifest struct {
	Entries map[string]stamp `json:"entries"`
	Shared  []string         `json:"shared,omitempty"` // ignored folders that were too large to copy
	// Refs are those of the project's repository then, see readRefs. A stamp would take a ref that was written anew for another one.
	Refs map[string]string `json:"refs,omitempty"`
}

// readManifest reads what clone wrote.
func readManifest(note string) (m manifest, err error) {
	b, err := os.ReadFile(note)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	return m, err
}

// stamp is a path of the clone as it was copied.
type stamp struct {
	Kind Kind   `json:"k"`
	Mode uint32 `json:"m"`
	Size int64  `json:"s,omitempty"`
	Time int64  `json:"t,omitempty"` // of modification, in nanoseconds, of the clone's file
	To   string `json:"l,omitempty"` // where a link leads
	ID   string `json:"i,omitempty"` // inode and time of its last change: another file may be moved here with the same time and size
}

// clone copies a project and writes the manifest to note. Blocks are shared where the file system can. Times are kept, as build
// tools compare them. A file that vanishes meanwhile is left out; any other error ends the copy. The walk makes the folders, and several
// goroutines copy the files: most of the time is the file system's, not the disk's.
func clone(ctx context.Context, from, to string, ignored func(string, bool) bool, note string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := manifest{Entries: map[string]stamp{}}
	var mu sync.Mutex // guards m.Entries
	// put copies one path. The error of the first that fails ends all.
	put := func(rel, path, at string, fi fs.FileInfo) {
		s, err := cloneEntry(path, at, fi)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !fi.IsDir():
			return // it went meanwhile
		case err != nil:
			cancel(fmt.Errorf("copying %s: %w", path, err))
			return
		case rel != "." && s.Kind != None:
			mu.Lock()
			m.Entries[rel] = s
			mu.Unlock()
		}
	}
	type job struct {
		rel, path, at string
		fi            fs.FileInfo
	}
	jobs := make(chan job, 256)
	var copying sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		copying.Go(func() {
			for j := range jobs {
				if ctx.Err() == nil {
					put(j.rel, j.path, j.at, j.fi)
				}
			}
		})
	}
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		at := filepath.Join(to, rel)
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		if err != nil {
			return err
		}
		// The empty folder stays as the place at which the project's own can be mounted.
		if rel != "." && fi.IsDir() && ignored != nil && ignored(path, true) && weight(path) > maxShared {
			m.Shared = append(m.Shared, rel)
			if err := os.Mkdir(at, 0o755); err != nil {
				return err
			}
			return fs.SkipDir
		}
		if fi.IsDir() { // now, as what is in it is copied next
			put(rel, path, at, fi)
			return nil
		}
		jobs <- job{rel, path, at, fi}
		return nil
	})
	close(jobs)
	copying.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	// Folders get their modes and times last: a read-only one could not be filled, and filling it changes its time.
	for rel, s := range m.Entries {
		if s.Kind == Folder {
			at := filepath.Join(to, filepath.FromSlash(rel))
			if err := os.Chmod(at, fs.FileMode(s.Mode)); err != nil {
				return err
			}
			_ = os.Chtimes(at, time.Time{}, time.Unix(0, s.Time))
		}
	}
	m.Refs = readRefs(filepath.Join(to, ".git")).values()
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return whole.Write(note, b, 0o600)
}

// cloneEntry copies one path and says what it was. Sockets, pipes and devices are left out, with a stamp of kind None. A folder is
// made writable for its owner only; the caller gives it its mode when it is full.
func cloneEntry(from, to string, fi fs.FileInfo) (stamp, error) {
	s := stamp{Mode: uint32(fi.Mode().Perm()), Time: fi.ModTime().UnixNano()}
	switch {
	case fi.IsDir():
		s.Kind = Folder
		return s, os.MkdirAll(to, 0o700)
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return s, err
		}
		// The time of a link says nothing: what counts is where it leads.
		s.Kind, s.To, s.Time = Link, target, 0
		return s, os.Symlink(target, to)
	case !fi.Mode().IsRegular():
		return stamp{}, nil
	}
	var err error
	s.Kind = File
	s.Size, s.ID, err = copyFile(from, to, fi)
	return s, err
}

// weight is the size of a folder in bytes; the count ends once it is beyond maxShared, as more would not change the answer.
func weight(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if fi, err := e.Info(); err == nil {
				n += fi.Size()
			}
		}
		if n > maxShared {
			return fs.SkipAll
		}
		return nil
	})
	return n
}

// cloneUpper is the layer of a clone: the paths that are not as they were copied. It is computed at once by openManifest, so it shows
// the clone as it was at that moment.
type cloneUpper struct {
	dir   string
	names map[string][]string // by folder: what is other, and folders that hold such
	gone  map[string][]string
	modes map[string]uint32 // as in overlayUpper
}

func (u cloneUpper) look(rel string) (entry, error) { return lookWith(u.path(rel), u.modes) }

func (u cloneUpper) path(rel string) string { return filepath.Join(u.dir, filepath.FromSlash(rel)) }

func (u cloneUpper) children(rel string) (names, gone []string, opaque bool, err error) {
	return u.names[rel], u.gone[rel], false, nil
}

// openManifest compares a clone with what it was made of. modes are those of readable: such a path has another mode, and another time
// of its last change, because of us, so its original mode alone decides.
func openManifest(dir, note string, modes map[string]uint32) (upper, error) {
	m, err := readManifest(note)
	if err != nil {
		return nil, err
	}
	shared := map[string]bool{}
	for _, rel := range m.Shared {
		shared[rel] = true
	}
	u := cloneUpper{dir: dir, names: map[string][]string{}, gone: map[string][]string{}, modes: modes}
	have := map[string]bool{}
	listed := map[string]bool{}
	// A folder is listed once however much has changed in it; u.names must hold no name twice.
	list := func(rel string) { // with the folders above it
		for rel != "" && !listed[rel] {
			listed[rel] = true
			parent, name := "", rel
			if i := strings.LastIndexByte(rel, '/'); i >= 0 {
				parent, name = rel[:i], rel[i+1:]
			}
			u.names[parent] = append(u.names[parent], name)
			rel = parent
		}
	}
	// A folder shared read-only is the project's own: nothing below it can have changed.
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		rel = filepath.ToSlash(rel)
		if shared[rel] {
			have[rel] = true
			return fs.SkipDir
		}
		have[rel] = true
		s, ok := m.Entries[rel]
		mode, opened := modes[path]
		if !ok || opened && mode != s.Mode || !opened && !s.same(path, e) {
			list(rel)
		}
		return nil
	})
	// What the manifest has and the walk did not meet was removed in the draft; it is listed under the nearest folder that is left.
	for rel := range m.Entries {
		if have[rel] {
			continue
		}
		parent, name := "", rel
		if i := strings.LastIndexByte(rel, '/'); i >= 0 {
			parent, name = rel[:i], rel[i+1:]
		}
		if parent != "" && !have[parent] {
			continue // it went with its folder
		}
		u.gone[parent] = append(u.gone[parent], name)
		if parent != "" {
			list(parent)
		}
	}
	return u, err
}

// same reports that a path of the clone is as it was copied. Size, times and inode stand for the bytes, as in Git's index: reading
// every file after each call would cost as much as the copy did. A folder's time is left out, as it changes with what is in it.
func (s stamp) same(path string, e fs.DirEntry) bool {
	fi, err := e.Info()
	if err != nil {
		return false
	}
	now := stamp{Mode: uint32(fi.Mode().Perm()), Time: fi.ModTime().UnixNano()}
	switch {
	case fi.IsDir():
		return s.Kind == Folder && s.Mode == now.Mode
	case fi.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		return err == nil && s.Kind == Link && s.To == to
	case fi.Mode().IsRegular():
		return s.Kind == File && s.Mode == now.Mode && s.Size == fi.Size() && s.Time == now.Time && s.ID == fileID(fi)
	}
	return false
}
