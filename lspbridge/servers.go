package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/guard"
)

// Server is a row of the table: a language server, its files, and how to start it. Copies may be changed freely; slices must be replaced,
// not modified, because copies share them.
type Server struct {
	ID         string
	Extensions []string     // with the dot; "" entries never match
	Filenames  []string     // whole base names, e.g. Dockerfile; globs allowed
	Workspace  []string     // files at the root of several projects (lock files, go.work); searched before Markers, so that one server serves all of them
	Markers    []string     // files at the root of a project; globs allowed; the nearest one wins
	Configures []string     // other files that decide how the server sees its sources; globs allowed
	Extended   []string     // configurations that those of any folder may extend; globs allowed
	Outermost  []string     // if set, the outermost marker wins instead, up to a folder that contains one of these
	Required   bool         // serves only files below a marker (linters, Deno)
	Excluded   []string     // a file below one of these markers belongs to another server
	Commands   [][]string   // the first whose program is found is used
	Shared     []string     // arguments with which several clients, such as the person's editor, share one process
	Env        []string     // KEY=value
	reason     guard.Reason // where the overrides of this row are configured
	Init       string       // JSON: initializationOptions
	Settings   string       // JSON object: answers workspace/configuration by dotted section
	Install    string       // the command or page by which a person installs it
	Added      bool         // configured by the person, not in the table; used in addition to the table's rows
	Extra      bool         // used in addition to another server for the same file (linters), only for problems and actions
	Quirks     Quirks
	Untrusted  *Restraint // nil: not started in an untrusted folder

	hooks hooks
}

// hooks implement what only one server needs; its file server_<id>.go has them next to its row. A nil hook does nothing.
type hooks struct {
	// program returns a command line to use instead of Commands, with the row for it; a nil argv means none.
	program func(p *programs, row Server, root string) (Server, []string)
	// options returns initializationOptions that depend on what is installed; the row's and the person's options win.
	options func(p *programs, argv []string, root string) map[string]any
	// handle answers messages that only this server sends; known is false for all others.
	handle func(c *client, method string, params json.RawMessage) (answer any, known bool)
	// log reads a line that the server writes to its log.
	log func(c *client, text string)
	// beside returns another server that must also serve the same file; nil for none.
	beside func(f *fleet, look *rootSearch, path, root string) *slot
	// deletedText returns the text of a deleted file where Quirks.EmptyText depends on the text before.
	deletedText func(old string) string
	// gap returns why the server may have missed problems of a changed file, which had this text and these problems before the change; ""
	// when it has missed none. introduced are the problems that the change introduces, in any file.
	gap func(path, text string, before, introduced []change.Problem) string
	// apart returns why the server sees a file without others that it belongs to, and which problems it reports only for that reason; "" when it
	// sees them.
	apart func(path string) (why string, spurious func(change.Problem) bool)
	// otherProjects makes the server load what is below its root and may use a changed declaration; the error says why it has not loaded all.
	otherProjects func(ctx context.Context, d *dependents, files []Proposal) error
	// impostor returns a text that a new file is opened with for a moment, so that the server notices it even where it has read the file before it
	// was told of it; "" for none.
	impostor func(path, text string) string
	// reload makes the server load again what it would not notice in changes on disk. It does not wait until that is loaded.
	reload func(c *client, events []fileEvent)
	// readBy returns a source that reads a file of another language when it is compiled; "" for none.
	readBy func(ctx context.Context, f *fleet, row Server, p Proposal) string
	// unseen returns why the server cannot see a proposed text of a file before it is written, old being the present one; "" when it can. It
	// reports also which problems such a text introduces only for that reason.
	unseen func(old string, f Proposal) (why string, spurious func(change.Problem) bool)
	// unloaded reports whether a problem says that the server could not load the file's package, so that it knows nothing else of the file.
	unloaded func(d change.Problem) bool
	// loadFailure returns why the server has loaded nothing of the project, given an error message that it shows; "" for other messages. A
	// server that loaded nothing reports no problems, and without this that would count as "no problems".
	loadFailure func(message string) string
	// missedFile makes the server search the disk for files that it has not noticed.
	missedFile func(ctx context.Context, c *client)
}

