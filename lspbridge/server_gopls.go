package lspbridge

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/paths"
	"go.lsp.dev/protocol"
)

// gopls reports a progress for every diagnosis (Quirks.EndMarker), and publishes the problems of the whole workspace by itself.
func gopls() Server {
	return Server{ID: "gopls", Extensions: []string{".go"}, Filenames: []string{"go.mod", "go.work"}, Workspace: []string{"go.work"}, Markers: []string{"go.mod"},
		Configures: []string{"go.work", "go.sum", "go.work.sum", "modules.txt"}, // with go.mod they say which modules there are
		Commands:   [][]string{{"gopls"}}, Shared: []string{"-remote=auto"}, Install: "go install golang.org/x/tools/gopls@latest",
		Init:     `{"verboseWorkDoneProgress":true,"diagnosticsDelay":"0s"}`,
		Settings: `{"gopls":{"verboseWorkDoneProgress":true,"diagnosticsDelay":"0s"}}`,
		Env:      goplsHeap(),
		Quirks:   Quirks{EndMarker: true, LateNew: true},
		hooks: hooks{log: failedDiagnosis, deletedText: packageClause, loadFailure: unloadedWorkspace, unloaded: unloadedPackage, unseen: unseenCgo, reload: regenerateCgo, impostor: otherPackage, otherProjects: loadReplacing, apart: aloneWithoutModule,
			readBy: func(_ context.Context, f *fleet, _ Server, p Proposal) string {
				return goUser(f.o.Root, p.Path, p.Delete)
			}},
		Untrusted: &Restraint{
			Why: "It lists and type-checks packages and builds none. The toolchain is the installed one, whatever go.mod asks for; git is run without hooks and fsmonitor.",
			Env: []string{"GOTOOLCHAIN=local"},
			prepare: func(_ *programs, row Server, _ []string, _ string) (Server, error) {
				// Keep the person's own flags: only their environment and go env can set them, never a project.
				row.Env = append(row.Env, strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false"))
				return row, nil
			},
		}}
}

// goplsHeap makes gopls collect its heap when it has grown by half, not when it has doubled: it runs beside the editor's own, and what it leaves
// behind when it loads a module is most of its memory. On k8s.io/client-go it takes 580 MB instead of 924, and no more processor time. A GOGC of the
// person's own counts.
func goplsHeap() []string {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=50"}
}

// unloadedPackage reports whether a problem stands for a file whose package gopls could not load: where the go.mod above it is only proposed, it
// looks for the folder on disk. The words are in gopls' diagnosis of open files without a package.
func unloadedPackage(d change.Problem) bool {
	return d.Source == "go list" && strings.HasPrefix(d.Message, "initialization failed: packages.Load error")
}

// aloneWithoutModule says that gopls takes a file that is in no module for a package of its own, so that what it declares is undefined in the other
// files of its folder, and the other way round. With GO111MODULE=off folders are packages without a module.
func aloneWithoutModule(path string) (string, func(change.Problem) bool) {
	dir := filepath.Dir(path)
	if filepath.Ext(path) != ".go" || os.Getenv("GO111MODULE") == "off" {
		return "", nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		if exists(filepath.Join(at, "go.mod")) {
			return "", nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	var files []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if other := filepath.Join(dir, e.Name()); filepath.Ext(other) == ".go" && e.Type().IsRegular() && other != path {
			files = append(files, other)
		}
	}
	if len(files) == 0 {
		return "", nil
	}
	return "gopls checks " + filepath.Base(path) + " without the other files of its folder, which is in no module", func(p change.Problem) bool {
		name, undefined := strings.CutPrefix(p.Message, "undefined: ")
		return undefined && p.Path == path && slices.ContainsFunc(files, func(other string) bool {
			text, _ := os.ReadFile(other)
			return bytes.Contains(text, []byte(name))
		})
	}
}

// maxReplacing is how many modules are loaded because they replace the changed one by its folder.
const maxReplacing = 4

// loadReplacing opens a file of each module whose go.mod replaces the module of a changed file by its folder: gopls then loads that module too, and
// reports what the change breaks in it. It loads none that is outside of its root.
func loadReplacing(ctx context.Context, d *dependents, files []Proposal) error {
	changed := map[string]bool{} // folders of modules
	for _, f := range files {
		for dir := filepath.Dir(f.Path); paths.Within(d.project, dir) || dir == d.project; dir = filepath.Dir(dir) {
			if exists(filepath.Join(dir, "go.mod")) {
				changed[dir] = true
				break
			}
		}
	}
	var all []string
	loaded := 0
	for _, path := range projectFiles(ctx, d.project) {
		dir := filepath.Dir(path)
		if filepath.Base(path) != "go.mod" || changed[dir] || exists(filepath.Join(d.root, "go.work")) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(localReplacement().FindAllSubmatch(text, -1), func(m [][]byte) bool {
			return changed[filepath.Join(dir, filepath.FromSlash(string(m[1])))]
		}) {
			continue
		}
		if loaded++; loaded > maxReplacing || !paths.Within(d.root, dir) {
			return fmt.Errorf("was not asked about the module in %s, which replaces the changed one", filepath.Base(dir))
		}
		if all == nil {
			all = projectFiles(ctx, d.root)
		}
		i := slices.IndexFunc(all, func(p string) bool {
			return filepath.Ext(p) == ".go" && paths.Within(dir, p)
		})
		if i < 0 || d.docs.has(all[i]) {
			continue
		}
		if text, ok := d.text(all[i]); ok {
			d.docs.put(all[i], text)
		}
	}
	return nil
}

// localReplacement matches a replacement by a folder in go.mod, whose path is in group 1.
var localReplacement = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`=>[ \t]*(\.\.?/?[^\s]*)`) })

