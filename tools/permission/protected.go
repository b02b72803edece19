package permission

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Protected reports whether writing to a path could make another program run something, or loosen these rules: such writes are asked
// about even where a rule allows them. realPath is absolute with its symbolic links resolved; home and root (the worktree) are
// absolute, and may be empty. The reason is for the person. Letter case is ignored, because some file systems ignore it: .BASHRC
// would otherwise be a way around.
func Protected(realPath, home, root string) (reason string, ok bool) {
	p := lowerPath(realPath)
	base := p[strings.LastIndexByte(p, '/')+1:]
	for _, d := range protectedDirs {
		if strings.Contains(p+"/", "/"+d.name+"/") {
			return d.reason, true
		}
	}
	if reason, ok := protectedNames[base]; ok {
		return reason, true
	}
	for _, f := range protectedTails {
		if strings.HasSuffix(p, "/"+f.name) {
			return f.reason, true
		}
	}
	if strings.HasSuffix(base, ".code-workspace") {
		return "the editor runs tasks and settings from it", true
	}
	for _, pre := range [...]string{".prettierrc.", "prettier.config.", ".eslintrc.", "eslint.config."} {
		if ext, ok := strings.CutPrefix(base, pre); ok && (strings.HasSuffix(ext, "js") || strings.HasSuffix(ext, "ts")) {
			return "formatters and linters run it as a program", true
		}
	}
	// /private/etc is what /etc resolves to on macOS.
	if strings.HasPrefix(p, "/etc/") || p == "/etc" || strings.HasPrefix(p, "/private/etc/") {
		return "it configures the whole system", true
	}
	if home == "" {
		return "", false
	}
	rel, inside := strings.CutPrefix(p, lowerPath(home)+"/")
	if !inside {
		return "", false
	}
	if reason, ok := protectedHome[rel]; ok {
		return reason, true
	}
	// A worktree below one of these folders (a checkout in ~/.config/nvim) is a project like any other: every edit there
	// would ask otherwise. The tables above apply in it as everywhere.
	if root != "" && root != home {
		if r := lowerPath(root); p == r || strings.HasPrefix(p, r+"/") {
			return "", false
		}
	}
	for _, d := range protectedHomeDirs {
		if strings.HasPrefix(rel+"/", d.name+"/") {
			return d.reason, true
		}
	}
	// Every other hidden file and folder of the home folder is some program's configuration, and which of them run what they
	// find there changes with each program that is installed.
	if strings.HasPrefix(rel, ".") && !slices.ContainsFunc(homeCaches[:], func(dir string) bool { return rel == dir || strings.HasPrefix(rel, dir+"/") }) {
		return "programs of this account take settings from it", true
	}
	return "", false
}

// ProtectedPaths are the protected files and folders whose names are fixed, relative to a home folder or the top of a
// project, with slashes. It is for finding links with these names: what they lead to has another name.
func ProtectedPaths() []string { return protectedPaths() }

var protectedPaths = sync.OnceValue(func() []string {
	paths := slices.Collect(maps.Keys(protectedNames))
	paths = slices.AppendSeq(paths, maps.Keys(protectedHome))
	for _, f := range protectedTails {
		paths = append(paths, f.name)
	}
	for _, d := range protectedDirs {
		// A repository has rules of its own, and node_modules/.bin is nothing but links.
		if d.name != ".git" && d.name != "node_modules/.bin" {
			paths = append(paths, d.name)
		}
	}
	return paths
})

// lowerPath is a path as the tables below have it: cleaned, slashes, lower case.
func lowerPath(p string) string {
	return strings.ToLower(strings.TrimSuffix(filepath.ToSlash(filepath.Clean(p)), "/"))
}

// named is a protected place: its path in lower case with slashes, and the reason for the person.
type named struct{ name, reason string }

const (
	runsGit      = "git runs programs named in it"
	runsEditor   = "the editor runs tasks and settings from it"
	runsShell    = "every new shell runs it"
	runsLogin    = "it is run at login"
	runsPM       = "package managers take registries, credentials and scripts from it"
	ownRules     = "it holds the agent's own rules"
	runsAgent    = "other agents take servers, commands and rules from it"
	runsBuild    = "build tools run programs named in it, also to say their version"
	runsREPL     = "an interpreter that is started in the folder runs it"
	runsDebugger = "a debugger that is started in the folder runs it"
	access       = "it decides who gets access to this account"
)

