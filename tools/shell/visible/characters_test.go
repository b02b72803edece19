package visible

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// from lists the characters of ranges, each given by its ends.
func from(ends ...rune) map[rune]bool {
	set := map[rune]bool{}
	for i := 0; i < len(ends); i += 2 {
		for r := ends[i]; r <= ends[i+1]; r++ {
			set[r] = true
		}
	}
	return set
}

// characters are those that a text can have, but for most of the Chinese and Korean ones and planes that hold nothing else.
func characters(yield func(rune) bool) {
	for _, ends := range [][2]rune{{0, 0x33FF}, {0x9FFF, 0xAC01}, {0xD7A0, 0xD7FF}, {0xE000, 0xE001}, {0xF8FF, 0x11000}, {0x1BC00, 0x1BD00}, {0x1D000, 0x1F000}, {0xDFFFF, 0xE1001}, {0xF0000, 0xF0001}, {0x10FFFF, 0x10FFFF}} {
		for r := ends[0]; r <= ends[1]; r++ {
			if !yield(r) {
				return
			}
		}
	}
}

func spelled(r rune) string { return fmt.Sprintf("‹U+%04X›", r) }

// In an approval prompt every character that takes no space, moves the others or passes for a blank is spelled out, and in a command it is
// deceptive. No other one is, alone among letters of its script.
func TestEveryCharacterThatCannotBeSeen(t *testing.T) {
	fillers := from(0x034F, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180F, 0x2028, 0x2029, 0x2800, 0x2800, 0x3164, 0x3164, 0xFE00, 0xFE0F, 0xFFA0, 0xFFA0, 0xFFFD, 0xFFFD, 0xE0000, 0xE0FFF)
	for r := range characters {
		want := fillers[r] || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) && r != '\n' && r != '\t' || r > 0x7f && unicode.IsSpace(r)
		in := string([]rune{'日', r, '日'})
		text := in
		if want {
			text = "日" + spelled(r) + "日"
		}
		got := Text(in)
		if !want && got == "日"+string(r)+spelled(r)+"日" {
			continue // it can be seen, and looks like syntax
		}
		if got != text {
			t.Errorf("%U: %q", r, got)
		}
		if deceptive := Deceptive(in) != ""; deceptive != (want && r != 0xFFFD) {
			t.Errorf("%U: deceptive %t", r, deceptive)
		}
	}
}

// In output and files only what acts on a screen is spelled out: emoji and unusual blanks are ordinary there.
func TestEveryCharacterThatActs(t *testing.T) {
	others := from(0x2028, 0x2029, 0xE0000, 0xE0FFF)
	for r := range characters {
		want := "a" + string(r) + "b"
		if (others[r] || unicode.In(r, unicode.Cc, unicode.Cf)) && r != '\n' && r != '\t' && r != 0x200D {
			want = "a" + spelled(r) + "b"
		}
		if got := Printable("a" + string(r) + "b"); got != want {
			t.Errorf("%U: %q", r, got)
		}
	}
}

// A letter of another script that passes for a Latin one is spelled out in a word with Latin letters, and only there.
func TestEveryLetterThatPassesForALatinOne(t *testing.T) {
	wide := from(0xFF00, 0xFFEF, 0x1D400, 0x1D7FF)
	for r := range characters {
		if r < 0x80 || !unicode.IsLetter(r) && !unicode.IsMark(r) || hidden(r) {
			continue
		}
		in, want := "x"+string(r)+"l", "x"+string(r)+"l"
		mixes := wide[r] || unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu)
		if mixes {
			want = "x" + string(r) + spelled(r) + "l"
		}
		if got := Text(in); got != want {
			t.Errorf("%U: %q", r, got)
		}
		if got := strings.Contains(Deceptive(in), "mixes scripts"); got != mixes {
			t.Errorf("%U: deceptive %t", r, got)
		}
		for _, apart := range []string{string(r) + " l", "l-" + string(r), string([]rune{r, r}), "l1" + string(r)} {
			if got := Text(apart); got != apart {
				t.Errorf("%U in a word of its own: %q", r, got)
			}
		}
	}
	for in, want := range map[string]string{
		"\u0441url привет":         "\u0441‹U+0441›url привет",
		"привет \u0441url":         "привет \u0441‹U+0441›url",
		"cu\u0433l, ls; \u0455h":   "cu\u0433‹U+0433›l, ls; \u0455‹U+0455›h",
		"\u00e9\u0441\u0301 é\n":   "\u00e9\u0441‹U+0441›\u0301 é\n",
		"\u0441\u0443, cu":         "\u0441\u0443, cu",
		"\U0001d41euro":            "\U0001d41e‹U+1D41E›uro",
		"\uff43\uff55\uff52\uff4c": "\uff43\uff55\uff52\uff4c",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

// What looks like a slash or a semicolon is spelled out everywhere, wide signs beside ASCII, and dashes where an option begins.
func TestEveryCharacterThatLooksLikeSyntax(t *testing.T) {
	everywhere, wide, dashes := []rune{0x037E, 0x2044, 0x2215, 0x2571, 0x29F8, 0xFE54, 0xFE68}, from(0xFF01, 0xFF5E, 0xFF5F, 0xFF60), from(0x2010, 0x2015, 0x2212, 0x2212, 0xFE58, 0xFE58, 0xFE63, 0xFE63)
	for r := range characters {
		if r < 0x80 || hidden(r) || unicode.IsSpace(r) || unicode.IsLetter(r) || unicode.IsMark(r) || r == 0x2800 || r == 0xFFFD {
			continue
		}
		sign, dash, always := wide[r] && !unicode.IsDigit(r), dashes[r], slices.Contains(everywhere, r)
		for _, c := range []struct {
			before, after string
			want          bool
		}{
			{"日", "日", always}, {"日", "", always}, {"\u0080", "\u0080", always},
			{"日", "a", always || sign}, {"日", "\x7e", always || sign}, {"a", "日", always || sign}, {"\x7e", "", always || sign},
			{"", "日", always || sign || dash}, {"a ", "f", always || sign || dash}, {"a\t", "日", always || sign || dash}, {"a\n", "f", always || sign || dash},
			{"a ", " f", always || sign}, {"a ", "", always || sign}, {"日 ", "\u00e9", always || sign || dash},
		} {
			if got := strings.Contains(Text(c.before+string(r)+c.after), string(r)+spelled(r)); got != c.want {
				t.Errorf("%U between %q and %q: %t", r, c.before, c.after, got)
			}
		}
	}
}
