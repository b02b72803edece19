package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is one simple command, or what a wrapper runs.
type call struct {
	args    []arg
	st      *state
	in      input
	wrapped bool // by a program that decides how it runs
	more    bool // unknown arguments are added: xargs
}

// callExpr looks at a simple command: its assignments, its words, then what it runs.
func (w *walker) callExpr(s *syntax.Stmt, c *syntax.CallExpr, st *state, in input) state {
	w.at = int(c.Pos().Offset())
	readsIFS := len(c.Args) > 0 && c.Args[0].Lit() == "read"
	for _, a := range c.Assigns {
		w.assignment(a, st, readsIFS)
	}
	if len(c.Args) == 0 {
		return *st
	}
	var args []arg
	for _, word := range c.Args {
		if !w.step() {
			return *st
		}
		w.inside(word, st)
		args = append(args, w.args(word, st)...)
	}
	if len(args) == 0 {
		return *st
	}
	return w.run(&call{args: args, st: st, in: in})
}

// run looks at one program call. It returns the state after its failure; c.st becomes the one after its success.
func (w *walker) run(c *call) state {
	if len(c.args) == 0 || !w.step() {
		return *c.st
	}
	name, ok := program(c.args[0])
	if !ok {
		w.opaque("which program runs cannot be said: " + c.args[0].src)
		w.addCall(Call{Text: textOf(c.args), Program: c.args[0].text, NoGrant: true})
		w.pathArgs(c, generic)
		return *c.st
	}
	if !c.wrapped && w.funcs[name] != nil {
		after, sure := w.calledFunction(name, c)
		if sure {
			w.addCall(Call{Text: textOf(c.args), Program: name, ReadOnly: true, Silent: true})
			*c.st = after
			return after
		}
		fail := w.named(name, c)
		*c.st = merge(*c.st, after)
		return merge(fail, after)
	}
	return w.named(name, c)
}

// named looks at the program, or builtin, of a name.
func (w *walker) named(name string, c *call) state {
	base, foreign := w.locate(name, c.st)
	entry := Call{Text: textOf(append([]arg{plainArg(name)}, c.args[1:]...)), Program: base}
	if name != base {
		short := textOf(append([]arg{plainArg(base)}, c.args[1:]...))
		if foreign {
			entry.Also = append(entry.Also, short)
		} else {
			entry.Also, entry.Text = append(entry.Also, entry.Text), short
		}
	}
	if typed := sourceOf(c.args); typed != entry.Text {
		entry.Also = append(entry.Also, typed)
	}
	if expanded, ok := expandedText(c.args); ok && expanded != entry.Text {
		entry.Also = append(entry.Also, expanded)
	}
	fail := w.behave(base, c, &entry)
	if foreign {
		entry.ReadOnly = false
	}
	if c.more {
		entry.ReadOnly = false
	}
	if entry.Text != "" {
		w.addCall(entry)
	}
	return fail
}

// behave knows what programs do: builtins change the shell, wrappers run others, the rest touches files.
func (w *walker) behave(name string, c *call, entry *Call) (fail state) {
	fail = *c.st
	switch {
	case isBuiltin(name):
		return w.builtin(name, c, entry)
	case shells[name]:
		w.shell(name, c, entry)
	case strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || name == "ld.so":
		w.loader(c, entry)
	case wrappers[name] != "" || name == "env" || name == "xargs":
		w.wrapper(name, c, entry)
	case name == "find" || name == "gfind":
		w.find(c, entry)
	case name == "git":
		w.git(c, entry)
	case interpreter(name):
		w.interpreter(name, c, entry)
	default:
		if name == "test" || name == "[" || name == "printf" {
			w.namesVariable(c)
		}
		w.paths.folders, w.paths.files = nil, 0
		if !w.runners(name, c, entry) {
			w.paths.keeps = keepsContent(name) || compiles(name) && !w.writes && w.paths.untouched()
			w.pathArgs(c, specOf(name))
			w.paths.keeps = false
		}
		entry.ReadOnly = w.readOnly(name, c) && w.followed(name, c, w.paths.folders, w.paths.files)
		if _, looks := harmful[name]; looks && slices.ContainsFunc(c.args[1:], func(a arg) bool { return secretVariable(a.src) }) {
			entry.NoGrant = true // echo * must not come to print keys
		}
		if !noAlways[name] && !entry.NoGrant {
			entry.Always = alwaysOf(entry.Text, c.args, name)
		}
	}
	w.runIn(c, entry.ReadOnly)
	return fail
}

// keepsContent reports programs that change a file's mode or time, not what is in it.
func keepsContent(name string) bool {
	return name == "chmod" || name == "chown" || name == "chgrp" || name == "touch"
}

