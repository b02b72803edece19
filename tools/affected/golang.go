package affected

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// goTests limits the tests in two steps: to the packages that import what was changed (also in their tests), and in these to the
// tests that reach a changed declaration by name. It compares names and not types: that takes milliseconds, and loading types takes
// seconds. Its errors add tests, because equal names of different things count as one. A method is also reached through its type,
// because interfaces call it without naming it.
//
// A test with random modules checks this with "go test": no test whose result changes may be left out.
type goTests struct{}

// goPackage is a folder of Go files: the package, its tests, and the package x_test beside it.
type goPackage struct {
	dir, path   string          // folder; import path
	module      string          // folder of its go.mod, where its tests are run
	modulePath  string          // what that declares
	files       []string        // all its .go files, tests included
	imports     map[string]bool // of its own files
	testImports map[string]bool // of its tests, those of package x_test included
	embeds      bool            // has a go:embed line: other files are part of it; which ones is not computed
}

// moduleLine finds the module path in a go.mod (go.dev/ref/mod#go-mod-file-module), quoted or not.
var moduleLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`) })

// plan implements runner. A project without a go.mod has nothing that "go test" runs in module mode.
func (goTests) plan(p *Project) []Run {
	if !slices.ContainsFunc(p.List, func(f string) bool { return filepath.Base(f) == "go.mod" }) {
		return nil
	}
	var goChanged, others []string
	for _, f := range p.changedPaths() {
		if strings.HasSuffix(f, ".go") {
			goChanged = append(goChanged, f)
		} else {
			others = append(others, f)
		}
	}
	packages := goPackages(p)
	g := goGraph{p: p, packages: packages, whole: map[string]bool{}, names: map[string]bool{}}
	for _, f := range goChanged {
		g.changed(f)
	}
	for _, f := range others {
		g.changedOther(f)
	}
	return g.runs()
}

// goPackages are the packages of all modules in the project, by folder. Build constraints are ignored: an additional package costs
// little.
func goPackages(p *Project) map[string]*goPackage {
	modules := map[string]string{} // path by folder
	for _, f := range p.List {
		if filepath.Base(f) == "go.mod" {
			if text, ok := p.Read(f); ok {
				if m := moduleLine().FindStringSubmatch(text); m != nil {
					modules[filepath.Dir(f)] = m[1]
				}
			}
		}
	}
	out := map[string]*goPackage{}
	for _, f := range p.List {
		if !strings.HasSuffix(f, ".go") || ignoredByGo(p.Root, f) {
			continue
		}
		dir := filepath.Dir(f)
		pkg := out[dir]
		if pkg == nil {
			// The nearest go.mod above owns the folder; a nested module is not part of the outer one (go.dev/ref/mod#modules-overview).
			root := dir
			for modules[root] == "" && root != p.Root && root != filepath.Dir(root) {
				root = filepath.Dir(root)
			}
			// Go files outside a module cannot be tested with "go test ./…".
			if modules[root] == "" {
				continue
			}
			r, err := filepath.Rel(root, dir)
			if err != nil {
				continue
			}
			pkg = &goPackage{dir: dir, module: root, modulePath: modules[root], path: path.Join(modules[root], filepath.ToSlash(r)), imports: map[string]bool{}, testImports: map[string]bool{}}
			out[dir] = pkg
		}
		text, ok := p.Read(f)
		if !ok {
			continue
		}
		pkg.files = append(pkg.files, f)
		pkg.embeds = pkg.embeds || strings.Contains(text, "//go:embed")
		// For a file with a syntax error the parser returns what it has read until there: its imports are used.
		file, _ := parser.ParseFile(token.NewFileSet(), f, text, parser.ImportsOnly)
		if file == nil {
			continue
		}
		into := pkg.imports
		if strings.HasSuffix(f, "_test.go") {
			into = pkg.testImports
		}
		for _, i := range file.Imports {
			into[strings.Trim(i.Path.Value, "\"`")] = true
		}
	}
	return out
}

