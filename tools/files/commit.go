package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Op is one step of a commit. Paths are absolute, and are resolved by Commit. Ops of one commit see each other's
// effects in their order.
type OpKind string

// What can be done to a path.
const (
	Write  OpKind = "write"  // Data becomes the file's bytes; a symbolic link stays and its target is written
	Remove OpKind = "remove" // the name goes; of a symbolic link only the link
	Move   OpKind = "move"   // the name becomes NewPath; Data, when not nil, its new bytes
	Link   OpKind = "link"   // the name becomes a symbolic link to the path in Data, whatever is there
)

// Op is one step of a commit. Paths are absolute.
type Op struct {
	Kind    OpKind
	Path    string
	NewPath string      // Move
	Data    []byte      // Write, Move, Link; not changed, and not kept after Commit
	Base    string      // Hash of the bytes that must be there now; "" for a Write: nothing may be there
	Mode    fs.FileMode // permission bits to set; 0: as the file has, or as the umask says for new ones
}

// Errors of Commit besides *BaseError and the system's own. In every case the files are as they were.
var (
	ErrReadOnly = errors.New("is read-only")
	ErrExists   = errors.New("already exists")
)

// BaseError is returned when a file is not what the change was made from, or was changed during the commit. errors.Is(err,
// ErrStale) holds. The caller rebases the change on what is there, or has the file read again.
type BaseError struct{ Path string }

func (e *BaseError) Error() string {
	return fmt.Sprintf("%s changed on the disk while the change was being prepared; nothing was written", e.Path)
}
func (e *BaseError) Is(t error) bool { return t == ErrStale }

