package draft

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
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
	// other means that the file at that path no longer has this entry's bytes: the project's file was written after the clone was made.
	other bool
	link  string // the target of a link in a clone's manifest; empty: read the link at the path in at
}

// upper is the draft's own layer: the paths that differ from the project. In an overlay a deletion is a whiteout in the layer;
// in a clone it is a path of the manifest that is missing.
type upper interface {
	// children are the names in a folder of the layer; gone are the deleted ones. opaque: the folder hides everything that the project has in it.
	children(rel string) (names, gone []string, opaque bool, err error)
	// path is where a path's own file would be in the layer.
	// Callers find out with look whether anything is there.
	path(rel string) string
	// look says what is at a path of the layer.
	// A missing path is an entry of kind None and no error; a link is not followed.
	look(rel string) (entry, error)
	// began is what the view showed at a path before anything ran in it; at is the project's own path. For an overlay that is the
	// project as it is at present, for a clone the project as it was when it was copied.
	began(rel, at string) (entry, error)
	// below are the names in a folder as began sees it.
	below(rel, at string) ([]string, error)
}

// overlayUpper reads the upper folder of an overlay, without mounting the view: the layer belongs to this user.
type overlayUpper struct {
	dir   string
	modes map[string]uint32 // original modes, by absolute path, of files and folders whose mode readable has changed
}

func (u overlayUpper) path(rel string) string { return filepath.Join(u.dir, filepath.FromSlash(rel)) }

func (u overlayUpper) look(rel string) (entry, error) { return lookWith(u.path(rel), u.modes) }

func (u overlayUpper) began(_, at string) (entry, error) { return look(at) }

