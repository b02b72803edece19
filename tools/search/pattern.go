package search

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Pattern is a compiled glob over slash-separated relative paths: * and ? within one component, ** across
// components, [abc] [a-z] [!x], {a,b} (also nested), \ escapes. A pattern without a slash matches the last
// component anywhere; one with a slash is anchored where the search begins. It is ripgrep's -g in all of this,
// except that it never brings back ignored files. It is immutable once parsed, so goroutines share it.
type Pattern struct {
	Text   string
	Negate bool // the pattern began with !
	alts   []path
}

// path is one alternative: a list of components; ** is nil. A pattern has one path for each expansion of its braces.
type path struct {
	comps  []*segment
	single bool // one component that may be at any depth: it is compared with the base name
}

// maxAlternatives limits the expansion of braces: {a,b}{c,d}… doubles with each group, so thirty groups would fill the memory.
const maxAlternatives = 1024

// ParsePattern compiles a glob as a model writes it. Errors are texts for a model; Glob and Grep wrap them in a
// *PatternError.
func ParsePattern(text string) (*Pattern, error) {
	p := &Pattern{Text: text}
	s := strings.TrimPrefix(text, "./")
	if strings.HasPrefix(s, "!") {
		p.Negate, s = true, s[1:]
	}
	if strings.HasSuffix(s, "/") { // a trailing slash means everything in the folder
		s += "**"
	}
	return p, p.compile(s)
}

// compile expands braces first, so that each alternative is a path of segments without braces.
func (p *Pattern) compile(s string) error {
	if s == "" {
		return fmt.Errorf("error parsing glob '%s': it is empty", p.Text)
	}
	alts, err := expand(s)
	if err != nil {
		return fmt.Errorf("error parsing glob '%s': %w", p.Text, err)
	}
	for _, a := range alts {
		one, err := compilePath(a)
		if err != nil {
			return fmt.Errorf("error parsing glob '%s': %w", p.Text, err)
		}
		p.alts = append(p.alts, one)
	}
	return nil
}

// compilePath compiles one alternative without braces. Several ** in a row mean the same as one and are reduced to one, so that
// matchComps does not backtrack over each.
func compilePath(s string) (path, error) {
	anywhere := !strings.Contains(s, "/")
	s = strings.TrimPrefix(s, "/")
	// Without a slash the pattern matches at any depth.
	if anywhere && s != "**" {
		s = "**/" + s
	}
	var out path
	for _, c := range strings.Split(s, "/") {
		if c == "**" {
			if n := len(out.comps); n == 0 || out.comps[n-1] != nil {
				out.comps = append(out.comps, nil)
			}
			continue
		}
		seg, err := compileSegment(c)
		if err != nil {
			return path{}, err
		}
		out.comps = append(out.comps, seg)
	}
	out.single = len(out.comps) == 2 && out.comps[0] == nil && out.comps[1] != nil
	return out, nil
}

// Match reports whether the pattern (without its negation) matches a slash-separated relative path.
func (p *Pattern) Match(rel string) bool {
	for i := range p.alts {
		// A loop is fast enough: alternatives are few, and most are decided by the base name.
		if p.alts[i].match(rel) {
			return true
		}
	}
	return false
}

// Wants is Match with the negation applied: !x wants everything except x. A nil pattern wants everything.
func (p *Pattern) Wants(rel string) bool { return p == nil || p.Match(rel) != p.Negate }

// namesOnly reports whether only base names are compared. A nil pattern has nothing to compare.
func (p *Pattern) namesOnly() bool {
	if p == nil {
		return true
	}
	for i := range p.alts {
		if !p.alts[i].single {
			return false
		}
	}
	return true
}

// match matches a slash-separated path relative to the search root. A pattern without a slash is compared with the base name only.
func (a *path) match(rel string) bool {
	if a.single {
		return a.comps[1].match(rel[strings.LastIndexByte(rel, '/')+1:])
	}
	return matchComps(a.comps, rel, true)
}

