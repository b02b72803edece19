package symbol

// goAndWebCuts are of Go, TypeScript and JavaScript.
var goAndWebCuts = []cutText{
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
}
