package lspbridge

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// handEdit is one change that a person made in a text: before[from:to] became now[from:nowTo]. Offsets are bytes. The ends are widened to
// whole identifiers, so that an added letter counts as one name replacing another.
type handEdit struct {
	before, now     string
	from, to, nowTo int
}

// oneEdit returns the range in which two texts differ; false where they are equal. Two changes far apart become one long edit, which
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
	// Outside the edit both texts are equal, so both are widened alike. A cut must not be inside a character.
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

// isWord reports whether a byte can be part of an identifier: also every byte of a letter beyond ASCII, and '$' (JavaScript, PHP). Where
// '$' is an operator this does no harm, because the server is asked about the name.
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

// parameterList finds the list in parentheses that contains the edit, in the text before it. name is the offset of the name before the
// list, open that of its opening parenthesis. ok is false when the edit is in no such list.
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
			// Type parameters may be between a name and its list: func F[T any](x T), function f<T>(x: T).
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
			return 0, 0, false // the edit is in braces or brackets, not in a list
		}
		// The same limit backwards as in splitList forwards.
		if e.from-i > maxList {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// maxList is how many bytes of a list in parentheses are searched. The limit matters when a parenthesis is missing, as it is while a person
// types.
const maxList = 4 << 10

// splitList splits a list in parentheses; text[open] is its opening parenthesis. items are its elements without surrounding white space,
// end is the offset of its closing parenthesis. ok is false when the list does not end or contains a comment, whose syntax depends on the
// language.
func splitList(text string, open int) (items []string, end int, ok bool) {
	depth, start := 0, open+1
	add := func(to int) {
		// Keep an empty element between commas, so that the number of arguments is right; one at the end is a trailing comma.
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

// skipString returns the offset of the quote that ends a literal; -1 when it does not end. A quote without a closing one on its line, such
// as a lifetime in Rust, counts as an ordinary character.
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

// newArguments says how the arguments of a call change with the parameters. from and values have one entry for each parameter of the new
// list.
type newArguments struct {
	from   []int    // by new parameter: index of the old parameter; -1 for an added one
	values []string // by new parameter: argument for an added one; "" when the call may omit it
	old    int      // number of old parameters
}

// matchParameters compares two parameter lists; path is a file of their language. ok is false when the calls need not change, or when it is
// not certain what to pass for an added parameter. Parameters are first matched by name, so that a moved one keeps its argument.
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
		// A parameter that kept its place was renamed, which does not affect calls.
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
			return a, false // variadic, by name, or destructured: arguments do not match parameters one to one
		}
	}
	return a, changed
}

// apply returns the arguments of one call after the change; false for a call that does not pass exactly one argument for each parameter,
// such as one that spreads a list or omits the last ones.
func (a newArguments) apply(args []string) ([]string, bool) {
	if len(args) != a.old || slices.ContainsFunc(args, func(s string) bool { return strings.Contains(s, "...") || s == "" }) {
		return nil, false
	}
	var out []string
	for j, i := range a.from {
		switch {
		case i >= 0:
			if len(out) < j { // an argument before it was omitted, so this one would move to its place
				return nil, false
			}
			out = append(out, args[i])
		case a.values[j] != "":
			out = append(out, a.values[j])
		}
	}
	return out, true
}

// languageOf returns an id for a file's language if its signatures are understood, else "".
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

// parameterName returns the name in a declared parameter; "" when it cannot be told. It skips a type, a default value, and the words before
// the name in TypeScript and Rust.
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

// withoutReceiver removes the first parameter where calls do not pass it.
func withoutReceiver(list []string) []string {
	if len(list) > 0 && slices.Contains([]string{"self", "cls", "&self", "&mut self", "mut self", "this"}, strings.TrimSpace(list[0])) {
		return list[1:]
	}
	return list
}

// defaultArgument returns what calls pass for an added parameter: "" where it is optional, else the zero value of its type; false when that
// cannot be told.
func defaultArgument(lang string, list []string, j int) (string, bool) {
	p := list[j]
	optional := strings.Contains(p, "=") || lang == "ts" && strings.HasPrefix(strings.TrimLeftFunc(p, func(r rune) bool { return r < utf8.RuneSelf && isWord(byte(r)) }), "?")
	// Go has no optional parameters.
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

// goZero returns the zero value of a Go type as source text; false when the text alone does not tell, because a named type may be a struct
// or a number. For a context it is context.TODO(), because most calls panic with a nil context.
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
