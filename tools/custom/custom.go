// Package custom runs the person's own tools and plugins: TypeScript and JavaScript files in OpenCode's shape, and
// executables with a manifest. Files are bundled in-process and run in one child of Node, Bun or Deno, each file in a
// worker of its own; the child is started when the first tool or plugin is found, not before.
//
//	h := custom.New(custom.Options{Dirs: []string{".pillion"}, Directory: cwd, Worktree: root, CacheDir: cache})
//	offered := h.Tools(ctx) // as the files are now; changed files are loaded anew
//
// What is loaded is code with the person's rights: whoever makes the Options decides which folders are trusted.
package custom

import (
	"context"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools"
)

//go:generate go run ./host/gen

// Options are what a Host is made of.
type Options struct {
	// Dirs hold the folders tool/, tools/, plugin/ and plugins/; of two tools of one name the later folder's counts.
	Dirs      []string
	Plugins   []Plugin // besides those found in Dirs
	Directory string   // the session's directory
	Worktree  string
	CacheDir  string // for bundles; private to the person
	Memory    int    // MB that one file's code may use; 0: 1024
	Config    any    // what plugins with a config hook are shown; JSON
	Runtime   string // program to run JavaScript with; empty: node, bun or deno from PATH

	// Start starts a program that ends with us, however we end. Nil: the command's own Start.
	Start func(*exec.Cmd) error
	// Notice tells the person; level is info, warning or error.
	Notice func(level, text string)
	Log    *slog.Logger
}

// Plugin is a plugin that the configuration names.
type Plugin struct {
	Spec    string // a path (./x.ts) or an npm package (name@version); see Resolve
	Dir     string // what a relative path is relative to
	Options map[string]any
}

// Host is the tools and plugins of one place. Its methods are safe for concurrent use.
type Host struct {
	o      Options
	ctx    context.Context // of what runs; ended by Close
	end    context.CancelFunc
	closed sync.WaitGroup

	load     sync.Mutex        // one scan at a time
	resolved map[string]string // guarded by load; by spec, a plugin's entry; empty: it cannot be had

	mu     sync.Mutex
	child  *child          // guarded by mu; nil: not running
	units  map[string]unit // guarded by mu; by file
	tools  []tools.Tool    // guarded by mu; of units
	hooked []*source       // guarded by mu: plugins, in order
	told   map[string]bool // guarded by mu: notices that were given
}

// unit is a file as it was loaded.
type unit struct {
	inputs []string // the file and all it was made from
	stamp  string   // of these
	source *source  // nil: it could not be loaded
	tools  []tools.Tool
}

// New makes a host; nothing is read or started.
func New(o Options) *Host {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Memory == 0 {
		o.Memory = 1024
	}
	h := &Host{o: o, units: map[string]unit{}, resolved: map[string]string{}, told: map[string]bool{}}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// Tools are the tools of all files as they are now, sorted by name.
func (h *Host) Tools(ctx context.Context) []tools.Tool {
	h.refresh(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tools
}

// refresh loads what is new or has changed, and drops what has gone.
func (h *Host) refresh(ctx context.Context) {
	h.load.Lock()
	defer h.load.Unlock()
	found := h.scan(ctx)
	h.mu.Lock()
	old, child := h.units, h.child
	h.mu.Unlock()
	if child != nil && child.dead() {
		child = nil
	}
	same := len(found) == len(old)
	next := make(map[string]unit, len(found))
	for _, f := range found {
		was, ok := old[f.path]
		if ok && was.stamp == stampAll(was.inputs) && (was.source == nil || was.source.child == child) {
			next[f.path] = was
			continue
		}
		same = false
		if ok && was.source != nil {
			was.source.retire()
		}
		next[f.path] = h.open(ctx, f)
	}
	for path, was := range old {
		if _, there := next[path]; !there && was.source != nil {
			was.source.retire()
		}
	}
	if same {
		return
	}
	byName := map[string]tools.Tool{}
	var hooked []*source
	for _, f := range found {
		u := next[f.path]
		for _, t := range u.tools {
			byName[t.ID] = t
		}
		if u.source != nil && f.kind == pluginFile {
			hooked = append(hooked, u.source)
		}
	}
	all := make([]tools.Tool, 0, len(byName))
	for _, t := range byName {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b tools.Tool) int { return strings.Compare(a.ID, b.ID) })
	h.mu.Lock()
	h.units, h.tools, h.hooked = next, all, hooked
	h.mu.Unlock()
}

// Close ends everything that runs.
func (h *Host) Close() {
	h.end()
	h.mu.Lock()
	child := h.child
	h.child = nil
	h.mu.Unlock()
	if child != nil {
		child.stop()
	}
	h.closed.Wait()
}

// notice says something once.
func (h *Host) notice(level, text string) {
	h.mu.Lock()
	told := h.told[text]
	h.told[text] = true
	h.mu.Unlock()
	if told {
		return
	}
	h.o.Log.Info("custom tools", "level", level, "text", text)
	if h.o.Notice != nil {
		h.o.Notice(level, text)
	}
}
