package search

import "unicode/utf8"

// cut shortens a long line to MaxText characters that hold the match.
func (j *grepJob) cut(h hit) string {
	text := h.text
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	if len(text) <= MaxText || utf8.RuneCount(text[:min(len(text), 4*MaxText+1)]) <= MaxText {
		return string(text)
	}
	at := h.at
	if at < 0 { // ripgrep did not say where
		at = 0
		if j.show != nil {
			at, _ = j.show.find(text, 0)
		}
	}
	from := 0
	if at > MaxText/2 && utf8.RuneCount(text[:at]) >= MaxText {
		from = max(0, at-MaxText/4)
		for from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
	}
	end := from
	for range MaxText {
		if end >= len(text) {
			break
		}
		_, n := utf8.DecodeRune(text[end:])
		end += n
	}
	out := string(text[from:end])
	if from > 0 {
		out = "..." + out
	}
	if end < len(text) {
		out += "..."
	}
	return out
}
