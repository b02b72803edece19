package symbol

import (
	"strings"
	"testing"
)

// cut is one edit of one declaration in a text as people write them. Only the changed part of the text is spelled out:
// from becomes to; everything else must stay as it is.
type cut struct {
	what, name, op, body string
	from, to             string // what changes in the text; both empty: nothing
	err                  string // part of the refusal instead
}

var cuts = []struct {
	path, text string
	cuts       []cut
}{
	{"a.go", `package p

// Box holds.
// Two lines.
type Box[T any] struct {
	Base // embedded
	*Other[T]

	// size counts.
	size int ` + "`json:\"size\"`" + `
}

func (b *Box[T]) Get() (T, error) {
	var zero T
	return zero, nil
}

// Get of another.
func (o Other[T]) Get() T { return o.v }

func Map[K comparable, V any](in map[K]V, f func(V) V) {
	go func() {
		f(in[*new(K)])
	}()
}

const (
	// A is first.
	A = iota
	B // second
	C
)

type (
	small int
	// pair is two.
	pair struct{ a, b int }
)

var handler = func(n int) int {
	return n
}

func init() {}
`, []cut{
		{"a generic method", "Box.Get", "replace", "func (b *Box[T]) Get() (T, error) {\n\treturn b.v, nil\n}", "\tvar zero T\n\treturn zero, nil\n", "\treturn b.v, nil\n", ""},
		{"Go's own spelling of it", "(*Box[T]).Get", "delete", "", "func (b *Box[T]) Get() (T, error) {\n\tvar zero T\n\treturn zero, nil\n}\n\n", "", ""},
		{"the other one of the name", "Other.Get", "delete", "", "// Get of another.\nfunc (o Other[T]) Get() T { return o.v }\n\n", "", ""},
		{"a field with its tag and comment", "Box.size", "delete", "", "\n\t// size counts.\n\tsize int `json:\"size\"`\n", "", ""},
		{"an embedded type", "Box.Base", "replace", "Core", "\tBase // embedded\n", "\tCore\n", ""},
		{"an embedded pointer to a generic type", "Box.Other", "delete", "", "\t*Other[T]\n", "", ""},
		{"a generic type keeps its comment", "Box", "replace", "type Box[T any] struct{}", "type Box[T any] struct {\n\tBase // embedded\n\t*Other[T]\n\n\t// size counts.\n\tsize int `json:\"size\"`\n}", "type Box[T any] struct{}", ""},
		{"a generic function", "Map", "after", "func Filter() {}", "\t}()\n}\n", "\t}()\n}\n\nfunc Filter() {}\n", ""},
		{"one constant of a group", "B", "replace", "B = 7", "\tB // second\n", "\tB = 7\n", ""},
		{"before a constant with a comment", "A", "before", "Z = 9", "\t// A is first.\n", "\tZ = 9\n\t// A is first.\n", ""},
		{"a type of a group", "pair", "replace", "pair struct{ a, b string }", "pair struct{ a, b int }", "pair struct{ a, b string }", ""},
		{"a function in a variable", "handler", "replace", "var handler = func(n int) int { return 2 }", "var handler = func(n int) int {\n\treturn n\n}", "var handler = func(n int) int { return 2 }", ""},
		{"the last declaration", "init", "delete", "", "\nfunc init() {}\n", "", ""},
		{"after the last declaration", "init", "after", "func last() {}", "func init() {}\n", "func init() {}\n\nfunc last() {}\n", ""},
	}},
	{"a.ts", `import { x } from './x';

/** Shape of things. */
export interface Shape<T = unknown> {
  readonly size: number;
  area(scale: number): number;
}

@Component({
  selector: 'app',
})
export class App implements Shape {
  private count = 0;

  @Input() name!: string;

  // Makes one.
  constructor(private readonly s: Service) {
    super();
  }

  get value(): number { return 1; }
  set value(n: number) {}

  // About over.
  over(a: string): void;
  over(a: number): void;
  over(a: unknown) {
    return a;
  }

  handler = async (e: Event) => {
    e.stop();
  };
}

export const twice = (n: number): number => 2 * n;

export default function main<T>(arg: T): void {
  const inner = 1;
}

export enum Mode {
  On = 'on',
  Off = 'off'
}

const a = 1, b = 2;

export const api = {
  // Gets it.
  get() {
    return 1;
  },
  post: async (url: string) => url,
};

namespace Deep.Er {
  export const z = 1;
}
`, []cut{
		{"an interface", "Shape", "after", "type Flat = Shape;", "number;\n}\n\n@Comp", "number;\n}\n\ntype Flat = Shape;\n\n@Comp", ""},
		{"a member of an interface", "Shape.area", "replace", "area(): number;", "area(scale: number): number;", "area(): number;", ""},
		{"a decorated class keeps its decorator", "App", "before", "const before = 1;", "@Component({", "const before = 1;\n\n@Component({", ""},
		{"a decorated property", "App.name", "replace", "@Input() name = '';", "@Input() name!: string;", "@Input() name = '';", ""},
		{"a decorated property alone", "App.name", "delete", "", "\n  @Input() name!: string;\n", "", ""},
		{"a constructor with its comment", "App.constructor", "delete", "", "  // Makes one.\n  constructor(private readonly s: Service) {\n    super();\n  }\n\n", "", ""},
		{"overloads are one", "App.over", "replace", "over(a: unknown) {\n  return 1;\n}", "  over(a: string): void;\n  over(a: number): void;\n  over(a: unknown) {\n    return a;\n  }", "  over(a: unknown) {\n    return 1;\n  }", ""},
		{"overloads go together", "over", "delete", "", "\n  // About over.\n  over(a: string): void;\n  over(a: number): void;\n  over(a: unknown) {\n    return a;\n  }\n", "", ""},
		{"an arrow function in a class", "App.handler", "replace", "handler = () => {};", "handler = async (e: Event) => {\n    e.stop();\n  };", "handler = () => {};", ""},
		{"an exported arrow function", "twice", "replace", "export const twice = (n: number) => n + n;", "export const twice = (n: number): number => 2 * n;", "export const twice = (n: number) => n + n;", ""},
		{"a default export with a name", "main", "replace", "export default function main() {}", "export default function main<T>(arg: T): void {\n  const inner = 1;\n}", "export default function main() {}", ""},
		{"after a member of an enum that is the last", "Mode.Off", "after", "Idle = 'idle'", "  Off = 'off'\n", "  Off = 'off',\n  Idle = 'idle'\n", ""},
		{"before a member of an enum", "Mode.Off", "before", "Idle = 'idle',", "  Off = 'off'\n", "  Idle = 'idle',\n  Off = 'off'\n", ""},
		{"a member of an enum keeps its comma", "Mode.On", "replace", "On = 1", "On = 'on'", "On = 1", ""},
		{"two in one statement", "a", "replace", "const a = 2", "", "", "together with others"},
		{"a method of an object", "api.get", "replace", "get() {\n  return 2;\n},", "return 1;\n  },", "return 2;\n  },", ""},
		{"after a method of an object", "api.get", "after", "put() {}", "    return 1;\n  },\n", "    return 1;\n  },\n\n  put() {},\n", ""},
		{"a function of an object goes with its comma", "api.post", "delete", "", "  post: async (url: string) => url,\n", "", ""},
		{"in a namespace", "Deep.Er.z", "replace", "export const z = 2;", "const z = 1;", "const z = 2;", ""},
	}},
	{"b.ts", "export default class {\n  run() {\n    return 1;\n  }\n}\n", []cut{
		{"a class without a name", "default", "replace", "export default class {}", "export default class {\n  run() {\n    return 1;\n  }\n}", "export default class {}", ""},
		{"a method of it", "run", "replace", "run() {}", "run() {\n    return 1;\n  }", "run() {}", ""},
	}},
	{"a.js", "const x = require('x');\n\n// Opens.\nmodule.exports.open = function (a) {\n  return a;\n};\n\nDoor.prototype.close = () => 1;\n\nexport default async () => {\n  return 1;\n};\n", []cut{
		{"an assigned export", "open", "delete", "", "// Opens.\nmodule.exports.open = function (a) {\n  return a;\n};\n\n", "", ""},
		{"a method of a prototype", "Door.close", "replace", "Door.prototype.close = () => 2;", "=> 1;\n\n", "=> 2;\n\n", ""},
		{"a default export without a name", "default", "replace", "export default () => 2;", "export default async () => {\n  return 1;\n};", "export default () => 2;", ""},
	}},
	{"a.py", `"""Module."""
import os

# The limit.
LIMIT: int = 3


@app.route("/")
@login_required
async def index(request):
    """Doc."""
    def inner():
        return 1
    return inner()


class Cart(Base, metaclass=Meta):
    """Doc."""

    total = 0

    @property
    def count(self) -> int:
        return 1

    @count.setter
    def count(self, n):
        pass

    class Item:
        def price(self): return 1

    # A note.
    @staticmethod
    def make(): ...


if LIMIT:
    def late():
        pass
`, []cut{
		{"a decorated coroutine keeps its decorators", "index", "replace", "async def index(request):\n    return 2", "    \"\"\"Doc.\"\"\"\n    def inner():\n        return 1\n    return inner()", "    return 2", ""},
		{"decorators are replaced with it", "index", "replace", "@app.post(\"/\")\ndef index():\n    return 2", "@app.route(\"/\")\n@login_required\nasync def index(request):\n    \"\"\"Doc.\"\"\"\n    def inner():\n        return 1\n    return inner()", "@app.post(\"/\")\ndef index():\n    return 2", ""},
		{"a function inside a function", "index.inner", "replace", "def inner():\n    return 2", "        return 1\n    return", "        return 2\n    return", ""},
		{"a class variable", "Cart.total", "delete", "", "    total = 0\n\n", "", ""},
		{"a method of an inner class", "Cart.Item.price", "replace", "def price(self):\n    return 2", "def price(self): return 1", "def price(self):\n            return 2", ""},
		{"a decorated method with its comment", "make", "delete", "", "\n    # A note.\n    @staticmethod\n    def make(): ...\n", "", ""},
		{"before a decorated function", "index", "before", "x = 1", "@app.route", "x = 1\n\n@app.route", ""},
		{"an annotated constant", "LIMIT", "replace", "LIMIT = 4", "LIMIT: int = 3", "LIMIT = 4", ""},
		{"under a condition", "late", "replace", "def late():\n    return 1", "def late():\n        pass", "def late():\n        return 1", ""},
		{"a class after a class", "Cart", "after", "class Other:\n    pass", "def make(): ...\n", "def make(): ...\n\nclass Other:\n    pass\n", ""},
	}},
	{"a.cpp", `#include "a.h"

namespace shop {

/// A cart.
template <typename T, int N = 3>
class Cart : public Base<T> {
 public:
  explicit Cart(int n);
  ~Cart();
  // Size.
  [[nodiscard]] int size() const noexcept { return n_; }
  T& operator[](int i);

 private:
  int n_;
};

template <typename T, int N>
Cart<T, N>::Cart(int n) : n_(n) {}

template <typename T, int N>
T& Cart<T, N>::operator[](int i) {
  return items_[i];
}

enum class Kind {
  kA,  // first
  kB,
};

int* find(int a) { return nullptr; }

}  // namespace shop

bool shop::Door::open(const Key& k) const {
  return true;
}

static const int kMax = 3;
`, []cut{
		{"a template with its comment", "Cart", "before", "struct Item {};", "/// A cart.\n", "struct Item {};\n\n/// A cart.\n", ""},
		{"a method inside the class", "Cart.size", "replace", "[[nodiscard]] int size() const { return 0; }", "int size() const noexcept { return n_; }", "int size() const { return 0; }", ""},
		{"a destructor", "~Cart", "delete", "", "  ~Cart();\n", "", ""},
		{"an operator out of its class", "Cart.operator[]", "many", "", "", "", "2"},
		{"a method out of its class", "shop::Door::open", "replace", "bool shop::Door::open() { return 0; }", "bool shop::Door::open(const Key& k) const {\n  return true;\n}", "bool shop::Door::open() { return 0; }", ""},
		{"the same by the end of its path", "Door::open", "delete", "", "bool shop::Door::open(const Key& k) const {\n  return true;\n}\n\n", "", ""},
		{"a function in a namespace", "shop::find", "replace", "int* find(int a) { return &a; }", "return nullptr;", "return &a;", ""},
		{"an enumerator keeps its comma", "Kind.kB", "replace", "kB = 2", "kB,", "kB = 2,", ""},
		{"after an enumerator with a comment", "Kind::kA", "after", "kX", "kA,  // first\n", "kA,  // first\n  kX,\n", ""},
		{"a constant", "kMax", "delete", "", "\nstatic const int kMax = 3;\n", "", ""},
	}},
	{"a.rs", `//! Crate.
use std::fmt;

/// A stack.
#[derive(Debug, Clone)]
pub struct Stack<T> {
    items: Vec<T>,
    pub len: usize
}

impl<T: Clone> Stack<T> {
    /// Makes one.
    #[must_use]
    pub const fn new() -> Self {
        Self { items: vec![], len: 0 }
    }
}

impl<T> fmt::Display for Stack<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { Ok(()) }
}

pub enum Op {
    Push(i32),
    Pop,
}

#[cfg(test)]
mod tests {
    #[test]
    fn works() {}
}
`, []cut{
		{"a method of an impl keeps its attribute", "Stack.new", "replace", "pub fn new() -> Self { todo!() }", "pub const fn new() -> Self {\n        Self { items: vec![], len: 0 }\n    }", "pub fn new() -> Self { todo!() }", ""},
		{"a method of a trait", "Stack::fmt", "delete", "", "    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { Ok(()) }\n", "", ""},
		{"after the last field without a comma", "Stack.len", "after", "cap: usize", "    pub len: usize\n", "    pub len: usize,\n    cap: usize\n", ""},
		{"a variant", "Op.Push", "delete", "", "    Push(i32),\n", "", ""},
		{"a test in a module", "tests::works", "replace", "#[test]\n#[ignore]\nfn works() {}", "    #[test]\n    fn", "    #[test]\n    #[ignore]\n    fn", ""},
		{"a struct with its doc and attribute", "Stack", "before", "const X: i32 = 1;", "/// A stack.", "const X: i32 = 1;\n\n/// A stack.", ""},
	}},
	{"a.sh", "#!/bin/bash\n\n# Says.\nfunction hello {\n  local who=$1\n  echo \"$who\"\n}\n\nbye() { :; }\nexport HOME_DIR=/x\nA=1 B=2\n", []cut{
		{"a function", "hello", "replace", "hello() {\n  echo hi\n}", "function hello {\n  local who=$1\n  echo \"$who\"\n}", "hello() {\n  echo hi\n}", ""},
		{"a function with its comment", "hello", "delete", "", "# Says.\nfunction hello {\n  local who=$1\n  echo \"$who\"\n}\n\n", "", ""},
		{"after a short one", "bye", "after", "again() { :; }", "bye() { :; }\n", "bye() { :; }\n\nagain() { :; }\n", ""},
		{"an exported variable", "HOME_DIR", "replace", "export HOME_DIR=/y", "/x", "/y", ""},
	}},
	{"a.json", `{
  "name": "x",
  "scripts": {
    "build": "tsc",
    "test:unit": "vitest" // quick
  },
  // Where it runs.
  "engines": { "node": ">=20" },
  "files": ["a", "b"]
}
`, []cut{
		{"a value", "scripts.build", "replace", `"build": "tsc -b"`, `"tsc"`, `"tsc -b"`, ""},
		{"a comma given along", "name", "replace", `"name": "y",`, `"x"`, `"y"`, ""},
		{"a key with a colon", "test:unit", "replace", `"test:unit": "jest"`, `"vitest"`, `"jest"`, ""},
		{"the last of an object takes its comma along", "scripts.test:unit", "delete", "", ",\n    \"test:unit\": \"vitest\" // quick\n", "\n", ""},
		{"the first of an object", "name", "delete", "", "  \"name\": \"x\",\n", "", ""},
		{"after the last", "files", "after", `"private": true`, "\"b\"]\n", "\"b\"],\n  \"private\": true\n", ""},
		{"after one in the middle", "name", "after", `"version": "1"`, "\"x\",\n", "\"x\",\n  \"version\": \"1\",\n", ""},
		{"before one with a comment", "engines", "before", `"type": "module"`, "  // Where", "  \"type\": \"module\",\n  // Where", ""},
		{"an object", "scripts", "delete", "", "  \"scripts\": {\n    \"build\": \"tsc\",\n    \"test:unit\": \"vitest\" // quick\n  },\n", "", ""},
		{"on a line with others", "engines.node", "delete", "", "", "", "shares its lines"},
	}},
	{"a.yaml", `# About this file.

name: ci # short
on:
  push:
    branches: [main]

jobs:
  # Builds.
  build:
    steps:
      - uses: checkout
      - run: |
          make
          # no comment: at all
        env:
          A: 1
  test:
    needs: build
`, []cut{
		{"a value", "name", "replace", "name: other", "name: ci # short", "name: other", ""},
		{"a mapping", "on.push", "replace", "push:\n  tags: [v1]", "    branches: [main]", "    tags: [v1]", ""},
		{"a job with its comment", "jobs.build", "delete", "", "  # Builds.\n  build:\n    steps:\n      - uses: checkout\n      - run: |\n          make\n          # no comment: at all\n        env:\n          A: 1\n", "", ""},
		{"after the last", "jobs.test", "after", "lint:\n  needs: build", "    needs: build\n", "    needs: build\n\n  lint:\n    needs: build\n", ""},
		{"inside an item of a list", "jobs.build.steps.1.env", "replace", "env:\n  B: 2", "          A: 1", "          B: 2", ""},
		{"what begins an item", "jobs.build.steps.0.uses", "delete", "", "", "", "begins an item of a list"},
	}},
	{"a.css", `:root { --gap: 1px; }

/* Buttons. */
.btn:hover,
.btn > a[href] {
  color: red;
  margin: 0
}

@media (max-width: 3px) {
  .btn { color: blue; }
}

@keyframes spin { from { top: 0 } }
`, []cut{
		{"a rule by its selectors", ".btn:hover, .btn > a[href]", "replace", ".btn {\n  color: red;\n}", ".btn:hover,\n.btn > a[href] {\n  color: red;\n  margin: 0\n}", ".btn {\n  color: red;\n}", ""},
		{"a declaration", ".btn:hover, .btn > a[href].color", "replace", "color: blue;", "color: red;", "color: blue;", ""},
		{"a media query", "@media (max-width: 3px)", "delete", "", "@media (max-width: 3px) {\n  .btn { color: blue; }\n}\n\n", "", ""},
		{"keyframes", "@keyframes spin", "before", ".x {\n  top: 0;\n}", "@keyframes", ".x {\n  top: 0;\n}\n\n@keyframes", ""},
		{"a rule with its comment", ".btn:hover, .btn > a[href]", "delete", "", "/* Buttons. */\n.btn:hover,\n.btn > a[href] {\n  color: red;\n  margin: 0\n}\n\n", "", ""},
	}},
}

