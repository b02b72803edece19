package lspbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.lsp.dev/protocol"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// NextEdit is a follow-up edit in other places after an edit that a person made by hand.
type NextEdit struct {
	Title  string     // for a button: "Rename 3 other uses of Parse to ParseAll"
	Places int        // how many places change
	Edits  []FileEdit // Old is the text that the person sees
}

// maxNextEdit is how large an edit by hand may be, in bytes, to be taken for one rename or one change of parameters. A longer one is mostly
// several changes, of which only the first and the last byte are known.
const maxNextEdit = 400

// NextEdit finds the places to change after an edit of a declaration by hand, without a model: the other uses of a renamed declaration, or
// the calls of a function whose parameters were added, removed or moved. before is the text of the file before the edit, about which the
// servers are asked: in the present text the uses are only errors. It returns nil when the edit is neither, or when the follow-up is not
// certain.
func (q questions) NextEdit(ctx context.Context, path, before string) (*NextEdit, error) {
	now, ok := q.text(path)
	e, differs := oneEdit(before, now)
	if !ok || !differs || e.to-e.from > maxNextEdit || e.nowTo-e.from > maxNextEdit {
		return nil, nil
	}
	renamed := isIdentifier(e.old()) && isIdentifier(e.new())
	name, open, inList := e.parameterList()
	if !renamed && !inList {
		return nil, nil
	}
	var next *NextEdit
	err := q.one(ctx, path, func(k *capabilities) bool { return has(k.References) && has(k.Definition) }, "references", func(ctx context.Context, c *client) error {
		// The server has the text after the edit, in which the uses are errors.
		undo := c.applyOverlay([]Proposal{{Path: path, Text: before}})
		defer undo()
		f := follower{c, path, e}
		var err error
		if renamed {
			next, err = f.rename(ctx)
		}
		if next == nil && err == nil && inList {
			next, err = f.parameters(ctx, name, open)
		}
		return err
	})
	return next, err
}

// follower finds the follow-up of an edit by hand with the help of one server. The server has the text before the edit, laid over the
// edited document.
type follower struct {
	c    *client
	path string // the edited file
	edit handEdit
}

// declares reports whether the identifier at an offset of the text before the edit is a declaration, that is, its definition is itself.
// Changing one use by hand is no rename of the declaration, so nothing follows from it.
func (f follower) declares(ctx context.Context, at int) (bool, error) {
	var raw json.RawMessage
	if err := f.c.call(ctx, protocol.MethodTextDocumentDefinition, f.c.converter().at(f.path, OffsetPosition(f.edit.before, at)), &raw); err != nil {
		return false, err
	}
	for _, l := range lsp.Locations(raw) {
		r := f.c.converter().in(f.path, l.Range)
		if uriPath(l.URI) == f.path && PositionOffset(f.edit.before, r.Start) <= at && at <= PositionOffset(f.edit.before, r.End) {
			return true, nil
		}
	}
	return false, nil
}

// uses returns the uses of the declaration at an offset, by file, as byte offsets in the text that the server has. The declaration itself
// is not among them.
func (f follower) uses(ctx context.Context, at int) (map[string][]int, error) {
	params := f.c.converter().at(f.path, OffsetPosition(f.edit.before, at))
	params["context"] = map[string]any{"includeDeclaration": false}
	var raw json.RawMessage
	if err := f.c.call(ctx, protocol.MethodTextDocumentReferences, params, &raw); err != nil {
		return nil, err
	}
	out := map[string][]int{}
	for _, l := range lsp.Locations(raw) {
		file := uriPath(l.URI)
		t, ok := f.textDuring(file)
		// Skip what is not a file or cannot be read.
		if file == "" || !ok {
			continue
		}
		off := PositionOffset(t, f.c.converter().in(file, l.Range).Start)
		if file != f.path || off != at {
			out[file] = append(out[file], off)
		}
	}
	return out, nil
}

// textDuring returns a file's text as the server has it: for the edited file the one before the edit.
func (f follower) textDuring(file string) (string, bool) {
	if file == f.path {
		return f.edit.before, true
	}
	return f.c.host.text(file)
}