// Quirks are properties of a server that the protocol cannot express.
type Quirks struct {
	// EndMarker: the server sends progress titled "diagnosing <cause>" for every diagnosis (gopls), which tells exactly when problems are
	// final.
	EndMarker bool
	// TSServer: the command typescript.tsserverRequest returns diagnostics on request. The server's pushes are late and without versions.
	TSServer bool
	// WantDiagnostics: didChange supports wantDiagnostics (clangd), which skips the server's pause before a diagnosis.
	WantDiagnostics bool
	// Index is a lower-case part of the title of its indexing progress; a title may begin with the server's name and version. Until that has ended the server may not know every use of a
	// symbol, and a verdict is only partial. "": it has no index, or does not report it.
	Index string
	// RefreshEcho: some time after every change of a text the server requests a refresh, even if the problems have been pulled meanwhile
	// (pyright: after 250 ms). Such a request is ignored; else every check would run twice.
	RefreshEcho bool
	// Alone are methods whose requests the server cannot answer at the same time, nor after one of them was cancelled.
	Alone []string
	// LateNew: the first file of a package is diagnosed only after its next change. gopls 0.23 loads the package after the diagnosis that the
	// opening causes, and ends that one without a problem.
	LateNew bool
	// ReadOnce are files that the server reads at its start, and later only when it likes: it is restarted when one changes. clangd looks at
	// compile_commands.json every few seconds, and compiles no open file again for it.
	ReadOnce []string
	// BlindToNew is what the server does not see before it is on disk: "" nothing, "file" any new file, "dir" files in new folders.
	BlindToNew string
	// Encoding is the encoding that the server really uses, if it differs from the one that it announces.
	Encoding Encoding
	// EmptyText is the text of a deleted file in an overlay: LSP cannot express that an open document is gone.
	EmptyText string
}

