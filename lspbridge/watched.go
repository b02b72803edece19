package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/pillion-dev/pillion/tools/paths"
	"go.lsp.dev/protocol"
)

// watchGlob is a pattern of files whose changes a server wants to be told of (FileSystemWatcher).
type watchGlob struct {
	base    string // folder to which the pattern is relative; "" matches absolute paths
	pattern string
	kinds   int // WatchKind bits: 1 create, 2 change, 4 delete
}

// watchGlobs decodes the options of a didChangeWatchedFiles registration (LSP 3.17, FileSystemWatcher). A pattern is a string or a
// RelativePattern, whose base is a URI or a workspace folder. Patterns that cannot be parsed are left out: the server is told of fewer
// files, and the other patterns still count.
func watchGlobs(root string, options json.RawMessage) []watchGlob {
	var o struct {
		Watchers []struct {
			GlobPattern json.RawMessage
			Kind        *int
		}
	}
	_ = json.Unmarshal(options, &o)
	var out []watchGlob
	for _, w := range o.Watchers {
		// LSP's default: create, change and delete.
		g := watchGlob{kinds: 7}
		if w.Kind != nil {
			g.kinds = *w.Kind
		}
		if json.Unmarshal(w.GlobPattern, &g.pattern) != nil {
			var rel struct {
				BaseURI json.RawMessage
				Pattern string
			}
			_ = json.Unmarshal(w.GlobPattern, &rel)
			var base string
			if json.Unmarshal(rel.BaseURI, &base) != nil {
				var folder struct{ URI string }
				_ = json.Unmarshal(rel.BaseURI, &folder)
				base = folder.URI
			}
			g.pattern, g.base = rel.Pattern, uriPath(base)
			if g.base == "" {
				continue
			}
			// A relative pattern such as "**/*.go" is meant below the root; matched against whole paths it would also match files of other
			// projects.
		} else if !strings.HasPrefix(g.pattern, "/") && !filepath.IsAbs(g.pattern) {
			g.base = root
		}
		if doublestar.ValidatePattern(g.pattern) {
			out = append(out, g)
		}
	}
	return out
}

// match reports whether the server wants an event.
func (g watchGlob) match(e fileEvent) bool {
	// FileChangeType 1, 2, 3 are the bits 1, 2, 4 of WatchKind.
	if g.kinds&(1<<(e.kind-1)) == 0 {
		return false
	}
	name := e.path
	if g.base != "" {
		if !paths.Within(g.base, e.path) {
			return false
		}
		name, _ = filepath.Rel(g.base, e.path)
	}
	ok, _ := doublestar.Match(g.pattern, filepath.ToSlash(name))
	return ok
}

// fileEvent is a change on disk. kind is LSP's FileChangeType: 1 created, 2 changed, 3 deleted.
type fileEvent struct {
	path string
	kind int
}

// diskQueue sends changes on disk to a server in order. It has a goroutine of its own, because delivering waits for the documents, and the
// watcher must not wait.
type diskQueue struct {
	deliver func([]fileEvent) // may block
	idle    func()            // called when everything has been delivered

	mu         sync.Mutex // guards what follows
	waiting    []fileEvent
	delivering bool // its goroutine runs
}

// add queues events and starts the goroutine if necessary.
func (q *diskQueue) add(events []fileEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, events...)
	if !q.delivering {
		q.delivering = true
		go q.run()
	}
}

// run delivers until the queue is empty. It clears delivering under the same lock under which it sees the queue empty: an event that is
// added a moment later starts another goroutine.
func (q *diskQueue) run() {
	for {
		q.mu.Lock()
		events := q.waiting
		q.waiting = nil
		q.delivering = len(events) > 0
		q.mu.Unlock()
		if len(events) == 0 {
			q.idle()
			return
		}
		q.deliver(events)
	}
}

// isIdle reports whether everything has been delivered.
func (q *diskQueue) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.delivering
}

