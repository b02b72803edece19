package permission

import (
	"slices"
	"testing"
)

func TestProtected(t *testing.T) {
	for path, want := range map[string]bool{
		"/p/.git/hooks/pre-commit":      true,
		"/p/.git/config":                true,
		"/p/.git":                       true,
		"/p/sub/.GIT/config":            true,
		"/p/.gitignore":                 false,
		"/p/my.git/config":              false,
		"/p/.vscode/settings.json":      true,
		"/p/.vscode/tasks.json":         true,
		"/p/.vscode/launch.json":        true,
		"/p/.vscode/notes.json":         false,
		"/p/pillion.jsonc":              true,
		"/p/.pillion/rules":             true,
		"/p/opencode.json":              true,
		"/p/.opencode/agent/a.md":       true,
		"/p/.envrc":                     true,
		"/p/.env":                       false,
		"/p/x.code-workspace":           true,
		"/p/node_modules/.bin/tsc":      true,
		"/p/node_modules/a/index.js":    false,
		"/p/prettier.config.mjs":        true,
		"/p/prettier.config.cts":        true,
		"/p/.prettierrc.json":           false,
		"/p/.npmrc":                     true,
		"/p/.cargo/config.toml":         true,
		"/p/Cargo.toml":                 false,
		"/h/u/.bashrc":                  true,
		"/h/u/.ssh/authorized_keys":     true,
		"/h/u/.config/fish/config.fish": true,
		"/h/u/.local/bin/ls":            true,
		"/h/u/notes/bin/x":              false,
		"/h/u/.config/nvim/init.lua":    true,
		"/etc/profile":                  true,
		"/h/u/.config/nvim":             true,
		"/p/src/main.go":                false,
		"/p/.cursor/mcp.json":           true,
		"/p/.Codex/config.toml":         true,
		"/p/sub/.gemini/settings.json":  true,
		"/p/.gitattributes":             true,
		"/p/.mvn/jvm.config":            true,
		"/p/rust-toolchain.toml":        true,
		"/p/.pre-commit-config.yaml":    true,
		"/p/cursor/mcp.json":            false,
		"/p/.kiro/hooks/x.kiro.hook":    true,
		"/p/.devcontainer.json":         true,
		"/p/.helix/languages.toml":      true,
		"/p/sub/.hg/hgrc":               true,
		"/p/.RPROFILE":                  true,
		"/p/.gdbinit":                   true,
		"/p/lefthook-local.yml":         true,
		"/p/.luarc.json":                true,
		"/p/.editorconfig":              false,
		"/p/.github/workflows/ci.yml":   false,
		"/h/u/.config/starship.toml":    true, // a command in every prompt
		"/h/u/.config/direnv/direnvrc":  true,
		"/h/u/.wezterm.lua":             true,
		"/h/u/.cargo/env":               true,
		"/h/u/.unheard-of/init":         true,
		"/h/u/.cache/x/y":               false,
		"/h/u/.npm/_cacache/x":          false,
		"/h/u/.m2/repository/a.jar":     false,
		"/h/u/project/.unheard-of/init": false,
	} {
		if _, got := Protected(path, "/h/u", "/p"); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if _, ok := Protected("/h/u/.config/nvim/init.lua", "/h/u", "/h/u/.config/nvim"); ok {
		t.Error("a worktree of dot files asks for each of its files")
	}
	if _, ok := Protected("/h/u/.config/nvim/.git/config", "/h/u", "/h/u/.config/nvim"); !ok {
		t.Error("git's folder in it is not protected")
	}
}

// Links with these names are looked for; those of a repository and of installed packages are many and have rules of their own.
func TestProtectedPaths(t *testing.T) {
	paths := ProtectedPaths()
	for name, want := range map[string]bool{
		".git": false, "node_modules/.bin": false, ".ssh": true, "pillion.jsonc": true, ".cursorignore": true, ".vscode/tasks.json": true, ".emacs": true,
	} {
		if slices.Contains(paths, name) != want {
			t.Errorf("%s: %t, want %t", name, !want, want)
		}
	}
}
