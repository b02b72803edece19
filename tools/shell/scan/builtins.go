package scan

import (
	"path"
	"path/filepath"
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
		defer w.moved(c)
		return w.cd(c.Args[1:], c.st)
	case "pushd":
		entry.Silent = true
		defer w.moved(c)
		return w.pushd(c.Args[1:], c.st)
	case "popd":
		entry.Silent = true
		defer w.moved(c)
		// popd +n takes an entry out of the middle; an empty stack may have been lost in a merge.
		if n := len(c.st.stack); n > 0 && len(c.Args) == 1 {
			c.st.dirs, c.st.stack = c.st.stack[n-1], c.st.stack[:n-1]
		} else {
			c.st.unknown = true
		}
		return *c.st
	case "exit", "return", "logout":
		entry.Silent = true
		// env exit starts a program of that name and leaves this shell alone.
		if c.wrapped || !w.leaves(name, c) {
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
		w.options(c)
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
		w.setsNames(name, c)
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

// moved notes where the shell is now.
// runTraps looks at every trap from each of these folders, since a signal may come while the shell is in any of them.
func (w *walker) moved(c *Visit) {
	if c.st.unknown {
		w.traps.lost = true
	} else {
		w.traps.been = union(w.traps.been, c.st.dirs)
	}
}

// cd moves the shell. It may fail, and leave the shell where it was, unless the folder is there now.
// The result is the state after a failure; when the folder is surely there, it is the same as after success.
func (w *walker) cd(args []Word, st *state) (fail state) {
	fail = *st
	var target *Word
	physical := false
	for i := range args {
		s, _ := args[i].One()
		if target == nil && (s == "-L" || s == "-P" || s == "-e" || s == "-@" || s == "--" || s == "-Pe" || s == "-eP") {
			physical = s != "-L" && (physical || strings.Contains(s, "P"))
			continue
		}
		if target != nil {
			return fail // too many arguments: cd does nothing
		}
		target = &args[i]
	}
	// cd alone goes to $HOME, which the command may have set.
	if target == nil {
		home := Plain(w.req.Home)
		home.Values = w.variable("HOME", st)
		target = &home
	}
	before := st.dirs
	if s, ok := target.One(); ok && s == "-" {
		// OLDPWD is whatever the environment held when the shell started.
		if len(st.prev) == 0 {
			st.unknown = true
		}
		st.dirs, st.prev = st.prev, before
		return fail
	}
	dirs, sure := w.targets(*target, st)
	if dirs == nil {
		st.unknown = true
		return fail
	}
	if physical { // ".." leaves the folder that a link leads to
		s, ok := target.One()
		if !ok {
			st.unknown = true
			return fail
		}
		dirs, sure = nil, false
		for _, d := range st.dirs {
			if strings.HasPrefix(s, "/") {
				d = ""
			}
			dirs = union(dirs, []string{w.paths.real(d + "/" + s)})
		}
	}
	// cd needs no more than to look at the folder, so one outside the project is reported as read, not as written.
	for _, d := range dirs {
		w.paths.add(d, Read)
	}
	st.dirs, st.prev, st.unknown = dirs, before, false
	if len(dirs) > maxDirs {
		st.unknown = true
	}
	if sure {
		return *st
	}
	return fail
}

// targets are the folders cd may go to; nil when they cannot be known. sure: it cannot fail.
// CDPATH, by which a relative name could mean another folder, does not matter: package run takes it out of the environment, and
// setting it in the command makes that opaque.
func (w *walker) targets(a Word, st *state) (dirs []string, sure bool) {
	sure = !w.removes
	for _, v := range a.Values {
		switch {
		case v.Text == "":
			dirs = union(dirs, st.dirs)
			if a.many { // cd $EMPTY is cd
				dirs = union(dirs, []string{w.req.Home})
			}
			continue
		case v.Known() && v.Glob && !strings.Contains(v.Text, Hole) && (!st.unknown || strings.HasPrefix(v.Text, "/")):
			found, ok := w.folders(v, st)
			if !ok {
				return nil, false
			}
			dirs = union(dirs, found)
			continue
		case !v.Exact():
			return nil, false
		case strings.HasPrefix(v.Text, "/"):
			dirs = union(dirs, []string{path.Clean(v.Text)})
		case st.unknown:
			return nil, false
		default:
			for _, d := range st.dirs {
				dirs = union(dirs, []string{path.Join(d, v.Text)})
			}
		}
	}
	for _, d := range dirs {
		// A folder that is there now can still be entered then, unless a program before may remove it (removes).
		sure = sure && w.paths.stat(w.paths.real(d)).dir
	}
	if a.many {
		sure = false
	}
	return dirs, sure
}

// folders are those a wildcard finds now.
func (w *walker) folders(v Value, st *state) ([]string, bool) {
	var out []string
	bases := st.dirs
	if strings.HasPrefix(v.Text, "/") {
		bases = []string{""}
	}
	for _, d := range bases {
		// A Glob may read many folders. It is charged as 100 lookups, since what it really reads cannot be counted from here.
		if w.paths.lookups += 100; w.paths.lookups > maxLookups {
			w.paths.exhausted = true
			return nil, false
		}
		pattern := v.Pattern
		if d != "" {
			pattern = escapeGlob(d) + "/" + v.Pattern
		}
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) > maxDirs {
			return nil, false
		}
		for _, f := range found {
			out = append(out, path.Clean(f))
		}
	}
	if len(out) == 0 {
		out = bases // nothing to go to
	}
	return out, true
}

// pushd moves the shell and keeps where it was, for popd. Rotating the stack (+n, -n) makes the directory unknown.
func (w *walker) pushd(args []Word, st *state) (fail state) {
	fail = *st
	if len(args) != 1 || strings.HasPrefix(args[0].Text, "+") || strings.HasPrefix(args[0].Text, "-") {
		st.unknown = true
		return fail
	}
	old := st.dirs
	fail = w.cd(args, st)
	// Both states need the same depth of stack: merge forgets stacks of different depths, and popd would then be unknown.
	sure := fail.same(st) // it cannot fail, so there is one stack
	st.stack = append(st.stack[:len(st.stack):len(st.stack)], old)
	if sure {
		fail.stack = st.stack
	}
	return fail
}

// leaves reports that exit or return surely ends what is walked: bash continues after return outside of functions, logout
// in a shell that is not a login shell, and a status it does not understand.
// When in doubt it answers no: the rest of the script is then looked at as well, which can only add questions.
func (w *walker) leaves(name string, c *Visit) bool {
	if name == "logout" || name == "return" && w.inFunc == 0 || len(c.Args) > 2 {
		return false
	}
	return len(c.Args) == 1 || strings.Trim(c.Args[1].Text, "0123456789") == "" || strings.HasPrefix(c.Args[1].Source, "$?")
}

// options looks at set and shopt. An option that changes how the rest of the script is read makes the command opaque:
// the rest was parsed without it.
func (w *walker) options(c *Visit) {
	set := c.Args[0].Text != "shopt"
	for _, a := range c.Args[1:] {
		s, ok := a.One()
		if set && ok && (s == "--" || s == "-") {
			return // words follow, no options
		}
		switch {
		case !ok:
			w.opaque("which option is set cannot be said")
		// -k is keyword, -P physical, -H histexpand and -B braceexpand, in clusters too: set -eP.
		case changesReading[s], set && len(s) > 1 && (s[0] == '-' || s[0] == '+') && strings.ContainsAny(s, "kPHB"):
			w.opaque("the option " + s + " changes how the rest is read")
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
func (w *walker) setsNames(name string, c *Visit) {
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
				w.opaque(name + " -C runs a command")
			}
			// read -n 5 takes the next word; in read -n5 the value is glued on.
			skip = name != "wait" && len(a.Text) == 2 && strings.IndexByte(takesValue, a.Text[1]) >= 0
		case name == "wait":
			if i > 0 && strings.HasSuffix(c.Args[i].Text, "p") && strings.HasPrefix(c.Args[i].Text, "-") && (!ok || !syntax.ValidName(s)) {
				w.opaque(name + " -p is given " + a.Source + ", which is not the plain name of a variable")
			}
		case ok && syntax.ValidName(s):
			if name != "unset" {
				w.setVariable(s, nil)
			} else if w.programs.Variable(Assignment{Name: s, paths: w.paths}) != "" {
				w.opaque("it unsets " + s + ", which changes what programs do")
			}
		default:
			if name == "getopts" && i > 1 {
				continue
			}
			w.opaque(name + " is given " + a.Source + ", which is not the plain name of a variable")
		}
	}
}

// ChangesReading reports an option of bash after which commands, words or folders mean something else.
func ChangesReading(option string) bool { return changesReading[option] }
