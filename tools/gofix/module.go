// Package gofix finds edits that lower the number of errors of a Go module. It reads the module's files and the sources of what
// they import, and checks them with go/types in this process: it starts no program, downloads nothing and writes nothing. It offers
// an edit only if the checker reports fewer errors with it. TypeCheck does the opposite: it says which errors an edit introduces.
//
//	finder := &gofix.Finder{}
//	fixes, err := finder.Find(ctx, "/p/report.go", 12, nil)
//	// fixes[0].Title: "Change Prntln to Println"; fixes[0].Files["/p/report.go"]: the file's new text
package gofix

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"
)

// ErrNoModule means that the file is in no Go module, that the sources of the standard library were not found, or that the module
// has more than maxFiles files. Callers then offer no fix and report no failure.
var ErrNoModule = errors.New("the file is in no Go module that can be read")

// maxFiles limits the size of a module; checking a larger one for each candidate would take too long.
const maxFiles = 1500

// file is one parsed file. It is never changed, so the states of a module share the files that an edit does not change.
type file struct {
	path   string
	text   string
	syntax *ast.File
	broken []*scanner.Error // syntax errors
	parts  bool             // syntax has only parts of the text; see trial
}

// pkg is one package of the module as the compiler sees it: the files of a folder with those of its tests, or the external tests of
// the folder.
type pkg struct {
	path  string // import path; for external tests with "_test"
	files []*file
	types *types.Package
	info  *types.Info
	errs  []types.Error
}

// module is a module's packages with one state of their texts. To try a candidate, with returns another module with the changed
// file; only the packages that the change can affect are checked again.
type module struct {
	root string // folder of go.mod
	path string // module path
	// The file set is the one of the dependencies, because an object may be declared in either.
	fset *token.FileSet
	deps *dependencies

	files map[string]*file    // by path
	dirs  map[string][]string // the files of each folder
	pkgs  map[string]*pkg     // checked packages by import path
	busy  map[string]bool     // packages being checked: an import of one of them is an import cycle
}

// dependencies are packages outside the module. They do not change while the process runs, so they are checked once for all
// modules. Function bodies in them are skipped.
type dependencies struct {
	fset     *token.FileSet
	goroot   string
	modcache string
	env      func(name string) string  // settings of the go command
	known    map[string]*types.Package // by folder
	loading  map[string]bool           // by folder: an import cycle ends there
	dirs     map[[2]string]string      // by module root and import path
}

// place is the folder with the sources of a required module.
type place struct {
	path, version string
	dir           string
	several       bool // not the one that go.mod requires, and go.sum has several versions of it
}

// shared are the dependencies of all modules. Checking the standard library's declarations takes about a second; this happens once
// in a process, and only when a fix is requested.
var shared = sync.OnceValue(newDependencies)

// newDependencies knows where dependencies are, and none of them yet.
func newDependencies() *dependencies {
	d := &dependencies{fset: token.NewFileSet(), known: map[string]*types.Package{}, loading: map[string]bool{}, dirs: map[[2]string]string{}}
	// GOROOT, else the installation of the go command on PATH. The command is only located, not started.
	d.env = goEnvironment()
	d.goroot = os.Getenv("GOROOT")
	if d.goroot == "" {
		if program, err := exec.LookPath("go"); err == nil { // only its path is used
			if program, err = filepath.EvalSymlinks(program); err == nil {
				d.goroot = filepath.Dir(filepath.Dir(program))
			}
		}
	}
	if d.modcache = d.env("GOMODCACHE"); d.modcache == "" {
		if gopath := filepath.SplitList(cmp.Or(d.env("GOPATH"), build.Default.GOPATH)); len(gopath) > 0 {
			d.modcache = filepath.Join(gopath[0], "pkg", "mod")
		}
	}
	return d
}