// Commit makes all ops true or none: bytes go to temporary files beside their targets, are flushed, and then take
// the targets' names. Mode, owner and extended attributes stay; a file with hard links, or one whose folder or owner
// does not allow another way, is written in place. With a journal a crash (kill -9, power) between the first and
// the last rename is repaired by Recover; j may be nil.
//
// Processes that share a DirJournal commit one after the other, so that none renames over what another has just
// written behind its comparison.
func Commit(ctx context.Context, ops []Op, j Journal) error {
	// Before the bases are compared, or another process could write between comparison and rename.
	if s, ok := j.(sharedJournal); ok {
		unlock, err := s.writing(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	p, err := newPlan(ops)
	if err != nil {
		return err
	}
	if len(p.Steps) == 0 {
		return nil
	}
	t := &transaction{plan: p, journal: j}
	return t.run(ctx)
}

// want is what a path shall be in the end, after all ops of the commit.
type want struct {
	path   string // where the name is, links before it resolved
	old    *present
	data   []byte // nil: nothing shall be there
	exists bool   // data may be empty
	link   bool   // data is where a symbolic link leads
	mode   fs.FileMode
	attrs  string // path whose mode, owner and attributes a new file takes
}

// present is a path as it is now: its bytes and their hash, or a link without either.
type present struct {
	info fs.FileInfo
	data []byte
	hash string
	link bool
}

// look reads what is at a path; nil when there is nothing. A link is not followed and has no data. It never waits, see
// OpenRaw, and refuses what is larger than MaxText, as the bytes are held in memory.
func look(path string) (*present, error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		return &present{info: fi, link: true}, nil
	}
	r, err := OpenRaw(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size > MaxText {
		return nil, tooBig(path, r.Size)
	}
	b, err := readAll(r, r.Size)
	if err != nil {
		return nil, err
	}
	return &present{info: r.Info, data: b, hash: Hash(b)}, nil
}

// at resolves the links of a path's folder but not its last part: for operations on the name (Remove, Move, Link), of
// which the target of a link must not notice anything. Write resolves all of the path, see Real.
func at(path string) (string, error) {
	dir, err := Real(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// newPlan checks every base and works out the steps. It goes over the ops in order on a picture of the paths (wants), so
// that a chain such as "remove a, move b to a" becomes one step a path; nothing is written. The disk is compared again
// just before each step.
func newPlan(ops []Op) (*plan, error) {
	wants := map[string]*want{}
	var order []string
	get := func(path string) (*want, error) {
		if w := wants[path]; w != nil {
			return w, nil
		}
		old, err := look(path)
		if err != nil {
			return nil, err
		}
		w := &want{path: path, old: old}
		if old != nil {
			w.data, w.exists = old.data, true
			if !old.link {
				w.attrs = path
			}
		}
		wants[path] = w
		order = append(order, path)
		return w, nil
	}
	// The first op on a path compares it with the disk; what later ops find is this commit's own.
	base := func(w *want, op Op) error {
		if w.old == nil && op.Base != "" || w.old != nil && !w.old.link && w.old.hash != op.Base {
			if w.old != nil && op.Base == "" {
				return fmt.Errorf("%s %w", op.Path, ErrExists)
			}
			return &BaseError{op.Path}
		}
		return nil
	}
	// Nothing has to be read for it, so it may be larger than MaxText.
	if len(ops) == 1 && ops[0].Kind == Move && ops[0].Data == nil && ops[0].Mode == 0 {
		return renamePlan(ops[0])
	}
	for _, op := range ops {
		if op.Kind == Write {
			path, err := Real(op.Path)
			if err != nil {
				return nil, err
			}
			if name, err := at(op.Path); err == nil && wants[name] != nil {
				path = name // removed, or moved onto, in this same commit
			}
			w, err := get(path)
			if err != nil {
				return nil, err
			}
			if w.exists || op.Base != "" { // after a Remove of the same path the base was checked there
				if err := base(w, op); err != nil {
					return nil, err
				}
			}
			w.data, w.exists, w.link = op.Data, true, false
			if op.Mode != 0 {
				w.mode = op.Mode
			}
			continue
		}
		path, err := at(op.Path)
		if err != nil {
			return nil, err
		}
		from, err := get(path)
		if err != nil {
			return nil, err
		}
		if err := base(from, op); err != nil {
			return nil, err
		}
		if op.Kind == Link {
			from.data, from.exists, from.link = op.Data, true, true
			continue
		}
		if from.old == nil {
			return nil, &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: fs.ErrNotExist}
		}
		from.exists = false
		if op.Kind == Remove {
			continue
		}
		if from.old.link {
			return nil, fmt.Errorf("%s is a symbolic link; move it with the shell, or name the file it points to", op.Path)
		}
		if path, err = at(op.NewPath); err != nil {
			return nil, err
		}
		to, err := get(path)
		if err != nil {
			return nil, err
		}
		if to.exists {
			return nil, fmt.Errorf("%s %w", op.NewPath, ErrExists)
		}
		to.exists, to.data, to.mode, to.attrs = true, op.Data, op.Mode, from.path
		if op.Data == nil {
			to.data = from.old.data
		}
	}
	// One step a path, in the order in which the paths were first named.
	p := startPlan()
	for _, path := range order {
		w := wants[path]
		switch {
		case !w.exists && w.old == nil:
			continue
		case w.exists && w.old != nil && !w.link && !w.old.link && w.mode == 0 && bytes.Equal(w.data, w.old.data):
			continue
		}
		if w.exists && w.old != nil && (w.link || w.old.link) { // one of them is no bytes: the one goes, the other comes
			gone, come := &want{path: w.path, old: w.old}, *w
			come.old, come.attrs = nil, ""
			s, err := gone.step(p)
			if err != nil {
				return nil, err
			}
			p.Steps = append(p.Steps, s)
			w = &come
		}
		s, err := w.step(p)
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, s)
	}
	return p, nil
}

// renamePlan is for a move that keeps its bytes: any size, and links too. One rename needs no temporary file and no
// backup.
func renamePlan(op Op) (*plan, error) {
	from, err := at(op.Path)
	if err != nil {
		return nil, err
	}
	to, err := at(op.NewPath)
	if err != nil {
		return nil, err
	}
	fi, err := os.Lstat(from)
	if err != nil {
		return nil, err
	}
	// A rename would take along files that nobody has been asked about.
	if fi.IsDir() {
		return nil, fmt.Errorf("%s %w", op.Path, ErrIsDir)
	}
	if t, err := os.Lstat(to); err == nil && !os.SameFile(fi, t) { // the same file: only its case changes
		return nil, fmt.Errorf("%s %w", op.NewPath, ErrExists)
	}
	if fi.Mode().IsRegular() && fi.Size() <= MaxText && op.Base != "" {
		now, err := look(from)
		if err != nil {
			return nil, err
		}
		if now == nil || now.hash != op.Base {
			return nil, &BaseError{op.Path}
		}
	}
	// A rename changes both folders.
	for _, dir := range []string{filepath.Dir(from), filepath.Dir(to)} {
		if err := writableDir(dir); err != nil {
			return nil, err
		}
	}
	p := startPlan()
	p.Dirs = missingDirs(nil, filepath.Dir(to))
	p.Steps = []step{{Kind: stepRename, Path: from, To: to, info: fi}}
	return p, nil
}

// step chooses how a path gets what is wanted of it. It refuses read-only files: the owner's protection would not stop a
// rename over them, only a write in place.
func (w *want) step(p *plan) (step, error) {
	dir := filepath.Dir(w.path)
	s := step{Path: w.path, Mode: w.mode, attrs: w.attrs, data: w.data}
	if w.exists {
		s.NewHash = Hash(w.data)
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
		s.Kind, s.Old, s.New = stepInPlace, w.old.data, w.data
		return s, nil
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

// plan is what the journal keeps of a commit. It is JSON; fields are only ever added, as a later version may have to
// recover what an earlier one left.
type plan struct {
	ID      string   `json:"id"`   // also in the names of temporary files and backups
	Host    string   `json:"host"` // a process id means nothing on another machine that shares the folder
	PID     int      `json:"pid"`
	Start   string   `json:"start"`             // of the process, so that a reused pid is not taken for it
	Applied bool     `json:"applied,omitempty"` // every step is done and durable: only clean-up is left
	Dirs    []string `json:"dirs,omitempty"`    // folders made for it, outermost first
	Steps   []step   `json:"steps"`
}

// step is how one path gets what is wanted of it. Hashes are "" where there is no file. What is exported is in the
// journal and is all that recovery knows.
type step struct {
	Kind    string      `json:"kind"`
	Path    string      `json:"path"`
	To      string      `json:"to,omitempty"`
	Temp    string      `json:"temp,omitempty"`
	Backup  string      `json:"backup,omitempty"`
	OldHash string      `json:"oldHash,omitempty"`
	NewHash string      `json:"newHash,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	Old     []byte      `json:"old,omitempty"`
	New     []byte      `json:"new,omitempty"`
	Target  string      `json:"target,omitempty"`

	data  []byte      // the new bytes; not in the journal, the temporary file has them
	attrs string      // see want
	info  fs.FileInfo // of Path when the base was checked
}

// startPlan makes an empty plan. Host, PID and the process's start time tell at the next
// start whether the process that wrote it is still running: a PID alone may belong to
// another program by then.
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

// alive says whether the process that made the plan may still be working on it. In doubt it says yes: taking back the
// steps of a living commit would destroy it, a dead one only waits.
func (p *plan) alive() bool {
	host, _ := os.Hostname()
	if host != p.Host {
		return true // another machine's: not ours to judge
	}
	if p.PID == os.Getpid() {
		return p.Start == processStart(p.PID)
	}
	return ProcessRuns(p.PID) && (p.Start == "" || p.Start == processStart(p.PID))
}

// overwrite changes a file's bytes in place and puts the old ones back when that fails. It is not atomic: a reader can
// see a mixture, and after a crash recovery tells it from a stranger's change (torn). It truncates after writing, so
// that a full disk is noticed before any old byte past the new end is lost. Hard links and foreign owners leave no
// other way, see inPlace.
func overwrite(path string, old, new []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
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
			return fmt.Errorf("%w; and the old text could not be put back: %v", err, e)
		}
	}
	return err
}

// copyFile makes a backup where the file system has no hard links. It is flushed, as the rename that follows takes the
// original away.
func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
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

// explain turns a system error into a message that names the file and what to do. It may say that nothing was changed,
// because a failed commit is rolled back; where that fails giveUp adds it.
func explain(path string, err error) error {
	hint := ""
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
