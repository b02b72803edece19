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
)

// maxShared is the size in bytes up to which a clone copies an ignored folder (node_modules, a build folder). A larger one is shared
// read-only where the view can mount it, and is empty otherwise. The limit exists because the first call of a turn waits for the copy.
const maxShared = 256 << 20

// manifest lists what a clone was made of, to find out later what the draft has changed. A clone has no layer that records changes, and
// comparing it with the project would report the person's own edits as changes of the draft. It is stored in manifest.json.
type manifest struct {
	Entries map[string]stamp `json:"entries"`          // by path relative to the project, with slashes
	Shared  []string         `json:"shared,omitempty"` // ignored folders that were too large to copy
	// Refs are the repository's refs at that time, see readRefs. Stamps do not suffice: Git may rewrite a ref's file with the same commit.
	Refs map[string]string `json:"refs,omitempty"`
}

// copiedFrom returns the manifest that clone wrote. It is read once, as it has an entry for each file and every call in the draft needs it.
func (d *Draft) copiedFrom() (*manifest, error) {
	d.copied.Lock()
	defer d.copied.Unlock()
	if d.copied.m != nil {
		return d.copied.m, nil
	}
	b, err := os.ReadFile(d.path("manifest.json"))
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, err
	}
	d.copied.m = m
	return m, nil
}

// Lacks returns the folders of the project, relative to it and with slashes, that are empty for programs in the draft: those that Git ignores
// and that were too large to copy, where the view cannot mount them.
func (d *Draft) Lacks() ([]string, error) {
	if d.Head().View != Copy {
		return nil, nil
	}
	m, err := d.copiedFrom()
	if err != nil {
		return nil, err
	}
	return m.Shared, nil
}

// held lists, for each folder of the manifest, the names in it.
func (m *manifest) held() map[string][]string {
	out := map[string][]string{}
	for rel := range m.Entries {
		parent, name := split(rel)
		out[parent] = append(out[parent], name)
	}
	return out
}

// split is the folder of a path and the name in it; the folder of a name alone is "".
func split(rel string) (parent, name string) {
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		return rel[:i], rel[i+1:]
	}
	return "", rel
}

// stamp is a path of the clone as it was copied.
type stamp struct {
	Kind Kind   `json:"k"`
	Mode uint32 `json:"m"`
	Size int64  `json:"s,omitempty"`
	Time int64  `json:"t,omitempty"` // of modification, in nanoseconds, of the clone's file
	To   string `json:"l,omitempty"` // where a link leads
	ID   string `json:"i,omitempty"` // fileID: another file with the same time and size may have been moved here
}

