package main

import (
	"fmt"
	"strings"
)

func languages() []language {
	return []language{
		{id: "gopls", file: "core/core.go", command: []string{"gopls"}, files: goProject, error: "var _ = %s", way: (*rawServer).ended, ways: "end of the diagnosis"},
		{id: "typescript", file: "src/big.ts", command: []string{"typescript-language-server", "--stdio"}, files: tsProject, error: "%s;", way: (*rawServer).tsserver, ways: "tsserver's requests"},
		{id: "typescript 7", file: "src/big.ts", bin: "ts7", command: []string{"tsc", "--lsp", "--stdio"}, files: tsProject, error: "%s;", way: (*rawServer).pull, ways: "pull"},
		{id: "pyright", file: "big.py", command: []string{"pyright-langserver", "--stdio"}, files: pyProject, error: "%s", way: (*rawServer).pull, ways: "pull"},
		{id: "clangd", file: "big.cpp", command: []string{"clangd"}, files: cppProject, error: "int last() { return %s; }", way: (*rawServer).push, ways: "push, wantDiagnostics"},
	}
}

// repeat makes n parts of about four lines each.
func repeat(n int, format string) string {
	var s strings.Builder
	for i := range n {
		s.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return s.String()
}

func goProject() map[string]string {
	files := map[string]string{
		"go.mod":       "module example.test/p\n\ngo 1.24\n",
		"core/core.go": "package core\n\nimport \"strings\"\n\n" + repeat(250, "func F#(value int, text string) string {\n\treturn strings.Repeat(text, value+#)\n}\n\n"),
	}
	for i := range 40 {
		files[fmt.Sprintf("user%d/user.go", i)] = fmt.Sprintf("package user%d\n\nimport \"example.test/p/core\"\n\n", i) +
			repeat(20, fmt.Sprintf("func U#() string { return core.F%d(#, \"x\") }\n", i))
	}
	return files
}

func tsProject() map[string]string {
	files := map[string]string{
		"package.json":  `{"name":"p","private":true}`,
		"tsconfig.json": `{"compilerOptions":{"strict":true,"target":"es2022","module":"nodenext","moduleResolution":"nodenext","noEmit":true},"include":["src"]}`,
		"src/big.ts":    repeat(250, "export function f#(value: number, text: string): string {\n  return text.repeat(value + #);\n}\n\n"),
	}
	for i := range 40 {
		files[fmt.Sprintf("src/user%d.ts", i)] = fmt.Sprintf("import { f%d } from \"./big.js\";\n", i) + repeat(20, fmt.Sprintf("export const u# = f%d(#, \"x\");\n", i))
	}
	return files
}

func pyProject() map[string]string {
	files := map[string]string{
		"pyproject.toml": "[project]\nname = \"p\"\nversion = \"1\"\n",
		"big.py":         repeat(330, "def f#(value: int, text: str) -> str:\n    return text * (value + #)\n\n"),
	}
	for i := range 40 {
		files[fmt.Sprintf("user%d.py", i)] = fmt.Sprintf("from big import f%d\n\n", i) + repeat(20, fmt.Sprintf("u# = f%d(#, \"x\")\n", i))
	}
	return files
}

func cppProject() map[string]string {
	return map[string]string{
		"compile_flags.txt": "-std=c++17\n",
		"big.cpp":           "#include <string>\n#include <vector>\n\n" + repeat(250, "static std::string f#(int value, std::string text) {\n  return text + std::to_string(value + #);\n}\n\n"),
	}
}
