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
	Former  []string // npm packages that had the agent before Package
	Home    []string // files and folders of its own state, below the home folder
	// Unlisted means that a list of agents has it only where it is installed: there are too many to name all.
	Unlisted bool
}

// known lists the agents that work without configuration. All of them write files and run commands by themselves, so they work in a draft.
// Keys are the variables that each maker documents for signing in without a dialog.
var known = []Known{
	{Agent: Agent{ID: "claude", Name: "Claude Code", SignIn: "claude, then /login",
		Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		// Its mode without any question: Pillion's rules would see nothing of what it does. As root it does not even start with that mode.
		Meta: map[string]any{"claudeCode": map[string]any{"options": map[string]any{"allowDangerouslySkipPermissions": false}}},
		// In auto a model of its maker decides.
		Asking: map[string]string{"auto": "default"}},
		Programs: [][]string{{"claude-agent-acp"}, {"claude-code-acp"}}, Package: "@agentclientprotocol/claude-agent-acp",
		Former: []string{"@zed-industries/claude-agent-acp", "@zed-industries/claude-code-acp"},
		Home:   []string{".claude", ".claude.json"}},
	{Agent: Agent{ID: "codex", Name: "Codex", SignIn: "codex login", Keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
		// Its sandbox makes namespaces, which a process in ours may not. The former package takes the argument; the present one ignores
		// arguments, and its other modes each have a sandbox.
		Contained: []string{"-c", `sandbox_mode="danger-full-access"`}, ContainedEnv: map[string]string{"INITIAL_AGENT_MODE": "agent-full-access"}},
		Programs: [][]string{{"codex-acp"}}, Package: "@agentclientprotocol/codex-acp", Former: []string{"@zed-industries/codex-acp"}, Home: []string{".codex"}},
	{Agent: Agent{ID: "gemini", Name: "Gemini CLI", SignIn: "gemini", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
		Programs: [][]string{{"gemini", "--acp"}}, Package: "@google/gemini-cli", Args: []string{"--acp"}, Home: []string{".gemini"}},
	{Agent: Agent{ID: "opencode", Name: "OpenCode", SignIn: "opencode auth login",
		// Without it OpenCode runs every command without asking its client, and Pillion's rules are not asked.
		Env:  map[string]string{"OPENCODE_PERMISSION": `{"bash":"ask","webfetch":"ask"}`},
		Keys: []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}},
		Programs: [][]string{{"opencode", "acp"}}, Package: "opencode-ai", Args: []string{"acp"},
		Home: []string{".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"}},
	{Agent: Agent{ID: "qwen", Name: "Qwen Code", SignIn: "qwen auth", Keys: []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY"}},
		Programs: [][]string{{"qwen", "--acp"}}, Package: "@qwen-code/qwen-code", Args: []string{"--acp"}, Home: []string{".qwen"}, Unlisted: true},
	{Agent: Agent{ID: "cline", Name: "Cline", SignIn: "cline auth", Keys: []string{"CLINE_API_KEY"}},
		Programs: [][]string{{"cline", "--acp"}}, Package: "cline", Args: []string{"--acp"}, Home: []string{".cline"}, Unlisted: true},
	{Agent: Agent{ID: "auggie", Name: "Auggie", SignIn: "auggie login", Env: map[string]string{"AUGMENT_DISABLE_AUTO_UPDATE": "1"}},
		Programs: [][]string{{"auggie", "--acp"}}, Package: "@augmentcode/auggie", Args: []string{"--acp"}, Home: []string{".augment"}, Unlisted: true},
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

// Running returns the known agent that a command line starts: its program by any path, or its npm package in any version. So a row of any
// name, and a command line that is no row, has the agent's own sign-in, folders and arguments.
func Running(argv []string) (Known, bool) {
	if len(argv) > 2 && slices.Contains(shells, programName(argv[0])) && argv[1] == "-c" {
		argv = strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(strings.TrimPrefix(argv[2], "exec ")))
	}
	for len(argv) > 0 && (argv[0] == "env" || assigns(argv[0])) {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return Known{}, false
	}
	program := programName(argv[0])
	packaged := slices.Contains(runners, program)
	i := slices.IndexFunc(known, func(k Known) bool {
		if !packaged {
			return slices.ContainsFunc(k.Programs, func(p []string) bool { return p[0] == program })
		}
		return slices.ContainsFunc(argv[1:], func(word string) bool {
			word = strings.TrimPrefix(word, "--package=")
			if at := strings.LastIndexByte(word, '@'); at > 0 { // a version; the first @ is the scope's
				word = word[:at]
			}
			return word == k.Package || slices.Contains(k.Former, word)
		})
	})
	if i < 0 {
		return Known{}, false
	}
	return known[i], true
}

// ShellCommand returns the command line that starts an agent from a line of shell, such as one that a person typed. Arguments that are
// added to it are the agent's.
func ShellCommand(line string) []string {
	if first, _, _ := strings.Cut(strings.TrimSpace(line), " "); !assigns(first) {
		line = "exec " + line // the agent has the shell's process id; POSIX takes no assignment after exec
	}
	return []string{"/bin/sh", "-c", line + ` "$@"`, "sh"}
}

// runners are the programs that run a package of npm.
var runners = []string{"npx", "npm", "pnpm", "pnpx", "bunx", "bun", "yarn", "deno"}

// programName returns the name of a program by any path, without the extensions that Windows adds.
func programName(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// assigns reports whether a word of a command line sets an environment variable.
func assigns(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
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
