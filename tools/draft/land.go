package draft

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/pillion-dev/pillion/tools/files"
)

// What a change set cannot express (folders, ignored output, files larger than files.MaxText) is landed by the functions in this file. They
// reach each path through its folder, held open (files.Anchors), so nothing lands through a link that was put into the path meanwhile.

// LandFolders creates, removes and chmods folders. It must run after the files have been written. A folder that is not empty is not removed.
// It may run again after a crash. list must be sorted by path, as Changes returns it. After an error it continues with the other folders
// and returns all errors joined.
func (d *Draft) LandFolders(list []Change) error {
	root := d.Head().Project
	var errs []error
	for _, c := range list { // outer folders first
		if c.Now == Folder {
			errs = append(errs, c.landFolder(root))
		}
	}
	for _, c := range slices.Backward(list) { // inner ones first
		if c.Now != None {
			continue
		}
		var held files.Anchors
		at, err := held.At(projectPath(root, c.Rel))
		if err == nil {
			// Remove, never RemoveAll: if the person has put a file into the folder meanwhile, it is not empty (ENOTEMPTY or EEXIST) and stays.
			err = os.Remove(at)
		}
		held.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
			errs = append(errs, refused(c.Rel, err))
		}
	}
	return errors.Join(errs...)
}

// landFolder creates a folder, or gives it the mode that it has in the draft.
func (c *Change) landFolder(root string) error {
	var held files.Anchors
	defer held.Close()
	path := projectPath(root, c.Rel)
	at, err := held.At(path)
	if err != nil {
		return refused(c.Rel, err)
	}
	if err := os.Mkdir(at, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return refused(c.Rel, err)
	}
	// Through a name in the folder itself: chmod of its own name would follow a link that takes the folder's place.
	inside, err := held.At(filepath.Join(path, "x"))
	if err != nil {
		return refused(c.Rel, err)
	}
	dir := filepath.Dir(inside)
	fi, err := os.Stat(dir)
	if err != nil || uint32(fi.Mode().Perm()) == c.Mode {
		return err
	}
	// The person has changed the mode since the draft began; theirs wins.
	if c.Base.Kind == Folder && uint32(fi.Mode().Perm()) != c.Base.Mode {
		return nil
	}
	return os.Chmod(dir, fs.FileMode(c.Mode))
}

// projectPath is the absolute path of a change.
func projectPath(root, rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) }

// refused is the error for people of a path that was not landed. The system's error names a path through an open folder.
func refused(rel string, err error) error {
	if errors.Is(err, files.ErrSwapped) || isNotDir(err) {
		return fmt.Errorf("%s cannot be landed: one of its folders is a link or a file by now", rel)
	}
	var link *os.LinkError
	var path *fs.PathError
	if errors.As(err, &link) {
		err = link.Err
	} else if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s cannot be landed: %w", rel, err)
}

// LandBulk moves the accepted bulk changes from the draft's layer into the project. After a crash it can be called again with the same
// list: paths that are no longer in the layer were moved before and are skipped. A file that the person has changed since the draft began
// stays, and the draft's version is put beside it; the error says under which name.
func (d *Draft) LandBulk(list []Change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.beginSteps(); err != nil {
		return err
	}
	defer d.endSteps()
	return d.read(func(u upper) error {
		// A path that cannot be moved does not stop the others.
		var errs []error
		for _, c := range list {
			switch {
			case inGit(c.Rel): // never a repository's data, whatever the layer has
			case c.Now == None:
				errs = append(errs, d.remove(c.Rel, c.Base))
			case c.Ignored && c.Base.Kind != None: // accepted as a whole, see move
				errs = append(errs, d.move(u, c.Rel, nil))
			default:
				errs = append(errs, d.move(u, c.Rel, &c.Base))
			}
		}
		return errors.Join(errs...)
	})
}

