package programs

import (
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// shell analyzes a call of a shell: sh -c STRING, sh FILE, or a script on standard input. A string is analyzed as a script. A script
// file counts as read, and its contents are not analyzed: they belong to the project, unless the same command has written the file,
// which makes the command opaque (MadeHere). Standard input is the script if there is neither a string nor a file.
func shell(name string, c *scan.Visit) {
	c.NoGrant = true
	args := c.Args[1:]
	command, stdin := false, false
	for len(args) > 0 {
		s, ok := args[0].One()
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
				c.Opaque(name + " " + s + " runs a file first")
				if len(args) > 0 {
					c.Touch(args[0], scan.Read)
					args = args[1:]
				}
			// With these two the shell prints something and exits.
			case "--version", "--help":
				return
			case "--command":
				command = true
			}
			continue
		}
		// These are options of PowerShell, whose language is not analyzed.
		if s == "-Command" || s == "-EncodedCommand" {
			c.Opaque(name + " runs another language")
			return
		}
		command = command || strings.ContainsRune(s, 'c')
		stdin = stdin || strings.ContainsRune(s, 's')
		// The options keyword (k), physical (P), histexpand (H) and braceexpand (B) change what a script means; see the builtin set.
		if strings.ContainsAny(s[1:], "kPHB") {
			c.Opaque(name + " " + s + " changes how the rest is read")
		}
		// Each o and O in a cluster takes one of the next words as its value: bash -eo pipefail -c …
		for range strings.Count(s, "o") + strings.Count(s, "O") {
			if len(args) == 0 {
				break
			}
			if option, ok := args[0].One(); !ok || scan.ChangesReading(option) {
				c.Opaque(name + " " + s + " " + args[0].Text + " changes how the rest is read")
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
		// The languages of these shells differ from bash's, so their scripts are not parsed.
		case "fish", "nu", "csh", "tcsh", "pwsh", "powershell", "elvish", "xonsh":
			c.Opaque(name + " speaks another language")
			c.Salvage(args[0].Text)
			return
		}
		c.Script(args[0], name+" -c")
	// A script file. With -s, or with "-" for the file, the script is standard input and the words are its arguments.
	case len(args) > 0 && !stdin && args[0].Text != "-":
		c.Touch(args[0], scan.Read)
		c.MadeHere(args[0].Text)
		// bash /dev/stdin and bash <(curl …), which passes a path in /dev/fd, run what comes from a pipe.
		if len(args[0].Values) == 1 && strings.HasPrefix(args[0].Values[0].Text, "/dev/") {
			c.Opaque(name + " runs what it reads")
		}
		pathArgs(c.With(args), unknownRecord.spec, unknownRecord)
	case c.Input().Kind == "here" && c.Input().Known:
		c.Script(scan.Plain(c.Input().Text), name)
	default:
		c.Opaque(name + " runs what it reads from its input")
		in := c.Input()
		if in.Text != "" {
			c.Script(scan.Plain(in.Text), name)
		}
		if in.Decoded != in.Text {
			c.Script(scan.Plain(in.Decoded), name)
		}
	}
}

// code reports an option of an interpreter whose value is code, or a module to load. The long options apply to every interpreter, the
// letters are those of Record.Code. Only the first three letters of a cluster are checked: the rest may be a glued value.
func code(c *scan.Visit, name, option string) bool {
	long, _, _ := strings.Cut(option, "=")
	switch long {
	case "--eval", "--print", "--execute", "--command", "--expression", "--batch", "-eval", "-ex", "-r", "--require", "--import", "--loader",
		"--experimental-loader":
		return !(long == "-r" && name == "sqlite3")
	}
	if len(option) < 2 || option[0] != '-' || option[1] == '-' {
		return false
	}
	return strings.ContainsAny(option[1:min(len(option), 4)], recordOf(c, name).Code)
}

