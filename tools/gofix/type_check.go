package gofix

import (
	"cmp"
	"context"
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/types"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Edit is the new text of a Go file, or its deletion.
type Edit struct {
	Path   string // absolute
	Text   string
	Delete bool
}

// TypeReport is what types alone tell about edits.
type TypeReport struct {
	Packages []string // their names, in the order of their folders
	Errors   []TypeError
}

// TypeError is an error that the edits introduce into a package whose files they change.
type TypeError struct {
	Path    string
	Line    int // from 1
	Message string
}

// maxPackages limits how many packages one TypeCheck checks: it is for a first word, which must not take longer than the language server.
const maxPackages = 8

// typing makes TypeCheck run once at a time: it may need a hundred megabytes while it runs.
var typing sync.Mutex

// TypeCheck finds the errors that edits introduce into the packages whose files they change: a word for the time until a language server has
// loaded a large module. It checks these packages with the declarations of what they import, with all their tests where an edit is of a test, and
// nothing else of the module; it keeps nothing.
// read is as for Find.
//
// ok is false where the answer would be a guess: the packages had errors before, or what they import has some or is not on this machine; they use
// cgo, or import what does; an edited file is not for this system or does not parse; a workspace, another version of Go or flags of the go
// command may decide what is built; ctx ended.
func TypeCheck(ctx context.Context, edits []Edit, read func(string) (string, bool)) (report TypeReport, ok bool) {
	typing.Lock()
	defer typing.Unlock()
	// go/types is made for code that compiles. A panic on other code must not end the process.
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	if len(edits) == 0 || ctx.Err() != nil {
		return TypeReport{}, false
	}
	v := newView(ctx, moduleRoot(edits[0].Path), read)
	if v == nil {
		return TypeReport{}, false
	}
	defer debug.FreeOSMemory() // the person reads for minutes, and nothing of this is needed again
	texts, tests := map[string]*string{}, map[string]bool{}
	for _, e := range edits {
		dir := filepath.Dir(e.Path)
		if filepath.Ext(e.Path) != ".go" || moduleRoot(e.Path) != v.root {
			return TypeReport{}, false
		}
		if texts[e.Path] = &e.Text; e.Delete {
			texts[e.Path] = nil
		}
		tests[dir] = tests[dir] || strings.HasSuffix(e.Path, "_test.go")
	}
	if len(tests) > maxPackages {
		return TypeReport{}, false
	}
	dirs := sortedKeys(tests)
	parts := func(dir string) []part {
		if tests[dir] {
			return []part{withTests, externalTests}
		}
		return []part{withoutTests}
	}
	for _, dir := range dirs {
		for _, p := range parts(dir) {
			// A package that does not check before the edit would not tell what the edit does; the edit may make the package or end it.
			if found, sure := v.check(dir, p, true); !sure || len(found.errs) > 0 {
				return TypeReport{}, false
			}
		}
	}
	v.texts = texts
	v.forget(dirs)
	sure := true
	for _, dir := range dirs {
		var judged []string
		all := true
		for _, p := range parts(dir) {
			found, trusted := v.check(dir, p, false)
			if !trusted {
				all, sure = false, false // an edited package that it imports may be what is wrong
				continue
			}
			if judged = append(judged, found.paths...); found.name != "" {
				report.Packages = append(report.Packages, found.name)
			}
			report.Errors = append(report.Errors, found.errs...)
		}
		for path, text := range texts {
			// a file for another system
			if all && text != nil && filepath.Dir(path) == dir && !slices.Contains(judged, path) {
				return TypeReport{}, false
			}
		}
	}
	return report, (sure || len(report.Errors) > 0) && len(report.Packages) > 0 && ctx.Err() == nil
}

// view is a module as it is laid out on the disk, with edits laid over it. Its packages are checked one at a time, when they are asked for or
// imported.
type view struct {
	ctx     context.Context // of the one TypeCheck for which the view is made
	d       *dependencies
	root    string  // folder of go.mod
	module  string  // module path
	version string  // of the language, as go/types wants it
	vendor  bool    // what is imported comes from the module's vendor folder
	modules []place // required modules, the longest path first
	build   build.Context
	read    func(string) (string, bool)
	texts   map[string]*string // edited files by path; nil: deleted
	cgo     map[*types.Package]bool
	failed  map[string]bool // by folder: what it has is not known for sure
	doubt   bool            // something that the package being checked imports is not known for sure
}

// newView reads a module's go.mod; nil where the go command may see another module than the one on the disk.
func newView(ctx context.Context, root string, read func(string) (string, bool)) *view {
	d := newDependencies()
	installed, err := readFile(filepath.Join(d.goroot, "VERSION"))
	local, _, _ := strings.Cut(installed, "\n")
	lang := version.Lang(strings.TrimSpace(local))
	// Declarations of a later library may need a language that this go/types does not know.
	if err != nil || root == "" || lang == "" || version.Compare(lang, version.Lang(runtime.Version())) > 0 {
		return nil
	}
	vendor := exists(filepath.Join(root, "vendor", "modules.txt"))
	if otherBuild(d.env, vendor) {
		return nil
	}
	for dir := root; ; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, "go.work")) {
			return nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	head, err := readFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil
	}
	v := &view{ctx: ctx, d: d, root: root, version: "go1.16", vendor: vendor, modules: requirements(root, d.modcache), build: build.Default, read: read, cgo: map[*types.Package]bool{}, failed: map[string]bool{}}
	for line := range strings.Lines(head) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) != 2:
		case words[0] == "module":
			v.module = strings.Trim(words[1], "\"`")
		case words[0] == "go":
			v.version = "go" + words[1]
		}
		// The go command then uses another library than the one that is installed.
		if len(words) == 2 && (words[0] == "go" && version.Compare("go"+words[1], strings.TrimSpace(local)) > 0 || words[0] == "toolchain" && version.Compare(words[1], strings.TrimSpace(local)) > 0) {
			return nil
		}
	}
	if v.module == "" {
		return nil
	}
	if n := slices.Index(v.build.ReleaseTags, lang); n >= 0 {
		v.build.ReleaseTags = v.build.ReleaseTags[:n+1]
	}
	switch cgo := d.env("CGO_ENABLED"); {
	case cgo != "":
		v.build.CgoEnabled = cgo == "1"
	case v.build.CgoEnabled: // the go command looks for a compiler
		cc := "gcc"
		if build.Default.GOOS == "darwin" {
			cc = "clang"
		}
		_, err := exec.LookPath(cmp.Or(d.env("CC"), cc))
		v.build.CgoEnabled = err == nil
	}
	v.build.OpenFile = func(path string) (io.ReadCloser, error) {
		text, err := v.text(path)
		return io.NopCloser(strings.NewReader(text)), err
	}
	return v
}

