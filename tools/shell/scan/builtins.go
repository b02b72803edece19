package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// isBuiltin lists the builtins that need more than a look at their paths. echo, printf, test and [ are programs like
// any other here.
// "true", "false" and ":" are in the list so that they raise no question.
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

// builtin looks at a builtin of the shell. Those that only change the shell itself raise no pattern: entry.Silent
// is set.
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
		// What follows is unreachable. Without this "cd x || exit; rm *" would also be looked at from the folder before.
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
		// hash -p gives a name another program, enable -f loads a library into the shell, complete and bind -x name commands.
		// hash -r only forgets where programs are. fc runs a line of the history even without arguments.
		if len(c.Args) > 1 && !(name == "hash" && len(c.Args) == 2 && c.Args[1].Text == "-r") || name == "fc" {
			w.opaque(name + " may load or run code")
			entry.ReadOnly = false
		}
	case "export", "declare", "typeset", "local", "readonly": // after command or builtin
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
			c.st.funcs = nil // which of them is gone does not matter: the others are looked at as programs too
			fail.funcs = nil
		}
	// let takes each word for arithmetic, in which the index of an array may run a command; see arithm.
	case "let":
		w.opaque("let evaluates its words")
	}
	if name == "set" && len(c.Args) == 1 {
		entry.ReadOnly = false // it prints all variables: keys among them would be sent to a model
		return fail
	}
	switch name {
	case "source", ".", "eval", "trap", "enable", "hash", "complete", "bind", "fc", "alias":
	default:
		entry.Silent = true
	}
	return fail
}

// leaves reports that exit or return surely ends what is walked: bash continues after return outside of functions, logout
// in a shell that is not a login shell, and a status it does not understand.
// When in doubt it answers no: the rest of the script is then looked at as well, which can only add questions.
func leaves(name string, c *Visit) bool {
	if name == "logout" || name == "return" && c.w.inFunc == 0 || len(c.Args) > 2 {
		return false
	}
	return len(c.Args) == 1 || strings.Trim(c.Args[1].Text, "0123456789") == "" || strings.HasPrefix(c.Args[1].Source, "$?")
}

// options looks at set and shopt. An option that changes how the rest of the script is read makes the command opaque:
// the rest was parsed without it.
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
		// The first word that is not an option begins the positional parameters, which change no reading.
		if set && ok && s != "" && s[0] != '-' && s[0] != '+' && !shellOptions[s] {
			return
		}
	}
}

// changesReading are options after which commands, words or folders mean something else. With histexpand a ! makes
// words of lines before it, in bash -c too.
var changesReading = map[string]bool{
	"physical": true, "expand_aliases": true, "extglob": true, "lastpipe": true, "autocd": true, "cdable_vars": true, "sourcepath": true,
	"extdebug": true, "posix": true,
	"keyword": true, "globstar": true, "dotglob": true, "nocaseglob": true, "histexpand": true, "history": true, "braceexpand": true, "cdspell": true,
}

// shellOptions are the names that set -o takes and that change nothing here.
var shellOptions = map[string]bool{
	"allexport": true, "errexit": true, "errtrace": true, "functrace": true, "hashall": true, "ignoreeof": true, "monitor": true,
	"noclobber": true, "noexec": true, "noglob": true,
	"nolog": true, "notify": true, "nounset": true, "onecmd": true, "pipefail": true, "privileged": true, "verbose": true, "xtrace": true,
	"emacs": true, "vi": true, "interactive-comments": true,
}

// setsNames checks the names of variables that a builtin sets: a name such as a[$(cmd)] runs the command.
func setsNames(name string, c *Visit) {
	// The letters are those of bash(1), SHELL BUILTIN COMMANDS, whose value is the next word. That of wait -p names a variable,
	// which is checked below.
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
			// read -n 5 takes the next word; in read -n5 the value is glued on.
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

// ChangesReading reports an option of bash after which commands, words or folders mean something else.
func ChangesReading(option string) bool { return changesReading[option] }

// namesVariable looks at test -v and printf -v: an index in the name is evaluated.
// The attack is test -v 'a[$(cmd)]' or printf -v 'a[$(cmd)]': both run cmd, though they look like a test and a print.
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
