package visible

import "testing"

func TestVisibleShowsWhatLooksLikeSyntax(t *testing.T) {
	for in, want := range map[string]string{
		"rm a；rm b":                 "rm a；‹U+FF1B›rm b",
		"rm ‐rf x":                  "rm ‐‹U+2010›rf x",
		"git push —force":           "git push —‹U+2014›force",
		"cat a∕b":                   "cat a∕‹U+2215›b",
		"ls ｜ sh":                   "ls ｜‹U+FF5C› sh",
		"git commit -m '修复；更新'":     "git commit -m '修复；更新'",
		"git commit -m 'a – b’s x'": "git commit -m 'a – b’s x'",
		"echo naïve — yes":          "echo naïve — yes",
		"rm \xff":                   "rm ‹U+FFFD›",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}
