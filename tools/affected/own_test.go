package affected

import "testing"

// What is said of programs whose tests no runner knows is a command of the project's own, and nothing where a runner knows them.
func TestTheCommandOfTheProjectItself(t *testing.T) {
	mocha := map[string]string{"package.json": `{"scripts":{"test":"mocha"},"devDependencies":{"mocha":"11"}}`, "lib/a.ts": "a", "README.md": "r", "tools/gen.c": "c",
		"packages/it's/package.json": `{"scripts":{"test":"node --test"}}`, "packages/it's/i.js": "i", "packages/bare/package.json": `{"name":"bare"}`, "packages/bare/b.mjs": "b"}
	makefile := map[string]string{"src/a.c": "a", "GNUmakefile": "all: a\n\ncheck: all\n\t./a --self-test\n", "Makefile": "test:\n\ttrue\n", "a.json": "{}"}
	for _, c := range []struct {
		name     string
		texts    map[string]string
		proposed map[string]string
		want     string
	}{
		{"mocha", mocha, map[string]string{"lib/a.ts": "b"}, "npm test"},
		{"a new file", mocha, map[string]string{"lib/new.js": "b"}, "npm test"},
		{"a removed file", mocha, map[string]string{"lib/a.ts": ""}, "npm test"},
		{"a package of its own", mocha, map[string]string{"packages/it's/i.js": "j"}, `cd 'packages/it'\''s' && npm test`},
		{"a package without a script", mocha, map[string]string{"packages/bare/b.mjs": "c"}, "npm test"},
		{"a page", mocha, map[string]string{"README.md": "s"}, ""},
		{"no script", mocha, map[string]string{"tools/gen.c": "d"}, ""},
		{"what npm init writes", map[string]string{"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`, "a.js": "a"}, map[string]string{"a.js": "b"}, ""},
		{"vitest", map[string]string{"package.json": `{"scripts":{"test":"vitest"},"devDependencies":{"vitest":"3"}}`, "a.ts": "a"}, map[string]string{"a.ts": "b"}, ""},
		{"make's own order", makefile, map[string]string{"src/a.c": "b"}, "make check"},
		{"data", makefile, map[string]string{"a.json": "{ }"}, ""},
		{"a variable", map[string]string{"Makefile": "test := x\ntest:= y\n", "a.c": "a"}, map[string]string{"a.c": "b"}, ""},
		{"go", map[string]string{"go.mod": "module m\n", "a.go": "package a\n", "Makefile": "test:\n"}, map[string]string{"a.go": "package b\n"}, ""},
		{"python without pytest's files", map[string]string{"a.py": "x = 1\n", "Makefile": "test:\n"}, map[string]string{"a.py": "x = 2\n"}, "make test"},
		{"pytest", map[string]string{"a.py": "x = 1\n", "test_a.py": "", "Makefile": "test:\n"}, map[string]string{"a.py": "x = 2\n"}, ""},
		{"one of two", map[string]string{"go.mod": "module m\n", "a.go": "package a\n", "web/a.js": "a", "web/package.json": `{"scripts":{"test":"tap"}}`},
			map[string]string{"a.go": "package b\n", "web/a.js": "b"}, "cd web && npm test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := projectOf("/p", c.texts, c.proposed)
			if got := own(p); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			check, ok := Unplanned(p)
			if ok != (c.want != "") || ok && check.Ran() {
				t.Errorf("%+v", check)
			}
		})
	}
}
