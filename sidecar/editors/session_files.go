package editors

import (
	"context"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// Applier writes an accepted change set; it has builtin.Applier's shape.
type Applier interface {
	Apply(ctx context.Context, set *change.Set) error
}

// sessionFiles are the open documents of whichever editors have the session at the moment of the question: an editor may come or go during a
// turn.
type sessionFiles struct {
	r       *Registry
	session string
}

// Buffer implements files.Buffers. An editor that reports its buffers is answered from memory. A generic one is asked:
// where its text differs from the disk's, it is a buffer with unsaved changes, and that is what the person sees.
func (f sessionFiles) Buffer(path string) (files.Buffer, bool) {
	all, session := f.r.all(f.session)
	return firstDirty(all, func(ed *Editor) (files.Buffer, bool) { return ed.docs.file(session, path) })
}

// Dirty implements files.Buffers. A generic editor cannot be asked for a list.
func (f sessionFiles) Dirty() []files.Buffer {
	all, _ := f.r.all(f.session)
	var out []files.Buffer
	for _, ed := range all {
		if ed.Client().liveBuffers() {
			out = append(out, ed.Buffers.Dirty()...)
		}
	}
	return out
}

// sessionApplier writes each file through the session's editor that shows it, and the rest through disk. Which editors there are is looked
// up at each call.
type sessionApplier struct {
	r       *Registry
	session string
	disk    Applier
}

// CanApply implements builtin.ApplyChecker: what Apply would refuse because of unsaved text is refused before a person is
// asked about it. It asks no editor: a tool has opened the file just now, and what the editor showed then is known.
func (a sessionApplier) CanApply(set *change.Set) error {
	all, _ := a.r.all(a.session)
	for _, ed := range all {
		if ed.Client().liveBuffers() {
			continue
		}
		for _, f := range set.Files {
			if ed.docs.unsaved.has(f.Path) {
				return errUnsavedInEditor(ed, f.Path)
			}
		}
	}
	return refuseElsewhere(all, set)
}

// genericVerdictWait is how long a generic client's approval request waits for the verdict. Most draw a request once and
// nothing that comes later; the card shows the proposal meanwhile. Longer, and a person would think it hangs.
const genericVerdictWait = 10 * time.Second

// VerdictWait implements builtin.VerdictWaiter. It is 0, the usual wait, where all editors understand a verdict that comes
// after the request.
func (a sessionApplier) VerdictWait() time.Duration {
	all, _ := a.r.all(a.session)
	if slices.ContainsFunc(all, func(ed *Editor) bool { return !ed.Client().ShowsHunks() }) {
		a.r.mu.Lock()
		defer a.r.mu.Unlock()
		return a.r.verdictWait
	}
	return 0
}

// SetVerdictWait says how long requests to generic clients wait for a verdict, instead of genericVerdictWait.
func (r *Registry) SetVerdictWait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdictWait = d
}

// refuseElsewhere fails for a set with a file that Vim or Emacs has unsaved and that no editor of the session reports as
// an open buffer: what is reported is known exactly, and a change of it is applied to the buffer. A session whose
// editors all report their buffers, as our own plugins do, is not looked at.
func refuseElsewhere(all []*Editor, set *change.Set) error {
	if !slices.ContainsFunc(all, func(ed *Editor) bool { return !ed.Client().liveBuffers() }) {
		return nil
	}
	_, rest := split(set, func(f change.File) bool {
		return slices.ContainsFunc(all, func(ed *Editor) bool {
			_, open := ed.Buffers.Buffer(f.Path)
			return open && ed.Client().liveBuffers()
		})
	})
	return refuseUnsavedElsewhere(rest)
}

