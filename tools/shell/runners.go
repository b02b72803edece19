package shell

import (
	"path"
	"strings"
)

// runsArg names the options of programs whose value is itself a command.
var runsArg = map[string]string{
	"go": "-exec -toolexec -vettool", "rg": "--pre --hostname-bin", "sort": "--compress-program", "tar": "--to-command --use-compress-program -I --rsh-command -F --info-script --new-volume-script --checkpoint-action",
	"gtar": "--to-command --use-compress-program -I --rsh-command -F --info-script --new-volume-script --checkpoint-action", "bsdtar": "--use-compress-program", "rsync": "-e --rsh --rsync-path", "scp": "-S", "sftp": "-S", "zip": "-TT --unzip-command",
	"man": "-P -H --pager --html", "split": "--filter", "fd": "-x -X --exec --exec-batch", "fdfind": "-x -X --exec --exec-batch", "cargo": "--config", "docker": "--entrypoint", "wget": "--use-askpass", "curl": "-K --config", "make": "--eval -E SHELL= MAKE= .SHELLFLAGS=",
	"pytest": "-p", "npm": "--script-shell --shell --node-options", "gcc": "-wrapper -B -fplugin -specs --specs", "g++": "-wrapper -B -fplugin -specs --specs", "cc": "-wrapper -B -fplugin -specs --specs", "c++": "-wrapper -B -fplugin -specs --specs", "clang": "-B -fplugin --config", "clang++": "-B -fplugin --config", "less": "-k --lesskey-file", "install": "--strip-program", "ctags": "--options", "tcpdump": "-z", "mktemp": "", "nmap": "--script", "eslint": "--rulesdir --resolve-plugins-relative-to",
	"nc": "-e -c", "ncat": "-e -c --exec --sh-exec --lua-exec", "jj": "--config --config-toml --config-file", "gotestsum": "--post-run-command --raw-command", "pandoc": "--filter -F --lua-filter -L", "protoc": "--plugin", "ar": "--plugin", "nm": "--plugin", "socat": "", "git-upload-pack": "", "ld": "-plugin", "cmake": "-P", "ninja": "", "svn": "--diff-cmd --editor-cmd --config-option", "hg": "--config", "tig": "", "bat": "--pager", "ag": "--pager", "ack": "--pager --output", "fzf": "--preview --bind --execute", "delta": "--pager", "terraform": "",
}

// pluginOf is the value of pytest -p.
func pluginOf(s string, behind []arg) string {
	if s = strings.TrimPrefix(s, "-p"); s == "" && len(behind) > 0 {
		return behind[0].text
	}
	return s
}

// fromPipe reports a file name that stands for what is already open.
func fromPipe(file string) bool {
	return file == "-" || file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}

