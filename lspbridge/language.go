package lspbridge

import (
	"path/filepath"
	"slices"
	"strings"
)

// commentedJSON reports whether a .json file may have comments by convention: with the language "json" the server would report every
// comment as an error.
func commentedJSON(path string) bool {
	base := strings.ToLower(filepath.Base(path))
	stem, _, _ := strings.Cut(base, ".")
	switch {
	case stem == "tsconfig" || stem == "jsconfig" || strings.HasPrefix(base, "tsconfig-") || strings.HasPrefix(base, "jsconfig-"):
		return true
	case filepath.Base(filepath.Dir(path)) == ".vscode":
		return true
	}
	return slices.Contains([]string{".eslintrc.json", "tslint.json", "devcontainer.json", ".devcontainer.json", "api-extractor.json", "language-configuration.json",
		".oxlintrc.json", "typedoc.json", "nx.json", "turbo.json", "pyrightconfig.json", ".luarc.json"}, base)
}

// languageID returns LSP's language identifier of a file, as VS Code assigns it. Servers for several languages choose their rules by it.
func languageID(path string) string {
	base := filepath.Base(path)
	if id := languageNames[base]; id != "" {
		return id
	}
	if kind, _, _ := strings.Cut(base, "."); languageNames[kind] == "dockerfile" { // Dockerfile.dev
		return "dockerfile"
	}
	ext := strings.ToLower(filepath.Ext(base))
	// Whole names count first, then JSON with comments, then the extension.
	switch id := languages[ext]; {
	case ext == ".json" && commentedJSON(path):
		return "jsonc"
	case id != "":
		return id
	case ext == "":
		return "plaintext"
	}
	// go, java, json, jsonc, css, scss, less, lua, php, swift, zig, dart, vue, svelte, astro, nix, prisma, gleam, toml, …
	return strings.TrimPrefix(ext, ".")
}

// languageNames maps whole file names to languages. The letter case counts: "build" is not a BUILD file.
var languageNames = map[string]string{
	"go.mod": "go.mod", "go.work": "go.work", "go.sum": "go.sum", "Dockerfile": "dockerfile", "Containerfile": "dockerfile",
	"CMakeLists.txt": "cmake", "Gemfile": "ruby", "Rakefile": "ruby", "Makefile": "makefile", "makefile": "makefile", "GNUmakefile": "makefile",
	"Justfile": "just", "justfile": "just", ".bashrc": "shellscript", ".bash_profile": "shellscript", ".profile": "shellscript", ".zshrc": "shellscript",
	"Jenkinsfile": "groovy", "BUILD": "starlark", "WORKSPACE": "starlark", "Vagrantfile": "ruby", "meson.build": "meson",
	"COMMIT_EDITMSG": "git-commit", "git-rebase-todo": "git-rebase", ".babelrc": "jsonc", ".eslintrc": "jsonc",
}

// languages maps extensions, in lower case, to the identifiers that differ from them.
var languages = map[string]string{
	".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
	".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".es6": "javascript", ".jsx": "javascriptreact", ".coffee": "coffeescript",
	".py": "python", ".pyi": "python", ".pyw": "python", ".pyx": "cython",
	".h": "c", ".cc": "cpp", ".cxx": "cpp", ".c++": "cpp", ".hpp": "cpp", ".hh": "cpp", ".hxx": "cpp", ".h++": "cpp", ".ipp": "cpp", ".cppm": "cpp",
	".cu": "cuda-cpp", ".cuh": "cuda-cpp", ".m": "objective-c", ".mm": "objective-cpp",
	".rs": "rust", ".sh": "shellscript", ".bash": "shellscript", ".ksh": "shellscript", ".zsh": "shellscript",
	".ps1": "powershell", ".psm1": "powershell", ".psd1": "powershell", ".cmd": "bat",
	".yml": "yaml", ".htm": "html", ".xhtml": "html", ".md": "markdown", ".markdown": "markdown", ".rst": "restructuredtext", ".adoc": "asciidoc",
	".hbs": "handlebars", ".pug": "jade", ".styl": "stylus", ".gql": "graphql", ".graphqls": "graphql",
	".kt": "kotlin", ".kts": "kotlin", ".cs": "csharp", ".csx": "csharp", ".cshtml": "razor", ".fs": "fsharp", ".fsi": "fsharp", ".fsx": "fsharp",
	".fsscript": "fsharp", ".vb": "vb", ".sc": "scala", ".sbt": "scala", ".gradle": "groovy",
	".rb": "ruby", ".rake": "ruby", ".gemspec": "ruby", ".ru": "ruby", ".erb": "erb", ".pl": "perl", ".pm": "perl", ".raku": "raku",
	".ex": "elixir", ".exs": "elixir", ".heex": "phoenix-heex", ".leex": "phoenix-heex", ".erl": "erlang", ".hrl": "erlang",
	".ml": "ocaml", ".mli": "ocaml.interface", ".tf": "terraform", ".tfvars": "terraform-vars", ".tex": "latex", ".sty": "latex", ".cls": "latex", ".bib": "bibtex",
	".hs": "haskell", ".lhs": "literate haskell", ".purs": "purescript", ".jl": "julia", ".typ": "typst", ".typc": "typst",
	".clj": "clojure", ".cljs": "clojure", ".cljc": "clojure", ".edn": "clojure", ".lisp": "lisp", ".el": "elisp", ".rkt": "racket", ".scm": "scheme",
	".f": "fortran", ".f90": "fortran", ".f95": "fortran", ".pas": "pascal", ".pp": "puppet", ".adb": "ada", ".ads": "ada", ".cob": "cobol",
	".sv": "systemverilog", ".svh": "systemverilog", ".vhd": "vhdl", ".vhdl": "vhdl", ".libsonnet": "jsonnet", ".bzl": "starlark", ".star": "starlark",
	".sol": "solidity", ".cr": "crystal", ".nims": "nim", ".groovy": "groovy", ".mak": "makefile", ".mk": "makefile", ".vert": "glsl", ".frag": "glsl",
	".xsd": "xml", ".xsl": "xsl", ".xslt": "xsl", ".svg": "xml", ".txt": "plaintext", ".patch": "diff", ".lean": "lean4", ".zon": "zig",
}
