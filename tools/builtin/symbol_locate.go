package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/symbol"
)

// target is a symbol and the text in which it was found. Its offsets (bytes from 0) are valid in that text only, so the change pipeline
// gets this as the old text and merges what has changed since.
type target struct {
	path string
	text string
	// For the tracker: what the session knows of the file decides whether the symbol may be replaced.
	file *files.File
	sym  symbol.Symbol
}

// lines are the first and the last line of the declaration, from 1.
func (t *target) lines() (from, to int) {
	return strings.Count(t.text[:t.sym.Start], "\n") + 1, strings.Count(t.text[:t.sym.End], "\n") + 1
}

// position is the position of the name, from 0 as in LSP. Servers must be asked about the name, because a declaration often begins with a
// keyword or a comment, about which they know nothing.
func (t *target) position() lspbridge.Position { return lspbridge.OffsetPosition(t.text, t.sym.At) }

// What a search for a name looks at, at most.
const (
	maxNamedFiles = 50 // files that are looked into for declarations
	maxAmbiguous  = 20 // declarations listed when a name is not enough
)

// outline lists a file's declarations. The language server decides what there is, tree-sitter where
// each begins and ends (a server's range often misses comments and decorators). Without one of them the
// other does both.
func (c *symbolCall) outline(asking context.Context, path string) (*files.File, []symbol.Symbol, error) {
	at, err := c.place(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := c.openPlace(at)
	if err != nil {
		return nil, nil, err
	}
	own, treeErr := symbol.Outline(path, f.Text)
	// No server knows the keys of a data file or the rules of a style sheet better.
	if treeErr == nil && symbol.Own(path) {
		return f, own, nil
	}
	var said []lspbridge.Symbol
	lspErr := fmt.Errorf("no language server is configured: %w", lspbridge.ErrUnsupported)
	if c.lsp != nil {
		said, lspErr = c.lsp.DocumentSymbols(asking, path)
	}
	switch {
	// A server's empty list must not hide what the grammar sees.
	case lspErr == nil && (len(said) > 0 || treeErr != nil):
		return f, joinSymbols(path, f.Text, said, own, treeErr == nil), nil
	case treeErr == nil:
		if lspErr != nil {
			c.note("by tree-sitter, without the language server: %v", lspErr)
		}
		return f, own, nil
	case errors.Is(treeErr, symbol.ErrNoGrammar):
		return nil, nil, lspErr
	}
	return nil, nil, errors.Join(lspErr, treeErr)
}

// joinSymbols merges the server's list into tree-sitter's; two entries are the same declaration when
// their names are at the same place. What only the server knows gets whole lines, and cannot be
// replaced as a whole where the grammar sees no declaration.
func joinSymbols(path, text string, said []lspbridge.Symbol, own []symbol.Symbol, grammar bool) []symbol.Symbol {
	out := slices.Clone(own)
	var walk func(list []lspbridge.Symbol, in []string)
	walk = func(list []lspbridge.Symbol, in []string) {
		for _, s := range list {
			// Some servers put the container into the name: gopls says "(*Server).Start".
			names, _ := symbol.Split(s.Name)
			if len(names) == 0 || s.Path != path {
				continue
			}
			names = append(slices.Clone(in), names...)
			// Flat lists (SymbolInformation) name the container instead of nesting.
			if s.Container != "" && len(in) == 0 {
				up, _ := symbol.Split(s.Container)
				names = append(up, names...)
			}
			at := lspbridge.PositionOffset(text, s.Selection.Start)
			start, end := lspbridge.PositionOffset(text, s.Range.Start), lspbridge.PositionOffset(text, s.Range.End)
			// Servers without a selection range send the whole range twice; then the name need only be inside.
			same := slices.IndexFunc(out, func(o symbol.Symbol) bool {
				return o.Name() == names[len(names)-1] && (o.At == at || s.Selection == s.Range && start <= o.At && o.At < end)
			})
			if same < 0 {
				one := symbol.Lines(path, text, names, symbolKind(s.Kind), start, end, at)
				if grammar && one.Fixed == "" {
					one.Fixed = "its syntax tree shows no declaration there"
				}
				out = append(out, one)
			} else {
				// Children are named below the grammar's path, or the same method would be listed under two.
				names = out[same].Path
			}
			walk(s.Children, names)
		}
	}
	walk(said, nil)
	slices.SortStableFunc(out, func(a, b symbol.Symbol) int { return a.At - b.At })
	return out
}

// target finds the one symbol that a call means. Several are an error that lists them: a guess would change the wrong one. Without a file
// it looks into those that may declare the name, and fails with the last file's error only when no other file has the symbol.
func (c *symbolCall) target(ctx, asking context.Context, p symbolParams) (*target, error) {
	var paths []string
	if p.FilePath != "" {
		path, err := c.symbolFile(ctx, p.FilePath)
		if err != nil {
			return nil, err
		}
		paths = []string{path}
	} else {
		parts, _ := symbol.Split(p.Symbol)
		if len(parts) == 0 {
			return nil, &tools.Error{Kind: "invalid", Message: fmt.Sprintf("%q is no name path", p.Symbol)}
		}
		var err error
		if paths, err = c.filesNaming(ctx, asking, c.Cwd, parts[len(parts)-1], true); err != nil {
			return nil, err
		}
	}
	var found []*target
	var names []string
	var failed error
	for _, path := range paths {
		f, list, err := c.outline(asking, path)
		if err != nil {
			failed = err
			if p.FilePath != "" {
				return nil, err
			}
			continue
		}
		for _, s := range symbol.Find(list, p.Symbol) {
			found = append(found, &target{path, f.Text, f, s})
		}
		for _, s := range list {
			// For "there are …" in the error. Local names would be noise.
			if !s.Local {
				names = append(names, s.String())
			}
		}
	}
	found = narrow(found, p.Line)
	switch {
	case len(found) == 1:
		// A search by name looked only into files that may be read without a question; showing one is
		// asked like a read.
		if p.FilePath == "" {
			if _, err := c.symbolFile(ctx, found[0].path); err != nil {
				return nil, err
			}
		}
		return found[0], nil
	case len(found) > 1:
		return nil, c.ambiguous(p, found)
	case failed != nil:
		return nil, failed
	}
	return nil, c.unknown(p, names)
}

// narrow narrows several symbols of one name down: by the line (then the innermost), else to those outside of functions. A line that no
// declaration covers leaves none, since the caller said where it is; local ones are left when there are no others.
func narrow(found []*target, line int) []*target {
	keep := func(ok func(*target) bool) {
		if some := slices.Collect(func(yield func(*target) bool) {
			for _, t := range found {
				if ok(t) && !yield(t) {
					return
				}
			}
		}); len(some) > 0 || line > 0 {
			found = some
		}
	}
	if line > 0 {
		keep(func(t *target) bool { from, to := t.lines(); return from <= line && line <= to })
		slices.SortStableFunc(found, func(a, b *target) int { return (a.sym.End - a.sym.Start) - (b.sym.End - b.sym.Start) })
		return found[:min(len(found), 1)] // the innermost
	}
	keep(func(t *target) bool { return !t.sym.Local })
	return found
}

// ambiguous is the error for a name that several declarations have. It lists them with their lines, which the next call can give.
func (c *symbolCall) ambiguous(p symbolParams, found []*target) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d symbols are called %s; give filePath, line or a longer name path:", len(found), p.Symbol)
	for i, t := range found {
		if i == maxAmbiguous {
			fmt.Fprintf(&b, "\n… and %d more", len(found)-i)
			break
		}
		from, to := t.lines()
		fmt.Fprintf(&b, "\n%s %s  %s:%d-%d", t.sym.Kind, t.sym, c.show(t.path), from, to)
	}
	return &tools.Error{Kind: "multiple", Message: b.String()}
}

