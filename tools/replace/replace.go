// Package replace is the edit engine: it finds a quoted passage of a text and makes in it the change that leads from
// the quotation to the new text. Text in, text out: it knows no files, no tools and no models.
//
//	r, err := replace.Apply("a = 1\n\tb = 2\n", "b = 2 ", "b = 3", false)
//	// r.Text == "a = 1\n\tb = 3\n", r.Stage == "line_trimmed", r.Replaced == "\tb = 2"
//
// Stages look for the passage, the strictest first; the first that finds exactly one place decides. A stage that
// finds several does not guess: a later one may only narrow them down to one, else the answer is "multiple".
//
// What was quoted to the byte is replaced to the byte. Anything else is a three-way merge (Merge): what was quoted is
// the base, what the file has there is ours, the new text is theirs. Lines and words that were not quoted stay, lines
// that are new get the file's indentation, and where the change touches something that is not as it was quoted, or
// could be meant in two ways, it is refused with the block as it stands ("conflict"). A refusal costs one more call; a
// wrong text that is reported as a success costs a person's work.
//
// Where OpenCode's replacers, whose stages these were, write something else:
//
//	case                                        OpenCode 1.18                        here
//	a block like the quoted, with other lines   replaced whole                       merged: lines that were not quoted stay
//	a block like the quoted, whose changed      replaced                             conflict
//	  lines are not as quoted
//	exact match in several places               a looser stage may pick one          multiple
//	several loosely matching places             the first unique text wins           the one closest in indentation, else multiple;
//	                                                                                 with replaceAll each merged for itself
//	the file has newString there already        written a second time                conflict
//	"// ... existing code ..." for lines        written, and the lines are lost      conflict
//	line numbers in newString only              written                              conflict
//	several best blocks on a tie                the first                            not found: a line must tell which it is
//	a quoted line that the block lacks is       replaced                             not found
//	  in another place
//	oldString of white space only               matches empty text, inserts anywhere only real white space
//	oldString escaped once too often            newString as escaped                 newString is decoded likewise
//	typographic quotes, dashes and blanks       not found                            found, and those of the file stay
//	line numbers copied along in every line     not found                            removed where the rest is exact
//	white space inside lines                    as in newString                      the file's own where newString does not change it
//	white space inside a literal                as in newString                      text: other blanks are another literal
//	$&, $1, $$ in newString with replaceAll     expanded                             literal
//	whole lines matched, file has CRLF          the last CR is lost                  kept
//	oldString ends in a newline, lines matched  one newline too many                 the file's own newline stays, or its absence
//	lines matched at another indentation        newString as quoted                  newString re-indented by the difference, line by
//	                                                                                 line where no one difference explains all; conflict
//	                                                                                 where the depth of a new line cannot be told
//	blanks around oldString, not in the file    written anyway                       those newString shares with oldString are left out
//	blanks around oldString, file has a word    matches inside the word              no match: " if " is not in "xifx"
//	the same lines once in CRLF, once in LF     the CRLF ones                        multiple: a model sees no CR
//	quoted from a line's beginning or to its     matches inside the line                   no match
//	  end, by a line break
//	a line break around oldString only           glued to the next line               conflict
//	quoted behind the indentation, comes back    only the first line is indented      all get the file's indentation
//	  below new lines
//	one of several matches cuts a word, all     replaced too                         left
//	replaceAll that would add over 64 MiB       done                                 oversize
//	mixed line endings                          all CRLF                             unchanged lines keep theirs
//	bytes that are not UTF-8                    become U+FFFD                        kept
//	white space                                 ECMAScript's                         Unicode's (U+0085 too)
//	time                                        quadratic and worse                  bounded; beyond it the stage finds nothing
package replace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Stages are the names of the stages in the order in which Apply tries them, the strictest first. Result.Stage is one of them, or
// "line_numbers" where oldString was exact but for line numbers in front of its lines.
var Stages = [...]string{"simple", "line_trimmed", "whitespace_normalized", "indentation_flexible",
	"escape_normalized", "trimmed_boundary", "typography", "similar_block"}

