package diff

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Context is the number of unchanged lines around a change in a unified diff, as in diff -u and Git. patch(1) needs them to find a hunk
// whose lines have moved.
const Context = 3

// Unified is the difference of two texts as unified text, "" when they are equal.
func Unified(oldName, newName, old, new string) string {
	if old == new {
		return ""
	}
	return Compute(old, new).Unified(oldName, newName)
}

// Unified prints the script with Context lines of context. Names are quoted as Git quotes them; a caller gives /dev/null for a file that
// does not exist.
func (s *Script) Unified(oldName, newName string) string {
	return s.UnifiedStart(oldName, newName, math.MaxInt)
}

// UnifiedStart is the beginning of Unified: it ends with the first line after which there are more than most bytes. Of a large change the
// rest would only be printed to be cut off.
func (s *Script) UnifiedStart(oldName, newName string, most int) string {
	if len(s.Edits) == 0 {
		return ""
	}
	var sb strings.Builder
	sb.WriteString("--- " + quote(oldName) + "\n+++ " + quote(newName) + "\n")
	for i := 0; i < len(s.Edits) && sb.Len() <= most; {
		j := i + 1
		for j < len(s.Edits) && s.Edits[j].A0-s.Edits[j-1].A1 <= 2*Context {
			j++
		}
		s.hunk(&sb, s.Edits[i:j], most)
		i = j
	}
	return sb.String()
}

// hunk prints edits as one hunk. Edits at most 2*Context lines apart share a hunk: in two hunks their context lines would occur twice,
// and hunks must not overlap.
func (s *Script) hunk(sb *strings.Builder, edits []Edit, most int) {
	first, last := edits[0], edits[len(edits)-1]
	back := min(Context, first.A0)
	on := min(Context, len(s.A)-last.A1)
	fmt.Fprintf(sb, "@@ -%s +%s @@\n", span(first.A0-back, last.A1+on), span(first.B0-back, last.B1+on))
	at := first.A0 - back
	for _, e := range edits {
		put(sb, ' ', s.A[at:e.A0], most)
		put(sb, '-', s.A[e.A0:e.A1], most)
		put(sb, '+', s.B[e.B0:e.B1], most)
		at = e.A1
	}
	put(sb, ' ', s.A[at:at+on], most)
}

// span is the range of a hunk header for the 0-based lines [from,to). As in POSIX diff a length of 1 is left out, and an
// empty range names the line before it: from itself, 1-based.
func span(from, to int) string {
	switch to - from {
	case 0:
		return strconv.Itoa(from) + ",0"
	case 1:
		return strconv.Itoa(from + 1)
	}
	return strconv.Itoa(from+1) + "," + strconv.Itoa(to-from)
}

// put writes lines with their mark, and none once there are more than most bytes. The note about a missing final newline is that of GNU
// diff and Git; without it patch(1) would add the newline.
func put(sb *strings.Builder, c byte, lines []string, most int) {
	for _, l := range lines {
		if sb.Len() > most {
			return
		}
		sb.WriteByte(c)
		sb.WriteString(l)
		if l[len(l)-1] != '\n' {
			sb.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// quote writes a name as Git does: in quotes with escapes when it has control characters, quotes, backslashes or bytes that are not
// UTF-8, and followed by a tab when it has a blank, so that patch sees where it ends. A file's name may be chosen by an attacker:
// without quoting, a newline in it could begin a hunk.
func quote(name string) string {
	odd := !utf8.ValidString(name)
	for i := 0; i < len(name) && !odd; i++ {
		odd = name[i] < ' ' || name[i] == '"' || name[i] == '\\' || name[i] == 0x7f
	}
	if !odd {
		if strings.ContainsRune(name, ' ') {
			return name + "\t"
		}
		return name
	}
	var sb strings.Builder
	sb.WriteByte('"')
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			sb.WriteByte('\\')
			sb.WriteByte(c)
		case c == '\n':
			sb.WriteString(`\n`)
		case c == '\t':
			sb.WriteString(`\t`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&sb, `\%03o`, c)
		default:
			sb.WriteByte(c)
		}
	}
	sb.WriteByte('"')
	return sb.String()
}

// ErrMismatch is returned by Apply when the lines of a patch are not in the text where the patch says they are.
var ErrMismatch = errors.New("the patch does not fit the text")

// Apply applies unified text of one file strictly: every line must be where the hunk says. Lines outside hunks, such as
// the two header lines, are skipped. It is Unified's inverse and tests it; to apply a model's patch see package patch.
// Every error wraps ErrMismatch, and then no text is returned.
func Apply(text, patch string) (string, error) {
	src := Lines(text)
	var out strings.Builder
	at := 0
	copyTo := func(n int) {
		for ; at < n; at++ {
			out.WriteString(src[at])
		}
	}
	ls := Lines(patch)
	for i := 0; i < len(ls); i++ {
		if !strings.HasPrefix(ls[i], "@@ ") {
			continue
		}
		var from, olds, news int
		if err := header(ls[i], &from, &olds, &news); err != nil {
			return "", err
		}
		if from < at || from > len(src) {
			return "", fmt.Errorf("%w: hunk %q starts outside the text (%d lines)", ErrMismatch, strings.TrimSpace(ls[i]), len(src))
		}
		copyTo(from)
		for olds > 0 || news > 0 {
			i++
			if i >= len(ls) {
				return "", fmt.Errorf("%w: the last hunk is cut off", ErrMismatch)
			}
			l := ls[i]
			body := l[1:]
			if i+1 < len(ls) && strings.HasPrefix(ls[i+1], `\`) {
				body = strings.TrimSuffix(body, "\n")
				i++
			}
			switch l[0] {
			case ' ', '-':
				if at >= len(src) || src[at] != body {
					return "", fmt.Errorf("%w: line %d", ErrMismatch, at+1)
				}
				at++
				olds--
				if l[0] == ' ' {
					out.WriteString(body)
					news--
				}
			case '+':
				out.WriteString(body)
				news--
			default:
				return "", fmt.Errorf("%w: patch line %d begins with %q", ErrMismatch, i+1, l[0])
			}
		}
	}
	copyTo(len(src))
	return out.String(), nil
}

// header reads "@@ -1,2 +3,4 @@": from is the 0-based old line, olds and news are how many lines of each side follow. A missing length
// is 1. The start on the new side is ignored, because it follows from the hunks before.
func header(l string, from, olds, news *int) error {
	f := strings.Fields(l)
	if len(f) < 4 || f[1][0] != '-' || f[2][0] != '+' {
		return fmt.Errorf("%w: bad hunk header %q", ErrMismatch, strings.TrimSpace(l))
	}
	part := func(s string) (start, n int, err error) {
		a, b, ok := strings.Cut(s[1:], ",")
		n = 1
		if start, err = strconv.Atoi(a); err == nil && ok {
			n, err = strconv.Atoi(b)
		}
		if err != nil || start < 0 || n < 0 {
			return 0, 0, fmt.Errorf("%w: bad hunk header %q", ErrMismatch, strings.TrimSpace(l))
		}
		return start, n, nil
	}
	var err error
	if *from, *olds, err = part(f[1]); err != nil {
		return err
	}
	// With an empty range the header names the line before the insertion, which is the 0-based line it goes to.
	if *olds > 0 {
		*from--
	}
	_, *news, err = part(f[2])
	return err
}
