package lspbridge

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// handEdit is what a person changed in a text by hand, in one place: before[from:to] became now[from:nowTo]. Offsets are bytes; the ends are
// widened to whole identifiers, so that a letter added to a name reads as one name in the place of another.
type handEdit struct {
	before, now     string
	from, to, nowTo int
}

// oneEdit finds the place in which two texts differ. It is false where they are equal. Two changes far apart are one long edit here, which
// NextEdit refuses by its length.
func oneEdit(before, now string) (handEdit, bool) {
	from := 0
	for from < len(before) && from < len(now) && before[from] == now[from] {
		from++
	}
	if from == len(before) && from == len(now) {
		return handEdit{}, false
	}
	to, nowTo := len(before), len(now)
	for to > from && nowTo > from && before[to-1] == now[nowTo-1] {
		to--
		nowTo--
	}
	// Both texts are the same outside, so both can be widened alike.
	// A byte that begins no character is inside one; the cut must not be there.
	for from > 0 && (isWord(before[from-1]) || from < len(before) && !utf8.RuneStart(before[from])) {
		from--
	}
	for to < len(before) && isWord(before[to]) {
		to++
		nowTo++
	}
	return handEdit{before, now, from, to, nowTo}, true
}

// old and new are the two sides of the edit.
func (e handEdit) old() string { return e.before[e.from:e.to] }
func (e handEdit) new() string { return e.now[e.from:e.nowTo] }

// isWord reports whether a byte can be part of an identifier. Every byte of a letter beyond ASCII counts, and '$', which JavaScript and PHP
// have. That it may be an operator elsewhere does no harm: the server is asked about the name.
func isWord(b byte) bool {
	return b == '_' || b == '$' || b >= utf8.RuneSelf || unicode.IsLetter(rune(b)) || unicode.IsDigit(rune(b))
}

// isIdentifier reports whether a text is one identifier.
func isIdentifier(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !isWord(s[i]) {
			return false
		}
	}
	return true
}

// parameterList finds the list in parentheses that an edit is in, in the text before it: the offset of the name before the
// list, and that of its opening parenthesis. It is false where the edit is in no such list.
func (e handEdit) parameterList() (name, open int, ok bool) {
	depth := 0
	for i := e.from - 1; i >= 0; i-- {
		switch e.before[i] {
		case ')', ']', '}':
			depth++
		case '[', '{':
			depth--
		case '(':
			if depth--; depth >= 0 {
				continue
			}
			end := len(strings.TrimRight(e.before[:i], " \t"))
			// Type parameters come between a name and its list: func F[T any](x T), function f<T>(x: T).
			if end > 0 && (e.before[end-1] == ']' || e.before[end-1] == '>') {
				opening := map[byte]byte{']': '[', '>': '<'}[e.before[end-1]]
				if at := strings.LastIndexByte(e.before[:end], opening); at > 0 {
					end = at
				}
			}
			start := end
			for start > 0 && isWord(e.before[start-1]) {
				start--
			}
			return start, i, isIdentifier(e.before[start:end])
		}
		if depth < 0 {
			return 0, 0, false // in braces or brackets, not in a list
		}
		// Backwards as far as splitList looks forwards.
		if e.from-i > maxList {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// maxList is how far a list in parentheses is looked at, in bytes. The search stops there when a parenthesis is missing, as it is while a
// person types.
const maxList = 4 << 10

// splitList takes a list in parentheses apart: text[open] is its opening parenthesis. items are its elements without white
// space around them, end is the offset of its closing parenthesis. It is false where the list does not end, or holds a comment:
// what a comment is depends on the language.
func splitList(text string, open int) (items []string, end int, ok bool) {
	depth, start := 0, open+1
	add := func(to int) {
		// An empty element between commas is kept, so that the number of arguments is right; one at the end is a trailing comma.
		if s := strings.TrimSpace(text[start:to]); s != "" || len(items) > 0 && text[to] == ',' {
			items = append(items, s)
		}
		start = to + 1
	}
	for i := open; i < len(text) && i-open < maxList; i++ {
		switch c := text[i]; c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				add(i)
				return items, i, c == ')'
			}
		case ',':
			if depth == 1 {
				add(i)
			}
		case '"', '\'', '`':
			if i = skipString(text, i); i < 0 {
				return nil, 0, false
			}
		case '/':
			if i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*') {
				return nil, 0, false
			}
		case '#':
			return nil, 0, false
		}
	}
	return nil, 0, false
}

// skipString gives the offset of the quote that ends a literal, -1 where it does not end. A quote that ends at no line's end,
// such as a lifetime in Rust, counts as a character of its own.
func skipString(text string, at int) int {
	q := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && q != '`':
			i++
		case text[i] == q:
			return i
		case text[i] == '\n' && q == '\'':
			return at
		case text[i] == '\n' && q == '"':
			return -1
		}
	}
	return -1
}

// newArguments says how the arguments of a call follow a change of the parameters. from and values have one entry for each parameter of the
// changed list, in its order.
type newArguments struct {
	from   []int    // by new parameter: the old parameter that it was, -1 for an added one
	values []string // by new parameter: what is passed for an added one; "" when the call may leave it out
	old    int      // parameters before
}

