package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The packed grammars are what the sources of the module that go.mod names give: no table was changed by hand.
func TestGrammarsAreThoseOfTheirSources(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler: cc is missing")
	}
	t.Chdir("..")
	sources, err := findSources()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("grammars/*.gz")
	if err != nil || len(files) != len(grammars) {
		t.Fatalf("%d files of %d grammars: %v", len(files), len(grammars), err)
	}
	temporary := t.TempDir()
	for name, folder := range grammars {
		if testing.Short() && name != "css" && name != "go" {
			continue
		}
		data, err := dump(name, filepath.Join(sources, filepath.FromSlash(folder)), temporary)
		if err != nil {
			t.Fatal(name, err)
		}
		if !same(filepath.Join("grammars", name+".gz"), data) {
			t.Errorf("grammars/%s.gz is stale: go generate ./tools/treesitter", name)
		}
		data[len(data)/2]++
		if same(filepath.Join("grammars", name+".gz"), data) {
			t.Errorf("%s: a changed table is not noticed", name)
		}
	}
}