// finders are the functions of the stages, in the order of Stages. A finder returns every place that may be the passage, in the order of
// the text, at most mostPlaces, and nil when the budget (work) does not suffice.
var finders = [len(Stages)]func(*query) []place{simple, lineTrimmed, whitespaceNormalized, indentationFlexible,
	escapeNormalized, trimmedBoundary, typography, similarBlock}

// Apply replaces old by new in text: the only place where old is found, or with all every place that has the text of the first match. The
// caller has removed byte order marks; old and new may have any line endings, and the text's own are kept. The error is an *Error. Calls
// share no state and may run concurrently.
func Apply(text, old, new string, all bool) (Result, error) {
	return ApplyIn(nil, text, old, new, all)
}

// ApplyIn is Apply for a text whose literals are known. In a literal blanks are text: a line of one that differs from the quoted line in them is
// another line. literals is called only where that matters; nil stands for an unknown language.
func ApplyIn(literals Literals, text, old, new string, all bool) (Result, error) {
	old, new = toLF(old), toLF(new)
	switch {
	case old == new:
		return Result{}, &Error{Kind: Identical, Message: "oldString and newString are identical, so there is nothing to change; give the text as it should become in newString"}
	case old == "":
		return Result{}, &Error{Kind: EmptyOld, Message: "oldString is empty but the file exists; quote the text to replace, or use write to replace the whole file"}
	}
	if why := Misgiven("newString", old, new); why != "" {
		return Result{}, &Error{Kind: Conflict, Message: why}
	}
	q := newQuery(text, old)
	q.literals = literals
	if !all && !strings.Contains(q.src.text, old) {
		if r, ok, err := applyUnnumbered(text, old, new); ok || err != nil {
			return r, err
		}
	}
	var pending []place // what the first stage that could not decide found
	for i, find := range finders {
		places := find(q)
		if len(places) == 0 {
			continue
		}
		first := places[0]
		if oversize(q.src.text[first.start:first.end], old) {
			return Result{}, q.oversize(first)
		}
		if all {
			return q.everywhere(i, places, new)
		}
		if pending != nil {
			places = inBoth(places, pending)
		}
		// A loose match may be the wrong passage: the one that was meant has been edited since, and another looks like it.
		if len(places) == 1 && i > 0 {
			if rival := q.rival(places[0], Stages[i] == "similar_block"); rival >= 0 {
				return Result{}, q.multiple(Stages[i], []place{places[0], q.block(rival, 1)}, 2)
			}
		}
		if len(places) == 1 && q.alone(places[0]) {
			if i == 0 {
				if err := q.glued(places[0], new); err != nil {
					return Result{}, err
				}
			}
			return q.result(Stages[i], places, new)
		}
		switch {
		case i == 0: // quoted exactly: a looser stage must not choose among exact matches
			return Result{}, q.multiple(Stages[0], bounded(q.src.text, old), strings.Count(q.src.text, old))
		case pending == nil && len(places) == 1: // the same text is also where this stage does not look
			same := q.src.text[first.start:first.end]
			return Result{}, q.multiple(Stages[i], bounded(q.src.text, same), strings.Count(q.src.text, same))
		// The first stage that finds several places names them in the refusal; later ones may only choose among them.
		case pending == nil:
			pending, q.undecided = places, Stages[i]
		}
	}
	if pending != nil {
		return Result{}, q.multiple(q.undecided, pending, len(pending))
	}
	return Result{}, q.notFound()
}

