package replace

import (
	"strings"
	"testing"
)

// Line numbers that a model copied along are removed where what is left is in the file exactly.
func TestLineNumbersAreRemoved(t *testing.T) {
	const file = " * doc\n */\npackage a\n\nfunc f() {\n\treturn 1\n}\n\n8080: web\n8081: api\n"
	for _, c := range []struct{ name, old, new, want string }{
		{"as read prints them", "00003| func f() {\n00004| \treturn 1", "00003| func f() {\n00004| \treturn 2", "\treturn 2\n"},
		{"as grep prints them", "3: func f() {\n4: \treturn 1\n5: }", "3: func f() {\n4: \treturn 2\n5: }", "\treturn 2\n"},
		{"without a blank", "3:func f() {\n4:\treturn 1\n5:}", "3:func f() {\n4:\treturn 2\n5:}", "\treturn 2\n"},
		{"a tab", "     3\tfunc f() {\n     4\t\treturn 1", "     3\tfunc f() {\n     4\t\treturn 2", "\treturn 2\n"},
		{"an arrow", "     3→func f() {\n     4→\treturn 1", "func f() {\n\treturn 2", "\treturn 2\n"},
		{"an arrow before lines of which the wanted ones begin with a blank", "1→ * doc\n2→ */\n3→package a", "1→ * docs\n2→ */", " * docs\n */\n\nfunc"},
		{"a blank behind the number in the quotation only", "1: package a\n2: \n3: func f() {", "1:package b\n2:\n3:func f() {", ""},
		{"two forms in one quotation", "3: func f() {\n4| \treturn 1", "func f() {\n\treturn 2", ""},
		{"only in the quotation", "00003| func f() {\n00004| \treturn 1", "func f() {\n\treturn 2", "\treturn 2\n"},
		{"a blank line", "00001| package a\n00002| \n00003| func f() {", "00001| package b\n00002| \n00003| func f() {", "package b\n\nfunc f"},
		{"a line break at the end", "00004| \treturn 1\n", "00004| \treturn 2\n", "\treturn 2\n}"},
		{"lines that were added", "00004| \treturn 1", "00004| \tx()\n00005| \treturn 1", "\tx()\n\treturn 1\n}"},
		{"numbers that are meant", "8080: web\n8081: api", "8080: web\n8081: rest", "8080: web\n8081: rest\n"},
		{"numbers that do not ascend", "00004| func f() {\n00003| \treturn 1", "func f() {\n\treturn 2", ""},
		{"some wanted lines with numbers", "00003| func f() {\n00004| \treturn 1", "00003| func f() {\n\treturn 2", ""},
		{"lines that the file does not have", "00003| func g() {\n00004| \treturn 1", "00003| func g() {\n00004| \treturn 2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Apply(file, c.old, c.new, false)
			if (err != nil) != (c.want == "") || !strings.Contains(r.Text, c.want) {
				t.Errorf("%q, %v", r.Text, err)
			}
			if err == nil && len(r.Text) > len(file)+10 {
				t.Errorf("%q", r.Text)
			}
		})
	}
}
