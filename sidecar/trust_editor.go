package main

import (
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/paths"
)

// An editor with workspace trust says in _meta.pillion.trusted of initialize or of session/new, load and resume
// whether the person trusts the folder. It counts for that folder, in this process, and is not stored.

// trust passes the editor's word on, the session's before that of initialize, and adds to the note what the person
// must know.
func (s *Server) trust(cwd string, said *bool, note string) string {
	if s.o.Trust == nil || checkDir("cwd", cwd) != nil {
		return note
	}
	if said == nil {
		said = s.editor.Client().Trusted
	}
	return joinNotes(note, s.o.Trust(cwd, said))
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// editorTrust is the Server's Trust. What is held back is told once in the life of the process.
func (p *workplace) editorTrust(cwd string, said *bool) string {
	if said != nil {
		p.trustFor(cwd, *said)
	}
	c, _ := p.config(cwd)
	root := trust.RealPath(paths.Worktree(cwd))
	if !p.trust.FirstNotice(root, trust.Digest(c.Held())) {
		return ""
	}
	return trust.Notice(c, root, said != nil)
}
