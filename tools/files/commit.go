package files

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OpKind says what an Op does.
type OpKind string

// What can be done to a path.
const (
	Write  OpKind = "write"  // Data becomes the file's bytes; a symbolic link stays and its target is written
	Remove OpKind = "remove" // the name goes; of a symbolic link only the link
	Move   OpKind = "move"   // the name becomes NewPath; Data, when not nil, its new bytes
	Link   OpKind = "link"   // the name becomes a symbolic link to the path in Data, whatever is there
)

// Op is one step of a commit. Paths are absolute; Commit resolves their symbolic links. Ops of one commit see each other's effects
// in their order, so "remove a, move b to a" works.
type Op struct {
	Kind    OpKind
	Path    string
	NewPath string // Move
	// Real and NewReal are where Path and NewPath led when the change was decided, see Real; empty: wherever they lead now. Commit fails
	// with a *BaseError where they lead elsewhere by now.
	Real, NewReal string
	Data          []byte      // Write, Move, Link; not changed, and not kept after Commit
	Base          string      // Hash of the bytes that must be there now; "" for a Write: nothing may be there
	Mode          fs.FileMode // permission bits to set; 0: as the file has, or as the umask says for new ones
}

// Errors of Commit besides *BaseError and the system's own. In every case the files are as they were.
var (
	ErrReadOnly = errors.New("is read-only")
	ErrExists   = errors.New("already exists")
)

// BaseError is returned when a file is not what the change was made from, or was changed during the commit. errors.Is(err,
// ErrStale) holds. The caller rebases the change on what is there, or has the file read again.
type BaseError struct{ Path string }

// Error says that nothing was written, since the whole commit is rolled back.
func (e *BaseError) Error() string {
	return fmt.Sprintf("%s changed on the disk while the change was being prepared; nothing was written", e.Path)
}

// Is makes callers that test for ErrStale find this error too: for them it makes no difference when the file changed.
func (e *BaseError) Is(t error) bool { return t == ErrStale }

