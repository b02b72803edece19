package review

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
)

// How many bytes of text a change's diffs carry: of one file whole, beyond it only the changed places; and of all files,
// beyond which they are only named. One message must stay below what editors read.
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
			out = append(out, protocol.TextOfCall(fmt.Sprintf("%s %s: too large to show beside the others", f.Kind, f.Path)))
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

// excerpts are the changed places of a file too large to show whole.
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

// CombinedDiff is a whole change set as one diff, for clients that show the first one only. head stands above it, as
// added lines; each file begins with its path. cwd is what paths are shown below.
func CombinedDiff(set *change.Set, head, cwd string) protocol.ToolCallContent {
	var old, now strings.Builder
	if head != "" {
		now.WriteString(head + "\n")
	}
	for _, f := range set.Files {
		name := func(path string) string {
			if rel, err := filepath.Rel(cwd, path); err == nil && filepath.IsLocal(rel) {
				return rel
			}
			return path
		}
		title := string(f.Kind) + " " + name(f.Path)
		if f.NewPath != "" {
			title += " to " + name(f.NewPath)
		}
		// Both sides have other words, so that the path stands in the diff however little context a client shows.
		old.WriteString("--- " + title + "\n")
		now.WriteString("+++ " + title + "\n")
		a, b := f.Old, f.New
		if old.Len()+now.Len()+len(a)+len(b) > maxDiffText || f.OldRef != "" || f.NewRef != "" {
			a, b = excerpts(f)
		}
		switch f.Kind {
		case change.Create:
			a = ""
		case change.Delete:
			b = ""
		}
		old.WriteString(ended(a))
		now.WriteString(ended(b))
	}
	path := set.Files[0].Path
	if len(set.Files) > 1 {
		path = filepath.Join(cwd, fmt.Sprintf("%d files", len(set.Files)))
	}
	text := old.String()
	return protocol.ToolCallContent{Type: "diff", Value: &protocol.Diff{Path: path, OldText: &text, NewText: now.String()}}
}

// ended is a text whose last line has its end.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
