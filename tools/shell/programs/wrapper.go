package programs

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// wrapper analyzes a call of a program that runs another program, such as sudo or timeout. The inner call is analyzed as if it stood
// alone, with the environment and the folder that the wrapper gives it, and rules see both calls. A grant for "timeout *" would cover
// every program, so no grant covers the outer call (NoGrant), unless both calls only read.
func wrapper(name string, r *Record, c *scan.Visit) {
	c.NoGrant = true
	args := c.Args[1:]
	switch name {
	case "env":
		env(args, c)
		return
	case "xargs":
		xargs(args, c)
		return
	// sudo -e opens files in the editor that the environment names (sudo(8)). The record has the other options.
	case "sudo", "doas":
		for i, a := range args {
			if !strings.HasPrefix(a.Text, "-") {
				break
			}
			if name == "sudo" && (a.Text == "-e" || strings.HasPrefix(a.Text, "--edit")) {
				c.Opaque("sudo -e runs an editor")
				for _, f := range args[i+1:] {
					c.Touch(f, scan.Write)
				}
				return
			}
		}
	// command -v and -V only print where a program is; scripts check with them that it is installed.
	case "command":
		for _, a := range args {
			if strings.HasPrefix(a.Text, "-") && strings.ContainsAny(a.Text, "vV") {
				c.ReadOnly, c.NoGrant = true, false
				return
			}
			if !strings.HasPrefix(a.Text, "-") {
				break
			}
		}
	// exec CALL replaces the shell by CALL. Without a call, exec only applies its redirections to the shell.
	case "exec":
		if len(args) == 0 {
			c.ReadOnly, c.NoGrant, c.Silent = true, false, true
			return // package scan analyzes the redirections
		}
	}
	// su and runuser give the value of -c to a shell that runs as another user; without one they start a shell. Options may follow the
	// user's name. With -u, runuser runs a call instead.
	if name == "su" || name == "runuser" {
		s, found := r.spec, false
		for rest := args; len(rest) > 0; {
			var scripts []scan.Word
			if rest, scripts = ownOptions(&s, rest, c); len(rest) > 0 {
				rest = rest[1:]
			}
			for _, text := range scripts {
				c.Script(text, name)
				found = true
			}
		}
		if name == "su" || !slices.ContainsFunc(args, func(a scan.Word) bool { return strings.HasPrefix(a.Text, "-u") || strings.HasPrefix(a.Text, "--u") }) {
			if !found {
				c.Opaque(name + " starts a shell")
			}
			return
		}
	}
	// The record describes the words of all other wrappers.
	at := reach(c, r)
	at.judge(name, c)
	at.nested(name, c)
}

// nested analyzes the call that is among the words of another call. The last record says where it begins: after some words (Skip),
// after "--" (Dashes), after NAME=value words (Assigns), or in the value of an option (kindScript). It sets NoGrant on the outer call,
// since a grant for it would cover any inner call.
func (at reached) nested(name string, c *scan.Visit) {
	c.NoGrant = true
	r, s := at.last(), at.spec()
	// First the options before the subcommand's name, then those after it.
	_, scripts := ownOptions(&s, at.args(c.Args[:at.next])[1:], c)
	args := c.Args[at.next:]
	rest := args
	if !slices.Contains(slices.Collect(maps.Values(r.InFront)), "*") { // the options after yarn node belong to node
		var more []scan.Word
		rest, more = ownOptions(&s, args, c)
		scripts = append(scripts, more...)
	}
	options := args[:len(args)-len(rest)]
	for _, text := range scripts {
		c.Script(text, name)
	}
	if name == "script" && len(scripts) > 0 && len(rest) > 0 { // script -c command log
		c.Touch(rest[0], scan.Write)
	}
	// The string was the inner command, so the words are not another one. There are exceptions: the words of hyperfine are further
	// commands, and those of sudo and of subcommands (pnpm exec -c) are analyzed as a call.
	if len(scripts) > 0 && len(at.records) == 1 && name != "sudo" && name != "hyperfine" {
		return
	}
	// The words before the call: the duration of timeout, the file of flock, the folder of cmake -E chdir.
	for i := 0; i < r.Skip && len(rest) > 0; i++ {
		switch k := s.word(i, r.Skip); {
		case r.Words == "":
		case k == kindDir: // moves the inner call only, not the shell
			c = c.Fork()
			moveTo(rest[0], c)
		default:
			ofKind(k, rest[0], c)
		}
		rest = rest[1:]
	}
	if r.Dashes {
		if behind := behindWord(args, "--"); behind != nil {
			rest = behind
		}
	}
	// A "--" may separate these words from the call: flock FILE -- CALL.
	if r.Skip > 0 && len(rest) > 0 && rest[0].Text == "--" {
		rest = rest[1:]
	}
	if r.Assigns {
		rest = assignments(rest, c)
	}
	// entr -s runs its first word in a shell (entr(1)).
	if name == "entr" && len(rest) > 0 && slices.ContainsFunc(options, func(a scan.Word) bool { return optionIn(a.Text, "-s") }) {
		c.Script(rest[0], name)
		return
	}
	// flock FILE -c STRING runs the string in a shell (flock(1)).
	if name == "flock" && len(rest) > 1 && (rest[0].Text == "-c" || rest[0].Text == "--command") {
		c.Script(rest[1], name)
		return
	}
	if name == "parallel" {
		parallel(rest, c)
		return
	}
	// Without a call most wrappers do nothing, but sudo and doas may start a shell, and a program with Obeys runs its input.
	if len(rest) == 0 {
		switch {
		case name == "sudo" || name == "doas" || name == "su" || name == "parallel":
			c.Opaque(name + " starts a shell")
		case r.Obeys && c.Input().Kind != "":
			c.Opaque(name + " runs what it reads from its input")
		}
		return
	}
	if _, program, ok := strings.Cut(rest[0].Text, r.Prefix); r.Prefix != "" && ok && rest[0].Static {
		rest = append([]scan.Word{scan.Plain(program)}, rest[1:]...)
	}
	rest = r.inFront(options, rest)
	switch {
	case r.Runs == "script":
		scriptWords(name, rest, c)
	case r.Runs == "package":
		packageCall(rest, c)
	default:
		readOnly := c.Run(rest)
		// Reads: the wrapper itself changes nothing, as timeout, so it is as harmless as its call. Not so sudo, which changes the user,
		// and nohup, whose call outlives the command.
		if r.Reads {
			c.ReadOnly, c.NoGrant = readOnly, !readOnly
		}
	}
}

