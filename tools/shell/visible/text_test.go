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

func TestPrintableSpellsOutWhatActsOnAScreen(t *testing.T) {
	for in, want := range map[string]string{
		"a\u202e\u2066cba":             "a‹U+202E›‹U+2066›cba",
		"\u200f\u061c\ufeff\u200b":     "‹U+200F›‹U+061C›‹U+FEFF›‹U+200B›",
		"line\u2028line\u2029":         "line‹U+2028›line‹U+2029›",
		"hid\U000e0041\U000e0100den":   "hid‹U+E0041›‹U+E0100›den",
		"\x1b[2J\u009b31m\x00\x7f\b\r": "‹U+001B›[2J‹U+009B›31m‹U+0000›‹U+007F›‹U+0008›‹U+000D›",
		"crlf\r\nkept\tapart\n":        "crlf\nkept\tapart\n",
		"❤️ 👩‍🔬 日本語　です naïve — ок":     "❤️ 👩‍🔬 日本語　です naïve — ок",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}
