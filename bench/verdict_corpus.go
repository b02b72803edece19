package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// corpus is a project that nobody here wrote.
type corpus struct {
	language string
	name     string // with its version
	fetch    func(ctx context.Context, dir string) error
	truth    truth
	watch    func(ctx context.Context, dir string) (*standing, error) // nil where the compiler cannot watch
	edits    int                                                      // at full scale
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
			rows = append(rows, map[string]any{"directory": real, "file": s, "arguments": append(nativeCompilers(s, flags)[0], "-c", s)})
		}
		if len(rows) == 0 {
			return errors.New("none of its files compiles here")
		}
		if err := removeUnreached(ctx, real, flags); err != nil {
			return err
		}
		if cold {
			return nil
		}
		b, _ := json.Marshal(rows)
		return os.WriteFile(filepath.Join(dir, "compile_commands.json"), b, 0o600)
	}
}

// removeUnreached removes the headers that no source includes: no compiler says anything of them.
func removeUnreached(ctx context.Context, dir string, flags []string) error {
	sources, err := nativeSources(dir)
	if err != nil {
		return err
	}
	reached := map[string]bool{}
	for _, s := range sources {
		of, err := nativeIncludes(ctx, dir, s, flags)
		if err != nil {
			return err
		}
		for _, f := range of {
			reached[f] = true
		}
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || !d.Type().IsRegular() || !strings.HasPrefix(filepath.Ext(path), ".h") || reached[filepath.ToSlash(rel)] {
			return err
		}
		return os.Remove(path)
	})
}

// folder takes a project from a folder on this machine, with what is installed in it and its links.
func folder(path string) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			return err
		}
		_, err := compilerOutput(ctx, "/", "cp", "-a", path, dir)
		return err
	}
}

// compiledGo makes a project of Go packages: what does not compile on this system because of what it imports is left out.
func compiledGo(fetch func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		if err := fetch(ctx, dir); err != nil {
			return err
		}
		return removeUncompiled(ctx, dir)
	}
}

// localCorpus is a project in a folder.
func (c compilers) localCorpus(language, path string) (corpus, error) {
	name := filepath.Base(path)
	switch language {
	case "go":
		return corpus{language, name, compiledGo(folder(path)), goTruth, nil, 24}, nil
	case "ts", "js":
		return corpus{map[string]string{"ts": "ts 5", "js": "js"}[language], name, folder(path), tscTruth(c.tsc), nil, 18}, nil
	case "python":
		return corpus{language, name, folder(path), pyrightTruth(c.pyright), watchPyright(c.pyright), 18}, nil
	case "c":
		return nativeCorpus(name, folder(path), false, "-I.", "-Iinclude", "-Isrc", "-Ilib"), nil
	}
	return corpus{}, fmt.Errorf("%s: only projects of go, ts, js, python and c can be taken from a folder", path)
}

