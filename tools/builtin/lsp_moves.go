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

// mover knows what else changes when files get other names (LSP's workspace/willRenameFiles); *lspbridge.Manager does.
type mover interface {
	WillRename(ctx context.Context, renames []lspbridge.FileRename) ([]lspbridge.FileEdit, error)
}

// changer knows what else changes when files are created and deleted (willCreateFiles, willDeleteFiles); *lspbridge.Manager
// does.
type changer interface {
	WillChange(ctx context.Context, created, deleted []string) ([]lspbridge.FileEdit, error)
}

// moveBudget is how long a move waits for the servers. It is longer than a check's: imports that are
// not updated with the move stay broken, since nothing asks again.
const moveBudget = 5 * time.Second

// followMoves adds to a proposal that moves, creates or deletes files what the language servers say
// follows from it: imports in other files and in the moved ones. The person then reviews one change
// set, not a move and later its repairs. What cannot be merged into the proposal is told to the model.
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
		// A server that wants to move further files would need another round of questions
		// to all servers.
		// joinEdit merges texts; a file that comes or goes is none.
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
		notes = append(notes, "These would have to follow the move and were left alone: "+strings.Join(left, ", ")+".")
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("Imports may have to follow the move; the language server could not say: %v.", err))
	}
	if len(notes) > 0 {
		p.note = strings.TrimSpace(p.note + "\n" + strings.Join(notes, "\n"))
	}
}

// joinEdit makes a server's edit part of a proposal. Where the proposal changes the same file, both are
// merged. Files outside the project and files that a rule protects from edits are left alone: the model
// did not name them, so they must not get in through a server.
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
		// Without a reason: nobody misses an edit of a file that goes.
		if m.Kind == change.Delete {
			return false, ""
		}
		// The server's edit is from the file's text; the member may have changed other lines already.
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
		return false, "it changed meanwhile"
	}
	p.members = append(p.members, member{File: change.File{Path: at.path, Kind: change.Edit, Old: f.Text, New: merged.New}, base: f})
	return true, ""
}
