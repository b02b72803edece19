package builtin

import (
	"maps"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// show reports the set and its state on the call's card. The report is also what the event log stores, so a state that is not shown
// is not there after a restart; only Writing is reported elsewhere, without the metadata.
func (c changes) show(call *tools.Call, set *change.Set, state change.State) {
	call.Report(tools.Update{Title: set.Title, Metadata: c.metadata(set, nil), Locations: locations(set), Change: set, ChangeState: state})
}

// locations are the places at which an editor that follows the agent opens the files: each file at its first hunk.
func locations(set *change.Set) []tools.Location {
	var out []tools.Location
	for _, f := range set.Files {
		l := tools.Location{Path: f.Path}
		if f.Kind == change.Rename {
			l.Path = f.NewPath
		}
		for _, h := range f.Hunks {
			if h.OldLines+h.NewLines > 0 {
				// The first hunk with lines: a rename's own hunk has none. A deletion at the top of a file starts at line 0.
				l.Line = max(h.NewStart, 1)
				break
			}
		}
		out = append(out, l)
	}
	return out
}

// maxPatch bounds the unified diff of one file in the metadata, in bytes: it is stored with the call and sent to editors with each
// state of the card. The change set itself has the whole text.
const maxPatch = 256 << 10

// metadata has the keys of OpenCode's edit tools, so that its plugins and clients understand Pillion's edits: diff for all files,
// filediff for the first, files for each. Patches are cut at a line end, since half a line would not parse. more is added last and
// may replace keys.
func (c changes) metadata(set *change.Set, more map[string]any) map[string]any {
	var all strings.Builder
	list := make([]map[string]any, 0, len(set.Files))
	for _, f := range set.Files {
		patch := f.UnifiedStart(c.rel, maxPatch)
		if len(patch) > maxPatch {
			patch = patch[:strings.LastIndexByte(patch[:maxPatch], '\n')+1] + "… (cut; the whole is in the change set)\n"
		}
		// Whole patches only, so the sum may exceed the limit by one of them.
		if all.Len() < maxPatch {
			all.WriteString(patch)
		}
		added, removed := f.Stat()
		m := map[string]any{
			"filePath": f.Path, "relativePath": c.rel(f.Path), "type": fileType(f.Kind), "patch": patch, "additions": added, "deletions": removed,
		}
		if f.Kind == change.Rename {
			m["movePath"] = f.NewPath
		}
		list = append(list, m)
	}
	out := map[string]any{"diff": all.String(), "files": list}
	if len(list) > 0 {
		f := list[0]
		out["filediff"] = map[string]any{"file": f["filePath"], "patch": f["patch"], "additions": f["additions"], "deletions": f["deletions"]}
	}
	maps.Copy(out, more)
	return out
}

// fileType is OpenCode's name for what happens to a file, as its patch tool has it in the metadata.
func fileType(k change.Kind) string {
	switch k {
	case change.Create:
		return "add"
	case change.Delete:
		return "delete"
	case change.Rename:
		return "move"
	}
	return "update"
}

// result tells the model what became of its proposal: what was written, which hunks the person rejected or edited, what formatters
// changed, and the problems. It does not repeat the text, which the model has just written. delta is nil where no server checked.
func (c changes) result(p proposal, d *change.Decided, done *carriedOut, delta *lspbridge.Delta) tools.Result {
	var sb strings.Builder
	said := d.Report(c.rel)
	if said != "" && decidedInPart(d) {
		sb.WriteString("The change was applied in part.")
	} else {
		sb.WriteString(p.done)
	}
	for _, part := range append([]string{p.note, said}, done.notes...) {
		if part != "" {
			sb.WriteString("\n\n" + part)
		}
	}
	sb.WriteString(problemText(delta, done.set))
	// The metadata describes what was written, which may be less than what was proposed.
	meta := c.metadata(done.set, p.meta)
	if decidedInPart(d) {
		meta["partly"] = true
	}
	byFile := map[string]any{}
	if delta != nil {
		for _, r := range delta.Files {
			byFile[r.Path] = append([]change.Problem{}, r.Items...) // a list, never null
		}
		meta["certainty"] = string(delta.Certainty)
	}
	meta["diagnostics"] = byFile
	return tools.Result{Title: done.set.Title, Output: sb.String(), Metadata: meta, Locations: locations(done.set)}
}

// decidedInPart reports whether some hunk was not written as proposed: rejected, or edited by the person.
func decidedInPart(d *change.Decided) bool {
	for _, r := range d.Rulings {
		if r.Decision.Kind != change.Accept {
			return true
		}
	}
	return false
}
