package shell

import "strings"

// runnerOptions are the options with a value of the tools that run what follows their subcommand: uv run --env-file x
// pytest.
var runnerOptions = map[string]string{
	"uv":    "--with --with-editable --with-requirements -p --python --directory --project --env-file --extra --group --only-group --no-group --index --default-index --index-url --extra-index-url --cache-dir --config-file --package --exclude-newer -w --from -C --refresh-package --resolution --python-platform",
	"uvx":   "--with --from -p --python --env-file --index --directory",
	"hatch": "-e --env", "conda": "-n --name -p --prefix --cwd", "mamba": "-n --name -p --prefix --cwd", "micromamba": "-n --name -p --prefix --cwd",
	"pnpm": "--filter -F -C --dir --workspace-concurrency --package", "yarn": "--cwd -p --package --from --include --exclude -j --jobs",
	"npm": "-w --workspace -p --package --prefix -C --call -c", "cargo": "-i --ignore -w --watch -d --delay --features -B", "just": "-f --justfile -d --working-directory --shell --shell-arg --dotenv-path --dotenv-filename --tempdir --color",
	"nx": "--projects -p", "lerna": "--scope --ignore --concurrency --since", "dotnet": "--project -c --configuration -f --framework",
}

// behindOptions are the arguments behind a tool's own options.
func behindOptions(tool string, args []arg) []arg {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		s := args[0].text
		args = args[1:]
		if s == "--" {
			break
		}
		if !strings.Contains(s, "=") && hasField(runnerOptions[tool], s) && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}

