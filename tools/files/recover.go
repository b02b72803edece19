package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// state is how far a step had come when its process ended, as far as the disk shows it.
type state int

// The states of a step.
const (
	ready   state = iota // not applied, and all that applying needs is there
	unready              // not applied; its temporary file is missing or incomplete
	applied              // done
	foreign              // the path holds neither the old nor the new bytes: another program wrote it
)

// recover finishes the plan when every missing step can still be applied, and otherwise rolls back what was done. A plan of which
// no step is done is rolled back: its tool call did not report success. A file that another program has changed since is never
// overwritten; its old text stays in the backup, which Detail names. recover may be called again after an error.
func (p *plan) recover() (Recovered, error) {
	defer p.dirs.Close()
	r := Recovered{ID: p.ID, Files: p.paths()}
	// The commit had succeeded, and only its backups were left to remove. Files may have been edited since, so comparing them
	// would only mislead.
	if p.Applied {
		p.cleanUp()
		r.Outcome = Finished
		return r, nil
	}
	states := make([]state, len(p.Steps))
	done, stuck := 0, 0 // steps that are applied; steps that cannot be applied any more
	for i := range p.Steps {
		st, err := p.state(&p.Steps[i])
		if err != nil {
			return r, err
		}
		states[i] = st
		switch st {
		case applied:
			done++
		case unready, foreign:
			stuck++
		}
	}
	if done > 0 && stuck == 0 {
		t := &transaction{plan: p}
		for i := range p.Steps {
			if states[i] != ready {
				continue
			}
			s := &p.Steps[i]
			if s.Backup != "" {
				if at, err := p.at(s.Backup); err == nil {
					os.Remove(at) // apply links it again, and would fail if it exists
				}
			}
			if err := t.apply(s); err != nil {
				return r, err
			}
		}
		p.syncDirs()
		p.cleanUp()
		r.Outcome = Finished
		return r, nil
	}
	// Roll back, last step first, as in giveUp. A file that was being overwritten in place may be torn, which counts as ready; its
	// old bytes are in the journal, so it is undone like an applied one. A Backup that is emptied here survives cleanUp.
	var left []string
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := &p.Steps[i]
		switch {
		case states[i] == applied || states[i] == ready && s.Kind == stepInPlace:
			if err := p.undo(s); err != nil {
				why := reason(err).Error()
				if p.exists(s.Backup) {
					why += "; its text before is in " + s.Backup
				}
				left = append(left, s.Path+" ("+why+")")
				s.Backup = ""
			}
		// Without a temporary file the step was applied, and the file changed since. With one it is as the person left it, and its backup
		// is needed only where the commit has changed other files.
		case states[i] == foreign && (done > 0 || !p.exists(s.Temp)) && p.exists(s.Backup):
			left = append(left, s.Path+" (was changed since; its text before is in "+s.Backup+")")
			s.Backup = ""
		}
	}
	p.syncDirs()
	p.cleanUp()
	for i := len(p.Dirs) - 1; i >= 0; i-- {
		if at, err := p.at(p.Dirs[i]); err == nil {
			os.Remove(at) // only when empty
		}
	}
	r.Outcome = RolledBack
	if len(left) > 0 {
		r.Outcome, r.Detail = Left, strings.Join(left, "; ")
	}
	return r, nil
}

// state compares a step with the disk: temporary file, backup, and the hash of the file that has the name. The order of the cases
// matters: a step whose old and new bytes are equal, such as a change of mode, matches both ready and applied. An error is of the
// temporary file; a path that cannot be read is foreign.
func (p *plan) state(s *step) (state, error) {
	x, err := p.placesOf(s)
	if err != nil {
		// Its folder is gone, or a link has its name: nothing of it may be touched.
		return foreign, nil
	}
	if s.Kind == stepLink {
		target, err := os.Readlink(x.path)
		switch {
		case err == nil && target == s.Target:
			return applied, nil
		case errors.Is(err, fs.ErrNotExist):
			return ready, nil
		}
		return foreign, nil
	}
	now, err := hashAt(x.path)
	if err != nil {
		return foreign, nil // there is a folder now, or it cannot be read
	}
	staged, err := hashAt(x.temp)
	if err != nil {
		return foreign, err
	}
	switch s.Kind {
	case stepRename:
		to, err := os.Lstat(x.to)
		switch {
		case err == nil && now == "":
			return applied, nil
		case err == nil && to != nil:
			return foreign, nil
		case now == "":
			return foreign, nil
		}
		return ready, nil
	case stepRemove:
		_, err := os.Lstat(x.backup)
		switch {
		case err == nil: // the file was renamed to its backup; what has the name now was made later
			return applied, nil
		case now == s.OldHash || s.OldHash == "":
			return ready, nil
		}
		return foreign, nil
	case stepInPlace:
		b, err := readName(x.path)
		switch {
		case err != nil:
			return foreign, nil
		case bytes.Equal(b, s.New):
			return applied, nil
		case torn(b, s.Old, s.New):
			return ready, nil
		}
		return foreign, nil
	}
	// stepCreate and stepReplace. The temporary file disappears with the rename that applies the step.
	backed := false
	if s.Backup != "" {
		_, err := os.Lstat(x.backup)
		backed = err == nil
	}
	switch {
	case s.Temp != "" && staged == s.NewHash && now == s.OldHash:
		return ready, nil
	case staged == "" && now == s.NewHash && (backed || s.OldHash != s.NewHash):
		return applied, nil
	case now == s.OldHash:
		return unready, nil
	}
	return foreign, nil
}

// exists reports whether there is something at a path; not at an empty one.
func (p *plan) exists(path string) bool {
	if path == "" {
		return false
	}
	at, err := p.at(path)
	if err != nil {
		return false
	}
	_, err = os.Lstat(at)
	return err == nil
}

// hashAt is the hash of a file's bytes, "" when there is none or path is empty.
func hashAt(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	// A link is no file, whatever it leads to. Its mark is no hash, so no step takes it for the old or the new bytes.
	if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		return "a link", nil
	}
	b, err := readName(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return Hash(b), nil
}

// sector is the unit, in bytes, that a disk writes whole or not at all. What the kernel writes in one piece before it heeds a kill (a page) is
// a multiple of it.
const sector = 512

// torn reports whether b is what interrupted overwrites leave: sectors of the old and of the new bytes. A kill -9 leaves the beginning of the
// new bytes before the old ones. A kill while that is taken back, at the next start or by giveUp, leaves a third part, and a power failure
// leaves any of them. Anything else was written by another program and must not be touched. The length is between the two, because
// overwrite truncates last.
func torn(b, old, new []byte) bool {
	if len(b) > max(len(old), len(new)) || len(b) < min(len(old), len(new)) {
		return false
	}
	// What is there when one of them has been written over the other, before the file is truncated.
	over := func(x, y []byte) []byte { return append(slices.Clip(x), y[min(len(x), len(y)):]...) }
	olds, news := over(old, new), over(new, old)
	k := 0 // the two agree with b up to here: the one boundary that may be inside of a sector
	for k < len(b) && b[k] == news[k] {
		k++
	}
	if bytes.Equal(b[k:], olds[k:len(b)]) {
		return true
	}
	for at := 0; at < len(b); at += sector {
		end := min(at+sector, len(b))
		if !bytes.Equal(b[at:end], olds[at:end]) && !bytes.Equal(b[at:end], news[at:end]) {
			return false
		}
	}
	return true
}
