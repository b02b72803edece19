package lspbridge

import "encoding/json"

// Position in a text: Line and Character from 0, Character in UTF-16 code units whatever the server negotiated.
type Position struct{ Line, Character int }

// Range is half-open.
type Range struct{ Start, End Position }

// Location is a range in a file.
type Location struct {
	Path  string
	Range Range
}

// Severity as in LSP: 1 error, 2 warning, 3 information, 4 hint.
type Severity int

// LSP's severities.
const (
	SeverityError Severity = 1 + iota
	SeverityWarning
	SeverityInformation
	SeverityHint
)

// Diagnostic is a server's word on a file, free of the protocol library's types.
type Diagnostic struct {
	Path     string
	Range    Range
	Severity Severity
	Code     string
	Source   string // as published, e.g. "compiler"
	Server   string // the server's id in the table, e.g. "gopls"
	Message  string
	Raw      json.RawMessage // as the server sent it, for codeAction contexts
}

// State is the certainty of an answer.
type State string

// The answers of EDITORS.md R17, and Partial for servers that cannot see part of a proposal.
const (
	Fresh       State = "fresh"
	Partial     State = "partial"
	Pending     State = "pending" // "not yet"
	Unavailable State = "unavailable"
)

// FileReport is the problems of one file at one version.
type FileReport struct {
	Path    string
	Version int32 // version of the document the answer is for; 0 when it is not open
	State   State
	Reason  string // why it is not Fresh, for a person
	Items   []Diagnostic
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

// Delta is the difference a proposal or a change makes.
type Delta struct {
	State      State
	Reason     string
	Unserved   bool         // no server is known for files of these kinds: there was nothing to ask, and nothing to tell a model
	Introduced []Diagnostic // in touched files and, where the server says so, in others
	Fixed      []Diagnostic
	Unchanged  int
	Files      []FileReport // all problems of the touched files after the change
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