// remove removes a path of the project, and everything below it, because the draft has removed it. A file is first moved to another name and
// looked at there, so that a version that the person writes at this moment is not lost.
func (d *Draft) remove(rel string, base Base) error {
	var held files.Anchors
	defer held.Close()
	at, err := held.At(projectPath(d.head.Project, rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return refused(rel, err)
	}
	fi, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || fi.IsDir() != (base.Kind == Folder) {
		return errors.Join(err, fmt.Errorf("%s is not removed: it is something else in the project now", rel))
	}
	if fi.IsDir() {
		return os.RemoveAll(at)
	}
	if !base.original(at, fi) {
		return fmt.Errorf("%s is not removed: it was changed in the project meanwhile", rel)
	}
	aside := besides(at)
	if err := d.noteStep(landStep{Rel: rel, Aside: filepath.Base(aside), Theirs: mark(fi)}); err != nil {
		return err
	}
	if err := os.Rename(at, aside); err != nil {
		return refused(rel, err)
	}
	die("aside")
	if now, err := os.Lstat(aside); err != nil || !sameFile(fi, now) {
		err := fmt.Errorf("%s is not removed: it was changed in the project at this moment", rel)
		// An editor may have written the file anew under its name since; neither version may be lost.
		if back := renameNew(aside, at); back != nil {
			err = fmt.Errorf("%w; another version is beside it as %s: %w", err, filepath.Base(aside), refused(rel, back))
		}
		return err
	}
	return os.Remove(aside)
}

// move lands one path of the layer and everything below it. If layer and project both have a folder, it descends, so that files that only
// the project has stay; anything else is replaced as a whole. base is nil below an ignored folder, where Record stores none: such output
// was accepted as a whole, and what the project has is replaced.
func (d *Draft) move(u upper, rel string, base *Base) error {
	mine, err := u.look(rel)
	if err != nil || mine.kind == None || mine.kind == Special {
		return err // None: an earlier call, before a crash, has moved it
	}
	var held files.Anchors
	defer held.Close()
	at, err := d.place(&held, rel)
	if err != nil {
		return err
	}
	theirs, err := look(at)
	if err != nil {
		return refused(rel, err)
	}
	if mine.kind != Folder || theirs.kind != Folder {
		return d.put(mine, rel, at, base)
	}
	names, gone, opaque, err := u.children(rel)
	if err != nil {
		return err
	}
	// The draft removed the folder and created it again: whatever only the project has in it is removed.
	if opaque {
		list, err := os.ReadDir(at)
		if err != nil {
			return refused(rel, err)
		}
		for _, e := range list {
			if !slices.Contains(names, e.Name()) && !slices.Contains(gone, e.Name()) {
				gone = append(gone, e.Name())
			}
		}
	}
	var errs []error
	for _, name := range gone {
		if inGit(join(rel, name)) {
			continue
		}
		inside, err := held.At(projectPath(d.head.Project, join(rel, name)))
		if err == nil {
			err = os.RemoveAll(inside)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, refused(join(rel, name), err))
		}
	}
	for _, name := range names {
		errs = append(errs, d.move(u, join(rel, name), nil))
	}
	if mine.mode != theirs.mode {
		c := Change{Rel: rel, Now: Folder, Mode: mine.mode}
		errs = append(errs, c.landFolder(d.head.Project))
	}
	return errors.Join(errs...)
}

