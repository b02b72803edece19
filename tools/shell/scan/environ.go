package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// digits reports whether every possible value consists of digits, so that bash runs nothing when it evaluates it as arithmetic.
func digits(vals []Value) bool {
	for _, v := range vals {
		if !v.Exact() || strings.Trim(v.Text, "0123456789") != "" {
			return false
		}
	}
	return len(vals) > 0
}

// assignment walks NAME=value, alone or in front of a call. readsIFS is true in front of the builtin read: there IFS
// only changes how read splits a line, not how bash splits the words of the command.
// An assignment in front of a call counts for the rest of the script too: when the call is a function, the value may stay.
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
	// x= makes the variable empty. An array has no single value: vals stays nil, which stands for any value.
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

// arithmIndex walks the index of an array. A plain word may be the key of an associative array, or a variable whose
// value bash evaluates: a[$x]=1 with x='b[$(cmd)]' runs cmd. Which of the two depends on a declaration that may be elsewhere,
// so both count.
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

// declare walks export, declare, local, readonly and typeset. After -i, bash evaluates assignments to the name as
// arithmetic, which can run a command, so the values are checked; -n makes the name stand for another variable and is opaque.
func (w *words) declare(c *syntax.DeclClause, st *state) {
	w.text.at = int(c.Pos().Offset())
	prints := listsVariables(c)
	w.addCall(Call{Text: w.text.source(c), Program: c.Variant.Value, ReadOnly: !prints, Silent: !prints})
	var text []string
	evaluates, lists := false, false
	for _, a := range c.Args {
		if a.Naked && a.Name == nil {
			w.inside(a.Value, st)
			// Expansion may turn such a word into an option or an assignment: declare "$x".
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
				// Bash parses the value a second time, so it is read both as quoted and as unquoted: only the latter drops backslashes.
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
		// Bash evaluates every other assignment to an integer variable too.
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

// counted are bash's own numeric variables. Bash evaluates what is assigned to them as arithmetic, which can run a command.
var counted = map[string]bool{"RANDOM": true, "SRANDOM": true, "SECONDS": true, "OPTIND": true, "HISTCMD": true, "LINENO": true,
	"EPOCHSECONDS": true, "EPOCHREALTIME": true, "BASH_MONOSECONDS": true, "BASHPID": true, "BASH_SUBSHELL": true}

// listsVariables reports whether a declaration prints all variables with their values (it names none), or prints one that is
// named like a secret (-p): the output goes to a model. declare -f and -F print functions, not variables.
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

// NamesSecret reports whether src expands a variable whose name looks like that of a secret: "$GITHUB_TOKEN".
// It prefers false alarms: $MONKEY contains KEY and costs one approval request.
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

// setVariable makes the command opaque when setting the variable could change which programs run or what they load. A nil vals
// stands for any value.
func (x *expander) setVariable(name string, vals []Value) {
	if counted[name] && !digits(vals) {
		x.opaque("what is assigned to " + name + " is evaluated as arithmetic")
	}
	if why := x.programs.Variable(Assignment{Name: name, Values: vals, dir: x.req.Dir, paths: x.paths}); why != "" {
		x.opaque(why)
	}
}

// declared checks an argument of export and the like after its expansion. The name of the variable must be known:
// export "$(cat env)" could set PATH or LD_PRELOAD.
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

// listText checks the value of a declaration for a list in quotes, which to the parser is plain text. Bash treats a value
// in parentheses as a list and expands it again: declare -a x='($(cmd))' runs cmd. array is true after -a or -A: then
// a value that is not exactly known may be such a list.
func (x *expander) listText(vals []Value, array bool) {
	for _, v := range vals {
		if array && !v.Exact() || strings.HasPrefix(v.Text, "(") && (strings.ContainsAny(v.Text, "$`") || !v.Exact()) {
			x.opaque("a value is read as a list, in which commands may stand")
			return
		}
	}
}
