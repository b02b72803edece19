package scan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// printing is what commands write to their standard output, where that can be read off them.
type printing struct {
	text    string // as bash prints it
	decoded string // as a shell prints it whose echo decodes escapes without an option: dash, and bash under xpg_echo
	// same: every shell prints it, and each word of the commands is exactly known. Without it text is only good for rules that
	// deny: dash knows no \x, and its echo decodes what bash's does not.
	same bool
}

// prints is what a statement writes to its standard output: echo, printf, cat with a here document, and lists of these. ok is
// false where that cannot be read off it.
// The text may be a script (printf 'rm x' | sh), the name of a program ($(printf '\x72m') x), or names of files.
func (x *expander) prints(s *syntax.Stmt, st *state) (out printing, ok bool) {
	if s.Background || s.Coprocess || s.Negated {
		return printing{}, false
	}
	for _, r := range s.Redirs {
		// Output that a redirection sends elsewhere is not printed. A here document is what cat prints.
		if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc && r.Op != syntax.WordHdoc {
			return printing{}, false
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return x.callPrints(c, s.Redirs, st)
	case *syntax.Block:
		return x.printsAll(c.Stmts, st)
	case *syntax.Subshell:
		return x.printsAll(c.Stmts, st)
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt { // echo and printf succeed
			return x.printsAll([]*syntax.Stmt{c.X, c.Y}, st)
		}
	}
	return printing{}, false
}

// printsAll is what statements write one after the other.
func (x *expander) printsAll(list []*syntax.Stmt, st *state) (printing, bool) {
	all := printing{same: true}
	for _, s := range list {
		one, ok := x.prints(s, st)
		if !ok || len(all.text)+len(one.text) > MaxCommand {
			return printing{}, false
		}
		all.text += one.text
		all.decoded += one.decoded
		all.same = all.same && one.same
	}
	return all, true
}

// callPrints is what one call prints.
func (x *expander) callPrints(c *syntax.CallExpr, redirs []*syntax.Redirect, st *state) (printing, bool) {
	if len(c.Args) == 0 || len(c.Assigns) > 0 || !x.step() {
		return printing{}, false
	}
	var words []string
	same := true
	for _, word := range c.Args {
		for _, a := range x.args(word, st) {
			s, ok := a.One()
			if !ok {
				same = false
				if s, ok = Spelled([]Word{a}); !ok {
					return printing{}, false
				}
			}
			words = append(words, s)
		}
	}
	if x.funcs[words[0]] != nil { // a function of this name may print anything
		return printing{}, false
	}
	var out printing
	ok := false
	switch words[0] {
	case "true", ":":
		out, ok = printing{same: true}, len(redirs) == 0
	case "echo":
		out, ok = echoed(words[1:]), true
	case "printf":
		out, ok = formatted(words[1:])
	case "cat":
		for _, r := range redirs {
			if r.Hdoc != nil && len(words) == 1 {
				out.text, ok = x.hereText(r, st)
				out.decoded, out.same = out.text, ok
			}
		}
	}
	out.same = out.same && same
	return out, ok && len(out.text) <= MaxCommand
}

// echoed is what the builtin echo of bash prints for its words (bash(1), SHELL BUILTIN COMMANDS).
func echoed(words []string) printing {
	newline, escapes, same := "\n", false, true
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' && strings.Trim(words[0][1:], "neE") == "" {
		for _, letter := range words[0][1:] {
			switch letter {
			case 'n':
				newline = ""
			default: // other shells print the word -e
				escapes, same = letter == 'e', false
			}
		}
		words = words[1:]
	}
	plain := strings.Join(words, " ")
	if !strings.Contains(plain, `\`) {
		return printing{plain + newline, plain + newline, same}
	}
	var d decoder
	if d.escapes(plain, inEcho); !d.stopped {
		d.out.WriteString(newline)
	}
	decoded := d.out.String()
	if escapes {
		return printing{decoded, decoded, false}
	}
	return printing{plain + newline, decoded, false}
}

// formatted is what the builtin printf of bash prints for a format and its arguments. ok is false for a directive whose result
// depends on more than its words (%T, %n) or is not computed here (floating point, %q).
func formatted(words []string) (out printing, ok bool) {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	} else if len(words) > 0 && strings.HasPrefix(words[0], "-") {
		return printing{}, false // -v sets a variable and prints nothing; other options are errors
	}
	if len(words) == 0 {
		return printing{}, false
	}
	d := decoder{args: words[1:]}
	for {
		left := len(d.args)
		if !d.format(words[0]) {
			return printing{}, false
		}
		// The format is used again until it has consumed all arguments; one without directives ignores them.
		if d.stopped || len(d.args) == 0 || len(d.args) == left || d.out.Len() > MaxCommand {
			break
		}
	}
	text := d.out.String()
	return printing{text, text, !d.differs}, true
}

// dialect is where a backslash stands; what follows it is read a little differently in each.
type dialect int

const (
	inFormat dialect = iota // the format of printf: \NNN is octal, \c is no escape
	inB                     // an argument for %b: \0NNN as well, \c ends all output
	inEcho                  // echo -e: \0NNN only, \c ends all output
)

// decoder puts together what printf and echo print, as the shell does: from left to right.
type decoder struct {
	out     strings.Builder
	args    []string // of printf, those that are left
	differs bool     // shells print different texts
	stopped bool     // \c: nothing more is printed
}

// format decodes a format once. It reports false for a directive that is not understood.
func (d *decoder) format(format string) bool {
	for i := 0; i < len(format) && !d.stopped; {
		switch format[i] {
		case '\\':
			i += d.escape(format[i:], inFormat)
		case '%':
			n := d.directive(format[i:])
			if n == 0 {
				return false
			}
			i += n
		default:
			d.out.WriteByte(format[i])
			i++
		}
	}
	return true
}

// maxWidth is the largest width of a directive, in columns. A larger one makes the text unknown.
const maxWidth = 1000

// directive decodes what begins with % and returns its length in bytes, 0 when it is not understood.
func (d *decoder) directive(s string) int {
	i := 1
	for i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0 {
		i++
	}
	flags := s[1:i]
	width, precision := -1, -1
	number := func() (int, bool) {
		if i < len(s) && s[i] == '*' {
			i++
			n, err := strconv.Atoi(d.next())
			return n, err == nil && n >= 0 && n <= maxWidth
		}
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if from == i {
			return -1, true
		}
		n, err := strconv.Atoi(s[from:i])
		return n, err == nil && n <= maxWidth
	}
	var ok bool
	if width, ok = number(); !ok {
		return 0
	}
	if i < len(s) && s[i] == '.' {
		i++
		if precision, ok = number(); !ok {
			return 0
		}
		precision = max(precision, 0) // %.s is %.0s
	}
	if i == len(s) {
		return 0
	}
	verb := s[i]
	i++
	switch verb {
	case '%':
		if i != 2 {
			return 0
		}
		d.out.WriteByte('%')
		return i
	case 's', 'b', 'c':
		if strings.Trim(flags, "-") != "" { // without a meaning for text
			return 0
		}
		text := ""
		if verb == 'b' {
			inner := decoder{}
			inner.escapes(d.next(), inB)
			text, d.stopped, d.differs = inner.out.String(), inner.stopped, d.differs || inner.differs
		} else {
			text = d.next()
		}
		if verb == 'c' {
			if text == "" {
				return 0 // a NUL byte in bash, nothing elsewhere
			}
			text = text[:1]
		}
		// Whether a width counts bytes or characters depends on the shell and the locale.
		if (width > 0 || precision >= 0 || verb == 'c') && strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
			return 0
		}
		if precision >= 0 && precision < len(text) && verb != 'c' {
			text = text[:precision]
		}
		pad := strings.Repeat(" ", max(0, width-len(text)))
		if strings.Contains(flags, "-") {
			d.out.WriteString(text + pad)
		} else {
			d.out.WriteString(pad + text)
		}
		return i
	case 'd', 'i', 'o', 'u', 'x', 'X':
		n, ok := integer(d.next())
		// Flags are combined differently for numbers below zero, and bash prints those as 64 bits without a sign.
		if !ok || strings.Trim(flags, "0-") != "" || precision >= 0 || n < 0 && verb != 'd' && verb != 'i' {
			return 0
		}
		if verb == 'i' || verb == 'u' {
			verb = 'd'
		}
		format := "%" + flags
		if strings.Contains(flags, "-") { // zeros are added on the left only
			format = "%-"
		}
		if width >= 0 {
			format += strconv.Itoa(width)
		}
		fmt.Fprintf(&d.out, format+string(verb), n)
		return i
	}
	return 0
}

// next takes an argument. Where none is left a directive gets the empty text.
func (d *decoder) next() string {
	if len(d.args) == 0 {
		return ""
	}
	s := d.args[0]
	d.args = d.args[1:]
	return s
}

// integer is an argument of %d and its like: a decimal, octal (0…) or hexadecimal (0x…) number, or a quote and a character, which
// stands for its code. Nothing is 0.
func integer(s string) (int64, bool) {
	if s == "" {
		return 0, true
	}
	if s[0] == '\'' || s[0] == '"' {
		return int64(s[min(1, len(s)-1)]), len(s) > 1 && s[1] < utf8.RuneSelf
	}
	digits := strings.TrimLeft(s, "+-")
	// ParseInt takes 0b1, 0o1 and 1_0 as well, bash does not.
	if len(s)-len(digits) > 1 || strings.ContainsAny(digits, "_bBoO") && !strings.HasPrefix(digits, "0x") && !strings.HasPrefix(digits, "0X") {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 0, 64)
	return n, err == nil && !strings.Contains(digits, "_")
}

// escapes decodes a text with escapes and nothing else.
func (d *decoder) escapes(s string, where dialect) {
	for i := 0; i < len(s) && !d.stopped; {
		if s[i] == '\\' {
			i += d.escape(s[i:], where)
			continue
		}
		d.out.WriteByte(s[i])
		i++
	}
}

// simpleEscapes are those of one letter. The last two stand in no standard, so other shells print them as they are.
var simpleEscapes = map[byte]byte{'\\': '\\', 'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', 'e': 0x1b, 'E': 0x1b}

// escape decodes what a backslash begins and returns its length in bytes. An unknown escape stays as it is.
func (d *decoder) escape(s string, where dialect) int {
	if len(s) == 1 {
		d.out.WriteByte('\\')
		return 1
	}
	if c, ok := simpleEscapes[s[1]]; ok {
		d.differs = d.differs || c == 0x1b
		d.out.WriteByte(c)
		return 2
	}
	digits := func(from, most int, base string) string {
		to := from
		for to < len(s) && to-from < most && strings.IndexByte(base, s[to]) >= 0 {
			to++
		}
		return s[from:to]
	}
	const octal, hex = "01234567", "0123456789abcdefABCDEF"
	switch c := s[1]; {
	case c == 'c' && where != inFormat:
		d.stopped = true
		return len(s)
	case (c == '"' || c == '\'' || c == '?') && where == inFormat:
		d.differs = true
		d.out.WriteByte(c)
		return 2
	case c == '0' && where != inFormat: // \0NNN
		n := digits(2, 3, octal)
		d.code(n, 8)
		return 2 + len(n)
	case c >= '0' && c <= '7' && where != inEcho:
		n := digits(1, 3, octal)
		d.differs = d.differs || where == inB
		d.code(n, 8)
		return 1 + len(n)
	case c == 'x' || c == 'u' || c == 'U':
		d.differs = true
		most := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		n := digits(2, most, hex)
		if n == "" {
			break
		}
		if c == 'x' {
			d.code(n, 16)
		} else if r, err := strconv.ParseUint(n, 16, 32); err == nil && r != 0 {
			d.out.WriteRune(rune(r))
		}
		return 2 + len(n)
	}
	// The next character is no part of the escape: in \%s a directive begins.
	d.differs = true
	d.out.WriteByte('\\')
	return 1
}

// code adds one byte, given by its digits. A NUL is left out: no shell keeps one in a word or a script.
func (d *decoder) code(digits string, base int) {
	n, _ := strconv.ParseUint("0"+digits, base, 16)
	// A control character could pass for a mark of this package where the text counts as known.
	if d.differs = d.differs || byte(n) < ' ' && n != '\n' && n != '\t'; byte(n) != 0 {
		d.out.WriteByte(byte(n))
	}
}

// hereText is the body of a here document as the program reads it. ok is false when the body holds an expansion whose value
// is not known. The text matters because it may be a script: bash <<EOF.
func (x *expander) hereText(r *syntax.Redirect, st *state) (string, bool) {
	if r.Hdoc == nil {
		return "", true
	}
	// A quoted delimiter (<<'EOF') leaves the body as it is; otherwise bash expands it, and a script in it is another text.
	quoted := false
	for _, p := range r.Word.Parts {
		// Any quoting of any part of the delimiter counts (bash(1), Here Documents): <<E"O"F and <<\EOF quote the whole body.
		if lit, ok := p.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
			quoted = true
		}
	}
	var b strings.Builder
	for _, p := range r.Hdoc.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			vals := x.part(p, true, st)
			if len(vals) != 1 || !vals[0].Exact() {
				return "", false
			}
			b.WriteString(vals[0].Text)
			continue
		}
		if quoted {
			b.WriteString(lit.Value)
			continue
		}
		b.WriteString(unescape(lit.Value, true).Text)
	}
	text := b.String()
	// <<- takes the leading tabs away, not blanks.
	if r.Op == syntax.DashHdoc {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = strings.TrimLeft(line, "\t")
		}
		text = strings.Join(lines, "\n")
	}
	return text, true
}
