package custom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// shims are imports that lead to our own files beside the host. Plugins import OpenCode's helper package, which they need not install.
var shims = map[string]string{"@opencode-ai/plugin": "plugin.mjs", "@opencode-ai/plugin/tool": "plugin.mjs", "@pillion/plugin": "plugin.mjs"}

// bundle makes one ES module from a file and all that it imports; inputs are the files that went in. Packages come from the node_modules
// around the file; zod is ours if there is none. host is the folder of our own files, out the path that the caller will write the code
// to. bun: it will run in Bun, which has its own modules. Errors name file, line and column.
func bundle(path, host, out string, bun bool) (code []byte, inputs []string, err error) {
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	// CommonJS packages call require, which an ES module does not have. This one resolves from the file's own path, so that it finds the
	// packages around it.
	banner := `import { createRequire as __pillionRequire } from "node:module"; globalThis.require ??= __pillionRequire(` + quoted(path) + `);`
	// A global Bun is defined only for a file that mentions it: packages test for it to detect the runtime, and would take Node for Bun.
	if source, err := os.ReadFile(path); err == nil && !bun && bytes.Contains(source, []byte("Bun.")) {
		banner += ` import { Bun as __pillionBun } from ` + quoted(fileURL(filepath.Join(host, "bun.mjs"))) + `; globalThis.Bun ??= __pillionBun;`
	}
	// The source map has positions only: the sources are on the disk and would double the size of the bundle.
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{path}, Outfile: out, Bundle: true, Write: false, Metafile: true,
		// module first: esbuild cannot follow the calls of require in the other common form of a package that has both (UMD).
		MainFields: []string{"module", "main"},
		Platform:   api.PlatformNode, Format: api.FormatESModule, Target: api.ES2022, Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude,
		Banner:   map[string]string{"js": banner},
		LogLevel: api.LogLevelSilent,
		Plugins: []api.Plugin{{Name: "shims", Setup: func(b api.PluginBuild) {
			b.OnLoad(api.OnLoadOptions{Filter: `\.[cm]?[jt]sx?$`, Namespace: "file"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
				if len(a.With) > 0 {
					return loadAsBun(a)
				}
				return located(a.Path)
			})
			b.OnResolve(api.OnResolveOptions{Filter: `^(@opencode-ai/plugin|@pillion/plugin)(/tool)?$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				// The filter is only a quick check; the map decides which names are shims.
				name, ok := shims[a.Path]
				if !ok {
					return api.OnResolveResult{}, nil
				}
				return api.OnResolveResult{Path: fileURL(filepath.Join(host, name)), External: true}, nil
			})
			b.OnResolve(api.OnResolveOptions{Filter: `^bun(:[a-z]+)?$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				if name, ok := bunModules[a.Path]; ok && !bun {
					return api.OnResolveResult{Path: fileURL(filepath.Join(host, name)), External: true}, nil
				}
				return api.OnResolveResult{Path: a.Path, External: true}, nil
			})
			b.OnLoad(api.OnLoadOptions{Filter: `.`, Namespace: "file"}, loadAsBun)
			b.OnResolve(api.OnResolveOptions{Filter: `^zod(/v4)?$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				// b.Resolve calls this function again for the same import. PluginData marks that call, which then leaves the search for the
				// package to esbuild.
				if a.PluginData == "again" {
					return api.OnResolveResult{}, nil
				}
				theirs := b.Resolve(a.Path, api.ResolveOptions{Importer: a.Importer, ResolveDir: a.ResolveDir, Kind: a.Kind, PluginData: "again"})
				if len(theirs.Errors) == 0 && theirs.Path != "" {
					return api.OnResolveResult{Path: theirs.Path}, nil
				}
				return api.OnResolveResult{Path: fileURL(filepath.Join(host, "zod.mjs")), External: true}, nil
			})
		}}},
	})
	if len(r.Errors) > 0 {
		var all []string
		// Three errors suffice to see the cause; one missing import can produce hundreds.
		for _, m := range r.Errors[:min(len(r.Errors), 3)] {
			all = append(all, placed(m, path))
		}
		return nil, nil, errors.New(strings.Join(all, "; "))
	}
	return r.OutputFiles[0].Contents, inputsOf(r.Metafile, path), nil
}

// bunModules are the modules of Bun that Node does not have, and the files of ours that take their place there. One that is not named here
// fails where the file is loaded, with the module's name.
var bunModules = map[string]string{"bun": "bun_module.mjs", "bun:sqlite": "bun_sqlite.mjs", "bun:ffi": "bun_ffi.mjs"}

// loadAsBun loads what is imported with an attribute (with { type: "text" }), or has an ending that esbuild knows no loader for, as Bun
// does: "file" and unknown endings are the path of the file. An empty result leaves the file to esbuild.
func loadAsBun(a api.OnLoadArgs) (api.OnLoadResult, error) {
	kind := a.With["type"]
	switch filepath.Ext(a.Path) {
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".json", ".css", ".txt":
	default:
		if kind == "" {
			kind = "file"
		}
	}
	var text string
	switch kind {
	case "text":
		source, err := os.ReadFile(a.Path)
		if err != nil {
			return api.OnLoadResult{}, err
		}
		text = string(source)
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderText}, nil
	case "file":
		quoted, err := json.Marshal(a.Path)
		if err != nil {
			return api.OnLoadResult{}, err
		}
		text = "export default " + string(quoted)
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
	}
	return api.OnLoadResult{}, nil
}

// located is a module whose import.meta.url, __dirname and the like are its own: the bundle lies in the cache, and a package finds the files
// that lie beside its modules by them. A module without such words is left to esbuild (an empty result).
func located(path string) (api.OnLoadResult, error) {
	source, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(source, []byte("import.meta")) && !bytes.Contains(source, []byte("__dirname")) && !bytes.Contains(source, []byte("__filename")) {
		return api.OnLoadResult{}, nil // esbuild reports a file that cannot be read, with the place of its import
	}
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	loader := map[string]api.Loader{".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX, ".jsx": api.LoaderJSX}[filepath.Ext(path)]
	if loader == api.LoaderNone {
		loader = api.LoaderJS
	}
	// The words are replaced in the syntax tree, so that a text which only mentions them stays. The map leads back to the file as it is.
	r := api.Transform(string(source), api.TransformOptions{Loader: loader, Sourcefile: path, Target: api.ESNext, Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude, LogLevel: api.LogLevelSilent,
		Define: map[string]string{"import.meta.url": quoted(fileURL(path)), "import.meta.dirname": quoted(filepath.Dir(path)), "import.meta.dir": quoted(filepath.Dir(path)),
			"import.meta.filename": quoted(path), "import.meta.path": quoted(path), "import.meta.require": "globalThis.require", "__dirname": quoted(filepath.Dir(path)), "__filename": quoted(path)}})
	if len(r.Errors) > 0 {
		return api.OnLoadResult{}, nil // esbuild says it again, with its place
	}
	text := string(r.Code)
	return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS, ResolveDir: filepath.Dir(path)}, nil
}

// fileURL is an absolute path as an import specifier. A plain path would not do on Windows, where Node reads the drive letter as a scheme.
func fileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// placed is a message of the bundler with file, line from 1, and column in bytes from 1. esbuild gives paths relative to the working
// directory and columns from 0.
func placed(m api.Message, path string) string {
	text := m.Text
	if strings.HasPrefix(text, "Could not resolve ") {
		text += "; install it next to the file (npm install), or leave the import out"
	}
	if l := m.Location; l != nil {
		file := l.File
		if abs, err := filepath.Abs(file); err == nil && filepath.Base(file) == filepath.Base(path) {
			file = path
		} else if err == nil {
			file = abs
		}
		return fmt.Sprintf("%s:%d:%d: %s", file, l.Line, l.Column+1, text)
	}
	return path + ": " + text
}

// inputsOf are the files that a bundle was made from, as absolute paths, the bundled file first. Names without a file on the disk, such as
// shims, are left out.
func inputsOf(metafile, path string) []string {
	var m struct{ Inputs map[string]json.RawMessage }
	out := []string{path}
	if json.Unmarshal([]byte(metafile), &m) != nil {
		return out
	}
	for p := range m.Inputs {
		if abs, err := filepath.Abs(p); err == nil && abs != path && stampOf(abs) != "" {
			out = append(out, abs)
		}
	}
	return out
}
