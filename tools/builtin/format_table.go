package builtin

const (
	webExts  = "js jsx mjs cjs ts tsx mts cts css scss less html vue json jsonc yaml yml md mdx graphql gql"
	rubyExts = "rb rake gemspec ru"
)

// formatTable: the first row wins that has the extension, a marker in the project and its program installed.
var formatTable = [...]formatRow{
	{name: "gofumpt", exts: "go", command: []string{"gofumpt"}, byName: true},
	{name: "gofmt", exts: "go", command: []string{"gofmt"}, markers: []string{"go.mod", "go.work"}},
	{name: "biome", exts: "js jsx mjs cjs ts tsx mts cts json jsonc css graphql gql html vue svelte astro", command: []string{"biome", "format", "--stdin-file-path=$NAME"}, markers: []string{"biome.json", "biome.jsonc"}},
	{name: "oxfmt", exts: webExts, command: []string{"oxfmt", "--stdin-filepath", "$NAME"}, markers: []string{".oxfmtrc.json", ".oxfmtrc.jsonc", `package.json:"oxfmt"`}},
	{name: "prettier", exts: webExts, command: []string{"prettier", "--stdin-filepath", "$NAME"}, markers: []string{
		".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml", ".prettierrc.toml", ".prettierrc.js", ".prettierrc.cjs", ".prettierrc.mjs",
		"prettier.config.js", "prettier.config.cjs", "prettier.config.mjs", "prettier.config.ts", `package.json:"prettier"`}},
	{name: "ruff", exts: "py pyi", command: []string{"ruff", "format", "--stdin-filename", "$NAME", "-"}, markers: []string{"ruff.toml", ".ruff.toml", "pyproject.toml:[tool.ruff", "requirements.txt:ruff", "pyproject.toml:ruff"}},
	{name: "black", exts: "py pyi", command: []string{"black", "-q", "--stdin-filename", "$NAME", "-"}, markers: []string{"pyproject.toml:[tool.black"}},
	{name: "uv", exts: "py pyi", command: []string{"uv", "format", "--", "$FILE"}, byName: true},
	{name: "rustfmt", exts: "rs", command: []string{"rustfmt", "--edition", "$EDITION"}, markers: []string{"Cargo.toml"}},
	{name: "clang-format", exts: "c cc cpp cxx h hh hpp hxx m mm ino", command: []string{"clang-format", "--assume-filename=$NAME"}, markers: []string{".clang-format", "_clang-format"}},
	{name: "shfmt", exts: "sh bash", command: []string{"shfmt", "-filename", "$NAME"}},
	{name: "zig", exts: "zig zon", command: []string{"zig", "fmt", "--stdin"}, markers: []string{"build.zig"}},
	{name: "mix", exts: "ex exs eex heex leex", command: []string{"mix", "format", "--stdin-filename", "$NAME", "-"}, markers: []string{"mix.exs"}},
	{name: "dart", exts: "dart", command: []string{"dart", "format"}, markers: []string{"pubspec.yaml"}},
	{name: "terraform", exts: "tf tfvars", command: []string{"terraform", "fmt", "-"}},
	{name: "ktlint", exts: "kt kts", command: []string{"ktlint", "-F", "$FILE"}, exit1: true},
	{name: "rubocop", exts: rubyExts, command: []string{"rubocop", "--autocorrect", "$FILE"}, markers: []string{".rubocop.yml"}, exit1: true},
	{name: "standardrb", exts: rubyExts, command: []string{"standardrb", "--fix", "$FILE"}, markers: []string{".standard.yml"}, exit1: true},
	{name: "htmlbeautifier", exts: "erb", command: []string{"htmlbeautifier"}},
	{name: "gleam", exts: "gleam", command: []string{"gleam", "format", "--stdin"}, markers: []string{"gleam.toml"}},
	{name: "ocamlformat", exts: "ml mli", command: []string{"ocamlformat", "--name=$NAME", "-"}, markers: []string{".ocamlformat"}},
	{name: "ormolu", exts: "hs", command: []string{"ormolu", "--stdin-input-file", "$NAME"}},
	{name: "cljfmt", exts: "clj cljs cljc edn", command: []string{"cljfmt", "fix", "$FILE"}},
	{name: "nixfmt", exts: "nix", command: []string{"nixfmt", "$FILE"}},
	{name: "air", exts: "R r", command: []string{"air", "format", "$FILE"}, markers: []string{"air.toml", ".air.toml"}},
	{name: "latexindent", exts: "tex", command: []string{"latexindent", "-w", "-s", "$FILE"}},
	{name: "pint", exts: "php", command: []string{"pint", "$FILE"}, markers: []string{"pint.json", `composer.json:"laravel/pint"`}},
	{name: "dfmt", exts: "d", command: []string{"dfmt", "-i", "$FILE"}},
}