// change changes the uses of a declaration. with gets a text and the byte offset of a use in it, and returns the text with that use
// changed, or false to leave it. In the edited file, offsets are those before the person's edit, which the new text contains; a use inside
// that edit is left to the person.
func (f follower) change(uses map[string][]int, with func(text string, at int) (string, bool)) (edits []FileEdit, places int) {
	for file, offsets := range uses {
		text, ok := f.textDuring(file)
		if !ok {
			continue
		}
		old, mine, changed := text, file != f.path, 0
		// From the last use to the first, so that offsets stay valid, and a call inside an argument is changed before the call around it.
		slices.Sort(offsets)
		for _, at := range slices.Backward(offsets) {
			// All uses behind the person's edit are changed; insert the edit before going on to offsets in front of it.
			if !mine && at < f.edit.from {
				text, mine = text[:f.edit.from]+f.edit.new()+text[f.edit.to:], true
			}
			if file == f.path && at >= f.edit.from && at <= f.edit.to {
				continue
			}
			if next, ok := with(text, at); ok {
				text = next
				changed++
			}
		}
		if changed == 0 {
			continue
		}
		if !mine {
			text = text[:f.edit.from] + f.edit.new() + text[f.edit.to:]
		}
		if file == f.path {
			old = f.edit.now
		}
		places += changed
		edits = append(edits, FileEdit{Path: file, Kind: "edit", Old: old, New: text})
	}
	slices.SortFunc(edits, func(a, b FileEdit) int { return strings.Compare(a.Path, b.Path) })
	return edits, places
}

// rename finds the other uses of a declaration whose name was changed. A use is replaced only where it has the old name, which an import
// under another name does not.
func (f follower) rename(ctx context.Context) (*NextEdit, error) {
	if ok, err := f.declares(ctx, f.edit.from); err != nil || !ok {
		return nil, err
	}
	uses, err := f.uses(ctx, f.edit.from)
	if err != nil {
		return nil, err
	}
	edits, places := f.change(uses, func(text string, at int) (string, bool) {
		end := at + len(f.edit.old())
		// Leave a place with another text: an alias, or a file that has changed meanwhile.
		if end > len(text) || text[at:end] != f.edit.old() || end < len(text) && isWord(text[end]) {
			return "", false
		}
		return text[:at] + f.edit.new() + text[end:], true
	})
	if places == 0 {
		return nil, nil
	}
	return &NextEdit{Title: fmt.Sprintf("Rename %s of %s to %s", textutil.Plural(places, "other use"), f.edit.old(), f.edit.new()), Places: places, Edits: edits}, nil
}

// parameters finds the calls of a function whose parameter list was changed. Calls that do not pass exactly one argument for each parameter
// are left alone.
func (f follower) parameters(ctx context.Context, name, open int) (*NextEdit, error) {
	before, _, ok := splitList(f.edit.before, open)
	now, _, okNow := splitList(f.edit.now, open)
	if !ok || !okNow {
		return nil, nil
	}
	arguments, changed := matchParameters(f.path, before, now)
	if !changed {
		return nil, nil
	}
	if ok, err := f.declares(ctx, name); err != nil || !ok {
		return nil, err
	}
	uses, err := f.uses(ctx, name)
	if err != nil {
		return nil, err
	}
	edits, places := f.change(uses, func(text string, at int) (string, bool) {
		for at < len(text) && isWord(text[at]) {
			at++
		}
		if at >= len(text) || text[at] != '(' { // passed on as a value
			return "", false
		}
		args, end, ok := splitList(text, at)
		if !ok {
			return "", false
		}
		if args, ok = arguments.apply(args); !ok {
			return "", false
		}
		return text[:at+1] + strings.Join(args, ", ") + text[end:], true
	})
	if places == 0 {
		return nil, nil
	}
	end := name
	for end < len(f.edit.before) && isWord(f.edit.before[end]) {
		end++
	}
	return &NextEdit{Title: fmt.Sprintf("Change %s of %s in %s", textutil.Plural(places, "call"), f.edit.before[name:end], filesOf(edits)), Places: places, Edits: edits}, nil
}

// filesOf describes the files of edits: one by its name, several by their number.
func filesOf(edits []FileEdit) string {
	if len(edits) == 1 {
		return filepath.Base(edits[0].Path)
	}
	return textutil.Plural(len(edits), "file")
}
