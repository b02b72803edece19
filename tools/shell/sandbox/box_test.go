package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProfileForMacOS(t *testing.T) {
	b := &Box{
		Writable: []string{"/Users/u/p", `/tmp/a"b\c`}, ReadOnly: []string{"/Users/u/p/.git/hooks"}, Pinned: []string{"/Users/u/p/.git"}, New: []string{"/Users/u/p/.envrc"},
		Support: Support{Profile: true},
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
	name, args, err := b.Argv("/bin/bash", []string{"-c", "ls"})
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
	got := (&Box{Network: true}).Environ([]string{"PATH=/bin", "SSH_AUTH_SOCK=/x", "VSCODE_IPC_HOOK_CLI=/y", "TMUX=1", "VSCODE=1"})
	if !slices.Equal(got, []string{"PATH=/bin", "VSCODE=1"}) {
		t.Errorf("%q", got)
	}
}

func TestStoppedNamesTheRestriction(t *testing.T) {
	b := &Box{Writable: []string{"/p"}, Dir: "/p", Processes: 50}
	for text, want := range map[string]string{
		"touch: cannot touch '/x': Permission denied":         "writing only in /p",
		"npm error code ENOTFOUND":                            "no network",
		"bash: fork: retry: Resource temporarily unavailable": "50 processes",
		"assertion failed":                                    "",
	} {
		got := b.Stopped(Result{Exit: 1, Output: text})
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	var none *Box
	if none.Stopped(Result{Exit: 1, Output: "permission denied"}) != "" || none.Settle() != nil {
		t.Error("no sandbox stops nothing")
	}
}

// A pipeline that ends in 0 does not hide what the sandbox stopped; output that only sounds like it is left alone.
func TestStoppedInACommandThatEndedWell(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, out := filepath.Join(dir, "work"), filepath.Join(dir, "out")
	for _, d := range []string{work, out, filepath.Join(work, ".git", "hooks")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := &Box{Writable: []string{work}, ReadOnly: []string{work + "/.git/hooks"}, Dir: work, Support: Support{Landlock: 7}}
	for text, want := range map[string]bool{
		"touch: cannot touch '" + out + "/x': Read-only file system\nother\n":                         true,
		"bash: line 1: ../out/x: Permission denied\n":                                                 true,
		"cp: cannot create regular file ‘../out/made’: Permission denied":                             true,
		"PermissionError: [Errno 13] Permission denied: '" + out + "/x'":                              true,
		"Error: EROFS: read-only file system, open '" + out + "/x'":                                   true,
		"bash: .git/hooks/pre-commit: Read-only file system":                                          true,
		"find: ‘/proc/1/nothing-like-it/deeper’: Permission denied":                                   false, // not ours to write either
		"cat: a.txt: Permission denied":                                                               false, // inside
		"TestRefuses: want permission denied, got permission denied":                                  false,
		"see https://example.invalid/permission denied":                                               false,
		out + "/x was written":                                                                        false,
		"fatal: unable to access 'https://example.invalid/': Could not resolve host: example.invalid": false,
	} {
		if got := b.Stopped(Result{Output: text}); (got != "") != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	net := Result{Output: "curl: (6) Could not resolve host: example.invalid\n"}
	if got := b.Passed(net); !strings.Contains(got, "network") {
		t.Errorf("%q", got)
	}
	if b.Network = true; b.Passed(net) != "" {
		t.Error("the network is open")
	}
}
