package guard

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// Who a child is started for. The person's configuration names them, or a program by its name, to hand keys on.
const (
	Bash      = "bash"      // commands of the model
	Server    = "lsp"       // language servers
	Formatter = "formatter" // formatters of edited files
	Tool      = "tool"      // custom tools and plugins
	Hook      = "hook"      // commands of the setting hooks
	Agent     = "agent"     // external agents, which sign in by themselves; see package external
	MCP       = "mcp"       // MCP servers, whose own setting says what they get
	Helper    = "helper"    // git, ripgrep and package managers that Pillion itself runs
	Person    = "person"    // what the person starts for themselves: their terminal, editor, browser; it keeps everything
)

// Command is exec.Command for a child that gets no keys: its environment is Environ(who, argv[0]). Every child of Pillion
// is made with it, and a test over the syntax trees looks for others; what a child needs besides is appended to Env.
// argv must not be empty.
func Command(who string, argv ...string) *exec.Cmd {
	return CommandFor(context.Background(), Reason{Who: who}, argv...)
}

// CommandContext is Command for a child that is killed when ctx ends.
func CommandContext(ctx context.Context, who string, argv ...string) *exec.Cmd {
	return CommandFor(ctx, Reason{Who: who}, argv...)
}

// CommandFor is CommandContext for a program that a setting names. Starting it fails while the setting is in a file of
// a folder that is not trusted.
func CommandFor(ctx context.Context, r Reason, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = Environ(r.Who, argv[0])
	if r.Who == Helper && strings.TrimSuffix(filepath.Base(argv[0]), ".exe") == "git" {
		cmd.Env = append(cmd.Env, GitReads()...)
	}
	if err := r.Check(); err != nil {
		cmd.Err = err // Start and Run return it
	}
	return cmd
}

// GitReads are variables that keep git to the repository when it only reads. Of a partial clone git fetches missing objects
// as soon as one is read, and a repository's own settings name the program that does (remote.NAME.uploadpack,
// core.sshCommand): whoever made the repository would have it run by git cat-file. GIT_ALLOW_PROTOCOL also holds for git
// before 2.39.4, which does not know the other: no transport has this name.
func GitReads() []string {
	return []string{"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0"}
}

// Environ is this program's environment without keys, for a child.
func Environ(who, program string) []string { return WithoutKeys(os.Environ(), who, program) }

// WithoutKeys takes keys out of an environment: variables that are named like keys, whose value is an address with a
// password, or whose value is one of the keys that Pillion uses. What the person allows for this program stays.
func WithoutKeys(env []string, who, program string) []string {
	p := policy.Load()
	if who == Person {
		return slices.Clone(env)
	}
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	out := make([]string, 0, len(env)+4)
	for _, e := range env {
		key, value, _ := strings.Cut(e, "=")
		if isKey(key, value, p) && !p.allows(key, who, name) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// KeyPolicy is what the person's own configuration says of keys in environments.
type KeyPolicy struct {
	// Allow names variables that a program, or all of a kind (Bash, Server …), gets although they are keys; * at the end
	// stands for any rest.
	Allow map[string][]string
	// Known says whether a value is one of the keys that Pillion uses; nil: none is.
	Known func(value string) bool
}

// policy is what SetKeyPolicy was given last; nil before the first call: then no key is handed on.
var policy atomic.Pointer[KeyPolicy]

// SetKeyPolicy replaces the policy for children that are started from now on.
func SetKeyPolicy(p KeyPolicy) { policy.Store(&p) }

// allows reports whether the person hands the variable key to one of names: a kind or a program. Names of variables are
// compared with their case, so on Windows the person writes them as the system does.
func (p *KeyPolicy) allows(key string, names ...string) bool {
	if p == nil {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(p.Allow[name], func(pattern string) bool {
			prefix, wild := strings.CutSuffix(pattern, "*")
			return pattern == key || wild && strings.HasPrefix(key, prefix)
		})
	})
}

// isKey judges one variable. Our own mark is never a key: a child without it could not be found again.
func isKey(name, value string, p *KeyPolicy) bool {
	if value == "" || strings.HasPrefix(name, variable) {
		return false
	}
	return KeyName(name) || hasPassword(name, value) || p != nil && p.Known != nil && p.Known(value)
}

// KeyName reports whether a variable holds a key, judged by the words of its name: GITHUB_TOKEN does,
// TOKENIZERS_PARALLELISM does not. A key under a harmless name is found by its value only (KeyPolicy.Known); a harmless
// variable that is taken for a key is one that the person has to allow.
func KeyName(name string) bool {
	name = strings.ToUpper(name)
	switch name {
	case "MYSQL_PWD", "DOCKER_AUTH_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "NPM_CONFIG__AUTH", "SENTRY_DSN":
		return true
	case "SSH_AUTH_SOCK", "GPG_TTY", "COLORTERM", "XDG_SESSION_COOKIE": // addresses, no keys
		return false
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	for i, w := range words {
		switch w {
		case "KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "AUTHORIZATION", "COOKIE", "PAT", "BEARER":
			return true
		case "AUTH", "PWD": // REGISTRY_AUTH, DB_PWD; but PWD alone is the current folder
			if i > 0 && i == len(words)-1 {
				return true
			}
		}
		// Names without separators: GITHUBTOKEN, PGPASSWORD.
		for _, end := range [...]string{"TOKEN", "SECRET", "PASSWORD", "APIKEY", "PASSPHRASE"} {
			if strings.HasSuffix(w, end) {
				return true
			}
		}
	}
	return false
}

// hasPassword reports an address with a password in it: DATABASE_URL. Proxies stay: without them nothing is reached.
func hasPassword(name, value string) bool {
	if !strings.Contains(value, "://") || !strings.Contains(value, "@") || strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
		return false
	}
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return err != nil // what cannot be read may hold one
	}
	_, has := u.User.Password()
	return has
}
