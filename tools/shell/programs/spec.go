package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// option finds an option by its name with its dashes. A long one may be abbreviated, as getopt_long allows; of several
// that fit, the first in the order of compile counts, which puts writing before reading.
// "--*_out" in a record stands for every name with that end. A short name is found only when it is spelled in full.
func (s *spec) option(name string) (option, bool) {
	for _, o := range s.options {
		if o.name == name || s.fold && strings.EqualFold(o.name, name) {
			return o, true
		}
		if end, ok := strings.CutPrefix(o.name, "--*"); ok && strings.HasPrefix(name, "--") && strings.HasSuffix(name, end) {
			return o, true // --go_out, --java_out
		}
	}
	// At least two letters after the dashes, since one fits too many.
	if strings.HasPrefix(name, "--") && len(name) > 3 {
		for _, o := range s.options {
			if strings.HasPrefix(o.name, name) {
				return o, true // GNU programs take abbreviations
			}
		}
	}
	return option{}, false
}

// named finds an option by its whole name. ownOptions uses it for letters within a cluster, where an abbreviation would be wrong.
func (s *spec) named(name string) (option, bool) {
	for _, o := range s.options {
		if o.name == name {
			return o, true
		}
	}
	return option{}, false
}

// colonOption is an option whose value is after a colon: -javaagent:file=options.
// The name in the record ends in the colon.
func (s *spec) colonOption(t string) (option, bool) {
	for _, o := range s.options {
		if strings.HasSuffix(o.name, ":") && strings.HasPrefix(t, o.name) {
			return o, true
		}
	}
	return option{}, false
}

// word is the kind of the i-th word of n; i counts from 0. Where the last kind is a write and does not repeat, it belongs to the
// last word however many there are; the kind before it then serves for all in between.
func (s *spec) word(i, n int) kind {
	k := len(s.words)
	switch {
	case k == 0:
		return kindText
	case s.repeat && i >= k-1:
		return s.words[k-1]
	case !s.repeat && k > 1 && n >= k && i == n-1 && (s.words[k-1] == kindWrite || s.words[k-1] == kindTo):
		return s.words[k-1] // the last word is the target: cp a b c dir
	case !s.repeat && i >= k-1 && k > 1:
		return s.words[k-2]
	case i < k:
		return s.words[i]
	}
	return s.words[k-1]
}

// pathArgs notes the paths among a call's arguments by the program's spec. Programs whose words have a grammar of their
// own (dd, tar, test, ln, rsync) are looked at by code.
// s is a copy of the record's spec, so that a call that only reads can have other kinds of words; r says which calls do.
func pathArgs(c *scan.Visit, s spec, r *Record) {
	if onlyReads(r, c.Args[1:]) {
		s.words = readKinds(s.words)
	}
	switch c.Name {
	// They take folders with all that is in them; without Deep, rm -r .git would not touch .git/config.
	case "rm", "rmdir", "mv", "chmod", "chown", "chgrp":
		c.Removes()
		c.Manner.Deep, c.Manner.NoFollow = true, c.Name == "rm"
		defer func() { c.Manner.Deep, c.Manner.NoFollow = false, false }()
	case "dd":
		dd(c)
		return
	case "test", "[":
		testCall(c)
		return
	case "tar", "gtar", "bsdtar":
		tar(c)
		return
	case "ln":
		ln(c)
		return
	case "jq":
		c = jqArgs(c)
	// Without a template or a folder of its own it writes to TMPDIR.
	case "mktemp":
		named := false
		for _, a := range c.Args[1:] {
			named = named || !strings.HasPrefix(a.Text, "-") && !strings.Contains(" "+scan.TextOf(c.Args), " -t") || strings.HasPrefix(a.Text, "-p") ||
				strings.HasPrefix(a.Text, "--tmpdir=")
		}
		if !named {
			c.TouchValue(scan.Literal(c.TempDir()), scan.Write)
		}
	case "scp", "sftp", "rsync":
		remote(c, s)
		return
	case "curl":
		curl(c)
	}
	applySpec(c, s)
}

