package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// FileChanges are the files of a change set for the wire, without their texts. Lines count from 1. The list is never nil, which would be null
// on the wire.
func FileChanges(set *change.Set) []protocol.FileChange {
	out := []protocol.FileChange{}
	// While an approval request is open, an editor gets the whole texts with _pillion/change/text.
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

// Info is a change set for the wire.
func Info(c *Change) protocol.ChangeInfo {
	// ByAgent is the empty string in the log; the wire names it.
	source := string(c.Set.Source)
	if c.Set.Source == change.ByAgent {
		source = "agent"
	}
	return protocol.ChangeInfo{ID: c.Set.ID, ToolCallID: c.Call, Title: c.Set.Title, State: string(c.State), Turn: c.turn, Source: source, Undoes: c.Set.Undoes,
		Files: FileChanges(c.Set), Diagnostics: c.Set.Verdict, Evidence: c.Set.Evidence, Kept: slices.Clone(c.kept), Undone: slices.Clone(c.undone)}
}

// excerpted says for each file whether Diffs leaves a part of it out. It adds up sizes as Diffs does, so that an
// editor does not take an excerpt for the whole file.
func excerpted(set *change.Set) []bool {
	out := make([]bool, len(set.Files))
	total := 0
	for i, f := range set.Files {
		size := len(f.Old) + len(f.New)
		if size > maxDiffText {
			old, now := excerpts(f)
			size, out[i] = len(old)+len(now), true
		}
		if total += size; total > maxDiffTotal {
			out[i] = true
		}
	}
	return out
}

// VerdictText is what the change does to the problems, one line and then at most ten problems of each kind, and what was
// run on it. It is "" without either, and says so when the problems are not known: an empty list must not look like a clean one.
func VerdictText(set *change.Set) string {
	return strings.TrimSpace(problemsText(set) + "\n" + visible.Text(set.EvidenceText()))
}

// problemsText is the part of VerdictText about problems; "" where there is no verdict.
func problemsText(set *change.Set) string {
	d := set.Verdict
	if d == nil {
		return ""
	}
	switch d.Certainty {
	case change.Pending:
		return "Problems not checked yet" + Because(d.Reason)
	case change.Unavailable:
		return "Problems cannot be checked" + Because(d.Reason)
	}
	var b strings.Builder
	// The headline begins with "fixes"; here it begins a sentence.
	b.WriteString("F" + strings.TrimPrefix(d.Headline(), "f"))
	if d.Certainty == change.Partial {
		b.WriteString(" (checked in part" + Because(d.Reason) + ")")
	}
	// Ten of each kind are as much as a person reads in an approval request; an editor that knows Pillion has all of
	// them in _meta.
	const most = 10
	list := func(problems []change.Problem, form string) {
		for i, p := range problems {
			if i == most {
				fmt.Fprintf(&b, "\n… and %d more", len(problems)-most)
				break
			}
			fmt.Fprintf(&b, form, p.Path, p.Line, p.Column, p.Severity, p.Message)
		}
	}
	list(d.Introduced, "\n%s:%d:%d: %s: %s")
	list(d.Fixed, "\nfixed: %s:%d:%d: %s: %s")
	return b.String()
}

// Because is a reason as the end of a statement, ": reason"; "" without one.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