// matchComps matches components with a path; more says that rel still has a component, which may be empty. After a mismatch it
// resumes after the last ** only. That is sufficient, and the work is at most components times path length.
func matchComps(comps []*segment, rel string, more bool) bool {
	var backComps []*segment // where to resume after the last **
	var backRel string
	back := false
	for {
		switch {
		case len(comps) == 0 && !more:
			return true
		case len(comps) > 0 && comps[0] == nil:
			// a/** matches what is in a, but not a itself, as in gitignore(5).
			if len(comps) == 1 {
				return more // a trailing ** must match at least one component
			}
			comps = comps[1:]
			backComps, backRel, back = comps, rel, more
			continue
		case len(comps) > 0 && more:
			name, rest, ok := strings.Cut(rel, "/")
			if comps[0].match(name) {
				comps, rel, more = comps[1:], rest, ok
				continue
			}
		}
		// A mismatch: the last ** matches one more component. Without a ** before it, or at the end of rel, the path does not
		// match.
		if !back {
			return false
		}
		_, rest, ok := strings.Cut(backRel, "/")
		if !ok {
			return false
		}
		comps, rel, more = backComps, rest, true
		backRel = rest
	}
}

// segment matches one path component. The common kinds are compared as text; segmentGeneral uses tokens. A segment is compiled once and
// compared with every name of a project, hence the fast paths.
type segment struct {
	kind   segmentKind
	text   string // literal, prefix or suffix
	tokens []token
}

// segmentKind names the shapes that need no backtracking. Almost all segments have one of them; the rest are segmentGeneral.
type segmentKind byte

const (
	segmentGeneral segmentKind = iota
	segmentAny                 // *
	segmentLiteral             // Makefile
	segmentSuffix              // *.go
	segmentPrefix              // test_*
)

// token is one element of a segment. A literal byte that is not UTF-8 is stored as a negative rune, see runeOrByte.
type token struct {
	kind   tokenKind
	r      rune
	negate bool
	ranges [][2]rune
}

// tokenKind is what a token stands for; the zero value is one literal character, the most frequent one.
type tokenKind byte

const (
	tokenRune tokenKind = iota
	tokenOne            // ?
	tokenStar
	tokenClass
)

// compileSegment parses the part of a glob between two slashes. The error texts are those of globset, the library that ripgrep uses.
func compileSegment(s string) (*segment, error) {
	seg := &segment{}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch r {
		case '*':
			if k := len(seg.tokens); k == 0 || seg.tokens[k-1].kind != tokenStar {
				seg.tokens = append(seg.tokens, token{kind: tokenStar})
			}
		case '?':
			seg.tokens = append(seg.tokens, token{kind: tokenOne})
		case '[':
			t, used, err := compileClass(s[i:])
			if err != nil {
				return nil, err
			}
			i += used
			seg.tokens = append(seg.tokens, t)
		// Outside a class a backslash makes any character literal, as in glob(7). At the end of a pattern it is an error.
		case '\\':
			if i == len(s) {
				return nil, fmt.Errorf("dangling '\\'")
			}
			r, n = utf8.DecodeRuneInString(s[i:])
			i += n
			fallthrough
		default:
			seg.tokens = append(seg.tokens, token{r: runeOrByte(s[i-n:i], r)})
		}
	}
	seg.classify()
	return seg, nil
}

// runeOrByte is r, or for a byte that is not UTF-8 the negative rune -1-byte. File names are bytes: if all such bytes were
// utf8.RuneError, a glob would match names with other bytes.
func runeOrByte(s string, r rune) rune {
	if r == utf8.RuneError && len(s) == 1 {
		return -1 - rune(s[0])
	}
	return r
}

// classify finds the shape of a segment; see segmentKind.
func (g *segment) classify() {
	literal := func(ts []token) (string, bool) {
		var b strings.Builder
		for _, t := range ts {
			if t.kind != tokenRune {
				return "", false
			}
			if t.r < 0 {
				b.WriteByte(byte(-1 - t.r))
			} else {
				b.WriteRune(t.r)
			}
		}
		return b.String(), true
	}
	n := len(g.tokens)
	var ok bool
	if g.text, ok = literal(g.tokens); ok {
		g.kind = segmentLiteral
		return
	}
	if n == 1 && g.tokens[0].kind == tokenStar {
		g.kind = segmentAny
		return
	}
	if g.tokens[0].kind == tokenStar {
		if g.text, ok = literal(g.tokens[1:]); ok {
			g.kind = segmentSuffix
			return
		}
	}
	if g.tokens[n-1].kind == tokenStar {
		if g.text, ok = literal(g.tokens[:n-1]); ok {
			g.kind = segmentPrefix
		}
	}
}

