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
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

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
	CacheDir  string        // for bundles; private to the person
	Memory    int           // MB that one file's code may use; 0: 1024
	HookLimit time.Duration // how long a plugin's hook may take; 0: DefaultHookLimit
	Config    any           // what plugins with a config hook are shown; JSON
	Runtime   string        // program to run JavaScript with; empty: node, bun or deno from PATH

	// Client answers what plugins ask through their client: a method such as session.get. ErrNoMethod and ErrNotFound
	// are passed on as what they are. Nil: there are none but those of this package.
	Client func(ctx context.Context, method string, args Args) (any, error)
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

// Host is the tools and plugins of one place. Its methods are safe for concurrent use. Lock order: load before mu, never
// the other way round. mu is never held while the child or the disk is waited for.
type Host struct {
	o      Options
	ctx    context.Context    // of what runs; ended by Close
	end    context.CancelFunc // of ctx
	closed sync.WaitGroup     // goroutines of children; Close waits for them

	files func() (string, error) // the folder of the host's own files and of bundles, made once

	load     sync.Mutex        // one scan at a time
	resolved map[string]string // guarded by load; by spec, a plugin's entry; empty: it cannot be had
	ended    map[string]int    // guarded by load; by file, how often a plugin ended by itself

	mu     sync.Mutex
	child  *child          // guarded by mu; nil: not running
	units  map[string]unit // guarded by mu; by file
	tools  []tools.Tool    // guarded by mu; of units
	hooked []*source       // guarded by mu: plugins, in order
	told   map[string]bool // guarded by mu: notices that were given
	looked bool            // guarded by mu: the files have been looked at
}

// unit is a file as it was loaded. Units are values: refresh builds the next map and take publishes it, so readers never
// see a half-loaded set.
type unit struct {
	inputs []string // the file and all it was made from
	stamp  string   // of these when they were loaded; "" loads the file anew at the next look
	source *source  // nil: it could not be loaded
	tools  []tools.Tool
}

// New makes a host; nothing is read or started.
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

// Tools are the tools of all files as they are now, sorted by name. It is asked for at each step of a turn, and is what
// notices that files have changed. The slice is shared: callers must not change it.
func (h *Host) Tools(ctx context.Context) []tools.Tool {
	h.refresh(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tools
}

// ready loads the files if that has not been done, or if a plugin has ended since. Has, which is asked for each event,
// calls it instead of refresh: looking at every file would cost more than the event.
func (h *Host) ready(ctx context.Context) {
	h.mu.Lock()
	as := h.looked && !slices.ContainsFunc(h.hooked, (*source).over)
	h.mu.Unlock()
	if !as {
		h.refresh(ctx)
	}
}

// atOnce is how many files are loaded beside each other. Each is bundled, which takes processor time and memory.
const atOnce = 4

// refresh loads what is new or has changed, and drops what has gone. Calls that run on dropped files end by themselves
// (see retire). A cancelled ctx leaves some files unloaded, which is why looked is then not set.
func (h *Host) refresh(ctx context.Context) {
	h.load.Lock()
	defer h.load.Unlock()
	found := h.scan(ctx)
	h.mu.Lock()
	old, child := h.units, h.child
	h.mu.Unlock()
	// Sources of a dead child compare unequal to nil in stands, so all of them are loaded anew in another child.
	if child != nil && child.dead() {
		child = nil
	}
	next := make(map[string]unit, len(found))
	var fresh []file
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

// canStay reports whether a file can stay as it is loaded. A plugin that ended by itself is loaded again, fewer than
// maxSlow times. canStay counts these ends, so it must be called once per look; load is held.
func (h *Host) canStay(f file, was unit, child *child) bool {
	switch {
	case was.stamp != stampAll(was.inputs):
		delete(h.ended, f.path) // another version, another try
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
	h.notice("warning", fmt.Sprintf("The plugin %s is left out: it ended %d times by itself (%v).", f.path, maxSlow, was.source.loss()))
	return true
}

// openAll loads files, several beside each other. The child starts meanwhile: what Node needs for that is longer than
// what most files need to be bundled. The result is in the order of files, by which refresh pairs the two.
func (h *Host) openAll(ctx context.Context, files []file) []unit {
	child := sync.OnceValues(func() (*child, error) { return h.running(ctx) })
	out := make([]unit, len(files))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
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

// take publishes the loaded files. Of two tools with one name the later file's counts.
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
}

// Close ends the child with all workers and programs, and waits for them. The host cannot be used afterwards. Calls under
// way end with the child. h.ctx ends first, which makes a later startChild fail.
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

// notice tells the person something, once: files are looked at in each step, and a mistake in one stays.
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
