// Package patch reads patches and works out what they make of files. Text in, text out: whoever calls it reads and
// writes the files.
//
//	p, err := patch.Parse("*** Begin Patch\n*** Update File: a.go\n@@ func main() {\n-\tx()\n+\ty()\n*** End Patch")
//	changes, err := p.Apply(read) // nothing is returned unless every section can be done
//
// Two grammars: the *** Begin Patch envelope (what OpenAI's models are trained on) and unified diffs, git's or plain.
// Lines are sought by content, in passes: exactly, trailing white space ignored, all surrounding white space
// ignored, Unicode punctuation folded. Where this differs from OpenCode 1.18:
//
//	case                                            OpenCode                       here
//	Add File where a file exists                    overwrites it                  exists, unless the patch deletes it
//	Move to itself or onto a file                   overwrites it                  exists, unless the patch deletes it
//	lines that are in several places, no @@,        the first                      refused with the lines, unless the patch has
//	  no line number, no End of File                                               as many equal hunks as there are places
//	an insert under @@ context                      goes to the end of the file    goes under the context
//	several sections for one file, hunks after EOF  lost                           applied in order
//	@@ with only the beginning of a line            not found                      found if one line begins so
//	@@ with the hunk's own first line               not found                      found
//	hunks out of order                              not found                      found if they are in one place only
//	unknown line, line without prefix               skipped                        bad_envelope with its number
//	context found loosely                           rewritten as the patch has it  the file's own bytes stay
//	CRLF                                            becomes LF                     stays
//	no newline at the end of the file               one is added                   stays so, unless a diff says otherwise
//	unified diffs                                   refused                        applied
package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a patch in the *** Begin Patch grammar or a unified diff. Text around the envelope or the diff is skipped,
// because models explain what they do. It reads no file, so that a caller can ask for permission (Paths) before Apply does.
// The error is an *Error.
func Parse(text string) (*Patch, error) {
	if strings.TrimSpace(text) == "" {
		return nil, &Error{Kind: EmptyText, Message: "patchText is empty; give a patch that starts with *** Begin Patch"}
	}
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	begin := -1
	for i, line := range lines {
		if strings.TrimSpace(line) == "*** Begin Patch" {
			begin = i
			break
		}
	}
	// Some models send a plain diff although they were asked for an envelope.
	if begin < 0 {
		if looksUnified(lines) {
			return parseUnified(lines, 0)
		}
		return nil, bad(0, `the patch has no "*** Begin Patch" line and is no unified diff; wrap it in "*** Begin Patch" and "*** End Patch"`)
	}
	if strings.HasSuffix(lines[begin], "\r") { // the whole text came with CRLF: no statement about files
		for i := range lines {
			lines[i] = strings.TrimSuffix(lines[i], "\r")
		}
	}
	e := envelope{lines: lines, i: begin + 1, margin: lines[begin][:strings.Index(lines[begin], "*")], padded: -1}
	end := -1
	for i := begin + 1; i < len(lines); i++ {
		if e.ends(i) {
			end = i
			break
		}
	}
	for i := len(lines) - 1; end < 0 && i > begin; i-- { // one that is padded only counts where there is no other
		if strings.TrimSpace(lines[i]) == "*** End Patch" {
			end, e.padded = i, i
		}
	}
	if end < 0 {
		return nil, bad(0, `the patch has "*** Begin Patch" but no "*** End Patch" line; it may have been cut off, send the whole of it`)
	}
	// Some models put a unified diff into the envelope instead of sections.
	body := lines[begin+1 : end]
	if !slices.ContainsFunc(body, func(line string) bool { _, _, ok := section(strings.TrimLeft(line, " \t")); return ok }) {
		if strings.TrimSpace(strings.Join(body, "")) == "" {
			return nil, &Error{Kind: EmptyPatch, Message: "the patch is empty: there is no section between Begin Patch and End Patch"}
		}
		if looksUnified(body) {
			return parseUnified(body, begin+1)
		}
		return nil, &Error{Kind: NoHunks, Line: begin + 2, Message: `the patch has no section; start each file with "*** Add File: path", "*** Update File: path" or "*** Delete File: path"`}
	}
	return e.parse()
}

// bad is a BadEnvelope error; line is the 1-based line of the patch text, 0 for none.
func bad(line int, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	if line > 0 {
		msg = "line " + strconv.Itoa(line) + " of the patch: " + msg
	}
	return &Error{Kind: BadEnvelope, Line: line, Message: msg}
}

