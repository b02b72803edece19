package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// exact reports a word of one dash and several letters that is an option of the table: -include, -maxdepth.
func (s *spec) exact(key string) bool {
	for _, o := range s.options {
		if o.name == key && len(key) > 2 && key[1] != '-' {
			return true
		}
	}
	return false
}

// driverOption looks at an option of a compiler: a whole word with its value behind it, behind "=" or glued to it;
// -Wl, -Wp and -Wa hand theirs on to another program. skip is how many of the next arguments it took.
// The longest name that fits wins for glued values: -isystem before -i.
func driverOption(s *spec, a scan.Word, t string, next []scan.Word, take func(option, scan.Word), c *scan.Visit) (skip int) {
	for _, on := range [...][2]string{{"-Wl,", "ld"}, {"-Wp,", "-Wp"}, {"-Wa,", "as"}} {
		if rest, ok := strings.CutPrefix(t, on[0]); ok {
			inner := c.With([]scan.Word{c.Args[0]})
			for part := range strings.SplitSeq(rest, ",") {
				inner.Args = append(inner.Args, scan.Plain(part))
			}
			applySpec(inner, recordOf(c, on[1]).spec)
			return 0
		}
	}
	key, _, has := strings.Cut(t, "=")
	o, ok := s.option(key)
	if !ok && strings.HasPrefix(key, "--") {
		o, ok = s.option(key[1:]) // linkers take both
	}
	switch {
	case ok && has:
		take(o, a.Cut("="))
		return 0
	case ok && o.glued:
		return 0
	case ok && len(next) > 0:
		take(o, next[0])
		return 1
	case ok:
		return 0
	}
	var glued option
	for _, o := range s.options {
		if len(o.name) > len(glued.name) && strings.HasPrefix(t, o.name) && o.name[1] != '-' && !o.glued {
			glued = o
		}
	}
	if glued.name != "" {
		take(glued, a.From(len(glued.name)))
		return 0
	}
	if !a.Known() {
		ofKind(kindGeneric, a, c)
	}
	for part := range strings.FieldsFuncSeq(t, func(r rune) bool { return r == '=' || r == ',' }) {
		c.TouchIfPath(scan.Plain(part), scan.Write)
	}
	if writesBehind(key) && !has && len(next) > 0 && !strings.HasPrefix(next[0].Text, "-") {
		c.TouchIfPath(next[0], scan.Write)
	}
	return 0
}

// writesBehind reports an option that nobody knows but whose name says that the next word is written.
// A wrong guess costs a question.
func writesBehind(option string) bool {
	low := strings.ToLower(option)
	for _, word := range [...]string{"out", "dest", "target-dir", "log-file", "logfile", "trace", "dump", "report", "save", "write", "export",
		"cache", "tmp", "temp", "prefix", "record", "snapshot", "artifact"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}

// onlyReads reports a call of a program that may change files and does not with these options.
// WritesWith and ReadsWith are opposite claims: by the first a formatter only prints without -w, by the second it only reports with
// --check.
func onlyReads(r *Record, args []scan.Word) bool {
	switch {
	case r.WritesWith != nil:
		return !anyOption(args, *r.WritesWith, *r.WritesWith != "")
	case r.ReadsWith != "":
		return anyOption(args, r.ReadsWith, false)
	}
	return false
}

// anyOption reports one of the options among the arguments. unknown: what cannot be read off the command may be one.
func anyOption(args []scan.Word, options string, unknown bool) bool {
	for _, a := range args {
		if s, ok := a.One(); ok && len(s) > 1 && s[0] == '-' && optionIn(s, options) || !a.Known() && unknown {
			return true
		}
	}
	return false
}

// readKinds are the kinds of a program's words when it changes nothing.
// It returns a copy: words belong to the record.
func readKinds(words []kind) []kind {
	out := make([]kind, len(words))
	for i, k := range words {
		switch k {
		case kindWrite:
			k = kindRead
		case kindGeneric:
			k = kindLook
		}
		out[i] = k
	}
	return out
}
