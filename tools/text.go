package tools

import "strings"

// Cut shortens a text to at most n bytes, never inside a character, and marks the cut with "…" (3 bytes beyond n).
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Name replaces every character that some provider refuses in a tool's name by "_"; left are a–z, A–Z, 0–9, "_" and "-".
func Name(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
}