// devTools looks at tools that run a program of the person's choice by a subcommand. It reports true when it has found
// one; the tool's own paths are noted as well.
func (w *walker) devTools(name string, c *call, entry *Call) bool {
	args := behindOptions(name, c.args[1:])
	if len(args) == 0 {
		return false
	}
	own := c.args[:len(c.args)-len(args)]
	sub := args[0].text
	var inner []arg
	runs := func(tool string, rest []arg) {
		inner = behindOptions(tool, rest)
		own = c.args[:len(c.args)-len(inner)]
	}
	shell := func(a arg) {
		entry.NoGrant = true
		w.nested(a, c.st, name+" "+sub)
	}
	second := ""
	if len(args) > 1 {
		second = args[1].text
	}
	switch name {
	case "cargo":
		if sub != "watch" {
			return false
		}
		entry.NoGrant = true
		for i, a := range args {
			switch {
			case a.text == "--":
				inner = args[i+1:]
			case (a.text == "-s" || a.text == "--shell") && i+1 < len(args):
				shell(args[i+1])
			case (a.text == "-x" || a.text == "--exec") && i+1 < len(args):
				if s, ok := args[i+1].one(); ok {
					shell(plainArg("cargo " + s))
				} else {
					w.opaque("cargo watch runs what cannot be read off the command")
				}
			}
			if inner != nil {
				break
			}
		}
	case "uv":
		switch {
		case sub == "run":
			rest := args[1:]
			module := false
			for _, a := range rest {
				if !strings.HasPrefix(a.text, "-") {
					break
				}
				module = module || a.text == "-m" || a.text == "--module" || a.text == "-s" || a.text == "--script"
			}
			runs(name, rest)
			switch {
			case module && len(inner) > 0 && !strings.HasSuffix(inner[0].text, ".py"):
				inner = append([]arg{plainArg("python"), plainArg("-m")}, inner...)
			case len(inner) > 0 && (strings.HasSuffix(inner[0].text, ".py") || module):
				inner = append([]arg{plainArg("python")}, inner...)
			case len(inner) == 0 && c.in.kind != "":
				w.opaque("uv run runs what it reads from its input")
			}
		case sub == "tool" && (second == "run" || second == "x"):
			runs(name, args[2:])
		default:
			return false
		}
	case "hatch":
		switch sub {
		case "run":
			runs(name, args[1:])
			if len(inner) > 0 { // environment:program
				if env, prog, ok := strings.Cut(inner[0].text, ":"); ok && env != "" && inner[0].static {
					inner = append([]arg{plainArg(prog)}, inner[1:]...)
				}
			}
		case "shell":
			w.opaque("hatch starts a shell")
			return false
		default:
			return false
		}
	case "poetry", "pipenv":
		if sub == "shell" {
			w.opaque(name + " starts a shell")
		}
		return false
	case "yarn":
		switch {
		case sub == "workspace" && len(args) > 2 && (args[2].text == "exec" || args[2].text == "node" || args[2].text == "dlx"):
			runs(name, args[3:])
			if args[2].text == "node" {
				inner = args[2:]
			}
		case sub == "workspaces" && second == "foreach":
			rest := behindOptions(name, args[2:])
			if len(rest) == 0 || rest[0].text != "exec" {
				return false
			}
			runs(name, rest[1:])
		case sub == "node":
			inner = args
		default:
			return false
		}
	case "pnpm":
		switch {
		case sub == "node":
			inner = args
		case (sub == "recursive" || sub == "multi" || sub == "m") && second == "exec":
			runs(name, args[2:])
		default:
			return false
		}
	case "npm":
		if sub != "explore" {
			return false
		}
		inner = behindWord(args, "--")
	case "lerna", "nx":
		if sub != "exec" {
			return false
		}
		if inner = behindWord(args, "--"); inner == nil {
			runs(name, args[1:])
		}
	case "composer", "stack", "cabal":
		switch {
		case sub == "exec":
			runs(name, args[1:])
		case name == "stack" && (sub == "runghc" || sub == "ghc" || sub == "runhaskell"):
			entry.NoGrant = true
			return false
		default:
			return false
		}
	case "dotnet":
		switch {
		case sub == "tool" && (second == "run" || second == "exec"), sub == "exec":
			entry.NoGrant = true
		case sub == "script" || sub == "fsi":
			entry.NoGrant = true
			if second == "eval" || strings.Contains(textOf(args), " -") {
				w.opaque("dotnet " + sub + " runs code that is given as text")
			}
		}
		return false
	case "cmake":
		if c.args[1].text != "-E" || len(c.args) < 4 {
			return false
		}
		rest := c.args[3:]
		switch c.args[2].text {
		case "env":
			for len(rest) > 0 && strings.HasPrefix(rest[0].text, "--") {
				rest = rest[1:]
			}
			inner = w.assignments(rest)
		case "time":
			inner = rest
		case "chdir":
			st := *c.st
			w.moveTo(rest[0], &st)
			entry.NoGrant = true
			w.run(&call{args: rest[1:], st: &st, in: c.in, wrapped: true})
			return true
		default:
			return false
		}
	case "just":
		for i, a := range c.args[1:] {
			switch key, val, has := strings.Cut(a.text, "="); {
			case key == "--shell" || key == "--chooser":
				w.opaque("just " + key + " runs another program")
				entry.NoGrant = true
				if has {
					w.salvage(val)
				} else if i+2 < len(c.args) {
					w.salvage(c.args[i+2].text)
				}
			case a.text == "-c" || a.text == "--command":
				inner = c.args[i+2:]
			}
		}
		if inner == nil {
			return false
		}
	case "nodemon":
		if len(args) > 0 && !strings.Contains(textOf(c.args), "-x") && !strings.Contains(textOf(c.args), "--exec") {
			for _, end := range [...]string{".js", ".mjs", ".cjs", ".ts"} {
				if strings.HasSuffix(args[0].text, end) {
					inner = append([]arg{plainArg("node")}, args...)
				}
			}
		}
		if inner == nil {
			return false
		}
	case "bazel", "bazelisk":
		for i, a := range args {
			if key, val, has := strings.Cut(a.text, "="); key == "--run_under" {
				if !has && i+1 < len(args) {
					val = args[i+1].text
				}
				shell(plainArg(val))
			}
		}
		return false
	case "tox", "nox", "ctest", "meson":
		for i, a := range args {
			key, val, has := strings.Cut(a.text, "=")
			if key == "--wrap" || key == "--wrapper" || key == "--test-command" || name == "ctest" && (key == "-S" || key == "-SP" || key == "--script") {
				w.opaque(name + " " + key + " runs another program")
				entry.NoGrant = true
				if !has && i+1 < len(args) {
					val = textOf(args[i+1:])
				}
				w.salvage(val)
			}
		}
		return false
	case "ansible":
		text := " " + textOf(args)
		if strings.Contains(text, " -a") || strings.Contains(text, " --args") {
			entry.NoGrant = true
			for i, a := range args {
				if (a.text == "-a" || a.text == "--args") && i+1 < len(args) {
					w.opaque("ansible runs commands on machines it is told")
					w.salvage(args[i+1].text)
				}
			}
		}
		return false
	default:
		return false
	}
	entry.NoGrant = true
	w.pathArgs(&call{args: own, st: c.st}, specOf(name))
	if len(inner) > 0 {
		w.run(&call{args: inner, st: c.st, in: c.in, wrapped: true})
	}
	return true
}