// interpreter analyzes a call of python, node and the like. Code in an argument or on standard input makes the command opaque; a script
// file does not. sed and awk get their scripts as arguments, and many only print, so these scripts are analyzed.
func interpreter(name string, c *scan.Visit) {
	c.NoGrant = true
	switch name {
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed":
		c.ReadOnly = readOnly(name, c)
		// A copy: the kinds of its words are replaced below.
		s := recordOf(c, name).spec
		// The script is not a path, even if it looks like one. The words after it are files that are read.
		if c.ReadOnly {
			s.words = []kind{kindText, kindRead}
		}
		pathArgs(c, s, recordOf(c, name))
		// A grant for sed * would also cover sed -i, and the command e, which runs programs.
		c.NoGrant = !c.ReadOnly
		if strings.HasSuffix(name, "sed") && !c.ReadOnly && !sedUnderstood(c.Args[1:]) {
			c.Opaque("the script of sed may run programs or write files")
			for _, a := range c.Args[1:] {
				sedPaths(a.Text, c)
			}
		}
		if strings.HasSuffix(name, "awk") && !c.ReadOnly && !awkFile(c.Args[1:]) && !awkReads(c.Args[1:]) {
			opaqueCode(c, name, "the program of awk may run programs or write files", false)
			for _, a := range c.Args[1:] {
				awkPaths(a.Text, c)
			}
		}
		return
	case "ssh":
		ssh(c)
		return
	case "crystal", "nim":
		if len(c.Args) > 1 && c.Args[1].Text == "eval" || name == "nim" && strings.Contains(scan.TextOf(c.Args), "--eval") {
			c.Opaque(name + " runs code that is given as text")
		}
		pathArgs(c, unknownRecord.spec, unknownRecord)
		return
	// dc runs the rest of a line after "!" in a shell (dc(1)).
	case "dc":
		if strings.Contains(scan.TextOf(c.Args), "!") || strings.Contains(c.Input().Text, "!") || c.Input().Kind != "" && !c.Input().Known {
			c.Opaque("dc may run what it is given behind !")
		}
		pathArgs(c, recordOf(c, name).spec, recordOf(c, name))
		return
	case "sqlite3", "psql", "mysql", "duckdb":
		sqlPrograms(name, c)
	case "bc":
		pathArgs(c, recordOf(c, name).spec, recordOf(c, name))
		return
	}
	// Editors such as vim take commands from standard input, and from arguments with + or --cmd.
	if recordOf(c, name).Obeys {
		if c.Input().Kind != "" {
			c.Opaque(name + " obeys what it reads from its input")
		}
		for _, a := range c.Args[1:] {
			// vim +COMMAND and vim --cmd COMMAND (vim(1)): a command of the editor may start a shell.
			if strings.HasPrefix(a.Text, "+") || strings.HasPrefix(a.Text, "--cmd") {
				c.Opaque(name + " runs code that is given as text: " + a.Text)
			}
		}
	}
	python := strings.HasPrefix(name, "py") || name == "ipython"
	args := c.Args[1:]
	// The first word that is neither an option nor a value is the script file. The words after it are arguments of the script.
	for i, a := range args {
		s := a.Text
		if _, ok := a.One(); !ok && strings.HasPrefix(s, "-") || !a.Known() && i == 0 {
			c.Opaque("which code " + name + " runs cannot be said")
		}
		if i > 0 && s != "-" && !strings.HasPrefix(s, "-") && valueOption(c, name, args[i-1].Text) {
			continue
		}
		if !strings.HasPrefix(s, "-") || s == "-" {
			if s == "-" {
				opaqueCode(c, name, name+" runs what it reads from its input", true)
			} else if a.Known() && len(a.Values) == 1 && strings.HasPrefix(a.Values[0].Text, "/dev/") {
				c.Opaque(name + " runs what it reads")
			} else {
				c.MadeHere(s)
			}
			break
		}
		// A module belongs to the project or is installed, like a script file. hookManager knows the modules that write Git hooks.
		if python && s == "-m" {
			hookManager(args[i+1:], c)
			pathArgs(c.With(args[i:]), unknownRecord.spec, unknownRecord)
			return
		}
		switch s {
		// Alone, these only print. With more words they may mean something else.
		case "--version", "-V", "-version", "--help", "-h":
			if len(args) == 1 {
				c.ReadOnly, c.NoGrant = true, false
				return
			}
		// For these four, -v alone prints the version. For others it may mean verbose: python -v then runs the script.
		case "-v":
			if len(args) == 1 && (name == "node" || name == "ruby" || name == "perl" || name == "php") {
				c.ReadOnly, c.NoGrant = true, false
				return
			}
		}
		if code(c, name, s) {
			opaqueCode(c, name, name+" runs code that is given as text: "+s, false)
			// Commands of an editor name files without quotes: vim -c "w /etc/x".
			if recordOf(c, name).Editor {
				for _, b := range args[i:] {
					codePaths(b.Text, scan.Write, c)
				}
			}
			break
		}
	}
	// Without a script file an interpreter runs its input. If the command does not redirect the input, there is nothing to run.
	if len(args) == 0 || allOptions(args) && c.Input().Kind != "" {
		// "-" was judged above, and code in an argument takes the input for its data.
		if c.Input().Kind != "" && !slices.ContainsFunc(args, func(a scan.Word) bool { return a.Text == "-" || code(c, name, a.Text) }) {
			opaqueCode(c, name, name+" runs what it reads from its input", true)
		}
	}
	if name == "deno" && len(args) > 0 && args[0].Text == "eval" {
		c.Opaque("deno runs code that is given as text")
	}
	switch name {
	case "sqlite3", "psql", "mysql":
		pathArgs(c, recordOf(c, name).spec, recordOf(c, name))
	default:
		pathArgs(c, unknownRecord.spec, unknownRecord)
	}
}

// allOptions reports that no argument can be a script file. An interpreter then runs its input: … | python3 -u.
func allOptions(args []scan.Word) bool {
	for _, a := range args {
		if !strings.HasPrefix(a.Text, "-") {
			return false
		}
	}
	return true
}

// ssh analyzes a call of ssh. Its command runs on another machine, but ProxyCommand and LocalCommand run on this one
// (ssh_config(5)); Record.Opaque matches these options.
func ssh(c *scan.Visit) {
	for _, a := range c.Args[1:] {
		if !a.Known() && strings.HasPrefix(a.Text, "-") {
			c.Opaque("an option of ssh runs a command here")
		}
	}
	opaqueWords(recordOf(c, "ssh"), c)
	applySpec(c, recordOf(c, "ssh").spec)
}

// valueOption reports an option of an interpreter whose value is the next word: in python -W error x.py, "error" is not the script.
func valueOption(c *scan.Visit, name, option string) bool {
	return hasField(recordOf(c, name).Values, option)
}
