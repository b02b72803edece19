package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// behindOptions are the arguments behind a tool's own options.
// Which options take a value is said by the tool's record. An unknown one is taken for a flag, so its value may be mistaken for
// the subcommand: then nothing is found, and the call stays an ordinary one of the tool.
func behindOptions(c *scan.Visit, tool string, args []scan.Word) []scan.Word {
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		s := args[0].Text
		args = args[1:]
		if s == "--" {
			break
		}
		if !strings.Contains(s, "=") && recordOf(c, tool).takes(s) && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}

// devTools looks at tools that run a program of the person's choice by a subcommand. It reports true when it has found
// one; the tool's own paths are noted as well.
// inner is the call that the tool starts, and own the words in front of it, whose paths are the tool's. Where a case returns
// false, the caller goes on with what it knows of the tool.
func devTools(name string, c *scan.Visit) bool {
	args := behindOptions(c, name, c.Args[1:])
	if len(args) == 0 {
		return false
	}
	own := c.Args[:len(c.Args)-len(args)]
	sub := args[0].Text
	var inner []scan.Word
	// runs splits the words behind the subcommand into the tool's options and the call.
	runs := func(tool string, rest []scan.Word) {
		inner = behindOptions(c, tool, rest)
		own = c.Args[:len(c.Args)-len(inner)]
	}
	// shell walks a string that the tool gives to a shell.
	shell := func(a scan.Word) {
		c.NoGrant = true
		c.Script(a, name+" "+sub)
	}
	// Empty when there is no second word.
	second := ""
	if len(args) > 1 {
		second = args[1].Text
	}
	switch name {
	case "cargo":
		// The other subcommands take no command of the caller's.
		if sub != "watch" {
			return false
		}
		c.NoGrant = true
		for i, a := range args {
			switch {
			case a.Text == "--":
				inner = args[i+1:]
			case (a.Text == "-s" || a.Text == "--shell") && i+1 < len(args):
				shell(args[i+1])
			// -x names a subcommand of cargo, -s a command of the shell.
			case (a.Text == "-x" || a.Text == "--exec") && i+1 < len(args):
				if s, ok := args[i+1].One(); ok {
					shell(scan.Plain("cargo " + s))
				} else {
					c.Opaque("cargo watch runs what cannot be read off the command")
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
				if !strings.HasPrefix(a.Text, "-") {
					break
				}
				module = module || a.Text == "-m" || a.Text == "--module" || a.Text == "-s" || a.Text == "--script"
			}
			runs(name, rest)
			switch {
			// uv run -m x is python -m x, and uv run x.py is python x.py: looked at as that, so that hook managers are found.
			case module && len(inner) > 0 && !strings.HasSuffix(inner[0].Text, ".py"):
				inner = append([]scan.Word{scan.Plain("python"), scan.Plain("-m")}, inner...)
			case len(inner) > 0 && (strings.HasSuffix(inner[0].Text, ".py") || module):
				inner = append([]scan.Word{scan.Plain("python")}, inner...)
			case len(inner) == 0 && c.Input().Kind != "":
				c.Opaque("uv run runs what it reads from its input")
			}
		case sub == "tool" && (second == "run" || second == "x"):
			runs(name, args[2:])
		default:
			return false
		}
	// hatch run may put the name of an environment in front of the program: test:pytest.
	case "hatch":
		switch sub {
		case "run":
			runs(name, args[1:])
			if len(inner) > 0 { // environment:program
				if env, prog, ok := strings.Cut(inner[0].Text, ":"); ok && env != "" && inner[0].Static {
					inner = append([]scan.Word{scan.Plain(prog)}, inner[1:]...)
				}
			}
		case "shell":
			c.Opaque("hatch starts a shell")
			return false
		default:
			return false
		}
	// Their run is in the function runners.
	case "poetry", "pipenv":
		if sub == "shell" {
			c.Opaque(name + " starts a shell")
		}
		return false
	case "yarn":
		switch {
		// yarn workspace NAME exec …: the name stands in between.
		case sub == "workspace" && len(args) > 2 && (args[2].Text == "exec" || args[2].Text == "node" || args[2].Text == "dlx"):
			runs(name, args[3:])
			if args[2].Text == "node" {
				inner = args[2:]
			}
		case sub == "workspaces" && second == "foreach":
			rest := behindOptions(c, name, args[2:])
			if len(rest) == 0 || rest[0].Text != "exec" {
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
		// Both accept the command with and without "--".
		if inner = behindWord(args, "--"); inner == nil {
			runs(name, args[1:])
		}
	case "composer", "stack", "cabal":
		switch {
		case sub == "exec":
			runs(name, args[1:])
		case name == "stack" && (sub == "runghc" || sub == "ghc" || sub == "runhaskell"):
			c.NoGrant = true
			return false
		default:
			return false
		}
	case "dotnet":
		switch {
		case sub == "tool" && (second == "run" || second == "exec"), sub == "exec":
			c.NoGrant = true
		case sub == "script" || sub == "fsi":
			c.NoGrant = true
			if second == "eval" || strings.Contains(scan.TextOf(args), " -") {
				c.Opaque("dotnet " + sub + " runs code that is given as text")
			}
		}
		return false
	case "cmake":
		// cmake -E is a set of portable tools; only env, time and chdir start another program.
		if c.Args[1].Text != "-E" || len(c.Args) < 4 {
			return false
		}
		rest := c.Args[3:]
		switch c.Args[2].Text {
		// NAME=value words and options such as --unset=NAME stand in front of the call.
		case "env":
			for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "--") {
				rest = rest[1:]
			}
			inner = assignments(rest, c)
		case "time":
			inner = rest
		// The folder is the first word; what follows runs there.
		case "chdir":
			moved := c.Fork()
			moveTo(rest[0], moved)
			c.NoGrant = true
			moved.Run(rest[1:])
			return true
		default:
			return false
		}
	// -c runs a command instead of a recipe; --shell replaces the shell of all recipes.
	case "just":
		for i, a := range c.Args[1:] {
			switch key, val, has := strings.Cut(a.Text, "="); {
			case key == "--shell" || key == "--chooser":
				c.Opaque("just " + key + " runs another program")
				c.NoGrant = true
				if has {
					c.Salvage(val)
				} else if i+2 < len(c.Args) {
					c.Salvage(c.Args[i+2].Text)
				}
			case a.Text == "-c" || a.Text == "--command":
				inner = c.Args[i+2:]
			}
		}
		if inner == nil {
			return false
		}
	// A script's name alone is run by node.
	case "nodemon":
		if len(args) > 0 && !strings.Contains(scan.TextOf(c.Args), "-x") && !strings.Contains(scan.TextOf(c.Args), "--exec") {
			for _, end := range [...]string{".js", ".mjs", ".cjs", ".ts"} {
				if strings.HasSuffix(args[0].Text, end) {
					inner = append([]scan.Word{scan.Plain("node")}, args...)
				}
			}
		}
		if inner == nil {
			return false
		}
	// --run_under is put in front of the program that is built, and may be a whole command line.
	case "bazel", "bazelisk":
		for i, a := range args {
			if key, val, has := strings.Cut(a.Text, "="); key == "--run_under" {
				if !has && i+1 < len(args) {
					val = args[i+1].Text
				}
				shell(scan.Plain(val))
			}
		}
		return false
	// The wrapper's own options reach to the end, so all of the words behind it are named for rules that deny.
	case "tox", "nox", "ctest", "meson":
		for i, a := range args {
			key, val, has := strings.Cut(a.Text, "=")
			if key == "--wrap" || key == "--wrapper" || key == "--test-command" || name == "ctest" && (key == "-S" || key == "-SP" || key == "--script") {
				c.Opaque(name + " " + key + " runs another program")
				c.NoGrant = true
				if !has && i+1 < len(args) {
					val = scan.TextOf(args[i+1:])
				}
				c.Salvage(val)
			}
		}
		return false
	// Without -m the argument of -a is a command line for the other machines (ansible(1), module "command").
	case "ansible":
		text := " " + scan.TextOf(args)
		if strings.Contains(text, " -a") || strings.Contains(text, " --args") {
			c.NoGrant = true
			for i, a := range args {
				if (a.Text == "-a" || a.Text == "--args") && i+1 < len(args) {
					c.Opaque("ansible runs commands on machines it is told")
					c.Salvage(args[i+1].Text)
				}
			}
		}
		return false
	default:
		return false
	}
	c.NoGrant = true
	pathArgs(c.With(own), recordOf(c, name).spec)
	if len(inner) > 0 {
		c.Run(inner)
	}
	return true
}
