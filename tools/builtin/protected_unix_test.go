//go:build unix

package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// A setting of git or a link makes a script of the project one that runs at the next commit, at git status or in the next
// shell, whatever its name. No rule for edits covers it, by the tools and by commands alike.
func TestWhatSettingsAndLinksLeadToIsProtected(t *testing.T) {
	s := newBackgroundSession(t, `{"*": "allow"}`)
	root, home := s.env.Cwd, s.env.Home
	for path, text := range map[string]string{
		"tools/hooks/commit-msg": "", "scripts/check.sh": "", "scripts/clean.sh": "", "scripts/pager": "", "settings/git.inc": "", "scripts/watch": "", "shared/tasks.json": "{}", "dotfiles/bashrc": "", "dotfiles/tmux": "", "scripts/plain.sh": "", "scripts/alias.sh": "", "more/included": "",
	} {
		for _, p := range []string{filepath.Join(root, path)} {
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	git("config", "core.hooksPath", "tools/hooks")
	git("config", "filter.tidy.clean", "./scripts/clean.sh %f")
	git("config", "core.fsmonitor", filepath.Join(root, "scripts/watch"))
	git("config", "include.path", "../settings/git.inc")
	git("config", "alias.x", "!sh scripts/alias.sh && true")
	git("config", "--global", "core.pager", "scripts/pager --fancy")
	git("config", "--global", `includeIf.gitdir:/x.path`, filepath.Join(root, "more/included"))
	for link, to := range map[string]string{
		filepath.Join(root, ".git/hooks/pre-commit"): "../../scripts/check.sh",
		filepath.Join(root, ".vscode"):               "shared",
		filepath.Join(home, ".bashrc"):               filepath.Join(root, "dotfiles/bashrc"),
		filepath.Join(home, ".tmux.conf"):            filepath.Join(root, "dotfiles/tmux"),
	} {
		_ = os.MkdirAll(filepath.Dir(link), 0o755)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	s.answer = permission.Reply{Kind: permission.Reject}
	for path, protected := range map[string]bool{
		"tools/hooks/commit-msg": true, "tools/hooks/new": true, "scripts/check.sh": true, "scripts/clean.sh": true, "scripts/watch": true, "settings/git.inc": true, "scripts/alias.sh": true, "scripts/pager": true,
		"more/included": true, "shared/tasks.json": true, ".vscode/tasks.json": true, "dotfiles/bashrc": true, "dotfiles/tmux": true,
		"scripts/plain.sh": false, "tools/other": false, "shared/other.json": false, "new": false,
	} {
		path = filepath.Join(root, path)
		for name, call := range map[string]func() error{
			"write": func() error { _, err := s.tool("write", map[string]any{"filePath": path, "content": "x"}); return err },
			"bash":  func() error { _, err := s.tool("bash", map[string]any{"command": "echo x >" + path}); return err },
		} {
			s.asked = nil
			err := call()
			must := len(s.asked) > 0 && s.asked[0].MustAsk && len(s.asked[0].Always) == 0
			if protected && (err == nil || !must) || !protected && (err != nil || len(s.asked) != 0) {
				t.Errorf("%s %s: %v, asked %+v; protected: %v", name, path, err, s.asked, protected)
			}
		}
	}
}

// A link is found whatever else is in its folder: read as a whole, too large for that, or with names that some file systems fold.
func TestLinksAreFoundInEveryFolder(t *testing.T) {
	for name, others := range map[string][]string{
		"few": {"a", "b"}, "not ASCII": {"ß", "a"}, "many": slices.Collect(func(yield func(string) bool) {
			for i := 0; i < 2*maxListed && yield(fmt.Sprintf("f%d", i)); i++ {
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, other := range others {
				if err := os.WriteFile(filepath.Join(dir, other), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for link, to := range map[string]string{".bashrc": "elsewhere", ".config": "settings"} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Join(dir, "settings", "pillion"), 0o700); err != nil {
				t.Fatal(err)
			}
			linked := links(dir)
			for rel, want := range map[string]bool{".bashrc": true, ".config": true, ".config/pillion": true, ".zshrc": false, "settings": false, "settings/pillion": false} {
				if got := linked(rel); got != want {
					t.Errorf("%s: %v", rel, got)
				}
			}
		})
	}
}
