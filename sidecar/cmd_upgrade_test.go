package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who installed a program is told by its place and by the package managers' records, without running any of them.
func TestUpgradeKnowsWhoInstalledTheProgram(t *testing.T) {
	for _, c := range []struct{ self, record, module, name, does string }{
		{"/home/a/.vscode/extensions/pillion-dev.pillion-0.1.0-linux-x64/bin/pillion", "", "", "the VS Code extension", "Update"},
		{"/home/a/.vscode-server/extensions/pillion-dev.pillion-0.1.0/bin/pillion", "", "", "the VS Code extension", "Update"},
		{"/usr/local/lib/node_modules/pillion/node_modules/@pillion-dev/linux-x64/bin/pillion", "", "", "npm, for all projects", "npm install --global pillion@latest"},
		{"/home/a/.nvm/versions/node/v22.1.0/lib/node_modules/@pillion-dev/linux-x64/bin/pillion", "", "", "npm, for all projects", "npm install --global"},
		{"/home/a/.npm/_npx/1a2b/node_modules/@pillion-dev/linux-x64/bin/pillion", "", "", "npx", "npx pillion@latest"},
		{"/home/a/src/web/node_modules/@pillion-dev/linux-arm64/bin/pillion", "", "", "npm, in a project", "npm install pillion@latest"},
		{"/home/linuxbrew/.linuxbrew/Cellar/pillion/0.1.0/bin/pillion", "", "", "Homebrew", "brew upgrade"},
		{"/home/a/.local/share/pillion/0.1.0/pillion", "", "", "install.sh", "install.sh | sh"},
		{"/usr/bin/pillion", "var/lib/dpkg/info/pillion.list", "", "the Debian package", "sudo apt-get"},
		{"/usr/bin/pillion", "var/lib/pacman/local/pillion-bin-0.1.0-1/desc", "", "the Arch package", "sudo pacman"},
		{"/usr/bin/pillion", "usr/lib/sysimage/rpm/rpmdb.sqlite", "", "the RPM package", "sudo dnf"},
		// Another one's record is none of Pillion: a copy in /usr/local beside an installed package.
		{"/usr/local/bin/pillion", "var/lib/dpkg/info/pillion.list", "", "hand", "git pull"},
		{"/home/a/go/bin/sidecar", "", "v0.1.0", "go install", "go install"},
		{"/home/a/pillion/bin/pillion", "", "", "hand", "make build"},
	} {
		root := t.TempDir()
		if c.record != "" {
			at := filepath.Join(root, c.record)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		i := installerOf(root, c.self, c.module)
		if does := strings.Join(i.Command, " ") + i.Advice; i.Name != c.name || !strings.Contains(does, c.does) {
			t.Errorf("%s: %s: %q", c.self, i.Name, does)
		}
		if i.Root != strings.HasPrefix(strings.Join(i.Command, " "), "sudo") {
			t.Errorf("%s: %v may be run", c.self, i.Command)
		}
	}
}