// everywhere replaces all places that a stage found, and where else the file has their texts. Places that match loosely may have different
// texts, other indentations for example; each is merged for itself, and all are replaced or none.
func (q *query) everywhere(stage int, places []place, new string) (Result, error) {
	first := places[0]
	if stage > 0 && Stages[stage] == "similar_block" {
		if rival := q.rival(first, true); rival >= 0 {
			return Result{}, q.multiple(Stages[stage], []place{first, q.block(rival, 1)}, 2)
		}
	}
	var fits func(place) bool
	// White space that is quoted but not in the match separates words, so no match may cut a word.
	if stage > 0 && first.n == 0 {
		fits = q.apart
	}
	var hits []place
	seen := map[string]bool{}
	for _, p := range places {
		is := q.src.text[p.start:p.end]
		if seen[is] || p.n == 0 && fits != nil && !fits(p) {
			continue
		}
		seen[is] = true
		for _, h := range occurrences(q.src.text, is, fits) {
			line := q.src.lineAt(h.start)
			whole := p.n > 0 && line+p.n <= q.src.count() && h == place{start: q.src.starts[line], end: q.src.lineEnd(line + p.n - 1)}
			if whole { // merged as such
				h = q.block(line, p.n)
			}
			// White space quoted in front of whole lines is their indentation: the same text inside a line is not meant.
			if whole || p.n == 0 || trimLeft(q.old) == q.old {
				hits = append(hits, h)
			}
		}
	}
	if len(hits) == 0 {
		return Result{}, q.notFound()
	}
	slices.SortFunc(hits, func(a, b place) int { return cmp.Compare(a.start, b.start) })
	// Nothing was quoted exactly: beside others that are whole words, a match within a word may be another word.
	if stage > 0 && slices.ContainsFunc(hits, q.cutsWord) && slices.ContainsFunc(hits, func(h place) bool { return !q.cutsWord(h) }) {
		return Result{}, q.multiple(Stages[stage], hits, len(hits))
	}
	for k := 1; k < len(hits); k++ {
		if hits[k].start < hits[k-1].end || len(places) == mostPlaces && len(seen) > 1 {
			return Result{}, q.multiple(Stages[stage], places, len(places))
		}
	}
	if grown := len(hits) * max(0, len(new)-(first.end-first.start)); grown > mostGrowth {
		return Result{}, &Error{Kind: Oversize, Message: fmt.Sprintf(
			"replacing all %d places would make the file %d MiB larger; this is probably not intended; quote more so that fewer places match", len(hits), grown>>20)}
	}
	return q.result(Stages[stage], hits, new)
}

// cutsWord reports whether a place begins or ends within a word.
func (q *query) cutsWord(p place) bool {
	text := q.src.text
	joined := func(at int) bool {
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at:])
		return isWord(before) && isWord(after)
	}
	return joined(p.start) || joined(p.end)
}

// glued refuses an exact replacement that would join the new text to another line: the quotation begins or ends with a line break and the
// new text does not. It is never meant: the model forgot a line break, or quoted a blank line that is not there.
func (q *query) glued(p place, new string) error {
	// One space is how lines are joined on purpose; indentation is that of a line.
	joins := new == "" || new[0] == '\n' || new[0] == ' ' && (len(new) == 1 || trim(new[1:2]) != "")
	text := q.src.text
	said := func(where, line string) error {
		return &Error{Kind: Conflict, Lines: []int{q.src.lineAt(p.start) + 1}, Message: fmt.Sprintf(
			"oldString %s with a line break and newString does not, so the new text would be on one line with %s; nothing was changed. Quote and give whole lines, both with the line break or both without", where, show(line, 0))}
	}
	if strings.HasPrefix(q.old, "\n") && !joins && p.start > 0 && text[p.start-1] != '\n' {
		return said("begins", q.src.line(q.src.lineAt(p.start)))
	}
	if strings.HasSuffix(q.old, "\n") && new != "" && trim(new[len(new)-1:]) != "" && p.end < len(text) && text[p.end] != '\n' {
		return said("ends", q.src.line(q.src.lineAt(p.end)))
	}
	return nil
}

// SimilarBlock finds the one block of a text that has most of the quoted lines in their order; see similarBlock. first is its 0-based first
// line, n the number of its lines. text may have any line endings. Package patch uses it for hunks that are not found.
func SimilarBlock(text string, quoted []string) (first, n int, ok bool) {
	q := newQuery(text, strings.Join(quoted, "\n"))
	q.lines, q.ended = quoted, false
	places := similarBlock(q)
	if len(places) != 1 || oversize(q.src.text[places[0].start:places[0].end], q.old) {
		return 0, 0, false
	}
	return places[0].line, places[0].n, true
}

// Rival looks for another block that may be meant instead of one that was found loosely, n lines from first on: most of the quoted lines
// are there, at the indentation that was quoted. similar says that SimilarBlock found the block. It returns the 0-based first line of the
// other, -1 without one.
func Rival(text string, quoted []string, first, n int, similar bool) int {
	q := newQuery(text, strings.Join(quoted, "\n"))
	q.lines, q.ended = quoted, false
	q.src.split()
	return q.rival(q.block(first, n), similar)
}