func TestCuts(t *testing.T) {
	if !hasParser {
		t.Skip("built without cgo: no grammars")
	}
	n := 0
	for _, f := range cuts {
		for _, crlf := range []bool{false, true} {
			dos := func(s string) string {
				if crlf {
					return strings.ReplaceAll(s, "\n", "\r\n")
				}
				return s
			}
			text := dos(f.text)
			list, err := Outline(f.path, text)
			if err != nil {
				t.Fatal(f.path, err)
			}
			for _, c := range f.cuts {
				n++
				name := f.path + ": " + c.what
				found := Find(list, c.name)
				if c.op == "many" {
					if len(found) < 2 {
						t.Errorf("%s: %d symbols are called %s", name, len(found), c.name)
					}
					continue
				}
				if len(found) != 1 {
					t.Errorf("%s: %d symbols are called %s", name, len(found), c.name)
					continue
				}
				var got string
				switch c.op {
				case "replace":
					got, err = Replace(text, found[0], c.body)
				case "before":
					got, err = Before(text, found[0], c.body)
				case "after":
					got, err = After(text, found[0], c.body)
				case "delete":
					got, err = Delete(text, found[0])
				}
				if c.err != "" {
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("%s: %v, want %q", name, err, c.err)
					}
					continue
				}
				if strings.Count(f.text, c.from) != 1 {
					t.Fatalf("%s: %q is not there once", name, c.from)
				}
				want := dos(strings.Replace(f.text, c.from, c.to, 1))
				if err != nil || got != want {
					t.Errorf("%s (CRLF %v): %v\n%s\nwant\n%s", name, crlf, err, got, want)
				}
				if was, _ := Broken(f.path, text); !was {
					if broken, ok := Broken(f.path, got); ok && broken {
						t.Errorf("%s leaves a syntax error", name)
					}
				}
			}
		}
	}
	if n < 120 {
		t.Errorf("only %d cases", n)
	}
}