// Commit carries out all ops or none: bytes go to temporary files beside their targets, are flushed, and then take the targets'
// names. Mode, owner and extended attributes stay; a file with hard links, or one whose folder or owner does not allow a rename, is
// written in place. With a journal, Recover repairs what a crash (kill -9, power failure) between the first and the last rename
// leaves; j may be nil.
//
// Processes that share a DirJournal commit one after the other. Otherwise one could rename over what another has just written,
// after comparing the bases.
func Commit(ctx context.Context, ops []Op, j Journal) error {
	// Before the bases are compared, or another process could write between comparison and rename.
	if s, ok := j.(sharedJournal); ok {
		unlock, err := s.writing(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	p := startPlan()
	defer p.dirs.Close()
	if err := p.prepare(ops); err != nil {
		return err
	}
	if len(p.Steps) == 0 {
		return nil
	}
	t := &transaction{plan: p, journal: j}
	return t.run(ctx)
}

// want is what a path is to be after all ops of the commit.
type want struct {
	path   string      // the place of the name: links of its folder are resolved
	old    *present    // what is there before the commit; nil: nothing
	data   []byte      // the bytes, where exists is set; they may be empty
	from   *present    // what has the bytes, where they are not in data: a file that is moved or stays
	exists bool        // false: nothing is to be there
	link   bool        // data is where a symbolic link leads
	mode   fs.FileMode // permission bits to set; 0: those of attrs
	attrs  string      // path whose mode, owner and attributes the file takes over; "": a new file's, by the umask
}

// present is a path as it is now: the hash of its bytes, or a link without it.
type present struct {
	path string // as the caller knows it
	at   string // the same through its folder, which is held open
	info fs.FileInfo
	hash string
	link bool
}

// bytes reads the file again, and fails when it is not the one that was looked at. Most commits need the hash only: they replace the file,
// and a long one would be in memory for nothing.
func (w *present) bytes() ([]byte, error) {
	r, err := openName(w.at)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := readAll(r, r.Size)
	if err == nil && Hash(b) != w.hash {
		err = &BaseError{w.path}
	}
	return b, err
}

// look finds what is at a resolved path; nil when there is nothing. A link is not followed and has no hash. It never waits, see
// OpenRaw, and refuses what is larger than MaxText, as the bytes may have to be held in memory.
func (p *plan) look(path string) (*present, error) {
	at, err := p.at(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // not even a folder
	}
	if err != nil {
		return nil, err
	}
	fi, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		return &present{path: path, at: at, info: fi, link: true}, nil
	}
	if err := kind(path, fi); err != nil { // with the path that the caller knows
		return nil, err
	}
	r, err := openName(at)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size > MaxText {
		return nil, tooBig(path, r.Size)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(r, MaxText+1)) // it may grow while it is read
	if err != nil {
		return nil, err
	}
	if n > MaxText {
		return nil, tooBig(path, n)
	}
	return &present{path: path, at: at, info: r.Info, hash: hex.EncodeToString(sum.Sum(nil))}, nil
}

// at resolves the links of a path's folder but not its last part. It is for operations on the name (Remove, Move, Link), which
// must leave the target of a link alone. Write resolves all of the path, see Real.
func at(path string) (string, error) {
	dir, err := Real(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// named is at for a path that was judged to lead to real; empty: it was not. The place of the name must still be that one, or be a
// link that leads there.
func named(path, real string) (string, error) {
	place, err := at(path)
	if err != nil || real == "" || place == real {
		return place, err
	}
	if now, err := Real(path); err != nil || now != real {
		return "", &BaseError{path}
	}
	if fi, err := os.Lstat(place); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return "", &BaseError{path}
	}
	return place, nil
}

// at is a resolved path through its folder, which is held open from its first use on.
func (p *plan) at(path string) (string, error) { return p.dirs.At(path) }

// prepare checks every base and works out the steps; it writes nothing. It applies the ops in order to a model of the paths
// (wants), so that a chain such as "remove a, move b to a" becomes one step for each path. Just before each step, the disk is
// compared again.
func (p *plan) prepare(ops []Op) error {
	wants := map[string]*want{}
	var order []string
	get := func(path string) (*want, error) {
		if w := wants[path]; w != nil {
			return w, nil
		}
		old, err := p.look(path)
		if err != nil {
			return nil, err
		}
		w := &want{path: path, old: old}
		if old != nil {
			w.from, w.exists = old, true
			if !old.link {
				w.attrs = path
			}
		}
		wants[path] = w
		order = append(order, path)
		return w, nil
	}
	// base compares what is on the disk with what the op expects. A link has no bytes to compare.
	base := func(w *want, op Op) error {
		if w.old == nil && op.Base != "" || w.old != nil && !w.old.link && w.old.hash != op.Base {
			if w.old != nil && op.Base == "" {
				return fmt.Errorf("%s %w", op.Path, ErrExists)
			}
			return &BaseError{op.Path}
		}
		return nil
	}
	// A move alone needs no bytes in memory, so the file may be larger than MaxText.
	if len(ops) == 1 && ops[0].Kind == Move && ops[0].Data == nil && ops[0].Mode == 0 {
		return p.prepareRename(ops[0])
	}
	for _, op := range ops {
		if op.Kind == Write {
			// A judged place is not resolved again: it could lead elsewhere by now.
			path, err := op.Real, error(nil)
			if path == "" {
				path, err = Real(op.Path)
			}
			if err != nil {
				return err
			}
			if name, err := at(op.Path); err == nil && wants[name] != nil {
				path = name // removed, or moved onto, in this same commit
			}
			w, err := get(path)
			if err != nil {
				return err
			}
			// The judged place was resolved, so a link there has come since.
			if op.Real != "" && w.exists && w.old != nil && w.old.link {
				return &BaseError{op.Path}
			}
			if w.exists || op.Base != "" { // after a Remove of the same path the base was checked there
				if err := base(w, op); err != nil {
					return err
				}
			}
			w.data, w.from, w.exists, w.link = op.Data, nil, true, false
			if op.Mode != 0 {
				w.mode = op.Mode
			}
			continue
		}
		path, err := named(op.Path, op.Real)
		if err != nil {
			return err
		}
		from, err := get(path)
		if err != nil {
			return err
		}
		if err := base(from, op); err != nil {
			return err
		}
		if op.Kind == Link {
			from.data, from.from, from.exists, from.link = op.Data, nil, true, true
			continue
		}
		if from.old == nil || !from.exists {
			return &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: fs.ErrNotExist}
		}
		if op.Kind == Remove {
			from.exists, from.link = false, false
			continue
		}
		if from.old.link || from.link {
			return fmt.Errorf("%s is a symbolic link; move it with the shell, or name the file it points to", op.Path)
		}
		if path, err = named(op.NewPath, op.NewReal); err != nil {
			return err
		}
		to, err := get(path)
		if err != nil {
			return err
		}
		if to.exists {
			return fmt.Errorf("%s %w", op.NewPath, ErrExists)
		}
		to.exists, to.data, to.from, to.mode, to.attrs = true, from.data, from.from, cmp.Or(op.Mode, from.mode), from.path
		if op.Data != nil {
			to.data, to.from = op.Data, nil
		}
		from.exists = false
	}
	// One step a path, in the order in which the paths were first named.
	for _, path := range order {
		w := wants[path]
		switch {
		case !w.exists && w.old == nil:
			continue
		case w.exists && w.old != nil && !w.link && !w.old.link && w.mode == 0 && w.hash() == w.old.hash:
			continue
		}
		// A file becomes a link, a link a file, or a link leads elsewhere. A step is about bytes or about a link, so one removes
		// the old and another makes the new.
		if w.exists && w.old != nil && (w.link || w.old.link) {
			gone, come := &want{path: w.path, old: w.old}, *w
			come.old = nil
			s, err := gone.step(p)
			if err != nil {
				return err
			}
			p.Steps = append(p.Steps, s)
			w = &come
		}
		s, err := w.step(p)
		if err != nil {
			return err
		}
		p.Steps = append(p.Steps, s)
	}
	return nil
}

// prepareRename is for a single move that keeps its bytes: files of any size, and links. One rename needs no temporary file and no
// backup, since it happens or does not.
func (p *plan) prepareRename(op Op) error {
	from, err := named(op.Path, op.Real)
	if err != nil {
		return err
	}
	to, err := named(op.NewPath, op.NewReal)
	if err != nil {
		return err
	}
	held, err := p.at(from)
	if err != nil {
		return err
	}
	fi, err := os.Lstat(held)
	if err != nil {
		return &fs.PathError{Op: "lstat", Path: from, Err: reason(err)}
	}
	// A rename of a folder would take along files that no approval request named.
	if fi.IsDir() {
		return fmt.Errorf("%s %w", op.Path, ErrIsDir)
	}
	if t, err := os.Lstat(to); err == nil && !os.SameFile(fi, t) { // the same file: only its case changes
		return fmt.Errorf("%s %w", op.NewPath, ErrExists)
	}
	if fi.Mode().IsRegular() && fi.Size() <= MaxText && op.Base != "" {
		now, err := p.look(from)
		if err != nil {
			return err
		}
		if now == nil || now.hash != op.Base {
			return &BaseError{op.Path}
		}
	}
	// A rename changes both folders.
	for _, dir := range []string{filepath.Dir(from), filepath.Dir(to)} {
		if err := writableDir(dir); err != nil {
			return err
		}
	}
	p.Dirs = missingDirs(nil, filepath.Dir(to))
	p.Steps = []step{{Kind: stepRename, Path: from, To: to, info: fi}}
	return nil
}

// hash is Hash of the bytes that are wanted.
func (w *want) hash() string {
	if w.from != nil {
		return w.from.hash
	}
	return Hash(w.data)
}

// step chooses how the path becomes what is wanted. It refuses read-only files: their mode stops a write in place, but not a
// rename over them, and the owner meant both.
func (w *want) step(p *plan) (step, error) {
	dir := filepath.Dir(w.path)
	if w.exists && w.from != nil && !w.from.link {
		var err error
		if w.data, err = w.from.bytes(); err != nil {
			return step{}, err
		}
	}
	s := step{Path: w.path, Mode: w.mode, attrs: w.attrs, data: w.data}
	if w.exists {
		s.NewHash = w.hash()
	}
	if w.old != nil {
		s.OldHash, s.info = w.old.hash, w.old.info
		if !w.old.link && w.old.info.Mode().Perm()&0o222 == 0 && w.mode&0o222 == 0 { // a change of mode may make it writable
			return s, fmt.Errorf("%s %w (mode %04o); make it writable first if it may change", w.path, ErrReadOnly, w.old.info.Mode().Perm())
		}
	}
	n := len(p.Steps)
	switch {
	case w.link:
		s.Kind, s.Target, s.NewHash = stepLink, string(w.data), ""
		p.Dirs = missingDirs(p.Dirs, dir)
	case w.old == nil:
		s.Kind, s.Temp = stepCreate, p.side(w.path, n, "tmp")
		p.Dirs = missingDirs(p.Dirs, dir)
	case !w.exists:
		s.Kind, s.Backup = stepRemove, p.side(w.path, n, "bak")
	case inPlace(w.path, w.old.info):
		old, err := w.old.bytes()
		s.Kind, s.Old, s.New = stepInPlace, old, w.data
		return s, err
	default:
		s.Kind, s.Temp, s.Backup = stepReplace, p.side(w.path, n, "tmp"), p.side(w.path, n, "bak")
	}
	return s, writableDir(dir)
}

// The kinds of steps.
const (
	stepCreate  = "create"  // temp takes the free name
	stepReplace = "replace" // the old file is linked to backup, temp takes the name
	stepRemove  = "remove"  // the file is renamed to backup
	stepRename  = "rename"  // path becomes to
	stepLink    = "link"    // path becomes a symbolic link to Target
	stepInPlace = "inplace" // bytes are overwritten; Old and New are in the journal
)

// plan is what the journal keeps of a commit, as JSON. Fields are only ever added, because a later version of Pillion may have to
// recover what an earlier one left.
type plan struct {
	ID      string   `json:"id"`   // also in the names of temporary files and backups
	Host    string   `json:"host"` // a process id means nothing on another machine that shares the folder
	PID     int      `json:"pid"`
	Start   string   `json:"start"`             // see processStart; a reused PID has another
	Applied bool     `json:"applied,omitempty"` // every step is done and durable: only clean-up is left
	Dirs    []string `json:"dirs,omitempty"`    // folders made for it, outermost first
	Steps   []step   `json:"steps"`

	dirs Anchors // the folders of all paths, from their first use on; closed by whoever made the plan
}

// step is how one path becomes what is wanted. Exported fields are in the journal, and are all that recovery knows.
type step struct {
	Kind    string      `json:"kind"` // one of the constants above
	Path    string      `json:"path"`
	To      string      `json:"to,omitempty"`      // stepRename: the new name
	Temp    string      `json:"temp,omitempty"`    // temporary file with the new bytes, beside Path
	Backup  string      `json:"backup,omitempty"`  // second name of the old file, until the commit has ended
	OldHash string      `json:"oldHash,omitempty"` // of the bytes before; "": no file, or a link
	NewHash string      `json:"newHash,omitempty"` // of the bytes after; "": no file, or a link
	Mode    fs.FileMode `json:"mode,omitempty"`    // permission bits to set; 0: none
	Old     []byte      `json:"old,omitempty"`     // stepInPlace: the bytes before
	New     []byte      `json:"new,omitempty"`     // stepInPlace: the bytes after
	Target  string      `json:"target,omitempty"`  // stepLink: where the link leads

	data  []byte      // the new bytes; not in the journal, the temporary file has them
	attrs string      // see want
	info  fs.FileInfo // of Path when the base was checked
}

// startPlan makes an empty plan. Host, PID and start time let the next start find out whether the process that wrote it is still
// running: a PID alone may belong to another program by then.
func startPlan() *plan {
	var b [6]byte
	rand.Read(b[:])
	host, _ := os.Hostname()
	return &plan{ID: "w" + hex.EncodeToString(b[:]), Host: host, PID: os.Getpid(), Start: processStart(os.Getpid())}
}

// side is a name beside path for a temporary file or a backup: in the same folder, because a rename is atomic only within
// one file system. The leading dot hides it from most globs. The plan's id in it keeps two commits apart.
func (p *plan) side(path string, n int, ext string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".pillion-%s-%d.%s", p.ID, n, ext))
}