// ignoredByGo reports whether "./..." leaves a file out (go help packages). Such files are not packages here, only data of the
// package around them: testdata often has Go files that do not even parse.
func ignoredByGo(root, f string) bool {
	r, err := filepath.Rel(root, f)
	if err != nil {
		return true
	}
	for part := range strings.SplitSeq(filepath.ToSlash(r), "/") {
		if part == "testdata" || part == "vendor" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return true
		}
	}
	return false
}

// goGraph collects what a proposal changes: changed and changedOther are called for each file, then runs makes the commands.
type goGraph struct {
	p        *Project
	packages map[string]*goPackage // by folder
	dirs     []string              // folders of packages with changed Go files; may repeat
	// whole has folders of packages in which more may have changed than named declarations: all their tests run, and all tests of
	// the packages that import them.
	whole map[string]bool
	own   []string        // folders whose tests read a changed file; other packages are not affected
	names map[string]bool // changed declarations, and after spread those that reach one; of all packages together
	all   bool            // go.mod, go.sum or go.work changed: any package may behave differently
}

// ours reports whether an import path belongs to the project, that is, to one of its modules; the package may be deleted.
func (g *goGraph) ours(p string) bool {
	for _, pkg := range g.packages {
		if p == pkg.modulePath || strings.HasPrefix(p, pkg.modulePath+"/") {
			return true
		}
	}
	return false
}

// changedOther handles a file that go does not compile: files that a package embeds or its tests read, and those that decide
// versions. A file that can be none of these, such as a page in a folder without Go files around it, affects no test.
func (g *goGraph) changedOther(f string) {
	switch filepath.Base(f) {
	case "go.mod", "go.sum", "go.work":
		g.all = true
		return
	}
	// The nearest package above: embed patterns and testdata reach down into folders, never up.
	dir := filepath.Dir(f)
	for ; g.packages[dir] == nil; dir = filepath.Dir(dir) {
		if dir == g.p.Root || dir == filepath.Dir(dir) {
			return
		}
	}
	if g.packages[dir].embeds {
		g.whole[dir] = true
		return
	}
	// The file is in the folder of the package or in its testdata, so its tests may read it. It is not part of the package, so
	// importers are not affected.
	if dir == filepath.Dir(f) || strings.Contains(filepath.ToSlash(f), "/testdata/") {
		g.own = append(g.own, dir)
	}
}

// changed handles a changed Go file. f may be one that the proposal creates or deletes, or one of the two paths of a rename.
func (g *goGraph) changed(f string) {
	dir := filepath.Dir(f)
	if ignoredByGo(g.p.Root, f) {
		g.changedOther(f)
		return
	}
	if g.packages[dir] == nil {
		// The last file of a package is deleted: its importers do not compile; they are found by its import path.
		g.packages[dir] = g.gone(dir)
		if g.packages[dir] == nil {
			return
		}
	}
	g.dirs = append(g.dirs, dir)
	old := "" // stays empty for a file that is created, and for the new path of a rename
	for _, x := range g.p.Files {
		if x.Path == f && x.Kind != change.Create {
			old = x.Old
		}
	}
	now, _ := g.p.Read(f)
	names, ok := changedNames(old, now, g.ours)
	if !ok {
		g.whole[dir] = true
	}
	for _, n := range names {
		g.names[n] = true
	}
}

// gone is a package without files, so that its importers are found; nil if no go.mod is above it.
func (g *goGraph) gone(dir string) *goPackage {
	at, ok := g.p.above(dir, "go.mod")
	if !ok {
		return nil
	}
	text, _ := g.p.Read(filepath.Join(at, "go.mod"))
	m := moduleLine().FindStringSubmatch(text)
	r, err := filepath.Rel(at, dir)
	if m == nil || err != nil {
		return nil
	}
	return &goPackage{dir: dir, module: at, modulePath: m[1], path: path.Join(m[1], filepath.ToSlash(r))}
}

