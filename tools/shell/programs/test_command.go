package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// testCall looks at test and [: the files they ask about.
// -a and -o are also "and" and "or", so a unary operator counts only at the beginning, behind "!" or "(", or behind one of them.
func testCall(c *scan.Visit) {
	for i, a := range c.Args[1:] {
		rest := c.Args[i+2:]
		switch a.Text {
		case "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-p", "-r", "-s", "-u", "-w", "-x", "-G", "-L", "-N", "-O", "-S":
			if len(rest) > 0 && (i == 0 || c.Args[i].Text == "!" || c.Args[i].Text == "(" || c.Args[i].Text == "-a" || c.Args[i].Text == "-o") {
				c.Touch(rest[0], scan.Read)
			}
		case "-nt", "-ot", "-ef":
			if len(rest) > 0 && i > 0 {
				c.Touch(c.Args[i], scan.Read)
				c.Touch(rest[0], scan.Read)
			}
		}
	}
}