// unknown is the error for a name that is not declared, with up to ten names like it.
func (c *symbolCall) unknown(p symbolParams, names []string) error {
	where := "in this project"
	if p.FilePath != "" {
		where = "in " + p.FilePath
	}
	msg := fmt.Sprintf("There is no symbol %s %s", p.Symbol, where)
	if p.Line > 0 {
		msg += fmt.Sprintf(" around line %d", p.Line)
	}
	parts, _ := symbol.Split(p.Symbol)
	var like []string
	for _, n := range names {
		l := strings.ToLower(n[strings.LastIndexByte(n, '.')+1:])
		if len(parts) == 0 {
			break
		}
		// Either name may contain the other. Names of one or two letters are in almost every word, so they are not offered.
		if w := strings.ToLower(parts[len(parts)-1]); len(like) < 10 && (strings.Contains(l, w) || strings.Contains(w, l) && len(l) > 2) {
			like = append(like, n)
		}
	}
	if len(like) > 0 {
		msg += "; there are " + strings.Join(like, ", ")
	} else {
		msg += "; symbol_find lists what there is"
	}
	return &tools.Error{Kind: "not_found", Message: c.noted(msg)}
}

// symbolFile resolves the path of a file, asks for reading it, and fails for folders and missing files.
func (c *symbolCall) symbolFile(ctx context.Context, name string) (string, error) {
	path, err := c.abs(name)
	if err != nil {
		return "", err
	}
	at, err := c.place(path)
	if err != nil {
		return "", err
	}
	if at.dir {
		return "", &tools.Error{Kind: "is_directory", Message: c.call.Tool + " needs a file; " + path + " is a folder"}
	}
	if err := c.askRead(ctx, c.call, at); err != nil {
		return "", err
	}
	open := c.isBuffer(path) // see lspCall.allowed
	if _, err := os.Stat(path); err != nil && !open {
		return "", missing(path)
	}
	return path, nil
}

