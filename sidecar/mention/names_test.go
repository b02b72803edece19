package mention

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/search"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestANewFileIsFoundWithoutAnybodyWaiting(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "x")
	s := search.New(search.Options{})
	l := newListings(func(string) *search.Searcher { return s })
	defer l.close()
	first, err := l.names(context.Background(), dir)
	if err != nil || first.list.Len() != 1 {
		t.Fatal(first, err)
	}
	write(t, filepath.Join(dir, "b.txt"), "x")
	l.mu.Lock()
	first.made = time.Now().Add(-time.Minute) // old
	l.mu.Unlock()
	again, err := l.names(context.Background(), dir)
	if err != nil || again != first {
		t.Errorf("who asks waited: %v", err)
	}
	l.mu.Lock()
	made := l.kept[dir].made
	l.mu.Unlock()
	<-made
	if now, _ := l.names(context.Background(), dir); now.list.Len() != 2 {
		t.Errorf("%d files", now.list.Len())
	}
	if _, err := l.names(context.Background(), filepath.Join(dir, "gone")); err == nil {
		t.Error("a folder that is not there has names")
	}
}

// BenchmarkFileSearch is the warm search of the issue: 50,000 files.
func BenchmarkFileSearch(b *testing.B) {
	dir := b.TempDir()
	for d := range 500 {
		sub := filepath.Join(dir, fmt.Sprintf("packages/module%d/components%d", d%50, d))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			b.Fatal(err)
		}
		for f := range 100 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("Thing%dController%d.ts", f, d)), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	s := search.New(search.Options{})
	f := New(Options{Searcher: func(string) *search.Searcher { return s }})
	defer f.Close()
	if _, err := f.lists.names(context.Background(), dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		n, _ := f.lists.names(context.Background(), dir)
		n.find("thngctrl77", 50, Kinds{File: true, Folder: true})
	}
}
