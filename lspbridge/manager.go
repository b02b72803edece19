package lspbridge

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Options configures New. Only Root is required.
type Options struct {
	Root    string                  // the project: absolute; servers' roots are looked for below it
	Servers map[string]ServerConfig // overrides by server id; see Servers for the ids
	// Buffer returns the live text of a document that is open in the editor; ok is false when the file on
	// disk counts. It is called often and must be fast.
	Buffer func(path string) (text string, ok bool)
	// Unsaved lists the open documents whose text differs from the disk. Servers get them even when nobody
	// asks about them, because other files may use what they declare. nil: servers get only the files that
	// are asked about.
	Unsaved func() []string
	// ApplyEdit brings an edit that a server sends by itself before the person; its error is what the
	// server gets. nil refuses such edits.
	ApplyEdit func(ctx context.Context, server, label string, edits []FileEdit) error
	// Diagnostics is called for every file whose problems have changed, when they are final and when they
	// change again; never for a proposal's. Calls do not overlap. It must not call the Manager and must not
	// block. nil: nothing is followed live.
	Diagnostics func(FileReport)
	// Notice is called once for each text that a person should know: a server that crashed too often, a
	// server's error message.
	Notice func(server, text string)
	// Missing is called once, instead of Notice, when a server's program is not installed, so that an
	// editor can offer to install it. nil: Notice is called.
	Missing func(server, text string)
	Log     *slog.Logger
	// Bin are directories searched before PATH, e.g. Pillion's own cache of installed servers.
	Bin []string
	// Trusted allows programs out of the project itself (node_modules/.bin). A checkout may bring any
	// program along: leave it false until the person has trusted the folder.
	Trusted bool
	Idle    time.Duration // stops a server that was not used for so long; 0 is ten minutes, negative never
	Linger  time.Duration // stops all servers so long after the last Use has ended; 0 is thirty seconds, so that a reloaded editor finds them running
	Memory  int64         // bytes that all servers together may use before unused ones are stopped; 0 is 4 GiB, negative no limit
	NoWatch bool          // do not watch the files on disk
	// Dial connects to a server instead of starting a process; for tests. It returns the server's output
	// and input.
	Dial func(s Server, root string) (io.ReadCloser, io.WriteCloser, error)
	// Start starts a server's process so that it ends with this program, however this program ends. nil:
	// what the platform offers.
	Start func(*exec.Cmd) error
}

// Manager runs one server for each row of the table and project root, and combines their answers. Its
// methods may be called concurrently. No lock is held while a server is asked.
type Manager struct {
	o    Options
	rows func() []Server
	log  *slog.Logger

	markers  markers
	programs *programs

	telling sync.Mutex // held while Options.Diagnostics is called, so that calls do not overlap; taken before any other lock

	mu       sync.Mutex // guards what follows; never held while a server starts
	slots    map[slotKey]*slot
	closed   bool
	watcher  *watcher
	noticed  map[string]bool
	told     map[string]FileReport // what Options.Diagnostics got last; files without problems are not kept
	users    int                   // how many Use have not ended
	weighed  time.Time             // when the servers' memory was measured last
	leaving  *time.Timer           // stops everything when no new Use begins in time
	newFiles map[string]bool       // proposed and not on disk when checked: servers are told "created", not "changed", when they are written
}

// slotKey identifies a server: a row's id and the root it works in. A monorepo may run one row for several
// roots.
type slotKey struct{ id, root string }

// New makes a manager. It starts nothing and looks for no program until a file needs one.
func New(o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Idle == 0 {
		o.Idle = 10 * time.Minute
	}
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Linger == 0 {
		o.Linger = 30 * time.Second
	}
	o.Root = filepath.Clean(o.Root)
	m := &Manager{o: o, log: o.Log, rows: sync.OnceValue(func() []Server { return configured(o.Servers) }),
		slots: map[slotKey]*slot{}, noticed: map[string]bool{}, told: map[string]FileReport{}, newFiles: map[string]bool{}}
	m.programs = newPrograms(o, func() []Server { return m.rows() })
	return m
}

// text is what the person sees of a file: the editor's buffer, else the file on disk. ok is false for what
// is no regular file, or larger than 16 MiB, which no server reads in a useful time.
func (m *Manager) text(path string) (string, bool) {
	if t, ok := m.buffer(path); ok {
		return t, true
	}
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxMessage/4 {
		return "", false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	return decodeText(b), true
}

// slotsFor returns the servers for a file: the person's own rows first, linters last. Of the table's rows only
// the first that matches the file counts, and beside a server of the person's own only if it is installed. It
// starts nothing.
func (m *Manager) slotsFor(path string) []*slot {
	var main, extra []*slot
	var fits bool // one of the table
	look := m.markers.look()
	for _, row := range m.rows() {
		if !row.matches(path) || !row.Extra && !row.Added && fits {
			continue
		}
		root := look.root(path, m.o.Root, row.Workspace)
		// No workspace marker (a lock file, go.work) above: the nearest project marker decides.
		if !look.holds(root, row.Workspace) {
			root = look.root(path, m.o.Root, row.Markers)
			if len(row.Outermost) > 0 {
				root = look.outermost(root, m.o.Root, row.Markers, row.Outermost)
			}
		}
		if row.Required && !look.holds(root, row.Markers) {
			continue
		}
		if len(row.Excluded) > 0 && look.holds(look.root(path, m.o.Root, row.Excluded), row.Excluded) {
			continue
		}
		fits = fits || !row.Extra && !row.Added
		if !row.Extra && !row.Added && len(main) > 0 && !m.programs.installed(row, root) {
			continue
		}
		if s := m.slot(row, root, path); row.Extra {
			extra = append(extra, s)
		} else {
			main = append(main, s)
		}
		if row.hooks.beside != nil {
			if s := row.hooks.beside(m, look, path, root); s != nil {
				main = append(main, s)
			}
		}
	}
	return append(main, extra...)
}

// slot finds or makes the slot of a server. A file outside the project (a library that a definition leads
// to) goes to a server that already has the project loaded, instead of a new one for the library's folder.
func (m *Manager) slot(row Server, root, path string) *slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !paths.Within(m.o.Root, path) {
		for k, s := range m.slots {
			if k.id == row.ID && paths.Within(m.o.Root, k.root) {
				return s
			}
		}
	}
	key := slotKey{row.ID, root}
	s := m.slots[key]
	if s == nil {
		s = &slot{m: m, spec: row, root: root, changed: make(chan struct{})}
		m.slots[key] = s
	}
	return s
}

