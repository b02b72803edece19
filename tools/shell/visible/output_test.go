package visible

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOutputIsTheTextThatAScreenEndsWith(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                            "plain\ttext\n",
		"tilde~ delete\x7f bell\a null\x00.":       "tilde~ delete bell null.",
		"\x1b[31mred\x1b[0m \x1b[1;38;5;9mbold":    "red bold",
		"10 %\r50 %\r100 %\n":                      "100 %\n",
		"first\n10 %\r100 %\nlast\r\n":             "first\n100 %\nlast\n",
		"crlf\r\nby a terminal\r\r\n.":             "crlf\nby a terminal\n.",
		"cut off\r":                                "cut off",
		"a\b\bN\bNa\bame":                          "Name",
		"x\n\b\by":                                 "x\ny", // not over the beginning of a line
		"é\b\u00e8 naïve 日本\b語":                    "è naïve 日語",
		"spin |\b/\b-\b done":                      "spin  done",
		"invalid \xff\xfe, cut \xe6\x97":           "invalid \ufffd\ufffd, cut \ufffd\ufffd",
		"C1 \u0080\u009b31m\u009f, not \u00a0.":    "C1 31m, not \u00a0.",
		"\ufffd is a character":                    "\ufffd is a character",
		"\x1b]0;title\x07 \x1b]8;;http://x\x1b\\a": " a",
		"\x1b]never ended\nnext":                   "\nnext",
		"\x1bPdata\x1b[1mbold":                     "bold",
		"\x1b]ends the output":                     "",
		"\x1b(B\x1b)0\x1b#8\x1b%G\x1b F.":          ".",
		"\x1b7\x1b8\x1bM.":                         ".",
		"\x1b[12":                                  "",
		"\x1b[@at \x1b[~tilde \x1b[1\x7fdel":       "at tilde el",
		"\x1b[2 q\x1b[!p.":                         ".",
		"\x1b[3\x80m \x80.":                        "\ufffdm \ufffd.",
		"\x1b[0m\ttab":                             "\ttab",
		"\x1b":                                     "",
		"\x1b(":                                    "",
		"\x1b[1\x01;31mnot a sequence":             ";31mnot a sequence",
		"\x1b[3é":                                  "é",
		"\x1b[@\x1b[~.":                            ".",
	} {
		if got := Output([]byte(in)); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

// Whatever a program writes, the model and the person get text: valid UTF-8 without a character that moves the cursor. Output that is such
// text stays as it is.
func TestOutputHasNoControls(t *testing.T) {
	pieces := []string{"\x1b", "\x1b[", "\x1b]", "\x1b\\", "\r", "\n", "\b", "\t", "\a", "\x7f", "\x00", "\u009b", "\xff", "\xe6", "é", "日", "a", "1;31m", " ", "(", "~"}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var in strings.Builder
		for range r.IntN(12) {
			in.WriteString(pieces[r.IntN(len(pieces))])
		}
		got := Output([]byte(in.String()))
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }) {
			t.Fatalf("%q became %q", in.String(), got)
		}
		if again := Output([]byte(got)); again != got {
			t.Fatalf("%q became %q and then %q", in.String(), got, again)
		}
	}
}

// A command with a character that a person cannot see, or takes for another, is told from a plain one.
func TestDeceptiveCommands(t *testing.T) {
	for command, says := range map[string]string{
		"git status\n\tls -l | sort": "", "git commit -m '日本語 naïve — ок ❤'": "", "echo привет": "",
		"ls\r\n": "carriage return", "ls \x1b[2K": "U+001B", "rm\x7f x": "U+007F", "a\u0085b": "U+0085",
		"ls \u202egpj.x": "invisible character U+202E", "cat a\u200bb": "U+200B", "x\ue000": "U+E000", "a\u034fb": "U+034F", "\u3164ls": "U+3164", "a\ufe0fb": "U+FE0F",
		"a\ufe00b": "U+FE00", "a\u180bb": "U+180B", "a\u180fb": "U+180F", "x\U000e0000": "U+E0000", "x\U000e0fff": "U+E0FFF", "a\u2028b": "U+2028",
		"ls\u00a0-l": "looks like a blank", "ls\u2800-l": "U+2800", "ls\u3000-l": "U+3000",
		"\u0441url x": "mixes scripts", "c\uff55rl": "mixes scripts", "l\u0455": "mixes scripts",
	} {
		if got := Deceptive(command); says == "" && got != "" || !strings.Contains(got, says) {
			t.Errorf("%q: %q, want %q", command, got, says)
		}
	}
}
