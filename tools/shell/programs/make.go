package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// makeWords looks at NAME=value words of make, whose values become parts of commands, and at makefiles from a pipe.
// The makefile itself is the project's, so targets are not looked at; a value on the command line comes from the model and goes
// into the commands of the makefile as it is.
func makeWords(name string, c *scan.Visit) {
	args := c.Args[1:]
	for i, a := range args {
		if file := strings.TrimPrefix(a.Text, "-f"); strings.HasPrefix(a.Text, "-f") && fromPipe(file) || i > 0 && a.Text != "--" &&
			fromPipe(a.Text) || strings.HasSuffix(a.Text, "=-") {
			c.Opaque(name + " takes its makefile from a pipe")
			c.NoGrant = true
		}
		// A variable of make's that names a program is judged like the one in the environment.
		if variable, val, ok := strings.Cut(a.Text, "="); ok && (variable == "CC" || variable == "CXX" || variable == "LD" || variable == "AR") {
			c.Sets(variable, []scan.Value{scan.Literal(val)})
		}
		v, sure := a.One()
		key, val, ok := strings.Cut(v, "=")
		if !sure || !ok || strings.HasPrefix(key, "-") {
			continue
		}
		// make expands $(shell …) while it reads the value, and the shell sees the rest when a recipe uses it.
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

// fromPipe reports a file name that means a descriptor which is already open.
// A makefile from there is no file of the project, and this analysis cannot read it.
func fromPipe(file string) bool {
	return file == "-" || file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}