// place is the path of rel through its folder, which is created if the project does not have it.
func (d *Draft) place(held *files.Anchors, rel string) (string, error) {
	parent, _ := split(rel)
	at, err := held.At(projectPath(d.head.Project, rel))
	// Without names for open folders At does not notice a missing one.
	if parent != "" && (errors.Is(err, fs.ErrNotExist) || err == nil && missing(filepath.Dir(at))) {
		above, e := d.place(held, parent)
		if e == nil {
			e = os.Mkdir(above, 0o777)
		}
		if e != nil && !errors.Is(e, fs.ErrExist) {
			return "", refused(parent, e)
		}
		at, err = held.At(projectPath(d.head.Project, rel))
	}
	if err != nil {
		return "", refused(rel, err)
	}
	return at, nil
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// put moves a path of the layer, with all below it, to its place in the project. It comes under another name first, so that no reader sees half
// of it, and takes its place in one step. With a base, what it replaces is looked at afterwards: if that is not what the draft began from, it
// goes back, and the draft's version stays beside it.
func (d *Draft) put(mine entry, rel, at string, base *Base) error {
	strip(mine.at)
	staged := besides(at)
	step := landStep{Rel: rel, Aside: filepath.Base(staged), Mine: markAt(mine.at), Theirs: markAt(at), Whole: base == nil}
	if err := d.noteStep(step); err != nil {
		return err
	}
	copied, err := carry(mine.at, staged)
	if err != nil {
		return refused(rel, err)
	}
	die("carried")
	back := func() error { return os.Rename(staged, mine.at) } // what cannot land stays in the draft
	if copied {
		back = func() error { return os.RemoveAll(staged) }
		// The layer keeps its version until the copy has a place: resume must never find two halves.
		step.Mine = markAt(staged)
		if err := d.noteStep(step); err != nil {
			return errors.Join(err, back())
		}
	}
	landed, err := d.exchange(rel, staged, at, base)
	switch {
	case !landed && err != nil:
		return refused(rel, errors.Join(err, back()))
	case !landed:
		var beside bool
		if beside, err = d.setBeside(rel, staged, at); !beside {
			return errors.Join(err, back())
		}
	}
	if copied {
		err = errors.Join(err, os.RemoveAll(mine.at))
	}
	return err
}

// exchange gives staged the name at, and removes what it replaces. Without an error and without having landed, what is at the name is not what
// the draft began from, and stays.
func (d *Draft) exchange(rel, staged, at string, base *Base) (landed bool, err error) {
	fi, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		// The kernel refuses to replace a name that appears at this moment.
		if err := renameNew(staged, at); !errors.Is(err, fs.ErrExist) {
			return err == nil, err
		}
		fi, err = os.Lstat(at)
	}
	if err != nil || base != nil && !d.began(rel, *base, at, fi) {
		return false, err
	}
	if err := swap(staged, at); err != nil {
		return false, err
	}
	die("exchanged")
	now, err := os.Lstat(staged)
	if base == nil || errors.Is(err, fs.ErrNotExist) || err == nil && (sameFile(fi, now) || base.Kind == Folder && d.began(rel, *base, staged, now)) {
		return true, os.RemoveAll(staged)
	}
	if err := swap(staged, at); err != nil {
		return true, fmt.Errorf("%s was changed in the project at this moment; that version is beside it as %s: %w", rel, filepath.Base(staged), refused(rel, err))
	}
	return false, nil
}

// setBeside gives the draft's version of a file that stays as it is a name beside it; done is false if it still has the name staged. The
// error, which is never nil, tells the person what to do.
func (d *Draft) setBeside(rel, staged, at string) (done bool, err error) {
	name := filepath.Base(at) + "." + d.head.ID
	for n := 2; ; n++ {
		err := renameNew(staged, filepath.Join(filepath.Dir(at), name))
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return false, refused(rel, err)
		}
		// The person may be at work on what an earlier landing has put there.
		name = fmt.Sprintf("%s.%s.%d", filepath.Base(at), d.head.ID, n)
	}
	return true, fmt.Errorf("%s was changed in the project meanwhile and stays as it is; the draft's version is beside it as %s: compare the two, keep what you want under the name %s and delete the other", rel, name, filepath.Base(at))
}

// renameIfFree is renameNew in two steps: it replaces a file that appears between them.
func renameIfFree(from, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	return os.Rename(from, to)
}

