//go:build unix

package main

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// linksAnd is texts with the targets of symbolic links.
func linksAnd(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if target, err := os.Readlink(p); err == nil {
			out[rel] = "-> " + target
			return nil
		}
		b, err := os.ReadFile(p)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A symbolic link that a command made, changed, removed, or put in a file's place is taken back as a link; what it leads
// to is not touched, wherever that is.
func TestLinksThatACommandChangedAreTakenBack(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.txt")
	put(t, outside, "outside\n")
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "a\n")
	put(t, filepath.Join(dir, "real", "x"), "x\n")
	put(t, filepath.Join(dir, "b.txt"), "b\n")
	for name, to := range map[string]string{"gone": "a.txt", "turned": "a.txt", "became": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := linksAnd(t, dir)
	c := newCommands(t, dir)
	c.bash("ln -s real/x made && ln -s real folder && ln -s " + outside + " out && rm gone && ln -sfn real/x turned && rm became && echo own > became && rm b.txt && ln -s a.txt b.txt")
	set, after := c.last(), linksAnd(t, dir)
	if got := kinds(set); got != "edit b.txt, edit became, create folder, delete gone, create made, create out, edit turned" || set.Uncaught != "" {
		t.Errorf("caught %s, not %q", got, set.Uncaught)
	}
	for i, want := range []map[string]string{before, after, before} { // there, back, and there again
		if _, err := c.reviewer().Undo(context.Background(), c.last().ID, nil); err != nil {
			t.Fatal(err)
		}
		if got := linksAnd(t, dir); !maps.Equal(got, want) {
			t.Fatalf("%d: %v\nwant %v", i, got, want)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "outside\n" {
		t.Errorf("what a link led to is %q, %v", b, err)
	}

	// What the person made of a link since stays.
	c.bash("ln -s real/x mine")
	made := c.last().ID
	if err := os.Remove(filepath.Join(dir, "mine")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "mine"), "my own\n")
	if _, err := c.reviewer().Undo(context.Background(), made, nil); err == nil || !strings.Contains(err.Error(), "changed since") {
		t.Errorf("undone: %v", err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "mine")); string(b) != "my own\n" {
		t.Errorf("mine is %q", b)
	}
}
