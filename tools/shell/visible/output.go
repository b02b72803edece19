package visible

import (
	"bytes"
	"unicode/utf8"
)

// Output makes output readable for a model: escape sequences and control characters are taken out, a line that was
// redrawn with carriage returns keeps its last state, invalid UTF-8 becomes U+FFFD. Otherwise a progress bar could fill the
// model's context, and an escape sequence could hide from the person text that the model reads. Cursor movements are ignored,
// so the result may differ from what a terminal shows.
func Output(p []byte) string {
	// Most output is plain ASCII, which needs no change.
	plain := true
	for _, b := range p {
		if b < ' ' && b != '\n' && b != '\t' || b >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return string(p)
	}
	out := make([]byte, 0, len(p))
	line := 0 // index in out at which the present line begins
	for i := 0; i < len(p); {
		switch b := p[i]; {
		case b == 0x1b:
			i += EscapeLen(p[i:])
		case b == '\n':
			out = append(out, b)
			i++
			line = len(out)
		case b == '\r':
			// CR CR LF, into which a pseudo-terminal turns a program's CRLF, is only a line end.
			for i < len(p) && p[i] == '\r' {
				i++
			}
			// A carriage return alone goes back to the start of the line, and what follows overwrites it.
			if i < len(p) && p[i] != '\n' {
				out = out[:line]
			}
		case b == '\b':
			if len(out) > line {
				// A backspace removes the last character of the line: spinners and man(1) overwrite characters in this way.
				_, n := utf8.DecodeLastRune(out[line:])
				out = out[:len(out)-n]
			}
			i++
		case b == '\t' || b >= ' ' && b < 0x7f:
			out = append(out, b)
			i++
		// Other control characters are removed.
		case b < 0x80:
			i++
		default:
			r, n := utf8.DecodeRune(p[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				out = utf8.AppendRune(out, utf8.RuneError)
			case r >= 0x80 && r < 0xa0: // C1 controls
			default:
				out = append(out, p[i:i+n]...)
			}
			i += n
		}
	}
	return string(out)
}

// EscapeLen is the length in bytes of the escape sequence at the start of p (ECMA-48, section 5, and xterm's control sequences). p
// must begin with ESC. An incomplete sequence takes all of p, but a newline ends a string, so that a stray ESC ] does not
// swallow the rest of the output.
func EscapeLen(p []byte) int {
	if len(p) < 2 {
		return len(p)
	}
	switch p[1] {
	case '[': // CSI: parameters, then one final byte
		for i := 2; i < len(p); i++ {
			if p[i] >= 0x40 && p[i] <= 0x7e {
				return i + 1
			}
			if p[i] < 0x20 || p[i] >= 0x80 {
				return i
			}
		}
		return len(p)
	case ']', 'P', 'X', '^', '_': // strings, ended by BEL or ESC \
		rest := p[2:]
		for i, b := range rest {
			if b == 0x07 {
				return i + 3
			}
			if b == 0x1b {
				if bytes.HasPrefix(rest[i:], []byte("\x1b\\")) {
					return i + 4
				}
				return i + 2
			}
			if b == '\n' {
				return i + 2 // not ended: leave the rest of the output alone
			}
		}
		return len(p)
	// A character set, DECALN, the coding system, 7-bit or 8-bit controls: one more byte.
	case '(', ')', '*', '+', '#', '%', ' ':
		return min(3, len(p))
	}
	return 2
}
