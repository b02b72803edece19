package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/scanner"

	"github.com/pillion-dev/pillion/tools/permission"
)

// codexRules is the folder of Codex's rules about commands, in a project and in the home folder.
var codexRules = filepath.Join(".codex", "rules")

// maxCodexRules is how many commands one rule may stand for: each element of its pattern may be a list of alternatives.
const maxCodexRules = 64

// codexDenies are the commands that Codex's rules forbid: prefix_rule(pattern = ["git", ["push", "fetch"]], decision = "forbidden"). The files
// are Starlark, of which only such calls with constant arguments are read. The other decisions are noted, as is a call that is not understood.
func (l *loader) codexDenies(dir string) (out permission.Ruleset) {
	entries, _ := os.ReadDir(filepath.Join(dir, codexRules))
	for _, e := range entries {
		path := filepath.Join(dir, codexRules, e.Name())
		if filepath.Ext(path) != ".rules" {
			continue
		}
		src, ok := l.read(path, false)
		if !ok {
			continue
		}
		r := starlark{}
		r.s.Init(strings.NewReader(starlarkText(string(src))))
		r.s.Error = func(*scanner.Scanner, string) {}
		r.s.Mode = scanner.ScanIdents | scanner.ScanStrings | scanner.ScanInts | scanner.ScanFloats
		for r.next(); r.token != scanner.EOF; {
			if r.s.TokenText() != "prefix_rule" {
				r.next()
				continue
			}
			at := &node{file: path, line: r.s.Position.Line, column: r.s.Position.Column}
			args, ok := r.call()
			commands := prefixes(args["pattern"])
			switch decision, _ := args["decision"].(string); {
			case !ok || len(commands) == 0:
				l.note(at, "prefix_rule", "only constant patterns are read; write the rule under permission")
			case decision != "forbidden":
				l.note(at, "prefix_rule "+strings.Join(commands, ", "), "what is forbidden counts; write the others under permission")
			default:
				for _, c := range commands {
					for _, rule := range claudeDeny("Bash(" + c + ":*)") {
						rule.Action, rule.Origin = permission.Deny, at.origin()
						out = append(out, rule)
					}
				}
			}
		}
	}
	return out
}

// starlarkText is Starlark's source without comments, and with its strings in double quotes, as the scanner of Go's tokens reads them.
func starlarkText(src string) string {
	var b strings.Builder
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '#':
			for i < len(src) && src[i] != '\n' {
				i++
			}
			b.WriteByte('\n')
		case '"', '\'':
			end := i + 1
			for end < len(src) && src[end] != c && src[end] != '\n' {
				if src[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(src))
			text := src[i+1 : end]
			if c == '\'' {
				text = strings.ReplaceAll(strings.ReplaceAll(text, `\'`, `'`), `"`, `\"`)
			}
			b.WriteString(`"` + text + `"`)
			i = end
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// starlark reads calls with constant arguments.
type starlark struct {
	s     scanner.Scanner
	token rune
}

func (r *starlark) next() { r.token = r.s.Scan() }

// call reads the parentheses after a name: their named arguments, which are texts, lists of values, or nil for what is neither. ok is false
// where the source is not a call of this form.
func (r *starlark) call() (args map[string]any, ok bool) {
	args = map[string]any{}
	if r.next(); r.token != '(' {
		return args, false
	}
	r.next()
	for r.token != ')' {
		name := r.s.TokenText()
		if r.token != scanner.Ident {
			return args, false
		}
		if r.next(); r.token != '=' {
			return args, false
		}
		r.next()
		if args[name], ok = r.value(maxStarlarkDepth); !ok {
			return args, false
		}
		if r.token == ',' {
			r.next()
		} else if r.token != ')' {
			return args, false
		}
	}
	r.next()
	return args, true
}

// maxStarlarkDepth is how deep lists may lie in one another: the examples of a rule are lists of lists. The file may be a stranger's.
const maxStarlarkDepth = 4

// value reads a text, a list, or a word such as True.
func (r *starlark) value(depth int) (any, bool) {
	if depth == 0 {
		return nil, false
	}
	switch r.token {
	case scanner.String:
		text, err := strconv.Unquote(r.s.TokenText())
		r.next()
		return text, err == nil
	case scanner.Ident, scanner.Int:
		r.next()
		return nil, true
	case '[':
		list := []any{}
		for r.next(); r.token != ']'; {
			v, ok := r.value(depth - 1)
			if !ok {
				return nil, false
			}
			list = append(list, v)
			if r.token == ',' {
				r.next()
			} else if r.token != ']' {
				return nil, false
			}
		}
		r.next()
		return list, true
	}
	return nil, false
}

// prefixes are the commands that a pattern stands for; none where it is not a list of texts and of lists of texts.
func prefixes(pattern any) []string {
	list, _ := pattern.([]any)
	out := []string{""}
	for _, element := range list {
		words, several := element.([]any)
		if !several {
			words = []any{element}
		}
		var longer []string
		for _, was := range out {
			for _, w := range words {
				word, ok := w.(string)
				if !ok || word == "" || len(longer) == maxCodexRules {
					return nil
				}
				longer = append(longer, strings.TrimPrefix(was+" "+word, " "))
			}
		}
		out = longer
	}
	if len(list) == 0 {
		return nil
	}
	return out
}

// codexRulesStamp adds the files of a folder to Stamp.
func codexRulesStamp(add func(path string), dir string) {
	entries, _ := os.ReadDir(filepath.Join(dir, codexRules))
	for _, e := range entries {
		add(filepath.Join(dir, codexRules, e.Name()))
	}
}