func (u overlayUpper) below(_, at string) ([]string, error) {
	list, err := os.ReadDir(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the person has removed the folder since
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, err
}

// lookWith is look, but a path that readable has changed keeps its original mode: otherwise readable's chmod would show up as a
// change that the draft made.
func lookWith(path string, modes map[string]uint32) (entry, error) {
	e, err := look(path)
	if mode, ok := modes[path]; ok {
		e.mode = mode
	}
	return e, err
}

// readable gives the owner the right to read everything below a folder. A command in the draft may have taken that right away
// (chmod 000), and this process has no other right than the owner's. modes holds the original modes by absolute path; restore puts
// them back, and callers must run it when they have read the layer.
func readable(dir string) (modes map[string]uint32, restore func()) {
	modes = map[string]uint32{}
	var open func(path string)
	open = func(path string) {
		fi, err := os.Lstat(path)
		if err != nil || !fi.IsDir() && !fi.Mode().IsRegular() {
			return
		}
		// A folder needs all three rights: r to list it, x to enter it, w to move its entries.
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

// read calls f with the draft's layer. If that fails for lack of permission, read makes the layer readable, calls f a second time and
// restores the modes. So f may run twice and must not keep results of the first run. The caller holds d.mu.
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

// children separates whiteouts from the other names. Other character devices, which only root can make, stay among the names and
// are of kind Special.
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

// bytes are a file's content or a link's target; nil for other kinds. It reads the whole file into memory, so callers check size first.
func (e entry) bytes() ([]byte, error) {
	switch e.kind {
	case File:
		f, err := openPlain(e.at)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text := bytes.NewBuffer(make([]byte, 0, e.size+bytes.MinRead)) // as much as ReadFrom wants before it grows the buffer
		_, err = text.ReadFrom(f)
		return text.Bytes(), err
	case Link:
		if e.link != "" {
			return []byte(e.link), nil
		}
		to, err := os.Readlink(e.at)
		return []byte(to), err
	}
	return nil, nil
}

// layer opens the draft's own layer. modes are the original modes that readable returned; nil: none was changed. The caller holds
// d.mu, or d is not shared yet.
func (d *Draft) layer(modes map[string]uint32) (upper, error) {
	if d.head.View == Overlay {
		return overlayUpper{d.path("upper"), modes}, nil
	}
	m, err := d.copiedFrom()
	if err != nil {
		return nil, err
	}
	return openManifest(d.path("tree"), m, modes)
}

// inGit reports whether a path belongs to the data of a repository, a submodule's included. Such paths are never landed.
func inGit(rel string) bool {
	return rel == ".git" || strings.HasPrefix(rel, ".git/") || strings.Contains(rel, "/.git/") || strings.HasSuffix(rel, "/.git")
}

// Record stores a base, the project's present version, for every path that the draft has changed and that has no base yet. It runs
// after each call in the draft, so that the version the draft started from is kept before the person edits the file. since is the start
// of that call: a project file written after it may differ from what the draft has read, so its base is Unsure, without bytes, and
// landing shows both texts.
// skip reports folders that are landed as a whole; files in them get no bases.
func (d *Draft) Record(since time.Time, skip func(abs string, dir bool) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	// The bases found so far are saved even when the walk fails: the project's text may have changed by the next try.
	changed := false
	err := d.read(func(u upper) error {
		r := recording{d: d, u: u, since: since, skip: skip}
		err := r.folder("", true)
		changed = changed || r.changed
		return err
	})
	if changed {
		err = errors.Join(err, d.saveBases())
	}
	return err
}

// recording is one walk of Record. The caller holds d.mu.
type recording struct {
	d       *Draft
	u       upper
	since   time.Time
	skip    func(abs string, dir bool) bool
	changed bool
}

// lower is the project's own path for a path of the layer.
func (r *recording) lower(rel string) string {
	return filepath.Join(r.d.head.Project, filepath.FromSlash(rel))
}

// folder records the bases in a folder that both the draft and the project have. top is true for the project's root, where an opaque mark
// is ignored, as otherwise every file of the project would count as deleted.
func (r *recording) folder(rel string, top bool) error {
	names, gone, opaque, err := r.u.children(rel)
	if err != nil {
		return err
	}
	// An opaque folder was removed in the draft and created again. All that the project has in it is deleted, without a whiteout for each.
	if opaque && !top {
		if err := r.inside(rel); err != nil {
			return err
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
		b, noted := r.d.bases[at]
		if noted && (b.Kind != Folder || mine.kind != Folder) {
			continue // it has a base, and files in a new folder need none
		}
		// A folder that has its base keeps it, whatever the person has done to it since: they may have changed its mode, or removed it.
		if !noted {
			theirs, err := r.u.began(at, r.lower(at))
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
			// The overlay creates a folder in the layer for any change inside it, with the project's mode. That mode is the base: without
			// one, a mode that the person changes later would look like a change of the draft, and landing would undo it.
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

// below stores bases for everything that the project has at a path and below it, because the draft has removed or replaced all of it.
func (r *recording) below(rel string) error {
	if inGit(rel) {
		return nil
	}
	e, err := r.u.began(rel, r.lower(rel))
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
	return r.inside(rel)
}

// inside stores bases for everything that the project has in a folder whose whole content the draft has removed. It does so once per folder:
// files that the person adds to it later were never in the draft, so they must not count as removed by it.
func (r *recording) inside(rel string) error {
	b := r.d.bases[rel]
	if b.Emptied {
		return nil
	}
	names, err := r.u.below(rel, r.lower(rel))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.below(join(rel, name)); err != nil {
			return err
		}
	}
	b.Emptied = true
	r.d.bases[rel], r.changed = b, true
	return nil
}

// note stores the base of a path: the bytes of a file up to files.MaxText, the target of a link, else mode and size only. Callers
// skip paths that have a base, so what the draft started from remains it.
func (r *recording) note(rel string, e entry) error {
	b := Base{Kind: e.kind, Mode: e.mode, Size: e.size}
	switch {
	// The bytes that the draft began from are lost. Without a hash, landing merges nothing and proposes both texts.
	case e.other:
		b.Unsure = true
		r.d.bases[rel], r.changed = b, true
		return nil
	case e.kind == File && e.size > files.MaxText:
		b.Big = true
		if fi, err := os.Lstat(e.at); err == nil {
			b.ID = fingerprint(fi)
		}
	case e.kind == File || e.kind == Link:
		text, err := e.bytes()
		if errors.Is(err, fs.ErrPermission) {
			b.Big = true // the draft may have removed it, but its content is unknown
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
	// An equal time counts as later: whether the draft read the file before or after that write is unknown.
	if fi, err := os.Lstat(e.at); err == nil && e.kind != Folder && !r.since.IsZero() && !changedAt(fi).Before(r.since) {
		b.Unsure = true
		// With this text as the base, landing could undo what was written meanwhile, as if the draft had changed it.
		if e.kind == File {
			b.Hash = ""
		}
	}
	r.d.bases[rel] = b
	r.changed = true
	return nil
}

// keep stores bytes in base/ under their SHA-256, in hexadecimal, and returns it. The rename makes the file appear complete, so a file
// that exists under the hash is trusted without being read.
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

// LayIn puts an editor's unsaved buffer into the draft, as the text and as the base of a path. Without it the tools would work on the
// saved file, and landing would have to merge with what the person had typed. The file keeps its mode. path is absolute, with links
// resolved. Paths outside the project, in .git, or that already have a base are skipped without an error.
func (d *Draft) LayIn(path string, text []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	rel, err := filepath.Rel(d.head.Project, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil // files outside are not in the draft
	}
	rel = filepath.ToSlash(rel)
	// A path with a base was changed in the draft already. That text stays; the merge at landing combines it with the buffer.
	if _, ok := d.bases[rel]; ok || inGit(rel) {
		return nil
	}
	theirs, err := look(path)
	if err != nil || theirs.kind != File && theirs.kind != None {
		return err // err is nil for a folder or a link: only a regular file or a new one has a buffer to lay in
	}
	u, err := d.layer(nil)
	if err != nil {
		return err
	}
	at := u.path(rel)
	if err := mkdirsLike(filepath.Dir(at), filepath.Dir(path)); err != nil {
		return err
	}
	// A buffer that was never saved has no mode; 0644 is what an editor would create it with under the usual umask.
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
	return d.saveBases()
}

// mkdirsLike creates a folder of the layer and its parents, each with the mode of its counterpart in the project: an overlay shows
// the upper folder's mode, so another one would be a change. Chmod sets it, as the umask narrows the mode given to Mkdir.
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

// untouched reports whether the draft has no changes, of files or of Git's history. It reads no contents: any file in the layer counts as
// changed. If the layer cannot be read, it is false.
func (d *Draft) untouched() bool {
	if d.History() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	same := false
	err := d.read(func(u upper) error {
		var walk func(rel string) (bool, error)
		walk = func(rel string) (bool, error) {
			names, gone, opaque, err := u.children(rel)
			if err != nil || len(gone) > 0 || opaque && rel != "" {
				return false, err
			}
			for _, name := range names {
				at := join(rel, name)
				if inGit(at) {
					continue
				}
				mine, err := u.look(at)
				if err != nil || mine.kind != Folder {
					return false, err
				}
				// The overlay creates the folders above a file before it copies the file.
				theirs, err := u.began(at, filepath.Join(d.head.Project, filepath.FromSlash(at)))
				if err != nil || theirs.kind != Folder || theirs.mode != mine.mode {
					return false, err
				}
				if ok, err := walk(at); err != nil || !ok {
					return false, err
				}
			}
			return true, nil
		}
		var err error
		same, err = walk("")
		return err
	})
	return err == nil && same
}

// Change is a path at which the draft differs from its base.
type Change struct {
	Rel     string // below the project, with slashes; "." is the project's folder, whose mode was changed
	Base    Base
	Now     Kind
	Mode    uint32 // permission bits now
	Size    int64
	Ignored bool // the path is ignored by Git; this one change stands for everything below it
	Count   int  // only of a change that is accepted as a whole: the number of files and links

	// text is read by Changes while the layer is readable; After could not open the file once restore has put the modes back.
	text []byte // the content in the draft; nil when it is larger than files.MaxText
	at   string // absolute path in the layer
	base string // absolute path of the base's bytes; meaningless without Base.Hash
}

// Before is what the project had at the path. It is nil if no bytes are kept: nothing was there, it was a folder, or it was too large
// (Base.Big).
func (c *Change) Before() ([]byte, error) {
	if c.Base.Hash == "" {
		return nil, nil
	}
	return os.ReadFile(c.base)
}

// After is what the draft has at the path: a file's bytes, up to files.MaxText, or a link's target; else nil.
func (c *Change) After() []byte { return c.text }

// Changes lists what the draft changed, sorted by path, so a folder comes before what is in it. Record must have run: a path
// without a base counts as new. ignored reports what Git ignores (nil: nothing); an ignored folder, or a new ignored file, becomes one
// Change for the whole.
func (d *Draft) Changes(ignored func(abs string, dir bool) bool) ([]Change, error) {
	list, _, err := d.changes(ignored)
	return list, err
}

// changes is Changes, and also returns the repositories inside of the project, such as submodules, whose history was changed: their folders,
// relative to the project. The history of the project's own repository is compared by History.
func (d *Draft) changes(ignored func(abs string, dir bool) bool) (out []Change, repositories []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	err = d.read(func(u upper) error {
		w := changeWalk{d: d, u: u, ignored: ignored, seen: map[string]bool{}}
		if ignored == nil {
			w.ignored = func(string, bool) bool { return false }
		}
		if err := w.folder("", true, false); err != nil {
			return err
		}
		// The project's folder itself has no base, as it is always in the layer.
		if top, err := u.look(""); err == nil && d.head.Mode != 0 && top.kind == Folder && top.mode != d.head.Mode {
			w.out = append(w.out, Change{Rel: ".", Base: Base{Kind: Folder, Mode: d.head.Mode}, Now: Folder, Mode: top.mode, at: top.at})
		}
		// Below an opaque or replaced folder a deletion leaves no whiteout in the layer, so the walk does not meet it. Record has stored
		// a base for each such path; those that the draft does not show any more are the missing deletions.
		for rel, b := range d.bases {
			if !w.seen[rel] && b.Kind != None && !w.covered(rel) && w.state(rel).kind == None {
				if err := w.add(rel, b, entry{}); err != nil {
					return err
				}
			}
		}
		slices.SortFunc(w.out, func(a, b Change) int { return strings.Compare(a.Rel, b.Rel) })
		out, repositories = w.out, nil
		for _, rel := range w.repositories {
			had := readRefs(w.abs(rel))
			now := readRefs(u.path(rel))
			if d.head.View == Overlay {
				now = had.under(now)
			}
			if !maps.Equal(had.values(), now.values()) {
				parent, _ := split(rel)
				repositories = append(repositories, parent)
			}
		}
		return nil
	})
	return out, repositories, err
}

// changeWalk is one walk of Changes. The caller holds d.mu.
type changeWalk struct {
	d       *Draft
	u       upper
	ignored func(abs string, dir bool) bool
	// seen are the paths that add or bulk has looked at, changed or not. Changes skips them when it looks for further deletions.
	seen  map[string]bool
	whole []string // ignored paths, whose Change stands for everything below them
	// repositories are the .git folders in the layer, except that of the project.
	repositories []string
	out          []Change
}

// abs is the project's own path; the ignore rules are given in terms of it.
func (w *changeWalk) abs(rel string) string {
	return filepath.Join(w.d.head.Project, filepath.FromSlash(rel))
}

// covered reports whether the Change of an ignored folder includes a path, which is then not listed again.
func (w *changeWalk) covered(rel string) bool {
	return slices.ContainsFunc(w.whole, func(top string) bool { return rel == top || strings.HasPrefix(rel, top+"/") })
}

// state is what the draft shows at a path: the entry of its own layer, else the project's. It descends one path element at a time, as a
// whiteout, an opaque folder or a file at any parent hides what the project has below.
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
		switch {
		case mine.kind != None && (at == rel || mine.kind != Folder):
			if at != rel {
				return entry{} // a parent of the path is a file in the draft
			}
			return mine
		// From here down the layer has nothing, and no parent hides the project: its own entry shows.
		case mine.kind == None:
			e, _ := look(w.abs(rel))
			return e
		}
	}
	return entry{}
}

// folder adds the changes in a folder of the layer. isNew: the project has no folder there, so every folder in it is a change.
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
			if name == ".git" && rel != "" {
				w.repositories = append(w.repositories, at)
			}
			continue
		}
		e, err := w.u.look(at)
		if err != nil {
			return err
		}
		base, noted := w.d.bases[at]
		// The folder replaced a file or link of the project, or is new itself: everything in it is new.
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
		// An ignore rule applies to new files only: a change of a file that the project has is always shown.
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

// bulk adds a path and everything below it as one Change, as a person cannot review the ten thousand files of a node_modules folder. Count
// and Size are shown in the approval request.
func (w *changeWalk) bulk(rel string, base Base, e entry) error {
	c := Change{Rel: rel, Base: base, Now: e.kind, Mode: e.mode, at: e.at, Ignored: true}
	err := c.count()
	w.whole, w.out = append(w.whole, rel), append(w.out, c)
	w.seen[rel] = true
	return err
}

// count sets Count and Size to what the draft has at the path and below.
func (c *Change) count() error {
	c.Count, c.Size = 0, 0
	return filepath.WalkDir(c.at, func(_ string, x fs.DirEntry, err error) error {
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
}

// add adds a change, unless content and mode equal the base. An overlay copies a file into its layer at the first open for writing, so
// a file's presence there does not prove a change; it may also have been changed back. The mode of a link has no meaning.
func (w *changeWalk) add(rel string, base Base, e entry) error {
	w.seen[rel] = true
	c := Change{Rel: rel, Base: base, Now: e.kind, Mode: e.mode, Size: e.size, at: e.at, base: w.d.path("base", base.Hash),
		Ignored: base.Kind == Folder && e.kind == None && w.ignored(w.abs(rel), true)}
	if e.kind == File && e.size <= files.MaxText || e.kind == Link { // see Change.text
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
