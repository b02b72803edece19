package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Programs says what programs do with their words. This package knows bash; it asks about everything that bash starts.
type Programs interface {
	// Call looks at one call. It notes on v which paths the program touches, what it runs, and what cannot be determined.
	Call(v *Visit)
	// Variable says why an assignment to an environment variable must be asked about: programs run or load something else
	// with it. Empty: it is harmless.
	Variable(a Assignment) (why string)
	// PlainAnswer reports a command whose output holds no slash and is neither "." nor "..": a number, a date, a revision.
	PlainAnswer(words []string) bool
}

// Assignment is NAME=value before a call, alone, or given to a builtin or a wrapper.
type Assignment struct {
	Name   string
	Values []Value // what it may be; nil: any value, or it is unset
	dir    string  // for relative values: where the request began
	paths  *paths  // for Inside
}

// Inside reports whether all values are lists of paths, joined by ":", that are in the project.
// A folder outside the project, or a value that is not known, must be asked about: a library there could take the place of one
// that the program expects.
func (a Assignment) Inside() bool {
	for _, v := range a.Values {
		if !v.Exact() {
			return false
		}
		for part := range strings.SplitSeq(v.Text, ":") {
			if part != "" && !strings.HasPrefix(part, "/") {
				part = a.dir + "/" + part
			}
			if part != "" && !a.paths.inside(a.paths.real(part), Write) {
				return false
			}
		}
	}
	return len(a.Values) > 0
}

// Visit is one call while it is looked at: its words, where it runs, and the Call that the look fills in.
// It is valid during Programs.Call only.
type Visit struct {
	*Call
	*Surroundings
	Name string // the program without its folder
	Args []Word // Args[0] is the program as it was typed

	Manner  Manner
	w       *walker
	st      *state // where the call runs; a builtin changes it
	in      input  // its standard input
	wrapped bool   // a program that decides how it runs started it: no function of the shell's
	more    bool   // unknown words are added: xargs
}

// Manner says how a program goes about the paths that it touches.
// It is set for the program at hand and reset after it.
type Manner struct {
	Deep     bool // it changes folders with all that is in them
	NoFollow bool // it works on links, not on what they lead to
	Names    bool // it only learns names: what is in the project is not noted
	Keeps    bool // it leaves what is in the files that it writes, or makes it of what is there
}

// Input is where a call's standard input comes from.
type Input struct {
	Kind string // "" (nothing is known), "pipe", "here", "file"
	Text string // what it is, as far as can be told; empty: nothing is known of it, or nothing comes
	// Decoded is Text to a shell whose echo decodes escapes without an option, such as dash.
	Decoded string
	// Known: Text is surely what comes: a here document, or echo before the pipe. Without it Text serves rules that deny.
	Known bool
}

// Input says where the standard input comes from. Programs that run their input (sh, xargs, psql) need it.
func (c *Visit) Input() Input { return Input{c.in.kind, c.in.text, c.in.decoded, c.in.ok} }

// Producer are the words of the call before the pipe, if each is known and it is not a function.
// xargs uses it: the words that find or git ls-files prints are file names below the folder they ran in.
func (c *Visit) Producer() ([]string, bool) {
	if c.in.kind != "pipe" {
		return nil, false
	}
	call, ok := c.in.from.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return nil, false
	}
	var words []string
	for _, word := range call.Args {
		for _, a := range c.w.args(word, c.st) {
			v, ok := a.One()
			if !ok {
				return nil, false
			}
			words = append(words, v)
		}
	}
	return words, c.w.funcs[words[0]] == nil
}

// Programs is what looks at the call.
func (c *Visit) Programs() Programs { return c.w.programs }

// Opaque notes that something cannot be determined: no pattern may allow the command.
func (c *Visit) Opaque(why string) { c.w.opaque(why) }

// Salvage names the programs of a text that cannot be parsed, as far as they can be guessed, for rules that deny.
func (c *Visit) Salvage(text string) { c.w.salvage(text) }

