package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Proposal is what a draft proposes: files that a person reviews hunk by hunk, and the rest, which is accepted or rejected as a whole.
type Proposal struct {
	Files   []change.File // edits, new files, deletions, links, modes; Old is the base of the draft
	Bulk    []Change      // accepted or rejected as a whole: what Git ignores, and files larger than files.MaxText
	Folders []Change      // created, removed or with another mode; landed after the files
	Left    []string      // changes that cannot be landed, each as "path: why", for people
	Notes   []string      // sentences for the reviewer
}

// Empty reports whether there is nothing to land. Left may have entries even then.
func (p *Proposal) Empty() bool { return len(p.Files)+len(p.Bulk)+len(p.Folders) == 0 }

// Propose reads the layer and sorts its changes into a Proposal. ignored reports what Git ignores; see Changes. umask is that of the
// process that will write the files: a new file gets an explicit mode only if its mode differs from the default under that umask. A change
// that cannot be landed becomes an entry of Left and not an error, so that one socket does not block the work of a whole turn.
func (d *Draft) Propose(ignored func(abs string, dir bool) bool, umask fs.FileMode) (*Proposal, error) {
	// One walk for all: between two walks a command in the background could change what was already sorted.
	list, err := d.Changes(ignored)
	if err != nil {
		return nil, err
	}
	h := d.Head()
	p := &Proposal{}
	for i := range list {
		c := &list[i]
		path := filepath.Join(h.Project, filepath.FromSlash(c.Rel))
		leave := func(why string) { p.Left = append(p.Left, c.Rel+": "+why) }
		switch {
		case c.Ignored:
			p.Bulk = append(p.Bulk, *c)
		case c.Now == Special:
			leave("a socket, named pipe or device is not landed")
		// A file in place of a folder, or the reverse, would need a removal and a creation in one transaction, which change sets cannot express.
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
				p.Notes = append(p.Notes, c.Rel+" was written in the project while the draft worked on it. What the draft began from is not known, so both texts are in the proposal.")
			}
		}
	}
	if d.History() {
		p.Notes = append(p.Notes, "Git's history was changed in the draft (a commit, a branch, a checkout). That is not landed: what was committed is proposed here as changes of files, to be committed by the person.")
	}
	if h.Boot != "" && h.Boot != bootID() {
		p.Notes = append(p.Notes, "The computer was restarted before the draft was stored as a whole, so files that were written last may be incomplete. Read the hunks with that in mind.")
	}
	// Landing merges line by line as always, but the reviewer should know that the base is of another branch than the target.
	if now := d.BranchNow(); now != h.Branch {
		p.Notes = append(p.Notes, fmt.Sprintf("The draft was begun on %s, and the project is on %s now; its changes were merged with what is there.", h.Branch, now))
	}
	return p, nil
}

// leadsOut is the target of a link if it is outside of the project, else "". It compares the paths as text and does not resolve links in
// them, as those may exist in the draft only.
func leadsOut(root, at, to string) string {
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(at), to)
	}
	if to = filepath.Clean(to); paths.Within(root, to) {
		return ""
	}
	return to
}

// file converts a change of a file or link to a member of a change set; ok is false if nothing differs.
func (c *Change) file(path string, umask fs.FileMode) (f change.File, ok bool, err error) {
	text, err := c.Before()
	if err != nil {
		return f, false, err
	}
	before, after := side(c.Base.Kind, text, c.Base.Mode), side(c.Now, c.After(), c.Mode)
	// Without the bytes of the base the draft's whole text is proposed as a new file; landing finds that the project has the file and shows
	// both texts. The mode is part of the proposal only if the draft has changed it.
	unknown := c.Base.Kind == File && c.Base.Hash == ""
	if unknown && after.Exists {
		if before = (change.Side{}); after.Mode == c.Base.Mode {
			after.Mode = 0
		}
	}
	f, ok = change.Compare(path, before, after, uint32(umask))
	// Encoding keeps the byte order mark of a file that exists; a new file needs it in its text.
	if f.Kind == change.Create && f.Encoding == string(files.UTF8BOM) {
		f.New = "\ufeff" + f.New
	}
	// An unsaved buffer was never on disk, so its hash would contradict the file that is there.
	if c.Base.Kind == File && !c.Base.Buffer {
		f.BaseHash = c.Base.Hash
	}
	return f, ok, nil
}