// goEnvironment gives the settings of the go command by name: those of the environment, else those that "go env -w" stored.
func goEnvironment() func(name string) string {
	path := os.Getenv("GOENV")
	if dir, err := os.UserConfigDir(); path == "" && err == nil {
		path = filepath.Join(dir, "go", "env")
	}
	text := ""
	if path != "off" {
		text, _ = readFile(path)
	}
	stored := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, "="); ok {
			stored[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return func(name string) string { return cmp.Or(os.Getenv(name), stored[name]) }
}

// load reads a module: its go.mod, and every Go file that this system builds. It leaves out the folders that the go command leaves
// out: vendor, testdata, nested modules, names that begin with . or _. read returns the text of a file as the user sees it, with
// unsaved changes; nil reads the disk.
func load(root string, read func(path string) (string, bool)) (*module, error) {
	head, err := readFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, ErrNoModule
	}
	d := shared()
	// Without the sources of the standard library every import would fail, and the number of errors would say nothing about an
	// edit.
	if _, err := os.Stat(filepath.Join(d.goroot, "src", "fmt")); err != nil {
		return nil, ErrNoModule
	}
	m := &module{root: root, fset: d.fset, deps: d, files: map[string]*file{}, dirs: map[string][]string{}, pkgs: map[string]*pkg{}, busy: map[string]bool{}}
	// Only the module's path is needed here; requirements reads the rest when a package outside is imported.
	for s := bufio.NewScanner(strings.NewReader(head)); s.Scan(); {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(s.Text()), "module "); ok {
			m.path = strings.Trim(strings.TrimSpace(rest), `"`)
		}
	}
	err = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		// a file that cannot be read is left out
		if err != nil {
			return nil
		}
		name := e.Name()
		if e.IsDir() {
			if path != root && (name == "vendor" || name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_' || exists(filepath.Join(path, "go.mod"))) {
				return filepath.SkipDir
			}
			return nil
		}
		dir := filepath.Dir(path)
		if !strings.HasSuffix(name, ".go") || name[0] == '_' || name[0] == '.' || !e.Type().IsRegular() {
			return nil
		}
		// Files for other systems are left out: they usually declare the same names again.
		if ok, err := guarded().MatchFile(dir, name); err == nil && !ok {
			return nil
		}
		if len(m.files) == maxFiles {
			return fmt.Errorf("%w: more than %d files", ErrNoModule, maxFiles)
		}
		text, ok := "", false
		if read != nil {
			text, ok = read(path)
		}
		if !ok {
			if text, err = readFile(path); err != nil {
				return nil
			}
		}
		m.files[path] = m.parse(path, text)
		m.dirs[dir] = append(m.dirs[dir], path)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// guarded is how this system builds packages, with files that are read by readFile.
func guarded() *build.Context {
	c := build.Default
	c.OpenFile = func(path string) (io.ReadCloser, error) {
		text, err := readFile(path)
		return io.NopCloser(strings.NewReader(text)), err
	}
	return &c
}

// exists reports whether there is a file or folder.
func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// parse parses a text as the file at path. A file with syntax errors keeps the syntax that could be read.
func (m *module) parse(path, text string) *file {
	f := &file{path: path, text: text}
	// AllErrors: otherwise the parser stops after ten errors, and a fix of one error would not lower their number.
	var err error
	f.syntax, err = parser.ParseFile(m.fset, path, text, parser.SkipObjectResolution|parser.AllErrors)
	var list scanner.ErrorList
	if errors.As(err, &list) {
		f.broken = list
	}
	return f
}

// importPath is the import path of a folder of the module.
func (m *module) importPath(dir string) string { return importPath(m.root, m.path, dir) }

// importPath is the import path of a folder of the module with this path in root.
func importPath(root, module, dir string) string {
	rel, err := filepath.Rel(root, dir)
	if err != nil || rel == "." {
		return module
	}
	return module + "/" + filepath.ToSlash(rel)
}

// dirOf is the reverse of importPath; "" if the package is not in this module. A folder without Go files is not a package, so its
// import fails as it does for the go command.
func (m *module) dirOf(path string) string {
	if path == m.path {
		return m.root
	}
	rest, ok := strings.CutPrefix(path, m.path+"/")
	if !ok {
		return ""
	}
	dir := filepath.Join(m.root, filepath.FromSlash(rest))
	if len(m.dirs[dir]) == 0 {
		return ""
	}
	return dir
}

// checkAll checks every package.
func (m *module) checkAll() {
	for _, dir := range sortedKeys(m.dirs) {
		m.checkDir(dir)
	}
}

// checkDir checks a folder's package with its tests, and the folder's external tests.
func (m *module) checkDir(dir string) {
	path := m.importPath(dir)
	m.check(path)
	m.check(path + "_test")
}

