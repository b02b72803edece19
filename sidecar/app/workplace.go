package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/keys"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Workplace is where Pillion runs: its folders and the configuration of each project directory.
type Workplace struct {
	version string // of this program
	Home    string
	State   string // $XDG_STATE_HOME/pillion: sessions, long outputs, logs
	User    string // $XDG_CONFIG_HOME/pillion
	editor  []byte // the editor's settings, JSON

	kept    *keys.Store
	secrets Secrets
	Trust   *trust.Store

	mu      sync.Mutex
	configs map[string]loaded // guarded by mu; by directory, with the stamp of the files it was read from
}

type loaded struct {
	config   *config.Config
	problems []config.Problem
	stamp    string
	looked   time.Time // when the files were last looked at
}

func NewWorkplace(version string) *Workplace {
	home, _ := os.UserHomeDir()
	xdg := func(name, fallback string) string {
		if d := os.Getenv(name); filepath.IsAbs(d) {
			return filepath.Join(d, "pillion")
		}
		if home == "" {
			return filepath.Join(os.TempDir(), fmt.Sprintf("pillion-%d", os.Getuid()), fallback)
		}
		return filepath.Join(home, fallback, "pillion")
	}
	p := &Workplace{version: version, Home: home, State: xdg("XDG_STATE_HOME", ".local/state"), User: xdg("XDG_CONFIG_HOME", ".config"), configs: map[string]loaded{}}
	p.Trust = &trust.Store{Dir: filepath.Join(p.State, "trust")}
	p.kept = &keys.Store{File: filepath.Join(p.State, "auth.json"), Keyring: keys.System{}}
	return p
}

// Keys are the kept keys of model providers.
func (p *Workplace) Keys() *keys.Store { return p.kept }

// Config loads a directory's configuration; it is read again when one of its files, or one they take in, has changed.
func (p *Workplace) Config(cwd string) (*config.Config, []config.Problem) {
	root := paths.Worktree(cwd)
	s := config.Sources{Cwd: cwd, Root: root, UserDir: p.User, Home: p.Home, Editor: p.editor, Env: os.Getenv, Trusted: p.Trust.Trusted(root), TrustedNow: p.Trust.Trusted}
	stamp := config.Stamp(s)
	p.mu.Lock()
	defer p.mu.Unlock() // reading a few small files; nobody needs a configuration without waiting for it
	now := time.Now()
	if l, ok := p.configs[cwd]; ok && l.stamp == stamp && l.config.Current() {
		l.looked = now
		p.configs[cwd] = l
		return l.config, l.problems
	}
	c, problems := config.Load(s)
	problems = append(problems, serverProblems(c)...)
	p.configs[cwd] = loaded{c, problems, stamp, now}
	guard.SetKeyPolicy(guard.KeyPolicy{Allow: p.own().Environment, Known: p.secrets.Known}) // a project has no say in it
	return c, problems
}

// lately is a directory's configuration as it was a moment ago at most. Looking at every file costs a tenth of a
// millisecond, which what is done several times in a tool call cannot afford.
func (p *Workplace) lately(cwd string) *config.Config {
	const moment = 100 * time.Millisecond
	p.mu.Lock()
	l, ok := p.configs[cwd]
	p.mu.Unlock()
	if ok && time.Since(l.looked) < moment {
		return l.config
	}
	c, _ := p.Config(cwd)
	return c
}

// TrustFor decides about the worktree that holds dir, for this process only.
func (p *Workplace) TrustFor(dir string, trusted bool) {
	p.Trust.Decide(dir, trusted)
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.configs) // what was read under another trust
}

// own are the person's settings without any project's.
func (p *Workplace) own() *config.Config {
	c, _ := config.Load(config.Sources{UserDir: p.User, Editor: p.editor, Env: os.Getenv})
	return c
}

// storePlace is where sessions are kept. A project's files have no say in it.
func (p *Workplace) storePlace() string {
	if s := p.own().Store; s != "" {
		return s
	}
	return filepath.Join(p.State, "pillion.db")
}

// Rules are the effective ones of the default agent in a directory.
func (p *Workplace) Rules(dir string) permission.Ruleset {
	c, _ := p.Config(dir)
	return append(permission.Default(), c.Permission.Rules...)
}

// Directory makes a --cwd absolute, with symlinks resolved, and checks that it can be worked in.
func Directory(path string) (string, error) {
	if path == "" {
		var err error
		if path, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("the current directory cannot be found (%w); change to one that exists", err)
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s does not exist", abs)
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a directory", abs)
	}
	d, err := os.Open(abs)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", abs, err)
	}
	return abs, d.Close()
}

// Warn prints configuration mistakes.
func Warn(w io.Writer, problems []config.Problem) {
	for _, p := range problems {
		fmt.Fprintln(w, "configuration:", p)
	}
}

// Logger writes to a file under the state folder, made at the first line, and warnings to standard error too.
func (p *Workplace) Logger() (*slog.Logger, func()) {
	f := &logFile{max: maxLog, path: filepath.Join(p.State, "log", "pillion.log")}
	level := slog.LevelInfo
	if l := os.Getenv("PILLION_LOG_LEVEL"); l != "" {
		_ = level.UnmarshalText([]byte(l)) // an unknown word keeps info
	}
	return slog.New(slog.NewTextHandler(hiding{f, &p.secrets}, &slog.HandlerOptions{Level: level})), f.close
}

// EditorTrust is the Server's Trust. What is held back is told once in the life of the process.
func (p *Workplace) EditorTrust(cwd string, said *bool) string {
	if said != nil {
		p.TrustFor(cwd, *said)
	}
	c, _ := p.Config(cwd)
	root := trust.RealPath(paths.Worktree(cwd))
	if !p.Trust.FirstNotice(root, trust.Digest(c.Held())) {
		return ""
	}
	return trust.Notice(c, root, said != nil)
}