// matchParameters compares two parameter lists of a language, named by a file of it. It is false when the calls need not change, or when
// what to pass for an added parameter is not certain in that language. Parameters are recognised by name first, so one that was moved
// keeps its argument.
func matchParameters(path string, before, now []string) (a newArguments, ok bool) {
	lang := languageOf(path)
	before, now = withoutReceiver(before), withoutReceiver(now)
	a.old = len(before)
	used := map[int]bool{}
	find := func(same func(i int) bool) int {
		for i := range before {
			if !used[i] && same(i) {
				used[i] = true
				return i
			}
		}
		return -1
	}
	a.from, a.values = make([]int, len(now)), make([]string, len(now))
	names := func(list []string) (out []string) {
		for _, p := range list {
			out = append(out, parameterName(lang, p))
		}
		return out
	}
	oldNames, newNames := names(before), names(now)
	for j := range now {
		a.from[j] = find(func(i int) bool { return oldNames[i] == newNames[j] && newNames[j] != "" })
	}
	for j := range now {
		// A parameter that kept its place and its type was renamed: calls do not name it.
		if a.from[j] < 0 && j < len(before) && !used[j] && len(before) == len(now) {
			used[j], a.from[j] = true, j
		}
	}
	changed := len(before) != len(now)
	for j, i := range a.from {
		changed = changed || i != j
		if i >= 0 {
			continue
		}
		value, certain := defaultArgument(lang, now, j)
		if !certain {
			return a, false
		}
		a.values[j] = value
	}
	for _, p := range slices.Concat(before, now) {
		if strings.Contains(p, "...") || strings.HasPrefix(p, "*") || strings.HasPrefix(p, "{") || p == "/" || parameterName(lang, p) == "" {
			return a, false // variadic, by name, or taken apart: an argument is not one parameter
		}
	}
	return a, changed
}

// apply gives the arguments of one call after the change; false for a call that does not pass one argument a parameter, such as one that
// spreads a list or leaves out the last ones.
func (a newArguments) apply(args []string) ([]string, bool) {
	if len(args) != a.old || slices.ContainsFunc(args, func(s string) bool { return strings.Contains(s, "...") || s == "" }) {
		return nil, false
	}
	var out []string
	for j, i := range a.from {
		switch {
		case i >= 0:
			if len(out) < j { // one before it was left out, so this one would be taken for that
				return nil, false
			}
			out = append(out, args[i])
		case a.values[j] != "":
			out = append(out, a.values[j])
		}
	}
	return out, true
}

// languageOf is the id of a file's language as far as signatures are understood, "" for others.
func languageOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".go":
		return "go"
	case ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs":
		return "ts"
	case ".py", ".pyi":
		return "python"
	case ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".cs":
		return "c"
	}
	return ""
}

// parameterName is the name in a declared parameter, "" where it cannot be told. A type, a default value and the words before the name in
// TypeScript and Rust are left out.
func parameterName(lang, p string) string {
	p, _, _ = strings.Cut(p, "=")
	p = strings.TrimSpace(p)
	if lang == "c" { // the type is before the name
		start := len(p)
		for start > 0 && isWord(p[start-1]) {
			start--
		}
		return p[start:]
	}
	for _, word := range []string{"public ", "private ", "protected ", "readonly ", "mut "} {
		p = strings.TrimPrefix(p, word)
	}
	end := 0
	for end < len(p) && isWord(p[end]) {
		end++
	}
	return p[:end]
}

// withoutReceiver leaves out the first parameter where calls do not pass it.
func withoutReceiver(list []string) []string {
	if len(list) > 0 && slices.Contains([]string{"self", "cls", "&self", "&mut self", "mut self", "this"}, strings.TrimSpace(list[0])) {
		return list[1:]
	}
	return list
}

// defaultArgument is what calls pass for an added parameter: nothing where it is optional, else the zero value of its type.
// It is false where that cannot be told.
func defaultArgument(lang string, list []string, j int) (string, bool) {
	p := list[j]
	optional := strings.Contains(p, "=") || lang == "ts" && strings.HasPrefix(strings.TrimLeftFunc(p, func(r rune) bool { return r < utf8.RuneSelf && isWord(byte(r)) }), "?")
	// Go has no optional parameters; a "=" there would be no parameter list.
	if optional && lang != "go" {
		return "", true
	}
	switch lang {
	case "ts":
		return "undefined", true
	case "python":
		return "None", true
	case "go":
		typ := ""
		for _, q := range list[j:] { // in a, b int the type of a is after b
			if _, t, ok := strings.Cut(q, " "); ok {
				typ = strings.TrimSpace(t)
				break
			}
		}
		return goZero(typ)
	}
	return "", false
}

// goZero is the zero value of a Go type as source text, false where the text alone does not tell: a named type may be a struct or a number.
// For a context it is context.TODO(): a nil one makes most calls panic.
func goZero(typ string) (string, bool) {
	switch typ {
	case "string":
		return `""`, true
	case "bool":
		return "false", true
	case "error", "any":
		return "nil", true
	case "context.Context":
		return "context.TODO()", true
	case "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "uintptr", "byte", "rune", "float32", "float64", "complex64", "complex128", "time.Duration":
		return "0", true
	}
	for _, prefix := range []string{"*", "[]", "map[", "chan ", "<-chan ", "func(", "interface{"} {
		if strings.HasPrefix(typ, prefix) {
			return "nil", true
		}
	}
	return "", false
}
