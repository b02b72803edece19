package gofix

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Fix is an edit that lowers the number of errors.
type Fix struct {
	Title string
	// A caller may write Files only while each file still has the text of Before: the user may have typed since.
	Files  map[string]string // new text by path
	Before map[string]string // the text it was computed from
	Errors int               // by how many the errors of the module decrease; for a syntax error: by how many its syntax errors decrease
}

const (
	maxCandidates = 60               // edits that are tried for one error
	minCandidates = 20               // edits that are tried even if that takes longer than timeLimit: a fix of the cause is rarely the first
	timeLimit     = 6 * time.Second  // for trying the candidates of one Find
	hardLimit     = 30 * time.Second // for one Find, on a slow or busy machine
	maxFixes      = 5                // what one Find returns
	syntaxWeight  = 1000             // one syntax error counts like this many type errors, because it hides the type errors of its package
)

// Finder finds fixes. Its methods are safe for concurrent use; only one Find runs at a time, because the packages outside the
// module are shared. It has no state: modules are read again at each call, because the files change between two calls.
type Finder struct{}

// looking makes Find run once at a time: the dependencies, which all modules share, have no lock of their own.
var looking sync.Mutex

// Find returns fixes for the errors on a line (from 1) of a file, the best first; 0 means every line. Each fix has been checked:
// with it the whole module has fewer errors. read returns the text of a file as the user sees it; if it is nil or returns false,
// the file on the disk is used. The error is ErrNoModule if there is no go.mod above the file, the sources of the standard library
// are missing, or the module has more than maxFiles files.
func (*Finder) Find(ctx context.Context, path string, line int, read func(string) (string, bool)) ([]Fix, error) {
	looking.Lock()
	defer looking.Unlock()
	root := moduleRoot(path)
	if root == "" {
		return nil, ErrNoModule
	}
	m, err := load(root, read)
	if err != nil {
		return nil, err
	}
	m.checkAll()
	return m.fixes(ctx, path, line), nil
}

// moduleRoot is the nearest folder above a file that has a go.mod, or "".
func moduleRoot(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, "go.mod")) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// edit replaces a part of a file. Offsets are bytes in the text of the module that the candidate was made for.
type edit struct {
	path       string
	start, end int
	text       string // the new text; empty removes the part
}

// candidate is an edit that may be a fix. If several lower the errors equally, the one with the lowest cost is the best.
type candidate struct {
	title string
	cost  int
	edits []edit
	deep  bool // it changes a declaration that other packages may use

	syntax bool // it is for a syntax error: if the text does not parse better, it is not a fix, whatever the type errors are
}

// trouble is a syntax or type error of the module.
type trouble struct {
	pos    token.Pos
	code   int // the code of go/types; 0 for a syntax error
	syntax bool
	file   *file
	pkg    *pkg
}

// at returns the errors on a line of a file.
func (m *module) at(path string, line int) (out []trouble) {
	// A folder with external tests has two packages; the file is in one of them.
	for _, name := range []string{m.importPath(filepath.Dir(path)), m.importPath(filepath.Dir(path)) + "_test"} {
		p := m.pkgs[name]
		if p == nil {
			continue
		}
		for _, f := range p.files {
			if f.path != path {
				continue
			}
			for _, e := range f.broken {
				// A parser reports a syntax error where the text stops making sense. That is often a line before or after the one
				// that the user means.
				if line == 0 || e.Pos.Line == line || e.Pos.Line == line+1 || e.Pos.Line == line-1 {
					out = append(out, trouble{pos: m.fset.File(f.syntax.FileStart).Pos(min(e.Pos.Offset, len(f.text))), syntax: true, file: f, pkg: p})
				}
			}
			for _, e := range p.errs {
				// A package has errors in several files; only those of this file were asked about.
				at := m.fset.Position(e.Pos)
				if at.Filename == path && (line == 0 || at.Line == line) {
					out = append(out, trouble{pos: e.Pos, code: code(e), file: f, pkg: p})
				}
			}
		}
	}
	return out
}

// code is the error's code, which go/types keeps in an unexported field; gopls reads it in the same way. A version of Go without
// that field gives 0; the candidates do not depend on the code.
func code(e any) int {
	v := reflect.ValueOf(e).FieldByName("go116code")
	if !v.IsValid() {
		return 0
	}
	return int(v.Int())
}