// inFront puts words before a call if a condition of Record.InFront holds: uv run x.py becomes python x.py. A condition is an ending
// of the call's first word (.py), one of options, which are the wrapper's own, or "*" for always.
func (r *Record) inFront(options, call []scan.Word) []scan.Word {
	for _, words := range slices.Sorted(maps.Keys(r.InFront)) {
		for when := range strings.FieldsSeq(r.InFront[words]) {
			is := func(a scan.Word) bool { return a.Text == when }
			if when != "*" && !(when[0] == '.' && strings.HasSuffix(call[0].Text, when)) && !slices.ContainsFunc(options, is) {
				continue
			}
			var out []scan.Word
			for word := range strings.FieldsSeq(words) {
				out = append(out, scan.Plain(word))
			}
			return append(out, call...)
		}
	}
	return call
}

// scriptWords analyzes words that a program runs in a shell: joined with blanks, as watch does, or each as a command of its own.
func scriptWords(name string, rest []scan.Word, c *scan.Visit) {
	switch name {
	case "script": // script FILE starts a shell; script FILE CALL exists on BSD and macOS
		c.Touch(rest[0], scan.Write)
		if len(rest) > 1 {
			c.Run(rest[1:])
		} else {
			c.Opaque("script starts a shell")
		}
		return
	case "concurrently", "hyperfine":
		for _, a := range rest {
			// concurrently npm:build means npm run build.
			if s, ok := strings.CutPrefix(a.Text, "npm:"); ok && name == "concurrently" {
				a = scan.Plain("npm run " + s)
			}
			c.Script(a, name)
		}
		return
	}
	s, ok := scan.Expanded(rest)
	if !ok {
		c.Opaque(name + " runs a string that cannot be read off the command")
		if s, ok = scan.Spelled(rest); !ok {
			return
		}
	}
	c.Script(scan.Plain(s), name)
}

