// Package lsp holds the wire types of the Language Server Protocol that go.lsp.dev/protocol lacks or reads too strictly
// for real servers: answers are decoded here member by member, so that one odd item does not cost the whole answer, and
// items that go back to the server (diagnostics, code actions, call hierarchy items) keep their raw form.
// What we send uses go.lsp.dev/protocol where its types fit.
package lsp

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// Position is a place in a document. Both members count from 0; Character is in units of the negotiated
// position encoding (UTF-16 unless the server chose another one), not in bytes or columns.
type Position struct {
	Line      Uint `json:"line"`
	Character Uint `json:"character"`
}

// Uint is a count as servers send it. It accepts what encoding/json would reject: 1.0 is 1, negative
// numbers are 0, and too large ones are maxCount.
type Uint int

// maxCount is the largest Uint, LSP's largest uinteger (2^31-1). Some servers send more to say "up to the end".
const maxCount = 1<<31 - 1

// UnmarshalJSON reads any number. null and other types leave 0: it never fails, so that one odd member
// does not lose the whole message.
func (u *Uint) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return nil // null, "": leave 0
	}
	*u = Uint(max(0, min(f, maxCount)))
	return nil
}

// Range is half-open: End is the position after its last character.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Location is a range in the document with that URI.
type Location struct {
	URI   string `json:"uri"`
	Range Range  `json:"range"`
}

// Diagnostic is an item of publishDiagnostics or of a pull report.
type Diagnostic struct {
	Range    Range
	Severity int    // 1 error, 2 warning, 3 information, 4 hint
	Code     string // a number or the value of an object is written as text; "" when there is none
	Source   string
	Message  string
	Raw      json.RawMessage // as the server sent it: codeAction expects the same object, with its data member
}

// Diagnostics decodes a list item by item. Items without a range are left out, and so are items that
// cannot be decoded: the others of the file must still be shown.
func Diagnostics(raw []json.RawMessage) []Diagnostic {
	out := make([]Diagnostic, 0, len(raw))
	for _, r := range raw {
		var d struct {
			Range    *Range          `json:"range"`
			Severity Uint            `json:"severity"`
			Code     json.RawMessage `json:"code"`
			Source   json.RawMessage `json:"source"`
			Message  json.RawMessage `json:"message"`
		}
		if err := json.Unmarshal(r, &d); err != nil || d.Range == nil {
			continue
		}
		sev := int(d.Severity)
		if sev < 1 || sev > 4 {
			sev = 1 // LSP leaves it to the client; an unmarked problem is taken seriously
		}
		out = append(out, Diagnostic{Range: *d.Range, Severity: sev, Code: code(d.Code), Source: text(d.Source), Message: text(d.Message), Raw: bytes.Clone(r)})
	}
	return out
}

// code reads the three forms of a diagnostic's code that servers send: "x", 12 and {"value": …, "target": …}.
func code(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] == '{' {
		var v struct{ Value json.RawMessage }
		_ = json.Unmarshal(raw, &v)
		return code(v.Value)
	}
	if s := text(raw); s != "" || raw[0] == '"' {
		return s
	}
	return string(raw)
}

// text reads a string, MarkupContent, a MarkedString (deprecated, but still sent) or a list of those.
// Other JSON gives "".
func text(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s)
		return s
	case '{':
		var m struct{ Value, Language string }
		_ = json.Unmarshal(raw, &m)
		if m.Language != "" {
			return "```" + m.Language + "\n" + m.Value + "\n```"
		}
		return m.Value
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		var b []byte
		for _, r := range list {
			if s := text(r); s != "" {
				if b != nil {
					b = append(b, "\n\n"...)
				}
				b = append(b, s...)
			}
		}
		return string(b)
	}
	return ""
}

// HoverText is the text of Hover.contents in any of its shapes: MarkupContent, MarkedString (a string or
// an object), or a list of MarkedStrings.
func HoverText(contents json.RawMessage) string { return text(contents) }

// Publish is the parameters of textDocument/publishDiagnostics.
type Publish struct {
	URI         string            `json:"uri"`
	Version     *int32            `json:"version"`     // of the document that the diagnostics are for; nil when the server does not say
	Diagnostics []json.RawMessage `json:"diagnostics"` // decoded by Diagnostics
}

