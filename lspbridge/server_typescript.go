package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
	"go.lsp.dev/protocol"
)

// typescriptID is the row's id, which Vue's server and isSyntax refer to.
const typescriptID = "typescript"

// typescript is typescript-language-server with tsserver, or TypeScript 7, which is itself a language server and needs a tenth of the
// memory and time. useSyntaxServer is off: the syntax server answers before the project is loaded, so a symbol used in many files would
// have no references. tsserver searches references only below the root, so the root must contain the tsconfig.json of the whole project.
func typescript() Server {
	return Server{ID: typescriptID, Extensions: jsExt, Workspace: jsLocks, Markers: jsRoots, Outermost: []string{"node_modules/typescript"}, Excluded: []string{"deno.json", "deno.jsonc"},
		Commands: [][]string{{"typescript-language-server", "--stdio"}, {"vtsls", "--stdio"}},
		Init:     `{"preferences":{"includeCompletionsForModuleExports":true},"disableAutomaticTypingAcquisition":true,"tsserver":{"useSyntaxServer":"never"}}`,
		Install:  npm("typescript-language-server typescript"), Quirks: Quirks{TSServer: true, BlindToNew: "dir", EmptyText: "export {}\n"},
		hooks:    hooks{program: nativeTypeScript, options: vuePluginOptions, missedFile: reloadProjects, otherProjects: loadProjects, readBy: importedData},
		Extended: []string{"tsconfig*.json", "jsconfig*.json"},
		Untrusted: &Restraint{
			Why:      "TypeScript is the one installed beside the server, never the project's node_modules/typescript, and no plugins are loaded.",
			Init:     `{"plugins":[],"disableAutomaticTypingAcquisition":true}`,
			Settings: `{"vtsls":{"autoUseWorkspaceTsdk":false}}`,
			prepare:  pinTSServer,
		}}
}

// pinTSServer passes the path of tsserver: else typescript-language-server runs the one in the project's node_modules, which a checkout may
// contain.
func pinTSServer(p *programs, row Server, argv []string, root string) (Server, error) {
	if !strings.HasPrefix(filepath.Base(argv[0]), "typescript-language-server") { // vtsls bundles its own, and tsc is itself a server
		return row, nil
	}
	lib := p.tsdk(argv[0], root)
	if lib == "" || p.fromProject(lib) {
		return row, untrusted(row.ID, "there is no TypeScript beside typescript-language-server, and the project's own may not run (npm i -g typescript)")
	}
	path, _ := json.Marshal(filepath.Join(lib, "tsserver.js"))
	row.Init = overlaid(row.Init, `{"tsserver":{"path":`+string(path)+`}}`)
	return row, nil
}

// nativeTypeScript returns TypeScript 7 if that is the TypeScript of the project or of Pillion.
func nativeTypeScript(p *programs, row Server, root string) (Server, []string) {
	if len(row.Commands) < 2 { // the person has named the command
		return row, nil
	}
	argv := p.typescript7(root)
	if argv != nil { // it has pull diagnostics and no tsserver
		row.Quirks = Quirks{BlindToNew: "dir", EmptyText: "export {}\n"}
		row.Init = ""
	}
	return row, argv
}

// typescript7 returns the command line of the native compiler as a language server, if the nearest TypeScript is version 7 or later; else
// nil.
func (p *programs) typescript7(root string) []string {
	var tries []string // node_modules directories
	for _, d := range p.bin {
		if filepath.Base(d) == ".bin" {
			tries = append(tries, filepath.Dir(d))
		}
	}
	// The project's code is written for its own TypeScript, but that is a program of the checkout.
	if p.trusted {
		tries = append([]string{filepath.Join(root, "node_modules"), filepath.Join(p.root, "node_modules")}, tries...)
	}
	for _, d := range tries {
		b, err := os.ReadFile(filepath.Join(d, "typescript", "package.json"))
		if err != nil {
			continue
		}
		var pkg struct{ Version string }
		_ = json.Unmarshal(b, &pkg)
		major, _, _ := strings.Cut(pkg.Version, ".")
		// Compare the length first: as text, "10" sorts before "7".
		if len(major) > 1 || major >= "7" {
			return []string{filepath.Join(d, ".bin", "tsc"), "--lsp", "--stdio"}
		}
		return nil // the nearest one decides
	}
	return nil
}

// reloadProjects makes tsserver search the disk again: its own watcher misses files in new folders.
func reloadProjects(ctx context.Context, c *client) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = c.call(ctx, protocol.MethodWorkspaceExecuteCommand, map[string]any{"command": tsserverRequest, "arguments": []any{"reloadProjects"}}, nil)
}

