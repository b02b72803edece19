package main

import (
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