// replaceBy renames from to to, which may be of another kind.
func replaceBy(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// began reports whether a file or a folder of the project, found at a path, is what the draft began from.
func (d *Draft) began(rel string, base Base, at string, fi fs.FileInfo) bool {
	if base.Kind != Folder || !fi.IsDir() {
		return base.original(at, fi)
	}
	err := filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(at, path)
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		name := rel
		if below != "." {
			name = join(rel, filepath.ToSlash(below))
		}
		b, ok := d.bases[name]
		switch {
		case !ok || inGit(name) || e.IsDir() != (b.Kind == Folder):
			return errOther
		case e.IsDir() && !b.Emptied: // ignored: accepted as a whole
			return fs.SkipDir
		case !e.IsDir() && !b.original(path, fi):
			return errOther
		}
		return nil
	})
	return err == nil
}

// errOther ends the walk of began.
var errOther = errors.New("it is not what the draft began from")

// besides is a name in the folder of at for something that is on its way in or out. It is drawn, not made from the name of at: nobody else has
// a file of that name, so what is found there after a kill can only be ours, and it is never too long.
func besides(at string) string {
	return filepath.Join(filepath.Dir(at), ".pillion-"+rand.Text()+".new")
}

// original reports whether the file at a path, with info fi, is what the draft began from.
func (b Base) original(at string, fi fs.FileInfo) bool {
	switch {
	case b.Unsure || b.Kind == None:
		return false
	case b.Kind == Link:
		to, err := os.Readlink(at)
		sum := sha256.Sum256([]byte(to))
		return err == nil && hex.EncodeToString(sum[:]) == b.Hash
	case b.Kind != File || !fi.Mode().IsRegular() || fi.Size() != b.Size:
		return false
	case b.Big:
		return b.ID != "" && b.ID == fingerprint(fi)
	}
	text, err := entry{kind: File, at: at}.bytes()
	sum := sha256.Sum256(text)
	return err == nil && hex.EncodeToString(sum[:]) == b.Hash
}

// fingerprint stands for the bytes of a file that is too large to keep: they cannot change without it.
func fingerprint(fi fs.FileInfo) string {
	return fmt.Sprintf("%s %d %d", fileID(fi), fi.Size(), fi.ModTime().UnixNano())
}

// sameFile reports whether nobody has written to or replaced a file between two looks. The ctime is left out, as a rename changes it.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// strip removes what must not leave the layer from a path and everything below it: overlay marks, set-user-ID and set-group-ID bits, and
// whiteouts.
func strip(top string) {
	_ = filepath.WalkDir(top, func(path string, x fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		clearMarks(path)
		fi, err := x.Info()
		if err != nil {
			return nil
		}
		if fi.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && fi.Mode()&fs.ModeSymlink == 0 {
			_ = os.Chmod(path, fi.Mode().Perm()) // bulk changes are not read by a person; a set-user-ID program would run with this user's rights for others
		}
		// A whiteout would become a device file in the project, or make the copy fail.
		if x.Type()&fs.ModeCharDevice != 0 && whiteout(fi) {
			_ = os.Remove(path)
		}
		return nil
	})
}

// carry brings a path of the layer to another one: by a rename on the same file system, else by a copy (copied is true), which leaves from
// where it is.
func carry(from, to string) (copied bool, err error) {
	if err := os.RemoveAll(to); err != nil {
		return false, err
	}
	if err = os.Rename(from, to); !errors.Is(err, syscall.EXDEV) {
		return false, err
	}
	if err := copyAll(from, to); err != nil {
		return true, errors.Join(err, os.RemoveAll(to))
	}
	return true, nil
}

// copyAll copies a path with all below it. Folders get their modes at the end, as nothing could be created in a read-only one.
func copyAll(from, to string) error {
	modes := map[string]fs.FileMode{}
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if fi.IsDir() {
			modes[at] = fi.Mode().Perm()
		}
		_, err = cloneEntry(path, at, fi)
		return err
	})
	for at, mode := range modes {
		err = errors.Join(err, os.Chmod(at, mode))
	}
	return err
}
