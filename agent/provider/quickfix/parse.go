package quickfix

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"sync"
)

// problem is a line of the lsp tool's diagnostics: "ERROR path:line:col message [source code]".
type problem struct {
	path         string
	line, column int // 1-based
	severity     string
	message      string
}

// key stays the same while lines above it come and go.
func (p problem) key() string { return fmt.Sprintf("%s\x00%d\x00%s", p.path, p.column, p.message) }

// action is a line of the lsp tool's codeActions: "a1  title [kind] (preferred)  fixes 1, introduces 0".
type action struct {
	id, title, kind   string
	preferred         bool
	effectKnown       bool
	fixes, introduces int
}

type diagnosis struct {
	ok       bool
	problems []problem
	doubt    string // why there may be more problems than these
}

func (d diagnosis) errors() []problem {
	var out []problem
	for _, p := range d.problems {
		if p.severity == "error" {
			out = append(out, p)
		}
	}
	return out
}

// diagnose asks for the problems of a file, a folder or the whole project. When there is no answer it says so.
func diagnose(w *walk, where string) diagnosis {
	if !w.offered["lsp"] {
		w.cannot("I work through language servers, and the `lsp` tool is switched off here. Switch it on, or choose another model (`pillion models`).")
		return diagnosis{}
	}
	input := map[string]any{"operation": "diagnostics"}
	if where != "" {
		input["filePath"] = where
	}
	r := w.call("lsp", input)
	if strings.HasPrefix(r.text, "File not found: ") {
		w.cannot("There is no file or folder %s here.\n\n%s", where, help)
		return diagnosis{}
	}
	if r.failed {
		w.cannot("The language servers could not say what is wrong%s: %s", in(where), r.text)
		return diagnosis{}
	}
	known, doubt := certainty(r.text)
	if !known {
		w.cannot("I do not know what is wrong%s: %s.", in(where), doubt)
		return diagnosis{}
	}
	return diagnosis{ok: true, problems: parseProblems(r.text), doubt: doubt}
}

// certainty reads the first line of the tool's answer: "Not known. (unavailable: why)" or "No problems. (partial: why)".
// "No errors" must not be said for "nobody could look".
func certainty(text string) (known bool, doubt string) {
	head, _, _ := strings.Cut(text, "\n")
	if i := strings.Index(head, " ("); i >= 0 && strings.HasSuffix(head, ")") {
		doubt = head[i+2 : len(head)-1]
		for _, state := range []string{"unavailable: ", "pending: ", "partial: "} {
			doubt = strings.TrimPrefix(doubt, state)
		}
	}
	return !strings.HasPrefix(head, "Not known"), doubt
}

// asFarAs qualifies "there are no errors".
func (d diagnosis) asFarAs() string {
	if d.doubt == "" {
		return ""
	}
	return " as far as the language servers can say (" + d.doubt + ")"
}

// Compiled at first use: the built-in model costs nothing where another one is used.
var (
	problemLine = lazy(`^(ERROR|WARNING|INFORMATION|HINT) (.+?):(\d+):(\d+) (.*?)(?: \[[^\[\]]*\])?$`)
	actionLine  = lazy(`^(a\d+)  (.*?)(?: \[([a-zA-Z0-9_.]+)\])?( \(preferred\))?( \(not now: .*\))?(?:  fixes (\d+), introduces (\d+))?$`)
	placeLine   = lazy(`^(.+?):(\d+):(\d+)(?:  (.*))?$`)
	symbolLine  = lazy(`^\s*(.+)  (\S.*?):(\d+):(\d+)$`)
)

func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// parseProblems reads the tool's lines; indented lines go on with the message before them.
func parseProblems(text string) []problem {
	var out []problem
	for _, line := range strings.Split(text, "\n") {
		m := problemLine().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		out = append(out, problem{path: m[2], line: number(m[3]), column: number(m[4]), severity: strings.ToLower(m[1]), message: m[5]})
	}
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].path != out[j].path {
			return out[i].path < out[j].path
		}
		return out[i].line < out[j].line
	})
	return out
}

func parseActions(text string) []action {
	var out []action
	for _, line := range strings.Split(text, "\n") {
		m := actionLine().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		a := action{id: m[1], title: m[2], kind: m[3], preferred: m[4] != "", effectKnown: m[6] != "", fixes: number(m[6]), introduces: number(m[7])}
		if m[5] != "" {
			continue // the server says: not now
		}
		out = append(out, a)
	}
	return out
}

// changed tells an edit that was applied from a result that says there was nothing to do.
func changed(text string) bool {
	return !strings.Contains(text, "there is nothing to change")
}

// refused tells a person's no (or a rule's) from a failure.
func refused(text string) bool {
	t := strings.ToLower(text)
	for _, word := range []string{"reject", "not applied", "permission", "declined", "denies", "said no"} {
		if strings.Contains(t, word) {
			return true
		}
	}
	return false
}

func byFile(ps []problem) map[string][]problem {
	out := map[string][]problem{}
	for _, p := range ps {
		out[p.path] = append(out[p.path], p)
	}
	return out
}

func in(where string) string {
	if where == "" {
		return ""
	}
	return " in " + where
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// busy reports an answer that says that the language server has not come to it yet.
func busy(text string) bool {
	for _, words := range []string{"is still busy", "has not answered yet", "is being started again"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
