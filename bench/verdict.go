package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

const howVerdict = "Real projects, fetched by version, are edited by a seeded mutator: a declaration renamed, a parameter added, a type changed, a line deleted, a name mistyped; " +
	"and comments and blank lines, which break nothing. The truth is the compiler's: `go build` and `go vet`, `tsc --noEmit`, pyright with `compileall`, `gcc` and `g++ -fsyntax-only` over every file, " +
	"each on a copy of its own, before and after the edit. *Caught*: of the edits that break the build, those for which the verdict says so. *Named*: of the compiler's errors, those that the verdict has at their line. " +
	"*False alarm*: of the edits that break nothing, those with an error in the verdict. *False fresh*: edits that break the build and are called fresh without an error. The first edit of a project meets servers that have just been started."

// verdictLimit is how long a verdict may take; what is not final then counts as pending.
const verdictLimit = 90 * time.Second

// corpus is a project that nobody here wrote.
type corpus struct {
	language string
	name     string // with its version
	fetch    func(ctx context.Context, dir string) error
	truth    truth
	edits    int // at full scale
}

// truth asks the compiler for a project's errors. edited, relative to the project, is the only file that differs from when the
// compiler was last asked about all ("" for all): where a file is compiled for itself, the others need not be.
type truth func(ctx context.Context, dir, edited string) ([]finding, error)

// finding is an error of a compiler: a file, relative to the project, a line from 1, and what is wrong.
type finding struct {
	file string
	line int
	text string
}

// mutation is a way to edit a file: what is found is replaced by what to makes of it.
type mutation struct {
	kind    string
	find    *regexp.Regexp
	to      string // with $1 …
	harmful bool
}

// renamed is what a name is replaced by.
const renamed = "${1}${2}Qx"

// mutations by language. Each is one line of a text; whether it breaks the build is for the compiler to say.
var mutations = map[string][]mutation{
	"go": {
		{"rename a declaration", regexp.MustCompile(`(?m)^(func (?:\([^)]*\) )?)([A-Za-z]\w*)`), renamed, true},
		{"rename a type", regexp.MustCompile(`(?m)^(type )([A-Za-z]\w*)`), renamed, true},
		{"add a parameter", regexp.MustCompile(`(?m)^(func (?:\([^)]*\) )?\w+\()(\w)`), "${1}extraQx struct{}, ${2}", true},
		{"change a type", regexp.MustCompile(`(?m)\b(\w+ )(int|bool|string)\b`), "${1}chan struct{}", true},
		{"mistype a name", regexp.MustCompile(`(?m)^(\t+(?:return |if )?)([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^\t+\w[^\n{}]*\n`), "", true},
	},
	"ts": {
		{"rename a declaration", regexp.MustCompile(`(?m)^(export (?:default )?(?:async )?(?:function|const|class|interface|type|enum) )(\w+)`), renamed, true},
		{"add a parameter", regexp.MustCompile(`(?m)^((?:export )?(?:default )?function \w+\()(\w)`), "${1}extraQx: symbol, ${2}", true},
		{"change a type", regexp.MustCompile(`(?m): (?:string|number|boolean)\b`), ": symbol", true},
		{"mistype a name", regexp.MustCompile(`(?m)^(\s+(?:return |if \())([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^  \w[^\n{}()]*;\n`), "", true},
	},
	"python": {
		{"rename a declaration", regexp.MustCompile(`(?m)^(def |class )([A-Za-z]\w*)`), renamed, true},
		{"mistype a name", regexp.MustCompile(`(?m)^(    +(?:return |if ))([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^    +\w[^\n:()\[\]{}\\]*\n`), "", true},
		{"break the syntax", regexp.MustCompile(`(?m)^(def \w+)\(`), "${1}", true},
	},
	"c": {
		{"rename a declaration", regexp.MustCompile(`(?m)^((?:static |extern |inline )*(?:const )?(?:unsigned )?(?:int|void|size_t|bool|char|uint32_t|TS\w+|ZSTD_\w+)\s\*?)(\w+)\(`), "${1}${2}Qx(", true},
		{"rename a field", regexp.MustCompile(`(?m)^(  (?:\w+ )+\*?)(\w+);`), "${1}${2}Qx;", true},
		{"mistype a name", regexp.MustCompile(`(?m)^(  +(?:return |if \())([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^  +\w[^\n{}()]*;\n`), "", true},
	},
}

