package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without mounts of its own a command can change what is protected; it does not stay so.
func TestProtectedFilesArePutBack(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(".git/config", "[core]\n", 0o644)
	write(".git/hooks/pre-commit", "mine", 0o755)
	write(".git/hooks/other", "same", 0o755)
	write(".envrc", "export A=1\n", 0o600)
	// A socket cannot be kept; it is the person's all the same (fsmonitor--daemon.ipc of Git).
	socket, err := net.Listen("unix", filepath.Join(root, ".git/s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	quarantine := t.TempDir()
	box := New(Options{Root: root, Dir: root, Home: t.TempDir(), Quarantine: quarantine,
		Support:   func() Support { return Support{Landlock: minLandlock} },
		Protected: func(p string) (string, bool) { return "", filepath.Base(p) == ".envrc" }})
	write(".git/config", "[core]\nfsmonitor = evil\n", 0o644)
	write(".git/hooks/post-commit", "evil", 0o755)
	write("new.txt", "fine", 0o644)
	if err := os.Remove(filepath.Join(root, ".envrc")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, ".git/hooks/pre-commit"), 0o600); err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(box.Settle(), "\n")
	for _, want := range []string{".git/config, which is protected, was changed; it was restored", ".envrc, which is protected, was changed", "hooks/pre-commit, which", "hooks/post-commit, which is protected, was created; it was restored"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in\n%s", want, notes)
		}
	}
	if strings.Contains(notes, "other") || strings.Contains(notes, "new.txt") {
		t.Errorf("%s", notes)
	}
	for name, text := range map[string]string{".git/config": "[core]\n", ".envrc": "export A=1\n", ".git/hooks/pre-commit": "mine", "new.txt": "fine"} {
		if b, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(b) != text {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if info, err := os.Stat(filepath.Join(root, ".git/hooks/pre-commit")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if _, err := os.Lstat(filepath.Join(root, ".git/s")); err != nil || strings.Contains(notes, ".git/s,") {
		t.Errorf("a socket that was there before: %v\n%s", err, notes)
	}
	if _, err := os.Lstat(filepath.Join(root, ".git/hooks/post-commit")); err == nil {
		t.Error("the new hook stays")
	}
	if kept, _ := os.ReadDir(quarantine); len(kept) < 2 {
		t.Errorf("only %d in the quarantine", len(kept))
	}
	if again := box.Settle(); len(again) != 0 {
		t.Errorf("twice: %v", again)
	}
}
