package editors

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func swap(t *testing.T, path, magic, host string, pid int, dirty byte) {
	t.Helper()
	b := make([]byte, 4096)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[swapPID:], uint32(pid))
	copy(b[swapHost:swapName-1], host)
	b[swapDirtyAt] = dirty
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestMarksOfOtherEditors(t *testing.T) {
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	me, dead := os.Getpid(), math.MaxInt32 // beyond what a system hands out
	for name, c := range map[string]struct {
		file string
		make func(t *testing.T, dir string)
		want string // empty: nothing unsaved
	}{
		"no mark":            {"a.txt", func(*testing.T, string) {}, ""},
		"a dirty swap file":  {"a.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swp", "b0VIM 9.0", here, me, swapDirty) }, fmt.Sprintf("Vim (process %d)", me)},
		"of a hidden file":   {".env", func(t *testing.T, d string) { swap(t, d+".env.swp", "b0VIM 9.0", here, me, swapDirty) }, "Vim"},
		"of a second Vim":    {"a.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swo", "b0VIM 9.0", here, me, swapDirty) }, "Vim"},
		"encrypted":          {"a.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swp", "bdVIM 9.0", here, me, swapDirty) }, "Vim"},
		"of another machine": {"a.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swp", "b0VIM 9.0", "elsewhere", dead, swapDirty) }, "Vim (process 2147483647 on elsewhere)"},
		"a saved buffer":     {"a.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swp", "b0VIM 9.0", here, me, 0) }, ""},
		"after a crash":      {"a.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swp", "b0VIM 9.0", here, dead, swapDirty) }, ""},
		"not a swap file":    {"a.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swp", "text", here, me, swapDirty) }, ""},
		"of another file":    {"b.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swp", "b0VIM 9.0", here, me, swapDirty) }, ""},
		"cut off":            {"a.txt", func(t *testing.T, d string) { must(t, os.WriteFile(d+".a.txt.swp", []byte("b0VIM 9.0"), 0o600)) }, ""},
		"a named pipe":       {"a.txt", func(t *testing.T, d string) { must(t, exec.Command("mkfifo", d+".a.txt.swp").Run()) }, ""},
		"an Emacs lock": {"a.txt", func(t *testing.T, d string) {
			must(t, os.Symlink(fmt.Sprintf("me@%s.%d:1700000000", here, me), d+".#a.txt"))
		}, fmt.Sprintf("Emacs (process %d)", me)},
		"an Emacs that crashed": {"a.txt", func(t *testing.T, d string) { must(t, os.Symlink(fmt.Sprintf("me@%s.%d", here, dead), d+".#a.txt")) }, ""},
		"a lock that is a file": {"a.txt", func(t *testing.T, d string) {
			must(t, os.WriteFile(d+".#a.txt", fmt.Appendf(nil, "me@%s.%d:1", here, me), 0o600))
		}, "Emacs"},
		"some other link":           {"a.txt", func(t *testing.T, d string) { must(t, os.Symlink("b.txt", d+".#a.txt")) }, ""},
		"a lock of another machine": {"a.txt", func(t *testing.T, d string) { must(t, os.Symlink("me@elsewhere.7", d+".#a.txt")) }, "Emacs (process 7 on elsewhere)"},
		"an auto-save file": {"a.txt", func(t *testing.T, d string) {
			older(t, d+"a.txt")
			must(t, os.WriteFile(d+"#a.txt#", []byte("x"), 0o600))
		}, "Emacs"},
		"an old auto-save file": {"a.txt", func(t *testing.T, d string) {
			older(t, d+"#a.txt#")
			must(t, os.WriteFile(d+"a.txt", nil, 0o600))
		}, ""},
		"nano's lock": {"a.txt", func(t *testing.T, d string) { swap(t, d+".a.txt.swp", "b0nano 7.2", here, me, swapDirty) }, "nano (process"},
		"a backup of VS Code": {"a.txt", func(t *testing.T, d string) {
			must(t, os.WriteFile(d+"a.txt", []byte("one\n"), 0o600))
			backup(t, d+"config/Code/Backups/5f0/file/1a2b", PathURI(d+"a.txt"), "one\nmine\n")
		}, "VS Code"},
		"a backup with the file's text": {"a.txt", func(t *testing.T, d string) {
			must(t, os.WriteFile(d+"a.txt", []byte("one\n"), 0o600))
			backup(t, d+"config/Code/Backups/5f0/file/1a2b", PathURI(d+"a.txt"), "one\n")
		}, ""},
		"a backup of another file": {"a.txt", func(t *testing.T, d string) {
			backup(t, d+"config/Code/Backups/5f0/file/1a2b", PathURI(d+"b.txt"), "mine\n")
		}, ""},
		"a backup of a file to come, with spaces": {"a b.txt", func(t *testing.T, d string) {
			backup(t, d+"config/VSCodium/Backups/5f0/file/1a2b", PathURI(d+"a b.txt"), "mine\n")
		}, "VSCodium"},
		"a backup of another machine's file": {"a.txt", func(t *testing.T, d string) {
			backup(t, d+"config/Code/Backups/5f0/vscode-remote/1a2b", "vscode-remote://ssh-remote+far"+d+"a.txt", "mine\n")
		}, ""},
		"a backup of code-server": {"a.txt", func(t *testing.T, d string) {
			backup(t, d+"data/code-server/User/Backups/5f0/vscode-remote/-1a2b", "vscode-remote://127.0.0.1:8080"+d+"a.txt", "mine\n")
		}, "code-server"},
		"through a link": {"link", func(t *testing.T, d string) {
			must(t, os.WriteFile(d+"real.txt", nil, 0o600))
			must(t, os.Symlink("real.txt", d+"link"))
			swap(t, d+".real.txt.swp", "b0VIM 9.0", here, me, swapDirty)
		}, "Vim"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + string(filepath.Separator)
			t.Setenv("XDG_CONFIG_HOME", dir+"config")
			t.Setenv("XDG_DATA_HOME", dir+"data")
			t.Setenv("HOME", dir)
			c.make(t, dir)
			h, ok := unsavedElsewhere(dir + c.file)
			if ok != (c.want != "") || ok && !strings.HasPrefix(h.String(), c.want) {
				t.Errorf("%q %v, want %q", h, ok, c.want)
			}
		})
	}
}

// older makes a file that was changed an hour ago.
func older(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, nil, 0o600))
	then := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, then, then))
}

// backup writes what VS Code writes of a document with unsaved changes.
func backup(t *testing.T, path, uri, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(uri+` {"mtime":1795387832829,"size":8,"etag":"3h2a","orphaned":false,"typeId":""}`+"\n"+text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