// watched sends workspace/didChangeWatchedFiles. It calls mark first: comparing later diagnostics with the mark tells whether they are
// about the present files.
func (c *client) watched(events []fileEvent) {
	if len(events) == 0 {
		return
	}
	out := make([]map[string]any, len(events))
	for i, e := range events {
		out[i] = map[string]any{"uri": pathURI(e.path), "type": e.kind}
	}
	c.mark(causeWatched)
	_ = c.notify(protocol.MethodWorkspaceDidChangeWatchedFiles, map[string]any{"changes": out})
}

// reload makes the server load the project again where it would not notice one of the changes. It does not wait.
func (c *client) reload(events []fileEvent) {
	if c.spec.hooks.reload != nil {
		c.spec.hooks.reload(c, events)
	}
}

// installed reports whether a path is a folder of installed packages or in one.
func installed(path string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(path), "/"), packagesDir)
}

// diskChanged tells the server about changes by other programs and updates its open documents. When the documents cannot be acquired within
// watchLock, this server misses the batch: waiting for ever would pile up batches behind a check that hangs.
func (c *client) diskChanged(events []fileEvent) {
	ctx, cancel := context.WithTimeout(context.Background(), watchLock)
	defer cancel()
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		return
	}
	defer release()
	c.watched(c.able.wanted(events))
	if slices.ContainsFunc(events, func(e fileEvent) bool { return c.spec.matches(e.path) || c.spec.configuredBy(filepath.Base(e.path)) }) {
		c.ledger.invalidatePulls() // also where the server watches by itself and has asked for no events
	}
	// tsserver watches neither packages nor, all the time, the data that it imports.
	unwatched := func(e fileEvent) bool { return installed(e.path) || filepath.Ext(e.path) == ".json" }
	if see := c.spec.hooks.missedFile; see != nil && slices.ContainsFunc(events, unwatched) {
		see(ctx, c)
		c.ledger.invalidatePulls()
	}
	var open []string
	for _, e := range events {
		if c.docs.has(e.path) {
			open = append(open, e.path) // for an open document the server's text would win over the disk
		}
		if e.kind == 3 {
			c.ledger.forget(e.path)
			c.feed.add(e.path)
		}
	}
	c.background.plan(open...)
	if len(open) > 0 {
		c.sync(open)
	}
	c.reintroduce(events)
	c.recompileUsers(ctx, events)
	c.reload(events) // after the texts, with which it loads
}

// introduce opens a file that is new on disk with a text that the server cannot have read yet. The caller then gives it the real one, or closes
// the file.
func (c *client) introduce(path, text string) (opened bool) {
	if c.spec.hooks.impostor == nil {
		return false
	}
	with := c.spec.hooks.impostor(path, text)
	if with == "" {
		return false
	}
	c.docs.put(path, with)
	c.ledger.isBack(path)
	return true
}

// reintroduce makes the server notice new files on disk that it knows from before, one in each folder, since it looks at the whole folder then. Of
// other new files it can have read nothing.
func (c *client) reintroduce(events []fileEvent) {
	done := map[string]bool{} // folders
	for _, e := range events {
		dir := filepath.Dir(e.path)
		if e.kind != 1 || done[dir] || len(done) == maxReintroduced || c.docs.has(e.path) || !c.ledger.wasDeleted(e.path) && c.ledger.project(e.path) == nil && !c.docs.wasOpen(e.path) {
			continue
		}
		if text, ok := c.host.text(e.path); ok && c.introduce(e.path, text) {
			done[dir] = true
			c.docs.close(e.path)
		}
	}
}

// maxReintroduced limits the folders for which the server lists packages again. So many change at once only when another version is checked out,
// and the server lists most of them then anyway.
const maxReintroduced = 100

// recompileUsers makes a server that compiles each file by itself check the open ones again that include what has changed on disk.
func (c *client) recompileUsers(ctx context.Context, events []fileEvent) {
	if !c.spec.Quirks.WantDiagnostics || len(c.docs.paths()) == 0 {
		return
	}
	var changed []string
	for _, e := range events {
		if c.spec.matches(e.path) || headerLike(e.path) {
			changed = append(changed, e.path)
		}
	}
	if len(changed) == 0 {
		return
	}
	users, complete := c.dependents.includes.users(ctx, c.spec, c.root, changed)
	if !complete {
		users = c.docs.paths()
	}
	c.docs.rebuild(c.docs.among(users))
}