// Touch notes an access to the path that a word is. "-" is a standard stream to nearly every program, so it names no file.
func (c *Visit) Touch(a Word, access Access) {
	for _, v := range a.Values {
		if v.Text == "-" && !v.Glob {
			continue
		}
		if strings.HasPrefix(v.Text, "~/") || v.Text == "~" { // programs expand it themselves, or it was quoted: both count
			c.TouchValue(Literal(c.Home()+v.Text[1:]), access)
		}
		c.TouchValue(v, access)
	}
}

// TouchPath notes an access to a path, absolute or relative to where the call runs.
func (c *Visit) TouchPath(path string, access Access) bool {
	return c.TouchValue(Literal(path), access)
}

// TouchValue notes an access to what a value names. It reports false for devices that hold no data.
func (c *Visit) TouchValue(v Value, access Access) bool {
	c.w.paths.manner = c.Manner
	return c.w.record(v, access, c.st)
}

// TouchIfPath notes an access to a word if it looks like a path, whatever the program does with it.
// It serves the words of programs without a record. False hits cost a question; a path that is missed would be touched
// unasked, so every shape in which programs take a path is tried: x=/y, @/y, /x:/y, file:///y.
func (c *Visit) TouchIfPath(a Word, access Access) {
	c.w.paths.manner = c.Manner
	for _, v := range a.Values {
		for _, p := range pathish(v.Text) {
			switch {
			case p == v.Text:
				c.TouchValue(v, access)
			case len(v.Text) > 5 && strings.EqualFold(v.Text[:5], "file:"):
				c.TouchPath(p, Read)
			case strings.HasPrefix(p, "~"):
				c.TouchPath(c.Home()+p[1:], access)
			default:
				c.TouchPath(p, access)
			}
		}
		if v.Exact() && len(v.Text) < 256 && !strings.HasPrefix(v.Text, "-") && !strings.ContainsAny(v.Text, "\n ") && !c.st.unknown {
			// A plain word may be a link that leads outside.
			for _, d := range c.st.dirs {
				if strings.HasPrefix(v.Text, "/") {
					continue
				}
				if l := c.w.paths.stat(c.w.paths.real(d) + "/" + v.Text); l.exists {
					c.w.paths.addLinked(d+"/"+v.Text, access)
				} else if strings.ContainsAny(v.Text, "./") && !strings.Contains(v.Text, "://") {
					c.w.paths.guard(c.w.paths.real(d+"/"+v.Text), access) // it may come into being
				}
			}
		} else if v.Glob && v.Known() && strings.Contains(v.Pattern, "*") && !strings.HasPrefix(v.Text, "-") && !c.st.unknown {
			c.TouchValue(v, access)
		}
	}
}

// Run looks at another call that this one starts, with the same standard input. It reports whether that, and all that
// it starts in turn, changes nothing.
// The result lets timeout 5 ls be as harmless as ls. A call that was listed before adds none, and then counts as a change.
func (c *Visit) Run(args []Word) (readOnly bool) {
	before := len(c.w.a.Calls)
	inner := c.w.visit(args, c.st, c.in)
	inner.wrapped = true
	c.w.run(inner)
	readOnly = len(c.w.a.Calls) > before
	for _, call := range c.w.a.Calls[before:] {
		readOnly = readOnly && call.ReadOnly
	}
	return readOnly
}

// RunWithMore is Run for a call to which unknown words are added. Its standard input is its own: git bisect run and the
// like start programs whose input is not the pipe of this call.
func (c *Visit) RunWithMore(args []Word) {
	inner := c.w.visit(args, c.st, input{})
	inner.wrapped, inner.more = true, true
	c.w.run(inner)
}

