package external

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Known is what is known of an agent besides its configuration.
type Known struct {
	Agent
	// Programs are the command lines that start it, the first one that is installed counts.
	Programs [][]string
	// Package is its npm package, for people who do not have it.
	Package string
	Args    []string // of the package's program
	Home    []string // its folders below the home folder
}

// Agents that are known by name. All of them write files and run commands by themselves, so they work in a draft. Keys are the variables
// that each maker documents for signing in without its own dialog.
var known = []Known{
	{Agent: Agent{ID: "claude", Name: "Claude Code", SignIn: "claude, then /login",
		Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}},
		Programs: [][]string{{"claude-agent-acp"}, {"claude-code-acp"}}, Package: "@agentclientprotocol/claude-agent-acp",
		Home: []string{".claude", ".claude.json"}},
	{Agent: Agent{ID: "codex", Name: "Codex", SignIn: "codex login", Keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"}},
		Programs: [][]string{{"codex-acp"}}, Package: "@zed-industries/codex-acp", Home: []string{".codex"}},
	{Agent: Agent{ID: "gemini", Name: "Gemini CLI", SignIn: "gemini", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
		Programs: [][]string{{"gemini", "--experimental-acp"}}, Package: "@google/gemini-cli", Args: []string{"--experimental-acp"}, Home: []string{".gemini"}},
	{Agent: Agent{ID: "opencode", Name: "OpenCode", SignIn: "opencode auth login", Keys: []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}},
		Programs: [][]string{{"opencode", "acp"}}, Package: "opencode-ai", Args: []string{"acp"},
		Home: []string{".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"}},
}

// KnownAgents are the agents that need no configuration once they are installed.
func KnownAgents() []Known { return slices.Clone(known) }

// Find finds a known agent.
func Find(id string) (Known, bool) {
	i := slices.IndexFunc(known, func(k Known) bool { return k.ID == id })
	if i < 0 {
		return Known{}, false
	}
	return known[i], true
}

// Installed is the command line of a program of the agent's that is on PATH; nil: none is.
func (k Known) Installed() []string {
	for _, argv := range k.Programs {
		if _, err := exec.LookPath(argv[0]); err == nil {
			return argv
		}
	}
	return nil
}

// Npx is the command line that fetches the agent from npm when it is started.
func (k Known) Npx() []string { return append([]string{"npx", "-y", k.Package}, k.Args...) }

// moved are variables that move a folder away from its place below the home folder: those of the XDG Base Directory Specification, and the
// agents' own.
var moved = [][2]string{
	{".config", "XDG_CONFIG_HOME"}, {".local/share", "XDG_DATA_HOME"}, {".local/state", "XDG_STATE_HOME"}, {".cache", "XDG_CACHE_HOME"},
	{".claude", "CLAUDE_CONFIG_DIR"}, {".codex", "CODEX_HOME"},
}

// Folders are places as absolute paths, where the environment has them; ~ and relative ones are below home.
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
