package sandbox

import (
	"fmt"
	"strings"
)

// Profile is the Box as a profile for sandbox-exec of macOS. Everything may be read. The last matching rule wins, so the rules for
// protected paths must come after those for writable places.
func (b *Box) Profile() string {
	var s strings.Builder
	s.WriteString("(version 1)\n(allow default)\n(deny file-write*)\n")
	allow := func(what string, paths ...string) {
		if len(paths) == 0 {
			return
		}
		s.WriteString("(" + what)
		for _, p := range paths {
			s.WriteString("\n  " + p)
		}
		s.WriteString(")\n")
	}
	var writable []string
	for _, w := range b.Writable {
		writable = append(writable, "(subpath "+profileString(w)+")")
	}
	// Devices that ordinary programs open for writing; /dev/fd are the command's own open files.
	writable = append(writable, `(literal "/dev/null")`, `(literal "/dev/zero")`, `(literal "/dev/tty")`, `(literal "/dev/dtracehelper")`, `(regex #"^/dev/fd/")`)
	allow("allow file-write*", writable...)
	var closed []string
	for _, r := range b.ReadOnly {
		closed = append(closed, "(subpath "+profileString(r)+")")
	}
	for _, n := range b.New {
		closed = append(closed, "(subpath "+profileString(n)+")")
	}
	allow("deny file-write*", closed...)
	var pinned []string
	for _, p := range b.Pinned {
		pinned = append(pinned, "(literal "+profileString(p)+")")
	}
	// Denying unlink on the folder itself also denies renaming it.
	allow("deny file-write-unlink", pinned...)
	// Deny all ways to affect other programs: signals, information about processes, Apple events, jobs of launchd.
	s.WriteString("(deny signal (target others))\n(deny process-info-pidinfo (target others))\n(deny appleevent-send)\n(deny job-creation)\n")
	// Loopback stays open for tests, and so do Unix sockets in the writable places.
	if !b.Network {
		s.WriteString("(deny network*)\n(allow network* (local ip \"localhost:*\"))\n(allow network* (remote ip \"localhost:*\"))\n")
		for _, w := range b.Writable {
			fmt.Fprintf(&s, "(allow network* (subpath %s))\n", profileString(w))
		}
	}
	return s.String()
}

// profileString is a path as a string literal of a profile.
func profileString(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + `"`
}

// protectedNew are names of files that editors, shells and other tools use as soon as they exist. On macOS the profile forbids
// creating them (Box.New); on Linux Settle finds new protected files after the command.
var protectedNew = []string{
	".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".mise.toml", "mise.toml", ".nvimrc", ".nvim.lua", ".exrc", ".vimrc", ".dir-locals.el", "pip.conf", ".mcp.json",
	".vscode/settings.json", ".vscode/tasks.json", ".vscode/launch.json", ".vscode/mcp.json", ".vscode/extensions.json", ".zed/settings.json", ".zed/tasks.json", ".idea", ".devcontainer",
	".husky", ".githooks", ".cargo/config", ".cargo/config.toml", ".claude/settings.json", ".claude/settings.local.json",
	".pillion", ".opencode", "pillion.json", "pillion.jsonc", "opencode.json", "opencode.jsonc",
}