// harmless are edits that break nothing.
var harmless = []mutation{
	{"a comment", regexp.MustCompile(`\n\n`), "\n\n%c nothing changes\n", false},
	{"a blank line", regexp.MustCompile(`\n\n`), "\n\n\n", false},
}

var commentOf = map[string]string{"go": "//", "ts": "//", "python": "#", "c": "//"}

// extensions of the files that are edited.
var sourceOf = map[string][]string{"go": {".go"}, "ts": {".ts"}, "python": {".py"}, "c": {".c", ".h", ".cc", ".cpp", ".hpp"}}

// mutant is one edit of a project.
type mutant struct {
	file, kind string
	old, text  string
}

// mutants makes n edits of a project's files; every fourth is harmless.
func mutants(dir, kind string, n int, seed uint64) ([]mutant, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_")) {
			return filepath.SkipDir
		}
		if err == nil && d.Type().IsRegular() && slices.Contains(sourceOf[kind], filepath.Ext(path)) && !strings.HasSuffix(path, ".d.ts") {
			// The compiler is asked about this system only; the verdict speaks of other systems' files as well.
			if ok, err := build.Default.MatchFile(filepath.Dir(path), d.Name()); kind != "go" || err == nil && ok {
				files = append(files, path)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no %s files in %s", kind, dir)
	}
	r := rand.New(rand.NewPCG(seed, 22))
	var out []mutant
	for try := 0; len(out) < n && try < 200*n; try++ {
		path := files[r.IntN(len(files))]
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text := string(b)
		of := mutations[kind]
		if len(out)%4 == 3 {
			of = harmless
		}
		m := of[r.IntN(len(of))]
		places := m.find.FindAllStringSubmatchIndex(text, -1)
		if len(places) == 0 {
			continue
		}
		at := places[r.IntN(len(places))]
		to := strings.ReplaceAll(m.to, "%c", commentOf[kind])
		now := text[:at[0]] + string(m.find.ExpandString(nil, to, text, at)) + text[at[1]:]
		rel, _ := filepath.Rel(dir, path)
		if now != text && !slices.ContainsFunc(out, func(x mutant) bool { return x.file == rel && x.text == now }) {
			out = append(out, mutant{filepath.ToSlash(rel), m.kind, text, now})
		}
	}
	return out, nil
}

// tally is what came of the edits of a language.
type tally struct {
	edits, breaking, caught  int
	errors, named            int
	harmless, alarms         int
	falseFresh               int
	certainty                map[change.Certainty]int
	latency, compiler, first Samples // ms
	missed                   []string
}

// judge compares a verdict with the truth: the errors that an edit brings.
func (t *tally) judge(what string, truth []finding, v change.Verdict, root string) {
	t.edits++
	t.certainty[v.Certainty]++
	introduced, _ := v.Errors()
	if len(truth) == 0 {
		t.harmless++
		if introduced > 0 {
			t.alarms++
			t.missed = append(t.missed, fmt.Sprintf("false alarm: %s: %s", what, v.Introduced[0].Message))
		}
		return
	}
	t.breaking++
	if introduced > 0 {
		t.caught++
	} else {
		t.missed = append(t.missed, fmt.Sprintf("missed (%s %s): %s: %v", v.Certainty, v.Reason, what, truth[0]))
		if v.Certainty == change.Fresh {
			t.falseFresh++
		}
	}
	for _, f := range truth {
		t.errors++
		if slices.ContainsFunc(v.Introduced, func(p change.Problem) bool {
			rel, _ := filepath.Rel(root, p.Path)
			return p.IsError() && filepath.ToSlash(rel) == f.file && p.Line == f.line
		}) {
			t.named++
		}
	}
}

