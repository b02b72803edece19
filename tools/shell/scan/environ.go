package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// digits reports that every possible value is a decimal number, which arithmetic evaluates to itself.
func digits(vals []Value) bool {
	for _, v := range vals {
		if !v.Exact() || strings.Trim(v.Text, "0123456789") != "" {
			return false
		}
	}
	return len(vals) > 0
}

// assignment looks at NAME=value before a call or alone. readsIFS: it is before the builtin read, the one
// place where setting IFS changes only how a line is split and not how the words of the command are.
// An assignment before a program counts for the rest of the script as well: a function in its place may keep it.
func (w *words) assignment(a *syntax.Assign, st *state, readsIFS bool) {
	w.inside(a.Value, st)
	if a.Index != nil {
		w.arithmIndex(a.Index, st)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.arithmIndex(e.Index, st)
			}
			w.inside(e.Value, st)
			if e.Value != nil {
				w.lists([]*syntax.Word{e.Value}, st)
			}
		}
	}
	if a.Name == nil {
		return
	}
	// Without a value (x=) the variable is empty; an array has no single value, so vals stays nil, which means any.
	var vals []Value
	if a.Value != nil {
		vals = w.parts(a.Value.Parts, true, st)
	} else if a.Array == nil {
		vals = []Value{{}}
	}
	if a.Name.Value == "IFS" && readsIFS {
		return
	}
	w.setVariable(a.Name.Value, vals)
}

// arithmIndex looks at the index of an array. A plain word may be the key of an associative array, or a variable whose
// value bash evaluates; which one depends on a declaration that may be elsewhere, so both count.
// The attack is a[$x]=1 with x='b[$(cmd)]': evaluating the index runs cmd.
func (w *words) arithmIndex(x syntax.ArithmExpr, st *state) {
	if word, ok := x.(*syntax.Word); ok {
		w.inside(word, st)
		for _, v := range w.parts(word.Parts, true, st) {
			if strings.ContainsAny(v.Text, "$`[("+Wild) {
				w.opaque("the index of an array is evaluated")
			} else if syntax.ValidName(v.Text) {
				w.number(word, st)
			}
		}
		return
	}
	w.arithm(x, st)
}

// declare looks at export, declare, local, readonly and typeset. With -i later assignments to the name are evaluated as
// arithmetic, and with -n the name stands for another variable: both can run a command, so they are looked at or opaque.
func (w *words) declare(c *syntax.DeclClause, st *state) {
	w.text.at = int(c.Pos().Offset())
	prints := listsVariables(c)
	w.addCall(Call{Text: w.text.source(c), Program: c.Variant.Value, ReadOnly: !prints, Silent: !prints})
	var text []string
	evaluates, lists := false, false
	for _, a := range c.Args {
		if a.Naked && a.Name == nil {
			w.inside(a.Value, st)
			// A word that is not an assignment by its syntax may become an option or one after expansion: declare "$x".
			for _, field := range w.args(a.Value, st) {
				w.declared(field)
				for _, v := range field.Values {
					if !strings.HasPrefix(v.Text, "-") {
						continue
					}
					evaluates = evaluates || strings.Contains(v.Text, "i")
					lists = lists || strings.ContainsAny(v.Text, "aA")
					if strings.Contains(v.Text, "n") && c.Variant.Value != "export" {
						w.opaque("a name reference makes one variable stand for another")
					}
				}
			}
			continue
		}
		if !a.Naked {
			w.assignment(a, st, false)
			if a.Value != nil {
				// Quoted and unquoted readings differ in their backslashes, and bash parses the text a second time, so both are tried.
				w.listText(w.parts(a.Value.Parts, true, st), lists)
				w.listText(w.parts(a.Value.Parts, false, st), false) // \( is a parenthesis too
			}
			if evaluates && a.Value != nil {
				w.number(a.Value, st)
			}
			if evaluates && a.Array != nil {
				w.opaque("its values are evaluated")
			}
		}
		text = append(text, a.Name.Value)
	}
	if evaluates {
		// An integer variable evaluates every later assignment too.
		for _, name := range text {
			for _, as := range w.text.vars[name] {
				if as.word == nil {
					w.opaque("the value of " + name + " is evaluated as arithmetic")
				} else {
					w.number(as.word, st)
				}
			}
		}
	}
}

