package external

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Known is an agent that Pillion can start without configuration.
type Known struct {
	Agent
	// Programs are the command lines that start the agent; the first one whose program is installed is used.
	Programs [][]string
	// Package is the agent's npm package, which the command line of Npx runs.
	Package string
	Args    []string // arguments for the package's program
	Home    []string // files and folders of its own state, below the home folder
}

// known lists the agents that work without configuration. All of them write files and run commands by themselves, so they work in a draft.
// Keys are the variables that each maker documents for signing in without a dialog.
var known = []Known{
	{Agent: Agent{ID: "claude", Name: "Claude Code", SignIn: "claude, then /login",
		Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		// Its mode without any question: Pillion's rules would see nothing of what it does. As root it does not even start with that mode.
		Meta: map[string]any{"claudeCode": map[string]any{"options": map[string]any{"allowDangerouslySkipPermissions": false}}}},
		Programs: [][]string{{"claude-agent-acp"}, {"claude-code-acp"}}, Package: "@agentclientprotocol/claude-agent-acp",
		Home: []string{".claude", ".claude.json"}},
	{Agent: Agent{ID: "codex", Name: "Codex", SignIn: "codex login", Keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
		// Its sandbox makes namespaces, which a process in ours may not.
		Contained: []string{"-c", `sandbox_mode="danger-full-access"`}},
		Programs: [][]string{{"codex-acp"}}, Package: "@zed-industries/codex-acp", Home: []string{".codex"}},
	{Agent: Agent{ID: "gemini", Name: "Gemini CLI", SignIn: "gemini", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
		Programs: [][]string{{"gemini", "--experimental-acp"}}, Package: "@google/gemini-cli", Args: []string{"--experimental-acp"}, Home: []string{".gemini"}},
	{Agent: Agent{ID: "opencode", Name: "OpenCode", SignIn: "opencode auth login", Keys: []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}},
		Programs: [][]string{{"opencode", "acp"}}, Package: "opencode-ai", Args: []string{"acp"},
		Home: []string{".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"}},
}

// KnownAgents are the agents that need no configuration once they are installed.
func KnownAgents() []Known { return slices.Clone(known) }

// Find returns the known agent with this id.
func Find(id string) (Known, bool) {
	i := slices.IndexFunc(known, func(k Known) bool { return k.ID == id })
	if i < 0 {
		return Known{}, false
	}
	return known[i], true
}

// Installed returns the command line of the first of the agent's programs that is on PATH; nil when none is.
func (k Known) Installed() []string {
	for _, argv := range k.Programs {
		if programs.has(argv[0], time.Now()) {
			return argv
		}
	}
	return nil
}

// programs are what was found on PATH a moment ago.
var programs onPath

// onPath remembers which programs are on PATH. Each new session and each list of models asks for all known agents, which are a hundred files
// in the folders of a usual PATH.
type onPath struct {
	mu    sync.Mutex
	path  string          // guarded by mu; the value of PATH that found is for
	seen  time.Time       // guarded by mu
	found map[string]bool // guarded by mu; by program
}

// onPathFor is how long an answer counts: an agent that was installed just now is offered after that.
const onPathFor = time.Second

// has reports whether a program is on PATH.
func (o *onPath) has(program string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if path, since := os.Getenv("PATH"), now.Sub(o.seen); o.found == nil || path != o.path || since < 0 || since >= onPathFor {
		o.path, o.seen, o.found = path, now, map[string]bool{}
	}
	found, known := o.found[program]
	if !known {
		_, err := exec.LookPath(program)
		found = err == nil
		o.found[program] = found
	}
	return found
}

// Npx returns the command line that runs the agent with npx, which downloads it where necessary.
func (k Known) Npx() []string { return append([]string{"npx", "-y", k.Package}, k.Args...) }

// moved pairs a folder below the home folder with the environment variable that puts it elsewhere: those of the XDG Base Directory
// Specification, and the agents' own. Without it an agent whose CODEX_HOME is set could not write its own state.
var moved = [][2]string{
	{".config", "XDG_CONFIG_HOME"}, {".local/share", "XDG_DATA_HOME"}, {".local/state", "XDG_STATE_HOME"}, {".cache", "XDG_CACHE_HOME"},
	{".claude", "CLAUDE_CONFIG_DIR"}, {".codex", "CODEX_HOME"},
}

// Folders returns list as absolute paths. Relative paths, and those that begin with ~/, are below home, unless an environment variable in
// moved puts them elsewhere.
func Folders(home string, list []string) (out []string) {
	for _, p := range list {
		p = strings.TrimPrefix(p, "~/")
		for _, m := range moved {
			rest, below := strings.CutPrefix(p, m[0])
			if to := os.Getenv(m[1]); below && (rest == "" || rest[0] == '/') && filepath.IsAbs(to) {
				p = filepath.Join(to, filepath.FromSlash(rest))
				break
			}
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(home, filepath.FromSlash(p))
		}
		out = append(out, p)
	}
	return out
}
