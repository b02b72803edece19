package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Proposal is what a draft proposes: files that a person reads hunk by hunk, and the rest, which is taken or left.
type Proposal struct {
	Files   []change.File // edits, new files, deletions, links, modes; Old is what the draft began from
	Bulk    []Change      // taken or left as a whole: what Git does not show, and files too large to be read
	Folders []Change      // made, removed or with another mode; they follow their files
	Left    []string      // what cannot be landed and why, for people
	Notes   []string      // what the reader must know of the whole
}

// Empty reports that there is nothing to land.
func (p *Proposal) Empty() bool { return len(p.Files)+len(p.Bulk)+len(p.Folders) == 0 }

// Propose reads the layer and sorts its changes. ignored says what Git would not show; see Changes. umask is the one of who will
// write the files: a new file gets a mode of its own only where it would not get it anyway. What cannot be landed is not an error:
// it is listed in Left, so that one socket does not hold back the work of a turn.
func (d *Draft) Propose(ignored func(abs string, dir bool) bool, umask fs.FileMode) (*Proposal, error) {
	// The list is taken in one walk: between two, a command in the background could change what was already sorted.
	list, err := d.Changes(ignored)
	if err != nil {
		return nil, err
	}
	h := d.Head()
	p := &Proposal{}
	for i := range list {
		c := &list[i]
		path := filepath.Join(h.Project, filepath.FromSlash(c.Rel))
		// A file in place of a folder, or the reverse, would need a removal and a creation in one transaction, which change sets do not have.
		leave := func(why string) { p.Left = append(p.Left, c.Rel+": "+why) }
		switch {
		case c.Ignored:
			p.Bulk = append(p.Bulk, *c)
		case c.Now == Special:
			leave("a socket, named pipe or device is not landed")
		case c.Now == Folder && (c.Base.Kind == File || c.Base.Kind == Link):
			leave("it was a file and is a folder in the draft; remove the file first")
		case c.Base.Kind == Folder && (c.Now == File || c.Now == Link):
			leave("it was a folder and is a file in the draft; remove the folder first")
		case c.Now == Folder || c.Base.Kind == Folder:
			p.Folders = append(p.Folders, *c)
		case c.Base.Kind == Special:
			leave("it is a socket, named pipe or device")
		case c.Base.Big || c.Size > files.MaxText:
			p.Bulk = append(p.Bulk, *c)
		default:
			f, ok, err := c.file(path, umask)
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				leave(err.Error())
				continue
			}
			if err != nil {
				return nil, err
			}
			if ok {
				p.Files = append(p.Files, f)
			}
			if c.Now == Link && ok {
				if to := leadsOut(h.Project, path, f.New); to != "" {
					p.Notes = append(p.Notes, c.Rel+" is a symbolic link out of the project, to "+to+".")
				}
			}
			if c.Base.Unsure {
				p.Notes = append(p.Notes, c.Rel+" was written by somebody else while the draft worked on it; look at its lines with care.")
			}
		}
	}
	if d.History() {
		p.Notes = append(p.Notes, "Git's history was changed in the draft (a commit, a branch, a checkout). That is not landed: what was committed is proposed here as changes of files, to be committed by the person.")
	}
	// The merge is still right line by line, but a reader should know that base and target are two branches.
	if now := d.BranchNow(); now != h.Branch {
		p.Notes = append(p.Notes, fmt.Sprintf("The draft was begun on %s, and the project is on %s now; its changes were merged with what is there.", h.Branch, now))
	}
	return p, nil
}

// leadsOut is where a link leads if that is outside of the project, by its words: what is on the way may be links of the draft.
func leadsOut(root, at, to string) string {
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(at), to)
	}
	if to = filepath.Clean(to); paths.Within(root, to) {
		return ""
	}
	return to
}

