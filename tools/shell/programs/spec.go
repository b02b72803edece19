package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// option finds an option by its name with its dashes. A long name may be abbreviated, as getopt_long(3) allows. If several
// options fit an abbreviation, the first in s.options is used: compile puts options that write before those that read.
// "--*_out" in a record stands for every long name that ends in "_out". A name with one dash must be spelled in full.
func (s *spec) option(name string) (option, bool) {
	for _, o := range s.options {
		if o.name == name || s.fold && strings.EqualFold(o.name, name) {
			return o, true
		}
		if end, ok := strings.CutPrefix(o.name, "--*"); ok && strings.HasPrefix(name, "--") && strings.HasSuffix(name, end) {
			return o, true // --go_out, --java_out
		}
	}
	// At least two letters after the dashes: a single letter fits too many options.
	if strings.HasPrefix(name, "--") && len(name) > 3 {
		for _, o := range s.options {
			if strings.HasPrefix(o.name, name) {
				return o, true // an abbreviation
			}
		}
	}
	return option{}, false
}

// named finds an option by its whole name, never by an abbreviation. ownOptions uses it for the letters of a cluster such as -xvf.
func (s *spec) named(name string) (option, bool) {
	for _, o := range s.options {
		if o.name == name {
			return o, true
		}
	}
	return option{}, false
}

// colonOption finds an option whose value follows a colon: -javaagent:file=options.
// In the record the name of such an option ends in the colon.
func (s *spec) colonOption(t string) (option, bool) {
	for _, o := range s.options {
		if strings.HasSuffix(o.name, ":") && strings.HasPrefix(t, o.name) {
			return o, true
		}
	}
	return option{}, false
}

// word is the kind of the i-th of n words that are not options; i counts from 0. If the last kind does not repeat, it applies to the last
// word however many words there are, and the kind before it to the words in between: cp a b c dir.
func (s *spec) word(i, n int) kind {
	k := len(s.words)
	switch {
	case k == 0:
		return kindText
	case !s.repeat && k > 1 && n > k && i >= k-1:
		if i == n-1 {
			return s.words[k-1]
		}
		return s.words[k-2]
	}
	return s.words[min(i, k-1)]
}