// otherBuild reports whether settings of the go command make it build something else than what is on the disk for this system.
func otherBuild(env func(name string) string, vendor bool) bool {
	for _, flag := range strings.Fields(env("GOFLAGS")) {
		switch name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "="); name {
		case "buildvcs", "trimpath", "modcacherw", "v", "p":
		case "mod":
			if vendor {
				return true
			}
		default: // tags, modfile, overlay, race and others
			return true
		}
	}
	for name, plain := range map[string][]string{
		"GOEXPERIMENT": nil, "GOWORK": {"off"}, "GO111MODULE": {"on", "auto"}, "GOTOOLCHAIN": {"auto", "local", "path"},
		"GOOS": {build.Default.GOOS}, "GOARCH": {build.Default.GOARCH}, "CGO_ENABLED": {"0", "1"},
	} {
		if v := env(name); v != "" && !slices.Contains(plain, v) {
			return true
		}
	}
	return false
}

// text is a file as it is after the edits. Files outside of the module cache and the library may be open in an editor.
func (v *view) text(path string) (string, error) {
	if err := v.ctx.Err(); err != nil {
		return "", err
	}
	if text, ok := v.texts[path]; ok {
		if text == nil {
			return "", os.ErrNotExist
		}
		return *text, nil
	}
	if v.read != nil && !inFolder(v.d.goroot, path) && !inFolder(v.d.modcache, path) {
		if text, ok := v.read(path); ok {
			return text, nil
		}
	}
	return readFile(path)
}

// maxFile limits what is read of a file, in bytes. The largest Go files are tables that programs wrote, of some megabytes.
const maxFile = 32 << 20

// readFile reads a regular file of at most maxFile bytes. A pipe, or a link to a device, in a project must neither block nor fill the memory;
// the file is judged again when it is open, because another may have taken its place.
func readFile(path string) (string, error) {
	regular := func(info os.FileInfo, err error) error {
		if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
			err = errors.New(path + " is not a regular file of usual size")
		}
		return err
	}
	if err := regular(os.Stat(path)); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := regular(f.Stat()); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(b), err
}

