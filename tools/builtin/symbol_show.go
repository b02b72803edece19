package builtin

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/symbol"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// symbolFindParams is the tool's input; without a query Path must be a file, of which everything is listed.
type symbolFindParams struct {
	Query string `json:"query,omitempty"`
	Path  string `json:"path,omitempty"`
	Kind  string `json:"kind,omitempty" jsonschema:"function, method, class, struct, interface, variable …; type for all types"`
	// It was named body, which is the new text in the other symbol tools; a model sees all of them as one tool.
	Bodies bool `json:"bodies,omitempty" jsonschema:"show each declaration"`
}

// What one answer of symbol_find shows at most.
const (
	// Declarations, whose bodies are shown for the first maxBodies of them.
	maxFound  = 200
	maxBodies = 20
	maxBody   = 300 // lines of one body
)

// SymbolFind lists declarations by name.
func SymbolFind(env Env) tools.Tool {
	return symbolTool("symbol_find", symbolFindText, "lsp", tools.KindSearch, func(ctx, asking context.Context, p symbolFindParams, call *tools.Call) (tools.Result, error) {
		c := env.symbols(call)
		if err := c.askLSP(ctx, p.Query); err != nil {
			return tools.Result{}, err
		}
		return c.find(ctx, asking, p)
	})
}

// find lists the declarations below a path whose names contain the query. If a query of several parts matches exactly, partial matches
// are left out. A file needs the permission of a read, a folder that of a search, whose result leaves out files that may not be read
// without a question.
func (c *symbolCall) find(ctx, asking context.Context, p symbolFindParams) (tools.Result, error) {
	at, err := c.searchPlace(p.Path)
	if err != nil {
		return tools.Result{}, err
	}
	parts, whole := symbol.Split(p.Query)
	var paths []string
	switch {
	case !at.dir:
		path, err := c.symbolFile(ctx, at.path)
		if err != nil {
			return tools.Result{}, err
		}
		paths = []string{path}
	case len(parts) == 0:
		return tools.Result{}, &tools.Error{Kind: "invalid", Message: "symbol_find needs query, a name or a part of one; without it path must be a file"}
	default:
		if err := c.askSearch(ctx, c.call, at); err != nil {
			return tools.Result{}, err
		}
		if paths, err = c.filesNaming(ctx, asking, at.path, parts[len(parts)-1], false); err != nil {
			return tools.Result{}, err
		}
	}
	var found []*target
	for _, path := range paths {
		// In a search one file that cannot be parsed must not hide the others.
		f, list, err := c.outline(asking, path)
		if err != nil {
			if !at.dir {
				return tools.Result{}, err
			}
			continue
		}
		for _, s := range list {
			// In data files and style sheets a piece of the whole path is enough, whatever separates its parts.
			if (queried(s, parts, whole) || symbol.Own(path) && strings.Contains(strings.ToLower(s.String()), strings.ToLower(p.Query))) && kindIs(s.Kind, p.Kind) {
				found = append(found, &target{path, f.Text, f, s})
			}
		}
	}
	// "Server.Start" should not also list HTTPServer.StartTLS when there is an exact match.
	if exact := slices.DeleteFunc(slices.Clone(found), func(t *target) bool { return !symbol.Matches(t.sym.Path, parts, whole) && !t.sym.Is(p.Query) }); len(parts) > 1 && len(exact) > 0 {
		found = exact
	}
	return c.list(p, found), nil
}

// queried reports whether a symbol is one that is asked for. The last part of the query may be a piece
// of the name; local symbols must be named whole, or every loop variable would be listed.
func queried(s symbol.Symbol, parts []string, whole bool) bool {
	switch {
	case len(parts) == 0:
		return !s.Local
	case symbol.Matches(s.Path, parts, whole):
		return true
	case s.Local || len(parts) > len(s.Path) || whole:
		return false
	}
	// The parts above the last one are compared whole and from the end, so "Server.st" finds http.Server.Start.
	up, last := s.Path[len(s.Path)-len(parts):len(s.Path)-1], parts[len(parts)-1]
	return slices.Equal(up, parts[:len(parts)-1]) && strings.Contains(strings.ToLower(s.Name()), strings.ToLower(last))
}

