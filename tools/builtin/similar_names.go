package builtin

import (
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// Limits of the search for similar names, which only improves an error message.
const (
	maxSimilar = 3    // names in the message; more than three are rarely useful
	maxScanned = 5000 // entries of a folder that are examined
)

// similarNames lists up to maxSimilar files in the folder of a missing path that have a similar name, the most similar first. If the
// folder is missing too, it searches the nearest existing parent for a folder with a similar name: models get
// one part of a path wrong, rarely two.
func similarNames(path string) []string {
	dir, name, rest := filepath.Dir(path), filepath.Base(path), ""
	// Go up at most eight folders: a path with more missing folders is not a typing error in one name.
	for range 8 {
		d, err := os.Open(dir)
		if err != nil {
			up := filepath.Dir(dir)
			if up == dir {
				return nil
			}
			// The rest of the path is appended to a similar folder, if it exists there.
			rest = filepath.Join(name, rest)
			dir, name = up, filepath.Base(dir)
			continue
		}
		names, _ := d.Readdirnames(maxScanned)
		d.Close()
		type scored struct {
			name string
			s    int
		}
		var found []scored
		for _, n := range names {
			if s := likeness(strings.ToLower(name), strings.ToLower(n)); s > 0 {
				found = append(found, scored{n, s})
			}
		}
		sort.Slice(found, func(i, j int) bool {
			if found[i].s != found[j].s {
				return found[i].s > found[j].s
			}
			return found[i].name < found[j].name
		})
		var out []string
		for _, f := range found[:min(len(found), maxSimilar)] {
			p := filepath.Join(dir, f.name)
			if _, err := os.Lstat(filepath.Join(p, rest)); err == nil {
				p = filepath.Join(p, rest)
			}
			out = append(out, p)
		}
		return out
	}
	return nil
}

// likeness rates two lower-case names from 0 (different) to 100 (equal). Its numbers only order the kinds of similarity: the same stem, a
// typing error, one name within the other, the stem within the other name. Within a kind the smaller difference wins.
func likeness(want, have string) int {
	switch {
	case want == have:
		return 100
	case stem(want) == stem(have) && len(stem(want)) > 0:
		return 90
	}
	if d := fuzzy.Slips(want, have); d <= max(1, len(want)/4) {
		return 80 - d
	}
	if len(have) > 1 && len(want) > 1 && (strings.Contains(have, want) || strings.Contains(want, have)) {
		return 40 - min(30, max(len(have)-len(want), len(want)-len(have)))
	}
	if s := stem(want); len(s) > 2 && strings.Contains(have, s) {
		return 5
	}
	return 0
}

// stem is a name without its last extension: models often name x.js when the file is x.ts.
func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }
