package evidence

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/symbol"
)

const (
	maxUses   = 24 // declarations whose uses are requested: each is a search of the project by a server
	maxOthers = 20 // uses outside the proposal that are listed
)

// changed is a declaration of the old text that the new text changes or removes.
type changed struct {
	file *change.File
	sym  symbol.Symbol
	what string
	now  *symbol.Symbol // nil: removed
}

// usesOf counts the uses of the changed declarations in the present project: first of the removed ones, then of those whose
// signature changed. Languages without a grammar have none.
func usesOf(ctx context.Context, servers Servers, set *change.Set, root string, list []changed) (out []change.Use) {
	rank := map[string]int{change.UseRemoved: 0, change.UseSignature: 1, change.UseBody: 2}
	slices.SortStableFunc(list, func(a, b changed) int { return rank[a.what] - rank[b.what] })
	for i, c := range list {
		if i == maxUses {
			break
		}
		line, col := position(c.file.Old, c.sym.At)
		u := change.Use{Name: c.sym.String(), Kind: c.sym.Kind, Path: c.file.Path, Line: line + 1, What: c.what, Public: public(root, c.file.Path, c.file.Old, c.sym)}
		if servers == nil {
			u.Unknown = "no language server is asked"
		} else if places, err := servers.References(ctx, c.file.Path, lspbridge.Position{Line: line, Character: col}); err != nil {
			u.Unknown = err.Error()
		} else {
			count(&u, places, set, line, col)
		}
		out = append(out, u)
	}
	return out
}

// count adds up the uses. line and col, from 0, are the place of the declaration itself, which servers list too.
func count(u *change.Use, places []lspbridge.Location, set *change.Set, line, col int) {
	files := map[string]bool{}
	for _, p := range places {
		if p.Path == u.Path && p.Range.Start.Line == line && p.Range.Start.Character == col {
			continue
		}
		u.Uses++
		files[p.Path] = true
		if hunkAt(set, p.Path, p.Range.Start.Line+1) != "" {
			u.Inside++
		} else if len(u.Others) < maxOthers {
			u.Others = append(u.Others, change.Place{Path: p.Path, Line: p.Range.Start.Line + 1})
		}
	}
	u.Files = len(files)
}

// hunkAt is the id of the hunk that changes a line (from 1) of the old text, or "".
func hunkAt(set *change.Set, path string, line int) string {
	for i := range set.Files {
		f := &set.Files[i]
		if f.Path != path {
			continue
		}
		for _, h := range f.Hunks {
			if h.OldLines > 0 && line >= h.OldStart && line < h.OldStart+h.OldLines {
				return h.ID
			}
		}
	}
	return ""
}

// declarations are the changed declarations of all files except tests, whose declarations are used nowhere. If a method of a class
// changed, only the method is listed and not the class.
func declarations(set *change.Set) (out []changed) {
	for i := range set.Files {
		f := &set.Files[i]
		if f.Binary || f.Links() || f.Kind == change.Create || TestFile(f.Path) {
			continue
		}
		old, err := symbol.Outline(f.Path, f.Old)
		if err != nil {
			continue
		}
		path := f.Path
		if f.NewPath != "" {
			path = f.NewPath
		}
		now, _ := symbol.Outline(path, f.New)
		was, text := withoutComments(f.Path, f.Old), withoutComments(path, f.New)
		heirs := renamedContainers(was, text, old, now)
		// Declarations with the same name (overloads, init) are matched by their order.
		find := func(list []symbol.Symbol, s symbol.Symbol, n int) *symbol.Symbol {
			for i := range list {
				if list[i].String() == s.String() && list[i].Kind == s.Kind {
					if n--; n < 0 {
						return &list[i]
					}
				}
			}
			return nil
		}
		seen := map[string]int{}
		for k, s := range old {
			key := s.Kind + " " + s.String()
			n := seen[key]
			seen[key]++
			if s.Local || s.Kind == "key" || s.Name() == "init" || s.Name() == "_" || entry(f, s) {
				continue
			}
			is := find(now, s, n)
			a := own(was, s, old[k+1:])
			if heir, ok := heirs[s.Path[0]]; is == nil && ok && len(s.Path) > 1 {
				// A member of a renamed type has kept its own name.
				moved := s
				moved.Path = append([]string{heir}, s.Path[1:]...)
				is = find(now, moved, n)
			}
			if is == nil {
				out = append(out, changed{f, s, change.UseRemoved, nil})
				continue
			}
			b := own(text, *is, following(now, is))
			if a == b || withNames(a, heirs) == b {
				continue
			}
			a = withNames(a, heirs)
			what := change.UseSignature
			if callable(s.Kind) && header(a) == header(b) || valued(s.Kind) && name(a) == name(b) {
				what = change.UseBody
			}
			out = append(out, changed{f, s, what, is})
		}
	}
	return out
}