// file is a change of one file or link as a member of a change set; ok is false where nothing is left of it. Text that is not text,
// a link, and a change of encoding are Binary: they are taken whole, as no hunk could express them.
func (c *Change) file(path string, umask fs.FileMode) (f change.File, ok bool, err error) {
	before, err := c.Before()
	if err != nil {
		return f, false, err
	}
	after := c.After()
	f = change.File{Path: path, Kind: change.Edit}
	if c.Base.Kind == File {
		f.OldMode = c.Base.Mode
	}
	had, has := c.Base.Kind != None, c.Now != None
	oldText, oldKind := decoded(before, c.Base.Kind)
	newText, newKind := decoded(after, c.Now)
	f.Old, f.New, f.Encoding = oldText, newText, newKind
	links := c.Base.Kind == Link || c.Now == Link
	if !has {
		f.Encoding = oldKind
	}
	f.Binary = links || strings.Contains(oldText, "\x00") || strings.Contains(newText, "\x00") || had && has && oldKind != newKind
	if f.Binary && had && has {
		f.OldEncoding = oldKind
	}
	// An unsaved buffer was never on disk, so its hash would contradict the file that is there.
	if had && c.Base.Kind == File && !c.Base.Buffer {
		f.BaseHash = c.Base.Hash
	}
	switch {
	// Made and removed again within the draft.
	case !had && !has:
		return f, false, nil
	case !had:
		f.Kind = change.Create
		if c.Now == File && fs.FileMode(c.Mode) != 0o666&^umask {
			f.Mode = c.Mode
		}
		if oldKind == string(files.UTF8BOM) || newKind == string(files.UTF8BOM) {
			f.New = "\ufeff" + newText // a new text file has no encoding to keep: it says it itself
		}
	case !has:
		f.Kind = change.Delete
	case c.Base.Kind == Link && c.Now == File: // a link has no mode, so the file is as a new one
		if fs.FileMode(c.Mode) != 0o666&^umask {
			f.Mode = c.Mode
		}
	case !links && c.Mode != c.Base.Mode:
		f.Mode = c.Mode
	}
	return f, f.Kind != change.Edit || f.Old != f.New || oldKind != newKind || f.Mode != 0, nil
}

// decoded is text and encoding of what is at a path. A link's target is taken as it is.
func decoded(b []byte, kind Kind) (text, encoding string) {
	if kind == Link {
		return string(b), change.Link
	}
	text, e := files.Decode(b)
	return text, string(e)
}

// Summary says what a bulk change is, for the question about it: "node_modules (1,204 files, 14 MB)".
func (c *Change) Summary() string {
	switch {
	case c.Now == None:
		return c.Rel + " (removed)"
	case c.Now == Folder:
		return fmt.Sprintf("%s (%s, %s)", c.Rel, textutil.Plural(c.Count, "file"), size(c.Size))
	}
	return fmt.Sprintf("%s (%s)", c.Rel, size(c.Size))
}