// Script looks at a string that the program gives to a shell. by names the program for the reason.
func (c *Visit) Script(a Word, by string) {
	s, ok := a.One()
	if !ok {
		c.Opaque(by + " runs a string that cannot be read off the command")
		if s, ok := Spelled([]Word{a}); ok {
			inner := *c.st
			inner.funcs = nil
			c.w.script(s, &inner)
		} else if !a.Static {
			c.Salvage(a.Text)
		}
		return
	}
	inner := *c.st
	inner.funcs = nil // another shell
	c.w.script(s, &inner)
}

// Mention lists a call that is known by its text only. No grant covers it. It reports whether the text is new.
// It is for rules that deny and for the person, where the same words were walked in another form: find's {}.
func (c *Visit) Mention(text, program string) bool {
	if _, ok := c.w.calls[text]; ok {
		return false
	}
	c.w.addCall(Call{Text: text, Program: program, NoGrant: true})
	return true
}

// Sets looks at an environment variable that is set for what runs next.
func (c *Visit) Sets(name string, vals []Value) { c.w.setVariable(name, vals) }

// With is this visit with other words. Call and state are shared with it: what the copy notes counts for this call.
func (c *Visit) With(args []Word) *Visit {
	out := *c
	out.Args = args
	return &out
}

// Fork is this visit with a place of its own: moving it leaves the shell where it is.
func (c *Visit) Fork() *Visit {
	out, st := *c, *c.st
	out.st = &st
	return &out
}

// Move goes to the folder that a word names. It reports false when that cannot be known.
func (c *Visit) Move(a Word) bool {
	dirs, _ := c.w.mover.targets(a, c.st)
	if dirs == nil {
		c.st.unknown = true
		return false
	}
	c.st.dirs = dirs
	return true
}

// MayMove goes to the folder that a word names, or stays: both count. It reports false when that cannot be known.
// The folder before stays among the results, since what the program does when the other one is missing is not known.
func (c *Visit) MayMove(a Word) bool {
	dirs, _ := c.w.mover.targets(a, c.st)
	if dirs == nil {
		return false
	}
	c.st.dirs = union(c.st.dirs, dirs)
	return true
}

// Lose notes that it cannot be known where the call runs. Every relative path after it makes the command opaque.
func (c *Visit) Lose() { c.st.unknown = true }

// Dirs are the folders in which the call may run, absolute, links not resolved. known is false when they cannot be determined.
func (c *Visit) Dirs() (dirs []string, known bool) { return c.st.dirs, !c.st.unknown }

// InProject reports that the call surely runs inside the project.
func (c *Visit) InProject() bool {
	if c.st.unknown {
		return false
	}
	if c.w.home(c.st) {
		return true
	}
	for _, d := range c.st.dirs {
		if !c.w.paths.inside(c.w.paths.real(d), Write) {
			return false
		}
	}
	return true
}

// RunsHere notes the folder itself when it is outside: what the program does there cannot be known.
func (c *Visit) RunsHere() { c.w.runsIn(c.st, c.ReadOnly) }

// MadeHere makes the command opaque when it runs a file that it has written itself.
func (c *Visit) MadeHere(name string) { c.w.madeHere(name, c.st) }

// Writes notes that the program writes a file that an option names: the command is not read-only.
func (c *Visit) Writes() { c.w.writes = true }

// Removes notes that folders may be gone afterwards, so that a later cd may fail.
func (c *Visit) Removes() { c.w.mover.removes = true }

// Unwritten reports that nothing so far has put a text of its own into a file.
func (c *Visit) Unwritten() bool { return !c.w.writes && c.w.paths.untouched() }

// ReadFolders are the folders among the paths that this call reads so far, links resolved; files is how many files.
func (c *Visit) ReadFolders() (folders []string, files int) {
	return c.w.paths.folders, c.w.paths.files
}

// Found notes a file that the program may print without its being named. Only hidden ones are listed.
func (c *Visit) Found(path string) {
	if c.w.req.Hidden != nil && c.w.req.Hidden(path) {
		c.w.found(path)
	}
}