// entry reports whether a declaration is where a program begins. Nothing calls it by its name.
func entry(f *change.File, s symbol.Symbol) bool {
	return s.String() == "main" && filepath.Ext(f.Path) == ".go" && packageMain().MatchString(f.Old)
}

// withoutComments returns a text in which comments are blanks, so that offsets stay: a changed comment changes no declaration.
func withoutComments(path, text string) string {
	var b []byte
	for _, t := range symbol.Tokens(path, text) {
		if t.Kind != symbol.Comment {
			continue
		}
		if b == nil {
			b = []byte(text)
		}
		for i := t.Start; i < t.End; i++ {
			if b[i] != '\n' {
				b[i] = ' '
			}
		}
	}
	if b == nil {
		return text
	}
	return string(b)
}

// renamedContainers maps the names of types that are gone to those of types that have their text but for the name: their members are
// compared with each other, and are not removed.
func renamedContainers(was, text string, old, now []symbol.Symbol) map[string]string {
	known := map[string]bool{}
	for _, s := range old {
		known[s.Kind+" "+s.String()] = true
	}
	still := map[string]bool{}
	for _, s := range now {
		still[s.Kind+" "+s.String()] = true
	}
	members := map[string]bool{}
	for _, s := range old {
		if len(s.Path) > 1 {
			members[s.Path[0]] = true
		}
	}
	out := map[string]string{}
	for k, s := range old {
		if len(s.Path) != 1 || !members[s.Name()] || still[s.Kind+" "+s.String()] {
			continue
		}
		a := own(was, s, old[k+1:])
		for i := range now {
			n := &now[i]
			if len(n.Path) == 1 && n.Kind == s.Kind && !known[n.Kind+" "+n.String()] && withNames(a, map[string]string{s.Name(): n.Name()}) == own(text, *n, now[i+1:]) {
				out[s.Name()] = n.Name()
				break
			}
		}
	}
	return out
}

// withNames replaces words of a text.
func withNames(s string, names map[string]string) string {
	if len(names) == 0 {
		return s
	}
	return word().ReplaceAllStringFunc(s, func(w string) string {
		if to, ok := names[w]; ok {
			return to
		}
		return w
	})
}

// following are the symbols after a symbol in the list.
func following(list []symbol.Symbol, s *symbol.Symbol) []symbol.Symbol {
	for i := range list {
		if &list[i] == s {
			return list[i+1:]
		}
	}
	return nil
}

