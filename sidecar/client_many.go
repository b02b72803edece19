package main

import (
	"context"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// Several editors may show the same file. What one of them has not saved counts before what the others show; among
// equals the editor that opened the session first does.

// firstDirty chooses among what editors say of a path.
func firstDirty(all []*Server, say func(*Server) (files.Buffer, bool)) (best files.Buffer, ok bool) {
	for _, s := range all {
		b, open := say(s)
		if open && (!ok || b.Dirty && !best.Dirty) {
			best, ok = b, true
		}
	}
	return best, ok
}

// anyBuffer is a document as any editor shows it: what language servers are told.
func (e *Editors) anyBuffer(path string) (files.Buffer, bool) {
	e.mu.Lock()
	all := make([]*Server, 0, len(e.servers))
	for s := range e.servers {
		all = append(all, s)
	}
	e.mu.Unlock()
	return firstDirty(all, func(s *Server) (files.Buffer, bool) {
		if b, ok := s.o.Buffers.Buffer(path); ok {
			return b, true
		}
		return s.knownUnsaved(path)
	})
}

// unsaved are the documents whose text is not the disk's, of all editors.
func (e *Editors) unsaved() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for s := range e.servers {
		for _, b := range s.o.Buffers.Dirty() {
			out = append(out, b.Path)
		}
		out = append(out, s.unsaved.paths()...)
	}
	return out
}

// applyMany writes a set through every editor that has some of it open: each takes its own files, the last step is the
// disk. Where a later step fails the earlier ones are taken back.
func (a sessionApplier) applyMany(ctx context.Context, all []*Server, session string, set *change.Set) error {
	var live []*Server
	next := a.disk
	for _, s := range all {
		c := s.currentClient()
		switch {
		case c.liveBuffers() && c.does(protocol.MethodPillionWorkspaceApplyEdit):
			live = append(live, s)
		case c.readsFiles():
			next = guarded{s, session, next}
		}
	}
	for _, dirty := range []bool{false, true} { // the outermost comes first: those with unsaved lines of these files
		for i := len(live) - 1; i >= 0; i-- {
			if live[i].hasUnsaved(set) == dirty {
				next = through{live[i], session, next}
			}
		}
	}
	return next.Apply(ctx, set)
}

func (s *Server) hasUnsaved(set *change.Set) bool {
	for _, f := range set.Files {
		if b, ok := s.o.Buffers.Buffer(f.Path); ok && b.Dirty {
			return true
		}
	}
	return false
}

// through applies what an editor has open by it, and the rest by next.
type through struct {
	s       *Server
	session string
	next    Applier
}

func (t through) Apply(ctx context.Context, set *change.Set) error {
	if len(set.Files) == 0 {
		return nil
	}
	return t.s.applyEdit(ctx, t.session, set, t.next)
}

// guarded writes by next what an editor that can only be asked does not show differently.
type guarded struct {
	s       *Server
	session string
	next    Applier
}

func (g guarded) Apply(ctx context.Context, set *change.Set) error {
	for _, f := range set.Files {
		if err := g.s.guard(ctx, g.session, f); err != nil {
			return err
		}
	}
	if err := g.next.Apply(ctx, set); err != nil {
		return err
	}
	g.s.wroteDisk(set)
	return nil
}
