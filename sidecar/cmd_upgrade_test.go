package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Who installed a program is told by its place and by the package managers' records, without running any of them.
func TestUpgradeKnowsWhoInstalledTheProgram(t *testing.T) {
	for _, c := range []struct{ self, records, module, name, does string }{
		{"/home/a/.vscode/extensions/pillion-dev.pillion-0.1.0-linux-x64/bin/pillion", "", "", "the VS Code extension", "Update"},
		{"/home/a/.vscode-server/extensions/pillion-dev.pillion-0.1.0/bin/pillion", "", "", "the VS Code extension", "Update"},
		{"/usr/local/lib/node_modules/pillion/node_modules/@pillion-dev/linux-x64/bin/pillion", "", "", "npm, for all projects", "npm install --global --prefix /usr/local pillion@latest"},
		{"/home/a/.nvm/versions/node/v22.1.0/lib/node_modules/@pillion-dev/linux-x64/bin/pillion", "", "", "npm, for all projects", "--prefix /home/a/.nvm/versions/node/v22.1.0 pillion@latest"},
		{"/home/a/my tools/lib/node_modules/@pillion-dev/linux-x64/bin/pillion", "", "", "npm, for all projects", "--prefix '/home/a/my tools' pillion@latest"},
		{"/home/a/.npm/_npx/1a2b/node_modules/@pillion-dev/linux-x64/bin/pillion", "home/a/.npm/_npx/1a2b/package.json", "", "npx", "npx pillion@latest"},
		{"/home/a/src/web/node_modules/@pillion-dev/linux-arm64/bin/pillion", "home/a/src/web/package.json", "", "npm, in a project", "In /home/a/src/web: npm install pillion@latest"},
		// A project may be named like a part of npm's prefix, and may belong to another package manager.
		{"/src/lib/node_modules/@pillion-dev/linux-x64/bin/pillion", "src/lib/package.json", "", "npm, in a project", "In /src/lib: npm install"},
		{"/src/lib/node_modules/.pnpm/@pillion-dev+linux-x64@0.1.0/node_modules/@pillion-dev/linux-x64/bin/pillion", "src/lib/package.json src/lib/pnpm-lock.yaml", "", "npm, in a project", "In /src/lib: pnpm add"},
		{"/src/w/node_modules/@pillion-dev/linux-x64/bin/pillion", "src/w/package.json src/w/yarn.lock", "", "npm, in a project", "In /src/w: yarn add"},
		{"/src/w/node_modules/@pillion-dev/linux-x64/bin/pillion", "src/w/package.json src/w/bun.lock", "", "npm, in a project", "In /src/w: bun add"},
		{"/home/a/.local/share/pnpm/global/5/.pnpm/@pillion-dev+linux-x64@0.1.0/node_modules/@pillion-dev/linux-x64/bin/pillion", "home/a/.local/share/pnpm/global/5/package.json", "", "pnpm, for all projects", "pnpm add --global"},
		{"/home/a/.config/yarn/global/node_modules/@pillion-dev/linux-x64/bin/pillion", "home/a/.config/yarn/global/package.json", "", "yarn, for all projects", "yarn global add"},
		{"/home/a/.bun/install/global/node_modules/@pillion-dev/linux-x64/bin/pillion", "home/a/.bun/install/global/package.json", "", "Bun, for all projects", "bun add --global"},
		{"/home/linuxbrew/.linuxbrew/Cellar/pillion/0.1.0/bin/pillion", "", "", "Homebrew", "brew upgrade"},
		{"/home/a/.local/share/nvim/mason/packages/pillion/node_modules/@pillion-dev/linux-x64/bin/pillion", "", "", "mason.nvim", ":MasonInstall"},
		{"C:/Users/a/scoop/apps/pillion/0.1.0/pillion.exe", "", "", "Scoop", "scoop update"},
		{"C:/Users/a/AppData/Local/Microsoft/WinGet/Packages/pillion-dev.Pillion_Microsoft.Winget.Source_8wekyb3d8bbwe/pillion.exe", "", "", "winget", "winget upgrade --id pillion-dev.Pillion"},
		{"/nix/store/3q-pillion-0.1.0/bin/pillion", "", "", "Nix", "profile"},
		{"/home/a/.local/share/pillion/0.1.0/pillion", "home/a/.local/share/pillion/0.1.0/install.env", "", "install.sh", installScript},
		// A checkout below a folder that is called as install.sh's.
		{"/home/a/share/pillion/bin/pillion", "home/a/share/pillion/sidecar/main.go", "", "make build in /home/a/share/pillion", "git -C /home/a/share/pillion pull && make -C /home/a/share/pillion build"},
		// No package source has a package that was downloaded, so apt-get would report the old one as the newest.
		{"/usr/bin/pillion", "var/lib/dpkg/info/pillion.list", "", "the Debian package", "sudo apt-get install ./pillion_VERSION_"},
		{"/usr/bin/pillion", "var/lib/dpkg/info/pillion.list var/lib/apt/lists/apt.example.org_pillion_dists_stable_InRelease", "", "the Debian package", "sudo apt-get install --only-upgrade"},
		{"/usr/bin/pillion", "var/lib/pacman/local/pillion-0.1.0-1/desc", "", "the Arch package", "sudo pacman -U"},
		{"/usr/bin/pillion", "var/lib/pacman/local/pillion-bin-0.1.0-1/desc", "", "the AUR", "yay -S pillion-bin"},
		{"/usr/bin/pillion", "usr/lib/sysimage/rpm/rpmdb.sqlite", "", "the RPM package", "sudo rpm -U"},
		// Another one's record is none of Pillion: a copy in /usr/local beside an installed package.
		{"/usr/local/bin/pillion", "var/lib/dpkg/info/pillion.list", "", "hand", releasePage},
		{"/home/a/go/bin/sidecar", "", "v0.1.0", "go install", "GOBIN=/home/a/go/bin go install"},
		{"/home/a/Downloads/pillion", "", "", "hand", releasePage},
	} {
		root := t.TempDir()
		for record := range strings.FieldsSeq(c.records) {
			put(t, filepath.Join(root, record), "")
		}
		i := installerOf(system{root, mayWrite}, c.self, c.module)
		if does := i.String() + i.Advice; i.Name != c.name || !strings.Contains(does, c.does) {
			t.Errorf("%s: %s: %q", c.self, i.Name, does)
		}
		if i.Root != strings.Contains(i.String()+i.Advice, "sudo") {
			t.Errorf("%s: %v may be run", c.self, i.Command)
		}
	}
}