// own is the text of a declaration without the declarations inside it, and without white space around lines: a declaration that is
// only re-indented has not changed.
func own(text string, s symbol.Symbol, rest []symbol.Symbol) string {
	var b strings.Builder
	at := s.Bare
	for _, r := range rest {
		if r.Start >= s.End {
			break
		}
		if r.Local || r.Start < at || r.End > s.End {
			continue
		}
		b.WriteString(text[at:r.Start])
		at = r.End
	}
	if at < s.End {
		b.WriteString(text[at:s.End])
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func callable(kind string) bool {
	return kind == "function" || kind == "method" || kind == "constructor"
}

func valued(kind string) bool { return kind == "variable" || kind == "constant" || kind == "property" }

// name is the part of a variable's declaration before its value: its name and its type.
func name(s string) string {
	before, _, _ := strings.Cut(s, "=")
	return before
}

// header is the part of a function before its body, found by brackets: up to the first brace, or the colon of Python, outside
// parentheses. "{}" is a type and not a body.
func header(s string) string {
	depth := 0
	for i, r := range s {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '{':
			if depth <= 0 && !strings.HasPrefix(s[i:], "{}") && !strings.HasPrefix(s[i:], "{ }") {
				return s[:i]
			}
		case ':':
			// A colon also precedes a type. In Python the last colon is followed by the first statement, which own has joined to
			// it; "def" shows that it is Python.
			if depth <= 0 && (strings.HasPrefix(s, "def ") || strings.HasPrefix(s, "async def ")) {
				return s[:i]
			}
		}
	}
	return s
}

// position converts an offset in bytes to line and column from 0, in UTF-16 units.
func position(text string, at int) (line, col int) {
	at = min(at, len(text))
	start := strings.LastIndexByte(text[:at], '\n') + 1
	for _, r := range text[start:at] {
		col++
		if r > 0xffff {
			col++
		}
	}
	return strings.Count(text[:at], "\n"), col
}

// publicBy reports whether other projects can name a declaration, by the rules of its language.
var publicBy = map[string]func(path, text string, s symbol.Symbol) bool{
	".go": func(path, text string, s symbol.Symbol) bool {
		for _, part := range s.Path {
			if r, _ := utf8.DecodeRuneInString(part); !unicode.IsUpper(r) {
				return false
			}
		}
		return !strings.Contains(path, "/internal/") && !strings.HasPrefix(path, "internal/") && !packageMain().MatchString(text)
	},
	".py": func(path, _ string, s symbol.Symbol) bool {
		return !slices.ContainsFunc(s.Path, func(p string) bool { return strings.HasPrefix(p, "_") }) && !strings.Contains("/"+path, "/_")
	},
	".rs":   begins("pub "),
	".java": begins("public "),
	".cs":   begins("public "),
	".kt": func(_, text string, s symbol.Symbol) bool {
		return !begins("private ")("", text, s) && !begins("internal ")("", text, s)
	},
}

var packageMain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^package\s+main\b`) })

// begins is the rule of languages that write the visibility before the declaration.
func begins(word string) func(path, text string, s symbol.Symbol) bool {
	return func(_, text string, s symbol.Symbol) bool { return strings.HasPrefix(text[s.Bare:s.End], word) }
}

func public(root, path, text string, s symbol.Symbol) bool {
	ext := filepath.Ext(path)
	if r, err := filepath.Rel(root, path); err == nil {
		path = filepath.ToSlash(r)
	}
	switch ext {
	case ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs":
		// A member is only as public as its class. The outline has the member's own text only, so the class is looked up.
		return regexp.MustCompile(fmt.Sprintf(`(?m)^export\b[^\n]*\b%s\b`, regexp.QuoteMeta(s.Path[0]))).MatchString(text) && !strings.HasPrefix(s.Name(), "#") && !strings.HasPrefix(text[s.Bare:s.End], "private ")
	case ".h", ".hpp", ".hh":
		return true
	}
	if f := publicBy[ext]; f != nil {
		return f(path, text, s)
	}
	return false
}

// testNames match the names of test files in the supported languages.
var testNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(_test\.(go|py|rb|rs|dart|cc|cpp|exs)|^test_.*\.py|\.(test|spec)\.[cm]?[jt]sx?|(Test|Tests|Spec)\.(java|kt|cs|scala|swift|php)|_spec\.rb)$`)
})

// TestFile reports whether a file contains tests, by its name.
func TestFile(path string) bool {
	slashed := "/" + filepath.ToSlash(path)
	return testNames().MatchString(filepath.Base(path)) || strings.Contains(slashed, "/__tests__/") || strings.Contains(slashed, "/tests/") && filepath.Ext(path) != ".md"
}
