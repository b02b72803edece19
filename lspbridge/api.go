package lspbridge

import (
	"encoding/json"

	"github.com/pillion-dev/pillion/tools/change"
)

// Position in a text: Line and Character from 0, Character in UTF-16 code units whatever the server negotiated.
type Position struct{ Line, Character int }

// Range is half-open.
type Range struct{ Start, End Position }

// Location is a range in a file.
type Location struct {
	Path  string
	Range Range
}

// FileReport is the problems of one file at one version.
type FileReport struct {
	Path      string
	Version   int32 // version of the document the answer is for; 0 when it is not open
	Certainty change.Certainty
	Reason    string // why it is not Fresh, for a person
	Items     []change.Problem
}

// Proposal is the text a file would have. Delete wins over Text; a rename is a Delete and a new file whose From is the
// name before.
type Proposal struct {
	Path   string
	Text   string
	Old    string // the text before, where it is known and the disk may hold the new one already
	Delete bool
	From   string
}

// Delta is the verdict on a proposal or a change, with what is then known of each file of it.
type Delta struct {
	change.Verdict              // problems of the touched files and, where the server reports them, of others
	Files          []FileReport // all problems of the touched files after the change
}

// TextEdit replaces a range.
type TextEdit struct {
	Range   Range
	NewText string
}

// FileEdit is one file's part of a workspace edit, resolved to whole texts: what the change pipeline takes.
type FileEdit struct {
	Path    string
	NewPath string // rename
	Kind    string // "edit", "create", "delete", "rename"
	Old     string // the text it was computed from
	New     string
	Made    bool   // a create, but the server has put an empty file there itself: take it away first
	Confirm string // why the server wants a person to agree, whatever the rules say; "" when it does not
}

// Action is a code action; the item as the server sent it is kept for resolve and execute.
type Action struct {
	Title       string
	Kind        string // quickfix, refactor.…, source.organizeImports …
	IsPreferred bool
	Disabled    string // reason, when the server disabled it
	Server      string
	Path        string
	Raw         json.RawMessage
}

// Symbol of documentSymbol or workspaceSymbol.
type Symbol struct {
	Name, Detail, Container string
	Kind                    int // LSP's SymbolKind
	Path                    string
	Range, Selection        Range
	Children                []Symbol
}

// CallItem is an end of a call hierarchy edge.
type CallItem struct {
	Name, Detail     string
	Kind             int
	Path             string
	Range, Selection Range
	FromRanges       []Range
}