// applySpec goes through the arguments as getopt would. An option that is not listed may take a value or not; a path
// after it counts as written either way.
// That follows getopt_long(3): options anywhere, "--" ends them, clusters of letters, "=" or the next word for a value. Words are
// judged at the end, when their number is known.
func applySpec(c *scan.Visit, s spec) {
	args := c.Args[1:]
	var words []scan.Word
	// With grep -e PATTERN the first word is a file and no pattern, so its kind is dropped.
	words0 := s.words
	behind := "" // the unknown long option directly before, whose value the next word may be
	// take notes the value of an option that was found.
	take := func(o option, a scan.Word) {
		if o.first && len(words0) > 0 && words0[0] == kindText {
			words0 = words0[1:]
		}
		ofKind(o.kind, a, c)
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		t := a.Text
		// What the program is given decides, not how it was written: "-o"x is -ox.
		if v, ok := a.One(); ok {
			t = v
		}
		switch {
		case t == "--":
			words = append(words, args[i+1:]...)
			i = len(args)
			continue
		case len(t) < 2 || t[0] != '-' || negative(t):
			// --output x of an unknown program: x looks like a plain word and is a file.
			if behind != "" && !s.unlisted && writesBehind(behind) {
				c.TouchIfPath(a, scan.Write)
			}
			behind = ""
			words = append(words, a)
			continue
		}
		behind = ""
		if o, ok := s.colonOption(t); ok {
			// The file ends at "=", after which are options of the agent.
			take(o, a.From(len(o.name)).Before("="))
			continue
		}
		if s.driver {
			i += driverOption(&s, a, t, args[i+1:], take, c)
			continue
		}
		if key, _, has := strings.Cut(t, "="); strings.HasPrefix(t, "--") || s.single || len(key) > 2 && s.exact(key) {
			// Go's flag package and openssl take both -x and --x.
			if s.single && strings.HasPrefix(key, "--") {
				key = key[1:]
			}
			o, ok := s.option(key)
			switch {
			case ok && o.kind == kindFlag:
			// All words after such an option are the other call, so the loop ends here.
			case ok && o.kind == kindCall:
				call := args[i+1:]
				if has {
					call = append([]scan.Word{a.Cut("=")}, call...)
				}
				callOf(call, c)
				i = len(args)
			// A record that claims to be complete is what lets its program run unasked; an option outside it breaks the claim.
			case !ok && s.complete && len(s.options) > 0:
				c.Opaque(c.Name + " has no option " + key + " that is known here")
				c.TouchIfPath(a.Cut("="), scan.Write)
			case ok && has:
				take(o, a.Cut("="))
			case ok && o.glued:
				if o.first {
					take(o, scan.Plain(""))
				}
			case ok && i+1 < len(args):
				i++
				take(o, args[i])
			// The record promises that options outside its lists name no files.
			case !ok && s.unlisted:
			case !ok && has:
				c.TouchIfPath(a.Cut("="), scan.Write)
			case !ok && !a.Known():
				ofKind(kindGeneric, a, c)
			case !ok:
				behind = key
			}
			continue
		}
		// A cluster of letters: the first that takes a value takes the rest, or the next word.
		// doubt: a part of the cluster may be a path after all, so the whole of it is looked at as one too.
		matched, doubt := false, false
		for j := 1; j < len(t); j++ {
			o, ok := s.option("-" + t[j:j+1])
			if !ok && s.complete && len(s.options) > 0 {
				c.Opaque(c.Name + " has no option -" + t[j:j+1] + " that is known here")
			}
			// As above: the letter is an option that names no file.
			if !ok && s.unlisted {
				matched = true
				continue
			}
			if !ok {
				// -X../x: an unknown letter may be an option with its value glued on, so the letters after it decide nothing.
				if _, one := a.One(); !one || !a.Known() {
					doubt = true
				}
				if tail := strings.TrimPrefix(t[j+1:], "="); tail != "" && strings.Contains("/.~$`", tail[:1]) {
					ofKind(kindGeneric, a.From(j+1), c)
					doubt = true
					break
				}
				continue
			}
			matched = true
			if o.kind == kindFlag {
				continue
			}
			if o.kind == kindCall {
				call := args[i+1:]
				if j+1 < len(t) {
					call = append([]scan.Word{a.From(j + 1)}, call...)
				}
				callOf(call, c)
				i = len(args)
				break
			}
			if j+1 < len(t) {
				rest := a
				rest.Values = nil
				for _, v := range a.Values {
					if len(v.Text) > j {
						rest.Values = append(rest.Values, scan.Literal(strings.TrimPrefix(v.Text[min(j+1, len(v.Text)):], "=")))
					}
				}
				rest.Text = t[j+1:]
				take(o, rest)
			} else if i+1 < len(args) {
				i++
				take(o, args[i])
			}
			break
		}
		if !matched || doubt {
			c.TouchIfPath(a, scan.Write)
		}
	}
	s.words = words0
	for i, a := range words {
		ofKind(s.word(i, len(words)), a, c)
	}
	// A word with an unknown value may be any path for an unknown program, and no path was noted for it above.
	if s.unknown {
		for _, a := range args {
			if !a.Known() {
				c.Opaque("it cannot be said which paths " + c.Args[0].Text + " is given")
				break
			}
		}
	}
}

