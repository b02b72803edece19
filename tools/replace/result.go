package replace

// Kinds of refusal; stable, they appear in machine output.
const (
	Identical = "identical"
	EmptyOld  = "empty_old"
	NotFound  = "not_found"
	Multiple  = "multiple"
	Oversize  = "oversize"
)

// Result is a replacement that was made.
type Result struct {
	Text   string // the whole new text
	Stage  string // which stage decided: "simple", "line_trimmed", … see Stages
	Spans  []Span // what was replaced, ascending; several only with all
	Inside []Span // the same places in Text: where the new text is now

	// Replaced is the text really replaced (of the first span), when it is not what old says byte for byte;
	// empty after an exact match. Show it to the model: it is what its quotation should have been.
	Replaced string
	// Written is what was put there (first span), when it is not what new says byte for byte: the
	// indentation or a line ending was adapted.
	Written string
	// Similar are the 1-based first lines of other places that match as loosely but are not the same text
	// and so were left alone by all.
	Similar []int
}

// Span is a half-open range of a text.
type Span struct {
	Start, End         int // bytes from 0
	StartLine, EndLine int // 1-based, both included
}

// Error says why nothing was replaced, in words for the one who must quote better.
type Error struct {
	Kind    string // Identical, EmptyOld, NotFound, Multiple, Oversize
	Message string
	Lines   []int // 1-based first lines of the places meant: the matches (4,096 at most), or the nearest miss
}

func (e *Error) Error() string { return e.Message }
