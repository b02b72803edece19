package symbol

// dataCuts are of files without programs: keys and rules instead of declarations.
var dataCuts = []cutText{
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
