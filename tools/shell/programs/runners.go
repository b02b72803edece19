package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// pluginOf is the value of pytest -p.
// It is glued on or the next word.
func pluginOf(s string, behind []scan.Word) string {
	if s = strings.TrimPrefix(s, "-p"); s == "" && len(behind) > 0 {
		return behind[0].Text
	}
	return s
}

// fromPipe reports a file name that stands for what is already open.
// A makefile or script from there is one that nobody has seen.
func fromPipe(file string) bool {
	return file == "-" || file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}

// runners looks at programs that start others by a subcommand or an option. It reports true when it has looked at
// the paths as well.
// What it knows of options stands in the record's Starts; the code below is for subcommands that take a call of their own.
func runners(name string, c *scan.Visit) bool {
	args := c.Args[1:]
	for i, a := range args {
		s := a.Text
		for f := range strings.FieldsSeq(recordOf(c, name).Starts) {
			// An option in Starts may be spelled long, short with its value glued on, with "=" at its end for name=value words, or with one
			// dash by programs that take both.
			long := strings.HasPrefix(f, "--")
			key, val, has := strings.Cut(s, "=")
			match := s == f || name == "go" && s == "-"+f || long && has && key == f || long && shortFor(key, f) ||
				!long && len(f) == 2 && strings.HasPrefix(s, f) && len(s) > 2 || strings.HasSuffix(f, "=") && strings.HasPrefix(s, f) ||
				!long && len(f) > 2 && has && (key == f || key == "-"+f)
			// pytest -p no:NAME switches a plugin off.
			if !match || name == "pytest" && strings.HasPrefix(pluginOf(s, args[i+1:]), "no:") {
				continue
			}
			c.Opaque(name + " " + f + " runs another program")
			c.NoGrant = true
			if !has && i+1 < len(args) && (len(s) <= len(f) || s == "-"+f) {
				c.Salvage(scan.TextOf(args[i+1:]))
			} else if has {
				c.Salvage(strings.TrimPrefix(val, "exec="))
			}
		}
	}
	switch name {
	case "make", "gmake", "bmake":
		makeWords(name, c)
	case "wget":
		wgetSettings(c)
	}
	opaqueWords(recordOf(c, name), c)
	if name == "socat" || name == "nc" || name == "ncat" {
		c.NoGrant = true
	}
	if name == "batch" {
		c.NoGrant = true
		c.Opaque("batch runs commands later")
	}
	hookManager(append([]scan.Word{scan.Plain(name)}, args...), c)
	if len(args) == 0 {
		return false
	}
	if devTools(name, c) {
		return true
	}
	args = afterOptions(c, name, args)
	if len(args) == 0 {
		return false
	}
	sub := args[0].Text
	inner := 0 // how many words stand before the command
	switch name {
	// npm run and its like run what package.json says, which is the project's.
	case "npm":
		switch sub {
		case "exec", "x":
			inner = 2
		case "config", "c", "set":
			c.NoGrant = true
			// .npmrc can name a registry and a script shell for everything that npm does later.
			if strings.Contains(scan.TextOf(args), "set") {
				c.TouchValue(scan.Literal(c.Home()+"/.npmrc"), scan.Write)
			}
		}
	case "pnpm", "yarn":
		if sub == "exec" || sub == "dlx" {
			inner = 2
		} else {
			hookManager(args, c) // a package's program by its name
		}
	case "bun":
		switch sub {
		case "x", "exec":
			inner = 2
		case "-e", "--eval", "-p", "--print", "-":
			c.Opaque("bun runs code that is given as text")
		}
		// Behind npx the call is the wrapper's too, which no grant covers: never take NoGrant back.
		c.NoGrant = c.NoGrant || sub != "install" && sub != "i" && sub != "test" && sub != "add" && sub != "run" && sub != "build"
	case "deno":
		if sub == "eval" || sub == "repl" {
			c.Opaque("deno runs code that is given as text")
		}
		switch sub {
		case "fmt", "lint", "check", "test", "bench", "doc", "info", "cache", "add", "remove", "install", "compile", "outdated", "task", "types", "completions":
		default: // a script's name is a command too
			c.NoGrant = true
		}
		if len(args) > 1 && args[1].Text == "-" && c.Input().Kind != "" {
			c.Opaque("deno runs what it reads from its input")
		}
		for i, a := range args {
			if sub == "task" && a.Text == "--eval" && i+1 < len(args) {
				c.NoGrant = true
				c.Script(args[i+1], "deno task")
			}
		}
	case "go":
		switch sub {
		case "run": // a pattern made from a package of the project's must not cover everybody's
			c.NoGrant = c.NoGrant || strings.Contains(scan.TextOf(args), "@")
			hookManager(args[1:], c)
		case "env":
			if text := scan.TextOf(args); strings.Contains(text, "-w") || strings.Contains(text, "-u") {
				c.NoGrant = true
				c.TouchValue(scan.Literal(c.Home()+"/.config/go/env"), scan.Write)
			}
		}
	// What runs in them outlives the command and belongs to a server outside of the sandbox.
	case "tmux", "screen", "zellij", "dtach", "abduco":
		c.NoGrant = true
		if name != "tmux" || !strings.HasPrefix(sub, "list-") && sub != "ls" && sub != "lsp" && sub != "lsw" && sub != "capture-pane" && sub != "has-session" {
			c.Opaque(name + " runs what it is given in a terminal of its own")
		}
	case "poetry", "pipenv", "pdm", "rye":
		if sub == "run" {
			inner = 2
		}
	case "bundle", "mise", "asdf", "rbenv", "pyenv", "conda", "mamba", "volta", "nvm", "fnm", "opam", "cabal", "stack", "dotenvx", "doppler", "op",
		"chamber", "aws-vault":
		if sub == "exec" || sub == "run" || sub == "x" {
			inner = 2
		}
	// rustup run TOOLCHAIN command: one word more.
	case "rustup":
		if sub == "run" {
			inner = 3
		}
	case "nix-shell", "nix", "guix":
		c.NoGrant = true
		c.Opaque(name + " may run any program")
	// A grant of docker run * would cover a mount of the whole disk.
	case "docker", "podman", "kubectl", "nerdctl", "oc", "lxc":
		if sub == "run" || sub == "exec" || sub == "compose" || sub == "create" {
			c.NoGrant = true
		}
		container(name, c)
		return true
	case "gh", "glab", "hub":
		gh(c)
		return true
	case "osascript", "crontab", "at", "batch":
		c.NoGrant = true
		c.Opaque(name + " runs commands later or in another language")
	}
	// The call begins at the inner-th word, counted from 1; the options in front of it are the tool's.
	if inner > 0 {
		c.NoGrant = true
		rest := args[inner-1:]
		for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
			if rest[0].Text == "-c" || rest[0].Text == "--call" || rest[0].Text == "--with" || rest[0].Text == "--package" || rest[0].Text == "-p" ||
				rest[0].Text == "-n" || rest[0].Text == "--python" || rest[0].Text == "--directory" || rest[0].Text == "--project" {
				if (rest[0].Text == "-c" || rest[0].Text == "--call") && len(rest) > 1 {
					c.Script(rest[1], name)
				} else if rest[0].Text == "--directory" && len(rest) > 1 {
					c.Touch(rest[1], scan.Write)
				}
				rest = rest[min(2, len(rest)):]
				continue
			}
			rest = rest[1:]
		}
		// npm --package ../x exec y: what stands in front of the command may name folders too.
		pathArgs(c.With(c.Args[:len(c.Args)-len(rest)]), recordOf(c, name).spec)
		if len(rest) > 0 {
			c.Run(rest)
		}
		return true
	}
	return false
}

// afterOptions drops a program's own options before its subcommand: npm --prefix x exec evil.
// Without it "npm --prefix x exec evil" would have the subcommand "--prefix". Programs that are not listed take none in front.
func afterOptions(c *scan.Visit, name string, args []scan.Word) []scan.Word {
	switch name {
	case "npm", "pnpm", "yarn", "bun", "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle", "mise", "go", "tmux", "rustup":
	default:
		return args
	}
	// -e and -p with code behind them must stay in place: interpreter options are looked at by the caller.
	values := recordOf(c, name).spec
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		if args[0].Text == "-e" || args[0].Text == "-p" || args[0].Text == "--eval" || args[0].Text == "--print" || args[0].Text == "-" {
			return args
		}
		o, ok := values.option(args[0].Text)
		ok = ok || args[0].Text == "--directory" || args[0].Text == "--project" || args[0].Text == "-C" && name != "bundle"
		if _, _, has := strings.Cut(args[0].Text, "="); ok && !has && !o.glued && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	return args
}