// compiles reports programs whose output is made of the sources that they are given: running it is like running make.
func compiles(name string) bool {
	switch family(name) {
	case "gcc", "rustc", "go", "swiftc", "ghc", "ocamlopt", "nim", "crystal", "zig", "gnatmake", "dmd", "ldc2", "fpc":
		return true
	}
	return false
}

// namesVariable looks at test -v and printf -v: an index in the name is evaluated.
func (w *walker) namesVariable(c *call) {
	for i, a := range c.args[1:] {
		if i+2 >= len(c.args) || a.text != "-v" && a.text != "-R" && a.known() {
			continue
		}
		if s, ok := c.args[i+2].one(); !ok || !syntax.ValidName(s) {
			if a.text == "-v" || a.text == "-R" {
				w.opaque("it evaluates the name of a variable: " + c.args[i+2].src)
			}
		} else if a.text == "-v" && c.args[0].text == "printf" {
			w.dangerousName(s, nil)
		}
	}
	if c.args[0].text == "printf" && len(c.args) > 1 && strings.HasPrefix(c.args[1].text, "-v") && c.args[1].text != "-v" {
		w.opaque("it evaluates the name of a variable: " + c.args[1].src)
	}
}

// runIn notes the directory itself when it lies outside: what the program does there nobody knows.
func (w *walker) runIn(c *call, readOnly bool) {
	if c.st.unknown {
		w.opaque("it cannot be said in which directory it runs")
		return
	}
	for _, dir := range c.st.dirs {
		if !w.paths.inside(w.paths.real(dir), Write) {
			access := Write
			if readOnly {
				access = Read
			}
			w.paths.add(dir, access)
		}
	}
}

// program is the name of what runs, where it is written out.
func program(a arg) (string, bool) {
	s, ok := a.one()
	if ok && s == "[" {
		return s, true
	}
	if !ok || s == "" || strings.ContainsAny(s, " \t\n*?[]$`\"'\\;|&<>(){}") {
		return "", false
	}
	for i := range len(s) {
		if s[i] >= 0x80 {
			return "", false // a look-alike, or a program nobody types
		}
	}
	// A tilde is the one expansion that always says the same.
	return s, a.static || strings.HasPrefix(a.src, "~/")
}

// systemDirs hold the programs that a bare name finds; a path to one of them is the same as the name.
var systemDirs = map[string]bool{"/bin": true, "/usr/bin": true, "/usr/local/bin": true, "/sbin": true, "/usr/sbin": true, "/usr/local/sbin": true, "/opt/homebrew/bin": true}

// locate returns a program's name without its folder. foreign: it is started by a path of its own, so it may be
// anything, whatever its name.
func (w *walker) locate(name string, st *state) (base string, foreign bool) {
	if !strings.Contains(name, "/") {
		return name, false
	}
	base = path.Base(name)
	if systemDirs[path.Dir(name)] {
		return base, false
	}
	w.record(literal(name), Read, st)
	w.madeHere(name, st)
	return base, true
}

// madeHere makes the command opaque when it runs a file that it has written itself: what is in it nobody has seen.
func (w *walker) madeHere(name string, st *state) {
	for _, d := range st.dirs {
		if !strings.HasPrefix(name, "/") {
			d += "/" + name
		} else {
			d = name
		}
		real := w.paths.real(d)
		if !w.paths.kept[real] && (slices.Contains(w.paths.writes, real) || w.paths.outside[real] == Write) {
			w.opaque("it runs " + name + ", which it has written itself")
		}
	}
}

func (w *walker) addCall(c Call) {
	if strings.TrimSpace(c.Text) == "" {
		c.Text = "''"
	}
	if c.Program == "" {
		c.Program, _, _ = strings.Cut(strings.TrimSpace(c.Text), " ")
	}
	if i, ok := w.calls[c.Text]; ok {
		have := &w.a.Calls[i]
		have.ReadOnly = have.ReadOnly && c.ReadOnly
		have.NoGrant = have.NoGrant || c.NoGrant
		have.Silent = have.Silent && c.Silent
		if c.Always == "" {
			have.Always = ""
		}
		return
	}
	w.calls[c.Text] = len(w.a.Calls)
	w.a.Calls = append(w.a.Calls, c)
}

func textOf(args []arg) string { return joined(args, func(a arg) string { return a.text }) }

func sourceOf(args []arg) string { return joined(args, func(a arg) string { return a.src }) }

func joined(args []arg, f func(arg) string) string {
	var b strings.Builder
	for i, a := range args {
		if a.hidden {
			continue
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f(a))
	}
	return b.String()
}

// expandedText is the call with what its words expand to, where each has one value.
func expandedText(args []arg) (string, bool) {
	for _, a := range args {
		if a.hidden {
			continue
		}
		if len(a.vals) != 1 || strings.ContainsAny(a.vals[0].s, hole+wild) {
			return "", false
		}
	}
	return joined(args, func(a arg) string {
		if a.vals[0].s == "" {
			return "''"
		}
		return a.vals[0].s
	}), true
}
