package programs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// reached holds the records that describe a call: that of the program and those of the subcommands that its words name.
type reached struct {
	records []*Record // the program's own first, then each subcommand's
	names   []int     // indexes of the subcommands' names in Visit.Args
	next    int       // index in Visit.Args after the last of these names; 1 if there is none
	blind   bool      // the name of the next subcommand is unknown: git $x
}

// reach finds the records that describe a call. It goes from subcommand to subcommand as far as records list them: yarn workspaces
// foreach -A exec CALL ends at the record of exec. An option can be the name of a subcommand: cmake -E env CALL.
func reach(c *scan.Visit, r *Record) reached {
	at := reached{records: []*Record{r}, next: 1}
	for len(at.last().Sub) > 0 {
		i := at.behindOptions(c.Args)
		var words []string
		// The name of a subcommand has one or two words.
		for _, a := range c.Args[min(i, len(c.Args)):min(i+2, len(c.Args))] {
			s, ok := a.One()
			if !ok {
				break
			}
			words = append(words, s)
		}
		sub, n := at.last().sub(words)
		if n == 0 {
			at.blind = len(words) == 0 && i < len(c.Args)
			break
		}
		for k := range n {
			at.names = append(at.names, i+k)
		}
		at.records, at.next = append(at.records, sub), i+n
	}
	return at
}

// last is the record of the innermost subcommand, or of the program if the call names no subcommand.
func (at reached) last() *Record { return at.records[len(at.records)-1] }

// behindOptions is the index of the word that may name the next subcommand: it skips options, their values, and Skip words. An option
// that no record lists counts as one without a value. If it has one after all, the value is taken for a subcommand's name, which
// records seldom list; then the record reached so far describes the call.
func (at reached) behindOptions(args []scan.Word) int {
	s := at.spec()
	i := at.next
	for ; i < len(args); i++ {
		t := args[i].Text
		if len(t) < 2 || t[0] != '-' && t[0] != '+' || at.last().Sub[t] != nil { // + begins an option too: cargo +nightly
			break
		}
		if t == "--" {
			i++
			break
		}
		// The next word is the option's value, not the name of a subcommand.
		if o, ok := s.option(t); ok && o.kind != kindFlag && !o.glued && !strings.Contains(t, "=") {
			i++
		}
	}
	return i + at.last().Skip
}

// spec combines the records of the call: the options of all of them, and the words of the last one with Words. If several records list
// an option, the innermost subcommand's entry counts.
func (at reached) spec() spec {
	s := at.records[0].spec
	for _, r := range at.records[1:] {
		// In front, since option and named return the first match. Clip makes append copy: the slice belongs to the record.
		if len(r.spec.options) > 0 {
			s.options = append(slices.Clip(r.spec.options), s.options...)
		}
		if r.Words != "" {
			s.words, s.repeat, s.unknown = r.spec.words, r.spec.repeat, false
		}
		s.unlisted = s.unlisted || r.spec.unlisted
	}
	return s
}

// args returns the words of a call without the names of its subcommands, so that these are not taken for paths.
func (at reached) args(args []scan.Word) []scan.Word {
	if len(at.names) == 0 {
		return args
	}
	out := make([]scan.Word, 0, len(args))
	for i, a := range args {
		if !slices.Contains(at.names, i) {
			out = append(out, a)
		}
	}
	return out
}

// always is Record.Always of the innermost record that sets it.
func (at reached) always() string {
	for _, r := range slices.Backward(at.records) {
		if r.Always != "" {
			return r.Always
		}
	}
	return ""
}

// judge notes what the records say about the call except its paths: what it starts or loads, which settings and hooks it changes, and
// what is unknown about it. name is the name by which the program was called.
func (at reached) judge(name string, c *scan.Visit) {
	// "npm install"; if the program was called by another of its names, with that name.
	title := name + strings.TrimPrefix(at.last().name, at.records[0].name)
	for _, r := range at.records {
		r.starting(title, c)
		opaqueWords(r, c)
	}
	last := at.last()
	behind := c.Args[min(at.next, len(c.Args)):]
	switch {
	case last.Unsure != "":
		c.NoGrant = true
		c.Opaque(name + " " + last.Unsure)
		for _, a := range behind { // a word may be a script: gh alias set x '!rm y'
			if strings.HasPrefix(a.Text, "!") || strings.Contains(a.Text, " ") {
				c.Salvage(strings.TrimPrefix(a.Text, "!"))
			}
		}
		words := slices.IndexFunc(behind, func(a scan.Word) bool { return !strings.HasPrefix(a.Text, "-") })
		if words >= 0 {
			c.Salvage(scan.TextOf(behind[words:]))
		}
	// An unknown subcommand makes the command opaque only if one of the possible subcommands starts a program.
	case at.blind && last.mayStart():
		c.Opaque("which command of " + title + " runs cannot be said")
	}
	if at.always() == none {
		c.NoGrant = true
	}
	for file := range strings.FieldsSeq(last.Changes) {
		named := slices.ContainsFunc(behind, func(a scan.Word) bool { return !strings.HasPrefix(a.Text, "-") })
		if onlyReads(last, behind) || len(last.Sub) > 0 && !named {
			continue // the call only prints: go env, git remote -v
		}
		c.NoGrant = true
		if rest, ok := strings.CutPrefix(file, "~/"); ok {
			c.TouchValue(scan.Literal(c.Home()+"/"+rest), scan.Write)
		} else {
			protectedFile(file, c)
		}
	}
	if len(at.records) == 1 {
		hookManager(append([]scan.Word{scan.Plain(name)}, c.Args[1:]...), c)
	} else {
		writesHooks(last.Hooks, behind, c)
	}
	if last.Packages {
		hookManager(c.Args[min(at.behindOptions(c.Args), len(c.Args)):], c)
	}
}

// mayStart reports that a subcommand, at any depth, starts another program or has an unknown effect (Unsure).
func (r *Record) mayStart() bool {
	for _, sub := range r.Sub {
		if sub.Runs != "" || sub.Unsure != "" || sub.mayStart() {
			return true
		}
	}
	return false
}

// starting makes the command opaque if the call has one of the options of Starts, whose value is a program to start or code to load.
// An entry of Starts that ends in "=" stands for name=value words. title is the program with its subcommands, for the reason.
func (r *Record) starting(title string, c *scan.Visit) {
	args := c.Args[1:]
	for i, a := range args {
		s := a.Text
		key, val, has := strings.Cut(s, "=")
		for f := range strings.FieldsSeq(r.Starts) {
			long := strings.HasPrefix(f, "--")
			match := s == f || r.Style == "single" && s == "-"+f || long && has && key == f || long && shortFor(key, f) ||
				!long && len(f) == 2 && strings.HasPrefix(s, f) && len(s) > 2 || strings.HasSuffix(f, "=") && strings.HasPrefix(s, f) ||
				!long && has && (key == f || key == "-"+f)
			if !match {
				continue
			}
			// The value follows "=", is glued to a short option or to a name, or is the next word. Salvage lets rules that deny see it.
			value, next := strings.TrimPrefix(s, f), ""
			switch {
			case has && !strings.HasSuffix(f, "=") && (long || key == f || key == "-"+f):
				value = val
			case value == "" || value == s:
				value = ""
				if i+1 < len(args) {
					value, next = args[i+1].Text, scan.TextOf(args[i+1:])
				}
			}
			if matchesAny(r.except, value) { // pytest -p no:NAME turns a plugin off
				continue
			}
			c.Opaque(title + " " + f + " runs another program")
			c.NoGrant = true
			if next == "" {
				next = strings.TrimPrefix(value, "exec=")
			}
			c.Salvage(next)
		}
	}
}

// ordinary analyzes a call by the records of the program and its subcommands alone. If the words are another call, only that call is
// analyzed further. own, if not nil, says what the words mean, in place of the records.
func ordinary(name string, c *scan.Visit, own *spec) {
	at := reach(c, recordOf(c, name))
	if at.records[0].name == "tar" { // the first word of tar holds options: tar xzf
		at = reached{records: at.records[:1], next: 1}
	}
	at.judge(name, c)
	if name == "make" || name == "gmake" || name == "bmake" {
		makeWords(name, c)
	}
	last := at.last()
	if last.Runs != "" {
		at.nested(name, c)
		return
	}
	s := at.spec()
	if own != nil {
		s = *own
	}
	c = c.With(at.args(c.Args))
	keeps := at.records[0].Keeps
	c.Manner.Keeps = keeps == "content" || keeps == "sources" && c.Unwritten()
	pathArgs(c, s, last)
}

// opaqueWords makes the command opaque if a word matches Record.Opaque: a setting that starts a program, loads a library or names
// a file of further options, such as ssh -o ProxyCommand=…, java -XX:OnError=…, gcc @file. An option and the next word are also
// matched as one text, joined by "=" or glued together, since the value of an option may be in either place. Salvage lets rules that deny see the value.
func opaqueWords(r *Record, c *scan.Visit) {
	if len(r.opaque) == 0 {
		return
	}
	text := func(a scan.Word) string {
		if v, ok := a.One(); ok {
			return v
		}
		return a.Text
	}
	for i, a := range c.Args[1:] {
		s := text(a)
		counts := func(s string) bool { return matchesAny(r.opaque, s) && !matchesAny(r.except, s) }
		matches := counts(s)
		if !matches && len(s) > 1 && s[0] == '-' && !strings.Contains(s, "=") && i+2 < len(c.Args) {
			if next := text(c.Args[i+2]); !matchesAny(r.opaque, next) {
				option := s
				if s = option + "=" + next; !counts(s) && len(option) == 2 {
					s = option + next // -D NAME=x is -DNAME=x
				}
				matches = counts(s)
			}
		}
		if !matches {
			continue
		}
		key, val, _ := strings.Cut(s, "=")
		// A response file holds further options, which are not analyzed.
		if strings.HasPrefix(s, "@") {
			c.Opaque(c.Name + " takes options from a file")
			c.Touch(scan.Plain(s[1:]), scan.Read)
			continue
		}
		because := "may run or load something else"
		if r.Because != "" {
			because = r.Because
		}
		c.Opaque(c.Name + " " + key + " " + because)
		c.NoGrant = true
		c.Salvage(val)
	}
}

// matchesAny reports that one of the expressions matches s or a part of it.
func matchesAny(list []*regexp.Regexp, s string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(s) })
}