// pathArgs notes the paths among a call's arguments, as the program's spec describes them. Programs whose words have a grammar
// of their own (dd, tar, test, ln, rsync) have a function each.
// r says whether this call only reads; its words then count as read, not written. s is a copy, so the record's spec is unchanged.
func pathArgs(c *scan.Visit, s spec, r *Record) {
	if onlyReads(r, c.Args[1:]) {
		s.words = readKinds(s.words)
	}
	switch c.Name {
	// These programs change a folder with its contents. Without Deep, rm -r .git would not count as a write to .git/config.
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
	// Without a template, or with -t, mktemp writes to TMPDIR, unless -p or --tmpdir= names another folder.
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

// applySpec parses the arguments as getopt_long(3) does: options may be anywhere before "--", letters may be clustered, and a value
// follows "=" or is the next word. Whether an option that the record does not list takes a value is unknown, so a path after it
// counts as written. The words that are not options are judged last, because their kinds depend on how many there are.
func applySpec(c *scan.Visit, s spec) {
	args := c.Args[1:]
	var words []scan.Word
	// The kinds of the words. take drops the first for an option that replaces the first word: in grep -e PATTERN x, x is a file.
	words0 := s.words
	behind := "" // the unlisted long option directly before; the next word may be its value
	// take notes what the program does with a, the value of the listed option o.
	take := func(o option, a scan.Word) {
		if o.first && len(words0) > 0 && words0[0] == kindText {
			words0 = words0[1:]
		}
		ofKind(o.kind, a, c)
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		t := a.Text
		// The program sees the word after the shell has removed the quotes: "-o"x is -ox.
		if v, ok := a.One(); ok {
			t = v
		}
		switch {
		case t == "--":
			words = append(words, args[i+1:]...)
			i = len(args)
			continue
		case len(t) < 2 || t[0] != '-' || negative(t):
			// --output x, not listed: x looks like a plain word, but is probably a file.
			if behind != "" && !s.unlisted && writesBehind(behind) {
				c.TouchIfPath(a, scan.Write)
			}
			behind = ""
			words = append(words, a)
			continue
		}
		behind = ""
		if o, ok := s.colonOption(t); ok {
			// In -javaagent:file=options the path ends at "="; the options after it name no file here.
			take(o, a.From(len(o.name)).Before("="))
			continue
		}
		if s.driver {
			i += driverOption(&s, a, t, args[i+1:], take, c)
			continue
		}
		if key, _, has := strings.Cut(t, "="); strings.HasPrefix(t, "--") || s.single || len(key) > 2 && s.exact(key) {
			// Programs of style single take --x for -x, as Go's flag package and openssl do.
			if s.single && strings.HasPrefix(key, "--") {
				key = key[1:]
			}
			o, ok := s.option(key)
			switch {
			case ok && o.kind == kindFlag:
			// All words after such an option are another call, so the loop ends.
			case ok && o.kind == kindCall:
				call := args[i+1:]
				if has {
					call = append([]scan.Word{a.Cut("=")}, call...)
				}
				callOf(call, c)
				i = len(args)
			// Where commands cannot be contained, only a program with a complete record may run without approval. An option that is
			// missing from the record makes the command opaque, so that it needs approval.
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
			// The record says that options it does not list name no files (Unlisted).
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
		// A cluster of letters such as -xvf. The first letter that takes a value takes the rest of the cluster, or the next word.
		// doubt: a part of the cluster may be a path, so TouchIfPath also gets the whole cluster.
		matched, doubt := false, false
		for j := 1; j < len(t); j++ {
			o, ok := s.option("-" + t[j:j+1])
			if !ok && s.complete && len(s.options) > 0 {
				c.Opaque(c.Name + " has no option -" + t[j:j+1] + " that is known here")
			}
			// Unlisted, as for long options: this letter names no file.
			if !ok && s.unlisted {
				matched = true
				continue
			}
			if !ok {
				// In -X../x, X is not listed. What follows may be its value, not more letters: if it begins like a path, it counts as one.
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
	// Nothing above notes a word whose value is unknown ($x). To a program without a record it may be any path.
	if s.unknown {
		for _, a := range args {
			if !a.Known() {
				c.OpaqueBounded("it cannot be said which paths " + c.Args[0].Text + " is given")
				break
			}
		}
	}
}

// negative reports an argument of a dash and digits only: head -5, seq -1. applySpec counts it as a word, not as a cluster of options.
func negative(t string) bool { return strings.Trim(t[1:], "0123456789") == "" }

// ofKind notes what the program does with a, a word or an option's value of kind k. kindText and kindFlag name no file; kindDir, the
// folder in which a wrapper runs its call, is handled by ownOptions and nested. kindLook and kindGeneric note a word only if it
// looks like a path; kindRead and kindWrite take any word for a file name.
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
	// The program refuses paths outside the worktree, so a word whose value is unknown needs no note.
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

// callOf analyzes the call that the words after an option of kindCall are.
func callOf(call []scan.Word, c *scan.Visit) {
	c.NoGrant = true
	if len(call) > 0 {
		c.Run(call)
	}
}

// elsewhereWord reports a word that names a place on another machine or in a container: host:path, name:path, https://….
// A colon after the first slash is part of a path on this machine (scp(1)).
func elsewhereWord(s string) bool {
	colon, slash := strings.IndexByte(s, ':'), strings.IndexByte(s, '/')
	return colon > 0 && (slash < 0 || colon < slash)
}

// mounted notes the host path of a container's mount as written: /etc in /etc:/x and in type=bind,source=/etc,target=/x. A name that
// begins with neither a slash, a dot nor "~" is a volume that the container engine manages, not a path.
func mounted(a scan.Word, c *scan.Visit) {
	for _, v := range a.Values {
		host, _, _ := strings.Cut(strings.TrimPrefix(v.Text, "="), ":")
		sides := []string{host}
		// --mount type=bind,source=/etc,target=/x (docker-run(1)); only source and src are paths of the host.
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

// listed notes the paths in a list of fields, with or without a key each: type=local,dest=../x.
func listed(value string, access scan.Access, c *scan.Visit) {
	for field := range strings.SplitSeq(value, ",") {
		if _, file, ok := strings.Cut(field, "="); ok {
			field = file
		}
		c.TouchIfPath(scan.Plain(field), access)
	}
}

// exact reports that the record lists key as an option of one dash and several letters, such as -include. It is then not a cluster.
func (s *spec) exact(key string) bool {
	for _, o := range s.options {
		if o.name == key && len(key) > 2 && key[1] != '-' {
			return true
		}
	}
	return false
}

// driverOption analyzes one option of a compiler, the argument a, whose text is t. Its value is the next word, follows "=", or is
// glued on; if several names fit a glued value, the longest is used, so -isystem goes before -i. -Wl, -Wp and -Wa pass options to
// the linker, the preprocessor and the assembler. skip is how many arguments of next it used: 0 or 1.
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
		o, ok = s.option(key[1:]) // linkers take -x and --x alike
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

// writesBehind guesses from the name of an unlisted option that its value is a file to write: --log-file x. A wrong guess costs
// at most one needless approval request.
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

// onlyReads reports that a program which can change files does not do so with these arguments. A record says so in one of two ways:
// WritesWith lists the options without which it only reads (gofmt without -w), ReadsWith those with which it only reads
// (black --check).
func onlyReads(r *Record, args []scan.Word) bool {
	switch {
	case r.WritesWith != nil:
		return !anyOption(args, *r.WritesWith, *r.WritesWith != "")
	case r.ReadsWith != "":
		return anyOption(args, r.ReadsWith, false)
	}
	return false
}

// anyOption reports that one of the listed options is among the arguments. With unknown, an argument whose value is not known
// counts as one.
func anyOption(args []scan.Word, options string, unknown bool) bool {
	for _, a := range args {
		if s, ok := a.One(); ok && len(s) > 1 && s[0] == '-' && optionIn(s, options) || !a.Known() && unknown {
			return true
		}
	}
	return false
}

// readKinds turns kinds that write into the matching kinds that read, for a call that changes nothing. It returns a copy, because
// words belongs to the record.
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