// envelope is the state of reading the *** Begin Patch grammar. Line numbers in errors are i+1, as lines is the whole
// text.
type envelope struct {
	lines  []string
	i      int    // next line
	margin string // white space before Begin Patch, allowed before End Patch and the headers of sections too
	padded int    // the line that is End Patch in spite of the white space before it, -1 for none
}

// ends reports whether line i closes the envelope. Padding counts only as Begin Patch has it: " *** End Patch" is also how
// a hunk quotes that line of a file that holds a patch.
func (e *envelope) ends(i int) bool {
	line := strings.TrimRight(e.lines[i], " \t\r")
	return line == "*** End Patch" || line == e.margin+"*** End Patch" || i == e.padded
}

// header reads a line that starts a file. Where no line of a hunk can be (open false) it may be padded: models
// indent the whole patch, or its headers.
func (e *envelope) header(line string, open bool) (kind Kind, path string, ok bool) {
	if kind, path, ok = section(line); ok {
		return kind, path, true
	}
	if rest, has := strings.CutPrefix(line, e.margin); has {
		if kind, path, ok = section(rest); ok {
			return kind, path, true
		}
	}
	if open {
		return "", "", false
	}
	return section(strings.TrimLeft(line, " \t"))
}

// section reads a line that starts a file. path is trimmed, and empty where the line names none.
func section(line string) (kind Kind, path string, ok bool) {
	for _, s := range []struct {
		head string
		kind Kind
	}{{"*** Add File:", Add}, {"*** Delete File:", Delete}, {"*** Update File:", Update}} {
		if rest, ok := strings.CutPrefix(line, s.head); ok {
			return s.kind, strings.TrimSpace(rest), true
		}
	}
	return "", "", false
}

// parse reads the sections. Models send several envelopes in one text; they are one patch, and text between them is skipped.
func (e *envelope) parse() (*Patch, error) {
	p := &Patch{}
	for inside := true; e.i < len(e.lines); {
		line := e.lines[e.i]
		if !inside { // after End Patch only another patch counts
			inside = strings.TrimSpace(line) == "*** Begin Patch"
			e.i++
			continue
		}
		kind, path, ok := e.header(line, false)
		switch {
		// Another envelope may follow.
		case e.ends(e.i):
			inside = false
			e.i++
			continue
		case ok && path == "":
			return nil, bad(e.i+1, "%q names no file", line)
		case ok:
			op := Op{Kind: kind, Path: path, Line: e.i + 1}
			e.i++
			if err := e.body(&op); err != nil {
				return nil, err
			}
			p.Ops = append(p.Ops, op)
			continue
		case strings.TrimSpace(line) == "":
			e.i++
			continue
		}
		return nil, bad(e.i+1, `%s is no section; use "*** Add File:", "*** Update File:" or "*** Delete File:"`, show(line))
	}
	return p, nil
}

// over reports the end of a section: another one, the end of the patch or of the text. open says that the section has lines
// that may begin with a blank, so that a padded header could be a line of the file.
func (e *envelope) over(open bool) bool {
	if e.i >= len(e.lines) || e.ends(e.i) {
		return true
	}
	_, _, ok := e.header(e.lines[e.i], open)
	return ok
}

// diffHead reports a unified diff's "---" and "+++" lines before a hunk with line numbers: models mix the two grammars.
func (e *envelope) diffHead() bool {
	if e.i+2 >= len(e.lines) || !strings.HasPrefix(e.lines[e.i], "--- ") || !strings.HasPrefix(e.lines[e.i+1], "+++ ") {
		return false
	}
	_, ok := parseRange(e.lines[e.i+2])
	return ok
}

// body reads what follows a section's header.
func (e *envelope) body(op *Op) error {
	switch op.Kind {
	case Add:
		return e.add(op)
	case Update:
		return e.update(op)
	}
	// Lines under Delete are refused, because ignoring them would hide what the model meant.
	for ; !e.over(false); e.i++ {
		if strings.TrimSpace(e.lines[e.i]) != "" {
			return bad(e.i+1, "%s follows Delete File: %s, which takes no lines", show(e.lines[e.i]), op.Path)
		}
	}
	return nil
}

// add reads the lines of a new file. An empty line between + lines is one of the file's, as models leave the + off
// empty lines; at the end it is not.
func (e *envelope) add(op *Op) error {
	var b strings.Builder
	gap := 0
	for ; !e.over(false); e.i++ {
		line := e.lines[e.i]
		switch {
		case strings.HasPrefix(line, "+"):
			for ; gap > 0; gap-- {
				b.WriteByte('\n')
			}
			b.WriteString(line[1:])
			b.WriteByte('\n')
		case strings.TrimSpace(line) == "":
			gap++
		// "\ No newline at end of file" is a diff's, and models use it here as well.
		case strings.HasPrefix(line, `\ `) && b.Len() > 0:
			text := strings.TrimSuffix(b.String(), "\n")
			b.Reset()
			b.WriteString(text)
		case strings.TrimSpace(line) == "*** End of File":
		default:
			return bad(e.i+1, "%s in Add File: %s does not begin with +", show(line), op.Path)
		}
	}
	op.Content = b.String()
	return nil
}

