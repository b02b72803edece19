package gofix

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/tools/gofix/mutate"
)

// For an edit inside a function, the part of the module that is checked has the errors that the whole has. For other edits it may miss some,
// which are all in what it leaves out, so it never counts more.
func TestTheTrialCountsWhatTheWholeCheckCounts(t *testing.T) {
	compared, inside := 0, 0
	for _, dir := range modules(t) {
		m, err := load(dir, nil)
		if err != nil {
			t.Fatal(dir, err)
		}
		m.checkAll()
		if m.score() != 0 {
			continue
		}
		paths := sortedKeys(m.files)
		rng := rand.New(rand.NewPCG(3, 22))
		for _, kind := range mutate.Kinds {
			path := paths[rng.IntN(len(paths))]
			mistake, ok := mutate.Find(rng, kind, m.files[path].text)
			if !ok {
				continue
			}
			wrong := m.with(map[string]string{path: mistake.Apply(m.files[path].text)}, true)
			for _, trouble := range wrong.broken() {
				if trouble.syntax {
					continue
				}
				all := wrong.repairs(trouble)
				rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				for _, c := range all[:min(2, len(all))] {
					texts, _, ok := wrong.apply(c.edits)
					if !ok {
						continue
					}
					whole, part := wrong.scoreOf(wrong.with, texts, c.deep), wrong.scoreOf(wrong.trial, texts, c.deep)
					if part > whole || part != whole && wrong.inBodies(c) {
						t.Errorf("%s in %s, %s: %d errors, the trial counts %d", kind, path, c.title, whole, part)
					}
					compared++
					if wrong.inBodies(c) {
						inside++
					}
				}
				break
			}
		}
	}
	if compared < 30 || inside < 10 {
		t.Errorf("only %d candidates were compared, %d of them inside functions", compared, inside)
	}
}

// What is left out of the other files gives no errors of its own, whatever they declare.
func TestTheTrialOfOneFunctionSeesNoOtherErrors(t *testing.T) {
	m := moduleOf(t, map[string]string{
		"go.mod": "module m\n\ngo 1.22\n",
		"a.go":   "package main\n\nfunc total() int { return 1 }\n\nfunc f() int { return totl() }\n",
		"b.go": "package main\n\nimport (\n\t\"fmt\"\n\t\"strings\"\n)\n\ntype pair[K comparable, V any] struct {\n\tk K\n\tv V\n}\n\nfunc (p pair[K, V]) key() K { return p.k }\n\n" +
			"func max[T ~int](a, b T) T {\n\tif a > b {\n\t\treturn a\n\t}\n\treturn b\n}\n\nfunc each[T any](f func(T)) {}\n\nfunc named() (n int, err error) { return }\n\nfunc init() { fmt.Println(f(), max(1, 2)) }\n\nfunc main() { strings.ToUpper(\"\") }\n\n" +
			"var table = map[string]int{\"a\": max(1, 2)}\n\nvar counted = [...]string{strings.ToLower(\"A\")}\n\nvar at = &pair[string, int]{\"a\", 1}\n",
	})
	if got := titles(m, "a.go", 5); !slices.Contains(got, "Change totl to total") {
		t.Errorf("%q", got)
	}
}

// A table of values is not checked for every candidate, but a fix that would break it is not offered.
func TestAFixThatBreaksATableIsNotOffered(t *testing.T) {
	m := moduleOf(t, map[string]string{
		"go.mod": "module m\n\ngo 1.22\n",
		"a.go":   "package a\n\nconst total = 1\n\nfunc f() int { return totl }\n",
		"b.go":   "package a\n\nvar table = []int{total, total, total}\n",
	})
	var got []string
	for _, f := range m.fixes(t.Context(), sortedKeys(m.files)[0], 5) {
		got = append(got, f.Title)
		if n := m.scoreOf(m.with, f.Files, true); n != m.score()-f.Errors {
			t.Errorf("%s: %d errors of %d, though it fixes %d", f.Title, n, m.score(), f.Errors)
		}
	}
	if !slices.Contains(got, "Change totl to total") || slices.Contains(got, "Rename the declaration of total to totl") {
		t.Errorf("%q", got)
	}
}
