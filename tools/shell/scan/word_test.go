package scan

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A variable's text may be a pattern to bash: where an expansion stands outside of quotes, wildcards in it find files.
func TestWildcardsInVariablesFindFiles(t *testing.T) {
	for command, glob := range map[string]bool{
		`x='a*'; cat $x`: true, `x="a*"; cat $x`: true, `x=a\*; cat $x`: true, `x=a; cat $x`: false, `x='[ab]'; cat ${x}c`: true, `y=; cat ${y:-'a?'}`: true, `for x in 'a*'; do cat $x; done`: true,
	} {
		var last []Word
		Analyze(Request{Patience: time.Minute, Command: command, Dir: "/", Root: "/"}, noting{args: &last})
		if len(last) != 2 || slices.ContainsFunc(last[1].Values, func(v Value) bool { return v.Glob }) != glob {
			t.Errorf("%s: %+v", command, last)
		}
	}
}

// noting keeps the words of the last call.
type noting struct {
	silent
	args *[]Word
}

func (n noting) Call(v *Visit) { *n.args = v.Args }

// Variables that hold each other several times are long before they are many.
func TestTextsOfVariablesAreBounded(t *testing.T) {
	command := "a=xxxxxxxxxx"
	for c := 'b'; c <= 'p'; c++ {
		command += "; " + string(c) + "=" + strings.Repeat("$"+string(c-1), 10)
	}
	a := Analyze(Request{Command: command + "; ls $p $o", Dir: "/", Root: "/"}, silent{})
	if !a.Opaque {
		t.Error("a text of a million gigabytes is not opaque")
	}
}
