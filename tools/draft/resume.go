package draft

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/tools/files"
)

// LandBulk moves one path at a time, and while it does, a folder of the project holds a file or folder that is neither the old nor the new one
// (see besides). It notes each such step in a file of the draft first, so that the next start can put in order what a kill leaves: Acquire and
// Recover call resume. The notes do not wait for the disk, so after a power failure the draft's folder may not have them.

// stepsFile is in the draft's folder while LandBulk runs. It has a line for each step; only the last one can be unfinished.
const stepsFile = "landing.jsonl"

// landStep is a line of stepsFile.
type landStep struct {
	Rel    string `json:"rel"`              // relative to the project, with slashes
	Aside  string `json:"aside"`            // the name of besides, in the folder of Rel
	Mine   string `json:"mine,omitempty"`   // mark of the draft's version; empty: the path is removed
	Theirs string `json:"theirs,omitempty"` // mark of the project's version; empty: it has none
	Whole  bool   `json:"whole,omitempty"`  // Theirs is replaced whatever it is, see move
}

// mark tells two files apart that may have the same name: it stays the same when a file is renamed, and changes when it is written.
func mark(fi fs.FileInfo) string {
	inode, _, _ := strings.Cut(fileID(fi), ".") // the rest is the ctime, which a rename changes
	return fmt.Sprintf("%s %d %d %v", inode, fi.Size(), fi.ModTime().UnixNano(), fi.Mode().Type())
}

// markAt is the mark of what is at a path; "" if there is nothing.
func markAt(path string) string {
	fi, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	return mark(fi)
}

