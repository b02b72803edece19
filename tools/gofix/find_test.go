package gofix

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/gofix/mutate"
)

// modules are real modules: those that this program itself is built from. PILLION_MEND_MODULES names others.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	if list := os.Getenv("PILLION_MEND_MODULES"); list != "" {
		return filepath.SplitList(list)
	}
	for _, r := range requirements(filepath.Join("..", ".."), shared().modcache) {
		switch r.path {
		case "github.com/oklog/ulid/v2", "github.com/bmatcuk/doublestar/v4", "github.com/spf13/pflag":
			if exists(filepath.Join(r.dir, "go.mod")) && !strings.Contains(strings.Join(dirs, "\n"), r.dir) {
				dirs = append(dirs, r.dir)
			}
		}
	}
	if len(dirs) == 0 {
		t.Skip("the modules are not in the module cache")
	}
	return dirs
}

// mendAll does what the built-in model does, on texts in memory: one error after the other, the best fix, until none
// lowers the number of errors.
func mendAll(m *module) (*module, int) {
	steps := 0
	for range 40 {
		var best *Fix
		for _, t := range m.broken() {
			at := m.fset.Position(t.pos)
			if fixes := m.fixes(context.Background(), at.Filename, at.Line); len(fixes) > 0 {
				best = &fixes[0]
				break
			}
		}
		if best == nil {
			break
		}
		m = m.with(best.Files, true)
		steps++
	}
	return m, steps
}

// broken are the module's errors, in order.
func (m *module) broken() (out []trouble) {
	for _, path := range sortedKeys(m.files) {
		out = append(out, m.at(path, 0)...)
	}
	return out
}

// One seeded mistake at a time in real code: errors never rise, and most mistakes are fixed.
func TestSeededMistakesInRealModules(t *testing.T) {
	rounds := 1
	if os.Getenv("PILLION_MEND_ROUNDS") != "" {
		fmt.Sscan(os.Getenv("PILLION_MEND_ROUNDS"), &rounds)
	}
	fixed, same, total := map[string]int{}, map[string]int{}, map[string]int{}
	for _, dir := range modules(t) {
		m, err := load(dir, nil)
		if err != nil {
			t.Fatal(dir, err)
		}
		m.checkAll()
		if s := m.score(); s != 0 {
			for _, b := range m.broken() {
				t.Logf("%s: %v", m.fset.Position(b.pos), b.pkg.errs)
				break
			}
			t.Logf("%s has %d errors of its own; left out", dir, s)
			continue
		}
		var paths []string
		for p := range m.files {
			paths = append(paths, p)
		}
		sort.Strings(paths)
		for _, kind := range mutate.Kinds {
			rng := rand.New(rand.NewPCG(7, uint64(len(kind))))
			for tries, done := 0, 0; done < rounds && tries < 60; tries++ {
				path := paths[rng.IntN(len(paths))]
				mistake, ok := mutate.Find(rng, kind, m.files[path].text)
				if !ok {
					continue
				}
				wrong := m.with(map[string]string{path: mistake.Apply(m.files[path].text)}, true)
				start := wrong.score()
				if start == 0 {
					continue
				}
				done++
				total[kind]++
				after, _ := mendAll(wrong)
				end := after.score()
				if end > start {
					t.Errorf("%s in %s: %d errors became %d", kind, path, start, end)
				}
				if end == 0 {
					fixed[kind]++
					if after.files[path].text == m.files[path].text {
						same[kind]++
					}
				} else if os.Getenv("PILLION_MEND_VERBOSE") != "" {
					for _, b := range after.broken()[:1] {
						msg := "syntax"
						if len(b.pkg.errs) > 0 {
							msg = b.pkg.errs[0].Msg
						}
						t.Logf("LEFT %s: %q -> %q; %s: %s", kind, m.files[path].text[mistake.Start:mistake.End], mistake.Text, m.fset.Position(b.pos), msg)
					}
				}
			}
		}
	}
	all, good := 0, 0
	for _, kind := range mutate.Kinds {
		if total[kind] > 0 {
			t.Logf("%-24s %3d of %3d fixed, %3d as it was", kind, fixed[kind], total[kind], same[kind])
		}
		all, good = all+total[kind], good+fixed[kind]
	}
	t.Logf("%d of %d fixed", good, all)
	if all == 0 || good*100 < all*60 {
		t.Errorf("%d of %d mistakes were fixed, want 60 %%", good, all)
	}
}