// Report is the answer to textDocument/diagnostic. Kind is "full" or "unchanged" (gopls sends ""); Related
// holds the reports of other documents, by URI.
type Report struct {
	Kind     string            `json:"kind"`
	ResultID string            `json:"resultId"`
	Items    []json.RawMessage `json:"items"`
	Related  map[string]Report `json:"relatedDocuments"`
}

// Locations decodes the four shapes that definition and similar requests may answer: Location, []Location,
// LocationLink and []LocationLink. Of a link it takes the selection range, the name, rather than the whole
// declaration.
func Locations(raw json.RawMessage) []Location {
	var list []json.RawMessage
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return nil
	case raw[0] == '{':
		list = []json.RawMessage{raw}
	default:
		_ = json.Unmarshal(raw, &list)
	}
	out := make([]Location, 0, len(list))
	for _, r := range list {
		var l struct {
			Location
			TargetURI            string `json:"targetUri"`
			TargetRange          Range  `json:"targetRange"`
			TargetSelectionRange *Range `json:"targetSelectionRange"`
		}
		if json.Unmarshal(r, &l) != nil {
			continue
		}
		if l.URI == "" && l.TargetURI != "" {
			l.URI, l.Range = l.TargetURI, l.TargetRange
			if l.TargetSelectionRange != nil {
				l.Range = *l.TargetSelectionRange
			}
		}
		if l.URI != "" {
			out = append(out, l.Location)
		}
	}
	return out
}

// Symbol is the union of DocumentSymbol, SymbolInformation and WorkspaceSymbol: a server chooses one of
// them, and Range or Location tells which.
type Symbol struct {
	Name          string   `json:"name"`
	Detail        string   `json:"detail"`
	Kind          Uint     `json:"kind"`
	ContainerName string   `json:"containerName"`
	Range         *Range   `json:"range"`
	Selection     *Range   `json:"selectionRange"`
	Children      []Symbol `json:"children"`
	Location      *struct {
		URI   string `json:"uri"`
		Range *Range `json:"range"` // a WorkspaceSymbol may have none
	} `json:"location"`
}

// CallItem is an item of a call or type hierarchy.
type CallItem struct {
	Name      string          `json:"name"`
	Detail    string          `json:"detail"`
	Kind      Uint            `json:"kind"`
	URI       string          `json:"uri"`
	Range     Range           `json:"range"`
	Selection Range           `json:"selectionRange"`
	Raw       json.RawMessage // as the server sent it: the next request must return the same object, with its data member
}

// UnmarshalJSON decodes an item and keeps its raw form. It fails as encoding/json does.
func (c *CallItem) UnmarshalJSON(b []byte) error {
	type plain CallItem
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*c = CallItem(p)
	c.Raw = bytes.Clone(b)
	return nil
}

// Call is an edge of the call hierarchy: an incoming call has From, an outgoing one To. FromRanges are the
// places of the calls, in the document of the caller.
type Call struct {
	From       *CallItem `json:"from"`
	To         *CallItem `json:"to"`
	FromRanges []Range   `json:"fromRanges"`
}

// TextEdit replaces a range of a document by NewText. An edit with a Snippet, or with something Odd about
// it, cannot be applied. It is read more strictly than a diagnostic: a diagnostic may be shown on a wrong
// line, but a guess here would be written into a file.
type TextEdit struct {
	Range        Range
	NewText      string
	AnnotationID string
	Snippet      json.RawMessage // set when NewText would hold placeholders ($1), which nobody fills in
	Odd          string          // why the edit cannot be read, to follow "an edit"; "" when it can
}

// UnmarshalJSON never fails: it explains in Odd what it cannot read. An error would lose the other edits,
// and the person would not learn which one is wrong.
func (e *TextEdit) UnmarshalJSON(b []byte) error {
	type place struct{ Line, Character *float64 } // 1.0 is 1
	var w struct {
		Range        *struct{ Start, End *place } `json:"range"`
		NewText      *string                      `json:"newText"`
		AnnotationID string                       `json:"annotationId"`
		Snippet      json.RawMessage              `json:"snippet"`
	}
	err := json.Unmarshal(b, &w)
	*e = TextEdit{AnnotationID: w.AnnotationID, Snippet: w.Snippet}
	count := func(f *float64) bool { return f != nil && *f >= 0 && *f == math.Trunc(*f) }
	whole := func(p *place) bool { return p != nil && count(p.Line) && count(p.Character) }
	switch r := w.Range; {
	case err != nil:
		e.Odd = "of the wrong shape: " + err.Error()
	case r == nil || !whole(r.Start) || !whole(r.End):
		e.Odd = "that does not say of which range"
	case w.NewText == nil && len(w.Snippet) == 0:
		e.Odd = "without a new text"
	default:
		at := func(p *place) Position {
			return Position{Line: Uint(min(*p.Line, maxCount)), Character: Uint(min(*p.Character, maxCount))}
		}
		e.Range = Range{Start: at(r.Start), End: at(r.End)}
		if w.NewText != nil {
			e.NewText = *w.NewText
		}
	}
	return nil
}

