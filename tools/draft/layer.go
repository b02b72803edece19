package draft

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/files"
)

// entry is what the draft has at a path.
type entry struct {
	kind Kind
	mode uint32 // permission bits
	size int64
	at   string // where its bytes are; empty: nothing is there
}

// upper is the draft's own layer: what the project does not have, or has otherwise. One of an overlay reads whiteouts,
// one of a clone compares with the manifest.
type upper interface {
	// children are the names in a folder of the layer, the whiteouts apart. opaque: nothing of the project shows in it.
	children(rel string) (names, gone []string, opaque bool, err error)
	// path is where a path's own file would be in the layer.
	// Callers find out with look whether anything is there.
	path(rel string) string
	// look says what is at a path of the layer.
	// A missing path is an entry of kind None and no error; a link is not followed.
	look(rel string) (entry, error)
}

// overlayUpper reads the upper folder of an overlay. It is read from outside: the layer's owner is this user.
type overlayUpper struct {
	dir   string
	modes map[string]uint32 // of paths that were made readable for this look at the layer; by where they are
}

func (u overlayUpper) path(rel string) string { return filepath.Join(u.dir, filepath.FromSlash(rel)) }

func (u overlayUpper) look(rel string) (entry, error) { return lookWith(u.path(rel), u.modes) }

// lookWith is look with the modes that readable has changed for a moment: without them a chmod of ours would be a change of the draft.
func lookWith(path string, modes map[string]uint32) (entry, error) {
	e, err := look(path)
	if mode, ok := modes[path]; ok {
		e.mode = mode
	}
	return e, err
}

// readable makes all below a folder readable for its owner: a command may have taken the right away, and this process, which
// must see what was done, has no other right than the owner's. restore puts the modes back; modes has the original ones by path.
func readable(dir string) (modes map[string]uint32, restore func()) {
	modes = map[string]uint32{}
	var open func(path string)
	open = func(path string) {
		fi, err := os.Lstat(path)
		if err != nil || !fi.IsDir() && !fi.Mode().IsRegular() {
			return
		}
		// A folder needs all three: to be listed, to be entered, and for what is in it to be moved.
		need := fs.FileMode(0o400)
		if fi.IsDir() {
			need = 0o700
		}
		if mode := fi.Mode().Perm(); mode&need != need && os.Chmod(path, mode|need) == nil {
			modes[path] = uint32(mode)
		}
		if !fi.IsDir() {
			return
		}
		list, err := os.ReadDir(path)
		if err != nil {
			return
		}
		for _, e := range list {
			open(filepath.Join(path, e.Name()))
		}
	}
	open(dir)
	return modes, func() {
		for path, mode := range modes {
			_ = os.Chmod(path, fs.FileMode(mode))
		}
	}
}

// read calls f with the draft's layer. Where the layer cannot be read by its owner, it is made readable meanwhile and f is called
// once more, so f must begin from nothing each time. d.mu is held.
func (d *Draft) read(f func(upper) error) error {
	u, err := d.layer(nil)
	if err == nil {
		err = f(u)
	}
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	top := d.path("upper")
	if d.head.View != Overlay {
		top = d.path("tree")
	}
	modes, restore := readable(top)
	defer restore()
	if u, err = d.layer(modes); err != nil {
		return err
	}
	return f(u)
}

// children tells whiteouts from the rest. Other character devices (made by root in the draft) stay names, of kind Special.
func (u overlayUpper) children(rel string) (names, gone []string, isOpaque bool, err error) {
	list, err := os.ReadDir(u.path(rel))
	if err != nil {
		return nil, nil, false, err
	}
	for _, e := range list {
		if e.Type()&fs.ModeCharDevice != 0 {
			if fi, err := e.Info(); err == nil && whiteout(fi) {
				gone = append(gone, e.Name())
				continue
			}
		}
		names = append(names, e.Name())
	}
	return names, gone, opaque(u.path(rel)), nil
}

