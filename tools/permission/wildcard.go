package permission

import (
	"os"
	"runtime"
	"strings"
	"unicode/utf8"
)

// Match reports whether a wildcard pattern covers the whole of text. `*` stands for any run of characters, including
// none, "/" and line ends; `?` for exactly one character; a pattern that ends in " *" also covers the text before the blank alone
// ("ls *" covers "ls"). A leading ~ or $HOME is the home directory, and backslashes count as "/" on both sides. Upper and lower case
// differ, except on Windows and macOS.
func Match(pattern, text string) bool {
	return match(slashed(expandHome(pattern, homeDir)), slashed(text))
}

// match is Match for patterns and texts that are already slashed and have their home folder expanded.
func match(pattern, text string) bool {
	if short, ok := strings.CutSuffix(pattern, " *"); ok && glob(short, text) {
		return true
	}
	return glob(pattern, text)
}

// glob is the usual two-pointer match: on a mismatch only the latest star takes one character more, so the time is at most
// len(pattern)·len(text). Backtracking over all stars would take exponential time, and patterns come from projects.
func glob(pattern, text string) bool {
	p, t := 0, 0
	star, from := -1, 0 // the latest star, and where the text after its run begins
	for t < len(text) {
		if p < len(pattern) {
			switch c := pattern[p]; {
			case c == '*':
				star, from = p, t
				p++
				continue
			case c == '?':
				_, n := utf8.DecodeRuneInString(text[t:])
				p, t = p+1, t+n
				continue
			case c == text[t]:
				p, t = p+1, t+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, n := utf8.DecodeRuneInString(text[from:])
		from += n
		p, t = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// expandHome replaces ~, ~/…, $HOME and $HOME/… at the start of a pattern; ~name and $HOMEX stay.
func expandHome(pattern string, home func() string) string {
	for _, mark := range [...]string{"~", "$HOME"} {
		rest, ok := strings.CutPrefix(pattern, mark)
		if !ok || rest != "" && rest[0] != '/' && rest[0] != '\\' {
			continue
		}
		if h := home(); h != "" {
			return strings.TrimRight(h, `/\`) + rest
		}
	}
	return pattern
}

// homeDir is the home folder, empty when the system does not say: then a pattern with ~ matches only a literal ~.
func homeDir() string {
	h, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return h
}

// slashed makes patterns from Windows and Unix the same, and on Windows and macOS, whose file systems ignore letter case, it makes all letters small:
// else .ENV would be a way around a rule about .env. On Unix a backslash in a name counts as "/" too, in patterns and texts alike, so
// a pattern may match a name that it does not spell.
func slashed(s string) string { return spelling(s, ignoresCase) }

// ignoresCase is whether names that differ in letter case only are usually one file here.
const ignoresCase = runtime.GOOS == "windows" || runtime.GOOS == "darwin"

func spelling(s string, anyCase bool) string {
	if s = strings.ReplaceAll(s, `\`, "/"); anyCase {
		s = strings.ToLower(s)
	}
	return s
}