// goDecl is a top-level declaration: what it declares, what it mentions, and whether it runs without being named.
type goDecl struct {
	names []string // what it declares; for a method, its own name and its receiver's type
	key   string   // identifies it in both texts of a file, such as "method T.String"
	text  string   // its source with //go: directives and without other comments above it; the declaration changes when this does
	// mentions has every identifier in it, except those that only name packages outside the project: what it may call or read.
	mentions map[string]bool
	// alone says that it runs without being named: init, TestMain, var _ =, a variable whose value is computed by calls. If such a
	// declaration is reached, no name shows what it affects, so the whole package counts as changed.
	alone bool
	test  string // the name that -run takes; empty for all but tests, examples and fuzz tests
}

// declarations are the top-level declarations of a text. head is the text up to the package name. ok is false if names do not show
// everything: the text does not parse, or uses cgo or a dot import. ours reports whether an import path is the project's own: a
// name that is selected from another package cannot be one that was changed.
func declarations(text string, ours func(path string) bool) (list []goDecl, head string, imports []*ast.ImportSpec, ok bool) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, "", nil, false
	}
	at := func(p token.Pos) int { return min(fset.Position(p).Offset, len(text)) }
	// Build constraints are above the package clause, and a change of one can drop the whole file.
	head = text[:at(file.Name.End())]
	ok = true
	for _, i := range file.Imports {
		if i.Path.Value == `"C"` || i.Name != nil && i.Name.Name == "." {
			ok = false
		}
	}
	foreign := foreignNames(file, ours)
	add := func(n ast.Node, doc *ast.CommentGroup, key string, d goDecl) {
		d.key, d.text, d.mentions = key, text[at(n.Pos()):at(n.End())], map[string]bool{}
		if doc != nil {
			for _, c := range doc.List {
				// Directives such as go:embed are part of the program. Other comments are not: a change of one affects no test.
				if strings.HasPrefix(c.Text, "//go:") {
					d.text = c.Text + "\n" + d.text
				}
			}
		}
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr: // testing.T is not the T of this project
				if x, isID := n.X.(*ast.Ident); isID && foreign[x.Name] {
					d.mentions[x.Name] = true
					return false
				}
			case *ast.Ident:
				d.mentions[n.Name] = true
			}
			return true
		})
		list = append(list, d)
	}
	for _, x := range file.Decls {
		switch x := x.(type) {
		case *ast.FuncDecl:
			d := goDecl{names: []string{x.Name.Name}, alone: x.Recv == nil && (x.Name.Name == "init" || x.Name.Name == "TestMain")}
			key := "func " + x.Name.Name
			if x.Recv != nil && len(x.Recv.List) > 0 {
				recv := receiver(x.Recv.List[0].Type)
				d.names = append(d.names, recv)
				key = "method " + recv + "." + x.Name.Name // several types may have methods of the same name
			} else if isTest(x.Name.Name) {
				d.test = x.Name.Name
			}
			add(x, x.Doc, key, d)
		case *ast.GenDecl:
			for i, spec := range x.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec, spec.Doc, "type "+spec.Name.Name, goDecl{names: []string{spec.Name.Name}})
				case *ast.ValueSpec:
					d := goDecl{}
					for _, n := range spec.Names {
						d.names = append(d.names, n.Name)
						d.alone = d.alone || n.Name == "_" && x.Tok == token.VAR
					}
					for _, v := range spec.Values {
						ast.Inspect(v, func(n ast.Node) bool {
							switch n.(type) {
							case *ast.CallExpr:
								d.alone = true
							case *ast.FuncLit: // what is inside runs when it is called
								return false
							}
							return true
						})
					}
					// The parser gives the comment above "var x" to the declaration, and to the spec only inside parentheses.
					doc := spec.Doc
					if doc == nil && len(x.Specs) == 1 {
						doc = x.Doc
					}
					key := x.Tok.String() + " " + strings.Join(d.names, ",")
					// A constant without a value repeats the one above it, and iota counts lines. So each constant has the text of
					// the whole group, and its position in the key: a change in the group changes all of them.
					if x.Tok == token.CONST && len(x.Specs) > 1 {
						add(x, doc, fmt.Sprintf("%s %d", key, i), d)
						continue
					}
					add(spec, doc, key, d)
				}
			}
		}
	}
	return list, head, file.Imports, ok
}