// look says what is at a path of a file system. A link is not followed. A path below a file is as absent as a missing one
// (ENOTDIR): the draft may have a folder where the project has a file.
func look(path string) (entry, error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, err
	}
	e := entry{mode: uint32(fi.Mode().Perm()), size: fi.Size(), at: path, kind: Special}
	switch {
	case fi.Mode().IsRegular():
		e.kind = File
	case fi.Mode()&fs.ModeSymlink != 0:
		e.kind = Link
	case fi.IsDir():
		e.kind = Folder
	}
	return e, nil
}

// bytes are a file's content, or where a link leads; nil for other kinds. The whole file is in memory then, so callers check size first.
func (e entry) bytes() ([]byte, error) {
	switch e.kind {
	case File:
		f, err := openPlain(e.at)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(f)
	case Link:
		to, err := os.Readlink(e.at)
		return []byte(to), err
	}
	return nil, nil
}

// layer is the draft's own layer. modes are those that readable has changed; nil: none. d.mu is held, or d is not shared yet.
func (d *Draft) layer(modes map[string]uint32) (upper, error) {
	if d.head.View == Overlay {
		return overlayUpper{d.path("upper"), modes}, nil
	}
	return openManifest(d.path("tree"), d.path("manifest.json"), modes)
}

// inGit reports paths that belong to a repository's own data, a submodule's too. They are never landed.
func inGit(rel string) bool {
	return rel == ".git" || strings.HasPrefix(rel, ".git/") || strings.Contains(rel, "/.git/") || strings.HasSuffix(rel, "/.git")
}

// Record notes what the project has at every path that the draft has changed and that is not noted yet. It is called after
// each call that ran in the draft, so that the text the draft started from is kept before the person goes on typing. since
// is when that call began: a file that was written after it may not be the one that the draft has read, and is Unsure.
// skip names folders whose content is taken or left as a whole; nothing of them is kept.
func (d *Draft) Record(since time.Time, skip func(abs string, dir bool) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	// What was noted is kept even when the walk fails: the project's text may be another one at the next try.
	changed := false
	err := d.read(func(u upper) error {
		r := recording{d: d, u: u, since: since, skip: skip}
		err := r.folder("", true)
		changed = changed || r.changed
		return err
	})
	if changed {
		err = errors.Join(err, d.saveLocked())
	}
	return err
}

// recording is one walk of Record. d.mu is held.
type recording struct {
	d       *Draft
	u       upper
	since   time.Time
	skip    func(abs string, dir bool) bool
	changed bool
}

func (r *recording) lower(rel string) string {
	return filepath.Join(r.d.head.Project, filepath.FromSlash(rel))
}

// folder looks at a folder that both the draft and the project have. top is the root, whose mark is ignored: nothing hides all of a project.
func (r *recording) folder(rel string, top bool) error {
	names, gone, opaque, err := r.u.children(rel)
	if err != nil {
		return err
	}
	// The draft removed the folder and made it anew: all that the project has in it is gone, though no whiteout says so.
	if opaque && !top {
		list, err := os.ReadDir(r.lower(rel))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			if err := r.below(join(rel, e.Name())); err != nil {
				return err
			}
		}
	}
	for _, name := range gone {
		if err := r.below(join(rel, name)); err != nil {
			return err
		}
	}
	for _, name := range names {
		at := join(rel, name)
		if inGit(at) {
			continue
		}
		mine, err := r.u.look(at)
		if err != nil {
			return err
		}
		if b, ok := r.d.bases[at]; ok && (b.Kind != Folder || mine.kind != Folder) {
			continue // noted, and what is new in a new folder needs no note
		}
		theirs, err := look(r.lower(at))
		if err != nil {
			return err
		}
		if mine.kind != Folder || theirs.kind != Folder {
			if theirs.kind == Folder {
				err = r.below(at)
			} else {
				err = r.note(at, theirs)
			}
			if err != nil {
				return err
			}
			continue
		}
		// A folder that only became part of the layer because of what is in it has the project's mode, and is no change.
		if mine.mode != theirs.mode {
			if err := r.note(at, theirs); err != nil {
				return err
			}
		}
		// An ignored folder is landed as a whole, so it needs no base for each file: node_modules has tens of thousands.
		if r.skip != nil && r.skip(r.lower(at), true) {
			continue
		}
		if err := r.folder(at, false); err != nil {
			return err
		}
	}
	return nil
}

