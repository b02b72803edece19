package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Programs knows what programs do with their arguments. This package knows only bash, so the walker calls Programs for
// everything that bash starts.
type Programs interface {
	// Call analyses one call. It notes on v which paths the program touches, what it starts, and what cannot be determined.
	Call(v *Visit)
	// Variable says why an assignment to an environment variable needs approval: with it, programs run or load something else.
	// Empty: it is harmless. For an unset the Values are nil.
	Variable(a Assignment) (why string)
	// PlainAnswer reports whether the output of a command has no slash and is neither "." nor "..": a number, a date, a revision.
	PlainAnswer(words []string) bool
}

// Assignment is NAME=value before a call, alone, or given to a builtin or a wrapper.
type Assignment struct {
	Name   string
	Values []Value // the possible values; nil: any value, or the variable is unset
	dir    string  // Request.Dir, to which Inside takes relative paths to belong
	paths  *paths  // for Inside
}

// Inside reports whether every value is a list of paths, joined by ":", that are all in the project. Variables such as
// LD_LIBRARY_PATH need approval otherwise: a library outside could take the place of one that the program expects.
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

// Visit is what Programs.Call gets: the words of a call, its surroundings, and the Call to fill in. It is valid during
// Programs.Call only.
type Visit struct {
	*Call
	*Surroundings
	Name string // the program without its folder
	Args []Word // Args[0] is the program as it was typed

	Manner  Manner // applies to the paths noted after it is set
	w       *walker
	st      *state // where the call runs; a builtin changes it
	in      input  // its standard input
	wrapped bool   // started by another program (env, xargs), so its name cannot mean a function of the shell
	more    bool   // the starting program adds arguments that are not known, as xargs does
}

// Manner says how a program treats the paths that it touches. It applies to one program and is reset after it.
type Manner struct {
	Deep     bool // it changes folders with everything in them
	NoFollow bool // it acts on a link itself, not on the link's target
	Names    bool // it only learns names, so paths inside the project are not noted
	Keeps    bool // what it writes has no content of its own: it changes modes or times, or builds from files that the command left alone
}

// Input is where a call's standard input comes from.
type Input struct {
	Kind string // "" (unknown), "pipe", "here" (a here document or string), "file"
	Text string // the most likely text of the input; empty: unknown, or there is no input
	// Decoded is Text as produced by a shell whose echo decodes escapes without an option, such as dash.
	Decoded string
	// Known is true when Text is certainly the input, as for a here document. Otherwise Text serves only rules that deny.
	Known bool
}

// Input says where the standard input comes from. Programs that run their input (sh, xargs, psql) need it.
func (c *Visit) Input() Input { return Input{c.in.kind, c.in.text, c.in.decoded, c.in.ok} }

// Producer is the call on the left side of the pipe, if all its words are known and it is not a function. xargs needs it:
// the words that find or git ls-files prints are file names below the folder in which they run.
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

// Programs is the implementation that this analysis uses.
func (c *Visit) Programs() Programs { return c.w.programs }

// Opaque makes the command opaque: no pattern may allow it. why is for the person, a clause such as "it opens a connection".
func (c *Visit) Opaque(why string) { c.w.opaque(why) }

// OpaqueBounded is Opaque for a reason that a sandbox bounds (Analysis.Bounded).
func (c *Visit) OpaqueBounded(why string) { c.w.opaqueBounded(why) }

// Salvage adds the calls that can be guessed from a text that cannot be parsed, for rules that deny.
func (c *Visit) Salvage(text string) { c.w.salvage(text) }

// Touch notes an access to the path in a word. "-" is ignored: it means a standard stream to nearly every program.
func (c *Visit) Touch(a Word, access Access) {
	for _, v := range a.Values {
		if v.Text == "-" && !v.Glob {
			continue
		}
		if strings.HasPrefix(v.Text, "~/") || v.Text == "~" { // a quoted tilde: some programs expand it themselves, so both paths count
			c.TouchValue(Literal(c.Home()+v.Text[1:]), access)
		}
		c.TouchValue(v, access)
	}
}

// TouchPath notes an access to a path, absolute or relative to where the call runs. It reports false like TouchValue.
func (c *Visit) TouchPath(path string, access Access) bool {
	return c.TouchValue(Literal(path), access)
}

// TouchValue notes an access to the path in a value. It reports false for an empty value and for devices without data.
func (c *Visit) TouchValue(v Value, access Access) bool {
	c.w.paths.manner = c.Manner
	return c.w.record(v, access, c.st)
}

