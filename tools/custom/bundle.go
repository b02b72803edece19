package custom

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// shims are the imports that mean our own files, next to the host.
var shims = map[string]string{"@opencode-ai/plugin": "plugin.mjs", "@opencode-ai/plugin/tool": "plugin.mjs", "@pillion/plugin": "plugin.mjs"}

// bundled is a file made ready to run.
type bundled struct {
	code   string   // path of the bundle
	inputs []string // all files it was made from
}

// bundle makes one module of a file and what it imports, and writes it to out. Packages of the person's come from the
// node_modules around the file; zod is ours where there is none. An error names file, line and column.
func bundle(path, host, out string) (bundled, error) {
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{path}, Outfile: out, Bundle: true, Write: false, Metafile: true,
		Platform: api.PlatformNode, Format: api.FormatESModule, Target: api.ES2022, Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude,
		Define: map[string]string{"import.meta.url": quoted((&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()), "import.meta.dirname": quoted(filepath.Dir(path)),
			"import.meta.filename": quoted(path), "__dirname": quoted(filepath.Dir(path)), "__filename": quoted(path)},
		Banner:   map[string]string{"js": `import { createRequire as __pillionRequire } from "node:module"; globalThis.require ??= __pillionRequire(` + quoted(path) + `);`},
		LogLevel: api.LogLevelSilent,
		Plugins: []api.Plugin{{Name: "shims", Setup: func(b api.PluginBuild) {
			b.OnResolve(api.OnResolveOptions{Filter: `^(@opencode-ai/plugin|@pillion/plugin)(/tool)?$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				name, ok := shims[a.Path]
				if !ok {
					return api.OnResolveResult{}, nil
				}
				return api.OnResolveResult{Path: fileURL(filepath.Join(host, name)), External: true}, nil
			})
			b.OnResolve(api.OnResolveOptions{Filter: `^zod(/v4)?$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
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
		for _, m := range r.Errors[:min(len(r.Errors), 3)] {
			all = append(all, placed(m, path))
		}
		return bundled{}, fmt.Errorf("%s", strings.Join(all, "; "))
	}
	for _, f := range r.OutputFiles {
		if err := os.WriteFile(f.Path, f.Contents, 0o600); err != nil {
			return bundled{}, err
		}
	}
	return bundled{code: out, inputs: inputs(r.Metafile, path)}, nil
}

func fileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// placed is an error of the bundler with its place; columns count bytes from 1.
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

// inputs are the files that a bundle was made from.
func inputs(metafile, path string) []string {
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
