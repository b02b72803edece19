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

// Workplace is where Pillion runs: its folders, the person's keys and trust, and the configuration of each project
// directory. Every App of a process has the same one.
type Workplace struct {
	version string // of this program
	Home    string
	State   string // $XDG_STATE_HOME/pillion: sessions, long outputs, logs
	User    string // $XDG_CONFIG_HOME/pillion
	editor  []byte // the editor's settings, JSON

	managed  string // the folder of the managed settings
	keyStore *keys.Store
	secrets  Secrets
	Trust    *trust.Store

	mu      sync.Mutex
	configs map[string]loadedConfig // guarded by mu; by directory, with the stamp of the files it was read from
}

// loadedConfig is a configuration and the state of the files that it was read from.
type loadedConfig struct {
	config   *config.Config
	problems []config.Problem
	stamp    string
	looked   time.Time // when the files were last looked at
}

// NewWorkplace finds the folders and reads nothing. Without HOME (some containers) a folder for this user below the
// system's temporary one is used.
func NewWorkplace(version string) *Workplace {
	home, _ := os.UserHomeDir()
	xdg := func(name, fallback string) string {
		// XDG variables that are not absolute are ignored, as the XDG Base Directory Specification asks.
		if d := os.Getenv(name); filepath.IsAbs(d) {
			return filepath.Join(d, "pillion")
		}
		if home == "" {
			return filepath.Join(os.TempDir(), fmt.Sprintf("pillion-%d", os.Getuid()), fallback)
		}
		return filepath.Join(home, fallback, "pillion")
	}
	p := &Workplace{version: version, Home: home, State: xdg("XDG_STATE_HOME", ".local/state"), User: xdg("XDG_CONFIG_HOME", ".config"), managed: config.ManagedDir(), configs: map[string]loadedConfig{}}
	p.Trust = &trust.Store{Dir: filepath.Join(p.State, "trust")}
	p.keyStore = &keys.Store{File: filepath.Join(p.State, "auth.json"), Keyring: keys.System{}}
	return p
}

// openCodeDir is OpenCode's folder of the person, which holds plugins, tools and skills that count here too.
func (p *Workplace) openCodeDir() string {
	return config.Sources{Home: p.Home, Env: os.Getenv}.OpenCodeDir()
}

// Keys are the stored keys of model providers.
func (p *Workplace) Keys() *keys.Store { return p.keyStore }

// Config returns a directory's configuration and its mistakes. It is read again when one of its files, or one that they
// include, has changed. Problems are never fatal: what is right is used. The result is shared and must not be changed;
// callers compare it by identity to see whether anything is different.
func (p *Workplace) Config(cwd string) (*config.Config, []config.Problem) {
	root := paths.Worktree(cwd)
	s := config.Sources{Cwd: cwd, Root: root, UserDir: p.User, Home: p.Home, ManagedDir: p.managed, Editor: p.editor, Env: os.Getenv, Trusted: p.Trust.Trusted(root), TrustedNow: p.Trust.Trusted}
	stamp := config.Stamp(s)
	p.mu.Lock()
	defer p.mu.Unlock() // held while a few small files are read: whoever waits needs the result
	now := time.Now()
	if l, ok := p.configs[cwd]; ok && l.stamp == stamp && l.config.Current() {
		l.looked = now
		p.configs[cwd] = l
		return l.config, l.problems
	}
	c, problems := config.Load(s)
	problems = append(problems, serverProblems(c)...)
	p.configs[cwd] = loadedConfig{c, problems, stamp, now}
	guard.SetKeyPolicy(guard.KeyPolicy{Allow: p.own().Environment, Known: p.secrets.Known}) // of the person alone: a project must not decide which keys commands get
	return c, problems
}

// recentConfig is a directory's configuration as it was at most 100 ms ago. Checking every file takes 0.1 ms, too
// much for what happens several times in a tool call. Whoever must not miss a change calls Config.
func (p *Workplace) recentConfig(cwd string) *config.Config {
	const moment = 100 * time.Millisecond
	p.mu.Lock()
	l, ok := p.configs[cwd]
	p.mu.Unlock()
	// The files are not looked at, so a change shows after a tenth of a second at the latest.
	if ok && time.Since(l.looked) < moment {
		return l.config
	}
	c, _ := p.Config(cwd)
	return c
}

// TrustFor decides about the worktree that holds dir, for this process only; stored decisions are trust.Store's.
func (p *Workplace) TrustFor(dir string, trusted bool) {
	p.Trust.Decide(dir, trusted)
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.configs) // they were read under another trust
}

// own are the person's settings without those of any project, for what a project must not decide.
func (p *Workplace) own() *config.Config {
	c, _ := config.Load(config.Sources{UserDir: p.User, ManagedDir: p.managed, Editor: p.editor, Env: os.Getenv})
	return c
}

// storePlace is where sessions are stored: a file or a PostgreSQL address. A project cannot set it.
func (p *Workplace) storePlace() string {
	if s := p.own().Store; s != "" {
		return s
	}
	return filepath.Join(p.State, "pillion.db")
}

// Rules are the defaults and the configured rules of a directory, without those of an agent.
func (p *Workplace) Rules(dir string) permission.Ruleset {
	c, _ := p.Config(dir)
	return append(permission.Default(), c.Permission.Rules...)
}

// Directory makes a --cwd absolute, with symbolic links resolved, and checks that it can be read; "" is the working
// directory. The error says what is wrong with it. Links are resolved here, once: a folder under two names would get
// two sets of servers.
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

// Warn prints configuration mistakes, one a line.
func Warn(w io.Writer, problems []config.Problem) {
	for _, p := range problems {
		fmt.Fprintln(w, "configuration:", p)
	}
}

// Logger writes to a file under the state folder, which is created by the first line, without keys. PILLION_LOG_LEVEL
// sets its level. The caller must call the returned function at the end.
func (p *Workplace) Logger() (*slog.Logger, func()) {
	f := &logFile{max: maxLog, path: filepath.Join(p.State, "log", "pillion.log")}
	level := slog.LevelInfo
	if l := os.Getenv("PILLION_LOG_LEVEL"); l != "" {
		_ = level.UnmarshalText([]byte(l)) // an unknown word leaves the level at info
	}
	return slog.New(slog.NewTextHandler(redactingWriter{f, &p.secrets}, &slog.HandlerOptions{Level: level})), f.close
}

// EditorTrust takes an editor's decision about a folder (said is nil without one) and returns a notice of the
// settings that are held back; "" when there are none or the person was told in this process before.
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
