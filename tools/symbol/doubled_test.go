//go:build cgo

package symbol

import (
	"errors"
	"slices"
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

// firstReplaced is a text of JavaScript whose first declaration was replaced by a body, and whether one is still there.
func firstReplaced(t *testing.T, text, body string) (now string, declares bool) {
	t.Helper()
	before, err := Outline("a.js", text)
	if err != nil {
		t.Fatal(err)
	}
	now, err = Replace(text, before[0], body)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Outline("a.js", now)
	if err != nil {
		t.Fatal(err)
	}
	return now, before[0].Declares(text, now, before, after)
}

// A list of values alone is an expression to JavaScript, which takes the next function in; the function's constant is not the one that was
// replaced.
func TestDeclaresNotWhatWasInsideOfTheNext(t *testing.T) {
	const text = "const a = [\n\t1,\n];\n\nfunction f() {\n\tconst b = 1;\n\treturn b;\n}\n"
	for new, want := range map[string]bool{"\t1,": false, "const c = [\n\t2,\n];": true} {
		if now, declares := firstReplaced(t, text, new); declares != want {
			t.Errorf("%q: want %v", now, want)
		}
	}
}

// Two callbacks have a function of one name each: the other one does not stand for the one that was replaced by its statements.
func TestDeclaresNotTheOtherOfItsName(t *testing.T) {
	const text = "on(() => {\n  function done() {\n    one();\n  }\n});\n\non(() => {\n  function done() {\n    two();\n  }\n});\n"
	for body, want := range map[string]bool{"    uno();": false, "    uno();\n    function tre() {}\n    return;": false, "function done() {\n  uno();\n}": true, "function finished() {\n  uno();\n}": true} {
		if now, declares := firstReplaced(t, text, body); declares != want {
			t.Errorf("%q: want %v", now, want)
		}
	}
}

// In Python a body without its signature counts for the declaration before it, whatever is in it; and a comment alone for the one behind it.
func TestDeclaresNotWhatItsNeighboursTakeIn(t *testing.T) {
	for _, c := range []struct {
		file, text, name, body string
		want                   bool
	}{
		{"a.pyi", "class A:\n    x: int\n\nclass B:\n    y: int\n    def f(self) -> int: ...\n", "B", "    y: int\n    def g(self) -> int: ...", false},
		{"a.pyi", "class A:\n    x: int\n\nclass B:\n    y: int\n    def f(self) -> int: ...\n", "B", "class C:\n    y: int", true},
		{"a.py", "class A:\n    def f(self):\n        one()\n\n    def g(self):\n        two()\n        three()\n", "g", "        two()", false},
		{"a.py", "class A:\n    def f(self):\n        one()\n\n    def g(self):\n        two()\n        three()\n", "g", "    def h(self):\n        two()", true},
		{"a.py", "def version():\n    version = get()\n    if version:\n        return version\n    return 1\n", "version", "    version = get()\n    if version:\n        return version", false},
		{"a.h", "struct Stats {\n  int min;\n  int max;\n  Stats(int a) : min(a) {}\n};\n", "Stats", "  int min;\n  int max;\n  Stats(int a) : min(a) {}", false},
		{"a.js", "// One\nvar a = 1;\nvar b = 2;\n", "a", "// One and\n// more", false},
	} {
		before, err := Outline(c.file, c.text)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(before, func(s Symbol) bool { return s.Name() == c.name })
		now, err := Replace(c.text, before[i], c.body)
		if err != nil {
			t.Fatal(err)
		}
		after, err := Outline(c.file, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := before[i].Declares(c.text, now, before, after); got != c.want {
			t.Errorf("%q: %v", now, got)
		}
	}
}

// Overloads of one name are one declaration to the outline, so that given twice they are as many as before.
func TestReplaceRefusesABodyThatIsThereTwice(t *testing.T) {
	const text = "interface F {\n  add(\n    a: string,\n  ): F;\n\n  add(\n    a: number,\n  ): F;\n}\n"
	list, err := Outline("a.ts", text)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(s Symbol) bool { return s.Name() == "add" })
	body, _ := Read(text, list[i])
	body = strings.ReplaceAll(body, "string", "boolean")
	if _, err := Replace(text, list[i], body); err != nil {
		t.Fatal(err)
	}
	var conflict *replace.Error
	if got, err := Replace(text, list[i], body+"\n\n"+body); !errors.As(err, &conflict) {
		t.Errorf("%q, %v", got, err)
	}
}

// The next declaration may be a signature of one line, which is an overload to the outline.
func TestReplaceRefusesTheNextSignature(t *testing.T) {
	for _, c := range []struct {
		file, text, name, body string
		refused                bool
	}{
		{"a.d.ts", "class A {\n  /** The first. */\n  b: string\n\n  constructor(x?: P)\n  clone(): this\n}\n", "b", "  /** The one. */\n  b: number\n\n  constructor(x?: P)", true},
		{"a.d.ts", "class A {\n  /** The first. */\n  b: string\n\n  constructor(x?: P)\n  clone(): this\n}\n", "b", "  /** The one. */\n  b: number", false},
		{"a.rb", "module A\nclass B\n  def f; end\nend\nend\n", "B", "class B\n  def g; end\nend", false},
		{"a.py", "def f():\n    y = 1\n\nx = 1\n", "f", "def f():\n    x = 1", false},
		{"a.py", "def f():\n    y = 1\n\nx = 1\n", "f", "def f():\n    y = 2\n\nx = 1\n", true},
		{"a.go", "package p\n\nvar a = 1\n\nvar b = 2\n", "a", "// A is one.\nvar a = 2\n\nvar b = 2\n", true},
	} {
		list, err := Outline(c.file, c.text)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(s Symbol) bool { return s.Name() == c.name })
		if i < 0 {
			t.Fatalf("%s has no %s", c.file, c.name)
		}
		var conflict *replace.Error
		if got, err := Replace(c.text, list[i], c.body); errors.As(err, &conflict) != c.refused {
			t.Errorf("%s: %q, %v", c.name, got, err)
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
		now := twoFuncs[:a.Bare] + body + twoFuncs[a.End:]
		after, err := Outline("a.go", now)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Declares(twoFuncs, now, before, after); got != want {
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

// A signature of one line with its comment is written twice too, also where two of one name are overloads to the grammar.
func TestDoubledSignatures(t *testing.T) {
	const file = "export declare class Cluster {\n    /**\n     * Connect.\n     */\n    connect(): void;\n    /**\n     * Disconnect.\n     */\n    disconnect(again?: boolean): void;\n}\n"
	was, _ := Outline("a.d.ts", file)
	body := "/**\n * Connect to all.\n */\nconnect(): void;\n"
	for next, want := range map[string]bool{"": false, "\n/**\n * Disconnect.\n */\ndisconnect(again?: boolean): void;": true} {
		now, err := Replace(file, was[1], body+next)
		if err != nil {
			t.Fatal(err)
		}
		is, _ := Outline("a.d.ts", now)
		if s, ok := Doubled(file, now, was, is); ok != want {
			t.Errorf("%v %t\n%s", s, ok, now)
		}
	}
}

// What a declaration holds is not the declaration, though it is one of its kind.
func TestDeclaresNotWhatItHeld(t *testing.T) {
	const file = "namespace A {\n    namespace B {\n        int f() { return 1; }\n    }\n}\n"
	before, err := Outline("a.cpp", file)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]bool{
		"    namespace B {\n        int f() { return 2; }\n    }":                   false,
		"namespace A {\n    namespace B {\n        int f() { return 2; }\n    }\n}": true,
		"namespace C {\n    namespace B {\n        int f() { return 2; }\n    }\n}": true,
	} {
		now, err := Replace(file, before[0], body)
		if err != nil {
			t.Fatal(err)
		}
		after, _ := Outline("a.cpp", now)
		if got := before[0].Declares(file, now, before, after); got != want {
			t.Errorf("%t for %s", got, body)
		}
	}
}