// negative numbers are words: head -5 is an option, seq -1 is not; neither is a path.
func negative(t string) bool { return strings.Trim(t[1:], "0123456789") == "" }

// ofKind notes what a word or an option's value of this kind does. kindText, kindFlag and kindDir touch nothing here: a
// folder to work in is a matter of wrappers, see ownOptions.
// kindLook and kindGeneric count only what looks like a path; kindRead and kindWrite take any word for a file's name.
func ofKind(k kind, a scan.Word, c *scan.Visit) {
	switch k {
	case kindRead:
		c.Touch(a, scan.Read)
	case kindWrite:
		c.Touch(a, scan.Write)
	case kindLook:
		c.TouchIfPath(a, scan.Read)
	case kindGeneric:
		if re := recordOf(c, c.Name).labels; re != nil && re.MatchString(a.Text) {
			if _, val, ok := strings.Cut(a.Text, "="); ok && a.Text[1] != '/' { // /p:OutDir=../x
				c.TouchIfPath(scan.Plain(val), scan.Write)
			}
			return
		}
		c.TouchIfPath(a, scan.Write)
	case kindScript:
		c.NoGrant = true
		c.Script(a, c.Name)
	case kindSelf:
		c.NoGrant = true
		if s, ok := a.One(); ok {
			a = scan.Plain(c.Name + " " + s)
		}
		c.Script(a, c.Name)
	case kindMount:
		mounted(a, c)
	case kindListRead:
		listed(a.Text, scan.Read, c)
	case kindListWrite:
		listed(a.Text, scan.Write, c)
	case kindForm:
		if _, file, ok := strings.Cut(a.Text, "=@"); ok {
			c.Touch(scan.Plain(file), scan.Read)
		}
	case kindFrom, kindTo, kindRemote:
		if s, ok := strings.CutPrefix(a.Text, "file://"); ok {
			a = scan.Plain(s)
		}
		switch {
		case elsewhereWord(a.Text):
		case k == kindFrom:
			c.Touch(a, scan.Read)
		case k == kindTo:
			c.Touch(a, scan.Write)
		default:
			c.TouchIfPath(a, scan.Write)
		}
	// An unknown word cannot lead out of the worktree: the program refuses such a path.
	case kindTree, kindTreeWrite:
		switch {
		case !a.Known():
		case k == kindTree:
			c.TouchIfPath(a, scan.Read)
		default:
			c.TouchIfPath(a, scan.Write)
		}
	}
}

// callOf looks at a call that is after an option, with all that follows.
func callOf(call []scan.Word, c *scan.Visit) {
	c.NoGrant = true
	if len(call) > 0 {
		c.Run(call)
	}
}

// elsewhereWord reports a word that names another machine, or what is inside a container: host:path, name:path, https://….
// A colon after the first slash belongs to a path (scp(1)).
func elsewhereWord(s string) bool {
	colon, slash := strings.IndexByte(s, ':'), strings.IndexByte(s, '/')
	return colon > 0 && (slash < 0 || colon < slash)
}

// mounted notes the host's side of a mount: /etc:/x, or type=bind,source=/etc,target=/x. A name without a slash or dot in front is a
// volume of the engine's own.
func mounted(a scan.Word, c *scan.Visit) {
	for _, v := range a.Values {
		host, _, _ := strings.Cut(strings.TrimPrefix(v.Text, "="), ":")
		sides := []string{host}
		// --mount type=bind,source=/etc,target=/x (docker-run(1)); other fields name nothing of this machine.
		for field := range strings.SplitSeq(v.Text, ",") {
			if key, val, ok := strings.Cut(field, "="); ok && (key == "source" || key == "src") {
				sides = append(sides, val)
			}
		}
		for _, s := range sides {
			if strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "~") || strings.Contains(s, scan.Wild) {
				c.TouchValue(scan.Literal(s), scan.Write)
			}
		}
	}
}

