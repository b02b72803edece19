package scan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// printing is the text that commands write to their standard output, where it can be computed without running them.
type printing struct {
	text    string // as bash prints it
	decoded string // as a shell prints it whose echo decodes escapes without an option: dash, or bash with xpg_echo
	// same is true when every shell prints text and each word of the commands is exactly known. When it is false, text serves only
	// rules that deny: dash does not know \x, and its echo decodes escapes that bash's echo prints.
	same bool
}

// prints is what a statement writes to its standard output: echo, printf, cat with a here document, and lists of these. ok is
// false for everything else. The text matters because it may be a script (printf 'rm x' | sh), the name of a program
// ($(printf '\x72m') x) or names of files.
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

// printsAll is what several statements print, joined. ok is false if any of them cannot be computed, or beyond MaxCommand bytes.
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
			default: // e or E: dash prints such an option as a word
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

// dialect is the context of an escape sequence; each context has slightly different sequences.
type dialect int

const (
	inFormat dialect = iota // the format of printf: \NNN is octal, \c is not an escape
	inB                     // an argument of %b: \NNN and \0NNN, \c ends all output
	inEcho                  // echo -e: \0NNN only, \c ends all output
)

// decoder builds the output of one printf or echo, from left to right as the shell does.
type decoder struct {
	out     strings.Builder
	args    []string // the arguments of printf that no directive has used yet
	differs bool     // other shells may print another text
	stopped bool     // after \c: nothing more is printed
}

// format applies a format once. It reports false for a directive that directive does not compute.
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

// directive prints the directive at the start of s (%5s) and returns its length in bytes, 0 when its output cannot be computed.
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
		if strings.Trim(flags, "-") != "" { // the other flags are undefined for text (printf(3))
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
		// Not computed: the flags " " and "+", precisions, and negative numbers in %u, %o and %x.
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

// next takes the next argument, or the empty text when none is left, as printf does.
func (d *decoder) next() string {
	if len(d.args) == 0 {
		return ""
	}
	s := d.args[0]
	d.args = d.args[1:]
	return s
}

// integer is the value of an argument of %d and its like: a decimal, octal (0…) or hexadecimal (0x…) number, or the code of the
// character after a quote ('a). The empty argument is 0.
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

// escapes prints a text with its escape sequences decoded; % has no meaning in it.
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

// simpleEscapes are the escapes of one character. \e and \E are not in POSIX, so other shells may print them undecoded.
var simpleEscapes = map[byte]byte{'\\': '\\', 'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', 'e': 0x1b, 'E': 0x1b}

// escape decodes the escape sequence at the start of s and returns its length in bytes. Of an unknown one it prints the backslash
// only and returns 1.
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
	// The character after the backslash is read again by the caller: in \%s it begins a directive.
	d.differs = true
	d.out.WriteByte('\\')
	return 1
}

// code adds the byte with these digits in the given base. A NUL is left out, since no shell keeps one in a word or a script.
func (d *decoder) code(digits string, base int) {
	n, _ := strconv.ParseUint("0"+digits, base, 16)
	// Hole and Wild are control characters. With differs set, the text never counts as known, so a printed one cannot pass for them.
	if d.differs = d.differs || byte(n) < ' ' && n != '\n' && n != '\t'; byte(n) != 0 {
		d.out.WriteByte(byte(n))
	}
}

// hereText is the body of a here document as the program reads it. It reports false when the body has an expansion with an
// unknown value. The text matters because it may be a script: bash <<EOF.
func (x *expander) hereText(r *syntax.Redirect, st *state) (string, bool) {
	if r.Hdoc == nil {
		return "", true
	}
	// Bash expands the body unless the delimiter is quoted (<<'EOF').
	quoted := false
	for _, p := range r.Word.Parts {
		// Quoting any part of the delimiter is enough (bash(1), Here Documents): <<E"O"F and <<\EOF.
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
	// <<- removes leading tabs, not blanks.
	if r.Op == syntax.DashHdoc {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = strings.TrimLeft(line, "\t")
		}
		text = strings.Join(lines, "\n")
	}
	return text, true
}
