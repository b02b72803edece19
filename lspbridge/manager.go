package lspbridge

import (
	"context"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// Options configures New. Only Root is required.
type Options struct {
	Root    string                  // absolute path of the project; the servers' roots are searched below it
	Servers map[string]ServerConfig // overrides by server id; see Servers for the ids
	// Buffer returns the live text of a document that is open in the editor; ok is false when the file on
	// disk counts. It is called often and must be fast.
	Buffer func(path string) (text string, ok bool)
	// Unsaved lists the open documents whose text differs from the disk. Servers are sent these even without a question about them, because
	// other files may use their declarations. nil: servers are sent only the files of questions.
	Unsaved func() []string
	// ApplyEdit shows the person an edit that a server requests on its own; its error is the answer to the server. nil refuses such edits.
	ApplyEdit func(ctx context.Context, server, label string, edits []FileEdit) error
	// Diagnostics is called for every file whose problems have changed, when they are final and when they change again; never for a
	// proposal. Calls do not overlap. It must not call the Manager and must not block. nil: problems are not followed live.
	Diagnostics func(FileReport)
	// Notice is called once for each text that a person should read: a server that crashed too often, a server's error message.
	Notice func(server, text string)
	// Missing is called once, instead of Notice, when a server's program is not installed, so that an
	// editor can offer to install it. nil: Notice is called.
	Missing func(server, text string)
	Log     *slog.Logger
	// Bin are folders that are searched before PATH, such as Pillion's cache of installed servers.
	Bin []string
	// Trusted allows programs from the project itself (node_modules/.bin). A checkout may contain any program, so set it only for a trusted
	// folder.
	Trusted bool
	Idle    time.Duration // a server unused for so long is stopped, sooner where memory is scarce; 0 is ten minutes, negative never
	Linger  time.Duration // all servers stop so long after the last Use has ended; 0 is thirty seconds, so that a reloaded editor finds them running
	// Baseline is how long a write that was not checked as a proposal waits for the problems before it; 0 is one second.
	Baseline time.Duration
	Memory   int64 // bytes that all servers together may use before unused ones are stopped; 0 is 4 GiB, negative no limit
	NoWatch  bool  // do not watch the files on disk
	// Dial connects to a server instead of starting a process; for tests. It returns the server's output
	// and input.
	Dial func(s Server, root string) (io.ReadCloser, io.WriteCloser, error)
	// Start starts a server's process such that it ends with this program, however this program ends. nil: exec.Cmd.Start with what the
	// platform offers.
	Start func(*exec.Cmd) error
}

// Manager runs one server for each row of the table and project root, and combines their answers. The servers belong to the fleet; the
// other parts have the methods that ask them. All methods may be called concurrently. No lock is held while a server is asked.
type Manager struct {
	*fleet
	questions
	*verdicts
	live *liveReports
}

// New makes a manager. It starts nothing and searches no program until a file needs one.
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
	f := newFleet(o)
	m := &Manager{fleet: f, questions: questions{f}, verdicts: &verdicts{fleet: f}, live: &liveReports{fleet: f}}
	f.problemsChanged = m.live.reportChanged
	return m
}

// Serves reports whether the table has a server for this kind of file, installed or not. It starts nothing.
func (m *Manager) Serves(path string) bool { return len(m.slotsFor(path)) > 0 }

// Running reports whether a server was needed for any file so far.
func (m *Manager) Running() bool { return len(m.running()) > 0 }

// Warm starts the servers for a file in the background, such as when the agent reads it and is likely to edit it next.
func (m *Manager) Warm(path string) {
	go func() {
		for _, s := range m.serversOf(path) {
			s.start()
		}
	}()
}

// Lookup is the result of searching one server of the table, for pillion doctor. Path is the path of its program; Install is the command or
// page with which a person gets it.
type Lookup struct {
	ID, Path, Install string
	Extensions        []string
	Found             bool
	Files             int // how many of the files given to Doctor it serves
}

// Doctor searches the program of every server and counts which of the files, absolute paths, each would serve. It starts none.
func (m *Manager) Doctor(files ...string) []Lookup {
	serves := map[string]int{}
	for _, file := range files {
		for _, s := range m.slotsFor(file) {
			serves[s.spec.ID]++
		}
	}
	var out []Lookup
	for _, row := range m.rows() {
		l := Lookup{ID: row.ID, Install: row.Install, Files: serves[row.ID], Extensions: append(slices.Clone(row.Extensions), row.Filenames...)}
		if _, argv, err := m.programs.find(row, m.o.Root); err == nil {
			l.Found, l.Path = true, argv[0]
		}
		out = append(out, l)
	}
	return out
}
