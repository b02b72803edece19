package diff

import "testing"

// A patch is a model's text: whatever it holds, Apply answers. What Unified writes, Apply takes back.
func FuzzApply(f *testing.F) {
	f.Add("a\nb\n", "@@ -1 +1 @@\n-a\n+c\n")
	f.Add("", "@@ -0,0 +1 @@\n+c\n\\ No newline at end of file\n")
	f.Add("x", "@@ -9999999999999999999 +1 @@\n")
	f.Fuzz(func(t *testing.T, text, other string) {
		_, _ = Apply(text, other)
		patch := Unified("a", "b", text, other)
		if got, err := Apply(text, patch); err != nil || got != other {
			t.Fatalf("%q → %q by %q: %q, %v", text, other, patch, got, err)
		}
		olds, news := Words(text, other)
		for s, spans := range map[string][]Span{text: olds, other: news} {
			at := 0
			for _, p := range spans {
				if p.Start < at || p.End <= p.Start || p.End > len(s) {
					t.Fatalf("Words(%q, %q): spans %v", text, other, spans)
				}
				at = p.End
			}
		}
	})
}
