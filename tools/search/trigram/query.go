// Package trigram narrows a search to the files that can hold a match. Every text of three bytes or more consists of overlapping pieces
// of three bytes, its trigrams; a file that lacks one of those that each match must hold cannot match, and need not be read. A Writer
// makes a Segment of many texts, a Segment answers a Query with the groups of texts that may match. The package knows no projects: which
// files there are, whether they are still what was indexed, and the search of what remains are left to its caller.
//
//	q := trigram.For(re)            // of a parsed regular expression
//	set, err := segment.Match(q)    // a superset of the groups with a match
//	if set.Has(doc.Group) { … }     // search the document itself
//
// Texts are bytes, and a match lies in one line: trigrams with a line end are not kept.
package trigram

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// Query says which trigrams a matching text holds. The zero value accepts every text.
type Query struct {
	op   op
	gram uint32 // of gram: its three bytes, the first one highest
	sub  []Query
}

// op is what a Query demands.
type op byte

const (
	anything op = iota // no demand
	nothing            // no text can match
	gram               // this trigram
	and                // all of sub
	or                 // at least one of sub
)

// Limits of a query. All of them only make it accept more.
const (
	maxCombinations = 64 // texts of one window: three letters without case are eight
	maxWindows      = 48 // windows of one run of known characters
	maxClass        = 16 // characters of a class that are written out
	maxAlternatives = 16 // texts of an alternation that are taken as one piece
)

// Narrows reports whether the query excludes anything. Without that every text has to be searched.
func (q Query) Narrows() bool { return q.op != anything }

// piece is a part of what a match consists of: one of some texts, or something unknown that demands q.
type piece struct {
	texts   []string // nil: unknown
	unknown Query
}

// For returns what a text must hold for the expression to match somewhere in it. It must not be able to match a line end.
func For(re *syntax.Regexp) Query { return demand(pieces(re)) }

// pieces cuts an expression into parts that follow one another in a match.
func pieces(re *syntax.Regexp) []piece {
	switch re.Op {
	case syntax.OpNoMatch:
		return []piece{{unknown: Query{op: nothing}}}
	case syntax.OpLiteral:
		var out []piece
		for _, r := range re.Rune {
			out = append(out, character(r, re.Flags&syntax.FoldCase != 0))
		}
		return out
	case syntax.OpCharClass:
		return []piece{class(re.Rune)}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return nil // they take no bytes, so what is before and behind them is adjacent
	case syntax.OpCapture:
		return pieces(re.Sub[0])
	case syntax.OpConcat:
		var out []piece
		for _, sub := range re.Sub {
			out = append(out, pieces(sub)...)
		}
		return out
	case syntax.OpAlternate:
		return []piece{alternatives(re.Sub)}
	case syntax.OpQuest:
		if texts := product(pieces(re.Sub[0]), maxAlternatives-1); texts != nil {
			return []piece{{texts: append(texts, "")}}
		}
	case syntax.OpPlus:
		// The first repetition follows what is before it, the last one is followed by what is behind; between them may be anything.
		sub := pieces(re.Sub[0])
		return append(append(append([]piece{}, sub...), piece{}), sub...)
	case syntax.OpRepeat:
		if re.Min > 0 {
			sub := pieces(re.Sub[0])
			return append(append(append([]piece{}, sub...), piece{}), sub...)
		}
	}
	return []piece{{}} // .*, and what is not understood
}

// character is one character, in all its cases where fold is set. U+FFFD is unknown: regexp matches it with any byte that is not UTF-8.
func character(r rune, fold bool) piece {
	if !known(r) {
		return piece{}
	}
	texts := []string{string(r)}
	if fold {
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			texts = append(texts, string(next))
		}
	}
	return piece{texts: texts}
}

// known reports whether a character of an expression matches its UTF-8 encoding and nothing else.
func known(r rune) bool { return r != utf8.RuneError && utf8.ValidRune(r) }

// class is one character of a class, which is given as pairs of a first and a last one.
func class(ranges []rune) piece {
	var texts []string
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] >= maxClass || len(texts)+int(ranges[i+1]-ranges[i]) >= maxClass {
			return piece{}
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if !known(r) {
				return piece{}
			}
			texts = append(texts, string(r))
		}
	}
	if texts == nil {
		return piece{unknown: Query{op: nothing}}
	}
	return piece{texts: texts}
}

