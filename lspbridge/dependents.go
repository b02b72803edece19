package lspbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/paths"
	"go.lsp.dev/protocol"
)

// Most servers report only the files that they are asked about. But a renamed function breaks its callers whether they are open or not, so
// the uses of a changed declaration are searched, opened and asked about too. These limits keep that within the time that an edit may wait.
const (
	maxDependents  = 20               // files that are opened because of one proposal
	maxDeclaration = 8                // changed declarations whose uses are searched
	dependentsWait = 10 * time.Second // at most a third of the remaining time either; later answers still update the verdict
)

// errDependents means that the server did not report the uses of a declaration in time. The text follows a
// server's name.
var errDependents = errors.New("did not report in time which other files use the changed declarations")

// errImporters means that the project has too many files to find those that import a new or deleted one. The text follows a server's name.
var errImporters = errors.New("was not asked about the files that import the new or deleted one")

// uses is what a server knows about a proposal before the proposal is laid over the documents.
type uses struct {
	files      []string            // other files that use what the proposal changes, the most frequent users first
	incomplete error               // why there may be more files; makes the verdict partial
	kept       map[string][]string // by file: declarations that the proposal does not change; see hidden
	importers  []string            // of files, those that may import a file that is new or deleted
}

// dependents finds the files that use what a proposal changes, among those of one server's root.
type dependents struct {
	*diagnostics
	root     string
	project  string   // folder in which other roots may be
	includes includes // for a server that compiles each file by itself
	searches fileSearches
}

