package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A background process that keeps the pipe open delays neither the end of the command nor its output.
func TestWindowsOutputEndsWhileThePipeIsOpen(t *testing.T) {
	ours, theirs, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(ours, Command{})
	over := make(chan struct{})
	go func() { defer close(over); c.read() }()
	if _, err := theirs.WriteString("printed\n"); err != nil {
		t.Fatal(err)
	}
	c.settle(false)
	if got := c.result().Head; !strings.Contains(got, "printed") {
		t.Errorf("the output is %q", got)
	}
	if _, err := theirs.WriteString("later\n"); err != nil {
		t.Errorf("a background process cannot print any more: %v", err)
	}
	theirs.Close()
	<-over
}

// The bash of WSL sees other paths, and cmd.exe another language: without a bash the command is refused.
func TestWindowsTakesNoOtherShellThanBash(t *testing.T) {
	dir, err := os.MkdirTemp("", "shells") // not t.TempDir, whose clean-up fails under Wine
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, v := range []string{"ProgramFiles", "ProgramW6432", "ProgramFiles(x86)", "LocalAppData", "PATH"} {
		t.Setenv(v, filepath.Join(dir, "none"))
	}
	if sh, err := Detect(""); err == nil || !strings.Contains(err.Error(), "Git for Windows") {
		t.Errorf("%q, %v", sh, err)
	}
	put := func(path string) string {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("PATH", filepath.Dir(put(`Windows\System32\bash.exe`)))
	if sh, err := Detect(""); err == nil {
		t.Errorf("the bash of WSL is taken: %s", sh)
	}
	git, usual := put(`Tools\Git\cmd\git.exe`), put(`Programs\Git\bin\bash.exe`)
	t.Setenv("ProgramFiles", filepath.Join(dir, "Programs"))
	if sh, err := Detect(""); err != nil || sh != usual {
		t.Errorf("in the usual folder: %q, %v", sh, err)
	}
	bash := put(`Tools\Git\bin\bash.exe`)
	t.Setenv("PATH", filepath.Dir(git)+";"+os.Getenv("PATH"))
	if sh, err := Detect(""); err != nil || sh != bash {
		t.Errorf("beside git: %q, %v", sh, err)
	}
	if Bash(bash) {
		t.Error("commands of Git Bash count as analysed, but it has other names for folders")
	}
}
