package patch

import "strings"

// diffName reads what follows "--- " or "+++ ": a name, quoted or not, and the time after a tab. Git writes a tab after names with blanks
// too, without a time.
func diffName(s string) (name, time string) {
	s = strings.TrimRight(s, "\r")
	if strings.HasPrefix(s, `"`) {
		name, rest := quoted(s)
		return name, strings.TrimSpace(rest)
	}
	name, time, _ = strings.Cut(s, "\t")
	return strings.TrimRight(name, " "), strings.TrimSpace(time)
}

// epoch reports whether a time is that of a file that does not exist: diff -N writes the beginning of 1970 for it, in local time, which
// is still 1969 west of Greenwich.
func epoch(time string) bool {
	return strings.HasPrefix(time, "1970-01-01 ") || strings.HasPrefix(time, "1969-12-31 ")
}

// strip removes a/ and b/ (or Git's mnemonic letters) from a pair of names, if both have them and it makes sense: without git they must
// be a and b, or lead to the same name, because a project may have a folder named "a". /dev/null stays.
func strip(old, new string, git bool) (string, string) {
	o, oldOK := prefixed(old)
	n, newOK := prefixed(new)
	switch {
	case old == "/dev/null" && newOK && (git || new[0] == 'b'):
		return old, n
	case new == "/dev/null" && oldOK && (git || old[0] == 'a'):
		return o, new
	case oldOK && newOK && old[0] != new[0] && (o == n || git || old[0] == 'a' && new[0] == 'b'):
		return o, n
	}
	return old, new
}

// prefixed cuts a one-letter folder off: a and b, git's mnemonic prefixes c (commit), i (index), o (object), w (working
// tree), and 1 and 2 of git diff --no-index.
func prefixed(name string) (rest string, ok bool) {
	if len(name) > 2 && name[1] == '/' && strings.IndexByte("abciow12", name[0]) >= 0 {
		return name[2:], true
	}
	return name, false
}

// headerNames reads "a/x b/x" of a diff --git line. It is needed only where no other line names the file (a change of mode, an empty
// file), and then both names are the same.
func headerNames(s string) (old, new string) {
	s = strings.TrimRight(s, "\r")
	if strings.HasPrefix(s, `"`) {
		name, rest := quoted(s)
		return strip(name, unquote(strings.TrimPrefix(rest, " ")), true)
	}
	if i := strings.Index(s, ` "`); i > 0 && strings.HasSuffix(s, `"`) {
		return strip(s[:i], unquote(s[i+1:]), true)
	}
	// Names may hold blanks, and nothing says where the first one ends but that both are the same.
	for i := range len(s) {
		if s[i] != ' ' {
			continue
		}
		if o, n := strip(s[:i], s[i+1:], true); o == n {
			return o, n
		}
	}
	return "", ""
}

// unquote is the name in git's quotes, or the text itself.
func unquote(s string) string {
	s = strings.TrimRight(s, "\r")
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	name, _ := quoted(s)
	return name
}

// quoted reads a name in C quotes, with octal escapes for bytes, and returns what follows. Git writes names so when
// they have bytes outside of ASCII (core.quotePath) or control characters.
func quoted(s string) (name, rest string) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:]
		case c == '\\' && i+1 < len(s):
			i++
			if k := strings.IndexByte(`abtnvfr`, s[i]); k >= 0 {
				b.WriteByte("\a\b\t\n\v\f\r"[k])
				continue
			}
			if s[i] < '0' || s[i] > '7' {
				b.WriteByte(s[i])
				continue
			}
			// One to three octal digits are one byte; a character outside of ASCII is several of these.
			v := 0
			end := min(i+3, len(s))
			for ; i < end && s[i] >= '0' && s[i] <= '7'; i++ {
				v = v<<3 | int(s[i]-'0')
			}
			i--
			b.WriteByte(byte(v))
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