// find returns the files that use what a proposal changes. It must run while the documents still have the texts before the proposal:
// afterwards the server knows only the new names.
func (d *dependents) find(ctx context.Context, files []Proposal) (u uses) {
	if d.mode() == byMarker && d.spec.hooks.otherProjects != nil {
		u.incomplete = d.spec.hooks.otherProjects(ctx, d, files)
	}
	if d.mode() == byMarker || !has(d.able.caps.References) || !has(d.able.caps.DocSymbol) { // byMarker: the server reports the whole workspace by itself
		return u
	}
	// Most of the time is left to the check itself.
	wait := dependentsWait
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)/3)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	own := pathsOf(files)
	var moved []string // files that come or go: an import finds them that found nothing or another file, or finds nothing any more
	count := map[string]int{}
	var mu sync.Mutex // guards count and failed while requests run
	var wg sync.WaitGroup
	var failed error
	left, more := maxDeclaration, 0
	unloaded := error(nil) // projects of the server's root that it was not made to load
	looked := false
	through := "" // a line that re-exports without naming what
	var names []string
	for _, f := range files {
		doc, open := d.docs.get(f.Path)
		text := doc.text
		if f.Delete || !open && f.Old == "" {
			moved = append(moved, f.Path)
		}
		if !open || !f.Delete && text == f.Text {
			continue
		}
		runs := changedRuns(text, f.Text)
		if f.Delete {
			runs = []run{{last: strings.Count(text, "\n")}}
		}
		if len(runs) == 0 {
			continue
		}
		if through == "" {
			through = reexportAll(text, runs)
		}
		list, kept, err := d.changedDeclarations(ctx, f.Path, text, f.Text, runs)
		if err != nil {
			mu.Lock()
			failed = err // the requests of an earlier file may fail at the same time
			mu.Unlock()
			continue
		}
		if u.kept == nil {
			u.kept = map[string][]string{}
		}
		u.kept[f.Path] = kept
		more += max(0, len(list)-left)
		list = list[:min(len(list), left)]
		left -= len(list)
		if load := d.spec.hooks.otherProjects; load != nil && len(list) > 0 && !looked {
			unloaded, looked = load(ctx, d, files), true
		}
		for _, s := range list {
			names = append(names, s.Name)
			wg.Go(func() {
				params := d.converter().at(f.Path, s.Selection.Start)
				// Other declarations of the symbol (in a header, in an implementation) depend on it as its uses do.
				params["context"] = map[string]bool{"includeDeclaration": true}
				var found []lsp.Location
				err := d.call(ctx, protocol.MethodTextDocumentReferences, params, &found)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = err
				}
				for _, l := range found {
					if p := uriPath(l.URI); p != "" && !slices.Contains(own, p) && paths.Within(d.root, p) {
						count[p]++
					}
				}
			})
		}
	}
	wg.Wait()
	incomplete := error(nil)
	if len(names) > 0 {
		incomplete = d.indexing()
	}
	// clangd's index lags behind, so the texts decide which files to compile again.
	if len(names) > 0 && d.spec.Quirks.WantDiagnostics {
		d.addMentioning(names, own, count)
		if d.addIncluding(ctx, names, own, count) {
			incomplete = nil // only files that include a changed file can break, and the texts tell which these are
		}
	}
	if len(moved) > 0 {
		find := importing
		if d.spec.Quirks.WantDiagnostics {
			find = d.includes.users
		}
		users, complete := find(ctx, d.spec, d.root, moved)
		if !complete {
			incomplete = cmp.Or(incomplete, errImporters)
		}
		for _, path := range users {
			if d.spec.matches(path) && !slices.Contains(own, path) {
				count[path]++
				u.importers = append(u.importers, path)
			}
		}
	}
	// Files that import a changed file themselves come first, then those with the most uses, because maxDependents cuts the list.
	direct := map[string]int{}
	if len(count) > maxDependents {
		for path := range count {
			if text, ok := d.text(path); ok && imports(path, text, own) {
				direct[path] = 1
			}
		}
	}
	out := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(direct[b], direct[a]), cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
	switch {
	case failed != nil && ctx.Err() != nil:
		u.incomplete = errDependents
	case len(out) > maxDependents:
		u.incomplete = fmt.Errorf("checked %d of the %d files that use the changed declarations", maxDependents, len(out))
	case cmp.Or(incomplete, unloaded) != nil:
		u.incomplete = cmp.Or(incomplete, unloaded)
	case more > 0:
		u.incomplete = fmt.Errorf("reported the uses of %d of the %d changed declarations", maxDeclaration-left, maxDeclaration-left+more)
	case through != "":
		u.incomplete = fmt.Errorf("cannot tell which other files use what %q re-exports", through)
	case failed != nil:
		// A server that knows no uses answers with none. After an error the verdict must not look complete.
		u.incomplete = fmt.Errorf("could not say which other files use the changed declarations: %s", clipped(failed.Error()))
	}
	u.files = out[:min(len(out), maxDependents)]
	u.importers = slices.DeleteFunc(u.importers, func(p string) bool { return !slices.Contains(u.files, p) })
	return u
}

// addMentioning adds the open files that contain one of the names. A server that compiles each file separately knows only the uses in what
// it has compiled, which lags behind a change of an included file.
func (d *dependents) addMentioning(names, own []string, count map[string]int) {
	for _, path := range d.docs.mentioning(names) {
		if count[path] == 0 && !slices.Contains(own, path) {
			count[path] = 0
		}
	}
}

// indexing returns why the server may not know all uses of a symbol yet; nil when it does or has no index. The text follows the server's
// name.
func (d *dependents) indexing() error {
	title := d.spec.Quirks.Index
	if title == "" {
		return nil
	}
	switch running, done, detail := d.progress.index(title); {
	case running && detail != "":
		return fmt.Errorf("is still indexing (%s) and may not know every file that uses the changed declarations", detail)
	case running:
		return errors.New("is still indexing and may not know every file that uses the changed declarations")
	case !done:
		return errors.New("has no index of this project and may not know every file that uses the changed declarations")
	}
	return nil
}

// addIncluding adds the files that include the proposal's files, and ranks those that contain one of the names first. It reports whether
// these are all files that can be affected.
func (d *dependents) addIncluding(ctx context.Context, names, own []string, count map[string]int) bool {
	users, complete := d.includes.users(ctx, d.spec, d.root, own)
	for _, path := range users {
		if !d.spec.matches(path) { // such as a list of macros, which is compiled where it is included
			continue
		}
		n := 0
		if text, ok := d.text(path); ok {
			for _, name := range names {
				if name != "" {
					n += strings.Count(text, name)
				}
			}
		}
		count[path] += n
	}
	return complete
}