// debian fetches a package of the system's Debian release and takes the folder sub of root in it; extra are files added to the project.
func debian(name, root, sub string, extra map[string]string) func(context.Context, string) error {
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
		if err := copySources(filepath.Join(scratch, root, sub), filepath.Join(dir, sub), nil); err != nil {
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

// verdictLanguages in the order of the page.
var verdictLanguages = []string{"go", "ts 5", "ts 7", "js", "python", "c", "php"}

// compilers are the commands that judge TypeScript, Python and PHP; "" where they are not installed.
type compilers struct{ tsc, tsc7, pyright, php string }

func goCorpus(version string) corpus {
	return corpus{"go", version, compiledGo(goModule(version, "", nil)), goTruth, nil, 24}
}

// typescript makes two projects of the sources of a package, for both generations of the compiler.
func (c compilers) typescript(version, sub string) (all []corpus) {
	src := func(name string) bool {
		return strings.HasSuffix(name, ".ts") && !strings.Contains(name, "internal/umd")
	}
	fetch := npmPackage(version, sub, map[string]string{"tsconfig.json": strictTS, "package.json": `{"private":true,"type":"module"}`}, src)
	all = append(all, corpus{"ts 5", version, fetch, tscTruth(c.tsc), watchTSC(c.tsc), 12})
	if c.tsc7 != "" {
		all = append(all, corpus{"ts 7", version, fetch, tscTruth(c.tsc7), nil, 12})
	}
	return all
}

func (c compilers) python(name, folder string) corpus {
	fetch := debian("python3-"+name, "usr/lib/python3/dist-packages", folder, map[string]string{"pyrightconfig.json": "{}"})
	return corpus{"python", "Debian's " + name, fetch, pyrightTruth(c.pyright), watchPyright(c.pyright), 27}
}

func (c compilers) phpCorpus(name, folder string) corpus {
	fetch := debian("php-"+name, "usr/share/php", folder, map[string]string{"composer.json": "{}"})
	return corpus{"php", "Debian's " + name, fetch, phpTruth(c.php), nil, 20}
}

func nativeCorpus(name string, fetch func(context.Context, string) error, cold bool, flags ...string) corpus {
	if cold {
		name += " (without compile_commands.json)"
	}
	return corpus{"c", name, native(fetch, cold, flags...), nativeTruth(flags...), nil, 24}
}

// nativeFiles are those of which a C or C++ project is made.
func nativeFiles(name string) bool {
	return slices.Contains([]string{".c", ".h", ".cc", ".cpp", ".hpp"}, filepath.Ext(name))
}

// others reads a list of projects, LANGUAGE=NAME@VERSION:FOLDER with commas between them. Without a folder, ts takes "src", python the
// folder of the package's name, c the whole package, and php all of the package's PHP. go always takes the whole module, and python and php have no
// version but Debian's. Instead of a name, go, ts, js, python and c take the absolute path of a project's folder, which is copied; of JavaScript,
// tsconfig.json has to turn checkJs on.
func (c compilers) others(list string) (all []corpus, err error) {
	for _, one := range strings.Split(list, ",") {
		language, name, ok := strings.Cut(one, "=")
		name, folder, in := strings.Cut(name, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not LANGUAGE=NAME@VERSION:FOLDER", one)
		}
		if strings.HasPrefix(name, "/") {
			local, err := c.localCorpus(language, name)
			if err != nil {
				return nil, err
			}
			all = append(all, local)
			continue
		}
		switch language {
		case "go":
			all = append(all, goCorpus(name))
		case "ts":
			if !in {
				folder = "src"
			}
			all = append(all, c.typescript(name, folder)...)
		case "python":
			all = append(all, c.python(name, cmp.Or(folder, name)))
		case "php":
			all = append(all, c.phpCorpus(name, folder))
		case "c":
			fetch := npmPackage(name, folder, nil, nativeFiles)
			if strings.Contains(name, ".") && strings.Contains(strings.SplitN(name, "@", 2)[0], "/") && !strings.HasPrefix(name, "@") {
				fetch = goModule(name, folder, nativeFiles)
			}
			all = append(all, nativeCorpus(name, fetch, false, "-I.", "-Iinclude", "-Isrc", "-Ilib"))
		default:
			return nil, fmt.Errorf("%q: the languages are go, ts, js, python, c and php", one)
		}
	}
	return all, nil
}

// corpora are the projects, those of different languages in turns.
func corpora(with compilers) []corpus {
	by := map[string][]corpus{}
	for _, v := range mendModules[:15] {
		by["go"] = append(by["go"], goCorpus(v))
	}
	for _, p := range []string{"redux@5.0.1", "immer@10.1.1", "rxjs@7.8.1", "mobx@6.13.5", "@tanstack/query-core@5.59.0", "@tanstack/table-core@8.20.5",
		"@reduxjs/toolkit@2.3.0", "reselect@5.1.1", "@noble/hashes@1.7.1", "@noble/curves@1.8.1", "@msgpack/msgpack@3.0.0-beta2", "zod@3.25.76"} {
		for _, c := range with.typescript(p, "src") {
			by[c.language] = append(by[c.language], c)
		}
	}
	if with.pyright != "" {
		for _, p := range []string{"click", "flask", "jinja2", "requests", "attr", "werkzeug", "markdown", "dateutil"} {
			by["python"] = append(by["python"], with.python(p, p))
		}
	}
	if with.php != "" {
		by["php"] = append(by["php"], with.phpCorpus("twig", "Twig"), with.phpCorpus("league-commonmark", "League/CommonMark"), with.phpCorpus("parser", "PhpParser"))
	}
	c := func(name string, fetch func(context.Context, string) error, cold bool, flags ...string) {
		by["c"] = append(by["c"], nativeCorpus(name, fetch, cold, flags...))
	}
	sources := nativeFiles
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
	// In turns: a measurement that is stopped has measured several languages. Python comes last, because pyright takes ten times as long as
	// the others for an edit.
	var list []corpus
	for i, left := 0, true; left; i++ {
		left = false
		for _, language := range verdictLanguages {
			if i < len(by[language]) && language != "python" {
				list, left = append(list, by[language][i]), true
			}
		}
	}
	return append(list, by["python"]...)
}
