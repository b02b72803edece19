package lspbridge

import (
	"encoding/json"

	"github.com/pillion-dev/pillion/tools/change"
)

// Position is a place in a text. Line and Character are 0-based; Character counts UTF-16 code units, whatever encoding the server
// negotiated.
type Position struct{ Line, Character int }

// Range is half-open: End is the position after its last character.
type Range struct{ Start, End Position }

// Location is a range in a file; Path is absolute.
type Location struct {
	Path  string
	Range Range
}

// FileReport holds all problems of one file at one version, from all its servers.
type FileReport struct {
	Path      string
	Version   int32 // of the open document; 0 when it is not open
	Certainty change.Certainty
	Reason    string // why it is not Fresh, for a person
	Items     []change.Problem
	Of        string // in a server's own report: the files that it was asked about, as "12 .py and 3 .pyi files"
}

// Proposal is a proposed text of a file. Delete wins over Text. A rename is two proposals: a Delete of the old name, and a new file whose
// From is the old name.
type Proposal struct {
	Path   string
	Text   string
	Old    string // the text before the change, if known; after a write it is no longer on disk
	Delete bool
	From   string
}

// Delta is the verdict on a proposal or a change, together with all problems of its files.
type Delta struct {
	change.Verdict              // problems of the touched files and, where the server reports them, of others
	Files          []FileReport // all problems of the touched files after the change
}

// TextEdit replaces a range by NewText; an empty range inserts.
type TextEdit struct {
	Range   Range
	NewText string
}

// FileEdit is one file's part of a workspace edit, resolved to whole texts, so that it can be reviewed and applied
// like any other change. In the edits of one server no path occurs twice.
type FileEdit struct {
	Path    string
	NewPath string // of a rename
	Kind    string // "edit", "create", "delete", "rename"
	Old     string // the text it was computed from
	New     string
	Made    bool   // a create for which the server has already written an empty file, which must be removed first
	Confirm string // why the server requires approval, whatever the permission rules say; "" when it does not
}

// Action is a code action. Raw is the item as the server sent it; codeAction/resolve must send it back unchanged.
type Action struct {
	Title       string
	Kind        string // quickfix, refactor.…, source.organizeImports …
	IsPreferred bool
	Disabled    string // why it cannot be used now; "" when it can
	Server      string // id of the server that offered it and must execute it
	Path        string
	Raw         json.RawMessage
}

// Symbol is a declaration. Range is the whole declaration, Selection its name; they are equal when the server sends only one.
type Symbol struct {
	Name, Detail, Container string
	Kind                    int // LSP's SymbolKind
	Path                    string
	Range, Selection        Range
	Children                []Symbol
}

// CallItem is a function (in a type hierarchy, a type), with the ranges of the calls that connect it to the symbol in question.
type CallItem struct {
	Name, Detail     string
	Kind             int
	Path             string
	Range, Selection Range
	FromRanges       []Range // of the calls, in the caller's file
}
