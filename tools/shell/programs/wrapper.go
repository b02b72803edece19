package programs

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// wrapper looks at a program that runs another one: both get a pattern, and nothing that is remembered covers it.
// The inner call is looked at as if it stood alone, with the wrapper's environment and folder. A grant for "timeout *" or "sudo *"
// would cover every program, so NoGrant is set first and lifted only where both only read.
func wrapper(name string, c *scan.Visit) {
	c.NoGrant = true
	args := c.Args[1:]
	switch name {
	case "env":
		env(args, c)
		return
	case "xargs":
		xargs(args, c)
		return
	// Their options say which files the program sees under which names, so paths mean nothing here.
	case "bwrap", "proot", "setarch", "systemd-nspawn":
		c.Opaque(name + " runs something in another view of the system")
		c.Salvage(scan.TextOf(args))
		return
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
	case "exec":
		if len(args) == 0 {
			c.ReadOnly, c.NoGrant, c.Silent = true, false, true
			return // redirections only
		}
	}
	// Both give the string to a shell of another user.
	if name == "su" || name == "runuser" && (strings.Contains(" "+scan.TextOf(args), " -c") || strings.Contains(" "+scan.TextOf(args),
		" --command")) { // its options may stand behind the user's name
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
	r := recordOf(c, name)
	skip, shell := r.Skip, r.Runs == "script"
	rest, strs := ownOptions(r, args, c)
	for _, s := range strs {
		c.Script(s, name)
	}
	if name == "script" && len(strs) > 0 && len(rest) > 0 { // script -c command log
		c.Touch(rest[0], scan.Write)
	}
	// The string was the command. hyperfine takes further commands as words, and behind sudo a command follows in any case.
	if len(strs) > 0 && name != "sudo" && name != "hyperfine" {
		return
	}
	// Words in front of the command: the seconds of timeout, the file of flock, the root of chroot.
	for ; skip > 0 && len(rest) > 0; skip-- {
		if name == "chroot" || name == "flock" {
			c.Touch(rest[0], scan.Write)
		}
		rest = rest[1:]
	}
	// They take NAME=value in front of the command, as env does.
	if name == "sudo" || name == "doas" || name == "cross-env" {
		rest = assignments(rest, c)
	}
	// Only some of perf's subcommands start a program.
	if name == "perf" { // its subcommand's options
		if len(args) > 0 && !hasField("stat record trace mem c2c lock sched kmem", args[0].Text) {
			pathArgs(c, r.spec)
			return
		}
		rest, _ = ownOptions(r, rest, c)
	}
	// In front of "--" stand patterns or files.
	if name == "onchange" || name == "reflex" || name == "env-cmd" {
		if behind := behindWord(args, "--"); behind != nil {
			rest = behind
		}
	}
	// entr -s gives its first word to a shell (entr(1)).
	if name == "entr" && len(rest) > 0 && len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && strings.Contains(args[0].Text, "s") {
		c.Script(rest[0], name)
		return
	}
	// flock takes -c behind the file.
	if name == "flock" && len(rest) > 1 && (rest[0].Text == "-c" || rest[0].Text == "--command") {
		c.Script(rest[1], name)
		return
	}
	if name == "parallel" {
		parallel(rest, c)
		return
	}
	// Without a command most wrappers do nothing; these start a shell that reads the input.
	if len(rest) == 0 {
		if name == "sudo" || name == "doas" || name == "su" || name == "parallel" {
			c.Opaque(name + " starts a shell")
		}
		return
	}
	if shell {
		if name == "script" { // a log file, and elsewhere than on Linux the command
			c.Touch(rest[0], scan.Write)
			if len(rest) > 1 {
				c.Run(rest[1:])
			} else {
				c.Opaque("script starts a shell")
			}
			return
		}
		// The words are joined with blanks and given to a shell, as watch does.
		s, ok := scan.Expanded(rest)
		// Each word is a command of its own.
		if name == "concurrently" || name == "hyperfine" {
			for _, a := range rest {
				if s, ok := strings.CutPrefix(a.Text, "npm:"); ok && name == "concurrently" {
					a = scan.Plain("npm run " + s)
				}
				c.Script(a, name)
			}
			return
		}
		if !ok {
			c.Opaque(name + " runs a string that cannot be read off the command")
			return
		}
		c.Script(scan.Plain(s), name)
		return
	}
	switch name {
	// They fetch what is not installed, so the program behind the name is not sure.
	case "npx", "pnpx", "bunx", "uvx", "pipx":
		packageCall(rest, c)
		return
	}
	// timeout 5 ls changes as little as ls does.
	readOnly := c.Run(rest)
	switch name {
	// These add nothing of their own. Others, such as sudo or nohup, change the user or outlive the command.
	case "timeout", "nice", "command", "builtin", "time", "stdbuf":
		c.ReadOnly, c.NoGrant = readOnly, !readOnly
	}
}

// ownOptions goes through a wrapper's own options, up to the first word. scripts are the values among them that a shell
// will run.
// It is where an error would hide the inner command: an option whose value is mistaken for the command makes the real one an
// argument. So the record of a wrapper must list all options with values.
func ownOptions(r *Record, args []scan.Word, c *scan.Visit) (rest, scripts []scan.Word) {
	for len(args) > 0 {
		a := args[0]
		s, ok := a.One()
		if !ok || s == "" || s[0] != '-' && !(r.name == "nice" && s[0] == '+') || s == "-" {
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
				if r.takes("-" + s[i:i+1]) {
					key, val, has = "-"+s[i:i+1], s[i+1:], true
					break
				}
			}
			// Options of one dash and several letters, as xcrun's -sdk.
			if len(s) > 2 && r.takes(s) { // -sdk
				key, val, has = s, "", false
			}
		}
		o, takes := r.spec.option(key)
		// An unknown option with "=" may name a file all the same.
		if !takes || o.kind == kindFlag {
			if has {
				c.TouchIfPath(scan.Plain(val), scan.Write)
			}
			continue
		}
		// The value stands behind "=", is glued on, or is the next word.
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
		default:
			if len(key) > 2 || !has {
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

// assignments skips NAME=value words in front of a command, and looks at them.
// It returns the words behind them.
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