// ownOptions parses the options of a wrapper. It returns the arguments from the first word that is not an option, and the option
// values that a shell will run (scripts). The record of a wrapper must list every option that takes a value: otherwise the value is
// taken for the inner call, and the call that really runs for its arguments.
func ownOptions(own *spec, args []scan.Word, c *scan.Visit) (rest, scripts []scan.Word) {
	takes := func(name string) bool {
		o, ok := own.named(name)
		return ok && o.kind != kindFlag && !o.glued
	}
	for len(args) > 0 {
		a := args[0]
		s, ok := a.One()
		if !ok || s == "" || s[0] != '-' && !(c.Name == "nice" && s[0] == '+') || s == "-" {
			break
		}
		args = args[1:]
		if s == "--" {
			break
		}
		key, val, has := strings.Cut(s, "=")
		if !strings.HasPrefix(s, "--") {
			// In a cluster, the last letter takes its value from the next word, and an earlier one from the rest of the cluster.
			key, val, has = "-"+s[len(s)-1:], "", false
			for i := 1; i < len(s)-1; i++ {
				if takes("-" + s[i:i+1]) {
					key, val, has = "-"+s[i:i+1], s[i+1:], true
					break
				}
			}
			// An option of one dash and several letters, such as -sdk of xcrun.
			if len(s) > 2 && takes(s) {
				key, val, has = s, "", false
			}
		}
		o, takes := own.option(key)
		// What an option that takes no value, or is not listed, has after "=" may be a path.
		if !takes || o.kind == kindFlag {
			switch {
			case has:
				c.TouchIfPath(scan.Plain(val), scan.Write)
			case len(s) > 2 && strings.Contains("/.~$`", s[2:3]): // -C../x, where -C is not listed
				ofKind(kindGeneric, a.From(2), c)
			}
			continue
		}
		// The value is after "=", is glued on, or is the next word.
		value := scan.Plain(val)
		if !has {
			if len(args) == 0 {
				break
			}
			value, args = args[0], args[1:]
		}
		switch o.kind {
		case kindScript:
			scripts = append(scripts, value)
		case kindDir:
			moveTo(value, c)
		case kindWrite:
			c.Touch(value, scan.Write)
			c.Writes()
		case kindRead:
			c.Touch(value, scan.Read)
		case kindSelf:
			if s, ok := value.One(); ok {
				value = scan.Plain(c.Name + " " + s)
			}
			scripts = append(scripts, value)
		default:
			if len(key) > 2 || !has || o.kind == kindGeneric || o.kind == kindLook {
				c.TouchIfPath(value, scan.Write)
			}
		}
	}
	return args, scripts
}

// moveTo notes that a wrapper runs its call in another folder. The folder counts as written, since the call may write in it.
func moveTo(a scan.Word, c *scan.Visit) {
	c.Touch(a, scan.Write)
	if !c.MayMove(a) {
		c.OpaqueBounded("it cannot be said in which directory it runs")
	}
}

// loader analyzes a call of the dynamic loader: /lib64/ld-linux-x86-64.so.2 prog runs prog (ld.so(8)). Options such as --preload
// put other code into the program.
func loader(c *scan.Visit) {
	c.NoGrant = true
	rest := c.Args[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
		switch rest[0].Text {
		case "--library-path", "--preload", "--audit", "--inhibit-rpath", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask":
			if rest[0].Text != "--argv0" {
				c.Opaque("the loader's " + rest[0].Text + " changes what the program loads")
			}
			rest = rest[min(2, len(rest)):]
		default:
			rest = rest[1:]
		}
	}
	if len(rest) > 0 {
		c.Run(rest)
	}
}

// assignments notes the variables that NAME=value words before a call set, and returns the words after them.
func assignments(args []scan.Word, c *scan.Visit) []scan.Word {
	for len(args) > 0 {
		a := args[0]
		name, _, ok := strings.Cut(a.Text, "=")
		if !ok || !syntax.ValidName(name) {
			break
		}
		var vals []scan.Value
		for _, v := range a.Values {
			_, val, _ := strings.Cut(v.Text, "=")
			vals = append(vals, scan.Literal(val))
		}
		c.Sets(name, vals)
		args = args[1:]
	}
	return args
}

// env analyzes a call of env: options, NAME=value words, then the inner call. -C applies to the inner call only. -S splits a string
// into words by rules that differ from the shell's (env(1)), so it makes the command opaque.
func env(args []scan.Word, c *scan.Visit) {
	moved := c.Fork()
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		s, ok := args[0].One()
		args = args[1:]
		switch {
		case !ok:
			c.Opaque("an option of env cannot be read off the command")
		// The next word is the name of a variable, not the inner call. Unsetting a variable counts as harmless.
		case s == "-u" || s == "--unset":
			if len(args) > 0 {
				args = args[1:]
			}
		case s == "-C" || s == "--chdir":
			if len(args) > 0 {
				moveTo(args[0], moved)
				args = args[1:]
			}
		case strings.HasPrefix(s, "--chdir="):
			moveTo(scan.Plain(s[len("--chdir="):]), moved)
		case strings.HasPrefix(s, "-C"):
			moveTo(scan.Plain(s[2:]), moved)
		// S may be in a cluster: env -iS '…'.
		case strings.HasPrefix(s, "-S") || strings.HasPrefix(s, "--split-string") || !strings.HasPrefix(s, "--") && strings.ContainsRune(s, 'S'):
			c.Opaque("env -S takes a string apart by its own rules")
			for _, a := range args {
				c.Salvage(a.Text)
			}
			c.Salvage(strings.TrimPrefix(strings.TrimPrefix(s, "-S"), "--split-string="))
			return
		}
	}
	rest := assignments(args, c)
	if len(rest) == 0 {
		return // env alone prints all variables, which may hold keys: not read-only
	}
	moved.Run(rest)
	c.ReadOnly = false
}
