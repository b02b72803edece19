package programs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// reached is where the words of a call lead: to the program's record, and to those of its subcommands.
type reached struct {
	records []*Record // the program's own first, then each subcommand's
	names   []int     // where in Visit.Args the names of the subcommands are
	next    int       // the first of Visit.Args after the last of them
	blind   bool      // an unknown word is where a subcommand could be: git $x
}

// reach follows the words of a call from subcommand to subcommand, as far as records list them: yarn workspaces foreach -A exec CALL
// leads to the record of exec. An option may be the name of one: cmake -E env CALL.
func reach(c *scan.Visit, r *Record) reached {
	at := reached{records: []*Record{r}, next: 1}
	for len(at.last().Sub) > 0 {
		i := at.behindOptions(c.Args)
		var words []string
		// Two words at most, because a subcommand in a record has one or two.
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

// last is the record that says the most of the call. There is always one.
func (at reached) last() *Record { return at.records[len(at.records)-1] }

// behindOptions is the index of the word that may name the next subcommand. Which options take a value is said by the records. An
// unknown one is taken for a flag, so its value may be mistaken for the subcommand: the call is then one of the program itself,
// which is asked like any other of it.
func (at reached) behindOptions(args []scan.Word) int {
	s := at.spec()
	i := at.next
	for ; i < len(args); i++ {
		t := args[i].Text
		if len(t) < 2 || t[0] != '-' && t[0] != '+' || at.last().Sub[t] != nil { // +nightly: a toolchain
			break
		}
		if t == "--" {
			i++
			break
		}
		// Its value is the next word, and must not be taken for the subcommand.
		if o, ok := s.option(t); ok && o.kind != kindFlag && !o.glued && !strings.Contains(t, "=") {
			i++
		}
	}
	return i + at.last().Skip
}

// spec is what the words of the call mean: the options of all the records, and the words of the last that says anything about them.
// An option that a subcommand lists means there what the subcommand says.
func (at reached) spec() spec {
	s := at.records[0].spec
	for _, r := range at.records[1:] {
		// In front, since option and named take the first that fits; clipped, because the slice belongs to the record.
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

// args are the call's words without the names of the subcommands, which are not paths.
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

// always is the field of that name of the last record that has it.
func (at reached) always() string {
	for _, r := range slices.Backward(at.records) {
		if r.Always != "" {
			return r.Always
		}
	}
	return ""
}

// judge notes what the records say of the call besides its paths: what it starts or loads, which settings and hooks it changes,
// and what cannot be determined. name is the program as it was called.
func (at reached) judge(name string, c *scan.Visit) {
	// "git archive", also where the program was called by another of its names.
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
		for _, a := range behind { // a script, or gh alias set x '!rm y'
			if strings.HasPrefix(a.Text, "!") || strings.Contains(a.Text, " ") {
				c.Salvage(strings.TrimPrefix(a.Text, "!"))
			}
		}
		words := slices.IndexFunc(behind, func(a scan.Word) bool { return !strings.HasPrefix(a.Text, "-") })
		if words >= 0 {
			c.Salvage(scan.TextOf(behind[words:]))
		}
	// An unknown word matters only where one of the subcommands that it could name runs something.
	case at.blind && last.mayStart():
		c.Opaque("which command of " + title + " runs cannot be said")
	}
	if at.always() == none {
		c.NoGrant = true
	}
	for file := range strings.FieldsSeq(last.Changes) {
		named := slices.ContainsFunc(behind, func(a scan.Word) bool { return !strings.HasPrefix(a.Text, "-") })
		if onlyReads(last, behind) || len(last.Sub) > 0 && !named {
			continue // go env, git remote -v
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

// mayStart reports that a subcommand, at any depth, starts another program or does what its record cannot say.
func (r *Record) mayStart() bool {
	for _, sub := range r.Sub {
		if sub.Runs != "" || sub.Unsure != "" || sub.mayStart() {
			return true
		}
	}
	return false
}

// starting looks for the options of Starts, whose value is a program or code that is loaded.
// One of them may be spelled long, short with its value glued on, with "=" at its end for name=value words, or with one dash by
// programs that take both.
func (r *Record) starting(title string, c *scan.Visit) {
	args := c.Args[1:]
	for i, a := range args {
		s := a.Text
		key, val, has := strings.Cut(s, "=")
		for f := range strings.FieldsSeq(r.Starts) {
			long := strings.HasPrefix(f, "--")
			match := s == f || r.Style == "single" && s == "-"+f || long && has && key == f || long && shortFor(key, f) ||
				!long && len(f) == 2 && strings.HasPrefix(s, f) && len(s) > 2 || strings.HasSuffix(f, "=") && strings.HasPrefix(s, f) ||
				!long && len(f) > 2 && has && (key == f || key == "-"+f)
			if !match {
				continue
			}
			// The value is after "=", glued to a short option, or in the next word. It is named for rules that deny.
			glued := len(s) > len(f) && s != "-"+f
			value := strings.TrimPrefix(s, f)
			if !glued && i+1 < len(args) {
				value = args[i+1].Text
			}
			if matchesAny(r.except, value) { // pytest -p no:NAME switches a plugin off
				continue
			}
			c.Opaque(title + " " + f + " runs another program")
			c.NoGrant = true
			switch {
			case has:
				c.Salvage(strings.TrimPrefix(val, "exec="))
			case !glued && i+1 < len(args):
				c.Salvage(scan.TextOf(args[i+1:]))
			}
		}
	}
}

// ordinary looks at a program that has no code of its own: what its record, and those of its subcommands, say. Where the words are
// another call, that is looked at and nothing else. own is what the words mean in place of what the records say; nil: as they say.
func ordinary(name string, c *scan.Visit, own *spec) {
	at := reach(c, recordOf(c, name))
	if at.records[0].name == "tar" { // its first word holds options
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

// opaqueWords looks at words that start a program, load a library or name further options, although they look like settings: ssh
// -o ProxyCommand=…, java -XX:OnError=…, gcc @file. The record lists them.
// The record's Opaque and Except are regular expressions over whole words, and over an option and the next word joined by "=", as an
// option's value may be in either place. The value is named for rules that deny.
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
		matches := matchesAny(r.opaque, s) && !matchesAny(r.except, s)
		if !matches && len(s) > 1 && s[0] == '-' && !strings.Contains(s, "=") && i+2 < len(c.Args) {
			s += "=" + text(c.Args[i+2])
			matches = matchesAny(r.opaque, s) && !matchesAny(r.opaque, text(c.Args[i+2])) && !matchesAny(r.except, s)
		}
		if !matches {
			continue
		}
		key, val, _ := strings.Cut(s, "=")
		// A response file: its lines are options that this look does not see.
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

// matchesAny reports that one of the expressions matches a part of s.
func matchesAny(list []*regexp.Regexp, s string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(s) })
}
