package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// makeWords analyzes the NAME=value words of make, and finds makefiles that come from a pipe. The model chooses these values, and make
// puts them into the commands of the makefile unchanged. Targets are not analyzed: the makefile belongs to the project.
func makeWords(name string, c *scan.Visit) {
	args := c.Args[1:]
	for _, a := range args {
		if file := strings.TrimPrefix(a.Text, "-f"); strings.HasPrefix(a.Text, "-f") && fromPipe(file) || fromPipe(a.Text) ||
			strings.HasSuffix(a.Text, "=-") {
			c.Opaque(name + " takes its makefile from a pipe")
			c.NoGrant = true
		}
		// A variable of make that names a program is analyzed like an environment variable of that name.
		if variable, val, ok := strings.Cut(a.Text, "="); ok && (variable == "CC" || variable == "CXX" || variable == "LD" || variable == "AR") {
			c.Sets(variable, []scan.Value{scan.Literal(val)})
		}
		v, sure := a.One()
		key, val, ok := strings.Cut(v, "=")
		if !sure || !ok || strings.HasPrefix(key, "-") {
			continue
		}
		// make itself expands $(shell …) in the value, and a shell runs the other characters when a recipe uses the value.
		if strings.ContainsAny(val, "$`;|&<>\n(") {
			c.Opaque(name + " is given " + key + ", in which commands may stand")
			c.NoGrant = true
		}
		for word := range strings.FieldsSeq(val) { // each word may become a word of a command
			c.TouchIfPath(scan.Plain(word), scan.Write)
		}
		if strings.HasSuffix(key, "FLAGS") && riskyFlags(val) {
			c.Opaque(name + " " + key + " may run or load something else")
			c.NoGrant = true
		}
	}
}

// fromPipe reports a file name that stands for an open descriptor. A makefile from there is not a file of the project, and its
// contents are not known.
func fromPipe(file string) bool {
	return file == "-" || file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}