// alternatives is one of several expressions: their texts where these are few, else what each of them demands.
func alternatives(subs []*syntax.Regexp) piece {
	var texts []string
	demands := make([]Query, 0, len(subs))
	few := true
	for _, sub := range subs {
		ps := pieces(sub)
		demands = append(demands, demand(ps))
		more := product(ps, maxAlternatives-len(texts))
		few = few && more != nil
		texts = append(texts, more...)
	}
	if few {
		return piece{texts: texts}
	}
	return piece{unknown: anyOf(demands)}
}

// product lists all texts that the pieces can be, at least one; nil if they are more than limit or not known.
func product(ps []piece, limit int) []string {
	texts := []string{""}
	for _, p := range ps {
		if texts = cross(texts, p.texts, limit); texts == nil {
			return nil
		}
	}
	if len(texts) > limit {
		return nil
	}
	return texts
}

// cross appends each of b to each of a; nil if that gives more than limit texts, or none.
func cross(a, b []string, limit int) []string {
	if len(a)*len(b) > limit {
		return nil
	}
	var out []string
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// demand is what a sequence of pieces demands: the trigrams in each run of known ones, and what the unknown ones do.
func demand(ps []piece) Query {
	var all []Query
	for len(ps) > 0 {
		n := 0
		for n < len(ps) && ps[n].texts != nil {
			n++
		}
		all = append(all, windows(ps[:n])...)
		if n < len(ps) {
			all = append(all, ps[n].unknown)
			n++
		}
		ps = ps[n:]
	}
	return allOf(all)
}

// windows looks at the texts that begin with each of the pieces and are just long enough to hold a trigram.
func windows(run []piece) []Query {
	var all []Query
	for i := range run {
		texts := []string{""}
		for _, p := range run[i:] {
			if texts = cross(texts, p.texts, maxCombinations); texts == nil || shortest(texts) >= 3 {
				break
			}
		}
		if texts == nil || shortest(texts) < 3 {
			continue // too many, or the run ends before there is one
		}
		var choices []Query
		for _, t := range texts {
			choices = append(choices, holds(t))
		}
		if all = append(all, anyOf(choices)); len(all) == maxWindows {
			break
		}
	}
	return all
}

// shortest is the length of the shortest text in bytes.
func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return n
}

// holds demands all trigrams of a text. One with a line end is in no line.
func holds(text string) Query {
	var all []Query
	for i := 0; i+3 <= len(text); i++ {
		if text[i] == '\n' || text[i+1] == '\n' || text[i+2] == '\n' {
			return Query{op: nothing}
		}
		all = append(all, Query{op: gram, gram: uint32(text[i])<<16 | uint32(text[i+1])<<8 | uint32(text[i+2])})
	}
	return allOf(all)
}

// allOf joins demands that hold together.
func allOf(qs []Query) Query {
	var sub []Query
	for _, q := range qs {
		switch q.op {
		case nothing:
			return q
		case anything:
		case and:
			sub = append(sub, q.sub...)
		default:
			sub = append(sub, q)
		}
	}
	return joined(and, sub, anything)
}

// anyOf joins demands of which one holds.
func anyOf(qs []Query) Query {
	var sub []Query
	for _, q := range qs {
		switch q.op {
		case anything:
			return q
		case nothing:
		case or:
			sub = append(sub, q.sub...)
		default:
			sub = append(sub, q)
		}
	}
	return joined(or, sub, nothing)
}

// joined is a query of several, of one, or of none.
func joined(o op, sub []Query, none op) Query {
	switch len(sub) {
	case 0:
		return Query{op: none}
	case 1:
		return sub[0]
	}
	return Query{op: o, sub: sub}
}

// accepts reports whether a set of trigrams meets the demand. Match does the same for many texts at once.
func (q Query) accepts(has func(uint32) bool) bool {
	switch q.op {
	case nothing:
		return false
	case gram:
		return has(q.gram)
	case and:
		for _, s := range q.sub {
			if !s.accepts(has) {
				return false
			}
		}
	case or:
		for _, s := range q.sub {
			if s.accepts(has) {
				return true
			}
		}
		return false
	}
	return true
}