// npm's folder of the system belongs to root, and so may install.sh's: the command is shown with sudo and not run.
func TestUpgradeShowsSudoForAFolderOfRoot(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "usr/lib/node_modules/x"), "")
	put(t, filepath.Join(root, "opt/pillion/0.1.0/install.env"), "PILLION_BIN=/opt\n")
	user := system{root, func(string) bool { return false }}
	for self, want := range map[string]string{
		"/usr/lib/node_modules/pillion/node_modules/@pillion-dev/linux-x64/bin/pillion": "sudo npm install --global --prefix /usr pillion@latest",
		"/opt/pillion/0.1.0/pillion": "sudo env PILLION_BIN=/opt sh -c ",
	} {
		if i := installerOf(user, self, ""); !i.Root || !strings.HasPrefix(i.String(), want) {
			t.Errorf("%v %q", i.Root, i)
		}
	}
}

// install.sh runs again with the folders that it noted the first time, also with names that a shell would split, and a download that
// fails is a failure. curl is a script here that hands out a script.
func TestUpgradeRunsInstallShWithItsFolders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	root, bin := t.TempDir(), t.TempDir()
	folders := "PILLION_BIN=/opt/my bin\nXDG_DATA_HOME=/opt/it's\n"
	put(t, filepath.Join(root, "opt/pillion/0.1.0/install.env"), folders)
	i := installerOf(system{root, mayWrite}, "/opt/pillion/0.1.0/pillion", "")
	if i.Root || i.Name != "install.sh" {
		t.Fatalf("%+v", i)
	}
	for _, c := range []struct{ curl, out string }{
		{"#!/bin/sh\nprintf 'printf \"PILLION_BIN=%%s\\nXDG_DATA_HOME=%%s\\n\" \"$PILLION_BIN\" \"$XDG_DATA_HOME\"\n' > \"$3\"\n", folders},
		{"#!/bin/sh\nexit 22\n", ""},
	} {
		put(t, filepath.Join(bin, "curl"), c.curl)
		if err := os.Chmod(filepath.Join(bin, "curl"), 0o755); err != nil {
			t.Fatal(err)
		}
		// As a person who copies the line that is shown.
		cmd := exec.Command("sh", "-c", i.String())
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if string(out) != c.out || (err != nil) != (c.out == "") {
			t.Errorf("%s: %q, %v", c.curl, out, err)
		}
	}
}
