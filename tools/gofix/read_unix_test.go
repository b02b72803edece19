//go:build unix

package gofix

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A project that nobody trusts may have a pipe, or a link to a device, where a file is expected: reading must neither wait nor fill the memory.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	plainGo(t)
	for _, name := range []string{"go.mod", "go.sum", "lib/other.go", "vendor/example.com/x/x.go"} {
		for _, link := range []bool{false, true} {
			root := t.TempDir()
			lib := filepath.Join(root, "lib", "lib.go")
			for path, text := range map[string]string{"go.mod": "module m\n", "lib/lib.go": "package lib\n\nimport \"example.com/x\"\n\nvar _ = x.Y\n", "vendor/example.com/x/a.go": "package x\n"} {
				path = filepath.Join(root, filepath.FromSlash(path))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(root, filepath.FromSlash(name))
			_ = os.Remove(path)
			err := syscall.Mkfifo(path, 0o600)
			if link {
				_ = os.Remove(path)
				err = os.Symlink("/dev/zero", path)
			}
			if err != nil {
				t.Fatal(err)
			}
			if report, ok := TypeCheck(t.Context(), []Edit{{Path: lib, Text: "package lib\n\nvar x = y\n"}}, nil); ok && name != "go.sum" && name != "vendor/example.com/x/x.go" {
				t.Errorf("%s: judged: %+v", name, report)
			}
			if _, err := new(Finder).Find(t.Context(), lib, 0, nil); err != nil && name != "go.mod" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