// TouchIfPath notes an access to a word if it looks like a path. It is for the arguments of programs without a record. A word
// taken for a path by mistake costs an approval request; a missed path would be touched without one. So every form in
// which programs accept a path counts: x=/y, @/y, /x:/y, file:///y.
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
					c.w.paths.guard(c.w.paths.real(d+"/"+v.Text), access) // the program may create it
				}
			}
		} else if v.Glob && v.Known() && strings.Contains(v.Pattern, "*") && !strings.HasPrefix(v.Text, "-") && !c.st.unknown {
			c.TouchValue(v, access)
		}
	}
}

// Run analyses another call that this one starts, with the same standard input. It reports whether that call, and all that
// it starts in turn, are read-only: so timeout 5 ls can be as harmless as ls. The answer is false when the call adds nothing
// to the list because its text is already there.
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

// RunWithMore is Run for a call to which the program adds arguments that are not known. Nothing is known of its standard input,
// which need not be that of this call.
func (c *Visit) RunWithMore(args []Word) {
	inner := c.w.visit(args, c.st, input{})
	inner.wrapped, inner.more = true, true
	c.w.run(inner)
}

// Script analyses a string that the program gives to a shell. by is the program's name for the reason of an opaque command.
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
	inner.funcs = nil // the new shell does not have the functions of this one
	c.w.script(s, &inner)
}

// Mention adds a call that was analysed in another form, such as find's -exec with {}, so that rules that deny can match this
// text and the person sees it. No grant covers it. It reports whether the text is new.
func (c *Visit) Mention(text, program string) bool {
	if _, ok := c.w.calls[text]; ok {
		return false
	}
	c.w.addCall(Call{Text: text, Program: program, NoGrant: true})
	return true
}

// Sets checks an environment variable that the program sets for what it starts. Nil vals stand for any value.
func (c *Visit) Sets(name string, vals []Value) { c.w.setVariable(name, vals) }

// With is a copy of this visit with other words. It shares the Call and the state, so what is noted on the copy counts for this call.
func (c *Visit) With(args []Word) *Visit {
	out := *c
	out.Args = args
	return &out
}

// Fork is a copy of this visit with a state of its own: Move on the copy does not move the shell.
func (c *Visit) Fork() *Visit {
	out, st := *c, *c.st
	out.st = &st
	return &out
}

// Move changes the directory of the call to the folder in a word. It reports false when that cannot be determined; the
// directory is then unknown.
func (c *Visit) Move(a Word) bool {
	dirs, _ := c.w.mover.targets(a, c.st)
	if dirs == nil {
		c.st.unknown = true
		return false
	}
	c.st.dirs = dirs
	return true
}

// MayMove is Move for a program that may also stay where it is, for example when the folder does not exist: both directories
// count from then on. It reports false, and changes nothing, when the folder cannot be determined.
func (c *Visit) MayMove(a Word) bool {
	dirs, _ := c.w.mover.targets(a, c.st)
	if dirs == nil {
		return false
	}
	c.st.dirs = union(c.st.dirs, dirs)
	return true
}

// Lose makes the directory of the call unknown. Every relative path that is noted after it makes the command opaque.
func (c *Visit) Lose() { c.st.unknown = true }

// Dirs are the folders in which the call may run, absolute, links not resolved. known is false when they cannot be determined.
func (c *Visit) Dirs() (dirs []string, known bool) { return c.st.dirs, !c.st.unknown }

// InProject reports whether the call certainly runs inside the project.
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

// RunsHere notes the directory of the call when it is outside the project, see runsIn.
func (c *Visit) RunsHere() { c.w.runsIn(c.st, c.ReadOnly) }

// MadeHere makes the command opaque when the file name, which it runs, was written by the same command.
func (c *Visit) MadeHere(name string) { c.w.madeHere(name, c.st) }

// Writes notes that the program writes a file, so the command is not read-only.
func (c *Visit) Writes() { c.w.writes = true }

// Removes notes that the program may remove folders, so that a later cd may fail.
func (c *Visit) Removes() { c.w.mover.removes = true }

// Unwritten reports whether the command has so far put no content of its own into any file.
func (c *Visit) Unwritten() bool { return !c.w.writes && c.w.paths.untouched() }

// ReadFolders lists the folders that this call has read so far, links resolved. files counts the files that it has read.
func (c *Visit) ReadFolders() (folders []string, files int) {
	return c.w.paths.folders, c.w.paths.files
}

// Found notes a file that the program may print although the command does not name it. Only files for which Request.Hidden is
// true are listed.
func (c *Visit) Found(path string) {
	if c.w.req.Hidden != nil && c.w.req.Hidden(path) {
		c.w.found(path)
	}
}
