package shell

import (
	"strings"
)

// shells run a string, a script or what they read.
var shells = map[string]bool{
	"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "rbash": true, "fish": true, "nu": true, "csh": true, "tcsh": true, "pwsh": true, "powershell": true, "elvish": true, "xonsh": true,
}

// shell looks at sh -c '…', sh script, and scripts on stdin.
func (w *walker) shell(name string, c *call, entry *Call) {
	entry.NoGrant = true
	args := c.args[1:]
	command, stdin := false, false
	for len(args) > 0 {
		s, ok := args[0].one()
		if !ok || s == "" || s[0] != '-' && s[0] != '+' || s == "-" {
			break
		}
		args = args[1:]
		if s == "--" {
			break
		}
		if strings.HasPrefix(s, "--") {
			switch s {
			case "--rcfile", "--init-file":
				w.opaque(name + " " + s + " runs a file first")
				if len(args) > 0 {
					w.recordArg(args[0], Read, c.st)
					args = args[1:]
				}
			case "--version", "--help":
				return
			case "--command":
				command = true
			}
			continue
		}
		if s == "-Command" || s == "-EncodedCommand" {
			w.opaque(name + " runs another language")
			return
		}
		command = command || strings.ContainsRune(s, 'c')
		stdin = stdin || strings.ContainsRune(s, 's')
		if strings.ContainsAny(s[1:], "kPHB") {
			w.opaque(name + " " + s + " changes how the rest is read")
		}
		for range strings.Count(s, "o") + strings.Count(s, "O") {
			if len(args) == 0 {
				break
			}
			if option, ok := args[0].one(); !ok || changesReading[option] {
				w.opaque(name + " " + s + " " + args[0].text + " changes how the rest is read")
			}
			args = args[1:]
		}
	}
	switch {
	case command:
		if len(args) == 0 {
			return
		}
		switch name {
		case "fish", "nu", "csh", "tcsh", "pwsh", "powershell", "elvish", "xonsh":
			w.opaque(name + " speaks another language")
			w.salvage(args[0].text)
			return
		}
		w.nested(args[0], c.st, name+" -c")
	case len(args) > 0 && !stdin && args[0].text != "-":
		w.recordArg(args[0], Read, c.st)
		w.madeHere(args[0].text, c.st)
		if len(args[0].vals) == 1 && strings.HasPrefix(args[0].vals[0].s, "/dev/") {
			w.opaque(name + " runs what it reads")
		}
		w.pathArgs(&call{args: args, st: c.st}, generic)
	case c.in.kind == "here" && c.in.ok:
		w.nested(plainArg(c.in.text), c.st, name)
	default:
		w.opaque(name + " runs what it reads from its input")
		if c.in.ok {
			w.nested(plainArg(c.in.text), c.st, name)
		}
	}
}

// interpreter reports programs that run code of another language.
func interpreter(name string) bool {
	switch name {
	case "node", "nodejs", "deno", "bun", "ruby", "irb", "perl", "php", "lua", "luajit", "Rscript", "R", "julia", "osascript", "tclsh", "wish", "expect", "guile", "ghci", "runghc", "groovy", "scala", "elixir", "iex", "erl", "swipl", "ocaml", "racket", "sbcl", "clisp", "emacs", "vim", "vi", "nvim", "ex", "ed", "gdb", "lldb", "sqlite3", "psql", "mysql", "tsx", "ts-node", "jshell", "clojure", "clj", "raku", "mongosh", "mongo", "duckdb", "view", "vimdiff", "gvim", "crystal", "nim", "escript", "janet", "fennel", "kotlin", "octave", "bc", "dc", "m4", "awk", "gawk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "just", "ssh", "docker", "podman", "kubectl", "pypy", "pypy3", "ipython":
		return name != "make" && name != "gmake" && name != "just" && name != "docker" && name != "podman" && name != "kubectl" && name != "bun" && name != "deno"
	}
	return strings.HasPrefix(name, "python")
}

// code names the options that carry code, by interpreter.
func code(name, option string) bool {
	long, _, _ := strings.Cut(option, "=")
	switch long {
	case "--eval", "--print", "--execute", "--command", "--expression", "--batch", "-eval", "-ex", "-r", "--require", "--import", "--loader", "--experimental-loader":
		return !(long == "-r" && name == "sqlite3")
	}
	if len(option) < 2 || option[0] != '-' || option[1] == '-' {
		return false
	}
	letters := "ecE"
	switch {
	case strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") || name == "ipython":
		letters = "c"
	case name == "perl":
		letters = "eEpnMm"
	case name == "node" || name == "nodejs":
		letters = "epr"
	case name == "ruby":
		letters = "epnr"
	case name == "php":
		letters = "rBREF"
	case name == "vim" || name == "vi" || name == "nvim" || name == "ex" || name == "view" || name == "vimdiff" || name == "gvim":
		letters = "cSsu"
	case name == "psql" || name == "mysql" || name == "duckdb" || name == "sqlite3":
		letters = "f"
	case name == "gdb" || name == "lldb":
		letters = "oxks"
	}
	return strings.ContainsAny(option[1:min(len(option), 4)], letters)
}

