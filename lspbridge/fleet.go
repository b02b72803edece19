package lspbridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/paths"
)

// fleet owns the servers of a project: which row of the table serves which file, one slot for each row and root, when they stop, and the
// watcher that tells them of changes on disk.
type fleet struct {
	o    Options
	rows func() []Server
	log  *slog.Logger

	markers  markers
	programs *programs
	notices  *notices
	scarce   func() bool // whether the machine has little memory left
	// problemsChanged is called with the files whose problems have changed outside a proposal, if Options.Diagnostics is set. New sets it
	// before the first server can start.
	problemsChanged func(paths []string)

	mu          sync.Mutex // guards what follows; never held while a server starts
	slots       map[slotKey]*slot
	closed      bool
	watcher     *watcher
	users       int         // uses that have not ended
	measured    time.Time   // when the servers' memory was last measured
	unusedTimer *time.Timer // stops all servers unless another use begins before it fires
}

// slotKey identifies a server: a row's id and the root it works in. A monorepo may run one row for several
// roots.
type slotKey struct{ id, root string }

// newFleet makes a fleet without servers; it starts nothing and searches no program.
func newFleet(o Options) *fleet {
	f := &fleet{o: o, log: o.Log, rows: sync.OnceValue(func() []Server { return configured(o.Servers) }), slots: map[slotKey]*slot{}, scarce: memoryIsScarce}
	f.notices = &notices{o: &f.o}
	f.programs = newPrograms(o, func() []Server { return f.rows() })
	return f
}

// serversOf is slotsFor for a question about this very file: from then on its servers concern the person, who is told when one is missing.
// A look at the whole project must not complain about each language in it.
func (f *fleet) serversOf(path string) []*slot {
	slots := f.slotsFor(path)
	f.notices.concern(slots)
	return slots
}

// slotsFor returns the servers for a file: rows that the person added first, linters last. Of the built-in rows only the first that matches
// the file counts; beside a row that the person added, it counts only if it is installed. It starts nothing.
func (f *fleet) slotsFor(path string) []*slot {
	var main, extra []*slot
	var fits bool // a built-in row has matched
	// One search for all rows reads each folder once.
	look := f.markers.search()
	for _, row := range f.rows() {
		if !row.matches(path) || !row.Extra && !row.Added && fits {
			continue
		}
		root := look.root(path, f.o.Root, row.Workspace)
		// Without a workspace marker (a lock file, go.work) the nearest project marker decides.
		if !look.holds(root, row.Workspace) {
			root = look.root(path, f.o.Root, row.Markers)
			if len(row.Outermost) > 0 {
				root = look.outermost(root, f.o.Root, row.Markers, row.Outermost)
			}
		}
		// Without its marker such a server would serve files of projects that do not use it.
		if row.Required && !look.holds(root, row.Markers) {
			continue
		}
		if len(row.Excluded) > 0 && look.holds(look.root(path, f.o.Root, row.Excluded), row.Excluded) {
			continue
		}
		fits = fits || !row.Extra && !row.Added
		if !row.Extra && !row.Added && len(main) > 0 && !f.programs.installed(row, root) {
			continue
		}
		if s := f.slot(row, root, path); row.Extra {
			extra = append(extra, s)
		} else {
			main = append(main, s)
		}
		if row.hooks.beside != nil {
			if s := row.hooks.beside(f, look, path, root); s != nil {
				main = append(main, s)
			}
		}
	}
	return append(main, extra...)
}

// slot returns the slot of a server, and makes it if there is none. A file outside the project (a library to which a definition leads) goes
// to a server that already has the project loaded, instead of a new one for the library's folder.
func (f *fleet) slot(row Server, root, path string) *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !paths.Within(f.o.Root, path) {
		for k, s := range f.slots {
			if k.id == row.ID && paths.Within(f.o.Root, k.root) {
				return s
			}
		}
	}
	key := slotKey{row.ID, root}
	s := f.slots[key]
	if s == nil {
		s = &slot{fleet: f, spec: row, root: root, changed: make(chan struct{})}
		f.slots[key] = s
	}
	return s
}

// running returns all slots in a fixed order, so that combined answers have the same order in each call.
func (f *fleet) running() []*slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*slot, 0, len(f.slots))
	for _, s := range f.slots {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *slot) int { return strings.Compare(a.spec.ID+"\x00"+a.root, b.spec.ID+"\x00"+b.root) })
	return out
}

// Use keeps the servers running until done is called; done may be called more than once. After the last done they stay for Options.Linger,
// so that closing one session and opening the next does not load the project again; a later question starts them again.
func (f *fleet) Use() (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users++
	if f.unusedTimer != nil {
		f.unusedTimer.Stop()
	}
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.users--; f.users == 0 && !f.closed {
			f.unusedTimer = time.AfterFunc(f.o.Linger, f.stopUnused)
		}
	})
}

// stopUnused stops all servers and the watcher unless they are in use again: the timer may have fired while Use was waiting for mu.
func (f *fleet) stopUnused() {
	f.mu.Lock()
	again := f.users > 0 || f.closed
	f.mu.Unlock()
	if !again {
		f.stopAll(context.Background(), "no session uses it")
	}
}

// Close stops every server for good and waits for them, about two seconds at most. Unlike after stopUnused, no server starts again.
func (f *fleet) Close(ctx context.Context) {
	f.mu.Lock()
	f.closed = true // a running start sees it, and a later one does nothing
	if f.unusedTimer != nil {
		f.unusedTimer.Stop()
	}
	f.mu.Unlock()
	f.stopAll(ctx, "the session ended")
}

// stopAll stops the watcher, then all servers at the same time, and waits for them. why is for the log.
func (f *fleet) stopAll(ctx context.Context, why string) {
	f.mu.Lock()
	// Removed under mu but closed outside it, because the watcher may call the fleet while it ends.
	w := f.watcher
	f.watcher = nil
	f.mu.Unlock()
	if w != nil {
		w.close()
	}
	var wg sync.WaitGroup
	for _, s := range f.running() {
		wg.Go(func() { s.stop(ctx, why) })
	}
	wg.Wait()
}

// host returns the functions of the fleet that a client may call; a client cannot reach other servers except through them.
func (f *fleet) host() host {
	var changed func([]string)
	if f.o.Diagnostics != nil {
		changed = f.problemsChanged
	}
	return host{project: f.o.Root, text: f.text, tsserver: f.tsserver, buffer: f.buffer, unsaved: f.unsaved, changed: changed, notice: f.notices.notice, baseline: f.o.Baseline,
		apply: func(ctx context.Context, label string, edit lsp.WorkspaceEdit, c *client) error {
			if f.o.ApplyEdit == nil {
				return errors.New("this client does not accept edits that a server sends without being asked")
			}
			edits, err := c.edits.resolve(edit)
			if err != nil || len(edits) == 0 {
				return err
			}
			return f.o.ApplyEdit(ctx, c.spec.ID, label, edits)
		}}
}