// score is what a fix must lower. A syntax error counts more than all the type errors that it may hide, so that removing it is
// progress although the type errors become visible.
func (m *module) score() int {
	syntax, typed := m.count()
	return syntax*syntaxWeight + typed
}

// fixes applies each candidate for a line in memory and checks the module again; a candidate that lowers the score is a fix. The
// checker decides, so a wrong guess among the candidates costs only time. After timeLimit it returns what it has found.
func (m *module) fixes(ctx context.Context, path string, line int) []Fix {
	ctx, cancel := context.WithTimeout(ctx, hardLimit)
	defer cancel()
	limit := time.Now().Add(timeLimit)
	var all []candidate
	for _, t := range m.at(path, line) {
		if t.syntax {
			all = append(all, m.syntaxRepairs(t)...)
		} else if len(t.file.broken) == 0 {
			// In a file that does not parse, types follow from the parser's guesses, so type errors are not repaired there.
			all = append(all, m.repairs(t)...)
		}
	}
	// The lowest cost first: maxCandidates and timeLimit cut off the end of the list.
	sort.SliceStable(all, func(i, j int) bool { return all[i].cost < all[j].cost })
	start := m.score()
	type scored struct {
		Fix
		candidate
	}
	var found []scored
	seen := map[string]bool{}
	tried := 0
	for _, c := range all {
		if ctx.Err() != nil || tried == maxCandidates || tried >= minCandidates && time.Now().After(limit) {
			break
		}
		texts, before, ok := m.apply(c.edits)
		if !ok {
			continue
		}
		// Several candidates often give the same text. Each text is checked once.
		key := ""
		for _, p := range sortedKeys(texts) {
			key += p + "\x00" + texts[p] + "\x00"
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		// A text that does not parse better is refused before the check, and does not count as tried.
		if c.syntax && !m.parsesBetter(texts) {
			continue
		}
		tried++
		if d := start - m.scoreOf(m.trial, texts, c.deep); d > 0 {
			found = append(found, scored{Fix{c.title, texts, before, d}, c})
		}
	}
	// First the fixes that remove most errors; among equals the edit that a person more likely wanted.
	sort.SliceStable(found, func(i, j int) bool {
		if found[i].Errors != found[j].Errors {
			return found[i].Errors > found[j].Errors
		}
		return found[i].cost < found[j].cost
	})
	var out []Fix
	for _, f := range found {
		if len(out) == maxFixes || len(out) > 0 && ctx.Err() != nil {
			break
		}
		if !m.inBodies(f.candidate) {
			if f.Errors = start - m.scoreOf(m.with, f.Files, f.deep); f.Errors <= 0 {
				continue
			}
		}
		// The score of a fix for a syntax error is syntaxWeight minus the type errors that became visible. Rounding gives the
		// number of syntax errors, which the user sees.
		if f.Errors > syntaxWeight/2 {
			f.Errors = (f.Errors + syntaxWeight/2) / syntaxWeight
		}
		out = append(out, f.Fix)
	}
	return out
}

// scoreOf is the score of the module with other texts, as with or trial makes it. A name that is newly assigned to itself counts like an
// error: the checker accepts that, but it only hides the mistake.
func (m *module) scoreOf(with func(map[string]string, bool) *module, texts map[string]string, deep bool) int {
	n := with(texts, deep)
	idle := 0
	for p := range texts {
		if f := m.files[p]; f != nil && f.syntax != nil {
			idle -= selfAssigned(f.syntax)
		}
		// The file set exists as long as the process, because the dependencies use it too. Without the removal it would keep every
		// text that was tried.
		if f := n.files[p]; f.syntax != nil {
			idle += selfAssigned(f.syntax)
			m.fset.RemoveFile(m.fset.File(f.syntax.FileStart))
		}
	}
	return n.score() + max(idle, 0)
}

// selfAssigned counts the assignments of a value to where it is already (x = x), as go vet's check of that name.
func selfAssigned(f *ast.File) (n int) {
	ast.Inspect(f, func(node ast.Node) bool {
		if a, ok := node.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN && len(a.Lhs) == len(a.Rhs) {
			for i, l := range a.Lhs {
				if types.ExprString(l) == types.ExprString(a.Rhs[i]) {
					n++
				}
			}
		}
		return true
	})
	return n
}

// inBodies reports whether a candidate changes only bodies of functions. Then trial has seen all errors that it can cause.
func (m *module) inBodies(c candidate) bool {
	return !c.deep && !slices.ContainsFunc(c.edits, func(e edit) bool {
		f := m.files[e.path]
		return len(f.broken) > 0 || !slices.ContainsFunc(f.syntax.Decls, func(d ast.Decl) bool {
			fn, ok := d.(*ast.FuncDecl)
			return ok && fn.Body != nil && m.offset(fn.Body.Lbrace) < e.start && e.end <= m.offset(fn.Body.Rbrace)
		})
	})
}

// parsesBetter reports whether texts have fewer syntax errors than the module's. Parsing takes a hundredth of the time of checking,
// so a bracket can be tried at each of a hundred places. The number of errors is not enough: a stray bracket above the error makes the
// parser skip what follows, and the errors in it. So the first error of a file may not move up.
func (m *module) parsesBetter(texts map[string]string) bool {
	had, has := 0, 0
	for path, text := range texts {
		old := m.files[path]
		had += len(old.broken)
		_, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution|parser.AllErrors)
		var list scanner.ErrorList
		if errors.As(err, &list) {
			has += len(list)
			// Counted from the end of the file, because the edit is before the error and moves it. The parser sorts its errors.
			if len(old.broken) == 0 || len(text)-list[0].Pos.Offset > len(old.text)-old.broken[0].Pos.Offset {
				return false
			}
		}
	}
	return has < had
}

