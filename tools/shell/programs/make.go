package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// makeWords looks at NAME=value words of make, whose values become parts of commands, and at makefiles from a pipe.
func makeWords(name string, c *scan.Visit) {
	args := c.Args[1:]
	for i, a := range args {
		if file := strings.TrimPrefix(a.Text, "-f"); strings.HasPrefix(a.Text, "-f") && fromPipe(file) || i > 0 && a.Text != "--" &&
			fromPipe(a.Text) || strings.HasSuffix(a.Text, "=-") {
			c.Opaque(name + " takes its makefile from a pipe")
			c.NoGrant = true
		}
		if variable, val, ok := strings.Cut(a.Text, "="); ok && (variable == "CC" || variable == "CXX" || variable == "LD" || variable == "AR") {
			c.Sets(variable, []scan.Value{scan.Literal(val)})
		}
		v, sure := a.One()
		key, val, ok := strings.Cut(v, "=")
		if !sure || !ok || strings.HasPrefix(key, "-") {
			continue
		}
		if strings.ContainsAny(val, "$`;|&<>\n(") {
			c.Opaque(name + " is given " + key + ", in which commands may stand")
			c.NoGrant = true
		}
		for word := range strings.FieldsSeq(val) { // a word may become one of a command
			c.TouchIfPath(scan.Plain(word), scan.Write)
		}
		if strings.HasSuffix(key, "FLAGS") && riskyFlags(val) {
			c.Opaque(name + " " + key + " may run or load something else")
			c.NoGrant = true
		}
	}
}

// wgetSettings looks at wget -e setting=value: output_document=../x.
func wgetSettings(c *scan.Visit) {
	for i, a := range c.Args[1:] {
		if prev := c.Args[i].Text; prev == "-e" || prev == "--execute" || strings.HasPrefix(a.Text, "--execute=") {
			_, val, _ := strings.Cut(strings.TrimPrefix(a.Text, "--execute="), "=")
			c.TouchIfPath(scan.Plain(strings.TrimSpace(val)), scan.Write)
		}
	}
}
