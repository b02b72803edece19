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

// Options of New. Only Root is needed.
type Options struct {
	Root    string                  // the project: absolute; servers' roots are looked for below it
	Servers map[string]ServerConfig // overrides by id; see Servers for the ids
	// Buffer is the live text of an open document; ok is false when the disk has the say.
	Buffer func(path string) (text string, ok bool)
	// Unsaved lists the open documents whose text is not the disk's. Servers are told of them also where nobody asks about
	// them: what is asked about may use them. nil: only those that are asked about.
	Unsaved func() []string
	// ApplyEdit takes an edit a server asks for by itself to the person. nil refuses.
	ApplyEdit func(ctx context.Context, server, label string, edits []FileEdit) error
	// Diagnostics hears of every file whose problems have changed, when they are final or change again; never of a
	// proposal's. It must not call the Manager and must not block. nil: nobody listens.
	Diagnostics func(FileReport)
	// Notice is told what a person should know once: a server that crashed for good, a server's error message.
	Notice func(server, text string)
	// Missing is told instead of Notice, also once, when a server's program is not installed, so that whoever shows it can
	// offer to install it. Nil: Notice is told.
	Missing func(server, text string)
	Log     *slog.Logger
	// Bin are directories looked into before PATH, e.g. Pillion's own cache of installed servers.
	Bin []string
	// Trusted allows programs out of the project itself (node_modules/.bin): what a checkout brings along then runs.
	Trusted bool
	Idle    time.Duration // a server nobody used for so long is stopped; 0 is ten minutes, negative never
	Linger  time.Duration // … and all of them so long after the last Use has ended; 0 is thirty seconds
	Memory  int64         // what all servers may weigh together, in bytes, before unused ones are stopped; 0 is 4 GiB, negative no limit
	NoWatch bool          // no file watcher
	// Dial replaces the start of a process, for tests. What it returns is the server's output and input.
	Dial func(s Server, root string) (io.ReadCloser, io.WriteCloser, error)
	// Start starts a server's process so that it ends with this program, however that ends; nil: by the platform's means.
	Start func(*exec.Cmd) error
}

// Manager runs one server per table row and root. Its methods are safe for concurrent use.
type Manager struct {
	o    Options
	rows func() []Server
	log  *slog.Logger

	markers  markers
	programs *programs

	telling sync.Mutex // held while Diagnostics is told; taken before any other lock

	mu       sync.Mutex // guards what follows; servers start outside it
	slots    map[slotKey]*slot
	closed   bool
	watcher  *watcher
	noticed  map[string]bool
	told     map[string]FileReport // what Diagnostics heard last; files without problems are not kept
	users    int                   // of Use
	weighed  time.Time             // when the servers' memory was looked at last
	leaving  *time.Timer           // stops everything when nobody has come back
	newFiles map[string]bool       // proposed and not on disk when checked: their first write is a creation
}

type slotKey struct{ id, root string }

// New makes a manager. Nothing is started or looked up before it is needed.
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

// text is what the person sees of a file: the buffer, else the disk.
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

// slotsFor are the servers that answer for a file: the person's own first, linters last. The first of the table's
// that fits is taken; where the person has one of their own it is taken if it is there.
func (m *Manager) slotsFor(path string) []*slot {
	var main, extra []*slot
	var fits bool // one of the table
	look := m.markers.look()
	for _, row := range m.rows() {
		if !row.matches(path) || !row.Extra && !row.Added && fits {
			continue
		}
		root := look.root(path, m.o.Root, row.Workspace)
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

// slot finds or makes the place of a server. A file outside the project is answered by a server that already runs.
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

// Running reports whether any server has been started and is there.
func (m *Manager) Running() bool { return len(m.running()) > 0 }

// Warm starts the servers for a file in the background.
func (m *Manager) Warm(path string) {
	go func() {
		for _, s := range m.slotsFor(path) {
			s.start()
		}
	}()
}

// Close stops every server. It waits for them, at most about two seconds each, side by side.
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

// Use says that somebody works with the project until done is called. With the last of them gone the servers stop after
// a while; whoever asks again starts them again.
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

// leave stops all servers and the watcher when nobody uses them.
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

func (m *Manager) notice(server, text string) {
	m.once(m.o.Notice, server, text)
}

// once tells a person something that they have not been told yet.
func (m *Manager) once(tell func(server, text string), server, text string) {
	m.mu.Lock()
	first := !m.noticed[server+text]
	m.noticed[server+text] = true
	m.mu.Unlock()
	if first && tell != nil {
		tell(server, text)
	}
}

// missing tells once that a server is not to be had. A linter that nobody installed is nobody's loss.
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

func (m *Manager) host() host {
	var changed func([]string)
	if m.o.Diagnostics != nil {
		changed = m.live
	}
	return host{text: m.text, tsserver: m.tsserver, buffer: m.buffer, unsaved: m.unsaved, changed: changed, notice: m.notice,
		apply: func(ctx context.Context, label string, edit lsp.WorkspaceEdit, c *client) error {
			if m.o.ApplyEdit == nil {
				return errors.New("edits of a server's own accord are not accepted here")
			}
			edits, err := c.fileEdits(edit)
			if err != nil || len(edits) == 0 {
				return err
			}
			return m.o.ApplyEdit(ctx, c.spec.ID, label, edits)
		}}
}

// Lookup says of every server of the table whether it can be started, for pillion doctor.
type Lookup struct {
	ID, Path, Install string
	Extensions        []string
	Found             bool
}

// Doctor looks every server up. It starts none.
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
