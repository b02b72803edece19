package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A script of the project that git runs because of a setting is found, whatever section and spelling name it: git runs it, and so says which
// settings count.
func TestScriptsThatGitRuns(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing")
	}
	for setting, command := range map[string]string{
		"[core]\n\tfsmonitor = ./tools/run": "git status", "[core]\nhooksPath = tools": "git commit --allow-empty -m x", "[alias]\n\tx = !./tools/run": "git x", "[ALIAS] x = \"!./tools/run a\"": "git x",
		"[diff]\n\texternal = tools/run": "git diff", "[diff \"t\"]\n\ttextconv = tools/run": "git diff", "[diff \"t\"]\ncommand = 'tools/run' a": "git diff", "[filter \"t\"]\n\tclean = ./tools/run %f": "git add .",
		"[include]\n\tpath = ../tools/settings": "git status", "[core]\n\tpager = tools/run\n[pager]\n\tlog = true": "", "[core]\n\teditor = tools/run": "git commit --allow-empty", "[gpg]\n\tprogram = tools/run\n[commit]\n\tgpgSign = true": "git commit --allow-empty -m x",
		"[merge \"t\"]\n\tdriver = tools/run %A": "", "[credential]\n\thelper = !./tools/run": "", "[core]\n\tsshCommand = tools/run": "git fetch ssh://x/y", "[user]\n\tname = tools/other": "",
	} {
		root, home := realDir(t.TempDir()), t.TempDir()
		mark := filepath.Join(home, "mark")
		put(t, filepath.Join(root, "tools/run"), "#!/bin/sh\ntouch "+mark+"\n")
		put(t, filepath.Join(root, "tools/pre-commit"), "#!/bin/sh\ntouch "+mark+"\n")
		put(t, filepath.Join(root, "tools/settings"), "[core]\n\tfsmonitor = ./tools/run\n")
		put(t, filepath.Join(root, "tools/other"), "")
		put(t, filepath.Join(root, "a.txt"), "1\n")
		put(t, filepath.Join(root, ".gitattributes"), "*.txt diff=t filter=t merge=t\n")
		for _, name := range []string{"tools/run", "tools/pre-commit"} {
			if err := os.Chmod(filepath.Join(root, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		git := func(command string) {
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = root
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_TERMINAL_PROMPT=0"}
			_ = cmd.Run()
		}
		git("git init -q && git add . && git commit -qm x && echo 2 >> a.txt")
		config, err := os.ReadFile(filepath.Join(root, ".git/config"))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(root, ".git/config"), string(config)+setting+"\n")
		if command != "" {
			git(command)
			if _, err := os.Stat(mark); err != nil {
				t.Errorf("%q: %s ran nothing: the test proves little", setting, command)
			}
		}
		places := GitRuns(root, home)
		found := slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(place, filepath.Join(root, "tools")) })
		if want := !strings.Contains(setting, "[user]"); found != want {
			t.Errorf("%q: %q, want one of them below tools: %t", setting, places, want)
		}
	}
}