// runners looks at programs that start others by a subcommand or an option. It reports true when it has looked at
// the paths as well.
func (w *walker) runners(name string, c *call, entry *Call) bool {
	args := c.args[1:]
	for i, a := range args {
		s := a.text
		for f := range strings.FieldsSeq(runsArg[name]) {
			long := strings.HasPrefix(f, "--")
			key, val, has := strings.Cut(s, "=")
			match := s == f || name == "go" && s == "-"+f || long && has && key == f || long && shortFor(key, f) ||
				!long && len(f) == 2 && strings.HasPrefix(s, f) && len(s) > 2 || strings.HasSuffix(f, "=") && strings.HasPrefix(s, f) ||
				!long && len(f) > 2 && has && (key == f || key == "-"+f)
			if !match || name == "pytest" && strings.HasPrefix(pluginOf(s, args[i+1:]), "no:") {
				continue
			}
			w.opaque(name + " " + f + " runs another program")
			entry.NoGrant = true
			if !has && i+1 < len(args) && (len(s) <= len(f) || s == "-"+f) {
				w.salvage(textOf(args[i+1:]))
			} else if has {
				w.salvage(strings.TrimPrefix(val, "exec="))
			}
		}
	}
	if name == "make" || name == "gmake" {
		for i, a := range args {
			if file := strings.TrimPrefix(a.text, "-f"); strings.HasPrefix(a.text, "-f") && fromPipe(file) || i > 0 && a.text != "--" && fromPipe(a.text) || strings.HasSuffix(a.text, "=-") {
				w.opaque(name + " takes its makefile from a pipe")
				entry.NoGrant = true
			}
			if name, val, ok := strings.Cut(a.text, "="); ok && (name == "CC" || name == "CXX" || name == "LD" || name == "AR") {
				w.dangerousName(name, []value{literal(val)})
			}
		}
	}
	switch name {
	case "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "javac", "rustc":
		for _, a := range args {
			if strings.HasPrefix(a.text, "@") {
				w.opaque(name + " takes options from a file")
			}
		}
	}
	w.hiddenPrograms(name, c, entry)
	if name == "socat" || name == "nc" || name == "ncat" {
		entry.NoGrant = true
		for _, a := range args {
			if up := strings.ToUpper(a.text); strings.Contains(up, "EXEC:") || strings.Contains(up, "SYSTEM:") {
				w.opaque(name + " runs another program")
			}
		}
	}
	if name == "batch" {
		entry.NoGrant = true
		w.opaque("batch runs commands later")
	}
	w.hookManager(append([]arg{plainArg(name)}, args...), entry, c.st)
	if len(args) == 0 {
		return false
	}
	if w.devTools(name, c, entry) {
		return true
	}
	args = afterOptions(name, args)
	if len(args) == 0 {
		return false
	}
	sub := args[0].text
	inner := 0 // how many words stand before the command
	switch name {
	case "npm":
		switch sub {
		case "exec", "x":
			inner = 2
		case "config", "c", "set":
			entry.NoGrant = true
			if strings.Contains(textOf(args), "set") {
				w.record(literal(w.req.Home+"/.npmrc"), Write, c.st)
			}
		}
	case "pnpm", "yarn":
		if sub == "exec" || sub == "dlx" {
			inner = 2
		} else {
			w.hookManager(args, entry, c.st) // a package's program by its name
		}
	case "bun":
		switch sub {
		case "x", "exec":
			inner = 2
		case "-e", "--eval", "-p", "--print", "-":
			w.opaque("bun runs code that is given as text")
		}
		entry.NoGrant = sub != "install" && sub != "i" && sub != "test" && sub != "add" && sub != "run" && sub != "build"
	case "deno":
		if sub == "eval" || sub == "repl" {
			w.opaque("deno runs code that is given as text")
		}
		switch sub {
		case "fmt", "lint", "check", "test", "bench", "doc", "info", "cache", "add", "remove", "install", "compile", "outdated", "task", "types", "completions":
		default: // a script's name is a command too
			entry.NoGrant = true
		}
		if len(args) > 1 && args[1].text == "-" && c.in.kind != "" {
			w.opaque("deno runs what it reads from its input")
		}
		for i, a := range args {
			if sub == "task" && a.text == "--eval" && i+1 < len(args) {
				entry.NoGrant = true
				w.nested(args[i+1], c.st, "deno task")
			}
		}
	case "go":
		switch sub {
		case "run": // a pattern made from a package of the project's must not cover everybody's
			entry.NoGrant = strings.Contains(textOf(args), "@")
			w.hookManager(args[1:], entry, c.st)
		case "env":
			if text := textOf(args); strings.Contains(text, "-w") || strings.Contains(text, "-u") {
				entry.NoGrant = true
				w.record(literal(w.req.Home+"/.config/go/env"), Write, c.st)
			}
		}
	case "tmux", "screen", "zellij", "dtach", "abduco":
		entry.NoGrant = true
		if name != "tmux" || !strings.HasPrefix(sub, "list-") && sub != "ls" && sub != "lsp" && sub != "lsw" && sub != "capture-pane" && sub != "has-session" {
			w.opaque(name + " runs what it is given in a terminal of its own")
		}
	case "poetry", "pipenv", "pdm", "rye":
		if sub == "run" {
			inner = 2
		}
	case "bundle", "mise", "asdf", "rbenv", "pyenv", "conda", "mamba", "volta", "nvm", "fnm", "opam", "cabal", "stack", "dotenvx", "doppler", "op", "chamber", "aws-vault":
		if sub == "exec" || sub == "run" || sub == "x" {
			inner = 2
		}
	case "rustup":
		if sub == "run" {
			inner = 3
		}
	case "nix-shell", "nix", "guix":
		entry.NoGrant = true
		w.opaque(name + " may run any program")
	case "docker", "podman", "kubectl", "nerdctl", "oc", "lxc":
		if sub == "run" || sub == "exec" || sub == "compose" || sub == "create" {
			entry.NoGrant = true
		}
		w.container(name, c)
		return true
	case "gh", "glab", "hub":
		w.gh(c, entry)
		return true
	case "osascript", "crontab", "at", "batch":
		entry.NoGrant = true
		w.opaque(name + " runs commands later or in another language")
	}
	if inner > 0 {
		entry.NoGrant = true
		rest := args[inner-1:]
		for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
			if rest[0].text == "-c" || rest[0].text == "--call" || rest[0].text == "--with" || rest[0].text == "--package" || rest[0].text == "-p" || rest[0].text == "-n" || rest[0].text == "--python" || rest[0].text == "--directory" || rest[0].text == "--project" {
				if (rest[0].text == "-c" || rest[0].text == "--call") && len(rest) > 1 {
					w.nested(rest[1], c.st, name)
				} else if rest[0].text == "--directory" && len(rest) > 1 {
					w.recordArg(rest[1], Write, c.st)
				}
				rest = rest[min(2, len(rest)):]
				continue
			}
			rest = rest[1:]
		}
		if len(rest) > 0 {
			w.run(&call{args: rest, st: c.st, in: c.in, wrapped: true})
		}
		return true
	}
	return false
}

