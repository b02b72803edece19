package builtin

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// How many lines one answer shows; the rest is counted in its last line. A find-references of a common name has thousands, which would
// fill the model's context. The metadata for editors has all of them.
const (
	maxShownProblems  = 200
	maxShownLocations = 200
	maxShownSymbols   = 500
)

// show is a path for the model: relative to the session's folder where it is below it.
func (c *lspCall) show(path string) string {
	// A path with many "../" is longer than the absolute one and easy to misread.
	if r := relTo(c.Cwd, path); !strings.HasPrefix(r, "../") && r != ".." {
		return r
	}
	return path
}

// diagnostics are those of the named file, of a folder, or of the session's folder.
func (c *lspCall) diagnostics(ctx context.Context) (tools.Result, error) {
	var reports []lspbridge.FileReport
	isFile := false
	if c.path != "" {
		fi, err := os.Stat(c.path)
		// A path that does not exist is an unsaved document: allowed has refused all others.
		isFile = err != nil || !fi.IsDir()
	}
	switch {
	case isFile:
		reports = []lspbridge.FileReport{c.Bridge.Diagnostics(ctx, c.path)}
	case c.path != "":
		reports = c.lsp.ProjectDiagnostics(ctx, c.path)
	default:
		reports = c.lsp.ProjectDiagnostics(ctx, c.Cwd)
	}
	return c.problems(reports), nil
}

// briefly shortens several reasons to what is missing: how each missing server is installed fills a screen, and one command says it.
func briefly(reasons []string) []string {
	if len(reasons) < 2 {
		return reasons
	}
	cut := false
	short := make([]string, len(reasons))
	for i, r := range reasons {
		what, how, _ := strings.Cut(r, "; ")
		short[i] = what
		cut = cut || how != ""
	}
	if cut {
		short = append(short, "pillion doctor says how to install what is missing")
	}
	return short
}

// problems renders reports for the model: counts first, then one line each. It says "No problems." only when all reports are Fresh; a
// less certain answer says what is missing, because the model takes silence for success. Where one server answered and another is not
// installed, the answer is Partial: what is missing for a project's YAML must not hide what gopls says of its code. The metadata has all
// problems.
func (c *lspCall) problems(reports []lspbridge.FileReport) tools.Result {
	// An empty list, not null, in the metadata: clients iterate over it.
	list := []change.Problem{}
	count := map[change.Severity]int{}
	state, reasons, answered := change.Fresh, []string{}, false
	var body strings.Builder
	shown, files := 0, 0
	for _, r := range reports {
		// One file that was not checked makes the whole answer uncertain: "no problems" would otherwise cover it.
		state = change.LeastCertain(state, r.Certainty)
		answered = answered || r.Certainty == change.Fresh || r.Certainty == change.Partial
		// Many files may wait for the same server; its reason is given once.
		if r.Certainty != change.Fresh && r.Reason != "" && !strings.Contains(strings.Join(reasons, "\n"), r.Reason) {
			reasons = append(reasons, r.Reason)
		}
		if len(r.Items) == 0 {
			continue
		}
		files++
		for _, d := range r.Items {
			count[d.Severity]++
			list = append(list, d)
			if shown++; shown > maxShownProblems {
				continue
			}
			// Further lines of a message are indented, so that each problem begins with its severity in the first column.
			fmt.Fprintf(&body, "%s %s:%d:%d %s", strings.ToUpper(string(d.Severity)), c.show(d.Path), d.Line, d.Column, strings.ReplaceAll(d.Message, "\n", "\n    "))
			if tag := strings.TrimSpace(d.Source + " " + d.Code); tag != "" {
				fmt.Fprintf(&body, " [%s]", tag)
			}
			body.WriteByte('\n')
		}
	}
	if answered && state == change.Unavailable {
		state = change.Partial
	}
	var counts []string
	for _, s := range []change.Severity{change.SeverityError, change.SeverityWarning, change.SeverityInformation, change.SeverityHint} {
		if n := count[s]; n > 0 {
			if s == change.SeverityInformation { // a noun without a plural
				counts = append(counts, fmt.Sprintf("%d information", n))
				continue
			}
			counts = append(counts, textutil.Plural(n, string(s)))
		}
	}
	// These words remain for a list that is empty and fresh, see change.Fresh.
	head := "No problems."
	switch {
	case len(counts) > 0:
		head = fmt.Sprintf("%s in %s.", strings.Join(counts, ", "), textutil.Plural(files, "file"))
	case state == change.Pending:
		head = "Not known yet."
	case state == change.Unavailable:
		head = "Not known."
	case state == change.Partial:
		head = "No problems in what was checked."
	}
	reason := strings.Join(briefly(reasons), "; ")
	if state != change.Fresh {
		head += fmt.Sprintf(" (%s: %s)", state, reason)
	}
	out := head
	if body.Len() > 0 {
		out += "\n\n" + strings.TrimSuffix(body.String(), "\n")
	}
	if shown > maxShownProblems {
		out += fmt.Sprintf("\n… and %d more; name a file or a folder to see them", shown-maxShownProblems)
	}
	return tools.Result{Output: out, Metadata: map[string]any{"diagnostics": list, "state": string(state), "reason": reason}}
}