// update reads Move to and the hunks of a changed file. A line without a prefix is refused and not guessed at: it may
// be a line that stays or one that was forgotten to be marked.
func (e *envelope) update(op *Op) error {
	var h *Hunk
	open := false // the last line was an @@ without lines yet
	start := func() {
		op.Hunks = append(op.Hunks, Hunk{Line: e.i + 1})
		h = &op.Hunks[len(op.Hunks)-1]
	}
	for ; !e.over(true); e.i++ {
		line := e.lines[e.i]
		// After a hunk it would be unclear whether that hunk is for the old or the new path.
		if to, ok := strings.CutPrefix(line, "*** Move to:"); ok {
			if op.NewPath != "" || h != nil {
				return bad(e.i+1, `"*** Move to:" comes once, right after "*** Update File: %s"`, op.Path)
			}
			if op.NewPath = strings.TrimSpace(to); op.NewPath == "" {
				return bad(e.i+1, "%q names no file", line)
			}
			op.Kind = Move
			continue
		}
		// Models put the --- and +++ lines of a diff under the header of a section.
		if h == nil && e.diffHead() { // the file was named already
			e.i++
			continue
		}
		switch {
		case strings.HasPrefix(line, "@@"):
			context, at := hunkContext(line)
			// Several @@ in a row belong to one hunk: they lead to the place step by step.
			if !open {
				start()
			}
			h.Top = at == 0 && context == "" && strings.HasPrefix(line, "@@ -0,0 ")
			open = true
			if context != "" {
				h.Context = append(h.Context, context)
			}
			if at > 0 {
				h.OldStart = at
			}
		case strings.TrimSpace(line) == "*** End of File":
			if h == nil {
				start()
			}
			h.EOF, open = true, false
		case strings.HasPrefix(line, `\ `) && h != nil && len(h.Lines) > 0:
			h.Lines[len(h.Lines)-1].NoEOL = true
		case line == "" || line == "\r" || strings.ContainsRune(" +-", rune(line[0])):
			if h == nil && strings.TrimSpace(line) == "" {
				continue // before the first hunk
			}
			if h == nil || h.EOF {
				if strings.TrimSpace(line) == "" {
					continue // after End of File
				}
				start()
			}
			open = false
			l := Line{Op: ' ', Bare: true}
			if line != "" && line != "\r" {
				l = Line{Op: line[0], Text: line[1:]}
			}
			// A line without any prefix is an empty line that stays: its blank was cut off on the way.
			h.Lines = append(h.Lines, l)
		case strings.HasPrefix(line, "***"):
			return bad(e.i+1, "%s is not known here; after Update File come \"*** Move to:\", @@, lines and \"*** End of File\"", show(line))
		default:
			return bad(e.i+1, "%s in Update File: %s begins with none of space, +, - and @@; put a space before a line that stays", show(line), op.Path)
		}
	}
	kept := op.Hunks[:0]
	for _, h := range op.Hunks {
		if h.changes() {
			kept = append(kept, h)
		}
	}
	if op.Hunks = kept; len(kept) == 0 && op.Kind != Move {
		return &Error{Kind: NoHunks, Path: op.Path, Line: op.Line, Message: fmt.Sprintf("Update File: %s changes nothing: it has no + or - lines; add a hunk, or leave the section out", op.Path)}
	}
	return nil
}

// changes reports a hunk with a + or - line; one of context only is dropped, because it says nothing to do.
func (h *Hunk) changes() bool {
	for _, l := range h.Lines {
		if l.Op != ' ' {
			return true
		}
	}
	return false
}

// hunkContext reads an @@ line: the line of the file it names, or the 1-based line number of a unified diff's header.
// Models use both in an envelope.
func hunkContext(line string) (context string, at int) {
	if head, ok := parseRange(line); ok {
		return "", head.oldStart
	}
	context = strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(line, "@@"), " "), "\r")
	if strings.TrimSpace(context) == "@@" { // "@@ @@": nothing between
		context = ""
	}
	return context, 0
}

// show quotes a line of the patch in an error, at most 120 bytes.
func show(s string) string {
	if len(s) > 120 {
		s = strings.ToValidUTF8(s[:120], "") + "…"
	}
	return strconv.Quote(s)
}
