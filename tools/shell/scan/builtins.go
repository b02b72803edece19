package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// isBuiltin reports whether builtin handles the name. echo, printf, test and [ are missing because they are treated as
// programs; "true", "false" and ":" are included so that they never need approval.
func isBuiltin(name string) bool {
	switch name {
	case "cd", "chdir", "pushd", "popd", "exit", "return", "break", "continue", "eval", "source", ".", "trap", "set", "shopt", "alias", "unalias",
		"export", "declare", "typeset", "local", "readonly", "unset", "read", "mapfile", "readarray", "getopts", "wait", "hash", "enable",
		"complete", "compgen", "compopt", "bind", "fc", "history", "let", ":", "shift", "times", "umask", "ulimit", "jobs", "fg", "bg", "disown",
		"dirs", "type", "suspend", "logout", "caller", "help", "true", "false":
		return true
	}
	return false
}

// builtin handles a call of a builtin. It fills in entry, with Silent for builtins that only change the shell itself, moves
// c.st to the state after success, and returns the state after failure.
func (w *walker) builtin(name string, c *Visit, entry *Call) (fail state) {
	entry.ReadOnly = true
	fail = *c.st
	switch name {
	case "cd", "chdir":
		entry.Silent = true
		defer w.mover.moved(c.st)
		return w.mover.cd(c.Args[1:], c.st)
	case "pushd":
		entry.Silent = true
		defer w.mover.moved(c.st)
		return w.mover.pushd(c.Args[1:], c.st)
	case "popd":
		entry.Silent = true
		defer w.mover.moved(c.st)
		return popd(c.Args[1:], c.st)
	case "exit", "return", "logout":
		entry.Silent = true
		// env exit starts a program of that name and leaves this shell alone.
		if c.wrapped || !leaves(name, c) {
			return fail
		}
		// The commands after exit are unreachable. Without this, "cd x || exit; rm *" would also be walked from the folder before the cd.
		c.st.dead = true
		fail.dead = true
		return fail
	case "eval":
		w.opaque("eval runs what its words say")
		entry.ReadOnly, entry.NoGrant = false, true
		// The text is walked all the same, so that a rule that denies rm also denies eval 'rm x'.
		if s, ok := Spelled(c.Args[1:]); ok {
			w.script(s, c.st)
		}
	case "source", ".":
		w.opaque("it runs what stands in a file, as part of this shell")
		entry.ReadOnly, entry.NoGrant = false, true
		if len(c.Args) > 1 {
			c.Touch(c.Args[1], Read)
		}
	case "trap":
		w.trap(c)
	case "alias":
		for _, a := range c.Args[1:] {
			// alias NAME only prints; NAME=value gives every later NAME another meaning where aliases are expanded.
			if strings.Contains(a.Source, "=") || !a.Known() {
				w.opaque("an alias changes what words mean")
			}
		}
	case "shopt", "set":
		options(c)
	case "enable", "hash", "complete", "bind", "fc", "compgen", "history":
		// hash -p makes a name run another program, enable -f loads a library into the shell, complete -C and bind -x run commands
		// later, and fc runs a line of the history even without arguments. hash -r only empties the table of program locations.
		if len(c.Args) > 1 && !(name == "hash" && len(c.Args) == 2 && c.Args[1].Text == "-r") || name == "fc" {
			w.opaque(name + " may load or run code")
			entry.ReadOnly = false
		}
	case "export", "declare", "typeset", "local", "readonly": // as in "command export x=1"; a plain export is a DeclClause, see declare
		for _, a := range c.Args[1:] {
			w.declared(a)
			if s, ok := a.One(); !ok || len(s) > 1 && s[0] == '-' && strings.ContainsAny(s, "iaA") || s != "" && s[0] == '-' && name != "export" &&
				strings.Contains(s, "n") {
				w.opaque(name + " " + a.Source + " may evaluate what is assigned")
			}
		}
	case "jobs":
		// jobs -x runs the command that follows, with job numbers replaced.
		if len(c.Args) > 2 && strings.HasPrefix(c.Args[1].Text, "-") && strings.Contains(c.Args[1].Text, "x") {
			entry.NoGrant = true
			rest := c.Args[2:]
			if rest[0].Text == "--" {
				rest = rest[1:]
			}
			c.Run(rest)
		}
	case "read", "mapfile", "readarray", "unset", "getopts", "wait":
		setsNames(name, c)
		if name == "unset" {
			c.st.funcs = nil // it may remove any function; with an empty list every function name is walked as a program too
			fail.funcs = nil
		}
	// let evaluates each argument as arithmetic, in which the index of an array may run a command; see arithm.
	case "let":
		w.opaque("let evaluates its words")
	}
	if name == "set" && len(c.Args) == 1 {
		entry.ReadOnly = false // set alone prints all variables, and the model would receive the secrets among them
		return fail
	}
	switch name {
	case "source", ".", "eval", "trap", "enable", "hash", "complete", "bind", "fc", "alias":
	default:
		entry.Silent = true
	}
	return fail
}

// leaves reports whether exit or return certainly ends the walked script or function. Bash continues after a return outside
// of functions and after logout in a shell that is not a login shell; what it does with a status that is not a number depends on
// its version. In doubt the answer is false: the rest of the script is then walked too, which can only lead to more approval requests.
func leaves(name string, c *Visit) bool {
	if name == "logout" || name == "return" && c.w.inFunc == 0 || len(c.Args) > 2 {
		return false
	}
	return len(c.Args) == 1 || strings.Trim(c.Args[1].Text, "0123456789") == "" || strings.HasPrefix(c.Args[1].Source, "$?")
}

