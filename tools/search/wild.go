package search

import "strings"

// wild is a pattern of an ignore file that the fast shapes of segment do not cover. It compares bytes, as Git does: ? and a class stand for
// one byte, so a letter outside of ASCII needs a star or itself. The rules are those of gitignore(5) and, where that says nothing, what
// git check-ignore answers.
type wild struct {
	pattern string
	path    bool   // the pattern has a slash: it is compared with the whole path, and only ** crosses slashes
	head    int    // bytes before the first special character
	tail    string // what follows the last special character: most names are told apart by it alone
}

// newWild reads a pattern without its leading ! and trailing slash. anchored says that it began with a slash, which is cut off.
func newWild(pattern string, anchored bool) *wild {
	w := &wild{pattern: pattern, path: anchored || strings.Contains(pattern, "/"), head: strings.IndexAny(pattern, special)}
	if w.head >= 0 && !strings.HasSuffix(pattern, `\`) {
		w.tail = pattern[strings.LastIndexAny(pattern, special+"]")+1:]
		if strings.HasPrefix(pattern[len(pattern)-len(w.tail)-1:], `\`) { // the backslash quotes its first character, which may be a part of one
			w.tail = ""
		}
		w.tail = w.tail[strings.LastIndexByte(w.tail, '/')+1:] // **/ may stand for nothing, its slash included
	}
	return w
}

// special are the characters with which Git's patterns stop to be plain text.
const special = `*?[\`

// match compares with the path relative to the ignore file's folder, or with its base name.
func (w *wild) match(rel, name string) bool {
	if !strings.HasSuffix(rel, w.tail) {
		return false
	}
	if !w.path {
		return wildMatch(w.pattern, name, false)
	}
	// Git compares the text before the first special character by itself, and what follows as a pattern of its own. Two stars there are at
	// the beginning of a pattern, so they cross slashes: a**/b is a, then **/b.
	if w.head < 0 {
		return rel == w.pattern
	}
	rest, ok := strings.CutPrefix(rel, w.pattern[:w.head])
	return ok && wildMatch(w.pattern[w.head:], rest, true)
}

// wildMatch compares a whole text with a whole pattern. Positions that have failed are kept, so the work is at most the product of both
// lengths and hostile patterns cannot hang a walk.
func wildMatch(pattern, text string, path bool) bool {
	var failed map[[2]int]bool
	if strings.Count(pattern, "*") > 2 { // two cost at most the square of the text's length
		failed = map[[2]int]bool{}
	}
	var match func(p, t int) bool
	match = func(p, t int) bool {
		for p < len(pattern) {
			c := pattern[p]
			if c == '*' {
				key := [2]int{p, t}
				if failed[key] {
					return false
				}
				ok := wildStar(pattern, text, p, t, path, match)
				if !ok && failed != nil {
					failed[key] = true
				}
				return ok
			}
			if t == len(text) {
				return false
			}
			switch c {
			case '?':
				if path && text[t] == '/' {
					return false
				}
				p++
			case '[':
				end, in := wildClass(pattern, p, text[t])
				if end < 0 || !in || path && text[t] == '/' {
					return false
				}
				p = end
			case '\\':
				if p+1 == len(pattern) || pattern[p+1] != text[t] {
					return false
				}
				p += 2
			default:
				if c != text[t] {
					return false
				}
				p++
			}
			t++
		}
		return t == len(text)
	}
	return match(0, 0)
}

// wildStar matches the stars at p. Two or more that fill a component cross slashes, and together with the slash behind them may stand for
// nothing; other stars do not cross them where path is set.
func wildStar(pattern, text string, p, t int, path bool, match func(p, t int) bool) bool {
	end := p
	for end < len(pattern) && pattern[end] == '*' {
		end++
	}
	cross := !path
	if path && end-p > 1 {
		rest := pattern[end:]
		if (p == 0 || pattern[p-1] == '/') && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)) {
			if cross = true; rest != "" && rest[0] == '/' && match(end+1, t) {
				return true
			}
		}
	}
	for ; ; t++ {
		if match(end, t) {
			return true
		}
		if t == len(text) || !cross && text[t] == '/' {
			return false
		}
	}
}

// wildClass reads the class that opens at p and reports whether it has c. end is behind its closing bracket, -1 where there is none or a
// name such as [:letter:] is unknown: such a pattern matches nothing.
func wildClass(pattern string, p int, c byte) (end int, in bool) {
	p++
	negate := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negate {
		p++
	}
	found := false
	last := byte(0) // the byte before a dash, 0 where a dash is a member
	for first := true; ; first = false {
		if p >= len(pattern) {
			return -1, false
		}
		b := pattern[p]
		switch {
		case b == ']' && !first:
			return p + 1, found != negate
		case b == '\\':
			if p++; p == len(pattern) {
				return -1, false
			}
			last = pattern[p]
			found = found || c == last
		case b == '-' && last != 0 && p+1 < len(pattern) && pattern[p+1] != ']':
			if p++; pattern[p] == '\\' {
				if p++; p == len(pattern) {
					return -1, false
				}
			}
			found = found || last <= c && c <= pattern[p]
			last = 0
		case b == '[' && strings.HasPrefix(pattern[p:], "[:"):
			name, _, ok := strings.Cut(pattern[p+2:], "]")
			if !ok {
				return -1, false
			}
			if !strings.HasSuffix(name, ":") { // no name after all: a bracket
				last = '['
				found = found || c == '['
				break
			}
			set, known := posixClasses[strings.TrimSuffix(name, ":")]
			if !known {
				return -1, false
			}
			for i := 0; i+1 < len(set); i += 2 {
				found = found || set[i] <= c && c <= set[i+1]
			}
			p += 2 + len(name)
			last = 0
		default:
			last = b
			found = found || c == b
		}
		p++
	}
}

// trimIgnoreLine removes the blanks at the end of a line of an ignore file that no backslash quotes. A tab stays, as in Git.
func trimIgnoreLine(line string) string {
	end := len(line)
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
			end = len(line)
		case ' ':
			end = min(end, i)
		default:
			end = len(line)
		}
	}
	return line[:end]
}
