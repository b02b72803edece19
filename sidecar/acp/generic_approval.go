package acp

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// A client that does not know Pillion shows only a part of a permission request: some the title, some the first diff, some
// rename the options by their kind. So each part alone must say what is approved.

// genericCall puts what matters of a request where a client with this profile shows it. Whichever of the title, the
// first diff and the texts a client renders, that part alone names every path or the whole command, the verdict, and how
// far "always" reaches where options are not shown with their names.
func genericCall(u *protocol.ToolCallUpdate, r permission.Request, set *change.Set, cwd string, p editors.Profile) {
	u.Title = genericTitle(r, set, cwd)
	scope := ""
	if len(r.Always) > 0 && !p.OptionNames {
		scope = "“Always” would allow " + remembered(r) + " in this session"
		// A client that draws the first diff has the scope in it; the title of a change is long enough.
		if set == nil || p.TitleOnly {
			u.Title += " (" + scope + ")"
		}
	}
	if set == nil {
		if scope != "" {
			u.Content = append(u.Content, protocol.TextOfCall(scope))
		}
		return
	}
	u.Content = changeContent(set, scope, cwd, p)
	// Such a client shows the first location as the title of the diff: it must be "3 files" and not the first of
	// them.
	if p.PathTitle && len(set.Files) > 1 {
		u.Locations = append([]protocol.ToolCallLocation{{Path: u.Content[0].Value.(*protocol.Diff).Path}}, u.Locations...)
	}
	if r.Why != "" {
		u.Content = append(u.Content, protocol.TextOfCall("Asked because "+r.Why))
	}
}

// changeContent is a change as a client with this profile can show it; scope comes below the verdict.
func changeContent(set *change.Set, scope, cwd string, p editors.Profile) []protocol.ToolCallContent {
	verdict := review.VerdictText(set)
	head := strings.TrimSpace(verdict + "\n" + scope)
	// The verdict comes before the diffs: a long diff would push it out of sight.
	if p.Diffs == editors.AllDiffs {
		diffs := review.Diffs(set)
		if verdict != "" {
			diffs = slices.Insert(diffs, 0, protocol.TextOfCall(verdict))
		}
		return diffs
	}
	unified := review.UnifiedText(set, cwd)
	text := protocol.TextOfCall(strings.TrimSpace(head + "\n" + fencedAs("diff", unified)))
	if p.Diffs == editors.NoDiffs {
		return []protocol.ToolCallContent{text}
	}
	// The text follows for clients that show texts beside the first diff.
	return []protocol.ToolCallContent{review.CombinedDiff(set, head, unified, cwd), text}
}

// proposalMessage is what a client that shows only the title of a request gets as a message before it: the verdict
// and the changed lines, as Markdown. It is "" for anything but a change: a command is complete in its title.
func proposalMessage(set *change.Set, cwd string) string {
	if set == nil {
		return ""
	}
	return "\n" + strings.TrimSpace(review.VerdictText(set)+"\n\n"+fencedAs("diff", review.UnifiedText(set, cwd))) + "\n\n"
}

// maxTitlePaths is how many paths a title names. A change of a whole turn (review "draft") has hundreds of files, and a
// client draws a title in one line; the diff and the texts name all of them.
const maxTitlePaths = 20

// genericTitle is one line that is complete in itself: the whole command, or every path and the verdict. The model's
// own description comes after that, and is marked as a quotation: it must not pass for what is approved.
func genericTitle(r permission.Request, set *change.Set, cwd string) string {
	switch {
	case set != nil:
		var names []string
		paths := set.Paths()
		for i, p := range paths {
			if i == maxTitlePaths {
				names = append(names, fmt.Sprintf("… (%d more files)", len(paths)-i))
				break
			}
			if rel, err := filepath.Rel(cwd, p); err == nil && filepath.IsLocal(rel) {
				p = rel
			}
			names = append(names, visible.Text(p)) // a name may hold characters that turn the line around
		}
		title := "Edit " + strings.Join(names, ", ")
		// The agent puts the name of a sub-agent in front of its requests; the title of a change is never the model's.
		if label, _, ok := strings.Cut(r.Title, "] "); ok && strings.HasPrefix(label, "[") {
			title = label + "] " + title
		}
		if line, _, _ := strings.Cut(review.VerdictText(set), "\n"); line != "" {
			title += ". " + line
		}
		return title
	case r.Permission == "bash" || r.Permission == "bash_input":
		command := commandOf(r)
		if r.Title != "" && !strings.Contains(r.Title, command) {
			// The command comes first: a client cuts a long title at its end.
			command += " — described as “" + visible.Text(r.Title) + "”"
		}
		return command
	}
	title := r.Title
	if title == "" {
		title = r.Permission
	}
	if patterns := strings.Join(r.Patterns, ", "); patterns != "" && patterns != "*" && !strings.Contains(title, patterns) {
		title += ": " + patterns
	}
	return visible.Text(title)
}

// commandOf is the command of a request, with invisible characters made visible.
func commandOf(r permission.Request) string {
	command, _ := r.Metadata["command"].(string)
	// Without the metadata the patterns are all that is known of the command.
	if command == "" {
		command = strings.Join(r.Patterns, "\n")
	}
	return visible.Text(command)
}

// remembered describes what "always" would allow.
func remembered(r permission.Request) string {
	// The pattern * says nothing to a person.
	if slices.Equal(r.Always, []string{"*"}) {
		return "any " + r.Permission
	}
	return r.Permission + " " + r.Remembers()
}

// genericOptions offers a single "always", of the narrowest scope: clients that key options by their kind keep only
// the last one.
func genericOptions(r permission.Request) []protocol.PermissionOption {
	out := []protocol.PermissionOption{{OptionID: optionAllowOnce, Name: "Allow", Kind: protocol.PermissionOptionKindAllowOnce}}
	if len(r.Always) > 0 {
		out = append(out, protocol.PermissionOption{OptionID: optionSession, Name: "Always allow " + remembered(r) + " in this session", Kind: protocol.PermissionOptionKindAllowAlways})
	}
	return append(out, protocol.PermissionOption{OptionID: optionReject, Name: "Reject", Kind: protocol.PermissionOptionKindRejectOnce})
}
