package programs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// opaqueWords looks at words in which a program, a library or options may stand that nobody expects there: ssh -o
// ProxyCommand=…, java -XX:OnError=…, gcc @file. The record lists them.
// The record's Opaque and Except are regular expressions over whole words, and over an option and the next word joined by "=", as an
// option's value may stand in either place. The value is named for rules that deny.
func opaqueWords(r *Record, c *scan.Visit) {
	if len(r.opaque) == 0 {
		return
	}
	text := func(a scan.Word) string {
		if v, ok := a.One(); ok {
			return v
		}
		return a.Text
	}
	for i, a := range c.Args[1:] {
		s := text(a)
		matches := matchesAny(r.opaque, s) && !matchesAny(r.except, s)
		if !matches && len(s) > 1 && s[0] == '-' && !strings.Contains(s, "=") && i+2 < len(c.Args) {
			s += "=" + text(c.Args[i+2])
			matches = matchesAny(r.opaque, s) && !matchesAny(r.opaque, text(c.Args[i+2])) && !matchesAny(r.except, s)
		}
		if !matches {
			continue
		}
		key, val, _ := strings.Cut(s, "=")
		if strings.HasPrefix(s, "@") {
			c.Opaque(c.Name + " takes options from a file")
			c.Touch(scan.Plain(s[1:]), scan.Read)
			continue
		}
		because := "may run or load something else"
		if r.Because != "" {
			because = r.Because
		}
		c.Opaque(c.Name + " " + key + " " + because)
		c.NoGrant = true
		c.Salvage(val)
	}
}

// matchesAny reports that one of the expressions matches a part of s.
func matchesAny(list []*regexp.Regexp, s string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(s) })
}