// run asks for the verdict on n edits of a project and for the compiler's word on each.
func (t *tally) run(ctx context.Context, c corpus, scratch string, n int, bins []string, log func(string)) error {
	shown, compiled := filepath.Join(scratch, "shown"), filepath.Join(scratch, "compiled")
	if err := c.fetch(ctx, shown); err != nil {
		return err
	}
	if err := os.CopyFS(compiled, os.DirFS(shown)); err != nil {
		return err
	}
	shown, err := filepath.EvalSymlinks(shown)
	if err != nil {
		return err
	}
	kind := strings.Fields(c.language)[0]
	edits, err := mutants(shown, kind, n, 1)
	if err != nil {
		return err
	}
	before, err := c.truth(ctx, compiled, "")
	if err != nil {
		return fmt.Errorf("%s does not compile as it is: %w", c.name, err)
	}
	m := lspbridge.New(lspbridge.Options{Root: shown, Bin: bins, NoWatch: true, Idle: -1, Log: slog.New(slog.DiscardHandler)})
	defer m.Close(context.WithoutCancel(ctx))
	for i, e := range edits {
		began := time.Now()
		v := verdictOn(ctx, m, filepath.Join(shown, filepath.FromSlash(e.file)), e.text)
		took := ms(time.Since(began))
		if i == 0 {
			t.first = append(t.first, took)
		} else {
			t.latency = append(t.latency, took)
		}
		at := filepath.Join(compiled, filepath.FromSlash(e.file))
		if err := os.WriteFile(at, []byte(e.text), 0o600); err != nil {
			return err
		}
		began = time.Now()
		after, err := c.truth(ctx, compiled, e.file)
		t.compiler = append(t.compiler, ms(time.Since(began)))
		if err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(e.old), 0o600); err != nil {
			return err
		}
		t.judge(fmt.Sprintf("%s %s: %s", c.name, e.file, e.kind), fresh(before, after), v, shown)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, line := range t.missed {
		log(line)
	}
	return nil
}