// interpreter looks at python, node and the like: code in an argument or on stdin is opaque, a script is a file.
func (w *walker) interpreter(name string, c *call, entry *Call) {
	entry.NoGrant = true
	switch name {
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed":
		entry.ReadOnly = w.readOnly(name, c)
		s := specOf(strings.TrimPrefix(strings.TrimPrefix(name, "g"), "n"))
		if entry.ReadOnly {
			s.words = []kind{kindText, kindRead}
		}
		w.pathArgs(c, s)
		entry.NoGrant = !entry.ReadOnly
		if strings.HasSuffix(name, "sed") && !entry.ReadOnly && !sedUnderstood(c.args[1:]) {
			w.opaque("the script of sed may run programs or write files")
			for _, a := range c.args[1:] {
				w.sedPaths(a.text, c.st)
			}
		}
		if strings.HasSuffix(name, "awk") && !entry.ReadOnly && !awkFile(c.args[1:]) {
			w.opaque("the program of awk may run programs or write files")
			for _, a := range c.args[1:] {
				w.awkPaths(a.text, c.st)
			}
		}
		return
	case "ssh":
		w.ssh(c)
		return
	case "crystal", "nim":
		if len(c.args) > 1 && c.args[1].text == "eval" || name == "nim" && strings.Contains(textOf(c.args), "--eval") {
			w.opaque(name + " runs code that is given as text")
		}
		w.pathArgs(c, generic)
		return
	case "dc":
		if strings.Contains(textOf(c.args), "!") || strings.Contains(c.in.text, "!") || c.in.kind != "" && !c.in.ok {
			w.opaque("dc may run what it is given behind !")
		}
		w.pathArgs(c, specOf(name))
		return
	case "sqlite3", "psql", "mysql", "duckdb":
		w.sqlPrograms(name, c)
	case "bc":
		w.pathArgs(c, specOf(name))
		return
	}
	switch name {
	case "vim", "vi", "nvim", "ex", "ed", "view", "vimdiff", "gvim", "emacs", "sqlite3", "psql", "mysql", "duckdb", "gdb", "lldb", "m4":
		if c.in.kind != "" {
			w.opaque(name + " obeys what it reads from its input")
		}
		for _, a := range c.args[1:] {
			if strings.HasPrefix(a.text, "+") || strings.HasPrefix(a.text, "--cmd") {
				w.opaque(name + " runs code that is given as text: " + a.text)
			}
		}
	}
	python := strings.HasPrefix(name, "py") || name == "ipython"
	args := c.args[1:]
	for i, a := range args {
		s := a.text
		if _, ok := a.one(); !ok && strings.HasPrefix(s, "-") || !a.known() && i == 0 {
			w.opaque("which code " + name + " runs cannot be said")
		}
		if i > 0 && s != "-" && !strings.HasPrefix(s, "-") && valueOption(name, args[i-1].text) {
			continue
		}
		if !strings.HasPrefix(s, "-") || s == "-" {
			if s == "-" {
				w.opaque(name + " runs what it reads from its input")
			} else if a.known() && len(a.vals) == 1 && strings.HasPrefix(a.vals[0].s, "/dev/") {
				w.opaque(name + " runs what it reads")
			} else {
				w.madeHere(s, c.st)
			}
			break
		}
		if python && s == "-m" {
			w.hookManager(args[i+1:], entry, c.st)
			w.pathArgs(&call{args: args[i:], st: c.st}, generic)
			return
		}
		switch s {
		case "--version", "-V", "-version", "--help", "-h":
			if len(args) == 1 {
				entry.ReadOnly, entry.NoGrant = true, false
				return
			}
		case "-v":
			if len(args) == 1 && (name == "node" || name == "ruby" || name == "perl" || name == "php") {
				entry.ReadOnly, entry.NoGrant = true, false
				return
			}
		}
		if code(name, s) {
			w.opaque(name + " runs code that is given as text: " + s)
			if editors[name] {
				for _, b := range args[i:] {
					w.codePaths(b.text, Write, c.st)
				}
			}
			break
		}
	}
	if len(args) == 0 || allOptions(args) && c.in.kind != "" {
		if c.in.kind != "" {
			w.opaque(name + " runs what it reads from its input")
		}
	}
	if name == "deno" && len(args) > 0 && args[0].text == "eval" {
		w.opaque("deno runs code that is given as text")
	}
	switch name {
	case "sqlite3", "psql", "mysql":
		w.pathArgs(c, specOf(name))
	default:
		w.pathArgs(c, generic)
	}
}

// editors are driven by their own commands, in which files stand as words: :w ../x
var editors = map[string]bool{"vim": true, "vi": true, "nvim": true, "ex": true, "ed": true, "view": true, "vimdiff": true, "gvim": true}

func allOptions(args []arg) bool {
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			return false
		}
	}
	return true
}

// ssh runs its command elsewhere; options may run one here.
func (w *walker) ssh(c *call) {
	for _, a := range c.args[1:] {
		if !a.known() && strings.HasPrefix(a.text, "-") {
			w.opaque("an option of ssh runs a command here")
		}
	}
	w.hiddenPrograms("ssh", c, &Call{})
	w.applySpec(c, specOf("ssh"))
}
