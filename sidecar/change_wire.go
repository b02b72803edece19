package main

import (
	"path/filepath"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
)

func fileChanges(set *change.Set) []protocol.FileChange {
	out := []protocol.FileChange{}
	parts := excerpted(set)
	for i, f := range set.Files {
		x := protocol.FileChange{Excerpt: parts[i], URI: editors.PathURI(f.Path), Kind: string(f.Kind), BaseVersion: f.BaseBuffer, BaseSha256: f.BaseHash, Hunks: []protocol.Hunk{}}
		if f.NewPath != "" {
			x.NewURI = editors.PathURI(f.NewPath)
		}
		for _, h := range f.Hunks {
			x.Hunks = append(x.Hunks, protocol.Hunk{ID: h.ID, OldStart: int64(h.OldStart), OldLines: int64(h.OldLines), NewStart: int64(h.NewStart), NewLines: int64(h.NewLines)})
		}
		out = append(out, x)
	}
	return out
}

func changeDiagnostics(set *change.Set) *protocol.ChangeDiagnostics {
	d := set.Verdict
	if d == nil {
		return nil
	}
	problems := func(list []change.Problem) []protocol.Problem {
		out := []protocol.Problem{}
		for _, p := range list {
			out = append(out, protocol.Problem{Path: filepath.Clean(p.Path), Line: int64(p.Line), Column: int64(p.Column), Severity: p.Severity, Source: p.Source, Code: p.Code, Message: p.Message})
		}
		return out
	}
	return &protocol.ChangeDiagnostics{Certainty: string(d.Certainty), Reason: d.Reason, Introduced: problems(d.Introduced), Fixed: problems(d.Fixed), Unchanged: int64(d.Unchanged)}
}