// verdictOn asks until the answer is final.
func verdictOn(ctx context.Context, m *lspbridge.Manager, path, text string) change.Verdict {
	ctx, cancel := context.WithTimeout(ctx, verdictLimit)
	defer cancel()
	for {
		v := m.Check(ctx, []lspbridge.Proposal{{Path: path, Text: text}}).Verdict
		if v.Certainty != change.Pending || ctx.Err() != nil {
			return v
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// fresh are the findings that were not there before, each line once. Lines move, so what a file had is known by its words.
func fresh(before, after []finding) (out []finding) {
	had := map[finding]int{}
	for _, f := range before {
		had[finding{file: f.file, text: f.text}]++
	}
	for _, f := range after {
		if k := (finding{file: f.file, text: f.text}); had[k] > 0 {
			had[k]--
			continue
		}
		if !slices.ContainsFunc(out, func(x finding) bool { return x.file == f.file && x.line == f.line }) {
			out = append(out, f)
		}
	}
	return out
}

// said reads a compiler's output: place must match file, line and what is wrong, in this order.
func said(out []byte, dir string, place *regexp.Regexp) (all []finding) {
	for _, m := range place.FindAllStringSubmatch(string(out), -1) {
		line, _ := strconv.Atoi(m[2])
		file := m[1]
		if filepath.IsAbs(file) {
			file, _ = filepath.Rel(dir, file)
		}
		all = append(all, finding{filepath.ToSlash(filepath.Clean(file)), line, strings.TrimSpace(m[3])})
	}
	return all
}

// compilerOutput runs a compiler; that it finds errors is not an error of Pillion.
func compilerOutput(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return out, err
}

var (
	colonPlace = regexp.MustCompile(`(?m)^(?:vet: |# )?(?:\./)?([^\s:]+):(\d+):\d+: (?:fatal )?(?:error: )?(.*)$`)
	gccPlace   = regexp.MustCompile(`(?m)^([^\s:]+):(\d+):\d+: (?:fatal )?error: (.*)$`)
	tscPlace   = regexp.MustCompile(`(?m)^([^\s(]+)\((\d+),\d+\): error (.*)$`)
)

func goTruth(ctx context.Context, dir, _ string) ([]finding, error) {
	built, err := compilerOutput(ctx, dir, "go", "build", "-gcflags=-e", "./...")
	if err != nil {
		return nil, err
	}
	// The tests as well; one analyser that looks at assembly only, so that what is said is what does not type-check.
	vet, err := compilerOutput(ctx, dir, "go", "vet", "-framepointer", "./...")
	if err != nil {
		return nil, err
	}
	all := append(said(built, dir, colonPlace), said(vet, dir, colonPlace)...)
	// The go command's own rule for the names of tests: the package compiles, and gopls calls it a warning.
	all = slices.DeleteFunc(all, func(f finding) bool { return strings.HasPrefix(f.text, "wrong signature for ") })
	if len(all) == 0 && bytes.Contains(built, []byte("no matching files")) {
		return nil, fmt.Errorf("it is not whole: %s", built)
	}
	return all, nil
}

func tscTruth(tsc string) truth {
	return func(ctx context.Context, dir, _ string) ([]finding, error) {
		out, err := compilerOutput(ctx, dir, tsc, "--noEmit", "--pretty", "false", "-p", ".")
		return said(out, dir, tscPlace), err
	}
}

func pyrightTruth(pyright string) truth {
	return func(ctx context.Context, dir, _ string) ([]finding, error) {
		out, err := compilerOutput(ctx, dir, pyright, "--outputjson")
		if err != nil {
			return nil, err
		}
		var r struct {
			GeneralDiagnostics []struct {
				File, Severity, Message string
				Range                   struct{ Start struct{ Line int } }
			}
		}
		if err := json.Unmarshal(out, &r); err != nil {
			return nil, err
		}
		var all []finding
		for _, d := range r.GeneralDiagnostics {
			if rel, err := filepath.Rel(dir, d.File); err == nil && d.Severity == "error" {
				all = append(all, finding{filepath.ToSlash(rel), d.Range.Start.Line + 1, d.Message})
			}
		}
		return all, nil
	}
}

// nativeSources are the files that a C compiler is called for.
func nativeSources(dir string) (all []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && slices.Contains([]string{".c", ".cc", ".cpp"}, filepath.Ext(path)) {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	return all, err
}

// nativeTruth compiles every file; after an edit of a source only that one, after an edit of a header all.
func nativeTruth(flags ...string) truth {
	return func(ctx context.Context, dir, edited string) ([]finding, error) {
		sources := []string{edited}
		if edited == "" || strings.HasPrefix(filepath.Ext(edited), ".h") {
			var err error
			if sources, err = nativeSources(dir); err != nil {
				return nil, err
			}
		}
		var all []finding
		for _, s := range sources {
			argv := append(nativeCompiler(s, flags), "-fsyntax-only", "-w", "-fmax-errors=0", s)
			out, err := compilerOutput(ctx, dir, argv...)
			if err != nil {
				return nil, err
			}
			all = append(all, said(out, dir, gccPlace)...)
		}
		return all, nil
	}
}

// nativeCompiler is how a source is compiled.
func nativeCompiler(source string, flags []string) []string {
	if filepath.Ext(source) == ".c" {
		return append([]string{"gcc"}, flags...)
	}
	return append([]string{"g++", "-std=c++17"}, flags...)
}

// goModule fetches a module through the module proxy; only says which files of it are wanted.
func goModule(version string, sub string, only func(name string) bool) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", version).Output()
		var m struct{ Dir, Error string }
		if jsonErr := json.Unmarshal(out, &m); err != nil || jsonErr != nil || m.Dir == "" {
			return fmt.Errorf("%s cannot be had: %w %s", version, errors.Join(err, jsonErr), m.Error)
		}
		return copySources(filepath.Join(m.Dir, filepath.FromSlash(sub)), dir, only)
	}
}

// npmPackage fetches a package from npm and makes a project of its sources.
func npmPackage(version, sub string, extra map[string]string, only func(string) bool) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		scratch, err := os.MkdirTemp("", "pillion-npm-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		cmd := exec.CommandContext(ctx, "npm", "pack", "--silent", "--ignore-scripts", version)
		cmd.Dir = scratch
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s cannot be had: %w %s", version, err, out)
		}
		packed, _ := filepath.Glob(filepath.Join(scratch, "*.tgz"))
		if len(packed) != 1 {
			return fmt.Errorf("npm pack made %d files of %s", len(packed), version)
		}
		if out, err := exec.CommandContext(ctx, "tar", "xzf", packed[0], "-C", scratch).CombinedOutput(); err != nil {
			return fmt.Errorf("%w %s", err, out)
		}
		if err := copySources(filepath.Join(scratch, "package", filepath.FromSlash(sub)), dir, only); err != nil {
			return err
		}
		for name, text := range extra {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
}

func copySources(from, to string, only func(string) bool) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if only != nil && !only(filepath.ToSlash(rel)) {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		return os.WriteFile(at, b, 0o600)
	})
}

const strictTS = `{"compilerOptions":{"target":"es2020","module":"esnext","moduleResolution":"bundler","strict":true,"noEmit":true,"skipLibCheck":true,"types":[],"lib":["es2022","dom"]},"include":["**/*.ts"]}`

