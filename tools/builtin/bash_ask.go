package builtin

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"github.com/pillion-dev/pillion/tools/shell/visible"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// shellRequest is what the analysis of a command needs to know of a session. environ is the environment that the command will have; hidden
// reports the files that may not be read without asking.
func (c commands) shellRequest(command, dir string, environ []string, hidden func(string) bool) scan.Request {
	protected := c.protector()
	return scan.Request{
		Command: command, Hidden: hidden, Dir: dir, Root: c.root(), Extra: append([]string{c.Cwd}, c.Extra...), ReadDirs: []string{c.spillDir()}, Home: c.Home,
		// From the end, because the last of two entries is the one that the program sees.
		Getenv: func(name string) (string, bool) {
			for i := len(environ) - 1; i >= 0; i-- {
				if k, v, ok := strings.Cut(environ[i], "="); ok && k == name {
					return v, true
				}
			}
			return "", false
		},
		// Reading a protected file is asked only where the reading itself gives something away.
		Protected: func(real string, access scan.Access) (string, bool) {
			if access == scan.Read && !secretive(real) {
				return "", false
			}
			return protected(real)
		},
	}
}

// analyzed is the analysis of a command that the shell sh would run. It knows the grammar of bash and the paths of this system only; what another
// shell (fish, zsh, nu) or Git Bash on Windows (/c/Users) makes of the same text is unknown, so such a command is opaque and asked as a whole.
func (c commands) analyzed(command, dir, sh string, environ []string, hidden func(string) bool) *scan.Analysis {
	a := c.Shell.Programs.Analyze(c.shellRequest(command, dir, environ, hidden))
	if !run.Bash(sh) && !a.Refused {
		a.Opaque, a.ReadOnly, a.Bounded = true, false, false
		why := "whose grammar is not bash's"
		if run.ForeignPaths {
			why = "whose paths and grammar the analysis does not follow on this system"
		}
		a.Why = strings.TrimPrefix(a.Why+"; "+filepath.Base(sh)+" runs it, "+why, "; ")
	}
	return a
}

// systemCredentials are keys and passwords in the system's configuration, in lower case; an agent that runs as root could read them.
var systemCredentials = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/wireguard", "/etc/openvpn", "/etc/krb5.keytab",
	"/etc/networkmanager/system-connections", "/etc/kubernetes", "/etc/docker", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/netrc",
}