// changedDeclarations returns the declarations whose visible part is changed by an edit of these lines: the signature of a function (and
// its body where the result type is inferred from it; see signature), or any line of a type, constant or variable. kept are the names of
// the other declarations.
func (d *dependents) changedDeclarations(ctx context.Context, path, old, now string, runs []run) (out []Symbol, kept []string, err error) {
	list, err := d.declared(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	// walk adds the changed declarations among list to out. It returns the runs that are also a change of the enclosing declaration. It is
	// declared first because it calls itself.
	var walk func(list []Symbol, runs []run) []run
	walk = func(list []Symbol, runs []run) []run {
		outside := runs
		for _, s := range list {
			mine := slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !r.touches(s.Range) })
			if len(mine) == 0 {
				continue
			}
			if s.Kind != kindFunction && s.Kind != kindMethod && s.Kind != kindConstructor {
				// Lines inside a function belong to it alone; other lines in a type belong to the type.
				seen := walk(s.Children, mine)
				if len(seen) > 0 {
					out = append(out, s)
				}
				outside = without(outside, without(mine, seen))
				continue
			}
			if end, leaks := signature(path, old, s); leaks || slices.ContainsFunc(mine, func(r run) bool { return r.first <= end }) {
				out = append(out, s)
			} else {
				outside = without(outside, slices.DeleteFunc(mine, func(r run) bool { return r.last >= s.Range.End.Line }))
			}
		}
		return outside
	}
	walk(list, runs)
	gone := lostImports(path, old, now, runs)
	flows := inferredFrom(path, old, list, out)
	for _, s := range list {
		switch untouched := !slices.ContainsFunc(runs, func(r run) bool { return r.touches(s.Range) }); {
		case !untouched || !declares(s):
		case len(gone) > 0 && signatureMentions(path, old, s, gone) || flows[s.Name]:
			out = append(out, s)
		default:
			kept = append(kept, s.Name)
		}
	}
	// Smaller declarations first: a member of a type names its users more exactly than the type does.
	slices.SortStableFunc(out, func(a, b Symbol) int {
		return cmp.Compare(a.Range.End.Line-a.Range.Start.Line, b.Range.End.Line-b.Range.Start.Line)
	})
	// The limit on declarations cuts the end of the list, and what only takes a changed type is the least likely to break.
	out = append(out, takers(path, old, list, out)...)
	return append(out, reexports(path, old, runs, list)...), kept, nil
}

// takers returns the functions and methods whose signature names a changed type and which are not changed themselves. Their callers break
// without a mention of the type where types are compared by structure: f({a: 1}) in TypeScript, a class that fits a Protocol in Python.
func takers(path, text string, list, changed []Symbol) (out []Symbol) {
	types := map[string]bool{}
	for _, s := range changed {
		if s.Kind == kindClass || s.Kind == kindInterface || s.Kind == kindStruct {
			types[s.Name] = true
		}
	}
	if family := inferenceFamily(path); len(types) == 0 || family != "ts" && family != "py" { // C's callers are found by what they include
		return nil
	}
	var walk func(list []Symbol)
	walk = func(list []Symbol) {
		for _, s := range list {
			switch s.Kind {
			case kindFunction, kindMethod, kindConstructor:
				known := slices.ContainsFunc(changed, func(c Symbol) bool { return c.Selection == s.Selection })
				// As a function: only the signature counts, not the body.
				f := s
				f.Kind = kindFunction
				if !known && signatureMentions(path, text, f, types) {
					out = append(out, s)
				}
			default:
				walk(s.Children)
			}
		}
	}
	walk(list)
	return out
}