// native makes a project of C sources: what does not compile on this system is left out. The rest gets a compile_commands.json,
// unless cold: then the server has to guess, and must say so.
func native(fetch func(context.Context, string) error, cold bool, flags ...string) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		if err := fetch(ctx, dir); err != nil {
			return err
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return err
		}
		sources, err := nativeSources(real)
		if err != nil {
			return err
		}
		check := nativeTruth(flags...)
		var rows []map[string]any
		for _, s := range sources {
			broken, err := check(ctx, real, s)
			if err != nil {
				return err
			}
			if len(broken) > 0 {
				if err := os.Remove(filepath.Join(real, s)); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, map[string]any{"directory": real, "file": s, "arguments": append(nativeCompiler(s, flags), "-c", s)})
		}
		if len(rows) == 0 {
			return errors.New("none of its files compiles here")
		}
		if cold {
			return nil
		}
		b, _ := json.Marshal(rows)
		return os.WriteFile(filepath.Join(dir, "compile_commands.json"), b, 0o600)
	}
}

// debian fetches a package of the system's Debian release and takes a folder of it.
func debian(name, sub string) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		scratch, err := os.MkdirTemp("", "pillion-deb-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		cmd := exec.CommandContext(ctx, "apt-get", "download", name)
		cmd.Dir = scratch
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s cannot be had: %w %s", name, err, out)
		}
		packed, _ := filepath.Glob(filepath.Join(scratch, "*.deb"))
		if len(packed) != 1 {
			return fmt.Errorf("apt-get downloaded %d files of %s", len(packed), name)
		}
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", packed[0], scratch).CombinedOutput(); err != nil {
			return fmt.Errorf("%w %s", err, out)
		}
		if err := copySources(filepath.Join(scratch, "usr/lib/python3/dist-packages", sub), filepath.Join(dir, sub), nil); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "pyrightconfig.json"), []byte("{}"), 0o600)
	}
}

// corpora are the projects.
func corpora(tsc, tsc7, pyright string) []corpus {
	ending := func(ends ...string) func(string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(ends, func(e string) bool { return strings.HasSuffix(name, e) })
		}
	}
	src := func(name string) bool {
		return strings.HasSuffix(name, ".ts") && !strings.Contains(name, "internal/umd")
	}
	list := []corpus{}
	for _, v := range mendModules[:12] {
		list = append(list, corpus{"go", v, goModule(v, "", nil), goTruth, 24})
	}
	for _, p := range []string{"redux@5.0.1", "immer@10.1.1", "rxjs@7.8.1", "mobx@6.13.5", "@tanstack/query-core@5.59.0", "@tanstack/table-core@8.20.5",
		"@reduxjs/toolkit@2.3.0", "reselect@5.1.1", "@noble/hashes@1.7.1", "@noble/curves@1.8.1", "@msgpack/msgpack@3.0.0-beta2", "zod@3.25.76"} {
		fetch := npmPackage(p, "src", map[string]string{"tsconfig.json": strictTS, "package.json": `{"private":true,"type":"module"}`}, src)
		list = append(list, corpus{"ts 5", p, fetch, tscTruth(tsc), 12})
		if tsc7 != "" {
			list = append(list, corpus{"ts 7", p, fetch, tscTruth(tsc7), 12})
		}
	}
	if pyright != "" {
		list = append(list, corpus{"python", "node-gyp@10.2.0", npmPackage("node-gyp@10.2.0", "gyp/pylib", map[string]string{"pyrightconfig.json": "{}"}, ending(".py")), pyrightTruth(pyright), 28})
		for _, p := range []string{"click", "flask", "jinja2", "requests", "attr", "werkzeug", "markdown", "dateutil"} {
			list = append(list, corpus{"python", "Debian's " + p, debian("python3-"+p, p), pyrightTruth(pyright), 28})
		}
	}
	c := func(name string, fetch func(context.Context, string) error, cold bool, flags ...string) {
		if cold {
			name += " (without compile_commands.json)"
		}
		list = append(list, corpus{"c", name, native(fetch, cold, flags...), nativeTruth(flags...), 24})
	}
	sources := ending(".c", ".h", ".cc", ".cpp", ".hpp")
	zstd := "github.com/DataDog/zstd@v1.5.5"
	c(zstd, goModule(zstd, "", sources), false, "-I.")
	sitter := "github.com/smacker/go-tree-sitter@v0.0.0-20240827094217-dd81d9e9be82"
	c(sitter, goModule(sitter, "", func(name string) bool { return sources(name) && !strings.Contains(name, "/") }), true)
	c("argon2@0.41.1", npmPackage("argon2@0.41.1", "argon2", nil, sources), false, "-Iinclude", "-Isrc")
	c("leveldown@6.1.1 (leveldb)", npmPackage("leveldown@6.1.1", "deps/leveldb/leveldb-1.20", nil, sources), false, "-I.", "-Iinclude", "-DLEVELDB_PLATFORM_POSIX", "-DOS_LINUX")
	c("node-expat@2.4.1", npmPackage("node-expat@2.4.1", "deps/libexpat", nil, sources), false, "-I.", "-Ilib", "-DHAVE_MEMMOVE", "-DXML_DEV_URANDOM", "-DXML_GE=1", "-DXML_CONTEXT_BYTES=1024")
	c("lmdb@3.1.3", npmPackage("lmdb@3.1.3", "dependencies/lmdb/libraries/liblmdb", nil, sources), false, "-I.")
	c("lz4@0.6.5", npmPackage("lz4@0.6.5", "deps/lz4", nil, sources), false, "-Ilib", "-Iprograms")
	c("libxmljs2@0.35.0 (libxml2)", npmPackage("libxmljs2@0.35.0", "vendor/libxml", nil, sources), false, "-I.", "-Iinclude")
	c("utp-native@2.5.3 (libutp)", npmPackage("utp-native@2.5.3", "deps/libutp", nil, sources), true, "-DPOSIX")
	c("cld@2.10.0", npmPackage("cld@2.10.0", "deps/cld", nil, sources), false, "-Iinternal", "-Ipublic")
	return list
}

