package main

import (
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/paths"
)

// An editor with workspace trust says in _meta.pillion.trusted of initialize or of session/new, load and resume
// whether the person trusts the folder. It counts for that folder, in this process, and is not stored.

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