// unseenCgo says that gopls has no other declarations of C than cgo has made of the file on disk.
func unseenCgo(old string, f Proposal) (string, func(change.Problem) bool) {
	if filepath.Ext(f.Path) != ".go" || !importsC().MatchString(old) && !importsC().MatchString(f.Text) {
		return "", nil
	}
	return "runs cgo for " + filepath.Base(f.Path) + " only after it is written", func(p change.Problem) bool { return strings.HasPrefix(p.Message, "undefined: C.") }
}

// regenerateCgo makes gopls load packages again, and run cgo, where changes on disk need it. It returns when gopls has taken the texts for that,
// so that a later change is not among them. The title of the diagnosis that follows is in gopls' code.
func regenerateCgo(c *client, events []fileEvent) {
	path := rereads(c.host.project, events)
	if path == "" {
		return
	}
	c.mark(causeReload)
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		_ = c.call(context.Background(), protocol.MethodWorkspaceExecuteCommand, map[string]any{"command": "gopls.regenerate_cgo", "arguments": []any{map[string]any{"URI": pathURI(path)}}}, nil) // ends with the connection at the latest
	}()
	if c.commands.busy() {
		return // gopls may answer only when the command that waits for this change has ended
	}
	select {
	case <-taken:
	case <-time.After(c.host.baselineWait()): // it hangs, or the machine does
	}
}

// otherPackage is a text of another package. With each diagnosis gopls reads the files that it has once reported on, also one that exists again and
// that it has not been told of. The event then changes nothing for it, and the package, which it has listed without the file, lacks the file until
// the package clause or an import changes.
func otherPackage(path, text string) string {
	clause := strings.TrimSuffix(packageClause(text), "\n")
	if filepath.Ext(path) != ".go" || clause == "" {
		return ""
	}
	return clause + "_\n"
}

// failedDiagnosis reads why gopls could not check its packages: it then publishes that there is no problem. Above all a file has come or gone that
// it has not been told of. A diagnosis that is cancelled for a later one logs the same, with "context canceled". The words are in gopls' server code.
func failedDiagnosis(c *client, text string) {
	for _, what := range []string{"warning: diagnostics failed: ", "warning: while diagnosing snapshot: "} {
		if _, why, ok := strings.Cut(text, what); ok && !strings.Contains(why, "context canceled") {
			why, _, _ = strings.Cut(why, "\n")
			c.progress.fail(why)
		}
	}
}