// verdict measures the verdict against the compilers.
func (b *bench) verdict() {
	bins := []string{filepath.Join(cacheDir(), "bin"), filepath.Join(cacheDir(), "servers", "node_modules", ".bin")}
	program := func(path string) string {
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return path
	}
	tsc := program(filepath.Join(cacheDir(), "servers", "node_modules", ".bin", "tsc"))
	ts7 := filepath.Join(cacheDir(), "servers", "ts7", "node_modules", ".bin")
	tsc7 := program(filepath.Join(ts7, "tsc"))
	pyright := program(filepath.Join(cacheDir(), "servers", "node_modules", ".bin", "pyright"))
	by, order := map[string]*tally{}, []string{}
	for i, c := range corpora(tsc, tsc7, pyright) {
		if !strings.Contains(c.language+" "+c.name, b.chosen) {
			continue
		}
		t := by[c.language]
		if t == nil {
			t = &tally{certainty: map[change.Certainty]int{}}
			by[c.language] = t
			order = append(order, c.language)
		}
		use := bins
		if c.language == "ts 7" {
			use = append([]string{ts7}, bins...)
		}
		t.missed = nil
		if err := t.run(b.ctx, c, filepath.Join(b.dir, fmt.Sprint("verdict", i)), b.rounds(c.edits), use, func(line string) { fmt.Fprintln(os.Stderr, line) }); err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", c.name, err)
		}
	}
	for _, language := range order {
		t := by[language]
		one := func(what, unit string, v int, note string, target Target) {
			b.add(Row{What: language + ": " + what, Unit: unit, Ours: Samples{float64(v)}, Note: note, Target: target})
		}
		if t.edits == 0 {
			continue
		}
		share := func(a, of int) string { return fmt.Sprintf("%d of %d", a, of) }
		b.add(Row{What: fmt.Sprintf("%s: breaking edits caught, of %d", language, t.breaking), Ours: Samples{float64(t.caught)}, Note: share(t.caught, t.breaking)})
		b.add(Row{What: fmt.Sprintf("%s: the compiler's errors named, of %d", language, t.errors), Ours: Samples{float64(t.named)}, Note: share(t.named, t.errors)})
		one(fmt.Sprintf("false alarms in %d edits that break nothing", t.harmless), "", t.alarms, "", Target{})
		one("false *fresh* (promised: none)", "", t.falseFresh, "", Target{})
		for _, c := range []change.Certainty{change.Fresh, change.Partial, change.Pending, change.Unavailable} {
			if n := t.certainty[c]; n > 0 {
				one(fmt.Sprintf("%s, of %d", c, t.edits), "", n, "", Target{})
			}
		}
		b.add(Row{What: language + ": to the verdict, servers warm", Unit: "ms", Ours: t.latency, Beside: t.compiler, BesideName: "the compiler"})
		b.add(Row{What: language + ": to the first verdict, servers just started", Unit: "ms", Ours: t.first})
	}
}

// cacheDir is where set-up puts servers and tools.
func cacheDir() string {
	abs, err := filepath.Abs(".cache")
	if err != nil {
		return ".cache"
	}
	return abs
}