// running are all slots in a fixed order, so that combined answers do not change from call to call.
func (m *Manager) running() []*slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*slot, 0, len(m.slots))
	for _, s := range m.slots {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *slot) int { return strings.Compare(a.spec.ID+"\x00"+a.root, b.spec.ID+"\x00"+b.root) })
	return out
}

// Serves reports whether some server of the table is for files like this one, installed or not. It starts nothing.
func (m *Manager) Serves(path string) bool { return len(m.slotsFor(path)) > 0 }

// Running reports whether any server has been needed so far.
func (m *Manager) Running() bool { return len(m.running()) > 0 }

// Warm starts the servers for a file in the background, e.g. when the agent reads it: an edit is likely to
// follow.
func (m *Manager) Warm(path string) {
	go func() {
		for _, s := range m.slotsFor(path) {
			s.start()
		}
	}()
}

// Close stops every server and waits for them, about two seconds at most. The Manager starts nothing
// afterwards.
func (m *Manager) Close(ctx context.Context) {
	m.mu.Lock()
	m.closed = true
	if m.leaving != nil {
		m.leaving.Stop()
	}
	w := m.watcher
	m.watcher = nil
	m.mu.Unlock()
	if w != nil {
		w.close()
	}
	var wg sync.WaitGroup
	for _, s := range m.running() {
		wg.Go(func() { s.stop(ctx, "the session ended") })
	}
	wg.Wait()
}

// Use keeps the servers running until done is called. After the last done they stop when Options.Linger
// has passed; a later question starts them again. Calling done twice is harmless.
func (m *Manager) Use() (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users++
	if m.leaving != nil {
		m.leaving.Stop()
	}
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.users--; m.users == 0 && !m.closed {
			m.leaving = time.AfterFunc(m.o.Linger, m.leave)
		}
	})
}

// leave stops all servers and the watcher, unless somebody uses them again.
func (m *Manager) leave() {
	m.mu.Lock()
	if m.users > 0 || m.closed {
		m.mu.Unlock()
		return
	}
	w := m.watcher
	m.watcher = nil
	m.mu.Unlock()
	if w != nil {
		w.close()
	}
	for _, s := range m.running() {
		s.stop(context.Background(), "no session uses it")
	}
}

// notice reports a text about a server once.
func (m *Manager) notice(server, text string) {
	m.once(m.o.Notice, server, text)
}

// once calls tell unless the same text has been reported before: every edit would repeat it.
func (m *Manager) once(tell func(server, text string), server, text string) {
	m.mu.Lock()
	first := !m.noticed[server+text]
	m.noticed[server+text] = true
	m.mu.Unlock()
	if first && tell != nil {
		tell(server, text)
	}
}

// missing reports once that a server's program is not installed. Linters are left out: a project works
// without them.
func (m *Manager) missing(row Server, why error) {
	if row.Extra {
		return
	}
	tell := m.o.Missing
	if tell == nil {
		tell = m.o.Notice
	}
	m.once(tell, row.ID, why.Error()+". Edits to "+strings.Join(append(slices.Clone(row.Extensions), row.Filenames...), ", ")+" files are not checked by it.")
}

// host is what clients may use of this manager.
func (m *Manager) host() host {
	var changed func([]string)
	if m.o.Diagnostics != nil {
		changed = m.live
	}
	return host{text: m.text, tsserver: m.tsserver, buffer: m.buffer, unsaved: m.unsaved, changed: changed, notice: m.notice,
		apply: func(ctx context.Context, label string, edit lsp.WorkspaceEdit, c *client) error {
			if m.o.ApplyEdit == nil {
				return errors.New("this client does not accept edits that a server sends without being asked")
			}
			edits, err := c.fileEdits(edit)
			if err != nil || len(edits) == 0 {
				return err
			}
			return m.o.ApplyEdit(ctx, c.spec.ID, label, edits)
		}}
}

// Lookup is the result of looking for one server of the table, for pillion doctor. Path is that of the
// program; Install is the command or page by which a person gets it.
type Lookup struct {
	ID, Path, Install string
	Extensions        []string
	Found             bool
}

// Doctor looks for the program of every server. It starts none.
func (m *Manager) Doctor() []Lookup {
	var out []Lookup
	for _, row := range m.rows() {
		l := Lookup{ID: row.ID, Install: row.Install, Extensions: append(slices.Clone(row.Extensions), row.Filenames...)}
		if _, argv, err := m.programs.find(row, m.o.Root); err == nil {
			l.Found, l.Path = true, argv[0]
		}
		out = append(out, l)
	}
	return out
}