// check returns the package with that import path, or nil. It includes the tests of the package, so importing packages see a few
// names too many. That does no harm, because edits use only names that the file itself can see. Packages that it imports are
// checked first, through Import. A nil result is kept too, so that a folder is read once.
func (m *module) check(path string) *pkg {
	if p, ok := m.pkgs[path]; ok {
		return p
	}
	base, external := strings.CutSuffix(path, "_test")
	dir := m.dirOf(path)
	if dir == "" && external {
		dir = m.dirOf(base)
	} else {
		external = false
	}
	// An import cycle: the package is being checked. nil makes go/types report the import.
	if dir == "" || m.busy[path] {
		return nil
	}
	m.busy[path] = true
	defer delete(m.busy, path)
	p := &pkg{path: path, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{},
	}}
	count := map[string]int{} // how often each package clause occurs; the most frequent one decides
	for _, name := range m.dirs[dir] {
		if f := m.files[name]; f.syntax != nil && f.syntax.Name != nil {
			count[strings.TrimSuffix(f.syntax.Name.Name, "_test")]++
		}
	}
	main := ""
	// The names are sorted, so that equal counts give the same result in every run.
	for _, name := range sortedKeys(count) {
		if main == "" || count[name] > count[main] {
			main = name
		}
	}
	var syntax []*ast.File
	for _, name := range m.dirs[dir] {
		f := m.files[name]
		if f.syntax == nil || f.syntax.Name == nil {
			continue
		}
		isExternal := strings.HasSuffix(f.syntax.Name.Name, "_test") && strings.HasSuffix(name, "_test.go")
		// A file with another package clause is left out; otherwise it would add an error to every check.
		if isExternal != external || strings.TrimSuffix(f.syntax.Name.Name, "_test") != main {
			continue
		}
		p.files = append(p.files, f)
		syntax = append(syntax, f.syntax)
	}
	if len(p.files) == 0 {
		// remembers that there is no package
		m.pkgs[path] = nil
		return nil
	}
	conf := types.Config{FakeImportC: true, Importer: m, Sizes: types.SizesFor("gc", build.Default.GOARCH), Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) && !strings.HasPrefix(e.Msg, "\t") { // a message that begins with a tab continues the one before
			if f := m.files[m.pathOf(e.Pos)]; f != nil && f.parts && f.imports(e.Pos) {
				return // what uses the import was left out
			}
			p.errs = append(p.errs, e)
		}
	}}
	// Check returns only the first error; Error has received all of them.
	p.types, _ = conf.Check(path, m.fset, syntax, p.info)
	m.pkgs[path] = p
	return p
}

// Import implements types.Importer. It checks a package of the module when it is first imported, so packages may be checked in any
// order. The error names the import path; go/types makes it a type error of the importing file.
func (m *module) Import(path string) (*types.Package, error) {
	if m.dirOf(path) != "" {
		if p := m.check(path); p != nil && p.types != nil {
			return p.types, nil
		}
		return nil, fmt.Errorf("could not import %s", path)
	}
	return m.deps.load(path, m.root)
}

// count is the number of syntax and type errors of the module. Type errors of a package with a syntax error are not counted,
// because they depend on the parser's guesses. Nothing is cached: some packages of a module returned by with belong to another
// module.
func (m *module) count() (syntax, typed int) {
	for _, p := range m.pkgs {
		s, t := p.count()
		syntax, typed = syntax+s, typed+t
	}
	return syntax, typed
}

// count is module.count for one package; a nil package has no errors.
func (p *pkg) count() (syntax, typed int) {
	if p == nil {
		return 0, 0
	}
	for _, f := range p.files {
		syntax += len(f.broken)
	}
	if syntax > 0 {
		return syntax, 0
	}
	return 0, len(p.errs)
}

// with returns the module with other texts. It shares the packages that cannot be affected: those that do not import, directly or
// indirectly, a folder whose declarations may have changed. deep says that a declaration may have changed, so importers are checked
// again. m itself does not change: the next candidate starts from it.
func (m *module) with(texts map[string]string, deep bool) *module {
	return m.withFiles(texts, deep, func(f *file) *file { return f })
}