// posixClasses are the classes that Git knows in ignore files, such as [[:digit:]], as pairs of the first and last character of a range.
// They are ASCII only, as in the C locale.
var posixClasses = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~", "lower": "az", "print": " ~",
	"punct": "!/:@[`{~", "space": "  \t\r", "upper": "AZ", "xdigit": "09AFaf",
}

// compileClass parses [...] after the opening bracket and returns how many bytes it has read. A "]" right after the opening bracket is
// a member, as in POSIX.
func compileClass(s string) (token, int, error) {
	t := token{kind: tokenClass}
	i := 0
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		t.negate = true
		i++
	}
	for first := true; i < len(s); first = false {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == ']' && !first {
			return t, i + 1, nil
		}
		if name, rest, ok := strings.Cut(strings.TrimPrefix(s[i:], "[:"), ":]"); ok && strings.HasPrefix(s[i:], "[:") && posixClasses[name] != "" {
			for set := []rune(posixClasses[name]); len(set) > 1; set = set[2:] {
				t.ranges = append(t.ranges, [2]rune{set[0], set[1]})
			}
			i = len(s) - len(rest)
			continue
		}
		i += n
		last := len(t.ranges) - 1
		// A dash at either end of a class is a member; so is one after a range.
		if r == '-' && !first && last >= 0 && i < len(s) && s[i] != ']' && t.ranges[last][0] == t.ranges[last][1] {
			hi, m := utf8.DecodeRuneInString(s[i:])
			i += m
			if hi < t.ranges[last][0] {
				return t, 0, fmt.Errorf("invalid range; '%c' > '%c'", t.ranges[last][0], hi)
			}
			t.ranges[last][1] = hi
			continue
		}
		t.ranges = append(t.ranges, [2]rune{r, r})
	}
	return t, 0, fmt.Errorf("unclosed character class; missing ']'")
}

// matches compares one character, case-sensitively. It never gets a slash, because names were split at slashes before.
func (t *token) matches(r rune) bool {
	switch t.kind {
	case tokenRune:
		return t.r == r
	case tokenOne:
		return true
	}
	for _, x := range t.ranges {
		if x[0] <= r && r <= x[1] {
			return !t.negate
		}
	}
	return t.negate
}

// match matches a name. After a mismatch it resumes at the last star only. That is sufficient, and the work is at most the product
// of both lengths.
func (g *segment) match(name string) bool {
	switch g.kind {
	case segmentAny:
		return true
	case segmentLiteral:
		return name == g.text
	case segmentSuffix:
		return strings.HasSuffix(name, g.text)
	case segmentPrefix:
		return strings.HasPrefix(name, g.text)
	}
	star, mark := -1, 0
	t, i := 0, 0
	for i < len(name) {
		r, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case t < len(g.tokens) && g.tokens[t].kind == tokenStar:
			star, mark = t, i
			t++
		case t < len(g.tokens) && g.tokens[t].matches(runeOrByte(name[i:i+n], r)):
			t++
			i += n
		// A mismatch after a star: the star matches one more character, and the rest is tried again from there.
		case star >= 0:
			_, n := utf8.DecodeRuneInString(name[mark:])
			mark += n
			t, i = star+1, mark
		default:
			return false
		}
	}
	for t < len(g.tokens) && g.tokens[t].kind == tokenStar {
		t++
	}
	return t == len(g.tokens)
}

// expand resolves braces: each alternative of the first group is combined with each expansion of what follows the group; nested groups
// are expanded by recursion. A comma or brace in a class or after a backslash is an ordinary character.
func expand(s string) ([]string, error) {
	open, depth := -1, 0
	var commas []int
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			// compileSegment reports a [ without its ]; its error is better than one from here.
			if _, used, err := compileClass(s[i+1:]); err == nil {
				i += used
			}
		case '{':
			if depth++; depth == 1 {
				open, commas = i, nil
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth < 0 {
				return nil, fmt.Errorf("unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)")
			}
			if depth > 0 {
				continue
			}
			tails, err := expand(s[i+1:])
			if err != nil {
				return nil, err
			}
			var out []string
			from := open + 1
			for _, to := range append(commas, i) {
				inner, err := expand(s[from:to])
				if err != nil {
					return nil, err
				}
				for _, in := range inner {
					for _, t := range tails {
						if out = append(out, s[:open]+in+t); len(out) > maxAlternatives {
							return nil, fmt.Errorf("its braces expand to more than %d patterns", maxAlternatives)
						}
					}
				}
				from = to + 1
			}
			return out, nil
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)")
	}
	return []string{s}, nil
}
