package builtin

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// mover returns the edits that a rename of files needs in other files (LSP's workspace/willRenameFiles). *lspbridge.Manager implements it.
type mover interface {
	WillRename(ctx context.Context, renames []lspbridge.FileRename) ([]lspbridge.FileEdit, error)
}

// changer returns the edits that creating and deleting files needs in other files (willCreateFiles, willDeleteFiles).
// *lspbridge.Manager implements it.
type changer interface {
	WillChange(ctx context.Context, created, deleted []string) ([]lspbridge.FileEdit, error)
}

// moveBudget is how long a move waits for the servers. It is longer than the wait for a check, because the servers are asked only
// once: imports that are not updated with the move stay broken.
const moveBudget = 5 * time.Second

// followMoves extends a proposal that moves, creates or deletes files by the edits that the language servers ask for: usually
// imports, in other files and in the moved ones. The person then reviews one change set, not a move and its repairs
// afterwards. The result names for the model the edits that could not be merged into the proposal.
func (c changes) followMoves(ctx context.Context, call *tools.Call, p *proposal) {
	if c.Bridge == nil || p.complete {
		return
	}
	var renames []lspbridge.FileRename
	var created, deleted []string
	for _, x := range p.members {
		switch x.Kind {
		case change.Rename:
			renames = append(renames, lspbridge.FileRename{Old: x.Path, New: x.NewPath})
		case change.Create:
			created = append(created, x.Path)
		case change.Delete:
			deleted = append(deleted, x.Path)
		}
	}
	if len(renames)+len(created)+len(deleted) == 0 {
		return
	}
	asking, cancel := context.WithTimeout(ctx, moveBudget)
	defer cancel()
	var edits []lspbridge.FileEdit
	var err error
	what := "The language server adapted the imports in "
	if m, ok := c.Bridge.(mover); ok && len(renames) > 0 {
		edits, err = m.WillRename(asking, renames)
	}
	if m, ok := c.Bridge.(changer); ok && len(created)+len(deleted) > 0 {
		// An error is ignored: creating and deleting files breaks no import by itself.
		more, _ := m.WillChange(asking, created, deleted)
		if edits = append(edits, more...); len(renames) == 0 {
			what = "The language server adapted "
		}
	}
	var followed, left []string
	for _, ed := range edits {
		// joinEdit merges texts only. If a server wants to move, create or delete more files, all servers would have
		// to be asked again about those.
		if ed.Kind != "edit" {
			left = append(left, c.rel(ed.Path))
			continue
		}
		if done, why := c.joinEdit(ctx, call, p, ed); done {
			followed = append(followed, c.rel(ed.Path))
		} else if why != "" {
			left = append(left, c.rel(ed.Path)+" ("+why+")")
		}
	}
	var notes []string
	if len(followed) > 0 {
		notes = append(notes, what+strings.Join(followed, ", ")+".")
	}
	if len(left) > 0 {
		notes = append(notes, "These files may need a change because of the move and were not changed: "+strings.Join(left, ", ")+".")
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("Imports may have to be changed because of the move; the language server did not answer: %v.", err))
	}
	if len(notes) > 0 {
		p.note = strings.TrimSpace(p.note + "\n" + strings.Join(notes, "\n"))
	}
}

// joinEdit adds a server's edit to a proposal. If the proposal already changes the file, both edits are merged. It refuses files
// outside the project and files whose edits a rule denies: the model did not name these files, and a server must not
// add them. why is the reason for the model; "" if there is nothing to report.
func (c changes) joinEdit(ctx context.Context, call *tools.Call, p *proposal, ed lspbridge.FileEdit) (done bool, why string) {
	at, err := c.place(filepath.Clean(ed.Path))
	if err != nil {
		return false, err.Error()
	}
	for i := range p.members {
		m := &p.members[i]
		if m.base.Real != at.real && (m.to == nil || m.to.real != at.real) {
			continue
		}
		// No reason to report: the proposal deletes the file.
		if m.Kind == change.Delete {
			return false, ""
		}
		// The server computed its edit for the file's present text, but the proposal may change other lines of it.
		merged, err := change.File{Path: m.Path, Kind: change.Edit, Old: ed.Old, New: ed.New}.Rebase(m.New)
		if err != nil {
			return false, "it changes the same lines"
		}
		m.New = merged.New
		return true, ""
	}
	if !c.inside(at.real) {
		return false, "outside the project"
	}
	f, err := c.openPlace(at)
	if err != nil {
		return false, err.Error()
	}
	if g, ok := call.Host.Gate.(interface {
		Would(context.Context, permission.Request) permission.Action
	}); ok {
		r := permission.Request{Permission: "edit", Patterns: c.patterns(at.path, at.real), Also: []string{at.path, at.real}, SessionID: call.SessionID, CallID: call.CallID, Tool: call.Tool}
		if g.Would(ctx, r) == permission.Deny {
			return false, "editing it is denied"
		}
	}
	merged, err := change.File{Path: at.path, Kind: change.Edit, Old: ed.Old, New: ed.New}.Rebase(f.Text)
	if err != nil {
		return false, "the file has changed since"
	}
	p.members = append(p.members, member{File: change.File{Path: at.path, Kind: change.Edit, Old: f.Text, New: merged.New}, base: f})
	return true, ""
}