// withFiles is with; unchanged decides how the other files of the packages that are checked again are checked.
func (m *module) withFiles(texts map[string]string, deep bool, unchanged func(*file) *file) *module {
	n := *m
	n.files = make(map[string]*file, len(m.files))
	for k, v := range m.files {
		n.files[k] = v
	}
	n.pkgs, n.busy = make(map[string]*pkg, len(m.pkgs)), map[string]bool{}
	stale := map[string]bool{}
	for path, text := range texts {
		n.files[path] = m.parse(path, text)
		at := m.importPath(filepath.Dir(path))
		// A package that is checked again has new types, and its importers have the old ones; a package that sees both would find
		// them different. So after an edit inside a function only its own package is checked again: none of the packages that it
		// imports can import it.
		if in := m.packageOf(path); in != "" && !deep {
			stale[in] = true
		} else {
			stale[at], stale[at+"_test"] = true, true
		}
	}
	// Repeat until nothing is added: what imports a stale package, directly or indirectly, is stale too.
	for again := deep; again; {
		again = false
		for path, p := range m.pkgs {
			if p == nil || stale[path] {
				continue
			}
			for _, f := range p.files {
				for _, i := range f.syntax.Imports {
					if stale[strings.Trim(i.Path.Value, `"`)] {
						stale[path], again = true, true
					}
				}
			}
		}
	}
	for path, p := range m.pkgs {
		if !stale[path] {
			n.pkgs[path] = p
		}
	}
	for path := range stale {
		if p := m.pkgs[path]; p != nil {
			for _, f := range p.files {
				if _, changed := texts[f.path]; !changed {
					n.files[f.path] = unchanged(f)
				}
			}
		}
	}
	// A package that was not checked before, such as external tests that do not exist, is not checked now.
	for path := range stale {
		if _, ok := m.pkgs[path]; ok {
			n.check(path)
		}
	}
	return &n
}

// packageOf is the import path of the package in which a file was checked, or "". A file is in no package if its package clause
// differs from that of the folder's other files.
func (m *module) packageOf(path string) string {
	at := m.importPath(filepath.Dir(path))
	for _, name := range []string{at, at + "_test"} {
		if p := m.pkgs[name]; p != nil && slices.ContainsFunc(p.files, func(f *file) bool { return f.path == path }) {
			return name
		}
	}
	return ""
}

// load returns a package outside the module: from the standard library, a vendor folder, or the module cache.
func (d *dependencies) load(path, root string) (*types.Package, error) {
	// Two packages have no files: unsafe is part of the compiler, and C is made by cgo, so its names are unknown here.
	switch path {
	case "unsafe":
		return types.Unsafe, nil
	case "C":
		return nil, errors.New("cgo")
	}
	dir, ok := d.dirs[[2]string{root, path}]
	if !ok {
		dir = d.dir(path, root)
		d.dirs[[2]string{root, path}] = dir
	}
	// the folder is the same for all modules that require this version
	if p := d.known[dir]; p != nil {
		return p, nil
	}
	// There is an import cycle among dependencies, or the package is not on this machine. Nothing is downloaded.
	if dir == "" || d.loading[dir] {
		return nil, fmt.Errorf("could not import %s", path)
	}
	d.loading[dir] = true
	defer delete(d.loading, dir)
	// ImportDir also returns errors for folders whose files can be used. Without any Go file there is nothing to check.
	b, err := guarded().ImportDir(dir, 0)
	if err != nil && (b == nil || len(b.GoFiles) == 0) {
		return nil, fmt.Errorf("could not import %s", path)
	}
	var syntax []*ast.File
	for _, name := range append(b.GoFiles, b.CgoFiles...) {
		path := filepath.Join(dir, name)
		text, err := readFile(path)
		if err != nil {
			continue
		}
		if f, err := parser.ParseFile(d.fset, path, text, parser.SkipObjectResolution); err == nil {
			syntax = append(syntax, f)
		}
	}
	// Errors in a dependency are not the user's; the declarations that could be checked are enough.
	conf := types.Config{IgnoreFuncBodies: true, FakeImportC: true, Importer: importer{d, root}, Sizes: types.SizesFor("gc", build.Default.GOARCH), Error: func(error) {}}
	p, _ := conf.Check(path, d.fset, syntax, nil)
	if p == nil {
		return nil, fmt.Errorf("could not import %s", path)
	}
	d.known[dir] = p
	return p, nil
}