// options checks the arguments of set and shopt. An option that changes how bash reads the rest of the script makes the command
// opaque, because the rest has already been parsed without it.
func options(c *Visit) {
	set := c.Args[0].Text != "shopt"
	for _, a := range c.Args[1:] {
		s, ok := a.One()
		if set && ok && (s == "--" || s == "-") {
			return // words follow, no options
		}
		switch {
		case !ok:
			c.Opaque("which option is set cannot be said")
		// -k is keyword, -P physical, -H histexpand and -B braceexpand, in clusters too: set -eP.
		case changesReading[s], set && len(s) > 1 && (s[0] == '-' || s[0] == '+') && strings.ContainsAny(s, "kPHB"):
			c.Opaque("the option " + s + " changes how the rest is read")
		}
		// The first argument that is not an option begins the positional parameters.
		if set && ok && s != "" && s[0] != '-' && s[0] != '+' && !shellOptions[s] {
			return
		}
	}
}

// changesReading are options after which commands, words or folders mean something else. With histexpand, "!" inserts words
// of earlier lines, in bash -c too.
var changesReading = map[string]bool{
	"physical": true, "expand_aliases": true, "extglob": true, "lastpipe": true, "autocd": true, "cdable_vars": true, "sourcepath": true,
	"extdebug": true, "posix": true,
	"keyword": true, "globstar": true, "dotglob": true, "nocaseglob": true, "histexpand": true, "history": true, "braceexpand": true, "cdspell": true,
}

// shellOptions are the names that set -o accepts and that do not change how the script is read.
var shellOptions = map[string]bool{
	"allexport": true, "errexit": true, "errtrace": true, "functrace": true, "hashall": true, "ignoreeof": true, "monitor": true,
	"noclobber": true, "noexec": true, "noglob": true,
	"nolog": true, "notify": true, "nounset": true, "onecmd": true, "pipefail": true, "privileged": true, "verbose": true, "xtrace": true,
	"emacs": true, "vi": true, "interactive-comments": true,
}

// setsNames checks the names of variables that a builtin sets: a name such as a[$(cmd)] runs the command.
func setsNames(name string, c *Visit) {
	// takesValue has the options whose value is the next word (bash(1), SHELL BUILTIN COMMANDS). The value of wait -p is the name
	// of a variable, which is checked below.
	takesValue := map[string]string{"read": "dinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc", "wait": "p"}[name]
	skip := false
	for i, a := range c.Args[1:] {
		s, ok := a.One()
		switch {
		case skip:
			skip = false
		// getopts OPTIONS NAME WORDS…: only NAME is a variable.
		case name == "getopts" && i == 0:
		case strings.HasPrefix(a.Text, "-") && len(a.Text) > 1:
			if strings.ContainsRune(a.Text, 'C') && name != "read" {
				c.Opaque(name + " -C runs a command")
			}
			// In read -n 5 the value is the next word, in read -n5 the rest of the same word.
			skip = name != "wait" && len(a.Text) == 2 && strings.IndexByte(takesValue, a.Text[1]) >= 0
		case name == "wait":
			if i > 0 && strings.HasSuffix(c.Args[i].Text, "p") && strings.HasPrefix(c.Args[i].Text, "-") && (!ok || !syntax.ValidName(s)) {
				c.Opaque(name + " -p is given " + a.Source + ", which is not the plain name of a variable")
			}
		case ok && syntax.ValidName(s):
			if name != "unset" {
				c.Sets(s, nil)
			} else if c.w.programs.Variable(Assignment{Name: s, paths: c.w.paths}) != "" {
				c.Opaque("it unsets " + s + ", which changes what programs do")
			}
		default:
			if name == "getopts" && i > 1 {
				continue
			}
			c.Opaque(name + " is given " + a.Source + ", which is not the plain name of a variable")
		}
	}
}

// ChangesReading reports whether commands, words or folders mean something else once this option of bash is set.
func ChangesReading(option string) bool { return changesReading[option] }

// namesVariable checks the name of a variable that is given to test -v, test -R or printf -v. Bash evaluates an index in
// that name, so test -v 'a[$(cmd)]' and printf -v 'a[$(cmd)]' run cmd.
func namesVariable(c *Visit) {
	for i, a := range c.Args[1:] {
		// c.Args[i+1] is a, c.Args[i+2] the word after it. An unknown word may be -v as well.
		if i+2 >= len(c.Args) || a.Text != "-v" && a.Text != "-R" && a.Known() {
			continue
		}
		if s, ok := c.Args[i+2].One(); !ok || !syntax.ValidName(s) {
			if a.Text == "-v" || a.Text == "-R" {
				c.Opaque("it evaluates the name of a variable: " + c.Args[i+2].Source)
			}
		} else if a.Text == "-v" && c.Args[0].Text == "printf" {
			c.Sets(s, nil)
		}
	}
	if c.Args[0].Text == "printf" && len(c.Args) > 1 && strings.HasPrefix(c.Args[1].Text, "-v") && c.Args[1].Text != "-v" {
		c.Opaque("it evaluates the name of a variable: " + c.Args[1].Source)
	}
}