// unloadedWorkspace returns why gopls has no view of the project, from the message that it shows then; above all the go command is missing.
// gopls ends the diagnosis of the initial load even so, without a problem. The message is in gopls' session code, not in a protocol.
func unloadedWorkspace(message string) string {
	if !strings.HasPrefix(message, "Error loading workspace folders (expected ") {
		return ""
	}
	_, cause, _ := strings.Cut(message, "\n")
	if _, why, ok := strings.Cut(cause, ": err: "); ok {
		cause = why
	}
	cause, _, _ = strings.Cut(cause, "\n")
	cause = strings.TrimSuffix(strings.TrimSpace(cause), ": stderr:")
	if strings.Contains(cause, "go command required") {
		return "gopls needs the go command, which is not on the PATH; install Go from https://go.dev/dl, or add its folder to the PATH that Pillion is started with"
	}
	return "gopls could not load the project: " + cause
}

// packageClause returns the text of a deleted Go file in an overlay: a file without a package clause would be an error of its own.
func packageClause(old string) string {
	for line := range strings.Lines(old) {
		if name, ok := strings.CutPrefix(line, "package "); ok {
			if f := strings.Fields(name); len(f) > 0 {
				return "package " + f[0] + "\n"
			}
		}
	}
	return ""
}

// goUser returns a Go file that reads a file of another language when it is compiled: what cgo includes or compiles, and what is embedded, of
// which only counts whether it is there (moved); "" for none. Such a file is in the folder of the Go file or in one below, and both are in root.
func goUser(root, name string, moved bool) string {
	ext := strings.ToLower(filepath.Ext(name))
	native := slices.Contains(cExt, ext) || slices.Contains([]string{".s", ".sx", ".f", ".f90", ".swig", ".swigcxx"}, ext)
	if !native && !moved || ext == ".go" {
		return ""
	}
	for dir := filepath.Dir(name); dir == root || paths.Within(root, dir); dir = filepath.Dir(dir) {
		rel, _ := filepath.Rel(dir, name)
		sources, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, source := range sources {
			text, err := os.ReadFile(source)
			if err == nil && (native && importsC().Match(text) || moved && embeds(text, filepath.ToSlash(rel))) {
				return source
			}
		}
		if dir == root || exists(filepath.Join(dir, "go.mod")) {
			break
		}
	}
	return ""
}

// rereads returns a file for which gopls has to load the project again after changes on disk; "" for none. It reads what cgo makes of a file, and
// whether an embedded one is there, only when it loads a package.
func rereads(root string, events []fileEvent) string {
	for _, e := range events[:min(len(events), maxReread)] {
		if user := goUser(root, e.path, e.kind != 2); user != "" {
			return user
		}
		if filepath.Ext(e.path) == ".go" && e.kind != 3 {
			if text, err := os.ReadFile(e.path); err == nil && importsC().Match(text) {
				return e.path
			}
		}
	}
	return ""
}

// maxReread is how many of the files that change at once are looked at: each costs reading the Go files of its folder.
const maxReread = 100

var (
	importsC  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(import[ \t]+|[ \t]+)"C"`) })
	embedding = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^//go:embed[ \t]+(.*)$`) })
)

// embeds reports whether a Go file embeds a file, whose path is relative to it, by name, by pattern or with its folder.
func embeds(text []byte, rel string) bool {
	for _, m := range embedding().FindAllSubmatch(text, -1) {
		for _, pattern := range strings.Fields(string(m[1])) {
			pattern = strings.TrimPrefix(strings.Trim(pattern, "\"`"), "all:")
			for part := rel; part != "."; part = path.Dir(part) {
				if ok, _ := path.Match(path.Clean(pattern), part); ok || pattern == "." {
					return true
				}
			}
		}
	}
	return false
}