// foreignNames are the names that, in a file, can only mean packages outside the project: they are imported and are always followed
// by a dot. Without this, a change of any type T would reach every test, because each names testing.T.
func foreignNames(file *ast.File, ours func(path string) bool) map[string]bool {
	out := map[string]bool{}
	for _, i := range file.Imports {
		if p := strings.Trim(i.Path.Value, "\"`"); !ours(p) {
			name := path.Base(p)
			if i.Name != nil {
				name = i.Name.Name
			}
			out[name] = true
		}
	}
	// A name that also occurs alone may be a variable that shadows the import, so it is not certain. Inspect visits a selector
	// before the identifier in it.
	qualifier := map[*ast.Ident]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				qualifier[x] = true
			}
		case *ast.Ident:
			if !qualifier[n] {
				delete(out, n.Name)
			}
		}
		return true
	})
	return out
}

// receiver is the name of a method's type, without its pointer, parentheses and type parameters; "" for code that does not build.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.ParenExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// isTest reports whether "go test" runs a function of this name (go help testfunc): what follows the prefix must not begin with a
// lower-case letter, so Testify is not a test. Benchmarks are not run without -bench.
func isTest(name string) bool {
	for _, kind := range []string{"Test", "Example", "Fuzz"} {
		if rest, ok := strings.CutPrefix(name, kind); ok && name != "TestMain" && (rest == "" || strings.ToLower(rest[:1]) != rest[:1] || rest[0] == '_' || rest[0] >= '0' && rest[0] <= '9') {
			return true
		}
	}
	return false
}

// changedNames are the names of the declarations that differ between two texts of a file; an empty text is a file that does not
// exist. ok is false if the difference may affect more than these names.
func changedNames(old, now string, ours func(path string) bool) (names []string, ok bool) {
	a, headA, importsA, okA := declarations(old, ours)
	b, headB, importsB, okB := declarations(now, ours)
	// A missing file has no head to compare.
	if old == "" {
		okA, headA = okB, headB
	}
	if now == "" {
		okB, headB = okA, headA
	}
	if !okA || !okB || headA != headB {
		return nil, false
	}
	texts := func(list []goDecl) map[string]string {
		out := map[string]string{}
		for _, d := range list {
			out[d.key] += d.text // several init functions have one key
		}
		return out
	}
	was, is := texts(a), texts(b)
	alone := false
	for _, d := range slices.Concat(a, b) {
		if was[d.key] != is[d.key] {
			names = append(names, d.names...)
			alone = alone || d.alone
		}
	}
	// A changed import gives a name another meaning in declarations whose text is the same.
	for _, name := range changedImports(importsA, importsB) {
		if name == "" {
			return nil, false
		}
		for _, d := range b {
			if d.mentions[name] {
				names = append(names, d.names...)
				alone = alone || d.alone
			}
		}
	}
	return names, !alone
}

// changedImports are the local names of imports that only one text has; "" for a blank import, which has an effect without a name.
// An import without an explicit name adds all names that the package is likely to have.
func changedImports(a, b []*ast.ImportSpec) (out []string) {
	spec := func(i *ast.ImportSpec) string {
		if i.Name != nil {
			return i.Name.Name + " " + i.Path.Value
		}
		return i.Path.Value
	}
	has := func(list []*ast.ImportSpec, s string) bool {
		return slices.ContainsFunc(list, func(i *ast.ImportSpec) bool { return spec(i) == s })
	}
	for _, pair := range [][2][]*ast.ImportSpec{{a, b}, {b, a}} {
		for _, i := range pair[0] {
			if has(pair[1], spec(i)) {
				continue
			}
			if i.Name != nil {
				name := i.Name.Name
				if name == "_" { // imported for its init functions
					name = ""
				}
				out = append(out, name)
				continue
			}
			out = append(out, importNames(strings.Trim(i.Path.Value, "\"`"))...)
		}
	}
	return out
}

