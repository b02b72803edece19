package search

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A program that may write to the project only swaps a folder of it for a link that leads out, and back, all the time. No
// search shows a line of what is there, whichever engine looks.
func TestAFolderThatIsSwappedForALinkShowsNothingOutside(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside := filepath.Join(base, "project"), filepath.Join(base, "outside")
	for dir, text := range map[string]string{filepath.Join(root, "sub", "deep"): "needle inside\n", filepath.Join(outside, "deep"): "needle OUTSIDE\n"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "deep", "outside"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	sub, kept, link := filepath.Join(root, "sub"), filepath.Join(base, "kept"), filepath.Join(base, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = os.Rename(sub, kept)
			_ = os.Rename(link, sub)
			_ = os.Rename(sub, link)
			_ = os.Rename(kept, sub)
		}
	}()
	defer func() { stop.Store(true); <-done }()
	for range 300 {
		names, _ := New(Options{}).Glob(t.Context(), GlobQuery{Root: root, Pattern: "**/*"})
		for _, name := range names.Paths {
			if strings.HasSuffix(name, "outside") {
				t.Fatalf("the name %s", name)
			}
		}
	}
	for name, pattern := range map[string]string{"a pattern of both": "needle", "a pattern of ripgrep only": "[a-z&&[nedl]]+ OUT|needle"} {
		for _, s := range map[string]*Searcher{"ripgrep": New(Options{}), "Go": New(Options{Ripgrep: "off"})} {
			for range 60 {
				for _, q := range []GrepQuery{{Root: root, Pattern: pattern}, {Root: filepath.Join(sub, "deep"), Pattern: pattern}, {Root: filepath.Join(sub, "deep", "a"), Pattern: pattern}} {
					found, _ := s.Grep(t.Context(), q)
					for _, m := range found.Matches {
						if strings.Contains(m.Text, "OUTSIDE") {
							t.Fatalf("%s, in %s: %q of %s", name, q.Root, m.Text, m.Path)
						}
					}
				}
			}
		}
	}
}