// kindIs is lenient, because models say "function" for a method and "type" for a struct. kind is a word of symbolKind.
func kindIs(kind, want string) bool {
	switch want = strings.ToLower(want); want {
	case "", kind:
		return true
	case "type":
		return slices.Contains([]string{"class", "struct", "interface", "enum", "type parameter"}, kind)
	case "function":
		return kind == "method" || kind == "constructor"
	case "field", "property":
		return kind == "field" || kind == "property"
	}
	return false
}

// foundSymbol is a declaration in the metadata; lines count from 1.
type foundSymbol struct {
	Name     string `json:"name"`
	NamePath string `json:"namePath"`
	Kind     string `json:"kind"`
	FilePath string `json:"filePath"`
	Line     int    `json:"line"` // of the name
	Column   int    `json:"column"`
	Start    int    `json:"startLine"` // of all that belongs to it
	End      int    `json:"endLine"`
	Body     string `json:"body,omitempty"`
}

// wire is the declaration without its body, which costs more than all the rest; the caller adds it where it is asked for.
func (t *target) wire() foundSymbol {
	from, to := t.lines()
	p := t.position()
	return foundSymbol{t.sym.Name(), t.sym.String(), t.sym.Kind, t.path, p.Line + 1, p.Character + 1, from, to, ""}
}