// below notes all that the project has at a path and below it: the draft has removed or replaced the whole.
func (r *recording) below(rel string) error {
	if inGit(rel) {
		return nil
	}
	e, err := look(r.lower(rel))
	if err != nil || e.kind == None {
		return err
	}
	if _, ok := r.d.bases[rel]; !ok {
		if err := r.note(rel, e); err != nil {
			return err
		}
	}
	if e.kind != Folder || r.skip != nil && r.skip(r.lower(rel), true) {
		return nil
	}
	list, err := os.ReadDir(e.at)
	if err != nil {
		return err
	}
	for _, x := range list {
		if err := r.below(join(rel, x.Name())); err != nil {
			return err
		}
	}
	return nil
}

// note keeps what the project has at a path: bytes of files up to files.MaxText and where links lead, else mode and size only.
// It is called once for each path, so the first text that the draft started from stays the base.
func (r *recording) note(rel string, e entry) error {
	b := Base{Kind: e.kind, Mode: e.mode, Size: e.size}
	switch {
	case e.kind == File && e.size > files.MaxText:
		b.Big = true
	case e.kind == File || e.kind == Link:
		text, err := e.bytes()
		if errors.Is(err, fs.ErrPermission) {
			b.Big = true // it may be removed, but nobody can say what it held
			break
		}
		if err != nil {
			return err
		}
		if b.Hash, err = r.d.keep(text); err != nil {
			return err
		}
		b.Size = int64(len(text))
	}
	// The same time counts as after: such a file may have been read either way.
	if fi, err := os.Lstat(e.at); err == nil && e.kind != Folder && !r.since.IsZero() {
		b.Unsure = !fi.ModTime().Before(r.since)
	}
	r.d.bases[rel] = b
	r.changed = true
	return nil
}

// keep stores bytes under their hash, in hexadecimal. The rename makes them appear whole, so a file that exists is never compared.
func (d *Draft) keep(text []byte) (string, error) {
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	path := d.path("base", hash)
	if _, err := os.Lstat(path); err == nil {
		return hash, nil
	}
	if err := os.MkdirAll(d.path("base"), 0o700); err != nil {
		return "", err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return "", err
	}
	return hash, os.Rename(tmp, path)
}

// LayIn puts a text into the draft as the base of a path: an editor's unsaved buffer. Without it the tools would work on the saved
// file, and the landing would have to merge with what the person had typed. The file keeps its mode. path is absolute, links resolved.
func (d *Draft) LayIn(path string, text []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	rel, err := filepath.Rel(d.head.Project, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil // files outside are not in the draft
	}
	rel = filepath.ToSlash(rel)
	// The draft's text is newer than the buffer, and the merge at the end brings the two together.
	if _, ok := d.bases[rel]; ok || inGit(rel) {
		return nil // the draft has changed it already: its own text counts
	}
	theirs, err := look(path)
	if err != nil || theirs.kind != File && theirs.kind != None {
		return err // a link's target is laid in under its own name, where it is one
	}
	u, err := d.layer(nil)
	if err != nil {
		return err
	}
	at := u.path(rel)
	if err := mkdirsLike(filepath.Dir(at), filepath.Dir(path)); err != nil {
		return err
	}
	// A buffer that was never saved has no mode; 0644 is what an editor gives it with the usual umask.
	mode := fs.FileMode(theirs.mode)
	if theirs.kind == None {
		mode = 0o644
	}
	if err := os.WriteFile(at, text, mode); err != nil {
		return err
	}
	if err := os.Chmod(at, mode); err != nil {
		return err
	}
	hash, err := d.keep(text)
	if err != nil {
		return err
	}
	d.bases[rel] = Base{Kind: File, Mode: uint32(mode), Hash: hash, Size: int64(len(text)), Buffer: true}
	return d.saveLocked()
}