// inFolder reports whether a path is below a folder.
func inFolder(dir, path string) bool {
	return strings.HasPrefix(path, dir+string(filepath.Separator))
}

// part is what is checked together of a folder.
type part int

const (
	withoutTests  part = iota // the package
	withTests                 // the package with the tests inside of it
	externalTests             // the tests beside the package, which import it with the tests inside of it
)

// parse parses the files of a part of a folder as this system builds it. It returns nil where there are none, and false where the go command may
// see another package: two of them, a link, a file that cannot be read or does not parse.
func (v *view) parse(dir string, of part) (syntax []*ast.File, sure bool) {
	build := v.build
	build.CgoEnabled = build.CgoEnabled && !inFolder(v.d.goroot, dir) // what the library has in C it has in Go as well
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // an edit may make the folder
		return nil, false
	}
	names := map[string]bool{}
	for _, e := range entries {
		if !e.IsDir() {
			names[e.Name()] = e.Type().IsRegular()
		}
	}
	for path, text := range v.texts {
		if filepath.Dir(path) == dir {
			if names[filepath.Base(path)] = true; text == nil {
				delete(names, filepath.Base(path))
			}
		}
	}
	for _, name := range sortedKeys(names) {
		test := strings.HasSuffix(name, "_test.go")
		if filepath.Ext(name) != ".go" || name[0] == '_' || name[0] == '.' || test && of == withoutTests || !test && of == externalTests {
			continue
		}
		if !names[name] {
			return nil, false
		}
		fits, err := build.MatchFile(dir, name)
		if err != nil {
			return nil, false
		}
		if !fits {
			continue
		}
		text, err := v.text(filepath.Join(dir, name))
		if err != nil {
			return nil, false
		}
		f, err := parser.ParseFile(v.d.fset, filepath.Join(dir, name), text, parser.SkipObjectResolution)
		if err != nil {
			return nil, false
		}
		switch {
		case f.Name.Name == "documentation", importsC(f) && !build.CgoEnabled, (test && strings.HasSuffix(f.Name.Name, "_test")) != (of == externalTests):
			continue
		case len(syntax) > 0 && f.Name.Name != syntax[0].Name.Name:
			return nil, false
		}
		syntax = append(syntax, f)
	}
	return syntax, true
}

