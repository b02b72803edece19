package programs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// opaqueWords looks at words in which a program, a library or options may stand that nobody expects there: ssh -o
// ProxyCommand=…, java -XX:OnError=…, gcc @file. The record lists them.
// The record's Opaque and Except are regular expressions over whole words; the value behind "=" is named for rules that deny.
func opaqueWords(r *Record, c *scan.Visit) {
	for _, a := range c.Args[1:] {
		s := a.Text
		if v, ok := a.One(); ok {
			s = v
		}
		if !matchesAny(r.opaque, s) || matchesAny(r.except, s) {
			continue
		}
		key, val, _ := strings.Cut(s, "=")
		if strings.HasPrefix(s, "@") {
			c.Opaque(c.Name + " takes options from a file")
			c.Touch(scan.Plain(s[1:]), scan.Read)
			continue
		}
		c.Opaque(c.Name + " " + key + " may run or load something else")
		c.NoGrant = true
		c.Salvage(val)
	}
}

// matchesAny reports that one of the expressions matches a part of s.
func matchesAny(list []*regexp.Regexp, s string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(s) })
}
