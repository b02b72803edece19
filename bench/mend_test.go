package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// One mistake is a syntax error, which hides the others of its package from the compiler: they are judged all the same.
func TestEachMistakeIsJudgedByItself(t *testing.T) {
	clean := map[string]string{
		"go.mod":     "module m\n\ngo 1.24\n",
		"syntax.go":  "package m\n\nfunc Syntax() int { return 1 }\n",
		"hidden.go":  "package m\n\nfunc Hidden() int { return 2 }\n",
		"mended.go":  "package m\n\nfunc Mended() int { return 3 }\n",
		"renamed.go": "package m\n\nfunc Renamed() int { return 4 }\n",
		"use.go":     "package m\n\nfunc use() int { return Renamed() + Hidden() }\n",
		"typed.go":   "package m\n\nfunc typed(n int) int { return n }\n",
		"caller.go":  "package m\n\nfunc caller() int { return typed(len(\"five\")) }\n",
	}
	// Where a mistake was mended, by another text than there was before.
	final := maps.Clone(clean)
	final["syntax.go"] = "package m\n\nfunc Syntax() int { return 1 \n"
	final["hidden.go"] = "package m\n\nfunc Hidden() int { return \"2\" }\n"
	final["mended.go"] = "package m\n\nfunc Mended() int { return int(3) }\n"
	final["renamed.go"] = "package m\n\nfunc Renamd() int { return 4 }\n"
	final["use.go"] = "package m\n\nfunc use() int { return Renamd() + Hidden() }\n" // the fix of renamed.go is here
	final["typed.go"] = "package m\n\nfunc typed(n string) int { return len(n) }\n"
	final["caller.go"] = "package m\n\nfunc caller() int { return typed(\"five\") }\n" // the fix of typed.go is here, in the file of another mistake
	changed := map[string]string{"use.go": clean["use.go"], "mended.go": "package m\n\nfunc Mended() int { return \"3\" }\n"}
	var mistakes []seeded
	for _, name := range []string{"syntax.go", "hidden.go", "mended.go", "renamed.go", "typed.go", "caller.go"} {
		mistakes = append(mistakes, seeded{"a kind", name, clean[name]})
	}
	dir := filepath.Join(t.TempDir(), "m")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range final {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after, err := goTruth(t.Context(), dir, "")
	if err != nil || len(after) == 0 {
		t.Fatal(after, err)
	}
	compiled := 0
	left, err := leftMistakes(t.Context(), dir, mistakes, changed, after, func(ctx context.Context, dir, edited string) ([]finding, error) {
		compiled++
		return goTruth(ctx, dir, edited)
	})
	if err != nil {
		t.Fatal(err)
	}
	if compiled > 18 { // each alone in two ways and each pair would be 33
		t.Errorf("the module was compiled %d times", compiled)
	}
	var names []string
	for i := range left {
		names = append(names, mistakes[i].file)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"hidden.go", "syntax.go"}) {
		t.Errorf("left: %v, %v", names, left)
	}
	if left[0].File != "syntax.go" || left[1].File != "hidden.go" {
		t.Errorf("%v", left)
	}
	if left, err = leftMistakes(t.Context(), dir, mistakes, changed, nil, goTruth); err != nil || len(left) != 0 {
		t.Errorf("a module without errors has mistakes left: %v %v", left, err)
	}
}

// What a fix has spoilt in a file without a mistake is not held against the other mistakes.
func TestAFixThatSpoilsAnotherFileIsItsOwnMistakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod":    "module m\n\ngo 1.24\n",
		"left.go":   "package m\n\nfunc Left() int { return \"1\" }\n",
		"mended.go": "package m\n\nfunc Mended() int { return 2 }\n",
		"use.go":    "package m\n\nfunc use() string { return Left() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mistakes := []seeded{{"a kind", "left.go", "package m\n\nfunc Left() int { return 1 }\n"}, {"a kind", "mended.go", "package m\n\nfunc Mended() int { return 2 }\n"}}
	changed := map[string]string{"use.go": "package m\n\nfunc use() int { return Left() }\n", "mended.go": "package m\n\nfunc Mended() int { return \"2\" }\n"}
	left, err := leftMistakes(t.Context(), dir, mistakes, changed, []finding{{"left.go", 3, "x"}}, goTruth)
	if _, first := left[0]; err != nil || len(left) != 1 || !first {
		t.Errorf("%v %v", left, err)
	}
}

// A syntax error hides two others from the compiler. They are errors before it is fixed as well as afterwards; a fix that puts the bracket
// where it gives other errors is worse.
func TestHiddenErrorsAreCounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	clean := map[string]string{
		"a.go": "package m\n\nfunc a() int {\n\treturn 1\n}\n\ntype t struct{}\n",
		"b.go": "package m\n\nfunc b() int { return 1 }\n",
		"c.go": "package m\n\nfunc c() t { return t{} }\n",
	}
	mistakes := []seeded{{"lost bracket", "a.go", clean["a.go"]}, {"a kind", "b.go", clean["b.go"]}}
	for _, state := range []struct {
		a, b string
		want int
	}{
		{"package m\n\nfunc a() int {\n\treturn 1\n\ntype t struct{}\n", "package m\n\nfunc b() int { return \"1\" }\n", 2},
		{clean["a.go"], "package m\n\nfunc b() int { return \"1\" }\n", 1},
		{"package m\n\nfunc a() int {\n\treturn 1\n\ntype t struct{}\n}\n", "package m\n\nfunc b() int { return \"1\" }\n", 3}, // t is unknown in c.go, a does not end with a return, and b.go
		{clean["a.go"], clean["b.go"], 0},
	} {
		for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.24\n", "a.go": state.a, "b.go": state.b, "c.go": clean["c.go"]} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		shown, err := goTruth(t.Context(), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		n, err := countErrors(t.Context(), dir, mistakes, shown, goTruth)
		if b, _ := os.ReadFile(filepath.Join(dir, "a.go")); err != nil || n != state.want || string(b) != state.a {
			t.Errorf("%d errors, want %d, shown %v, %v\n%s", n, state.want, shown, err, b)
		}
	}
}