// clone copies a project and writes the manifest to note. Blocks are shared where the file system supports it. Times of modification are
// kept, as build tools compare them. A file that vanishes meanwhile is left out; any other error ends the copy. The walk creates the
// folders and several goroutines copy the files, as most of the time is spent in the file system and not on the disk.
func clone(ctx context.Context, from, to string, ignored func(string, bool) bool, note string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := manifest{Entries: map[string]stamp{}}
	var mu sync.Mutex // guards m.Entries
	// put copies one path and enters its stamp. The first error cancels ctx, and with it the walk and the other copies.
	put := func(rel, path, at string, fi fs.FileInfo) {
		s, err := cloneEntry(path, at, fi)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !fi.IsDir():
			return // it was removed since the walk met it
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
			return nil // it was removed since the folder was listed
		}
		if err != nil {
			return err
		}
		// The empty folder is the mount point for the project's own.
		if rel != "." && fi.IsDir() && ignored != nil && ignored(path, true) && weight(path) > maxShared {
			m.Shared = append(m.Shared, rel)
			if err := os.Mkdir(at, 0o755); err != nil {
				return err
			}
			return fs.SkipDir
		}
		if fi.IsDir() { // not as a job: it must exist before anything is copied into it
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
	return replace(note, b)
}

// cloneEntry copies one path, not what is below it, and returns its stamp. Sockets, pipes and devices are left out, with a stamp of kind
// None. A folder is created with mode 0700; the caller sets its own mode when it is filled.
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
		// A link is compared by its target, so its time is not kept.
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

// weight is the size of the files below a folder in bytes. It stops counting beyond maxShared, as more would not change the decision.
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

// cloneUpper is the layer of a clone: the paths that differ from the manifest. openManifest computes it, so it describes the clone as it
// was at that moment.
type cloneUpper struct {
	dir   string
	names map[string][]string // by folder, "" the root: names that differ, and folders that contain such names
	gone  map[string][]string // by folder: names that were removed
	modes map[string]uint32   // as in overlayUpper
	// copied are the manifest's entries. held is manifest.held, computed at the first call.
	copied map[string]stamp
	held   func() map[string][]string
}

func (u cloneUpper) look(rel string) (entry, error) { return lookWith(u.path(rel), u.modes) }

func (u cloneUpper) path(rel string) string { return filepath.Join(u.dir, filepath.FromSlash(rel)) }

// began is the path as it was copied. The original bytes of a file are not kept: they are read from the project's file as long as that has
// the size and the time of modification of the copy; otherwise other is set. A link's target is in the manifest.
func (u cloneUpper) began(rel, at string) (entry, error) {
	s, ok := u.copied[rel]
	if !ok {
		return entry{}, nil
	}
	e := entry{kind: s.Kind, mode: s.Mode, size: s.Size, at: at}
	fi, err := os.Lstat(at)
	switch {
	case s.Kind == Folder:
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotDir(err):
		return entry{}, err
	case s.Kind == Link:
		e.link = s.To
	case err != nil:
		e.other = true
	default:
		e.other = !fi.Mode().IsRegular() || fi.Size() != s.Size || fi.ModTime().UnixNano() != s.Time
	}
	return e, nil
}

func (u cloneUpper) below(rel, _ string) ([]string, error) { return u.held()[rel], nil }

// children never reports opaque: what is removed from a clone is listed in gone name by name.
func (u cloneUpper) children(rel string) (names, gone []string, opaque bool, err error) {
	return u.names[rel], u.gone[rel], false, nil
}

// openManifest compares a clone with its manifest. modes are the original modes that readable returned: its chmod has changed the mode and
// the ctime of those paths, so only the original mode is compared for them.
func openManifest(dir string, m *manifest, modes map[string]uint32) (upper, error) {
	shared := map[string]bool{}
	for _, rel := range m.Shared {
		shared[rel] = true
	}
	u := cloneUpper{dir: dir, names: map[string][]string{}, gone: map[string][]string{}, modes: modes, copied: m.Entries, held: sync.OnceValue(m.held)}
	have := map[string]bool{}
	listed := map[string]bool{}
	// list enters a path and the folders above it into u.names, each once however much has changed below it.
	list := func(rel string) {
		for rel != "" && !listed[rel] {
			listed[rel] = true
			parent, name := split(rel)
			u.names[parent] = append(u.names[parent], name)
			rel = parent
		}
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		rel = filepath.ToSlash(rel)
		// A shared folder is a mount point in the clone and was read-only in the view, so the draft cannot have changed it.
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
	// What the manifest has and the walk did not meet was removed in the draft. Of a removed folder only the topmost is listed.
	for rel := range m.Entries {
		if have[rel] {
			continue
		}
		parent, name := split(rel)
		if parent != "" && !have[parent] {
			continue // its folder was removed, which is listed
		}
		u.gone[parent] = append(u.gone[parent], name)
		if parent != "" {
			list(parent)
		}
	}
	return u, err
}

// same reports whether a path of the clone is as it was copied. Size, times and inode stand for the content, as in Git's index: reading
// every file after each call would cost as much as the copy. A folder's time is not compared, as it changes with its entries.
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
