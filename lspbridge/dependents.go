package lspbridge

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// Most servers speak only of files they are asked about. What uses a declaration that a proposal changes is therefore
// looked for, opened and asked about too: a renamed function breaks its callers, open or not.
const (
	maxDependents  = 20               // files
	maxDeclaration = 8                // changed declarations whose uses are looked for
	dependentsWait = 10 * time.Second // at most, and a third of what there is: what comes late still updates the question
)

// errDependents: the server did not say in time what uses a declaration.
var errDependents = errors.New("did not say in time which other files use what is changed")

// dependents are the files beside the proposal's own that use what it changes. The documents are as they are before it.
func (c *client) dependents(ctx context.Context, files []Proposal) ([]string, error) {
	c.mu.Lock()
	known := c.way() == byMarker // it speaks of the whole workspace by itself
	c.mu.Unlock()
	if known || !has(c.caps.References) || !has(c.caps.DocSymbol) {
		return nil, nil
	}
	wait := dependentsWait
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)/3)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	own := pathsOf(files)
	count := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	left := maxDeclaration
	var names []string
	for _, f := range files {
		text, open := c.shown(f.Path)
		if !open || !f.Delete && text == f.Text {
			continue
		}
		list, err := c.changedDeclarations(ctx, f, text)
		if err != nil {
			failed = err
			continue
		}
		list = list[:min(len(list), left)]
		left -= len(list)
		for _, s := range list {
			names = append(names, s.Name)
			wg.Go(func() {
				params := c.at(f.Path, s.Selection.Start)
				params["context"] = map[string]bool{"includeDeclaration": false}
				var found []lsp.Location
				err := c.call(ctx, protocol.MethodTextDocumentReferences, params, &found)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = err
				}
				for _, l := range found {
					if p := uriPath(l.URI); p != "" && !slices.Contains(own, p) && inside(c.root, p) {
						count[p]++
					}
				}
			})
		}
	}
	wg.Wait()
	if c.spec.Quirks.WantDiagnostics {
		c.mention(names, own, count)
	}
	out := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b)) })
	if failed != nil && ctx.Err() == nil { // it refused: then it knows of no uses
		failed = nil
	} else if failed != nil {
		failed = errDependents
	}
	return out[:min(len(out), maxDependents)], failed
}

// mention adds the open files in which one of the names stands. A server that compiles each file by itself knows the uses
// in those that it has compiled; just after a change of what they include that is not yet all of them.
func (c *client) mention(names, own []string, count map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, d := range c.docs {
		if count[path] == 0 && !slices.Contains(own, path) && slices.ContainsFunc(names, func(n string) bool { return n != "" && strings.Contains(d.text, n) }) {
			count[path] = 0
		}
	}
}

// changedDeclarations are those that others may use and whose outside a proposal changes: the head of a function (and
// its body, where that is part of the outside: see signature), any of a type, a constant or a variable.
func (c *client) changedDeclarations(ctx context.Context, f Proposal, old string) ([]Symbol, error) {
	first, last, ok := changedLines(old, f.Text)
	if f.Delete {
		first, last = 0, strings.Count(old, "\n")
	} else if !ok {
		return nil, nil
	}
	var raw []lsp.Symbol
	if err := c.call(ctx, protocol.MethodTextDocumentDocumentSymbol, map[string]any{"textDocument": map[string]any{"uri": pathURI(f.Path)}}, &raw); err != nil {
		return nil, err
	}
	var out []Symbol
	var walk func(list []Symbol)
	walk = func(list []Symbol) {
		for _, s := range list {
			if s.Range.Start.Line > last || s.Range.End.Line < first {
				continue
			}
			function := s.Kind == kindFunction || s.Kind == kindMethod || s.Kind == kindConstructor
			end, leaks := s.Range.End.Line, true
			if function {
				end, leaks = signature(f.Path, old, s)
			}
			if leaks || first <= end {
				out = append(out, s)
			}
			if !function { // what is inside a function is its own
				walk(s.Children)
			}
		}
	}
	walk(c.symbols(f.Path, raw))
	// What stands inside a changed type says more than the type.
	slices.SortStableFunc(out, func(a, b Symbol) int {
		return cmp.Compare(a.Range.End.Line-a.Range.Start.Line, b.Range.End.Line-b.Range.Start.Line)
	})
	return append(out, passedOn(old, first, last, c.symbols(f.Path, raw))...), nil
}

// passedOn are the names in changed lines (of the text before) that stand in no declaration: what a file imports, others
// may take from it.
func passedOn(old string, first, last int, list []Symbol) []Symbol {
	var out []Symbol
	n := -1
	for line := range strings.Lines(old) {
		if n++; n > last || len(out) >= maxDeclaration {
			break
		}
		if n < first || slices.ContainsFunc(list, func(s Symbol) bool { return s.Range.Start.Line <= n && n <= s.Range.End.Line }) {
			continue
		}
		if t := strings.TrimSpace(line); strings.HasPrefix(t, "//") || strings.HasPrefix(t, "# ") || strings.HasPrefix(t, "*") || strings.HasPrefix(t, "/*") {
			continue
		}
		for _, at := range identifier.FindAllStringIndex(line, -1) {
			word := line[at[0]:at[1]]
			if statementWords[word] || slices.ContainsFunc(out, func(s Symbol) bool { return s.Name == word }) {
				continue
			}
			pos := Position{n, column(line, at[0], UTF8, UTF16)}
			out = append(out, Symbol{Name: word, Range: Range{pos, pos}, Selection: Range{pos, pos}})
		}
	}
	return out[:min(len(out), maxDeclaration)]
}

var (
	identifier     = regexp.MustCompile(`[\pL_$][\pL\pN_$]*`)
	statementWords = map[string]bool{"import": true, "from": true, "export": true, "as": true, "default": true, "type": true, "include": true, "define": true,
		"pub": true, "use": true, "require": true, "const": true, "let": true, "var": true, "if": true, "else": true, "for": true, "return": true, "function": true}
)

// LSP's kinds of symbols that have a body.
const (
	kindMethod      = 6
	kindConstructor = 9
	kindFunction    = 12
)

// changedLines are the lines (from 0) of old between what both texts begin and end with; ok is false when nothing of old
// is changed and nothing is put between its lines.
func changedLines(old, now string) (first, last int, ok bool) {
	a, b := strings.SplitAfter(old, "\n"), strings.SplitAfter(now, "\n")
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	tail := 0
	for tail < min(len(a), len(b))-first && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	last = len(a) - 1 - tail
	if last < first { // only new lines: what they stand in changes
		if first == 0 || tail <= 1 && strings.TrimSpace(a[len(a)-1]) == "" {
			return 0, 0, false // at the file's start or end: in nothing
		}
		return first - 1, first, true
	}
	return first, last, true
}

// nudge makes a server that compiles each file by itself look at these again: what they include has changed.
func (c *client) nudge(paths []string) {
	if !c.spec.Quirks.WantDiagnostics {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range paths {
		d := c.docs[p]
		if d == nil {
			continue
		}
		c.versions[p]++
		d.version = c.versions[p]
		c.mark(causeChange)
		d.seq = c.seq
		_ = c.notify(protocol.MethodTextDocumentDidChange, map[string]any{"textDocument": map[string]any{"uri": pathURI(p), "version": d.version},
			"contentChanges": []any{map[string]any{"text": d.text}}, "wantDiagnostics": true, "forceRebuild": true})
	}
}
