package scan

import (
	"errors"
	"io"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// parseTime bounds each of the two parsers. Ordinary commands take microseconds; only hostile ones come near the limit.
// Request.Patience raises it.
const parseTime = 25 * time.Millisecond

// maxNesting is the deepest run of open brackets that is parsed at all. The parsers recurse.
// A Go stack overflow ends the process and cannot be recovered from, unlike a panic.
const maxNesting = 100

// errSlow is what the parser returns when deadlineReader refused to continue; its text ends up among the reasons for a person.
var errSlow = errors.New("it takes too long to parse")

// parse is the first of two parsers: mvdan.cc/sh, whose tree is walked. The second one (see witness) must agree with it on
// where commands begin, so that a mistake of one parser does not hide a command.
func parse(text string, limit time.Duration) (*syntax.File, error) {
	// Backquotes open and close with the same character, so they are counted in pairs.
	if nesting(text) > maxNesting || strings.Count(text, "`") > 2*maxNesting {
		return nil, errors.New("it is nested too deeply to be understood")
	}
	p := syntax.NewParser(syntax.Variant(syntax.LangBash))
	return p.Parse(&deadlineReader{text: text, end: time.Now().Add(limit)}, "")
}

// deadlineReader stops the parser when its time is up by failing a read: the parser takes no context. It hands the text
// out in pieces of 1,024 bytes so that there is a read to fail.
type deadlineReader struct {
	text string
	end  time.Time
}

// Read gives the next piece, or errSlow when the time is up.
func (r *deadlineReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	if time.Now().After(r.end) {
		return 0, errSlow
	}
	n := copy(p[:min(len(p), 1024)], r.text)
	r.text = r.text[n:]
	return n, nil
}

// nesting is how deep brackets nest in a text, counted without understanding quotes. A bracket in quotes counts as well, so
// the figure may be too high. It may also be too low: a closing bracket in quotes lowers it, and keywords (if if if) are not
// counted. What is left to such a text is bounded by MaxCommand.
func nesting(text string) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
	}
	return deepest
}
