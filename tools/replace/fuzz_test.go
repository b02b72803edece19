package replace

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever is asked, nothing outside the spans changes by a byte, and the spans are where the result says.
func FuzzApply(f *testing.F) {
	for _, s := range [][3]string{
		{"a\r\n\tb\r\nc", "b ", "x\ny"},
		{"s\n  alpha one\ne\n", "s\nalpha on\ne\n", "s\n  z\ne\n"},
		{"foo(a,  b)", " foo(a, b) ", " bar "},
		{"a\nb\n", "a\\nb", "x"},
		{"é\u00a0\xff\n", "é \xff", "q"},
		{"s\na\nzz\ne\n", "s\na\nq\ne", ""},
		{"a\n\n\nb\r\n", " \n", "\n"},
	} {
		f.Add(s[0], s[1], s[2], false)
		f.Add(s[0], s[1], s[2], true)
	}
	f.Fuzz(func(t *testing.T, text, old, new string, all bool) {
		r, err := Apply(text, old, new, all)
		if err != nil {
			e := err.(*Error)
			lines := strings.Count(text, "\n") + 1
			for _, n := range e.Lines {
				if n < 1 || n > lines {
					t.Fatalf("line %d of %d", n, lines)
				}
			}
			if e.Message == "" {
				t.Fatal("no words")
			}
			return
		}
		if len(r.Spans) == 0 || len(r.Spans) != len(r.Inside) || !all && len(r.Spans) != 1 {
			t.Fatalf("%+v", r)
		}
		was, is := 0, 0
		for i, s := range r.Spans {
			in := r.Inside[i]
			if s.Start < was || s.End < s.Start || in.Start < is || in.End < in.Start || text[was:s.Start] != r.Text[is:in.Start] {
				t.Fatalf("span %d: %+v", i, r)
			}
			if want := 1 + strings.Count(text[:s.Start], "\n"); s.StartLine != want || s.EndLine < want {
				t.Fatalf("span %d: lines %+v, want from %d", i, s, want)
			}
			if want := 1 + strings.Count(r.Text[:in.Start], "\n"); in.StartLine != want || in.EndLine < want {
				t.Fatalf("inside %d: lines %+v, want from %d", i, in, want)
			}
			was, is = s.End, in.End
		}
		if text[was:] != r.Text[is:] {
			t.Fatalf("the rest differs: %+v", r)
		}
		// An exact, unique match is what everyone agrees on.
		if !strings.Contains(text+old+new, "\r") && strings.Contains(text, old) {
			if want := strings.ReplaceAll(text, old, new); r.Stage != "simple" || r.Text != want {
				t.Fatalf("%s: got %q, want %q", r.Stage, r.Text, want)
			}
		}
	})
}

// Where we replace something OpenCode would refuse as ambiguous, we would be guessing.
func FuzzNoBolderThanOpenCode(f *testing.F) {
	f.Add("  k()\n\tk()\n", "    k()", false)
	f.Add("s\na 1\ne\ns\na 2\ne\n", "s\na 3\ne", false)
	f.Add("k \n  k\n", "k  ", true)
	f.Fuzz(func(t *testing.T, text, old string, all bool) {
		if strings.Contains(text+old, "\r") || len(text)+len(old) > 400 || !utf8.ValidString(text) || !utf8.ValidString(old) {
			return
		}
		_, kind := openCode(text, old, "NEW", all)
		r, err := Apply(text, old, "NEW", all)
		if err == nil && (kind == Multiple || kind == Oversize) {
			t.Fatalf("OpenCode says %s, we did %+v", kind, r)
		}
	})
}
