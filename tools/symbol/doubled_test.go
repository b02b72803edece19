//go:build cgo

package symbol

import (
	"errors"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/replace"
)

const twoFuncs = "package p\n\n// A is first.\nfunc A() {\n\tone()\n}\n\nfunc B() {\n\ttwo()\n}\n\nvar (\n\tx = 1\n\ty = 2\n)\n"

// A body that goes on with what is behind the declaration writes that a second time.
func TestDoubled(t *testing.T) {
	for _, c := range []struct {
		name, new, want string
	}{
		{"as it was", twoFuncs, ""},
		{"a line more", strings.Replace(twoFuncs, "one()", "one()\n\tmore()", 1), ""},
		{"the next one too", strings.Replace(twoFuncs, "one()\n}\n", "uno()\n}\n\nfunc B() {\n\ttwo()\n}\n", 1), "B"},
		{"itself twice", strings.Replace(twoFuncs, "func A() {\n\tone()\n}\n", "func A() {\n\tuno()\n}\n\nfunc A() {\n\tuno()\n}\n", 1), "A"},
		{"in another indentation, within another", strings.Replace(twoFuncs, "one()\n", "one()\n\t/*\n\tfunc B() {\n\t\ttwo()\n\t}\n\t*/\n", 1), "B"},
		{"a new one", strings.Replace(twoFuncs, "func B", "func C() {\n\tthree()\n}\n\nfunc B", 1), ""},
	} {
		got := ""
		was, _ := Outline("a.go", twoFuncs)
		is, _ := Outline("a.go", c.new)
		if s, ok := Doubled(twoFuncs, c.new, was, is); ok {
			got = s.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A list of values alone is an expression to JavaScript, which takes the next function in; the function's constant is not the one that was
// replaced.
func TestDeclaresNotWhatWasInsideOfTheNext(t *testing.T) {
	const text = "const a = [\n\t1,\n];\n\nfunction f() {\n\tconst b = 1;\n\treturn b;\n}\n"
	before, err := Outline("a.js", text)
	if err != nil {
		t.Fatal(err)
	}
	for new, want := range map[string]bool{"\t1,": false, "const c = [\n\t2,\n];": true} {
		text, err := Replace(text, before[0], new)
		if err != nil {
			t.Fatal(err)
		}
		after, err := Outline("a.js", text)
		if err != nil {
			t.Fatal(err)
		}
		if before[0].Declares(before, after) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

// A body in a code fence is the body; to JavaScript a fence is two templates.
func TestReplaceTakesTheFenceOff(t *testing.T) {
	const text = "function f() {\n  const a = 1;\n  return a;\n}\n"
	list, err := Outline("a.js", text)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		"```js\nfunction f() {\n  return 2;\n}\n```\n": "function f() {\n  return 2;\n}\n",
		"```\nfunction f() {\n  return 2;\n}\n":        "```\nfunction f() {\n  return 2;\n}\n", // no fence: the caller finds that it is no declaration
	} {
		if got, err := Replace(text, list[0], body); err != nil || got != want {
			t.Errorf("%q: %q, %v", body, got, err)
		}
	}
}

// Statements alone are no declaration, though the grammar of Go reads some of them at the top of a file.
func TestDeclares(t *testing.T) {
	before, err := Outline("a.go", twoFuncs)
	if err != nil {
		t.Fatal(err)
	}
	a := Find(before, "A")[0]
	for body, want := range map[string]bool{
		"func A() {\n\tuno()\n}": true, "func Renamed() {\n\tuno()\n}": true, "var A = one": true,
		"var v int\nuno(v)": false, "": false,
	} {
		after, err := Outline("a.go", twoFuncs[:a.Bare]+body+twoFuncs[a.End:])
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Declares(before, after); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}

func TestReplaceRefusesWhatCannotBeMeant(t *testing.T) {
	list, err := Outline("a.go", twoFuncs)
	if err != nil {
		t.Fatal(err)
	}
	b := Find(list, "B")[0]
	for _, body := range []string{"func B() {\n\t// ... existing code ...\n}", "8: func B() {\n9: \ttwo(2)\n10: }"} {
		var refused *replace.Error
		if text, err := Replace(twoFuncs, b, body); !errors.As(err, &refused) || refused.Kind != replace.Conflict {
			t.Errorf("%q: %q %v", body, text, err)
		}
	}
	// The first line alone lacks the indentation.
	js := "class A {\n  /**\n   * Says it.\n   */\n  say() {\n    return 1;\n  }\n}\n"
	list, err = Outline("a.js", js)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Replace(js, Find(list, "A.say")[0], "/**\n   * Says it.\n   */\n  say() {\n    return 2;\n  }")
	if want := strings.Replace(js, "1", "2", 1); err != nil || got != want {
		t.Errorf("%q %v", got, err)
	}
}