// size is a number of bytes for people, in powers of 1000. A unit is used up to four digits: 9999 kB, then 10 MB.
func size(n int64) string {
	for _, unit := range []string{"bytes", "kB", "MB"} {
		if n < 10_000 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%d GB", n)
}

// LandFolders makes, removes and chmods folders after the files have been written. Folders that hold something else by now
// stay. Doing it again does no harm. list is sorted by path, as Changes gives it. Errors are joined, and the other folders are done.
func (d *Draft) LandFolders(list []Change) error {
	root := d.Head().Project
	var errs []error
	for _, c := range list { // outer folders first
		at := filepath.Join(root, filepath.FromSlash(c.Rel))
		if err := plainParents(root, c.Rel); err != nil {
			errs = append(errs, err)
			continue
		}
		if c.Now != Folder {
			continue
		}
		if err := os.Mkdir(at, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
			continue
		}
		if fi, err := os.Lstat(at); err == nil && fi.IsDir() && uint32(fi.Mode().Perm()) != c.Mode {
			// The draft's mode would undo a decision that was made after it began.
			if c.Base.Kind == Folder && uint32(fi.Mode().Perm()) != c.Base.Mode {
				continue // the person changed it too
			}
			errs = append(errs, os.Chmod(at, fs.FileMode(c.Mode)))
		}
	}
	for _, c := range slices.Backward(list) { // inner ones first
		if c.Now != None || plainParents(root, c.Rel) != nil {
			continue
		}
		// Remove, never RemoveAll: a folder into which the person has put a file meanwhile is not empty (ENOTEMPTY, or EEXIST) and stays.
		err := os.Remove(filepath.Join(root, filepath.FromSlash(c.Rel)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// LandBulk moves what is taken as a whole from the draft into the project. It can be cut off at any point and called again:
// what has been moved is in the project, the rest still in the draft.
func (d *Draft) LandBulk(list []Change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read(func(u upper) error {
		// One path that cannot be moved does not keep the others in the draft.
		var errs []error
		for _, c := range list {
			err := plainParents(d.head.Project, c.Rel)
			if err == nil {
				err = d.move(u, c.Rel, c.Base)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// move lands one path of the layer and all below it. Where both have a folder it goes down, so that what only the project has in it
// stays; everything else is replaced whole. What lies below an ignored folder has no base, hence the empty one.
func (d *Draft) move(u upper, rel string, base Base) error {
	to := filepath.Join(d.head.Project, filepath.FromSlash(rel))
	mine, err := u.look(rel)
	if err != nil {
		return err
	}
	theirs, err := look(to)
	if err != nil {
		return err
	}
	switch {
	case mine.kind == None && base.Kind != None: // removed in the draft
		return removeAll(to)
	case mine.kind == None:
		return nil // moved already
	case mine.kind != Folder || theirs.kind != Folder:
		if theirs.kind == Folder && mine.kind != Folder {
			if err := removeAll(to); err != nil {
				return err
			}
		}
		if mine.kind == Folder && theirs.kind != None {
			if err := os.Remove(to); err != nil {
				return err
			}
		}
		return carry(mine, to)
	}
	names, gone, opaque, err := u.children(rel)
	if err != nil {
		return err
	}
	// The draft made the folder anew: what the project has and the draft has not is removed.
	if opaque {
		list, err := os.ReadDir(to)
		if err != nil {
			return err
		}
		for _, e := range list {
			if !slices.Contains(names, e.Name()) && !slices.Contains(gone, e.Name()) {
				gone = append(gone, e.Name())
			}
		}
	}
	var errs []error
	for _, name := range gone {
		errs = append(errs, removeAll(filepath.Join(to, name)))
	}
	for _, name := range names {
		errs = append(errs, d.move(u, join(rel, name), Base{}))
	}
	if mine.mode != theirs.mode {
		errs = append(errs, os.Chmod(to, fs.FileMode(mine.mode)))
	}
	return errors.Join(errs...)
}

// plainParents refuses a path that leads through a symbolic link by now: it would land in another place. The check and the write are
// two steps; it protects from what a command or a person has done since the draft began, not from a race.
func plainParents(root, rel string) error {
	for i, r := range rel {
		if r != '/' {
			continue
		}
		at := filepath.Join(root, filepath.FromSlash(rel[:i]))
		if fi, err := os.Lstat(at); err == nil && !fi.IsDir() {
			return fmt.Errorf("%s cannot be landed: %s is no folder any more", rel, rel[:i])
		}
	}
	return nil
}

// carry brings a path of the layer to its place: by a rename where both are on one file system, else by a copy beside its
// place that is renamed when it is whole. The overlay's own marks, set-user-ID bits and whiteouts do not leave the layer.
func carry(e entry, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if e.kind == Special {
		return nil
	}
	_ = filepath.WalkDir(e.at, func(path string, x fs.DirEntry, err error) error {
		if err == nil {
			clearMarks(path)
			if fi, err := x.Info(); err == nil && fi.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && fi.Mode()&fs.ModeSymlink == 0 {
				_ = os.Chmod(path, fi.Mode().Perm()) // a program that acts as this user for others is nothing to land unseen
			}
			// A name that was deleted within a folder of the draft's own leaves its whiteout behind.
			if fi, err := x.Info(); err == nil && x.Type()&fs.ModeCharDevice != 0 && whiteout(fi) {
				_ = os.Remove(path)
			}
		}
		return nil
	})
	err := os.Rename(e.at, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	// The folder of the target, so that the rename below stays on one file system and a reader never meets half of it.
	tmp := filepath.Join(filepath.Dir(to), ".pillion-"+filepath.Base(to)+".new")
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := copyAll(e.at, tmp); err != nil {
		_ = os.RemoveAll(tmp)
		return err
	}
	if err := os.Rename(tmp, to); err != nil {
		_ = os.RemoveAll(tmp)
		return err
	}
	return os.RemoveAll(e.at)
}

// copyAll copies a path with all below it. Folders get their modes at the end, as a read-only one could not be filled.
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

// removeAll removes a path of the project that the draft removed as a whole. A repository's own data is never touched, whatever the
// layer says.
func removeAll(path string) error {
	if inGit(filepath.ToSlash(path)) {
		return nil
	}
	return os.RemoveAll(path)
}
