package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/keys"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
)

// Workplace is Pillion's surroundings: its folders, the person's keys and trust, and the configuration of each project directory. All Apps
// of a process share one.
type Workplace struct {
	version string // Pillion's version
	Home    string
	State   string // $XDG_STATE_HOME/pillion: sessions, long outputs, logs
	User    string // $XDG_CONFIG_HOME/pillion
	editor  []byte // the editor's settings, JSON

	managed  string // the folder of the managed settings
	keyStore *keys.Store
	secrets  Secrets
	Trust    *trust.Store
	// Catalogue is what was fetched of the models of hosted services.
	Catalogue *models.Catalogue

	mu      sync.Mutex
	configs map[string]loadedConfig         // guarded by mu; by directory
	plugins map[string][]config.PluginLayer // guarded by mu; by directory: what its plugins change
}

// loadedConfig is a configuration and the state of the files from which it was read.
type loadedConfig struct {
	config   *config.Config
	problems []config.Problem
	stamp    string    // config.Stamp of the files; differs when one has changed
	looked   time.Time // when the files were last checked
}

// NewWorkplace finds the folders and reads nothing. Without HOME, as in some containers, it uses a folder of this user below the system's
// temporary folder.
func NewWorkplace(version string) *Workplace {
	home, _ := os.UserHomeDir()
	xdg := func(name, fallback string) string {
		// The XDG Base Directory Specification requires relative paths in these variables to be ignored.
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
	p.Catalogue = &models.Catalogue{File: filepath.Join(p.State, "cache", "models.tsv")}
	p.Catalogue.Install()
	return p
}

// openCodeDir returns the person's OpenCode folder, whose plugins, tools and skills Pillion uses too.
func (p *Workplace) openCodeDir() string {
	return config.Sources{Home: p.Home, Env: os.Getenv}.OpenCodeDir()
}

// IndexArg is the first argument of the process that makes a search index: this program, started again.
const IndexArg = "__index"

// indexes is the folder of the search indexes. The agent's commands cannot write there, so they cannot hide what a search should find.
func (p *Workplace) indexes() string { return filepath.Join(p.State, "cache", "index") }

// index returns where and how search indexes are made; nil if none are wanted.
func (p *Workplace) index(wanted bool) *search.IndexOptions {
	self, err := os.Executable()
	if !wanted || err != nil {
		return nil
	}
	return &search.IndexOptions{Dir: p.indexes(), Build: []string{self, IndexArg}}
}

// IndexReport says whether a folder's project can have a search index, and which there is.
func (p *Workplace) IndexReport(dir string) (text string, ok bool) {
	return search.IndexReport(p.indexes(), dir)
}

// BuildIndex is the program of IndexArg. It returns the exit code.
func BuildIndex(args []string) int { return search.BuildMain(args, withheldFromIndex()) }

// withheldFromIndex returns a test for files of which an index keeps nothing: those that the default rules ask about before they are read, and
// those that by their name hold keys. They are searched each time.
func withheldFromIndex() func(rel string) bool {
	allowed := permission.Unquestioned([]permission.Ruleset{permission.Default()}, "read", "read")
	return func(rel string) bool {
		name := strings.ToLower(path.Base(rel))
		return !allowed(rel) || slices.ContainsFunc(keyFiles, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
	}
}

// keyFiles are names of files with keys and passwords, in lower case.
var keyFiles = []string{
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
	".npmrc", ".pypirc", ".netrc", ".git-credentials", ".pgpass", ".htpasswd", "credentials*", "secrets.*",
}

// Keys returns the stored keys of model providers.
func (p *Workplace) Keys() *keys.Store { return p.keyStore }

// Config returns a directory's configuration and the mistakes in it. It reads the configuration again when one of its files, or a file that
// they include, has changed. Mistakes are never fatal: the valid settings are used. The result is shared and must not be changed; callers
// compare it by identity to see whether anything is different.
func (p *Workplace) Config(cwd string) (*config.Config, []config.Problem) {
	s := p.sources(cwd)
	p.mu.Lock()
	s.Plugins = p.plugins[cwd]
	p.mu.Unlock()
	stamp := config.Stamp(s)
	p.mu.Lock()
	defer p.mu.Unlock() // held while a few small files are read, because whoever waits needs the result
	now := time.Now()
	if l, ok := p.configs[cwd]; ok && l.stamp == stamp && l.config.Current() {
		l.looked = now
		p.configs[cwd] = l
		return l.config, l.problems
	}
	c, problems := config.Load(s)
	problems = append(problems, serverProblems(c)...)
	p.configs[cwd] = loadedConfig{c, problems, stamp, now}
	guard.SetKeyPolicy(guard.KeyPolicy{Allow: p.own().Environment, Known: p.secrets.Known}) // only the person's own settings: a project must not decide which keys commands get
	return c, problems
}

// sources are the places of a directory's settings, without what plugins change.
func (p *Workplace) sources(cwd string) config.Sources {
	root := paths.Worktree(cwd)
	return config.Sources{Cwd: cwd, Root: root, UserDir: p.User, Home: p.Home, ManagedDir: p.managed, Editor: p.editor, Env: os.Getenv, Trusted: p.Trust.Trusted(root), TrustedNow: p.Trust.Trusted}
}

// setPlugins sets what plugins change of a directory's settings.
func (p *Workplace) setPlugins(cwd string, layers []config.PluginLayer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plugins == nil {
		p.plugins = map[string][]config.PluginLayer{}
	}
	p.plugins[cwd] = layers
	delete(p.configs, cwd)
}

// recentConfig returns a directory's configuration as it was at most 100 ms ago. Checking every file takes 0.1 ms, too much for something
// that each tool call does several times. Callers that must not miss a change call Config.
func (p *Workplace) recentConfig(cwd string) *config.Config {
	const moment = 100 * time.Millisecond
	p.mu.Lock()
	l, ok := p.configs[cwd]
	p.mu.Unlock()
	// The files are not checked, so a change is seen after at most a tenth of a second.
	if ok && time.Since(l.looked) < moment {
		return l.config
	}
	c, _ := p.Config(cwd)
	return c
}

// TrustFor sets the trust in the worktree that holds dir, for this process only; trust.Store keeps stored decisions.
func (p *Workplace) TrustFor(dir string, trusted bool) {
	p.Trust.Decide(dir, trusted)
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.configs) // they depend on the trust
}

// own returns the person's settings without those of any project, for what a project must not decide.
func (p *Workplace) own() *config.Config {
	c, _ := config.Load(config.Sources{UserDir: p.User, ManagedDir: p.managed, Editor: p.editor, Env: os.Getenv})
	return c
}

// storePlace returns where sessions are stored: a file or a PostgreSQL address. A project cannot set it.
func (p *Workplace) storePlace() string {
	if s := p.own().Store; s != "" {
		return s
	}
	return filepath.Join(p.State, "pillion.db")
}

// Rules returns the default and the configured rules of a directory, without those of an agent.
func (p *Workplace) Rules(dir string) permission.Ruleset {
	c, _ := p.Config(dir)
	return append(permission.Default(), c.Permission.Rules...)
}

// Directory makes the argument of --cwd absolute, resolves symbolic links and checks that the folder can be read; "" is the working
// directory. The error says what is wrong with it. Links are resolved once, here, because a folder under two names would get two sets of
// servers.
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

// Warn prints configuration mistakes, one per line. It is called at each start, so a file that was copied to a wrong place must not fill
// the screen.
func Warn(w io.Writer, problems []config.Problem) {
	const most = 8 // lines
	for i, p := range problems {
		if i == most && len(problems) > most+1 {
			fmt.Fprintf(w, "configuration: %d more mistakes; pillion config check lists them\n", len(problems)-i)
			return
		}
		fmt.Fprintln(w, "configuration:", p)
	}
}

// Logger returns a log without keys in a file below the state folder, which the first line creates. PILLION_LOG_LEVEL sets its level. The
// caller must call the returned function at the end.
func (p *Workplace) Logger() (*slog.Logger, func()) {
	f := &logFile{max: maxLog, path: filepath.Join(p.State, "log", "pillion.log")}
	level := slog.LevelInfo
	if l := os.Getenv("PILLION_LOG_LEVEL"); l != "" {
		_ = level.UnmarshalText([]byte(l)) // an unknown word leaves the level at info
	}
	return slog.New(slog.NewTextHandler(redactingWriter{f, &p.secrets}, &slog.HandlerOptions{Level: level})), f.close
}

// EditorTrust stores an editor's decision about a folder (said is nil without one), and returns a notice about the settings that have no
// effect without trust; "" when there are none or this process has already told the person.
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