// side converts one version of a path to the type of package change. A link's target is not decoded.
func side(kind Kind, b []byte, mode uint32) change.Side {
	if kind == Link {
		return change.Side{Exists: true, Text: string(b), Encoding: change.Link}
	}
	text, encoding := files.Decode(b)
	return change.Side{Exists: kind != None, Text: text, Encoding: string(encoding), Mode: mode}
}

// Summary describes a bulk change for the question about it: "node_modules (1204 files, 14 MB)".
func (c *Change) Summary() string {
	switch {
	case c.Now == None:
		return c.Rel + " (removed)"
	case c.Now == Folder:
		return fmt.Sprintf("%s (%s, %s)", c.Rel, textutil.Plural(c.Count, "file"), size(c.Size))
	}
	return fmt.Sprintf("%s (%s)", c.Rel, size(c.Size))
}

// size formats a number of bytes for people, in powers of 1000. A number has at most four digits before the next unit: 9999 kB, then 10 MB.
func size(n int64) string {
	for _, unit := range []string{"bytes", "kB", "MB"} {
		if n < 10_000 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%d GB", n)
}

// LandFolders creates, removes and chmods folders. It must run after the files have been written. A folder that is not empty is not removed.
// It may run again after a crash. list must be sorted by path, as Changes returns it. After an error it continues with the other folders
// and returns all errors joined.
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
			// The person has changed the mode since the draft began; theirs wins.
			if c.Base.Kind == Folder && uint32(fi.Mode().Perm()) != c.Base.Mode {
				continue
			}
			errs = append(errs, os.Chmod(at, fs.FileMode(c.Mode)))
		}
	}
	for _, c := range slices.Backward(list) { // inner ones first
		if c.Now != None || plainParents(root, c.Rel) != nil {
			continue
		}
		// Remove, never RemoveAll: if the person has put a file into the folder meanwhile, it is not empty (ENOTEMPTY or EEXIST) and stays.
		err := os.Remove(filepath.Join(root, filepath.FromSlash(c.Rel)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// LandBulk moves the accepted bulk changes from the draft's layer into the project. After a crash it can be called again with the same
// list: paths that are no longer in the layer were moved before and are skipped.
func (d *Draft) LandBulk(list []Change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read(func(u upper) error {
		// A path that cannot be moved does not stop the others.
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

// move lands one path of the layer and everything below it. If layer and project both have a folder, it descends, so that files that only
// the project has stay; anything else is replaced as a whole. The recursion passes an empty base, as Record stores none below an ignored
// folder.
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
		return nil // an earlier call, before a crash, has moved it
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
	// The draft removed the folder and created it again: whatever only the project has in it is removed.
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

// plainParents returns an error if a parent of the path is a symbolic link or a file: through a link the change would land somewhere else.
// It detects what has changed since the draft began; a link that appears between this check and the write is not detected.
func plainParents(root, rel string) error {
	for i, r := range rel {
		if r != '/' {
			continue
		}
		at := filepath.Join(root, filepath.FromSlash(rel[:i]))
		if fi, err := os.Lstat(at); err == nil && !fi.IsDir() {
			return fmt.Errorf("%s cannot be landed: %s is not a folder any more", rel, rel[:i])
		}
	}
	return nil
}

// carry moves a path of the layer to its place in the project: by a rename on the same file system, else by a copy beside the target that
// is renamed when it is complete. Overlay marks, set-user-ID and set-group-ID bits and whiteouts do not leave the layer. A Special is not
// moved.
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
				_ = os.Chmod(path, fi.Mode().Perm()) // bulk changes are not read by a person; a set-user-ID program would run with this user's rights for others
			}
			// A whiteout would become a device file in the project, or make the copy fail.
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
	// The copy is made in the target's folder, so that the rename below stays on one file system and no reader sees half of it.
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

// removeAll removes a path of the project, and everything below it, because the draft has removed it. It never removes a repository's data
// (.git), whatever the layer has.
func removeAll(path string) error {
	if inGit(filepath.ToSlash(path)) {
		return nil
	}
	return os.RemoveAll(path)
}