// DocumentChange is a TextDocumentEdit, CreateFile, RenameFile or DeleteFile; Kind tells which.
type DocumentChange struct {
	Kind         string `json:"kind"` // "" for a TextDocumentEdit, create, rename, delete
	TextDocument struct {
		URI     string `json:"uri"`
		Version *int32 `json:"version"`
	} `json:"textDocument"`
	Edits        []TextEdit `json:"edits"`
	URI          string     `json:"uri"`
	OldURI       string     `json:"oldUri"`
	NewURI       string     `json:"newUri"`
	AnnotationID string     `json:"annotationId"` // of create, rename and delete; a text edit has its own
	Options      struct {
		Overwrite         bool `json:"overwrite"`
		IgnoreIfExists    bool `json:"ignoreIfExists"`
		IgnoreIfNotExists bool `json:"ignoreIfNotExists"`
		Recursive         bool `json:"recursive"`
	} `json:"options"`
}

// WorkspaceEdit is an edit of several documents. DocumentChanges wins over Changes when a server sends
// both, as the LSP specification demands. Annotations are by the ids that edits refer to.
type WorkspaceEdit struct {
	Changes         map[string][]TextEdit `json:"changes"`
	DocumentChanges []DocumentChange      `json:"documentChanges"`
	Annotations     map[string]Annotation `json:"changeAnnotations"`
}

// Annotation describes a group of changes to the person. NeedsConfirmation asks for their approval,
// whatever else would allow the edit.
type Annotation struct {
	Label             string `json:"label"`
	NeedsConfirmation bool   `json:"needsConfirmation"`
	Description       string `json:"description"`
}

// Command is what workspace/executeCommand takes; Arguments are passed on as the server sent them.
type Command struct {
	Title     string          `json:"title"`
	Command   string          `json:"command"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// CodeAction is one offer of the server. LSP allows a bare Command in the list instead: it is then in
// Command, and Kind is "".
type CodeAction struct {
	Title       string
	Kind        string
	IsPreferred bool
	Disabled    string // why it cannot be used now; "" when it can
	HasData     bool   // it has data for codeAction/resolve, so its edit may still come
	Edit        *WorkspaceEdit
	Command     *Command
	Diagnostics []json.RawMessage
	Raw         json.RawMessage // as the server sent it, for codeAction/resolve
}

// UnmarshalJSON reads either shape. In a bare Command, "command" is a string; in a CodeAction it is an
// object.
func (a *CodeAction) UnmarshalJSON(b []byte) error {
	var w struct {
		Title       string                   `json:"title"`
		Kind        string                   `json:"kind"`
		IsPreferred bool                     `json:"isPreferred"`
		Disabled    *struct{ Reason string } `json:"disabled"`
		Edit        *WorkspaceEdit           `json:"edit"`
		Command     json.RawMessage          `json:"command"`
		Diagnostics []json.RawMessage        `json:"diagnostics"`
		Data        json.RawMessage          `json:"data"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*a = CodeAction{Title: w.Title, Kind: w.Kind, IsPreferred: w.IsPreferred, Edit: w.Edit, Diagnostics: w.Diagnostics, Raw: bytes.Clone(b),
		HasData: len(w.Data) > 0 && string(w.Data) != "null"}
	if w.Disabled != nil {
		a.Disabled = w.Disabled.Reason
		if a.Disabled == "" {
			a.Disabled = "disabled by the server"
		}
	}
	if len(w.Command) > 0 {
		a.Command = new(Command)
		src := []byte(w.Command)
		if w.Command[0] == '"' {
			src = b
		}
		if w.Command[0] == 'n' || json.Unmarshal(src, a.Command) != nil {
			a.Command = nil
		}
	}
	return nil
}