// version matches the last element of the path of major version 2 and later (go.dev/ref/mod#major-version-suffixes).
var version = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v[0-9]+$`) })

// importNames are the names that a package is likely to have, by its path: gopkg.in/yaml.v3 is yaml, github.com/mattn/go-isatty is
// isatty. Only its package clause is certain, and its source may not be on this machine.
func importNames(p string) []string {
	last := path.Base(p)
	if version().MatchString(last) {
		last = path.Base(path.Dir(p))
	}
	out := []string{last}
	if i := strings.LastIndex(last, ".v"); i > 0 {
		out = append(out, last[:i])
	}
	for _, cut := range []string{"go-", "go."} {
		if s, ok := strings.CutPrefix(last, cut); ok {
			out = append(out, s)
		}
	}
	for _, cut := range []string{"-go", ".go"} {
		if s, ok := strings.CutSuffix(last, cut); ok {
			out = append(out, s)
		}
	}
	if i := strings.LastIndexByte(last, '-'); i >= 0 {
		out = append(out, last[i+1:], strings.ReplaceAll(last, "-", ""), strings.ReplaceAll(last, "-", "_"))
	}
	return out
}

// importers are the folders of dirs and of all packages that import them, directly or indirectly. Imports of tests do not count: a
// test that behaves differently changes nothing for the packages that import its package.
func (g *goGraph) importers(dirs []string) map[string]bool {
	byPath := map[string]string{}
	for dir, pkg := range g.packages {
		byPath[pkg.path] = dir
	}
	users := map[string][]string{}
	for dir, pkg := range g.packages {
		for i := range pkg.imports {
			if at := byPath[i]; at != "" {
				users[at] = append(users[at], dir)
			}
		}
	}
	return reach(dirs, users)
}

// packageTests are the tests of a package that a change can affect.
type packageTests struct {
	pkg   *goPackage
	all   bool     // names has every test of the package, so it runs without -run
	names []string // for -run; also used to count the tests if all is set
}

// runs makes the commands, at most two for each module: whole packages, and single tests. It first collects the packages that can
// be reached through imports, then follows the changed names through their declarations. Only these packages are parsed, which
// keeps it fast.
func (g *goGraph) runs() []Run {
	if g.all {
		for dir := range g.packages {
			g.whole[dir] = true
		}
	}
	wholes := slices.Collect(maps.Keys(g.whole))
	changed := g.importers(slices.Concat(g.dirs, wholes))
	decls := map[string][]goDecl{} // by folder; each package is parsed once
	parsed := func(dir string) []goDecl {
		if list, ok := decls[dir]; ok {
			return list
		}
		var all []goDecl
		for _, f := range g.packages[dir].files {
			text, _ := g.p.Read(f)
			list, _, _, ok := declarations(text, g.ours)
			if !ok {
				g.whole[dir] = true
			}
			all = append(all, list...)
		}
		decls[dir] = all
		return all
	}
	// Packages that import it only in their tests are included; the search ends there, because no package imports a test.
	part, paths := maps.Clone(changed), map[string]bool{}
	for dir := range changed {
		paths[g.packages[dir].path] = true
	}
	for dir, pkg := range g.packages {
		for i := range pkg.testImports {
			if paths[i] {
				part[dir] = true
			}
		}
	}
	dirs := slices.Sorted(maps.Keys(part))
	g.spread(dirs, parsed)
	// spread and parsed may have added packages to whole. Declarations of these that run without being named affect every package
	// that imports them.
	all := g.importers(slices.Collect(maps.Keys(g.whole)))
	allPaths := map[string]bool{}
	for dir := range all {
		if pkg := g.packages[dir]; pkg != nil {
			allPaths[pkg.path] = true
		}
	}
	var tests []packageTests
	for _, dir := range dirs {
		pkg := g.packages[dir]
		t := packageTests{pkg: pkg, all: all[dir] || slices.Contains(g.own, dir)}
		for i := range pkg.testImports {
			t.all = t.all || allPaths[i]
		}
		total := 0
		for _, d := range parsed(dir) {
			if d.test == "" {
				continue
			}
			total++
			if t.all || g.names[d.test] {
				t.names = append(t.names, d.test)
			}
		}
		if len(t.names) > 0 {
			t.all = t.all || len(t.names) == total
			tests = append(tests, t)
		}
	}
	for _, dir := range g.own { // those whose package itself is not reached; the others are in tests already
		if pkg := g.packages[dir]; pkg != nil && !part[dir] {
			t := packageTests{pkg: pkg, all: true}
			for _, d := range parsed(dir) {
				if d.test != "" {
					t.names = append(t.names, d.test)
				}
			}
			if len(t.names) > 0 {
				tests = append(tests, t)
			}
		}
	}
	return goRuns(g.p.Root, tests)
}

// spread adds to names the declarations that mention a changed one, and those that mention these, until nothing is added, so that
// the order of packages and declarations does not matter. The names of all packages are in one set, so "New" of one package reaches
// "New" of another. This is limited to dirs, the packages that import what changed.
func (g *goGraph) spread(dirs []string, parsed func(string) []goDecl) {
	for grown := true; grown; {
		grown = false
		for _, dir := range dirs {
			for _, d := range parsed(dir) {
				hit := false
				for m := range d.mentions {
					if hit = g.names[m]; hit {
						break
					}
				}
				if !hit {
					continue
				}
				if d.alone && !g.whole[dir] {
					g.whole[dir], grown = true, true
				}
				for _, n := range d.names {
					if n != "" && n != "_" && !g.names[n] {
						g.names[n], grown = true, true
					}
				}
			}
		}
	}
}

// maxNames is how many tests one -run names. A person approves the command, and a longer one cannot be read; with more names, whole
// packages run.
const maxNames = 200

// goRuns makes the commands, module by module, because "go test" runs packages of the module in which it is started. The tests of
// several packages share one -run: a package may then also run a test that has the name of one in another package.
func goRuns(root string, tests []packageTests) (out []Run) {
	byModule := map[string][]packageTests{}
	for _, t := range tests {
		byModule[t.pkg.module] = append(byModule[t.pkg.module], t)
	}
	for _, module := range slices.Sorted(maps.Keys(byModule)) {
		in := ""
		if module != root {
			in = " in " + strings.TrimPrefix(rel(root, module), "./")
		}
		var whole, chosen, names []string
		count := 0
		for _, t := range byModule[module] {
			if !t.all {
				count += len(t.names)
			}
		}
		all := 0
		for _, t := range byModule[module] {
			if t.all || count > maxNames {
				whole = append(whole, rel(module, t.pkg.dir))
				all += len(t.names)
				continue
			}
			chosen = append(chosen, rel(module, t.pkg.dir))
			names = append(names, t.names...)
		}
		if len(whole) > 0 {
			out = append(out, Run{Dir: module, Args: append([]string{"go", "test", "-json"}, whole...), Name: "go test of " + textutil.Plural(len(whole), "affected package") + in})
		}
		if len(chosen) > 0 {
			slices.Sort(names)
			names = slices.Compact(names)
			out = append(out, Run{Dir: module, Args: append([]string{"go", "test", "-json", "-run", "^(" + strings.Join(names, "|") + ")$"}, chosen...),
				Name: "go test of " + textutil.Plural(len(names), "affected test") + " in " + textutil.Plural(len(chosen), "package") + in})
		}
	}
	return out
}

// only implements runner: the failed tests by name, in the packages of the run. The first three arguments are "go test -json";
// packages are the ones that begin with ".", as rel makes them.
func (goTests) only(r Run, tests []change.TestResult) Run {
	var names []string
	for _, t := range tests {
		if !t.Whole() {
			names = append(names, regexp.QuoteMeta(t.Name))
		}
	}
	var packages []string
	for _, a := range r.Args[3:] {
		if strings.HasPrefix(a, ".") {
			packages = append(packages, a)
		}
	}
	r.Args = []string{"go", "test", "-json"}
	// A package that does not compile has no failed test to name: then all tests of the packages run.
	if len(names) == len(tests) {
		r.Args = append(r.Args, "-run", "^("+strings.Join(names, "|")+")$")
	}
	r.Args = append(r.Args, packages...)
	return r
}

// goEvent is a line of `go test -json` (go doc test2json). Since Go 1.24, build output is in events too (go help buildjson).
type goEvent struct {
	Action      string
	Package     string  // import path; of test events
	ImportPath  string  // of build events: "example.com/x", or "example.com/x [example.com/x.test]"
	Test        string  // "TestX" or "TestX/sub"; empty: the package as a whole
	Elapsed     float64 // seconds
	Output      string  // a line or a part of one, with its newline
	FailedBuild string  // of a package's "fail": the ImportPath whose build failed
}

// results implements runner. Subtests are not listed: their output is collected under the top-level test, which fails with them.
func (goTests) results(output string) (out []change.TestResult) {
	type key struct{ suite, name string }
	text := map[key]*strings.Builder{}
	said := func(k key, s string) {
		if text[k] == nil {
			text[k] = &strings.Builder{}
		}
		text[k].WriteString(s)
	}
	broken := map[string]bool{} // packages with a failed test
	var loose strings.Builder   // lines that are not JSON: compiler errors of Go versions before 1.24
	for line := range strings.Lines(output) {
		var e goEvent
		if !strings.HasPrefix(line, "{") || json.NewDecoder(bytes.NewReader([]byte(line))).Decode(&e) != nil {
			loose.WriteString(line)
			continue
		}
		name, _, sub := strings.Cut(e.Test, "/")
		status := map[string]change.EvidenceStatus{"pass": change.EvidencePassed, "fail": change.EvidenceFailed, "skip": change.EvidenceSkipped}[e.Action]
		switch {
		case e.Action == "output":
			said(key{e.Package, name}, e.Output)
		case e.Action == "build-output":
			// "example.com/x [example.com/x.test]": the package as it is built for its test.
			suite, _, _ := strings.Cut(e.ImportPath, " ")
			said(key{suite, ""}, e.Output)
		case status == "" || sub: // "run", "pause", "start" and the like; the end of a subtest
		case e.Test != "":
			r := change.TestResult{Suite: e.Package, Name: name, Status: status, Seconds: e.Elapsed}
			if status == change.EvidenceFailed {
				broken[e.Package] = true
				if b := text[key{e.Package, name}]; b != nil {
					r.Output = b.String()
				}
			}
			out = append(out, r)
		case status == change.EvidenceFailed && !broken[e.Package]:
			// The package failed and none of its tests did. The output is that of the failed build, which may be another package's,
			// and the package's own, such as a panic in init.
			r := change.TestResult{Suite: e.Package, Name: change.WholePackage, Status: status, Seconds: e.Elapsed, Output: loose.String()}
			failed, _, _ := strings.Cut(e.FailedBuild, " ")
			suites := []string{failed, e.Package}
			if failed == e.Package {
				suites = suites[1:]
			}
			for _, suite := range suites {
				if b := text[key{suite, ""}]; b != nil {
					r.Output += b.String()
				}
			}
			out = append(out, r)
		}
	}
	return out
}