// ServerConfig overrides a row of the table, or adds one when the id is unknown. Its JSON is OpenCode's lsp.<id>, extended by settings,
// roots and share.
type ServerConfig struct {
	Command        []string          `json:"command,omitempty"`
	Extensions     []string          `json:"extensions,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	Initialization json.RawMessage   `json:"initialization,omitempty"`
	Settings       json.RawMessage   `json:"settings,omitempty"`
	Roots          []string          `json:"roots,omitempty"` // root markers
	Share          bool              `json:"share,omitempty"` // see Server.Shared
	Disabled       bool              `json:"disabled,omitempty"`
	Reason         guard.Reason      `json:"-"` // where these settings are configured; passed to guard when the server starts
}

// Extensions and root markers shared by several rows.
var (
	jsExt   = []string{".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"}
	jsLocks = []string{"package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lockb", "bun.lock"}
	jsRoots = []string{"tsconfig.json", "jsconfig.json", "package.json"}
	cExt    = []string{".c", ".cpp", ".cc", ".cxx", ".c++", ".h", ".hpp", ".hh", ".hxx", ".h++", ".m", ".mm", ".cu"}
	pyRoots = []string{"pyproject.toml", "pyrightconfig.json", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"}
)

// Servers returns a fresh copy of the table. Of several rows for a file the first wins, so more specific rows come first.
func Servers() []Server {
	return []Server{
		gopls(),
		{ID: "deno", Extensions: jsExt, Markers: []string{"deno.json", "deno.jsonc"}, Required: true, Commands: [][]string{{"deno", "lsp"}},
			Init: `{"enable":true}`, Settings: `{"deno":{"enable":true}}`, Install: npm("deno")},
		typescript(),
		pyright(),
		{ID: "ty", Extensions: []string{".py", ".pyi"}, Markers: []string{"ty.toml"}, Required: true, Commands: [][]string{{"ty", "server"}}, Install: "uv tool install ty", Extra: true,
			Untrusted: &Restraint{Why: "It reads Python and runs none."}},
		{ID: "ruff", Extensions: []string{".py", ".pyi"}, Markers: []string{"ruff.toml", ".ruff.toml"}, Required: true, Commands: [][]string{{"ruff", "server"}}, Install: "uv tool install ruff", Extra: true,
			Untrusted: &Restraint{Why: "It reads Python and runs none; its rules are its own."}},
		clangd(),
		{ID: "rust-analyzer", Extensions: []string{".rs"}, Workspace: []string{"Cargo.lock"}, Markers: []string{"Cargo.toml", "rust-project.json"}, Commands: [][]string{{"rust-analyzer"}}, Install: "rustup component add rust-analyzer", Quirks: Quirks{Index: "indexing"},
			Untrusted: &Restraint{Why: "It runs no build scripts, no procedural macros and no cargo check, and not at all where the project configures cargo, rustup or rust-analyzer, which can name programs.",
				NotWith:  []string{".cargo", "rust-toolchain", "rust-toolchain.toml", "rust-analyzer.toml", ".rust-analyzer.toml", "rust-project.json"},
				Init:     `{"cargo":{"buildScripts":{"enable":false}},"procMacro":{"enable":false},"checkOnSave":false}`,
				Settings: `{"rust-analyzer":{"cargo":{"buildScripts":{"enable":false}},"procMacro":{"enable":false},"checkOnSave":false}}`}},
		{ID: "bash", Extensions: []string{".sh", ".bash", ".ksh"}, Filenames: []string{".bashrc", ".bash_profile", ".profile"}, Commands: [][]string{{"bash-language-server", "start"}},
			Settings: `{"bashIde":{"backgroundAnalysisMaxFiles":100,"enableSourceErrorDiagnostics":true}}`,
			Install:  npm("bash-language-server") + " (and shellcheck)", Quirks: Quirks{Encoding: UTF32},
			Untrusted: &Restraint{Why: "It parses, and has the installed shellcheck read the scripts."}},
		{ID: "json", Extensions: []string{".json", ".jsonc"}, Commands: [][]string{{"vscode-json-language-server", "--stdio"}},
			Init: `{"provideFormatter":true,"handledSchemaProtocols":["file"]}`, Settings: `{"json":{"validate":{"enable":true},"format":{"enable":true}}}`, Install: npm("vscode-langservers-extracted"),
			Untrusted: &Restraint{Why: "It parses and validates."}},
		{ID: "css", Extensions: []string{".css", ".scss", ".less"}, Commands: [][]string{{"vscode-css-language-server", "--stdio"}},
			Init: `{"provideFormatter":true}`, Settings: `{"css":{"validate":true},"scss":{"validate":true},"less":{"validate":true}}`, Install: npm("vscode-langservers-extracted"),
			Untrusted: &Restraint{Why: "It parses and validates."}},
		{ID: "html", Extensions: []string{".html", ".htm"}, Commands: [][]string{{"vscode-html-language-server", "--stdio"}},
			Init: `{"provideFormatter":true,"embeddedLanguages":{"css":true,"javascript":true}}`, Settings: `{"html":{"validate":{"scripts":true,"styles":true}},"css":{"validate":true,"lint":{}},"javascript":{},"js/ts":{"implicitProjectConfig":{"checkJs":false,"strictNullChecks":true,"experimentalDecorators":false}}}`, Install: npm("vscode-langservers-extracted"),
			Untrusted: &Restraint{Why: "It parses and validates."}},
		{ID: "yaml", Extensions: []string{".yaml", ".yml"}, Commands: [][]string{{"yaml-language-server", "--stdio"}},
			Settings: `{"yaml":{"validate":true,"schemaStore":{"enable":false},"format":{"enable":true}},"redhat":{"telemetry":{"enabled":false}}}`, Install: npm("yaml-language-server"),
			Untrusted: &Restraint{Why: "It parses and validates."}},
		eslint(),
		{ID: "biome", Extensions: append(slices.Clone(jsExt), ".json", ".jsonc", ".css", ".graphql"), Markers: []string{"biome.json", "biome.jsonc"}, Required: true, Extra: true,
			Commands: [][]string{{"biome", "lsp-proxy"}}, Install: npm("@biomejs/biome")},
		{ID: "oxlint", Extensions: jsExt, Markers: []string{".oxlintrc.json"}, Required: true, Extra: true, Commands: [][]string{{"oxlint", "--lsp"}, {"oxc_language_server"}}, Install: npm("oxlint")},
		vue(),
		{ID: "svelte", Extensions: []string{".svelte"}, Workspace: jsLocks, Markers: jsRoots, Commands: [][]string{{"svelteserver", "--stdio"}}, Install: npm("svelte-language-server"),
			Untrusted: &Restraint{Why: "Its own setting isTrusted is off: svelte.config.js and the packages of the project are not loaded.", Init: `{"isTrusted":false}`}},
		{ID: "astro", Extensions: []string{".astro"}, Workspace: jsLocks, Markers: jsRoots, Commands: [][]string{{"astro-ls", "--stdio"}}, Install: npm("@astrojs/language-server typescript@5"), hooks: hooks{options: withTSDK}},
		{ID: "zls", Extensions: []string{".zig", ".zon"}, Markers: []string{"build.zig"}, Commands: [][]string{{"zls"}}, Install: "https://zigtools.org/zls/install"},
		{ID: "jdtls", Extensions: []string{".java"}, Markers: []string{"pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", ".project"}, Commands: [][]string{{"jdtls"}}, Install: "https://github.com/eclipse-jdtls/eclipse.jdt.ls"},
		{ID: "kotlin-ls", Extensions: []string{".kt", ".kts"}, Markers: []string{"settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle", "pom.xml"}, Commands: [][]string{{"kotlin-lsp", "--stdio"}, {"kotlin-language-server"}}, Install: "https://github.com/Kotlin/kotlin-lsp", Quirks: Quirks{Index: "indexing"}},
		{ID: "csharp", Extensions: []string{".cs", ".csx"}, Markers: []string{"*.sln", "*.slnx", "*.csproj"}, Commands: [][]string{{"csharp-ls"}, {"OmniSharp", "-lsp"}}, Install: "dotnet tool install -g csharp-ls"},
		{ID: "fsharp", Extensions: []string{".fs", ".fsi", ".fsx"}, Markers: []string{"*.sln", "*.fsproj"}, Commands: [][]string{{"fsautocomplete"}}, Init: `{"AutomaticWorkspaceInit":true}`, Install: "dotnet tool install -g fsautocomplete"},
		{ID: "sourcekit", Extensions: []string{".swift"}, Markers: []string{"Package.swift", "*.xcodeproj", "*.xcworkspace"}, Commands: [][]string{{"sourcekit-lsp"}}, Install: "https://www.swift.org/install"},
		{ID: "lua-ls", Extensions: []string{".lua"}, Markers: []string{".luarc.json", ".luarc.jsonc", ".luacheckrc", ".stylua.toml", "stylua.toml"}, Commands: [][]string{{"lua-language-server"}},
			Settings: `{"Lua":{"telemetry":{"enable":false}}}`, Install: "https://luals.github.io/#install", Quirks: Quirks{Index: "loading workspace"}},
		{ID: "php", Extensions: []string{".php"}, Markers: []string{"composer.json", "composer.lock"}, Commands: [][]string{{"intelephense", "--stdio"}, {"phpactor", "language-server"}}, Install: npm("intelephense"), Quirks: Quirks{Index: "indexing"}, hooks: hooks{handle: intelephenseIndexes},
			Untrusted: &Restraint{Why: "It parses.", Programs: []string{"intelephense"}}},
		{ID: "ruby-lsp", Extensions: []string{".rb", ".rake", ".gemspec", ".ru"}, Filenames: []string{"Gemfile", "Rakefile"}, Markers: []string{"Gemfile"}, Commands: [][]string{{"ruby-lsp"}, {"solargraph", "stdio"}}, Install: "gem install ruby-lsp", Quirks: Quirks{Index: "ruby lsp: indexing"}},
		{ID: "elixir-ls", Extensions: []string{".ex", ".exs"}, Markers: []string{"mix.exs"}, Commands: [][]string{{"elixir-ls"}, {"expert", "--stdio"}}, Install: "https://github.com/elixir-lsp/elixir-ls"},
		{ID: "dart", Extensions: []string{".dart"}, Markers: []string{"pubspec.yaml"}, Commands: [][]string{{"dart", "language-server", "--lsp"}}, Install: "https://dart.dev/get-dart"},
		{ID: "ocaml-lsp", Extensions: []string{".ml", ".mli"}, Markers: []string{"dune-project", "dune-workspace", "*.opam"}, Commands: [][]string{{"ocamllsp"}}, Install: "opam install ocaml-lsp-server"},
		{ID: "terraform", Extensions: []string{".tf", ".tfvars"}, Markers: []string{".terraform.lock.hcl", ".terraform", "*.tf"}, Commands: [][]string{{"terraform-ls", "serve"}}, Install: "go install github.com/hashicorp/terraform-ls@latest"},
		{ID: "texlab", Extensions: []string{".tex", ".bib"}, Markers: []string{".latexmkrc", "latexmkrc", ".texlabroot"}, Commands: [][]string{{"texlab"}}, Install: "cargo install --locked texlab"},
		{ID: "dockerfile", Extensions: []string{".dockerfile"}, Filenames: []string{"Dockerfile", "Containerfile", "Dockerfile.*", "Containerfile.*"}, Commands: [][]string{{"docker-langserver", "--stdio"}}, Install: npm("dockerfile-language-server-nodejs"),
			Untrusted: &Restraint{Why: "It parses."}},
		{ID: "gleam", Extensions: []string{".gleam"}, Markers: []string{"gleam.toml"}, Commands: [][]string{{"gleam", "lsp"}}, Install: "https://gleam.run/getting-started/installing"},
		{ID: "clojure-lsp", Extensions: []string{".clj", ".cljs", ".cljc", ".edn"}, Markers: []string{"deps.edn", "project.clj", "shadow-cljs.edn", "bb.edn", "build.boot"}, Commands: [][]string{{"clojure-lsp"}}, Install: "https://clojure-lsp.io/installation"},
		{ID: "nixd", Extensions: []string{".nix"}, Markers: []string{"flake.nix"}, Commands: [][]string{{"nixd"}, {"nil"}}, Install: "nix profile install nixpkgs#nixd"},
		{ID: "tinymist", Extensions: []string{".typ", ".typc"}, Markers: []string{"typst.toml"}, Commands: [][]string{{"tinymist", "lsp"}}, Install: "cargo install --locked tinymist-cli"},
		{ID: "haskell", Extensions: []string{".hs", ".lhs"}, Markers: []string{"hie.yaml", "stack.yaml", "cabal.project", "*.cabal", "package.yaml"}, Commands: [][]string{{"haskell-language-server-wrapper", "--lsp"}}, Install: "ghcup install hls"},
		{ID: "prisma", Extensions: []string{".prisma"}, Markers: []string{"schema.prisma", "package.json"}, Commands: [][]string{{"prisma-language-server", "--stdio"}}, Settings: `{"prisma":{"enableDiagnostics":true}}`, Install: npm("@prisma/language-server")},
		{ID: "julials", Extensions: []string{".jl"}, Markers: []string{"Project.toml", "JuliaProject.toml"},
			Commands: [][]string{{"julia", "--startup-file=no", "--history-file=no", "-e", "using LanguageServer; runserver()"}}, Install: `julia -e 'using Pkg; Pkg.add("LanguageServer")'`},
		{ID: "taplo", Extensions: []string{".toml"}, Commands: [][]string{{"taplo", "lsp", "stdio"}}, Install: "cargo install --locked taplo-cli --features lsp", // npm's @taplo/cli is built without the language server
			Untrusted: &Restraint{Why: "It parses and validates."}},
		{ID: "cmake", Extensions: []string{".cmake"}, Filenames: []string{"CMakeLists.txt"}, Commands: [][]string{{"neocmakelsp", "stdio"}, {"cmake-language-server"}}, Install: "cargo install neocmakelsp"},
	}
}

// npm returns the command by which a person installs an npm package.
func npm(pkg string) string { return "npm i -g " + pkg }

// configured applies the person's overrides to the table. Changed rows keep their place. Added rows come first and are used in addition to
// the table's rows, as in OpenCode: a server for CSS class names in .tsx files must not replace TypeScript's.
func configured(over map[string]ServerConfig) []Server {
	rows := Servers()
	known := map[string]bool{}
	kept := rows[:0]
	for _, r := range rows {
		known[r.ID] = true
		c, ok := over[r.ID]
		if ok && c.Disabled {
			continue
		}
		if ok {
			r = c.apply(r)
		}
		kept = append(kept, r)
	}
	var added []Server
	for id, c := range over {
		if !known[id] && !c.Disabled && len(c.Command) > 0 {
			added = append(added, c.apply(Server{ID: id, Added: true, Install: "see lsp." + id + ".command in the configuration"}))
		}
	}
	slices.SortFunc(added, func(a, b Server) int { return strings.Compare(a.ID, b.ID) })
	return append(added, kept...)
}

// apply returns the row with these overrides.
func (c ServerConfig) apply(r Server) Server {
	r.reason = c.Reason
	if len(c.Command) > 0 {
		r.Commands = [][]string{c.Command}
	}
	if c.Share && len(r.Shared) > 0 {
		r.Commands = slices.Clone(r.Commands)
		for i, argv := range r.Commands {
			r.Commands[i] = slices.Concat(argv[:1], r.Shared, argv[1:])
		}
	}
	if len(c.Extensions) > 0 {
		r.Extensions = nil
		for _, e := range c.Extensions {
			if !strings.HasPrefix(e, ".") { // "x" means ".x", but "Justfile" is a whole name
				r.Filenames = append(slices.Clip(r.Filenames), e)
				e = "." + e
			}
			r.Extensions = append(r.Extensions, strings.ToLower(e))
		}
	}
	for k, v := range c.Env {
		r.Env = append(r.Env, k+"="+v)
	}
	if len(c.Initialization) > 0 {
		r.Init = mergeJSON(r.Init, c.Initialization)
		r.Settings = withInitialization(r.Settings, c.Initialization)
	}
	if len(c.Settings) > 0 {
		r.Settings = mergeJSON(r.Settings, c.Settings)
	}
	if len(c.Roots) > 0 {
		r.Workspace, r.Markers = nil, c.Roots
	}
	return r
}

// mergeJSON merges over into base, key by key; values that are not objects are replaced. So an override of one key keeps the row's other
// options, on which the bridge relies.
func mergeJSON(base string, over json.RawMessage) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal([]byte(base), &a) != nil || json.Unmarshal(over, &b) != nil || a == nil || b == nil {
		return string(over)
	}
	for k, v := range b {
		if old, ok := a[k]; ok {
			v = json.RawMessage(mergeJSON(string(old), v))
		}
		a[k] = v
	}
	out, _ := json.Marshal(a)
	return string(out)
}

// withInitialization adds the initialization options to the answers to workspace/configuration: OpenCode has one setting for both, and some
// servers read only these answers. A section without a name (eslint) gets the options as a whole.
func withInitialization(settings string, options json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(options, &object) != nil || object == nil {
		return settings
	}
	if settings == "" {
		settings = "{}"
	}
	var whole map[string]json.RawMessage
	if json.Unmarshal([]byte(settings), &whole) == nil && whole[""] != nil {
		options, _ = json.Marshal(map[string]json.RawMessage{"": options})
	}
	return mergeJSON(settings, options)
}

// matches reports whether a row serves a file, by its base name or extension.
func (s Server) matches(path string) bool {
	base := filepath.Base(path)
	if strings.HasSuffix(base, ".dockerignore") { // Dockerfile.dockerignore is not a Dockerfile
		return slices.Contains(s.Extensions, ".dockerignore")
	}
	if slices.ContainsFunc(s.Filenames, func(name string) bool {
		ok, _ := filepath.Match(name, base)
		return ok || name == base
	}) {
		return true
	}
	ext := strings.ToLower(filepath.Ext(base))
	return ext != "" && slices.Contains(s.Extensions, ext)
}

// deletedText returns the text that stands for a deleted file, because LSP cannot express that an open document is gone.
func (s Server) deletedText(old string) string {
	if s.hooks.deletedText != nil {
		return s.hooks.deletedText(old)
	}
	return s.Quirks.EmptyText
}