// inferredFrom returns the names of declarations whose type follows from a changed one, directly or indirectly: values assigned from it
// without a type of their own (const codec = { decode }), and functions whose result is inferred from a call of it. Their users break like
// the users of the changed declaration, but need not mention it.
func inferredFrom(path, text string, list, changed []Symbol) map[string]bool {
	known := map[string]bool{}
	for _, s := range changed {
		known[s.Name] = true
	}
	flows := map[string]bool{}
	// Repeat until nothing is added: a type may follow from one that itself follows from a changed one.
	for again := len(known) > 0; again; {
		again = false
		for _, s := range list {
			if known[s.Name] {
				continue
			}
			switch s.Kind {
			case kindVariable, kindConstant:
			case kindFunction:
				if _, leaks := signature(path, text, s); !leaks {
					continue
				}
			default:
				continue
			}
			if signatureMentions(path, text, s, known) {
				known[s.Name], flows[s.Name], again = true, true, true
			}
		}
	}
	return flows
}

// declared returns the outline of a file as the server has it open.
func (d *dependents) declared(ctx context.Context, path string) ([]Symbol, error) {
	var raw []lsp.Symbol
	err := d.call(ctx, protocol.MethodTextDocumentDocumentSymbol, map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}}, &raw)
	return d.converter().symbols(path, raw), err
}

// declares reports whether other files can refer to a symbol by name. They cannot refer to a heading in Markdown or a key in JSON.
func declares(s Symbol) bool {
	return s.Kind == kindClass || s.Kind >= kindEnum && s.Kind <= kindConstant || s.Kind == kindStruct
}

// hidden returns an error when the server no longer sees a declaration that the proposal does not touch: an added quote or brace can
// swallow the rest of a file. The users of such a declaration were not searched, so the verdict is incomplete.
func (d *dependents) hidden(ctx context.Context, u uses) error {
	for path, kept := range u.kept {
		if len(kept) == 0 {
			continue
		}
		now, err := d.declared(ctx, path)
		if err != nil {
			return nil
		}
		for _, name := range kept {
			if !slices.ContainsFunc(now, func(s Symbol) bool { return s.Name == name }) {
				return fmt.Errorf("was not asked which other files use %s, which it no longer sees after this change", name)
			}
		}
	}
	return nil
}

// without returns the runs that are not in some.
func without(runs, some []run) []run {
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return slices.Contains(some, r) })
}

// reexports returns the names in changed lines that belong to no declaration. Other files may import from a file what it imports itself
// (Python) or re-exports (JavaScript and TypeScript, where its own imports do not count).
func reexports(path, old string, runs []run, list []Symbol) []Symbol {
	var out []Symbol
	n, mine := -1, false
	for line := range strings.Lines(old) {
		n++
		if !strings.ContainsAny(line[:1], " \t\r\n})") { // a statement begins here
			mine = strings.HasPrefix(line, "import") && inferenceFamily(path) == "ts"
		}
		if mine || !lineRemoved(runs, n) || slices.ContainsFunc(list, func(s Symbol) bool { return s.Range.Start.Line <= n && n <= s.Range.End.Line }) {
			continue
		}
		if t := strings.TrimSpace(line); strings.HasPrefix(t, "//") || strings.HasPrefix(t, "# ") || strings.HasPrefix(t, "*") || strings.HasPrefix(t, "/*") {
			continue
		}
		for _, at := range identifier().FindAllStringIndex(line, -1) {
			word := line[at[0]:at[1]]
			if statementWords[word] || slices.ContainsFunc(out, func(s Symbol) bool { return s.Name == word }) {
				continue
			}
			pos := Position{n, column(line, at[0], UTF8, UTF16)}
			out = append(out, Symbol{Name: word, Range: Range{pos, pos}, Selection: Range{pos, pos}})
		}
	}
	return out
}

