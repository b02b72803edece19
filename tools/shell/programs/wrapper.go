package programs

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// wrapper looks at a program that runs another one: both calls are listed for the rules, and no grant covers the outer one.
// The inner call is looked at as if it stood alone, with the wrapper's environment and folder. A grant for "timeout *" or "sudo *"
// would cover every program, so NoGrant is set first and lifted only where both only read.
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
	// sudo -e edits files with an editor of the environment (sudo(8)); the other options are those of the record.
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
	// command -v is how scripts ask whether a program is there.
	case "command":
		for _, a := range args {
			if strings.HasPrefix(a.Text, "-") && strings.ContainsAny(a.Text, "vV") {
				c.ReadOnly, c.NoGrant = true, false // says where a program is
				return
			}
			if !strings.HasPrefix(a.Text, "-") {
				break
			}
		}
	// exec CALL replaces the shell by CALL; without one it only moves the shell's own descriptors.
	case "exec":
		if len(args) == 0 {
			c.ReadOnly, c.NoGrant, c.Silent = true, false, true
			return // the redirections were looked at before
		}
	}
	// Both give the string to a shell of another user.
	if name == "su" || name == "runuser" && (strings.Contains(" "+scan.TextOf(args), " -c") || strings.Contains(" "+scan.TextOf(args),
		" --command")) { // its options may be after the user's name
		found := false
		for i, a := range args {
			switch {
			case (a.Text == "-c" || a.Text == "--command") && i+1 < len(args):
				c.Script(args[i+1], name)
				found = true
			case strings.HasPrefix(a.Text, "--command="):
				c.Script(scan.Plain(a.Text[len("--command="):]), name)
				found = true
			}
		}
		if !found {
			c.Opaque(name + " starts a shell")
		}
		return
	}
	// Everything above has a form of its own; from here on the record says what a wrapper's words are.
	at := reach(c, r)
	at.judge(name, c)
	at.nested(name, c)
}

// nested looks at the call that is among the words of another one. The last record says where: after how many words (Skip),
// after "--" (Dashes), after NAME=value words (Assigns), or in the value of an option. No grant for the outer call covers the
// inner one.
func (at reached) nested(name string, c *scan.Visit) {
	c.NoGrant = true
	r, s := at.last(), at.spec()
	// The program's own options, before a subcommand's name, then the subcommand's.
	_, scripts := ownOptions(&s, at.args(c.Args[:at.next])[1:], c)
	args := c.Args[at.next:]
	rest := args
	if !slices.Contains(slices.Collect(maps.Values(r.InFront)), "*") { // after yarn node are the options of node
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
	// The string was the command of a wrapper. hyperfine takes further commands as words, and after sudo and the subcommands of package
	// managers (pnpm exec -c) the words count as well.
	if len(scripts) > 0 && len(at.records) == 1 && name != "sudo" && name != "hyperfine" {
		return
	}
	// Words before the call: the seconds of timeout, the file of flock, the folder of cmake -E chdir.
	for i := 0; i < r.Skip && len(rest) > 0; i++ {
		switch k := s.word(i, r.Skip); {
		case r.Words == "":
		case k == kindDir: // the call's, not the shell's
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
	// "--" may also follow the words before the call: flock FILE -- CALL.
	if r.Skip > 0 && len(rest) > 0 && rest[0].Text == "--" {
		rest = rest[1:]
	}
	if r.Assigns {
		rest = assignments(rest, c)
	}
	// entr -s gives its first word to a shell (entr(1)).
	if name == "entr" && len(rest) > 0 && slices.ContainsFunc(options, func(a scan.Word) bool { return optionIn(a.Text, "-s") }) {
		c.Script(rest[0], name)
		return
	}
	// flock takes -c after the file.
	if name == "flock" && len(rest) > 1 && (rest[0].Text == "-c" || rest[0].Text == "--command") {
		c.Script(rest[1], name)
		return
	}
	if name == "parallel" {
		parallel(rest, c)
		return
	}
	// Without a command most wrappers do nothing; these start a shell, or take it from their input.
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
		if r.Reads { // it adds nothing of its own, as timeout does. sudo and nohup do: the user changes, the call outlives the command
			c.ReadOnly, c.NoGrant = readOnly, !readOnly
		}
	}
}

// inFront puts the words of InFront before a call: uv run x.py is python x.py. A condition of the record is an ending of the
// first word (.py), an option of the wrapper, or "*" for always.
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

// scriptWords looks at words that a program gives to a shell: joined with blanks, as watch does, or each as a command of its own.
func scriptWords(name string, rest []scan.Word, c *scan.Visit) {
	switch name {
	case "script": // a log file, and elsewhere than on Linux the command
		c.Touch(rest[0], scan.Write)
		if len(rest) > 1 {
			c.Run(rest[1:])
		} else {
			c.Opaque("script starts a shell")
		}
		return
	case "concurrently", "hyperfine":
		for _, a := range rest {
			// concurrently npm:build is short for npm run build.
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

// ownOptions goes through a wrapper's own options, up to the first word. scripts are the values among them that a shell
// will run.
// It is where an error would hide the inner command: an option whose value is mistaken for the command makes the real one an
// argument. So the record of a wrapper must list all options with values.
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
			// The last letter of a cluster may take the next word; an earlier one takes the rest of this word.
			key, val, has = "-"+s[len(s)-1:], "", false
			for i := 1; i < len(s)-1; i++ {
				if takes("-" + s[i:i+1]) {
					key, val, has = "-"+s[i:i+1], s[i+1:], true
					break
				}
			}
			// Options of one dash and several letters, as xcrun's -sdk.
			if len(s) > 2 && takes(s) { // -sdk
				key, val, has = s, "", false
			}
		}
		o, takes := own.option(key)
		// An unknown option with "=" may name a file all the same.
		if !takes || o.kind == kindFlag {
			switch {
			case has:
				c.TouchIfPath(scan.Plain(val), scan.Write)
			case len(s) > 2 && strings.Contains("/.~$`", s[2:3]): // -C../x of an option that no record lists
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
		// The kind of the value decides: a script is returned to the caller, a folder moves the call, a file is noted.
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

// moveTo is a wrapper's option that changes the directory for what it runs.
// The folder counts as written, since the program that runs there may write in it.
func moveTo(a scan.Word, c *scan.Visit) {
	c.Touch(a, scan.Write)
	if !c.MayMove(a) {
		c.Opaque("it cannot be said in which directory it runs")
	}
}

// loader looks at the dynamic loader, which runs the program it is given.
// /lib64/ld-linux-x86-64.so.2 prog starts prog (ld.so(8)); --preload and its like put code into it first.
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

// assignments skips NAME=value words before a command, and looks at them.
// It returns the words after them.
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

// env looks at env: options, assignments, command.
// env's -C moves only what it starts. With -S the words are split again by rules that are not the shell's (env(1)).
func env(args []scan.Word, c *scan.Visit) {
	moved := c.Fork()
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		s, ok := args[0].One()
		args = args[1:]
		switch {
		case !ok:
			c.Opaque("an option of env cannot be read off the command")
		// The next word is a name and not the command. Taking a variable away is not judged.
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
		// In a cluster too: env -iS '…'.
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
		return // prints the environment, keys included: not read-only
	}
	moved.Run(rest)
	c.ReadOnly = false
}