// wireLocation is a place in the metadata, for editors and scripts; lines and columns count from 1, columns in UTF-16 units as in LSP. The
// end is exclusive.
type wireLocation struct {
	Path      string `json:"path"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"endLine"`
	EndColumn int    `json:"endColumn"`
	Text      string `json:"text,omitempty"` // the line there, of files in the project
}

// wirePlace converts LSP's 0-based range into a place that counts from 1.
func wirePlace(path string, r lspbridge.Range) wireLocation {
	return wireLocation{Path: path, Line: r.Start.Line + 1, Column: r.Start.Character + 1, EndLine: r.End.Line + 1, EndColumn: r.End.Character + 1}
}

// locations lists places, each with the text of its line, so that the model can choose one without reading every file.
func (c *lspCall) locations(list []lspbridge.Location, err error) (tools.Result, error) {
	if err != nil {
		return tools.Result{}, err
	}
	wire := []wireLocation{}
	var places []tools.Location
	var out strings.Builder
	lines := c.lineReader()
	// The metadata has every place, the text the first maxShownLocations: files are only opened to quote what is shown.
	for i, l := range list {
		at := wirePlace(l.Path, l.Range)
		if i < maxShownLocations {
			at.Text = strings.TrimSpace(lines(l.Path, l.Range.Start.Line))
		}
		wire = append(wire, at)
		places = append(places, tools.Location{Path: l.Path, Line: l.Range.Start.Line + 1})
		if i < maxShownLocations {
			fmt.Fprintf(&out, "%s:%d:%d%s\n", c.show(l.Path), l.Range.Start.Line+1, l.Range.Start.Character+1, lines(l.Path, l.Range.Start.Line))
		}
	}
	text := strings.TrimSuffix(out.String(), "\n")
	switch n := len(list) - maxShownLocations; {
	case len(list) == 0:
		text = "Nothing found at that position."
	case n > 0:
		text += fmt.Sprintf("\n… and %d more", n)
	}
	return tools.Result{Output: text, Locations: places, Metadata: map[string]any{"locations": wire}}, nil
}

// lineReader quotes lines (from 0) of files inside the project. A library's file outside would be read
// without a question, so only its place is told. Files are read once for one answer.
func (c *lspCall) lineReader() func(path string, line int) string {
	texts := map[string][]string{}
	return func(path string, line int) string {
		lines, seen := texts[path]
		if !seen {
			// A file that cannot be opened is noted with no lines, so that the next place in it does not try again.
			if p, err := c.place(path); err == nil && c.inside(p.real) && !p.dir {
				if f, err := c.openPlace(p); err == nil {
					lines = strings.Split(f.Text, "\n")
				}
			}
			texts[path] = lines
		}
		if line < 0 || line >= len(lines) {
			return ""
		}
		s := strings.TrimSpace(lines[line])
		// Bytes. Enough to recognise the line; one line of minified code would otherwise fill the answer.
		if len(s) > 160 {
			s = strings.ToValidUTF8(s[:160], "") + "…"
		}
		return "  " + s
	}
}

// wireSymbol is a symbol in the metadata: Location is the whole declaration, Selection its name. Children are nested as the server sent
// them; servers that only know the flat form give a Container instead.
type wireSymbol struct {
	Name      string       `json:"name"`
	Kind      string       `json:"kind"`
	Detail    string       `json:"detail,omitempty"`
	Container string       `json:"container,omitempty"`
	Location  wireLocation `json:"location"`
	Selection wireLocation `json:"selection"`
	Children  []wireSymbol `json:"children,omitempty"`
}

// wireSymbols converts symbols and their children. It never returns nil: clients iterate over the JSON without a check for null.
func wireSymbols(list []lspbridge.Symbol) []wireSymbol {
	out := make([]wireSymbol, 0, len(list))
	for _, s := range list {
		out = append(out, wireSymbol{s.Name, symbolKind(s.Kind), s.Detail, s.Container, wirePlace(s.Path, s.Range), wirePlace(s.Path, s.Selection), wireSymbols(s.Children)})
	}
	return out
}

// symbols renders an outline or a search result, children indented under their parent.
func (c *lspCall) symbols(list []lspbridge.Symbol) tools.Result {
	var out strings.Builder
	n := 0
	var walk func(list []lspbridge.Symbol, depth int)
	walk = func(list []lspbridge.Symbol, depth int) {
		for _, s := range list {
			// n counts what is not shown too, for the last line of the answer.
			if n++; n <= maxShownSymbols {
				fmt.Fprintf(&out, "%s%s %s", strings.Repeat("  ", depth), symbolKind(s.Kind), s.Name)
				if s.Detail != "" {
					out.WriteString(" " + strings.ReplaceAll(s.Detail, "\n", " "))
				}
				if s.Container != "" {
					out.WriteString(" in " + s.Container)
				}
				// All of an outline is in one file, whose name would repeat on each line; where a symbol ends tells what to read.
				if c.p.Operation == "documentSymbol" {
					fmt.Fprintf(&out, "  %d:%d-%d\n", s.Selection.Start.Line+1, s.Selection.Start.Character+1, s.Range.End.Line+1)
				} else {
					fmt.Fprintf(&out, "  %s:%d:%d\n", c.show(s.Path), s.Selection.Start.Line+1, s.Selection.Start.Character+1)
				}
			}
			walk(s.Children, depth+1)
		}
	}
	walk(list, 0)
	text := strings.TrimSuffix(out.String(), "\n")
	switch {
	case n == 0:
		text = "No symbols found."
	case n > maxShownSymbols:
		text += fmt.Sprintf("\n… and %d more", n-maxShownSymbols)
	}
	return tools.Result{Output: text, Metadata: map[string]any{"symbols": wireSymbols(list)}}
}