// importer lets go/types load the imports of a dependency; root is the module for which it is loaded, which decides the versions.
type importer struct {
	d    *dependencies
	root string
}

func (i importer) Import(path string) (*types.Package, error) { return i.d.load(path, i.root) }

// dir is the folder with a package's sources; "" if they are not on this machine.
func (d *dependencies) dir(path, root string) string {
	// A first element without a dot is reserved for the standard library (Go Modules Reference, "Module paths"). The packages of
	// golang.org/x that the library imports are in its own vendor folder.
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") {
		for _, dir := range []string{filepath.Join(d.goroot, "src", filepath.FromSlash(path)), filepath.Join(d.goroot, "src", "vendor", filepath.FromSlash(path))} {
			if exists(dir) {
				return dir
			}
		}
		return ""
	}
	// A vendor folder wins over the module cache, as it does for the go command. The library's own is for the library: of some packages it has only
	// a folder with others (golang.org/x/net/http2).
	if dir := filepath.Join(root, "vendor", filepath.FromSlash(path)); exists(dir) {
		return dir
	}
	// The longest path first: if a module's path is inside another one's, it has the package.
	for _, r := range requirements(root, d.modcache) {
		if rest, ok := strings.CutPrefix(path+"/", r.path+"/"); ok {
			if dir := filepath.Join(r.dir, filepath.FromSlash(rest)); exists(dir) {
				return dir
			}
		}
	}
	if dir := filepath.Join(d.goroot, "src", "vendor", filepath.FromSlash(path)); exists(dir) {
		return dir
	}
	return ""
}

// requirements are the modules that go.mod names, the longest path first. The file is read line by line; only require and replace
// matter, each on one line or in a block. Versions that go.sum adds come after those of go.mod, so that the required version is
// found first.
func requirements(root, modcache string) (out []place) {
	b, _ := readFile(filepath.Join(root, "go.mod"))
	sums, _ := readFile(filepath.Join(root, "go.sum")) // also has the modules that only other modules require
	replaced := map[string]string{}
	add := func(path, version string) {
		out = append(out, place{path: path, version: version, dir: filepath.Join(modcache, escape(path)+"@"+escape(version))})
	}
	block := ""
	for _, line := range strings.Split(b, "\n") {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		case len(words) == 1 && words[0] == ")":
			block = ""
			continue
		case block != "":
			words = append([]string{block}, words...)
		}
		switch {
		case len(words) == 3 && words[0] == "require":
			add(words[1], words[2])
		case len(words) >= 4 && words[0] == "replace":
			if i := slices.Index(words, "=>"); i > 0 && i+1 < len(words) {
				of, to := strings.Join(words[1:i], "@"), words[i+1] // of one version, or of all
				if strings.HasPrefix(to, ".") || filepath.IsAbs(to) {
					// a path in go.mod is relative to the module's root
					if !filepath.IsAbs(to) {
						to = filepath.Join(root, to)
					}
					replaced[of] = to
				} else if i+2 < len(words) {
					replaced[of] = filepath.Join(modcache, escape(to)+"@"+escape(words[i+2]))
				}
			}
		}
	}
	required := len(out)
	for _, line := range strings.Split(sums, "\n") {
		if words := strings.Fields(line); len(words) == 3 && !strings.HasSuffix(words[1], "/go.mod") {
			add(words[0], words[1])
		}
	}
	versions := map[string]int{}
	for _, m := range out {
		versions[m.path]++
	}
	for i := range out {
		m := &out[i]
		m.several = i >= required && versions[m.path] > 1
		if dir := cmp.Or(replaced[m.path+"@"+m.version], replaced[m.path]); dir != "" {
			m.dir, m.several = dir, false
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return len(out[i].path) > len(out[j].path) })
	return out
}

// escape is a module path as the module cache spells it: "!a" for "A". The Go Modules Reference calls it case-encoding; without it,
// file systems that ignore case would confuse two modules.
func escape(path string) string {
	var b strings.Builder
	for _, r := range path {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// sortedKeys gives the same order in each run, so that the candidates and the fixes do not depend on Go's map order.
func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