// serversFirst is how long the servers have to say where a name is declared. Some are only started by the question; a search in the text of
// the files answers at once.
const serversFirst = 3 * time.Second

// filesNaming are the files below dir that may declare a name: as the servers say, else every file in
// which it occurs. exact: the whole name; else a part of it, in any case. Only files that may be read
// without a question are looked into.
func (c *symbolCall) filesNaming(ctx, asking context.Context, dir, name string, exact bool) ([]string, error) {
	at, err := c.place(dir)
	if err != nil {
		return nil, err
	}
	readable := c.visible(ctx, c.call, at, true)
	var out []string
	add := func(path string) {
		// A server also names files of libraries and of the standard library; only those below dir count.
		p, err := c.place(path)
		if err == nil && !p.dir && paths.Within(at.real, p.real) && readable(p.real) && !slices.Contains(out, path) && len(out) < maxNamedFiles {
			out = append(out, path)
		}
	}
	if c.lsp != nil {
		soon, cancel := context.WithTimeout(asking, serversFirst)
		list, err := c.lsp.WorkspaceSymbols(soon, "", name)
		cancel()
		// The error of one's own short limit is not a reason to stop; the end of the call is.
		if err != nil && asking.Err() != nil {
			return nil, err
		}
		for _, s := range list {
			if parts, _ := symbol.Split(s.Name); len(parts) > 0 && (parts[len(parts)-1] == name || !exact && strings.Contains(strings.ToLower(s.Name), strings.ToLower(name))) {
				add(s.Path)
			}
		}
		if len(out) > 0 && exact {
			return out, nil
		}
	}
	pattern := regexp.QuoteMeta(name)
	if exact {
		pattern = `\b` + pattern + `\b`
	} else {
		pattern = "(?i)" + pattern
	}
	// Limit bounds the lines, not the files.
	found, err := c.search.Grep(asking, search.GrepQuery{Root: at.real, Pattern: pattern, Limit: 5000, Show: readable, Buffers: c.unsaved()})
	if err != nil {
		return nil, searchError(at, err)
	}
	for _, m := range found.Matches {
		// With servers also files without a grammar are worth a question, but not prose.
		if path := at.named(m.Path); symbol.Supported(path) || c.lsp != nil && !proseFile(path) {
			add(path)
		}
	}
	if len(out) == maxNamedFiles {
		c.note("only the first %d files with that name were looked into", maxNamedFiles)
	}
	return out, nil
}

// proseFile reports files that declare nothing a server would know; grep finds names in them by the
// hundred.
func proseFile(path string) bool {
	return slices.Contains([]string{"", ".md", ".txt", ".json", ".jsonc", ".yaml", ".yml", ".toml", ".lock", ".sum", ".mod", ".svg", ".html", ".xml", ".csv", ".log"}, strings.ToLower(filepath.Ext(path)))
}
