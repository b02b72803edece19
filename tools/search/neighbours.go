package search

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// neighbours returns up to three existing paths like a missing one: entries of its nearest existing folder whose
// names resemble the first missing component.
func neighbours(path string) []string {
	dir, name := filepath.Split(filepath.Clean(path))
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
		parent := filepath.Dir(filepath.Clean(dir))
		if parent == filepath.Clean(dir) {
			return nil
		}
		name, dir = filepath.Base(dir), parent
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(10000)
	type scored struct {
		name string
		far  int
	}
	var near []scored
	want := strings.ToLower(name)
	for _, n := range names {
		have := strings.ToLower(n)
		far := edits(want, have)
		if strings.Contains(have, want) || strings.Contains(want, have) {
			far = min(far, 1)
		}
		if far <= max(1, len(want)/3) {
			near = append(near, scored{n, far})
		}
	}
	slices.SortFunc(near, func(a, b scored) int { return cmp.Or(a.far-b.far, cmp.Compare(a.name, b.name)) })
	var out []string
	for _, s := range near[:min(3, len(near))] {
		out = append(out, filepath.Join(dir, s.name))
	}
	return out
}

// edits is Levenshtein's distance over bytes, up to 255 bytes a name.
func edits(a, b string) int {
	a, b = a[:min(len(a), 255)], b[:min(len(b), 255)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
