package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProfileForMacOS(t *testing.T) {
	b := &Sandbox{
		Writable: []string{"/Users/u/p", `/tmp/a"b\c`}, ReadOnly: []string{"/Users/u/p/.git/hooks"}, Pinned: []string{"/Users/u/p/.git"}, New: []string{"/Users/u/p/.envrc"},
		Support: SandboxSupport{Profile: true},
	}
	got := b.Profile()
	want := `(version 1)
(allow default)
(deny file-write*)
(allow file-write*
  (subpath "/Users/u/p")
  (subpath "/tmp/a\"b\\c")
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/tty")
  (literal "/dev/dtracehelper")
  (regex #"^/dev/fd/"))
(deny file-write*
  (subpath "/Users/u/p/.git/hooks")
  (subpath "/Users/u/p/.envrc"))
(deny file-write-unlink
  (literal "/Users/u/p/.git"))
`
	if !strings.HasPrefix(got, want) || !strings.Contains(got, "(deny network*)\n(allow network* (local ip \"localhost:*\"))") {
		t.Errorf("%s", got)
	}
	if n := strings.Count(got, "("); n != strings.Count(got, ")") {
		t.Error("parentheses do not match")
	}
	b.Network = true
	if strings.Contains(b.Profile(), "network") {
		t.Error("the network is closed though it is open")
	}
	name, args, err := b.argv("/bin/bash", []string{"-c", "ls"})
	if err != nil || name != "/usr/bin/sandbox-exec" || args[0] != "-p" || !slices.Equal(args[2:], []string{"/bin/bash", "-c", "ls"}) {
		t.Errorf("%s %q %v", name, args, err)
	}
}

func TestWritablePlacesNeverOpenTheHomeFolder(t *testing.T) {
	home := t.TempDir()
	root := filepath.Join(home, "p")
	for _, d := range []string{"p/sub", "cache"} {
		if err := os.MkdirAll(filepath.Join(home, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	real := realDir(home)
	got := outermost(existing([]string{root, filepath.Join(root, "sub"), filepath.Join(home, "cache"), home, filepath.Dir(home), "/"}), home)
	if want := []string{real + "/cache", real + "/p"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSandboxEnviron(t *testing.T) {
	got := (&Sandbox{Network: true}).environ([]string{"PATH=/bin", "SSH_AUTH_SOCK=/x", "VSCODE_IPC_HOOK_CLI=/y", "TMUX=1", "VSCODE=1"})
	if !slices.Equal(got, []string{"PATH=/bin", "VSCODE=1"}) {
		t.Errorf("%q", got)
	}
}

func TestStoppedNamesTheRestriction(t *testing.T) {
	b := &Sandbox{Writable: []string{"/p"}, Dir: "/p", Processes: 50}
	for text, want := range map[string]string{
		"touch: cannot touch '/x': Permission denied":         "writing only in /p",
		"npm error code ENOTFOUND":                            "no network",
		"bash: fork: retry: Resource temporarily unavailable": "50 processes",
		"assertion failed":                                    "",
	} {
		got := b.Stopped(Outcome{Exit: 1, Output: Output{Head: text}})
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q", text, got)
		}
		if b.Stopped(Outcome{Output: Output{Head: text}}) != "" {
			t.Error("a command that ended well was stopped")
		}
	}
	var none *Sandbox
	if none.Stopped(Outcome{Exit: 1, Output: Output{Head: "permission denied"}}) != "" || none.Settle() != nil {
		t.Error("no sandbox stops nothing")
	}
}
