package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Proposal is what a draft proposes: files that a person reviews hunk by hunk, and the rest, which is accepted or rejected as a whole.
type Proposal struct {
	Files   []change.File // edits, new files, deletions, links, modes; Old is the base of the draft
	Bulk    []Change      // accepted or rejected as a whole: what Git ignores, files larger than files.MaxText, files in place of folders
	Folders []Change      // created, removed or with another mode; landed after the files
	Left    []string      // changes that cannot be landed, each as "path: why", for people
	// Unread means that some of Left could not be read: the draft may have more than is proposed, and must not be removed as empty.
	Unread bool
	Notes  []string // sentences for the reviewer
}

// Empty reports whether there is nothing to land. Left may have entries even then.
func (p *Proposal) Empty() bool { return len(p.Files)+len(p.Bulk)+len(p.Folders) == 0 }

// Err says why a part of the draft could not be read; nil if all of it was.
func (p *Proposal) Err() error {
	if !p.Unread {
		return nil
	}
	return errors.New(strings.Join(p.Left, "; "))
}

// Propose reads the layer and sorts its changes into a Proposal. ignored reports what Git ignores; see Changes. umask is that of the
// process that will write the files: a new file gets an explicit mode only if its mode differs from the default under that umask. A change
// that cannot be landed becomes an entry of Left and not an error, so that one socket does not block the work of a whole turn.
func (d *Draft) Propose(ignored func(abs string, dir bool) bool, umask fs.FileMode) (*Proposal, error) {
	// One walk for all: between two walks a command in the background could change what was already sorted.
	list, repositories, err := d.changes(ignored)
	if err != nil {
		return nil, err
	}
	h := d.Head()
	p := &Proposal{}
	swapped := "" // a folder that took the place of a file, or the reverse: what is below is part of that change
	for i := range list {
		c := &list[i]
		if swapped != "" && strings.HasPrefix(c.Rel, swapped+"/") {
			continue
		}
		path := filepath.Join(h.Project, filepath.FromSlash(c.Rel))
		leave := func(why string) { p.Left = append(p.Left, c.Rel+": "+why) }
		switch {
		case c.Ignored:
			p.Bulk = append(p.Bulk, *c)
		case c.Now == Special:
			leave("a socket, named pipe or device is not landed")
		// A file in place of a folder, or the reverse, would need a removal and a creation in one transaction, which change sets cannot express.
		case c.swaps():
			if err := c.count(); err != nil {
				return nil, err
			}
			p.Bulk, swapped = append(p.Bulk, *c), c.Rel
			if to := leadsOut(h.Project, path, string(c.text)); c.Now == Link && to != "" {
				p.Notes = append(p.Notes, c.Rel+" is a symbolic link out of the project, to "+to+".")
			}
		case c.Now == Folder || c.Base.Kind == Folder:
			p.Folders = append(p.Folders, *c)
		case c.Base.Kind == Special:
			leave("the project's socket, named pipe or device stays as it is")
		case c.Base.Big || c.Size > files.MaxText:
			p.Bulk = append(p.Bulk, *c)
			if fi, err := os.Lstat(path); err == nil && !c.Base.original(path, fi) {
				p.Notes = append(p.Notes, c.Rel+" was changed in the project meanwhile. It is too large to merge, so the project's file stays, and the draft's version is put beside it.")
			}
		default:
			f, ok, err := c.file(path, umask)
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				leave(err.Error())
				p.Unread = true
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
	for _, rel := range repositories {
		p.Notes = append(p.Notes, "Git's history of the repository in "+rel+" was changed in the draft. That is not landed: its files are proposed here, to be committed by the person.")
	}
	d.mu.Lock()
	if d.left != nil {
		p.Notes = append(p.Notes, "An earlier landing of this draft was interrupted: "+d.left.Error()+".")
	}
	d.mu.Unlock()
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

// swaps reports whether the draft has a folder where a file or link was, or the reverse.
func (c *Change) swaps() bool {
	file := func(k Kind) bool { return k == File || k == Link }
	return c.Now == Folder && file(c.Base.Kind) || c.Base.Kind == Folder && file(c.Now)
}

// Summary describes a bulk change for the question about it: "node_modules (1204 files, 14 MB)".
func (c *Change) Summary() string {
	switch {
	case c.Now == None:
		return c.Rel + " (removed)"
	case c.Now == Folder && !c.Ignored && c.Base.Kind == None:
		return c.Rel + "/ (a folder)"
	case c.Now == Folder && !c.Ignored && c.Base.Kind == Folder:
		return fmt.Sprintf("%s/ (mode %04o)", c.Rel, c.Mode)
	case c.swaps() && c.Now == Folder:
		return fmt.Sprintf("%s (%s, %s, in place of a file)", c.Rel, textutil.Plural(c.Count, "file"), size(c.Size))
	case c.swaps() && c.Now == Link:
		return fmt.Sprintf("%s (a link to %s, in place of a folder)", c.Rel, c.text)
	case c.swaps():
		return fmt.Sprintf("%s (%s, in place of a folder)", c.Rel, size(c.Size))
	case c.Now == File && !c.Ignored && c.Base.Kind == File: // larger than files.MaxText: the question is the only place that says it
		return fmt.Sprintf("%s (%s, changed)", c.Rel, size(c.Size))
	case c.Now == File && !c.Ignored:
		return fmt.Sprintf("%s (%s, new)", c.Rel, size(c.Size))
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