// counted are the variables that bash itself gives numbers: what is assigned to them is evaluated as arithmetic.
var counted = map[string]bool{"RANDOM": true, "SRANDOM": true, "SECONDS": true, "OPTIND": true, "HISTCMD": true, "LINENO": true,
	"EPOCHSECONDS": true, "EPOCHREALTIME": true, "BASH_MONOSECONDS": true, "BASHPID": true, "BASH_SUBSHELL": true}

// listsVariables reports a declaration without names, which prints all variables with their values, or one that prints
// a variable named like a secret: what it prints would be sent to a model.
// declare -f and -F print functions, not variables.
func listsVariables(c *syntax.DeclClause) bool {
	names, prints, functions, secret := 0, false, false, false
	for _, a := range c.Args {
		if a.Name != nil {
			names++
			secret = secret || NamesSecret("$"+a.Name.Value)
			continue
		}
		lit := a.Value.Lit()
		if !strings.HasPrefix(lit, "-") {
			names++
			continue
		}
		prints = prints || strings.Contains(lit, "p")
		functions = functions || strings.ContainsAny(lit, "fF")
	}
	return names == 0 && !functions || prints && secret
}

// NamesSecret reports a word that holds the value of a variable named like a secret.
// It is a guess from the name, made generously: MONKEY counts as well, and costs one question.
func NamesSecret(src string) bool {
	for rest := src; ; {
		_, after, ok := strings.Cut(rest, "$")
		if !ok {
			return false
		}
		rest = after
		name := strings.TrimLeft(after, "{!#")
		end := strings.IndexFunc(name, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		})
		if end >= 0 {
			name = name[:end]
		}
		name = strings.ToUpper(name)
		for _, word := range [...]string{"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH"} {
			if strings.Contains(name, word) {
				return true
			}
		}
	}
}

// setVariable makes the command opaque when an assignment to name changes what runs. vals nil: any value.
func (x *expander) setVariable(name string, vals []Value) {
	if counted[name] && !digits(vals) {
		x.opaque("what is assigned to " + name + " is evaluated as arithmetic")
	}
	if why := x.programs.Variable(Assignment{Name: name, Values: vals, dir: x.req.Dir, paths: x.paths}); why != "" {
		x.opaque(why)
	}
}

// declared checks an argument of export and the like that is only known after expansion.
// export "$(cat env)" sets a variable whose name is known only when it runs: it may be PATH or LD_PRELOAD.
func (x *expander) declared(a Word) {
	for _, v := range a.Values {
		name, val, assigned := strings.Cut(v.Text, "=")
		switch {
		case strings.HasPrefix(v.Text, "-"), strings.HasPrefix(v.Text, "+"):
		case !syntax.ValidName(name):
			x.opaque("which variable is set cannot be said: " + a.Source)
		case assigned:
			x.setVariable(name, []Value{Literal(val)})
			x.listText([]Value{Literal(val)}, false)
		}
	}
}

// listText looks at a value given to declare that the parser takes for plain text. Bash reads one in parentheses as a list
// nevertheless and expands the text between them again: declare -a x='($(cmd))' runs cmd. array: an option (-a, -A) makes the
// variable an array in any case.
func (x *expander) listText(vals []Value, array bool) {
	for _, v := range vals {
		if array && !v.Exact() || strings.HasPrefix(v.Text, "(") && (strings.ContainsAny(v.Text, "$`") || !v.Exact()) {
			x.opaque("a value is read as a list, in which commands may stand")
			return
		}
	}
}