// protectedDirs are folders that are protected wherever they are, with all below; names in lower case.
var protectedDirs = [...]named{
	{".git", runsGit}, {".husky", runsGit}, {".githooks", runsGit},
	{".pillion", ownRules}, {".opencode", ownRules}, {".config/pillion", ownRules}, {".config/opencode", ownRules},
	{".idea", runsEditor}, {".devcontainer", runsEditor},
	{".devcontainer.json", runsEditor}, {".vs", runsEditor}, {".fleet", runsEditor}, {".helix", runsEditor}, {".theia", runsEditor}, {".nvim", runsEditor},
	{".hg", "Mercurial runs programs named in it"}, {".jj", "Jujutsu runs programs named in it"}, {".git-hooks", runsGit}, {".lefthook", runsGit}, {".lefthook-local", runsGit},
	{".mise", "mise runs programs named in it"}, {".config/mise", "mise runs programs named in it"},
	{".kiro", runsAgent}, {".amazonq", runsAgent}, {".roo", runsAgent}, {".kilocode", runsAgent}, {".trae", runsAgent}, {".junie", runsAgent}, {".qwen", runsAgent}, {".crush", runsAgent}, {".factory", runsAgent}, {".goose", runsAgent},
	{".cursor", runsAgent}, {".codex", runsAgent}, {".gemini", runsAgent}, {".windsurf", runsAgent}, {".continue", runsAgent}, {".claude/hooks", runsAgent},
	{".mvn", runsBuild}, {".yarn/releases", runsBuild}, {".yarn/plugins", runsBuild},
	{"node_modules/.bin", "tools run the programs in it"},
	{".ssh", access},
}

// protectedNames are files that are protected wherever they are, by base name in lower case.
var protectedNames = map[string]string{
	"pillion.json": ownRules, "pillion.jsonc": ownRules, "opencode.json": ownRules, "opencode.jsonc": ownRules, ".mcp.json": ownRules,
	".cursorignore": ownRules, ".aiexclude": ownRules, ".geminiignore": ownRules, ".clineignore": ownRules, ".rooignore": ownRules,
	".envrc": "direnv runs it when a shell enters the folder", ".mise.local.toml": "mise runs programs named in it", "mise.local.toml": "mise runs programs named in it", ".rvmrc": "rvm runs it when a shell enters the folder", ".autoenv.zsh": "a shell that enters the folder runs it",
	"lefthook.yaml": runsGit, "lefthook.toml": runsGit, "lefthook.json": runsGit, "lefthook-local.yml": runsGit, "lefthook-local.yaml": runsGit, ".lefthook.yaml": runsGit, ".lefthook-local.yml": runsGit, ".overcommit.yml": runsGit, ".simple-git-hooks.json": runsGit, "simple-git-hooks.json": runsGit, ".pre-commit-config.yml": runsGit, "prek.toml": runsGit, ".hgrc": "Mercurial runs programs named in it",
	".gdbinit": runsDebugger, ".lldbinit": runsDebugger, ".pdbrc": runsDebugger, ".pdbrc.py": runsDebugger,
	".rprofile": runsREPL, ".renviron": runsREPL, ".ghci": runsREPL, ".iex.exs": runsREPL, ".irbrc": runsREPL, ".pryrc": runsREPL, ".ocamlinit": runsREPL, ".octaverc": runsREPL, ".pythonrc": runsREPL, ".pythonstartup": runsREPL,
	".luarc.json": "the Lua language server loads plugins named in it", ".luarc.jsonc": "the Lua language server loads plugins named in it",
	".lvimrc": runsEditor, ".local.vimrc": runsEditor, ".vimrc.local": runsEditor, ".lazy.lua": runsEditor, ".nvim-dap.lua": runsEditor, ".dir-locals-2.el": runsEditor,
	".mise.toml": "mise runs programs named in it", "mise.toml": "mise runs programs named in it",
	".gitconfig": runsGit, ".gitmodules": runsGit, ".gitattributes": runsGit, ".pre-commit-config.yaml": runsGit, "lefthook.yml": runsGit, ".lefthook.yml": runsGit, "rust-toolchain": runsBuild, "rust-toolchain.toml": runsBuild,
	".aider.conf.yml": runsAgent, ".exrc": runsEditor, ".nvimrc": runsEditor, ".nvim.lua": runsEditor, ".vimrc": runsEditor, ".dir-locals.el": runsEditor,
	".npmrc": runsPM, ".yarnrc": runsPM, ".yarnrc.yml": runsPM, ".pnpmfile.cjs": runsPM, "pip.conf": runsPM, ".pypirc": runsPM, ".gemrc": runsPM, ".condarc": runsPM, ".netrc": access,
	"authorized_keys": access, "sudoers": access,
	".bashrc": runsShell, ".bash_profile": runsShell, ".bash_login": runsShell, ".bash_logout": runsShell, ".bash_aliases": runsShell, ".profile": runsShell,
	".zshrc": runsShell, ".zshenv": runsShell, ".zprofile": runsShell, ".zlogin": runsShell, ".zlogout": runsShell, ".kshrc": runsShell, ".cshrc": runsShell, ".tcshrc": runsShell, ".login": runsShell,
	".inputrc": runsShell, ".xprofile": runsLogin, ".xinitrc": runsLogin, ".xsession": runsLogin, ".xsessionrc": runsLogin, "crontab": runsLogin,
}