// symbolKind is LSP's SymbolKind (1 to 26, LSP 3.17, textDocument/documentSymbol) in words. Servers send numbers beyond the table too.
func symbolKind(k int) string {
	names := [...]string{"file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum", "interface", "function",
		"variable", "constant", "string", "number", "boolean", "array", "object", "key", "null", "enum member", "struct", "event", "operator", "type parameter"}
	if k < 1 || k > len(names) {
		return "symbol"
	}
	return names[k-1]
}

// calls lists callers or callees, each with the places of the calls. The metadata has all of them.
func (c *lspCall) calls(list []lspbridge.CallItem, err error) (tools.Result, error) {
	if err != nil {
		return tools.Result{}, err
	}
	type wireCall struct {
		Name     string         `json:"name"`
		Kind     string         `json:"kind"`
		Detail   string         `json:"detail,omitempty"`
		Location wireLocation   `json:"location"`
		Calls    []wireLocation `json:"calls,omitempty"`
	}
	wire := []wireCall{}
	var out strings.Builder
	for _, i := range list {
		// FromRanges are always in the file of the one that calls (CallHierarchyIncomingCall and CallHierarchyOutgoingCall in LSP).
		from := i.Path // incomingCalls: the item is the caller
		if c.p.Operation == "outgoingCalls" {
			from = c.path
		}
		w := wireCall{Name: i.Name, Kind: symbolKind(i.Kind), Detail: i.Detail, Location: wirePlace(i.Path, i.Selection)}
		fmt.Fprintf(&out, "%s %s  %s:%d:%d", w.Kind, i.Name, c.show(i.Path), w.Location.Line, w.Location.Column)
		for n, r := range i.FromRanges {
			w.Calls = append(w.Calls, wirePlace(from, r))
			if n == 0 {
				out.WriteString("  called at ")
			} else {
				out.WriteString(", ")
			}
			fmt.Fprintf(&out, "%s:%d:%d", c.show(from), r.Start.Line+1, r.Start.Character+1)
		}
		out.WriteByte('\n')
		wire = append(wire, w)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if len(list) == 0 {
		text = "No calls found at that position."
	}
	return tools.Result{Output: text, Metadata: map[string]any{"calls": wire}}, nil
}

// types shows the super- and subtypes of each type, of each at most maxShownLocations: an interface may have very many of them.
// The lists in the metadata are cut alike, and never null.
func (c *lspCall) types(list []lspbridge.TypeTree, err error) (tools.Result, error) {
	if err != nil {
		return tools.Result{}, err
	}
	type wireType struct {
		Name     string       `json:"name"`
		Kind     string       `json:"kind"`
		Detail   string       `json:"detail,omitempty"`
		Location wireLocation `json:"location"`
	}
	type wireTree struct {
		wireType
		Supertypes []wireType `json:"supertypes"`
		Subtypes   []wireType `json:"subtypes"`
	}
	var out strings.Builder
	show := func(indent, role string, i lspbridge.CallItem) wireType {
		w := wireType{i.Name, symbolKind(i.Kind), i.Detail, wirePlace(i.Path, i.Selection)}
		fmt.Fprintf(&out, "%s%s%s %s  %s:%d:%d\n", indent, role, w.Kind, i.Name, c.show(i.Path), w.Location.Line, w.Location.Column)
		return w
	}
	wire := []wireTree{}
	for _, t := range list {
		w := wireTree{wireType: show("", "", t.Type), Supertypes: []wireType{}, Subtypes: []wireType{}}
		for _, s := range t.Supertypes[:min(len(t.Supertypes), maxShownLocations)] {
			w.Supertypes = append(w.Supertypes, show("  ", "supertype: ", s))
		}
		for _, s := range t.Subtypes[:min(len(t.Subtypes), maxShownLocations)] {
			w.Subtypes = append(w.Subtypes, show("  ", "subtype: ", s))
		}
		if n := len(t.Supertypes) + len(t.Subtypes) - len(w.Supertypes) - len(w.Subtypes); n > 0 {
			fmt.Fprintf(&out, "  … and %d more\n", n)
		} else if len(t.Supertypes)+len(t.Subtypes) == 0 {
			out.WriteString("  no super- or subtypes\n")
		}
		wire = append(wire, w)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if len(list) == 0 {
		text = "There is no type at that position."
	}
	return tools.Result{Output: text, Metadata: map[string]any{"types": wire}}, nil
}