// apply returns the texts of the edited files after and before the edits. ok is false if an edit does not fit into its file's text,
// or if the edits of a file change nothing: such a candidate must not count as tried.
func (m *module) apply(edits []edit) (texts, before map[string]string, ok bool) {
	texts, before = map[string]string{}, map[string]string{}
	sorted := slices.Clone(edits)
	// From the end of the file to its beginning, so that the offsets of the remaining edits stay correct.
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].start > sorted[j].start })
	for _, e := range sorted {
		f := m.files[e.path]
		if f == nil || e.start < 0 || e.end < e.start || e.end > len(f.text) {
			return nil, nil, false
		}
		text, had := texts[e.path]
		if !had {
			text, before[e.path] = f.text, f.text
		}
		// the edit after this one overlaps it
		if e.end > len(text) {
			return nil, nil, false
		}
		texts[e.path] = text[:e.start] + e.text + text[e.end:]
	}
	for p, text := range texts {
		if text == before[p] {
			return nil, nil, false
		}
	}
	return texts, before, len(texts) > 0
}

// offset is the byte offset of a position in its file. It is valid for the module's text, not for a text that an edit has changed.
func (m *module) offset(p token.Pos) int { return m.fset.Position(p).Offset }

// pathOf is the file of a position.
func (m *module) pathOf(p token.Pos) string { return m.fset.Position(p).Filename }

// replace returns the edit that replaces a node by a text.
func (m *module) replace(n ast.Node, text string) edit {
	return edit{m.pathOf(n.Pos()), m.offset(n.Pos()), m.offset(n.End()), text}
}

// insert returns the edit that inserts a text before a position.
func (m *module) insert(at token.Pos, text string) edit {
	o := m.offset(at)
	return edit{m.pathOf(at), o, o, text}
}

// source is a node's text.
// It is empty if the syntax and the text disagree: the parser may have created a node for broken code that ends after the text.
func (m *module) source(n ast.Node) string {
	f := m.files[m.pathOf(n.Pos())]
	a, b := m.offset(n.Pos()), m.offset(n.End())
	if f == nil || a > b || b > len(f.text) {
		return ""
	}
	return f.text[a:b]
}

// lineOf returns where the line with an offset begins, and where the next line begins. A line includes its newline, so cutting from
// start to end leaves no empty line.
func lineOf(text string, offset int) (start, end int) {
	offset = min(offset, len(text))
	start = strings.LastIndexByte(text[:offset], '\n') + 1
	if i := strings.IndexByte(text[offset:], '\n'); i >= 0 {
		return start, offset + i + 1
	}
	return start, len(text)
}

// enclosing returns the nodes around a position, the innermost first. The end of a node counts as inside, because many errors, and
// the cursor after a name, are there.
func enclosing(f *ast.File, pos token.Pos) (out []ast.Node) {
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil || pos < n.Pos() || pos > n.End() {
			return false
		}
		out = append(out, n)
		return true
	})
	slices.Reverse(out)
	return out
}