// importedData returns what imports a .json file, or extends it as a configuration.
func importedData(ctx context.Context, f *fleet, row Server, p Proposal) string {
	if filepath.Ext(p.Path) != ".json" {
		return ""
	}
	return f.importerOf(ctx, row, p.Path)
}

// maxProjects is how many projects of TypeScript are loaded to find out who uses a declaration: each takes memory.
const maxProjects = 12

// loadProjects opens a file of each project below the root: a folder with a tsconfig.json of its own. The server loads a project with its first
// open file, and finds uses only in those that it has loaded; one that refers to the project of the changed file is none of them.
func loadProjects(ctx context.Context, d *dependents, _ []Proposal) error {
	all := projectFiles(ctx, d.root)
	projects := map[string]string{} // by folder: its first source
	for _, path := range all {
		if base := filepath.Base(path); base == "tsconfig.json" || base == "jsconfig.json" {
			projects[filepath.Dir(path)] = ""
		}
	}
	if len(projects) < 2 {
		return nil
	}
	open := map[string]bool{}
	of := func(path string) string {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if _, is := projects[dir]; is || dir == filepath.Dir(dir) {
				return dir
			}
		}
	}
	for _, path := range d.docs.paths() {
		open[of(path)] = true
	}
	for _, path := range all {
		if dir := of(path); projects[dir] == "" && d.spec.matches(path) && !strings.HasSuffix(path, ".d.ts") {
			projects[dir] = path
		}
	}
	loaded := len(open)
	for _, dir := range slices.Sorted(maps.Keys(projects)) {
		path := projects[dir]
		if path == "" || open[dir] {
			continue
		}
		if loaded++; loaded > maxProjects {
			return fmt.Errorf("has loaded %d of the %d projects that may use the changed declarations", maxProjects, len(projects))
		}
		if text, ok := d.text(path); ok {
			d.docs.put(path, text)
		}
	}
	return nil
}

// tsserverRequest is the command by which typescript-language-server forwards a request to tsserver.
const tsserverRequest = "typescript.tsserverRequest"

// tsDiagnostic is a diagnostic in tsserver's protocol. Lines and offsets are 1-based; offsets count UTF-16 code units.
type tsDiagnostic struct {
	Start, End         struct{ Line, Offset int }
	Text, Message      string
	Code               int
	Category, Source   string
	ReportsUnnecessary bool
	ReportsDeprecated  bool
}

// pullTSServer requests the three kinds of diagnostics concurrently. The synchronous requests answer for exactly the present text;
// tsserver's pushes do not say to which text they refer.
func (d *diagnostics) pullTSServer(ctx context.Context, path string) ([]change.Problem, error) {
	kinds := [...]string{"syntacticDiagnosticsSync", "semanticDiagnosticsSync", "suggestionDiagnosticsSync"}
	var lists [len(kinds)][]change.Problem
	var errs [len(kinds)]error
	var wg sync.WaitGroup
	for i, kind := range kinds {
		wg.Go(func() {
			var r struct {
				Success *bool
				Message string
				Body    []tsDiagnostic
			}
			err := d.call(ctx, protocol.MethodWorkspaceExecuteCommand, map[string]any{"command": tsserverRequest,
				"arguments": []any{kind, map[string]any{"file": path}}}, &r)
			// An answer without success has no body, and would read as "no problems".
			if err == nil && (r.Success == nil || !*r.Success) {
				err = fmt.Errorf("tsserver: %s", r.Message)
			}
			if errs[i] = err; err == nil {
				lists[i] = d.convertTS(path, r.Body)
			}
		})
	}
	wg.Wait()
	return slices.Concat(lists[:]...), errors.Join(errs[:]...)
}

// convertTS converts tsserver's diagnostics. Raw gets their LSP form, which codeAction needs.
func (d *diagnostics) convertTS(path string, in []tsDiagnostic) []change.Problem {
	severities := map[string]change.Severity{"error": change.SeverityError, "warning": change.SeverityWarning, "message": change.SeverityInformation, "suggestion": change.SeverityHint}
	out := make([]change.Problem, 0, len(in))
	for _, item := range in {
		text := item.Text
		if text == "" {
			text = item.Message
		}
		r := Range{Position{max(0, item.Start.Line-1), max(0, item.Start.Offset-1)}, Position{max(0, item.End.Line-1), max(0, item.End.Offset-1)}}
		sev, ok := severities[item.Category]
		// An unknown category must not hide an error.
		if !ok {
			sev = change.SeverityError
		}
		raw, _ := json.Marshal(map[string]any{"range": wireRange(r), "severity": sev.Number(), "code": item.Code, "source": "typescript", "message": text})
		out = append(out, problemAt(path, r, change.Problem{Severity: sev, Code: strconv.Itoa(item.Code), Source: "typescript", Server: d.id, Message: text, Raw: raw}))
	}
	return out
}