// list renders what was found, grouped by file; found must be in the order of the files, or a file's name would repeat.
func (c *symbolCall) list(p symbolFindParams, found []*target) tools.Result {
	var out strings.Builder
	wire := []foundSymbol{}
	var places []tools.Location
	last := ""
	for i, t := range found[:min(len(found), maxFound)] {
		if t.path != last {
			last = t.path
			out.WriteString(c.show(t.path) + "\n")
			if len(places) < maxLocations {
				places = append(places, tools.Location{Path: t.path, Line: t.wire().Line})
			}
		}
		w := t.wire()
		fmt.Fprintf(&out, "  %s %s  %d-%d\n", w.Kind, w.NamePath, w.Start, w.End)
		if p.Bodies && i < maxBodies {
			w.Body, _ = symbol.Read(t.text, t.sym)
			out.WriteString(numbered(w.Body, w.Start))
		}
		wire = append(wire, w)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if len(found) == 0 {
		text = "No symbols found."
	}
	if n := len(found) - maxFound; n > 0 {
		text += fmt.Sprintf("\n… and %d more", n)
	}
	if p.Bodies && len(found) > maxBodies {
		text += fmt.Sprintf("\n(bodies of the first %d; symbol_read shows the others)", maxBodies)
	}
	title := p.Query
	if title == "" {
		title = filepath.Base(p.Path)
	}
	return tools.Result{Title: title, Output: c.noted(text), Locations: places, Metadata: map[string]any{"symbols": wire}}
}

// numbered is a text with line numbers from the given one on, in the form of the tool read. After maxBody lines it says how many are left.
func numbered(text string, from int) string {
	var b strings.Builder
	list := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, l := range list {
		if i == maxBody {
			fmt.Fprintf(&b, "… (%d more lines; read shows them)\n", len(list)-i)
			break
		}
		fmt.Fprintf(&b, "%d: %s\n", from+i, l)
	}
	return b.String()
}

// read shows one declaration and notes this passage as seen: enough to replace the declaration, not to
// write the whole file.
func (c *symbolCall) read(t *target) tools.Result {
	w := t.wire()
	w.Body, _ = symbol.Read(t.text, t.sym)
	c.Tracker.Saw(t.file.Real, w.Body)
	if t.sym.Fixed != "" {
		c.note("it cannot be replaced as a whole: %s", t.sym.Fixed)
	}
	return tools.Result{Title: t.sym.String(), Output: c.noted(fmt.Sprintf("%s %s  %s:%d-%d\n%s", w.Kind, w.NamePath, c.show(t.path), w.Start, w.End, strings.TrimSuffix(numbered(w.Body, w.Start), "\n"))),
		Locations: []tools.Location{{Path: t.path, Line: w.Line}}, Metadata: map[string]any{"symbol": w}}
}

// references groups the uses of a symbol by file, each with what it is in. Servers answer in an order of their own, so the list is
// sorted first. There is no fallback by name: grep says the same without the claim that these are uses.
func (c *symbolCall) references(asking context.Context, t *target) (tools.Result, error) {
	if c.lsp == nil {
		return tools.Result{}, &tools.Error{Kind: "unsupported", Message: "No language server is configured; search for the name with grep."}
	}
	list, err := c.lsp.References(asking, t.path, t.position())
	if err != nil {
		return tools.Result{}, err
	}
	type wireReference struct {
		wireLocation
		In   string `json:"in,omitempty"`
		Text string `json:"text,omitempty"`
	}
	slices.SortStableFunc(list, func(a, b lspbridge.Location) int {
		if d := strings.Compare(a.Path, b.Path); d != 0 {
			return d
		}
		return a.Range.Start.Line - b.Range.Start.Line
	})
	quote := c.lineReader()
	within := c.encloser()
	var out strings.Builder
	wire := []wireReference{}
	var places []tools.Location
	files, uses := 0, 0
	last := ""
	for _, l := range list {
		if l.Path == t.path && lspbridge.PositionOffset(t.text, l.Range.Start) == t.sym.At {
			continue // the declaration itself
		}
		if l.Path != last {
			last = l.Path
			files++
			if uses < maxShownLocations {
				out.WriteString(c.show(l.Path) + "\n")
			}
		}
		// Counted on, because the answer begins with the number.
		if uses++; uses > maxShownLocations {
			continue
		}
		w := wireReference{wirePlace(l.Path, l.Range), within(l), strings.TrimSpace(quote(l.Path, l.Range.Start.Line))}
		fmt.Fprintf(&out, "  %d:%d", w.Line, w.Column)
		if w.In != "" {
			out.WriteString(" in " + w.In)
		}
		out.WriteString("  " + w.Text + "\n")
		wire = append(wire, w)
		if len(places) < maxLocations {
			places = append(places, tools.Location{Path: l.Path, Line: w.Line})
		}
	}
	from, _ := t.lines()
	text := fmt.Sprintf("%s %s (%s:%d) is used %s in %s", t.sym.Kind, t.sym, c.show(t.path), from, textutil.Plural(uses, "time"), textutil.Plural(files, "file"))
	if uses == 0 {
		text = fmt.Sprintf("%s %s (%s:%d) is not used in any file that the language server checks", t.sym.Kind, t.sym, c.show(t.path), from)
	}
	if out.Len() > 0 {
		text += "\n" + strings.TrimSuffix(out.String(), "\n")
	}
	if n := uses - maxShownLocations; n > 0 {
		text += fmt.Sprintf("\n… and %d more", n)
	}
	return tools.Result{Title: t.sym.String(), Output: c.noted(text), Locations: places, Metadata: map[string]any{"references": wire, "count": uses}}, nil
}

// encloser names the declaration around a place ("in Server.Start"), where there is a grammar, so that the model need not open each file.
// Local declarations do not count, as a loop variable does not say where a use is. Outlines are cached for one answer.
func (c *symbolCall) encloser() func(lspbridge.Location) string {
	type outlined struct {
		text string
		list []symbol.Symbol
	}
	seen := map[string]outlined{}
	return func(l lspbridge.Location) string {
		o, ok := seen[l.Path]
		if !ok {
			// Files outside would need a question, which a detail of the answer is not worth.
			if p, err := c.place(l.Path); err == nil && c.inside(p.real) && symbol.Supported(l.Path) {
				if f, err := c.openPlace(p); err == nil {
					o.text = f.Text
					o.list, _ = symbol.Outline(l.Path, f.Text)
					o.list = slices.DeleteFunc(o.list, func(s symbol.Symbol) bool { return s.Local })
				}
			}
			seen[l.Path] = o
		}
		if s, ok := symbol.Enclosing(o.list, lspbridge.PositionOffset(o.text, l.Range.Start)); ok {
			return s.String()
		}
		return ""
	}
}