// protectedTails are files that are protected wherever they are, by the end of their path: their base names are common.
var protectedTails = [...]named{
	{".vscode/settings.json", runsEditor}, {".vscode/tasks.json", runsEditor}, {".vscode/launch.json", runsEditor}, {".vscode/mcp.json", runsEditor}, {".vscode/extensions.json", runsEditor},
	{".zed/settings.json", runsEditor}, {".zed/tasks.json", runsEditor}, {".zed/debug.json", runsEditor}, {".claude/settings.json", ownRules}, {".claude/settings.local.json", ownRules},
	{".cargo/config", runsPM}, {".cargo/config.toml", runsPM}, {".bundle/config", runsPM}, {".m2/settings.xml", runsPM}, {".gradle/init.gradle", runsPM}, {".docker/config.json", access},
}

// protectedHome are files that are protected in the home folder only, by path relative to it.
var protectedHome = map[string]string{
	".gradle/gradle.properties": runsPM, ".emacs": runsEditor, ".tmux.conf": runsShell, ".screenrc": runsShell, ".wgetrc": "downloads take options from it", ".curlrc": "downloads take options from it",
}

// protectedHomeDirs are folders that are protected in the home folder only, by path relative to it.
var protectedHomeDirs = [...]named{
	{".config/git", runsGit}, {".config/fish", runsShell}, {".config/nushell", runsShell}, {".config/powershell", runsShell}, {".bashrc.d", runsShell}, {".oh-my-zsh", runsShell},
	{".config/autostart", runsLogin}, {".config/systemd", runsLogin}, {".config/environment.d", runsLogin}, {"library/launchagents", runsLogin},
	{".config/nvim", runsEditor}, {".vim", runsEditor}, {".emacs.d", runsEditor}, {".config/emacs", runsEditor}, {".config/code/user", runsEditor}, {"library/application support/code/user", runsEditor},
	{".config/pip", runsPM}, {".pip", runsPM}, {".gnupg", access}, {".aws", access}, {".kube", access}, {".azure", access}, {".config/gcloud", access},
	{".cargo/bin", "the shell finds programs in it"}, {".local/bin", "the shell finds programs in it"}, {"bin", "the shell finds programs in it"}, {".local/share/pillion", ownRules}, {".local/state/pillion", ownRules},
}

// homeCaches are hidden folders of the home folder without settings: downloads and build results, which programs can make again, and
// the trash.
var homeCaches = [...]string{
	".cache", ".npm", ".pnpm-store", ".bun/install/cache", ".m2/repository", ".gradle/caches", ".ivy2/cache", ".cargo/registry", ".cargo/git", ".nuget/packages", ".ccache", ".local/share/trash", ".trash",
}