// listed notes the files in a value such as type=local,dest=../x or key=../x.
func listed(value string, access scan.Access, c *scan.Visit) {
	for field := range strings.SplitSeq(value, ",") {
		if _, file, ok := strings.Cut(field, "="); ok {
			field = file
		}
		c.TouchIfPath(scan.Plain(field), access)
	}
}

// exact reports a word of one dash and several letters that is an option of the table: -include, -maxdepth.
func (s *spec) exact(key string) bool {
	for _, o := range s.options {
		if o.name == key && len(key) > 2 && key[1] != '-' {
			return true
		}
	}
	return false
}

// driverOption looks at an option of a compiler: a whole word with its value after it, after "=" or glued to it;
// -Wl, -Wp and -Wa hand theirs on to another program. skip is how many of the next arguments it took.
// The longest name that fits wins for glued values: -isystem before -i.
func driverOption(s *spec, a scan.Word, t string, next []scan.Word, take func(option, scan.Word), c *scan.Visit) (skip int) {
	for _, on := range [...][2]string{{"-Wl,", "ld"}, {"-Wp,", "-Wp"}, {"-Wa,", "as"}} {
		if rest, ok := strings.CutPrefix(t, on[0]); ok {
			inner := c.With([]scan.Word{c.Args[0]})
			for part := range strings.SplitSeq(rest, ",") {
				inner.Args = append(inner.Args, scan.Plain(part))
			}
			applySpec(inner, recordOf(c, on[1]).spec)
			return 0
		}
	}
	key, _, has := strings.Cut(t, "=")
	o, ok := s.option(key)
	if !ok && strings.HasPrefix(key, "--") {
		o, ok = s.option(key[1:]) // linkers take both
	}
	switch {
	case ok && has:
		take(o, a.Cut("="))
		return 0
	case ok && o.glued:
		return 0
	case ok && len(next) > 0:
		take(o, next[0])
		return 1
	case ok:
		return 0
	}
	var glued option
	for _, o := range s.options {
		if len(o.name) > len(glued.name) && strings.HasPrefix(t, o.name) && o.name[1] != '-' && !o.glued {
			glued = o
		}
	}
	if glued.name != "" {
		take(glued, a.From(len(glued.name)))
		return 0
	}
	if !a.Known() {
		ofKind(kindGeneric, a, c)
	}
	for part := range strings.FieldsFuncSeq(t, func(r rune) bool { return r == '=' || r == ',' }) {
		c.TouchIfPath(scan.Plain(part), scan.Write)
	}
	if writesBehind(key) && !has && len(next) > 0 && !strings.HasPrefix(next[0].Text, "-") {
		c.TouchIfPath(next[0], scan.Write)
	}
	return 0
}

// writesBehind reports an option that no record lists but whose name says that the next word is written: --log-file x.
// A wrong guess costs a question.
func writesBehind(option string) bool {
	low := strings.ToLower(option)
	for _, word := range [...]string{"out", "dest", "target-dir", "log-file", "logfile", "trace", "dump", "report", "save", "write", "export",
		"cache", "tmp", "temp", "prefix", "record", "snapshot", "artifact"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}

// onlyReads reports a call of a program that may change files and does not with these options.
// WritesWith and ReadsWith are opposite claims: by the first a formatter only prints without -w, by the second it only reports with
// --check.
func onlyReads(r *Record, args []scan.Word) bool {
	switch {
	case r.WritesWith != nil:
		return !anyOption(args, *r.WritesWith, *r.WritesWith != "")
	case r.ReadsWith != "":
		return anyOption(args, r.ReadsWith, false)
	}
	return false
}

// anyOption reports one of the options among the arguments. unknown: what cannot be read off the command may be one.
func anyOption(args []scan.Word, options string, unknown bool) bool {
	for _, a := range args {
		if s, ok := a.One(); ok && len(s) > 1 && s[0] == '-' && optionIn(s, options) || !a.Known() && unknown {
			return true
		}
	}
	return false
}

// readKinds are the kinds of a program's words when it changes nothing.
// It returns a copy: words belong to the record.
func readKinds(words []kind) []kind {
	out := make([]kind, len(words))
	for i, k := range words {
		switch k {
		case kindWrite:
			k = kindRead
		case kindGeneric:
			k = kindLook
		}
		out[i] = k
	}
	return out
}
