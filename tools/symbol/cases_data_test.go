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
	{"a.lua", `local M = {}

--- Doubles.
-- twice
local function double(x)
  return x * 2
end

-- Greets.
function M.greet(name)
  local function inner() end
  return "hi " .. name
end

function M.sub:stop(now) self.now = now end

M.each = function(list)
  for i = 1, #list do print(list[i]) end
end

local tools = {
  size = 1,
  run = function() return 1 end, -- runs
  deep = { go = function() end },
}
local one, two = 1, 2
M["x y"] = 5

return M
`, []cut{
		{"a function with its comment", "double", "delete", "", "--- Doubles.\n-- twice\nlocal function double(x)\n  return x * 2\nend\n\n", "", ""},
		{"a body", "M.greet", "replace", "function M.greet(name)\n  return name\nend", "  local function inner() end\n  return \"hi \" .. name\n", "  return name\n", ""},
		{"a function with another comment", "double", "replace", "-- Twice.\nlocal function double(x) return x + x end", "--- Doubles.\n-- twice\nlocal function double(x)\n  return x * 2\nend", "-- Twice.\nlocal function double(x) return x + x end", ""},
		{"a method", "M.sub.stop", "replace", "function M.sub:stop() end", "stop(now) self.now = now end", "stop() end", ""},
		{"a function as a value", "M.each", "before", "M.none = nil", "M.each", "M.none = nil\n\nM.each", ""},
		{"a function in a table", "tools.run", "replace", "run = function() return 2 end", "return 1 end, -- runs", "return 2 end, -- runs", ""},
		{"after one in a table", "tools.run", "after", "stop = function() end", "-- runs\n", "-- runs\n  stop = function() end,\n", ""},
		{"deep in a table", "tools.deep.go", "delete", "", "", "", "shares its lines"},
		{"two in one statement", "two", "delete", "", "", "", "together with others"},
	}},
}