// mostGrowth is how many bytes replacing all may add: a short old that occurs often, times a long new, could fill the memory. It equals
// the largest file that can be edited (files.MaxText).
const mostGrowth = 64 << 20

// place is a half-open range of the LF text that a stage proposes.
type place struct {
	start, end int // byte offsets in source.text
	line, n    int // 0-based first line and number of lines when whole lines matched, n 0 otherwise
}

// inBoth keeps the places that are in both lists.
func inBoth(places, of []place) []place {
	known := make(map[place]bool, len(of))
	for _, p := range of {
		known[p] = true
	}
	var out []place
	for _, p := range places {
		if known[p] {
			out = append(out, p)
		}
	}
	return out
}

// alone reports whether p's text is nowhere else in the file, overlaps included: a stage that finds one place may have
// missed the same text where it does not look.
func (q *query) alone(p place) bool {
	want := q.src.text[p.start:p.end]
	if want == "" {
		return false
	}
	first := strings.Index(q.src.text, want)
	return !strings.Contains(q.src.text[first+1:], want) // LastIndex would go back byte by byte
}

// rival is the first line of another place that has most of the quoted lines at the indentation at which they were quoted, -1 without one.
// The passage that was meant may be there, edited since it was read, while the one that was found only looks like it. Where the one that
// was found is not as quoted, but for blanks at line ends, a smaller share is enough for doubt, and a quarter where it is not as deep. Every
// line of the file votes for the line at which the block would begin, so one pass suffices.
func (q *query) rival(p place, similar bool) int {
	n := len(q.lines)
	if p.n == n && !similar {
		if line := q.outgrown(p); line >= 0 {
			return line
		}
	}
	type deep struct{ indent, key string }
	as := func(line string) deep { return deep{indent(line), key(line)} }
	where := make(map[deep][]int, n)
	all, filled, longest := 0, 0, 0
	for k, line := range q.lines {
		if weight := len(trim(line)); weight > 0 {
			where[as(line)] = append(where[as(line)], k)
			all += min(weight, 40)
			filled++
			if weight > len(trim(q.lines[longest])) {
				longest = k
			}
		}
	}
	share := 70 // hundredths of the quoted text
	if p.n != n {
		share = 40
	} else if p.n > 0 {
		for k, line := range q.lines {
			have := q.src.line(p.line + k)
			if trim(line) != "" && trimRight(line) != trimRight(have) {
				share = min(share, 40)
			}
			if trim(line) != "" && indent(line) != indent(have) {
				share = 25
				break
			}
		}
	}
	if p.n == n && share < 70 { // nor is another place that differs from the quotation in other blanks
		for _, o := range typography(q) {
			if o.n == n && o.line != p.line {
				return o.line
			}
		}
	}
	from, to := q.src.lineAt(p.start), q.src.lineAt(p.end)
	switch {
	case similar: // not all of the quotation is there, so that less of it in another place is enough for doubt
		share = 30
	case share < 70 && share != 25 && q.anchored(from, to):
		share = 70
	}
	if n < 2 && share > 40 || all == 0 {
		return -1
	}
	slack := max(2, n/4)
	votes := map[int]int{} // weight of the lines found, by where the block would begin, in steps of slack
	first := map[int]int{}
	vote := func(i, k, weight int) {
		at := (i - k + n) / slack
		if votes[at] == 0 {
			first[at] = i
		}
		votes[at] += weight
	}
	for i := range q.src.count() {
		if i >= from && i <= to {
			continue
		}
		line := q.src.line(i)
		ks := where[as(line)]
		for _, k := range ks[:min(len(ks), 8)] {
			vote(i, k, min(len(trim(q.lines[k])), 40))
		}
		// A quotation of a single line has one vote; its edited form counts too, or an edited line could never be a rival.
		if want := q.lines[longest]; filled == 1 && len(ks) == 0 && share < 70 && indent(line) == indent(want) &&
			q.spend(steps(line, want)) && likeness(line, want) >= alike {
			vote(i, longest, min(len(trim(want)), 40)*3/4)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(votes)) { // in their order, so that the same refusal has the same words
		if 100*(votes[at]+votes[at+1]) >= share*all {
			return first[at]
		}
	}
	return -1
}

// outgrown is the line behind a block (or before it) that may be its last line (or its first), -1 without one: the block's lines with words
// are as deep as quoted, its last line is a bracket that is not, and the next line is the same bracket. A bracket that the quotation left
// out has moved the block by one.
func (q *query) outgrown(p place) int {
	moved := func(k int) bool { return indent(q.lines[k]) != indent(q.src.line(p.line+k)) }
	for k, line := range q.lines {
		if worded(line) && moved(k) {
			return -1
		}
	}
	for _, side := range [][3]int{{p.n - 1, 1, p.line + p.n}, {0, -1, p.line - 1}} {
		k, step, at := side[0], side[1], side[2]
		if worded(q.lines[k]) || trim(q.lines[k]) == "" || !moved(k) {
			continue
		}
		for at >= 0 && at < q.src.count() && trim(q.src.line(at)) == "" {
			at += step
		}
		if at >= 0 && at < q.src.count() && trim(q.src.line(at)) == trim(q.lines[k]) {
			return at
		}
	}
	return -1
}

// anchored reports whether the lines from to to include a quoted one that is long enough to identify a place, occurs in the file only
// once, and has nothing similar elsewhere: a similar line might be this one in the place that was meant, edited since.
func (q *query) anchored(from, to int) bool {
	times, inside := make(map[string]int, len(q.lines)), map[string]bool{}
	for _, line := range q.lines {
		if k := key(line); len(k) >= telling {
			times[k] = 0
		}
	}
	have := q.src.keys()
	for i, k := range have {
		if n, quoted := times[k]; quoted {
			times[k] = n + 1
			inside[k] = inside[k] || i >= from && i <= to
		}
	}
	for _, line := range q.lines { // in their order: what the budget covers must not depend on chance
		if k := key(line); times[k] == 1 && inside[k] && !slices.ContainsFunc(have, func(h string) bool {
			near := min(len(h), len(k))*4 >= max(len(h), len(k))*3
			return h != k && near && (!q.spend(steps(h, k)) || likeness(h, k) >= 0.75 || grown(h, k))
		}) {
			return true
		}
	}
	return false
}

// oversize is OpenCode's guard against a match that swallows far more than was quoted: at least twice the lines and at least three
// more, then, for several lines, over four times the characters and over 500 more. Loose stages could otherwise delete text that the
// model has never seen.
func oversize(match, old string) bool {
	n, m := strings.Count(old, "\n")+1, strings.Count(match, "\n")+1
	if m >= max(n+3, 2*n) {
		return true
	}
	if n == 1 {
		return false
	}
	have := runeLen(trim(match))
	if have <= 500 { // cheaper than counting the other
		return false
	}
	quoted := runeLen(trim(old))
	return have > max(quoted+500, 4*quoted)
}

// Kinds of refusal; stable, they appear in machine output.
const (
	Identical = "identical" // old and new are the same text
	EmptyOld  = "empty_old" // nothing is quoted
	NotFound  = "not_found"
	Multiple  = "multiple" // several places match alike
	Oversize  = "oversize" // the match, or what replacing all adds, is far larger than meant
	Conflict  = "conflict" // the change touches lines that are not as quoted
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
	// Reworded says that Replaced differs from old in more than white space and typography.
	Reworded bool
	// Written is what was put there (first span), when it is not what new says byte for byte: the
	// indentation or a line ending was adapted.
	Written string
}

// Span is a half-open range of a text.
type Span struct {
	Start, End         int // bytes from 0
	StartLine, EndLine int // 1-based, both included
}

// Error says why nothing was replaced, in words for the one who must quote better.
type Error struct {
	Kind    string // Identical, EmptyOld, NotFound, Multiple, Oversize, Conflict
	Message string // for the model: what failed, what the file has there, what to do next
	Lines   []int  // 1-based first lines of the places meant: the matches (4,096 at most), or the nearest miss
}

// Error is Message.
func (e *Error) Error() string { return e.Message }
