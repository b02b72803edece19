// Package custom runs the person's own tools and plugins: TypeScript and JavaScript files in OpenCode's shape, and
// executables with a manifest. Files are bundled in-process and run in one child of Node, Bun or Deno, each file in a
// worker of its own; the child is started when the first tool or plugin is found, not before.
//
//	h := custom.New(custom.Options{Dirs: []string{".pillion"}, Directory: cwd, Worktree: root, CacheDir: cache})
//	offered := h.Tools(ctx) // as the files are at this moment; changed files are loaded again
//
// The loaded code runs with the person's rights: whoever makes the Options decides which folders are trusted.
package custom

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
)

//go:generate go run ./host/gen

// Options are what a Host is made of.
type Options struct {
	// Dirs hold the folders tool/, tools/, plugin/ and plugins/. Of two tools with one name, that of the later folder wins.
	Dirs      []string
	Plugins   []Plugin // besides those found in Dirs
	Directory string   // the session's directory
	Worktree  string
	CacheDir  string        // for bundles; private to the person
	Memory    int           // MB that one file's code may use; 0: 1024
	HookLimit time.Duration // how long a plugin's hook may take; 0: DefaultHookLimit
	Config    any           // the configuration as plugins with a config hook see it; it must encode to JSON
	// Configured is called when what config hooks leave has changed, with one entry for each plugin that changed something. No file is
	// loaded meanwhile, so it must not call the host. Nil: such changes have no effect.
	Configured func([]Configured)
	Runtime    string       // program to run JavaScript with; empty: node, bun or deno from PATH
	Reason     guard.Reason // of the setting that names Runtime; the zero value: the person's own
	// ReasonOf says for a file of code which setting or folder it comes from; it is asked before the file is run. Nil: the person's own.
	ReasonOf func(path string) guard.Reason

	// Client serves the calls of plugins' clients: a method such as session.get. Plugins can tell ErrNoMethod and ErrNotFound from other
	// errors. Nil: only the methods of this package exist.
	Client func(ctx context.Context, method string, args Args) (any, error)
	// Accounts keeps what plugins sign in with. Nil: they cannot sign in.
	Accounts Accounts
	// Start starts a program so that it ends with this process, even after kill -9. Nil: the command's own Start.
	Start func(*exec.Cmd) error
	// Notice shows a text to the person; level is info, warning or error. Nil: notices are only logged.
	Notice func(level, text string)
	Log    *slog.Logger
}

// reason is why code of a file is run.
func (o Options) reason(path string) guard.Reason {
	if o.ReasonOf == nil {
		return guard.Reason{Who: guard.Tool}
	}
	r := o.ReasonOf(path)
	r.Who = guard.Tool
	return r
}

// Configured is a configuration as a plugin's config hook has left it.
type Configured struct {
	File   string // the plugin's
	Config json.RawMessage
}

// Plugin is a plugin that the configuration names.
type Plugin struct {
	Spec    string // a path (./x.ts) or an npm package (name@version); see Resolve
	Dir     string // what a relative path is relative to
	Options map[string]any
}

// Host holds the tools and plugins of one folder. Its methods are safe for concurrent use. Lock order: load before mu. mu is never held
// while waiting for the child or the disk.
type Host struct {
	o      Options
	ctx    context.Context    // of everything that outlives a call; Close ends it
	end    context.CancelFunc // of ctx
	closed sync.WaitGroup     // goroutines of children; Close waits for them

	files func() (string, error) // the folder of the host's own files and of bundles, made once

	load     sync.Mutex        // one scan at a time
	resolved map[string]string // guarded by load; by spec, the path of a plugin's entry; empty: it could not be resolved
	ended    map[string]int    // guarded by load; by file, how often the plugin's code ended by itself

	mu     sync.Mutex
	child  *child          // guarded by mu; nil: not running
	units  map[string]unit // guarded by mu; by file
	tools  []tools.Tool    // guarded by mu; of units
	hooked []*source       // guarded by mu: plugins, in order
	told   map[string]bool // guarded by mu: texts of notices that were given
	looked bool            // guarded by mu: a refresh has been completed

	configured []Configured // guarded by load; what Options.Configured was called with last
}

// unit is a loaded file. Units are values: refresh builds a new map and take publishes it as a whole, so readers never see a half-loaded
// set.
type unit struct {
	inputs []string // the file and all that was bundled into it
	stamp  string   // stampAll of inputs when they were loaded; "" makes the next refresh load the file again
	source *source  // nil: it could not be loaded
	tools  []tools.Tool
}