// processSecrets matches files of /proc and /dev with the secrets of processes: environments, which hold keys, and memory (proc(5)).
var processSecrets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/proc/([0-9]+|self|thread-self)(/task/[0-9]+)?/(environ|mem|auxv|maps|pagemap|syscall|stack|cmdline)$|^/proc/(kcore|kmem|keys)$|^/dev/(mem|kmem|port)$`)
})

// secretive names the protected files that are asked about even for reading: they hold credentials, or
// say what the agent may do. Reading other protected files (an editor's settings) gives nothing away.
// real is compared in lower case, because file systems on macOS and Windows ignore case.
func secretive(real string) bool {
	p := strings.ToLower(filepath.ToSlash(real))
	if processSecrets().MatchString(p) {
		return true
	}
	for _, part := range systemCredentials {
		if p == part || strings.HasPrefix(p, part+"/") {
			return true
		}
	}
	for _, part := range [...]string{"/.docker/config.json", "/.config/gh/", "/.config/hub", "/.config/glab-cli/", "/.config/op/", "/.config/doctl/", "/.config/rclone/", "/.config/helm/", "/.terraform.d/credentials", "/.config/configstore/", "/.password-store/", "/.local/share/keyrings/", "/.mozilla/", "/.config/google-chrome/", "/.config/chromium/",
		"/.git/config", "/.git/hooks", "/.ssh/", "/.aws/", "/.gnupg/", "/.kube/", "/.config/gcloud/", "/.azure/", "/.pillion/", "/.config/pillion/", "/.local/share/pillion", "/.local/state/pillion"} {
		if strings.Contains(p+"/", part) {
			return true
		}
	}
	switch filepath.Base(p) {
	case ".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", "pip.conf", ".netrc", ".gemrc", "authorized_keys", "pillion.json", "pillion.jsonc", ".git-credentials", ".pgpass", ".my.cnf", ".mylogin.cnf", ".vault-token", ".boto", ".s3cfg", ".htpasswd", ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history", ".lesshst", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519":
		return true
	case "settings.json", "tasks.json", "launch.json":
		return strings.Contains(p, "/.vscode/")
	}
	return false
}

// commandRequests are the approval requests of a command, in order: the folders outside, the command,
// then the files inside that it reads and writes, whose rules count as they do for the tools read and
// edit. The order matters: the answer about the command weakens what is asked about files after it (see
// relaxAfterAnswer).
func (c commands) commandRequests(a *scan.Analysis) []permission.Request {
	var out []permission.Request
	if r, ok := outsideRequest(a); ok {
		out = append(out, r)
	}
	out = append(out, c.callsRequest(a))
	if len(a.Reads) > 0 {
		out = append(out, c.filesRequest("read", a.Reads))
	}
	// Files that a recursive command would print although the tool read asks for them (rg in a folder
	// with .env).
	if len(a.Found) > 0 {
		r := c.filesRequest("read", a.Found)
		r.Title, r.Why = "Let the command print "+strings.Join(r.Patterns[:min(3, len(a.Found))], ", "), "it goes through these files too"
		out = append(out, r)
	}
	if len(a.Redirected) > 0 {
		out = append(out, c.filesRequest("edit", a.Redirected))
	}
	// A redirection certainly writes. Files that are only named as outputs are asked about where a rule
	// names them, because the program's record may be wrong about its own options.
	named := slices.DeleteFunc(slices.Clone(a.Writes), func(p string) bool { return slices.Contains(a.Redirected, p) })
	if len(named) > 0 {
		r := c.filesRequest("edit", named)
		r.AskIf = permission.AskIfSpecific
		out = append(out, r)
	}
	return out
}

// outsideRequest asks for the folders outside the project that a command touches; ok is false where it
// touches none.
func outsideRequest(a *scan.Analysis) (permission.Request, bool) {
	var patterns, always []string
	for _, p := range a.External {
		dir := p.Path
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
			dir = filepath.Dir(dir)
		}
		pattern := folderPattern(dir)
		if slices.Contains(patterns, pattern) {
			continue
		}
		patterns = append(patterns, pattern)
		// An "always" for a glob or for / would cover far more than the person sees in the question.
		if !strings.ContainsAny(dir, "*?") && dir != "/" {
			always = append(always, pattern)
		}
	}
	// "Always" is offered for the whole request or not at all: half of it would ask again next time and
	// look broken.
	if len(always) < len(patterns) || a.Opaque || len(a.Protected) > 0 {
		always = nil
	}
	return permission.Request{
		Permission: "external_directory", Patterns: patterns, Always: always,
		Title: "Use " + strings.Join(patterns, ", ") + ", outside the project", Why: visible.Text(shortCommand(a.Command)) + " " + describeExternal(a),
		Metadata: map[string]any{"command": a.Command, "externalPaths": a.External},
	}, len(patterns) > 0
}

// describeExternal says what a command does to which places outside the project.
func describeExternal(a *scan.Analysis) string {
	var parts []string
	for _, access := range [...]scan.Access{scan.Write, scan.Read} {
		var paths []string
		for _, p := range a.External {
			if p.Access == access {
				paths = append(paths, visible.Text(p.Path))
			}
		}
		if len(paths) > 0 {
			parts = append(parts, string(access)+"s "+nameSome(paths))
		}
	}
	return strings.Join(parts, " and ")
}

// shortCommand is a command on one line for a title: its first line, at most 120 characters, with … for
// the rest.
func shortCommand(command string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(command), "\n")
	if short := textutil.Shorten(line, 120); short != line {
		return short
	}
	if strings.TrimSpace(rest) != "" {
		return line + " …"
	}
	return line
}

// callsRequest is the approval request for the programs themselves. Its patterns are the calls as the
// rules see them ("git push origin main"), one for each that is not silent; an opaque command is one
// pattern, its whole text.
func (e commands) callsRequest(a *scan.Analysis) permission.Request {
	r := permission.Request{
		Permission: "bash", Title: visible.Text(a.Command), Why: a.Why,
		MustAsk: a.Opaque || len(a.Protected) > 0,
	}
	add := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	// echo changes nothing, echo > file does.
	readOnly := func(c scan.Call) bool { return !a.Redirects && e.unasked(c) }
	for _, c := range a.Calls {
		// Also are other spellings of the same call (without the folder, as typed): a rule that denies
		// one of them counts.
		for _, also := range c.Also {
			add(&r.Also, also)
		}
		// A silent call (cd, an assignment) asks for nothing, but a rule may still deny it.
		if c.Silent {
			add(&r.Also, c.Text)
			continue
		}
		add(&r.Patterns, c.Text)
		if c.NoGrant {
			add(&r.NoGrant, c.Text)
		}
		if c.Exact {
			add(&r.Exact, c.Text)
		}
		if readOnly(c) {
			add(&r.ReadOnly, c.Text)
		}
		if c.Always != "" {
			add(&r.Always, c.Always)
			// "git clean *" must not come to cover -f: the grant carries the words that end its effect.
			if words, wide := strings.CutSuffix(c.Always, " *"); wide {
				words := strings.Fields(words)
				if limits := e.Shell.Programs.Limits(c.Program, words[1:]); limits != "" {
					if r.Limits == nil {
						r.Limits = map[string]string{}
					}
					r.Limits[c.Always] = limits
				}
			}
		}
	}
	command := strings.TrimSpace(a.Command)
	switch {
	case a.Opaque:
		add(&r.Patterns, command)
	case len(r.Patterns) == 0 && command != "": // only assignments, cd, redirections
		add(&r.Patterns, command)
		if a.ReadOnly {
			add(&r.ReadOnly, command)
		}
	}
	// What must be asked each time offers no "always", which would have no effect.
	if r.MustAsk {
		r.Always = nil
	}
	if r.Why == "" {
		r.Why = "it runs " + strings.Join(r.Patterns, ", ")
	}
	if len(a.External) > 0 {
		r.Why += "; outside the project it " + describeExternal(a)
	}
	for _, p := range a.Protected {
		r.Why += "; " + p.Path + ": " + p.Reason
	}
	if len(a.External) > 0 || len(a.Protected) > 0 {
		r.Metadata = map[string]any{"externalPaths": a.External, "protectedPaths": a.Protected}
	}
	return r
}

// filesRequest asks for files that a command reads or edits, under the permission of the tool that
// would do the same.
func (c commands) filesRequest(name string, paths []string) permission.Request {
	r := permission.Request{Permission: name, Title: "Let the command " + name + " ", Why: "the command names these files"}
	for _, p := range paths {
		r.Patterns = append(r.Patterns, c.rel(p))
	}
	r.Also = paths
	r.Title += strings.Join(r.Patterns[:min(3, len(paths))], ", ")
	if name == "read" {
		r.Always = slices.Clone(r.Patterns)
	}
	return r
}

// relaxAfterAnswer weakens a request about files after the answer about the programs, which came before it. A person who allowed the
// command has seen the files in it; another question for each of them would train people to click.
func relaxAfterAnswer(r permission.Request, program permission.Reply) permission.Request {
	switch {
	case r.Permission != "edit" && r.Permission != "read":
	case program.Asked: // the person has seen the files
		r.AskIf = permission.AskIfNone
	case r.Permission == "edit" && !program.Granted:
		r.AskIf = permission.AskIfSpecific // who allows a command by a rule allows what it writes
	}
	return r
}

// askCommand asks for everything that a command does; without an error it may run. asked reports whether a person was asked: a command
// that no person saw runs contained.
func (c commands) askCommand(ctx context.Context, call *tools.Call, a *scan.Analysis, p bashParams, dir string) (asked bool, err error) {
	if a.Refused {
		return false, &tools.Error{Kind: "refused", Message: "This command is not run: " + a.Why + "."}
	}
	var program permission.Reply // the answer about the programs, which weakens what is asked about files
	for _, r := range c.commandRequests(a) {
		r = relaxAfterAnswer(c.fitToSandbox(r, a, p.unsandboxed), program)
		if r.Metadata == nil {
			r.Metadata = map[string]any{}
		}
		r.Metadata["command"], r.Metadata["workdir"] = p.Command, dir
		if p.Description != "" {
			r.Metadata["description"] = p.Description
			if r.Permission == "bash" {
				r.Title = p.Description
			}
		}
		reply, err := askReply(ctx, call, r)
		if err != nil {
			return asked, err
		}
		asked = asked || reply.Asked
		if r.Permission == "bash" {
			program = reply
		}
	}
	return asked, nil
}
