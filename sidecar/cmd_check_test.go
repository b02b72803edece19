package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A build takes 1 for errors in the change. That the change could not be read must not look like that, in check and review.
func TestAChangeThatCannotBeReadIsNotAnError(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"other.patch": "--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-package other\n+package b\n", "no.patch": "words\n", "a.go": "package a\n",
		"empty.patch": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, command := range [][]string{{"check"}, {"review", "--no-model"}} {
		for _, what := range []string{"other.patch", "no.patch", "missing.patch", ""} {
			args := command
			if what != "" {
				args = append(args[:len(args):len(args)], what)
			}
			if code := execute(args); code != exitUsage {
				t.Errorf("%q exits with %d", args, code)
			}
		}
		if code := execute(append(command[:len(command):len(command)], "empty.patch")); code != exitOK {
			t.Errorf("%s of an empty patch exits with %d", command[0], code)
		}
	}
}