// New makes a host. It reads and starts nothing; the first Tools or hook does.
func New(o Options) *Host {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Memory = cmp.Or(o.Memory, 1024)
	o.HookLimit = cmp.Or(o.HookLimit, DefaultHookLimit)
	h := &Host{o: o, units: map[string]unit{}, resolved: map[string]string{}, ended: map[string]int{}, told: map[string]bool{}}
	h.files = sync.OnceValues(func() (string, error) {
		dir := filepath.Join(o.CacheDir, "custom")
		return dir, unpack(dir)
	})
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// Tools returns the tools of all files, sorted by name, after loading what has changed. The agent calls it in each step of a turn, so a
// saved file counts from the next step on. The slice is shared: callers must not change it.
func (h *Host) Tools(ctx context.Context) []tools.Tool {
	h.refresh(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tools
}

// ready loads the files the first time, and again if a plugin's code has ended. Has calls it instead of refresh, as it runs for each event:
// a stat of every file would cost more than the event.
func (h *Host) ready(ctx context.Context) {
	h.mu.Lock()
	as := h.looked && !slices.ContainsFunc(h.hooked, (*source).over)
	h.mu.Unlock()
	if !as {
		h.refresh(ctx)
	}
}

// atOnce is the number of files that are loaded concurrently; bundling takes processor time and memory.
const atOnce = 4

// refresh loads files that are new or have changed, and drops those that were removed. Running calls of dropped files may finish (see
// retire). If ctx is cancelled, some files stay unloaded, and looked is not set, so that ready refreshes again.
func (h *Host) refresh(ctx context.Context) {
	h.load.Lock()
	defer h.load.Unlock()
	found := h.scan(ctx)
	h.mu.Lock()
	old, child := h.units, h.child
	h.mu.Unlock()
	// canStay compares each source's child with this one. After the child's end that is nil, so all files are loaded again, in another child.
	if child != nil && child.dead() {
		child = nil
	}
	next := make(map[string]unit, len(found))
	var fresh []file
	// leftOut means that a plugin was dropped although its file is as it was, so the published set must change.
	leftOut := false
	for _, f := range found {
		was, ok := old[f.path]
		if ok && h.canStay(f, was, child) {
			if was.source != nil && f.kind == pluginFile && was.source.over() {
				was.source, leftOut = nil, true
			}
			next[f.path] = was
			continue
		}
		if ok && was.source != nil {
			was.source.retire()
		}
		fresh = append(fresh, f)
	}
	for path, was := range old {
		if !slices.ContainsFunc(found, func(f file) bool { return f.path == path }) && was.source != nil {
			was.source.retire()
		}
	}
	if len(fresh) > 0 || len(next) != len(old) || leftOut {
		for i, u := range h.openAll(ctx, fresh) {
			next[fresh[i].path] = u
		}
		h.take(found, next)
	}
	h.mu.Lock()
	h.looked = h.looked || ctx.Err() == nil
	h.mu.Unlock()
}

// canStay reports whether a file need not be loaded again. A plugin whose code ended by itself is loaded again, until it has ended maxSlow
// times. canStay counts these ends, so refresh must call it once for each file. The caller holds load.
func (h *Host) canStay(f file, was unit, child *child) bool {
	switch {
	case was.stamp != stampAll(was.inputs):
		delete(h.ended, f.path) // a changed file starts with a count of 0
		return false
	case was.source == nil:
		return true
	case was.source.child != child:
		return false
	case f.kind != pluginFile || !was.source.over():
		return true
	}
	if h.ended[f.path]++; h.ended[f.path] < maxSlow {
		return false
	}
	h.notice("warning", fmt.Sprintf("The plugin %s is not started again: it ended %d times by itself (%v).", f.path, maxSlow, was.source.loss()))
	return true
}

// openAll loads files, at most atOnce concurrently. The child is started at the same time, as starting Node takes longer than bundling most
// files. The result has the order of files.
func (h *Host) openAll(ctx context.Context, files []file) []unit {
	child := sync.OnceValues(func() (*child, error) { return h.running(ctx) })
	out := make([]unit, len(files))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	// Manifests need no JavaScript: a person who has only those does not need Node either.
	if slices.ContainsFunc(files, func(f file) bool { return f.kind != manifestFile }) {
		wait.Go(func() { _, _ = child() })
	}
	for i, f := range files {
		slots <- struct{}{}
		wait.Go(func() {
			out[i] = h.open(ctx, f, child)
			<-slots
		})
	}
	wait.Wait()
	return out
}

// take publishes the loaded files for Tools and the hooks. Of two tools with one name, that of the later file wins.
func (h *Host) take(found []file, units map[string]unit) {
	byName := map[string]tools.Tool{}
	var hooked []*source
	for _, f := range found {
		u := units[f.path]
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
	h.units, h.tools, h.hooked = units, all, hooked
	h.mu.Unlock()
	var configured []Configured
	for _, s := range hooked {
		if len(s.config) > 0 {
			configured = append(configured, Configured{s.file.path, s.config})
		}
	}
	same := slices.EqualFunc(configured, h.configured, func(a, b Configured) bool { return a.File == b.File && bytes.Equal(a.Config, b.Config) })
	if h.configured = configured; !same && h.o.Configured != nil {
		h.o.Configured(configured)
	}
}

// Close ends the child with all workers and programs, and waits for them. Running calls fail. The host cannot be used afterwards: h.ctx
// ends first, so no later call can start another child.
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

// notice logs a text and shows it to the person, each text once: files are examined in every step, and a mistake in one would be repeated.
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