// paths are the files a plan changes, both names of a move.
func (p *plan) paths() []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Path)
		if s.To != "" {
			out = append(out, s.To)
		}
	}
	return out
}

// alive reports whether the process that made the plan may still be working on it. In doubt it says yes: rolling back the steps of
// a running commit would destroy it, while those of a dead process can wait for another start.
func (p *plan) alive() bool {
	host, _ := os.Hostname()
	if host != p.Host {
		return true // a shared folder; only that machine can tell
	}
	if p.PID == os.Getpid() {
		return p.Start == processStart(p.PID)
	}
	return ProcessRuns(p.PID) && (p.Start == "" || p.Start == processStart(p.PID))
}

// overwrite changes a file's bytes in place and puts the old ones back when that fails. It is for files that cannot be replaced,
// see inPlace. It is not atomic: a reader can see a mixture, which recovery recognizes after a crash (torn). It truncates after
// writing, so that a full disk is noticed before any old byte past the new end is lost.
func overwrite(path string, old, new []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|noFollow, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	put := func(b []byte) error {
		// Flushed within put, so that an error of the disk is seen while the old bytes are still at hand.
		if _, err := f.WriteAt(b, 0); err != nil {
			return err
		}
		if err := die("torn"); err != nil {
			return err
		}
		if err := f.Truncate(int64(len(b))); err != nil {
			return err
		}
		return f.Sync()
	}
	err = put(new)
	if err != nil && !errors.Is(err, errCrash) {
		if e := put(old); e != nil {
			return fmt.Errorf("%w; the old text could not be restored: %v", err, e)
		}
	}
	return err
}