// reexportAll returns the first changed line that re-exports the declarations of another file without naming them ("export * from"). The
// users of those names cannot be searched.
func reexportAll(old string, runs []run) string {
	n := -1
	for line := range strings.Lines(old) {
		if n++; lineRemoved(runs, n) && wildcards().MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Patterns for names, re-exports and keywords. They are approximate on purpose: a superfluous name costs one request, a missing one makes
// the verdict wrong.
var (
	identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\pL_$][\pL\pN_$]*`) })
	wildcards  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*(export\s+(type\s+)?\*\s*from\b|from\s+\S+\s+import\s*\*|pub(\([^)]*\))?\s+use\s.*\*)`)
	})
	statementWords = map[string]bool{"import": true, "from": true, "export": true, "as": true, "default": true, "type": true, "include": true, "define": true,
		"pub": true, "use": true, "require": true, "const": true, "let": true, "var": true, "if": true, "else": true, "for": true, "return": true, "function": true}
)

// LSP's SymbolKind, as far as used here: kinds with a body, and kinds to which other files refer by name.
const (
	kindClass       = 5
	kindMethod      = 6
	kindConstructor = 9
	kindEnum        = 10 // then interface, function, variable, constant
	kindInterface   = 11
	kindFunction    = 12
	kindVariable    = 13
	kindConstant    = 14
	kindStruct      = 23
)

// recompile makes a server check these files again although their texts are the same: a file that they include or use has changed. Servers
// that are asked for their problems, or report the whole workspace, need not be told.
func (d *dependents) recompile(paths []string) {
	if d.mode() == byPush {
		d.docs.rebuild(paths)
	}
}

// errUnreported means that a server that publishes problems by itself has not done so for all files that were opened because of a proposal.
// The text follows a server's name.
var errUnreported = errors.New("did not report in time on every file that uses the changed declarations")

// publishesAlone reports whether problems of other files come only when the server publishes them by itself, within no known time. clangd,
// which says what it is compiling, has its dependents in the scope of a check instead.
func (d *dependents) publishesAlone() bool {
	return d.mode() == byPush && !d.spec.Quirks.WantDiagnostics
}

// waitForReports waits until a server that publishes by itself has done so for the present texts of the files, of which some were just
// opened; an error says that it has not, and the verdict is only partial.
func (d *dependents) waitForReports(ctx context.Context, files, opened []string) error {
	if len(files) == 0 || !d.publishesAlone() {
		return nil
	}
	err := d.waitForPush(ctx, d.docs.among(files))
	if d.sendAgain(opened) && err == nil {
		err = d.waitForPush(ctx, opened)
	}
	if err != nil {
		return errUnreported
	}
	return nil
}

// sendAgain sends the texts of files that were just opened once more, to a server whose reports name no version: its first report after the
// opening may be an empty list, which says only that the work begins (intelephense). The next one has to be waited for; false: there is none.
func (d *dependents) sendAgain(opened []string) bool {
	if len(opened) == 0 || !d.publishesAlone() || !d.ledger.unversioned() {
		return false
	}
	d.docs.rebuild(opened)
	return true
}

// unreported returns the open files outside a proposal on whose present text such a server has not reported. What it reports of them while
// the proposal is laid over the documents may be about the project, or about the proposal before.
func (d *dependents) unreported(known map[string]*fileDiags, own []string) (out []string) {
	if !d.publishesAlone() {
		return nil
	}
	for _, p := range d.docs.paths() {
		if doc, open := d.docs.get(p); open && !slices.Contains(own, p) && !known[p].publishedFor(doc) {
			out = append(out, p)
		}
	}
	return out
}

// restore is recompile after a proposal was taken back. The problems before the proposal were awaited, and hold again: nobody need wait until
// the server has said so. Its report may come while the next proposal is laid over the documents, and would be lost for the project. Those that
// may import a new file are the exception: the server would read it if it were written before it has compiled them again.
func (d *dependents) restore(ctx context.Context, u uses) {
	d.recompile(u.files)
	if !d.spec.Quirks.WantDiagnostics {
		return
	}
	if len(u.importers) > 0 {
		_ = d.waitForDiagnostics(ctx, d.docs.among(u.importers)) // ctx's end leaves them unknown
	} else {
		d.ledger.restored(d.docs.copies(u.files))
	}
}