// importsC reports whether a file uses cgo, which alone knows the types of C.
func importsC(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"C"` })
}

// checked is one package that was checked.
type checked struct {
	name  string
	paths []string // its files
	errs  []TypeError
}

// check checks a part of a folder with the bodies of its functions. It returns false where the errors cannot be trusted. A folder without a
// package has no errors if absent is true, and one without external tests has none in them.
func (v *view) check(dir string, of part, absent bool) (found checked, sure bool) {
	if _, err := os.Stat(dir); absent && errors.Is(err, os.ErrNotExist) {
		return found, true
	}
	// What its tests import may import the package; loaded for another one, it would have other types.
	if of != withoutTests {
		v.forget([]string{dir})
	}
	v.doubt = false
	syntax, sure := v.parse(dir, of)
	if len(syntax) == 0 {
		return found, sure && of == externalTests || absent && v.empty(dir)
	}
	path := importPath(v.root, v.module, dir)
	if of == externalTests {
		p := v.load(dir, path, withTests)
		if p == nil || syntax[0].Name.Name != p.Name()+"_test" {
			return found, false
		}
		v.d.known[dir] = p
		defer v.forget([]string{dir})
		path += "_test"
	}
	if slices.ContainsFunc(syntax, importsC) {
		return found, false
	}
	found.name = syntax[0].Name.Name
	for _, f := range syntax {
		found.paths = append(found.paths, v.d.fset.File(f.FileStart).Name())
	}
	v.d.loading[dir] = true // a test's import that imports the package would see another one
	defer delete(v.d.loading, dir)
	follows := false
	conf := v.config(func(e types.Error) {
		switch {
		case strings.HasPrefix(e.Msg, "\t"): // continues the message before
		case strings.Contains(e.Msg, "invalid type"): // follows from another error, or from a type of C
			follows = true
		default:
			at := v.d.fset.PositionFor(e.Pos, false) // not what a //line comment says
			found.errs = append(found.errs, TypeError{Path: at.Filename, Line: at.Line, Message: e.Msg})
		}
	})
	conf.GoVersion = v.version
	p, _ := conf.Check(path, v.d.fset, syntax, nil)
	ofC := p == nil || slices.ContainsFunc(p.Imports(), func(p *types.Package) bool { return v.cgo[p] })
	return found, !v.doubt && !ofC && (!follows || len(found.errs) > 0) && v.ctx.Err() == nil
}

// empty reports whether a folder has no Go file.
func (v *view) empty(dir string) bool {
	list, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && len(list) == 0
}

// config is for go/types; report gets every error.
func (v *view) config(report func(types.Error)) types.Config {
	return types.Config{Importer: v, Sizes: types.SizesFor("gc", build.Default.GOARCH), Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) {
			report(e)
		}
	}}
}

// Import implements types.Importer, which go/types uses only where ImportFrom is missing.
func (v *view) Import(path string) (*types.Package, error) { return v.ImportFrom(path, v.root, 0) }

// ImportFrom implements types.ImporterFrom: it loads the declarations of a package for the files in a folder.
func (v *view) ImportFrom(path, from string, _ types.ImportMode) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	dir := v.dirOf(path, from)
	if p := v.d.known[dir]; p != nil {
		return p, nil
	}
	p := v.load(dir, path, withoutTests)
	if p == nil {
		v.failed[dir], v.doubt = true, true
		return nil, errors.New("not known here")
	}
	v.d.known[dir] = p
	return p, nil
}

// load checks the declarations of a part of a dependency; nil if they are not known for sure.
func (v *view) load(dir, path string, of part) *types.Package {
	if dir == "" || v.d.loading[dir] || v.failed[dir] || v.ctx.Err() != nil {
		return nil
	}
	v.d.loading[dir] = true
	defer delete(v.d.loading, dir)
	syntax, sure := v.parse(dir, of)
	if len(syntax) == 0 {
		return nil
	}
	conf := v.config(func(types.Error) { sure = false })
	conf.IgnoreFuncBodies, conf.FakeImportC = true, true
	p, _ := conf.Check(path, v.d.fset, syntax, nil)
	if !sure {
		return nil
	}
	v.cgo[p] = slices.ContainsFunc(syntax, importsC)
	return p
}

// dirOf is the folder of the package that a path names in the files of a folder; "" if it is not known for sure.
func (v *view) dirOf(path, from string) string {
	source := filepath.Join(v.d.goroot, "src")
	below := filepath.FromSlash(path)
	first, _, _ := strings.Cut(path, "/")
	if inFolder(source, from) {
		// the library's own packages of golang.org/x
		if dir := filepath.Join(source, "vendor", below); strings.Contains(first, ".") {
			return dir
		}
		return filepath.Join(source, below)
	}
	if rest, ok := strings.CutPrefix(path+"/", v.module+"/"); ok {
		// A folder below may be a module of its own, of another version.
		if dir := filepath.Join(v.root, filepath.FromSlash(rest)); moduleRoot(filepath.Join(dir, "x.go")) == v.root {
			return dir
		}
	}
	if !strings.Contains(first, ".") {
		if dir := filepath.Join(source, below); exists(dir) {
			return dir
		}
	}
	if v.vendor {
		return filepath.Join(v.root, "vendor", below)
	}
	for _, m := range v.modules {
		if rest, ok := strings.CutPrefix(path+"/", m.path+"/"); ok {
			if dir := filepath.Join(m.dir, filepath.FromSlash(rest)); exists(dir) {
				if m.several {
					return ""
				}
				return dir
			}
		}
	}
	return ""
}

// forget drops the packages of some folders, and all that import them.
func (v *view) forget(dirs []string) {
	stale := map[*types.Package]bool{}
	for _, dir := range dirs {
		if p := v.d.known[dir]; p != nil {
			stale[p] = true
		}
	}
	seen := map[*types.Package]bool{}
	var reaches func(p *types.Package) bool
	reaches = func(p *types.Package) bool {
		if !seen[p] {
			seen[p] = true
			if slices.ContainsFunc(p.Imports(), reaches) {
				stale[p] = true
			}
		}
		return stale[p]
	}
	for dir, p := range v.d.known {
		if reaches(p) {
			delete(v.d.known, dir)
		}
	}
	clear(v.failed)
}
