package scan

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxVariables is how many variables a script may assign before all of them count as unknown. Looking up one may need the
// values of all others.
const maxVariables = 256

// numbers are the shell's own variables whose values are numbers.
var numbers = map[string]bool{
	"?": true, "$": true, "!": true, "#": true, "RANDOM": true, "SRANDOM": true, "LINENO": true, "SECONDS": true, "UID": true, "EUID": true,
	"PPID": true, "BASHPID": true, "EPOCHSECONDS": true, "SHLVL": true, "OPTIND": true, "COLUMNS": true, "LINES": true,
}

// variable lists the possible values of $name at the present call. Functions, loops and dynamic scope make the order of
// assignments hard to follow, so every value that the script assigns anywhere counts; so does the value in the environment,
// unless an assignment has certainly run before.
func (x *expander) variable(name string, st *state) []Value {
	// bash -c 'rm $x' sees the outer x only if it was exported, so its value is not taken from there.
	if x.text.outer != nil && len(x.text.vars[name]) == 0 && len(x.text.outer[name]) > 0 {
		return anything
	}
	as := x.text.vars[name]
	if len(as) == 0 {
		switch {
		case numbers[name]:
			return []Value{{Text: Hole, Pattern: Hole}}
		case name == "HOME":
			return []Value{Literal(x.req.Home)}
		case name == "PWD" && !st.unknown:
			var out []Value
			for _, d := range st.dirs {
				out = append(out, Literal(d))
			}
			return out
		}
		return x.environment(name)
	}
	// Without visiting, x=$y y=$x would recurse forever.
	if x.visiting[name] || len(x.text.vars) > maxVariables || len(as) > maxValues || x.paths.exhausted || !x.step() {
		return anything
	}
	x.visiting[name] = true
	defer delete(x.visiting, name)
	var out []Value
	sure := false
	for _, a := range as {
		// The result of += depends on the order of the assignments, which is not known.
		if a.word == nil || a.adds {
			return anything
		}
		// Bash does not expand braces in an assignment, but args does. The expansions only count as more possible values.
		for _, field := range x.args(a.word, st) {
			out = append(out, field.Values...)
		}
		sure = sure || a.off < x.text.at && (a.sure || a.chain >= 0 && x.text.inChain(a.chain))
		if len(out) > maxValues {
			return anything
		}
	}
	if !sure {
		out = append(out, x.environment(name)...)
	}
	if len(out) == 0 || len(out) > maxValues {
		return anything
	}
	return out
}

// environment is the value of a variable that the script does not set. One that is unset now may be anything, since it may be set
// where the command runs.
func (x *expander) environment(name string) []Value {
	if !syntax.ValidName(name) {
		return anything // special parameters: $1, $@, $*, $-, $0
	}
	if x.req.Getenv != nil {
		if s, ok := x.req.Getenv(name); ok {
			// A control character in the environment must not be taken for Hole or Wild.
			if strings.ContainsAny(s, Hole+Wild) {
				return anything
			}
			return []Value{Literal(s)}
		}
	}
	if x.inArith {
		return []Value{{}} // an unset name counts as 0
	}
	return anything
}

// param lists the possible values of a parameter expansion: ${x}, ${x:-word}, ${x%.go}. For forms that it does not compute it
// returns anything.
func (x *expander) param(p *syntax.ParamExp, st *state) []Value {
	// ${#x} is a number.
	if p.Length {
		return []Value{{Text: Hole, Pattern: Hole}}
	}
	// Slices (${x:1}), replacements (${x/a/b}) and the like are not computed.
	if p.Param == nil || p.Excl || p.Names != 0 || p.Index != nil || p.Slice != nil || p.Repl != nil || len(p.Modifiers) > 0 || p.Flags != nil {
		return anything
	}
	vals := x.variable(p.Param.Value, st)
	if p.Exp == nil {
		return vals
	}
	// other is the word of ${x:-word} and its like.
	other := func() []Value {
		if p.Exp.Word == nil {
			return []Value{{}}
		}
		return x.parts(p.Exp.Word.Parts, false, st)
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		var out []Value
		for _, v := range vals {
			if v.Text != "" {
				out = append(out, v)
			}
		}
		// The word is ruled out only if x is never empty and the script does not assign it (x may be unset before the assignment).
		if len(out) == 0 || len(out) < len(vals) || len(x.text.vars[p.Param.Value]) > 0 {
			out = append(out, other()...)
		}
		return out
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		// ${x:+word} is word or empty, never x.
		return append(other(), Value{})
	// ${x:?} ends the shell when x is empty, so an empty value does not reach the program.
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		var out []Value
		for _, v := range vals {
			if v.Text != "" {
				out = append(out, v)
			}
		}
		if len(out) == 0 {
			return anything
		}
		return out
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return trimmed(p, vals)
	}
	return anything
}

// trimmed computes ${x%.go}, ${x##*/} and the like for literal patterns, and for "*/" in ${x##*/}. Other patterns with
// wildcards give anything.
func trimmed(p *syntax.ParamExp, vals []Value) []Value {
	if p.Exp.Word == nil {
		return vals
	}
	// ${x##*/} is a common way to write basename. Its result has no slash, even if x has a wildcard.
	if p.Exp.Op == syntax.RemLargePrefix && p.Exp.Word.Lit() == "*/" {
		var out []Value
		for _, v := range vals {
			last := v.Text[strings.LastIndexByte(v.Text, '/')+1:]
			switch {
			case !v.Known():
				return anything
			case v.Exact():
				out = append(out, Literal(last))
			case last == "":
				out = append(out, Value{})
			default:
				out = append(out, Value{Text: Hole, Pattern: Hole}) // a file name; wildcards do not match "." or ".."
			}
		}
		return out
	}
	cut := p.Exp.Word.Lit()
	if cut == "" || strings.ContainsAny(cut, `*?[\`) {
		return anything
	}
	var out []Value
	for _, v := range vals {
		if !v.Known() {
			return anything
		}
		if p.Exp.Op == syntax.RemSmallSuffix || p.Exp.Op == syntax.RemLargeSuffix {
			v.Text, v.Pattern = strings.TrimSuffix(v.Text, cut), strings.TrimSuffix(v.Pattern, cut)
		} else {
			v.Text, v.Pattern = strings.TrimPrefix(v.Text, cut), strings.TrimPrefix(v.Pattern, cut)
		}
		out = append(out, v)
	}
	return out
}