// mkdirsLike makes a folder of the layer and those above it, each with the mode that its counterpart in the project has: in an
// overlay the upper folder's mode is the one that shows.
func mkdirsLike(dir, like string) error {
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	if err := mkdirsLike(filepath.Dir(dir), filepath.Dir(like)); err != nil {
		return err
	}
	mode := fs.FileMode(0o755)
	if fi, err := os.Stat(like); err == nil {
		mode = fi.Mode().Perm()
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// Change is a path that the draft has otherwise than the project had.
type Change struct {
	Rel     string // below the project, with slashes
	Base    Base
	Now     Kind
	Mode    uint32 // permission bits now
	Size    int64
	Ignored bool // it stands for all below it, which git would not show
	Count   int  // Ignored: how many files and links

	// text is read by Changes, while the layer is readable; After must not open files later, when the modes are back.
	text []byte // what is there now, unless it is too large
	at   string // where it is
	base string // where the bytes of the base are
}

// Before is what the project had; nil where no bytes are kept: nothing was there, a folder, or more than Record keeps (Base.Big).
func (c *Change) Before() ([]byte, error) {
	if c.Base.Hash == "" {
		return nil, nil
	}
	return os.ReadFile(c.base)
}

// After is what the draft has: a file's bytes, up to files.MaxText, or where a link leads. It is nil for none.
func (c *Change) After() []byte { return c.text }

// Changes lists what the draft changed, in the order of the paths, a folder before what is in it. Record must have run before:
// a path without a note counts as new. ignored says what Git would not show; where that is a folder, or is new, the change stands
// for the whole. nil: nothing is ignored.
func (d *Draft) Changes(ignored func(abs string, dir bool) bool) ([]Change, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Change
	err := d.read(func(u upper) error {
		w := changeWalk{d: d, u: u, ignored: ignored, seen: map[string]bool{}}
		if ignored == nil {
			w.ignored = func(string, bool) bool { return false }
		}
		if err := w.folder("", true, false); err != nil {
			return err
		}
		// What was there and is not any more leaves no name in the layer below an opaque or new folder.
		// bases has every path that was ever noted, so the deletions that no name in the layer tells are found in it.
		for rel, b := range d.bases {
			if !w.seen[rel] && b.Kind != None && !w.covered(rel) && w.state(rel).kind == None {
				if err := w.add(rel, b, entry{}); err != nil {
					return err
				}
			}
		}
		slices.SortFunc(w.out, func(a, b Change) int { return strings.Compare(a.Rel, b.Rel) })
		out = w.out
		return nil
	})
	return out, err
}

// changeWalk is one walk of Changes. d.mu is held.
type changeWalk struct {
	d       *Draft
	u       upper
	ignored func(abs string, dir bool) bool
	// seen are the paths that the walk has come to, changed or not.
	seen  map[string]bool
	whole []string // ignored paths that stand for all below them
	out   []Change
}

// abs is the project's own path, which ignore rules are about.
func (w *changeWalk) abs(rel string) string {
	return filepath.Join(w.d.head.Project, filepath.FromSlash(rel))
}

// covered reports whether an ignored folder above stands for a path, so that it is not listed again.
func (w *changeWalk) covered(rel string) bool {
	return slices.ContainsFunc(w.whole, func(top string) bool { return rel == top || strings.HasPrefix(rel, top+"/") })
}

// state is what the draft shows at a path: its own layer first, then the project. It goes down part by part, as a whiteout, an opaque
// folder or a file anywhere above decides what is below.
func (w *changeWalk) state(rel string) entry {
	at := ""
	for part := range strings.SplitSeq(rel, "/") {
		_, gone, opaque, err := w.u.children(at)
		if err == nil && slices.Contains(gone, part) {
			return entry{}
		}
		mine, _ := w.u.look(join(at, part))
		if opaque && mine.kind == None {
			return entry{}
		}
		at = join(at, part)
		// A path that only the project shows is read there; the parts above it were checked on the way down.
		switch {
		case mine.kind != None && (at == rel || mine.kind != Folder):
			if at != rel {
				return entry{} // a file where the path has a folder
			}
			return mine
		case mine.kind == None:
			e, _ := look(w.abs(rel))
			return e
		}
	}
	return entry{}
}

// folder lists what changed in a folder of the layer. isNew: the project has none there, so every folder in it is a change.
func (w *changeWalk) folder(rel string, top, isNew bool) error {
	names, gone, _, err := w.u.children(rel)
	if err != nil {
		return err
	}
	for _, name := range gone {
		at := join(rel, name)
		if b, ok := w.d.bases[at]; ok && !inGit(at) {
			if err := w.add(at, b, entry{}); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		at := join(rel, name)
		if inGit(at) {
			continue
		}
		e, err := w.u.look(at)
		if err != nil {
			return err
		}
		base, noted := w.d.bases[at]
		// A noted base of another kind was replaced by the folder, so all in it is new.
		fresh := isNew || noted && base.Kind != Folder
		if e.kind == Folder {
			if w.ignored(w.abs(at), true) {
				if err := w.bulk(at, base, e); err != nil {
					return err
				}
				continue
			}
			if fresh || noted && base.Mode != e.mode {
				if err := w.add(at, base, e); err != nil {
					return err
				}
			}
			if err := w.folder(at, false, fresh); err != nil {
				return err
			}
			continue
		}
		// Only what is new can be ignored: a file that the project has, tracked or not, is shown as a change.
		if base.Kind == None && w.ignored(w.abs(at), false) {
			if err := w.bulk(at, base, e); err != nil {
				return err
			}
			continue
		}
		if err := w.add(at, base, e); err != nil {
			return err
		}
	}
	return nil
}

// bulk adds a path with all below it as one: node_modules as ten thousand lines is nothing that a person can review. Count and
// Size are for the question about it.
func (w *changeWalk) bulk(rel string, base Base, e entry) error {
	c := Change{Rel: rel, Base: base, Now: e.kind, Mode: e.mode, at: e.at, Ignored: true}
	err := filepath.WalkDir(e.at, func(_ string, x fs.DirEntry, err error) error {
		if err != nil || x.IsDir() {
			return err
		}
		if c.Count++; x.Type().IsRegular() {
			if fi, err := x.Info(); err == nil {
				c.Size += fi.Size()
			}
		}
		return nil
	})
	w.whole, w.out = append(w.whole, rel), append(w.out, c)
	w.seen[rel] = true
	return err
}

// add adds a change, unless the draft has what the project had: a file that was only opened for writing, or put back. An overlay
// copies a file up at the first open for writing, so the presence in the layer proves nothing. Modes of links mean nothing.
func (w *changeWalk) add(rel string, base Base, e entry) error {
	w.seen[rel] = true
	c := Change{Rel: rel, Base: base, Now: e.kind, Mode: e.mode, Size: e.size, at: e.at, base: w.d.path("base", base.Hash),
		Ignored: base.Kind == Folder && e.kind == None && w.ignored(w.abs(rel), true)}
	if e.kind == File && e.size <= files.MaxText || e.kind == Link { // read while it can be
		var err error
		if c.text, err = e.bytes(); err != nil {
			return err
		}
	}
	if base.Kind == e.kind && base.Mode == e.mode || base.Kind == e.kind && e.kind == Link {
		if e.kind != File && e.kind != Link {
			return nil
		}
		if sum := sha256.Sum256(c.text); !base.Big && hex.EncodeToString(sum[:]) == base.Hash {
			return nil
		}
	}
	if w.out = append(w.out, c); c.Ignored {
		w.whole = append(w.whole, rel)
	}
	return nil
}

// join joins slash paths of the layer; "" is its root.
func join(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}