// Apply implements Applier: open documents through the editor, everything else through the disk.
func (a sessionApplier) Apply(ctx context.Context, set *change.Set) error {
	all, session := a.r.all(a.session)
	// Again, after CanApply: the person may have typed while the question was open, and what is undone or restored is
	// never asked about.
	if err := refuseElsewhere(all, set); err != nil {
		return err
	}
	switch len(all) {
	case 0:
		return a.disk.Apply(ctx, set)
	case 1:
	default:
		return a.applyMany(ctx, all, session, set)
	}
	ed := all[0]
	c := ed.Client()
	// The strongest way that the client has: its own buffers under their versions, else its writes between two
	// comparisons, else the disk after a comparison, else the disk with its hashes alone.
	switch {
	case c.liveBuffers() && c.Does(protocol.MethodPillionWorkspaceApplyEdit):
		return liveWriter{ed}.applyEdit(ctx, session, set, a.disk)
	case c.writesFiles():
		return fsWriter{ed}.writeFiles(ctx, session, set, a.disk)
	case c.readsFiles():
		// It shows what is unsaved but cannot write: guard against it, then the disk.
		for _, f := range set.Files {
			if _, err := (fsWriter{ed}).guard(ctx, session, f); err != nil {
				return err
			}
		}
		if err := a.disk.Apply(ctx, set); err != nil {
			return err
		}
		ed.docs.wroteDisk(set)
		return nil
	}
	return a.disk.Apply(ctx, set)
}

// split divides a set in two: the files that theirs accepts, and the rest. Both keep the set's id and title; either may have no files.
func split(set *change.Set, theirs func(change.File) bool) (editor, disk *change.Set) {
	e, d := *set, *set
	e.Files, d.Files = nil, nil
	for _, f := range set.Files {
		if theirs(f) {
			e.Files = append(e.Files, f)
		} else {
			d.Files = append(d.Files, f)
		}
	}
	return &e, &d
}

// firstDirty chooses among what several editors show of a path: what one of them has not saved counts before what the others show; among
// equals the first of all does, the editor that opened the session first.
func firstDirty(all []*Editor, say func(*Editor) (files.Buffer, bool)) (best files.Buffer, ok bool) {
	for _, ed := range all {
		b, open := say(ed)
		if open && (!ok || b.Dirty && !best.Dirty) {
			best, ok = b, true
		}
	}
	return best, ok
}

// applyMany writes a set through every editor that has some of it open: each takes its own files, the last step is the
// disk. Where a later step fails the earlier ones are taken back.
func (a sessionApplier) applyMany(ctx context.Context, all []*Editor, session string, set *change.Set) error {
	// The appliers are nested, each writes its own files and hands the rest on: a failure of an inner one makes the outer
	// ones take back what they have done, so that a set over several editors is all or nothing too.
	var live []*Editor
	next := a.disk
	for _, ed := range all {
		c := ed.Client()
		switch {
		case c.liveBuffers() && c.Does(protocol.MethodPillionWorkspaceApplyEdit):
			live = append(live, ed)
		case c.readsFiles():
			next = guarded{ed, session, next}
		}
	}
	for _, dirty := range []bool{false, true} { // the outermost comes first: those with unsaved lines of these files
		for i := len(live) - 1; i >= 0; i-- {
			if live[i].Buffers.hasUnsaved(set) == dirty {
				next = through{live[i], session, next}
			}
		}
	}
	return next.Apply(ctx, set)
}

// hasUnsaved reports whether one of a set's files has unsaved lines in this editor: it then writes before the others.
func (b *Buffers) hasUnsaved(set *change.Set) bool {
	for _, f := range set.Files {
		if d, ok := b.Buffer(f.Path); ok && d.Dirty {
			return true
		}
	}
	return false
}

// through applies what an editor has open by it, and the rest by next.
type through struct {
	ed      *Editor
	session string
	next    Applier
}

// Apply implements Applier.
func (t through) Apply(ctx context.Context, set *change.Set) error {
	if len(set.Files) == 0 {
		return nil
	}
	return liveWriter{t.ed}.applyEdit(ctx, t.session, set, t.next)
}

// guarded writes by next what an editor that can only be asked does not show differently.
type guarded struct {
	ed      *Editor
	session string
	next    Applier
}

// Apply implements Applier: all files are compared before the first is written.
func (g guarded) Apply(ctx context.Context, set *change.Set) error {
	for _, f := range set.Files {
		if _, err := (fsWriter{g.ed}).guard(ctx, g.session, f); err != nil {
			return err
		}
	}
	if err := g.next.Apply(ctx, set); err != nil {
		return err
	}
	g.ed.docs.wroteDisk(set)
	return nil
}
