package review

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// Limits of a change's diffs in bytes of text: of one file that is shown whole (beyond it only the changed places
// are), and of all files (beyond it they are only named). One message must stay below what editors read.
const (
	maxDiffText  = 4 << 20
	maxDiffTotal = 10 << 20
)

// Diffs is a change as ACP shows it: one diff for each file.
func Diffs(set *change.Set) []protocol.ToolCallContent {
	var out []protocol.ToolCallContent
	total := 0
	for _, f := range set.Files {
		d := &protocol.Diff{Path: f.Path, NewText: f.New}
		old := f.Old
		if len(f.Old)+len(f.New) > maxDiffText || f.OldRef != "" || f.NewRef != "" { // or its texts are kept elsewhere
			old, d.NewText = excerpts(f)
		}
		if total += len(old) + len(d.NewText); total > maxDiffTotal {
			out = append(out, protocol.TextOfCall(fmt.Sprintf("%s %s: too large to show together with the others", f.Kind, f.Path)))
			continue
		}
		if f.Kind != change.Create {
			d.OldText = &old
		}
		switch f.Kind {
		case change.Delete:
			d.NewText = ""
		case change.Rename:
			out = append(out, protocol.TextOfCall(fmt.Sprintf("Rename %s to %s", f.Path, f.NewPath)))
			d.Path = f.NewPath
			if f.Old == f.New {
				continue
			}
		}
		out = append(out, protocol.ToolCallContent{Type: "diff", Value: d})
	}
	return out
}

// excerpts are the changed places of a file that is too large to show whole, each under a line that says where it is, at most maxDiffText
// bytes together. The two sides have the same number of such lines, so that a client's diff shows them as unchanged.
func excerpts(f change.File) (old, now string) {
	var a, b strings.Builder
	for _, h := range f.Hunks {
		head := fmt.Sprintf("… line %d …\n", h.OldStart)
		if a.Len()+b.Len()+len(h.OldText)+len(h.NewText) > maxDiffText {
			a.WriteString("… and more …\n")
			b.WriteString("… and more …\n")
			break
		}
		a.WriteString(head + h.OldText)
		b.WriteString(head + h.NewText)
	}
	return a.String(), b.String()
}

// CombinedDiff is a whole change set as one diff, for clients that show the first one only. head comes above it, as
// added lines. unified is its UnifiedText, and cwd the folder below which paths are shown relative.
//
// One file keeps its own two texts, so that the client can show them as it shows every diff. Several files become added
// lines that hold a unified diff: a client compares two long texts again, and lines of a deleted file that are equal to
// lines of a created one would be drawn as one file's, with no sign of which is removed.
func CombinedDiff(set *change.Set, head, unified, cwd string) protocol.ToolCallContent {
	if head != "" {
		head += "\n"
	}
	if len(set.Files) != 1 {
		return diffContent(filepath.Join(cwd, fmt.Sprintf("%d files", len(set.Files))), "", head+unified)
	}
	f := set.Files[0]
	title := fileTitle(f, cwd)
	old, now := f.Old, f.New
	if len(old)+len(now) > maxDiffText || f.OldRef != "" || f.NewRef != "" {
		old, now = excerpts(f)
	}
	switch f.Kind {
	case change.Create:
		old = ""
	case change.Delete:
		now = ""
	}
	// Both sides have other words, so that the path is in the diff however little context a client shows.
	return diffContent(f.Path, "--- "+title+"\n"+endLine(old), head+"+++ "+title+"\n"+endLine(now))
}

// diffContent is one diff of a tool call.
func diffContent(path, old, now string) protocol.ToolCallContent {
	return protocol.ToolCallContent{Type: "diff", Value: &protocol.Diff{Path: path, OldText: &old, NewText: now}}
}

// maxUnified is how many bytes of unified text a change is shown with where a client cannot show diffs. More is not
// readable in a list of messages, and what is left out is named.
const maxUnified = 128 << 10

// UnifiedText is a change set as a unified diff for people, each file under a line that says what happens to it. Beyond
// maxUnified bytes the other files are only named.
func UnifiedText(set *change.Set, cwd string) string {
	var b strings.Builder
	for _, f := range set.Files {
		b.WriteString("=== " + fileTitle(f, cwd) + "\n")
		old, now := f.Old, f.New
		if len(old)+len(now) > maxDiffText || f.OldRef != "" || f.NewRef != "" {
			old, now = excerpts(f)
		}
		switch f.Kind {
		case change.Create:
			old = ""
		case change.Delete:
			now = ""
		}
		text := ""
		if f.Kind == change.Edit && old == f.Old && now == f.New && !f.Binary && !f.Links() {
			text = f.Unified(func(string) string { return "a" }) // of the comparison that made its hunks
		} else {
			text = diff.Unified("a", "b", old, now)
		}
		_, text, _ = strings.Cut(text, "\n") // the two lines of names: the title has them
		_, text, _ = strings.Cut(text, "\n")
		if b.Len()+len(text) > maxUnified {
			added, removed := diff.Compute(old, now).Stat()
			fmt.Fprintf(&b, "(too long to show here: %d lines added, %d removed)\n", added, removed)
			continue
		}
		b.WriteString(text)
	}
	return b.String()
}

// fileTitle is what happens to a file, in one line: "edit a.go", "rename a.go to b.go". A path in cwd is relative to it.
func fileTitle(f change.File, cwd string) string {
	title := string(f.Kind) + " " + relativePath(f.Path, cwd)
	if f.NewPath != "" {
		title += " to " + relativePath(f.NewPath, cwd)
	}
	return visible.Text(title)
}

// relativePath is a path below cwd relative to it.
func relativePath(path, cwd string) string {
	if rel, err := filepath.Rel(cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// endLine gives a text the line break that its last line may lack, so that what follows begins a line of its own.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