// copyFile makes a backup where the file system has no hard links. It is flushed, because the rename that follows removes the
// original.
func copyFile(from, to string) error {
	b, err := readName(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := copyAttrs(from, f); err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Sync()
}

// reason is a system error without the path in it, which may go through an open folder (see Anchors) and mean nothing to a reader.
func reason(err error) error {
	switch x := err.(type) {
	case *fs.PathError:
		return x.Err
	case *os.LinkError:
		return x.Err
	}
	return err
}

// explain turns a system error into a message that names the file and what to do. "Nothing was changed" is true because a failed
// commit is rolled back; where the rollback fails as well, giveUp adds that.
func explain(path string, err error) error {
	hint := ""
	err = reason(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errCrash) || errors.Is(err, ErrStale):
		return err
	case errors.Is(err, syscall.ENOSPC):
		hint = "the disk is full; free some space and try again"
	case errors.Is(err, syscall.EDQUOT):
		hint = "the disk quota is used up; free some space and try again"
	case errors.Is(err, syscall.EROFS):
		hint = "the file system is mounted read-only"
	case errors.Is(err, fs.ErrPermission):
		hint = "check the permissions of the file and its folder"
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s %w", path, ErrExists)
	}
	if hint == "" {
		return fmt.Errorf("cannot write %s, nothing was changed: %w", path, err)
	}
	return fmt.Errorf("cannot write %s, nothing was changed (%s): %w", path, hint, err)
}