// afterOptions drops a program's own options before its subcommand: npm --prefix x exec evil.
func afterOptions(name string, args []arg) []arg {
	switch name {
	case "npm", "pnpm", "yarn", "bun", "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle", "mise", "go", "tmux", "rustup":
	default:
		return args
	}
	values := specOf(name)
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		if args[0].text == "-e" || args[0].text == "-p" || args[0].text == "--eval" || args[0].text == "--print" || args[0].text == "-" {
			return args
		}
		o, ok := values.option(args[0].text)
		ok = ok || args[0].text == "--directory" || args[0].text == "--project" || args[0].text == "-C" && name != "bundle"
		if _, _, has := strings.Cut(args[0].text, "="); ok && !has && !o.glued && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	return args
}

// find looks at find: where it searches, what it deletes or writes, what it runs.
func (w *walker) find(c *call, entry *Call) {
	args := c.args[1:]
	entry.ReadOnly = true
	i := 0
	follow := false
	for ; i < len(args) && (args[i].text == "-H" || args[i].text == "-L" || args[i].text == "-P" || strings.HasPrefix(args[i].text, "-O") || args[i].text == "-D"); i++ {
		follow = follow || args[i].text == "-L"
		if args[i].text == "-D" {
			i++
		}
	}
	var roots []arg
	for ; i < len(args); i++ {
		s := args[i].text
		if strings.HasPrefix(s, "-") || s == "(" || s == "!" || s == "," || s == ")" {
			break
		}
		roots = append(roots, args[i])
	}
	if len(roots) == 0 {
		roots = []arg{plainArg(".")}
	}
	access, narrow := Read, false
	for ; i < len(args); i++ {
		narrow = narrow || takesText(args[i].text)
		switch s := args[i].text; s {
		case "-delete":
			access, entry.ReadOnly = Write, false
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			entry.ReadOnly = false
			if i+1 < len(args) {
				w.recordArg(args[i+1], Write, c.st)
			}
		case "-follow":
			follow = true
		case "-newer", "-anewer", "-cnewer", "-samefile", "-files0-from":
			if i+1 < len(args) {
				w.recordArg(args[i+1], Read, c.st)
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			entry.ReadOnly, entry.NoGrant = false, true
			var inner []arg
			for i++; i < len(args) && args[i].text != ";" && !(args[i].text == "+" && args[i-1].text == "{}"); i++ {
				inner = append(inner, args[i])
			}
			w.findExec(inner, roots, c)
			access = Write
		default:
			if !args[i].known() && !strings.HasPrefix(s, "-") && i > 0 && !takesText(args[i-1].text) {
				w.opaque("an expression of find cannot be read off the command")
			}
		}
	}
	if follow {
		entry.ReadOnly = false
	}
	w.paths.deep = access == Write && !narrow
	defer func() { w.paths.deep = false }()
	for _, r := range roots {
		if !r.known() {
			w.opaque("it cannot be said where find searches")
		}
		w.recordArg(r, access, c.st)
	}
}

func takesText(option string) bool {
	switch option {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-type", "-mtime", "-size", "-maxdepth", "-mindepth", "-newermt", "-user", "-group", "-perm", "-mmin", "-printf":
		return true
	}
	return false
}

// findExec looks at what find runs: its {} are names below the places it searches.
func (w *walker) findExec(inner []arg, roots []arg, c *call) {
	if len(inner) == 0 {
		return
	}
	shown := textOf(inner)
	probe := make([]arg, len(inner))
	for i, a := range inner {
		probe[i] = a
		if !strings.Contains(a.text, "{}") {
			continue
		}
		if i == 0 {
			w.opaque("find runs the files it finds")
			return
		}
		probe[i].static = false
		probe[i].vals = nil
		probe[i].text = a.text
		if a.text != "{}" {
			// sh -c 'rm {}': file names become part of a script.
			probe[i].vals = []value{{s: strings.ReplaceAll(a.text, "{}", wild), pat: wild}}
			continue
		}
		for _, r := range roots {
			for _, v := range r.vals {
				probe[i].vals = append(probe[i].vals, join(v, value{s: "/" + hole, pat: "/" + hole}))
			}
		}
	}
	w.run(&call{args: probe, st: c.st, wrapped: true, more: true})
	if _, ok := w.calls[shown]; !ok {
		w.addCall(Call{Text: shown, Program: path.Base(inner[0].text), NoGrant: true})
	}
}