// beginSteps opens stepsFile for LandBulk. The caller holds d.mu.
func (d *Draft) beginSteps() (err error) {
	d.steps, err = os.OpenFile(d.path(stepsFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	return err
}

// endSteps removes stepsFile. The caller holds d.mu.
func (d *Draft) endSteps() {
	d.steps.Close()
	d.steps = nil
	_ = os.Remove(d.path(stepsFile)) // if it stays, resume finds that its last step has ended
}

// noteStep writes down the step that begins now. The caller holds d.mu, and has opened stepsFile.
func (d *Draft) noteStep(s landStep) error {
	b, err := json.Marshal(s)
	if err == nil {
		_, err = d.steps.Write(append(b, '\n')) // in one call, so that a kill leaves a whole line or none
	}
	if err != nil {
		return fmt.Errorf("%s cannot be landed: the step cannot be written down: %w", s.Rel, err)
	}
	return nil
}

// crash is set by tests, which end the process at a named point of LandBulk; nil otherwise.
var crash func(point string)

// die is such a point. Outside of tests it does nothing.
func die(point string) {
	if crash != nil {
		crash(point)
	}
}

// Recover puts in order what a killed landing of any draft in dir has left in projects; call it when a process starts. Drafts that somebody
// works in are left alone. The error is for people: it says what they have to look at.
func Recover(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	var errs []error
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if _, err := os.Lstat(filepath.Join(at, stepsFile)); err != nil {
			continue // without a look at the draft itself: every start comes here
		}
		d, err := Load(at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		release, err := d.Acquire()
		if err != nil {
			continue
		}
		d.mu.Lock()
		errs = append(errs, d.left)
		d.mu.Unlock()
		release()
	}
	return errors.Join(errs...)
}

// resume ends the step in which a landing was killed. What the project's folder holds under the name of besides is either its old version,
// which goes because the person has accepted its replacement, or the draft's, which goes back to the layer, from where it can be landed again.
func (d *Draft) resume() error {
	b, err := os.ReadFile(d.path(stepsFile))
	if err != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if missing(d.head.Project) {
		return nil // on a disk that is not mounted now: the next start looks again
	}
	lines := bytes.Split(b, []byte("\n"))
	lines = lines[:len(lines)-1] // what follows the last line's end is a line of a step that has not begun
	steps := make([]landStep, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &steps[i]); err != nil {
			return fmt.Errorf("%s of the draft %s cannot be read: %w", stepsFile, d.head.ID, err)
		}
	}
	if n := len(steps); n > 0 {
		err = d.endStep(steps[n-1])
	}
	return errors.Join(err, d.forgetLanded(steps), os.Remove(d.path(stepsFile)))
}

// forgetLanded takes what was moved out of a clone from its manifest. Otherwise it would count as removed in the draft, and landing the rest
// would remove it from the project. The caller holds d.mu.
func (d *Draft) forgetLanded(steps []landStep) error {
	if d.head.View == Overlay {
		return nil // a layer has a mark for what was removed
	}
	m, err := d.copiedFrom()
	if err != nil {
		return err
	}
	rest := *m
	rest.Entries = maps.Clone(m.Entries)
	for _, s := range steps {
		if s.Mine != "" && markAt(d.path("tree", filepath.FromSlash(s.Rel))) == "" {
			maps.DeleteFunc(rest.Entries, func(rel string, _ stamp) bool { return rel == s.Rel || strings.HasPrefix(rel, s.Rel+"/") })
		}
	}
	text, err := json.Marshal(&rest)
	if err != nil {
		return err
	}
	d.copied.Lock()
	d.copied.m = &rest
	d.copied.Unlock()
	return replace(d.path("manifest.json"), text)
}

// endStep ends a step that a kill has interrupted. The caller holds d.mu.
func (d *Draft) endStep(s landStep) error {
	// What has that name is removed below. An empty one would be the folder itself.
	if !strings.HasPrefix(s.Aside, ".pillion-") || strings.Contains(s.Aside, "/") {
		return fmt.Errorf("%s was being landed when Pillion was ended, under a name that is not known; look for .pillion-*.new beside it", s.Rel)
	}
	var held files.Anchors
	defer held.Close()
	at, err := held.At(projectPath(d.head.Project, s.Rel))
	if err != nil {
		return refused(s.Rel, err)
	}
	u, err := d.layer(nil)
	if err != nil {
		return err
	}
	staged, mine := filepath.Join(filepath.Dir(at), s.Aside), u.path(s.Rel)
	fi, err := os.Lstat(staged)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A copy has taken its place, and the layer's was still to go. If it was moved, nothing is there.
		if s.Mine != "" && markAt(at) == s.Mine {
			return os.RemoveAll(mine)
		}
		return nil
	case err != nil:
		return refused(s.Rel, err)
	case s.Mine != "" && mark(fi) == s.Mine:
		// Not exchanged yet. A file system without an exchange may have removed the old version already; then landing again makes it whole.
		if markAt(mine) != "" {
			return os.RemoveAll(staged)
		}
		if copied, err := carry(staged, mine); err != nil || !copied {
			return err
		}
		return os.RemoveAll(staged)
	case s.Whole && (s.Mine == "" || markAt(at) == s.Mine), mark(fi) == s.Theirs && d.replaced(s.Rel, staged, fi):
		if s.Mine != "" {
			err = os.RemoveAll(mine)
		}
		return errors.Join(err, os.RemoveAll(staged))
	case s.Mine != "" && markAt(at) != s.Mine:
		// A copy that was not complete, as its mark is noted only then. The layer has all of it.
		if markAt(mine) != "" {
			return os.RemoveAll(staged)
		}
		return fmt.Errorf("%s was being landed when Pillion was ended, and was changed since; its other version is beside it as %s", s.Rel, filepath.Base(staged))
	case s.Mine == "":
		// The person wrote to it while it was being removed.
		if err := renameNew(staged, at); err != nil {
			return fmt.Errorf("%w; the version that was to be removed is beside it as %s", refused(s.Rel, err), filepath.Base(staged))
		}
		return nil
	}
	// The person wrote to it while it was being replaced: theirs goes back.
	if err := swap(staged, at); err != nil {
		return refused(s.Rel, err)
	}
	beside, err := d.setBeside(s.Rel, staged, at)
	if beside {
		return errors.Join(err, os.RemoveAll(mine))
	}
	// It has no place there, so landing again must find it in the draft.
	if markAt(mine) == "" {
		if _, e := carry(staged, mine); e != nil {
			return errors.Join(err, e)
		}
	}
	return errors.Join(err, os.RemoveAll(staged))
}

// replaced reports whether all that a replaced path has is what the draft began from. The mark of a folder says nothing about what is in it.
func (d *Draft) replaced(rel, staged string, fi fs.FileInfo) bool {
	return !fi.IsDir() || d.began(rel, d.bases[rel], staged, fi)
}
