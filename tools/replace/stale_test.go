package replace

import (
	"strings"
	"testing"
)

// Quotations that differ from the file, each of a class of which generated edits have written a wrong text once. "refused" stands for any
// error: which one says how to quote better is tested elsewhere.
func TestStaleQuotations(t *testing.T) {
	for _, c := range []struct{ name, text, old, new, want string }{
		{"the end of what is added is not the bracket that was not quoted",
			"func pos() int {\n\treturn 0\n}\n\nfunc next() {\n}\n", "func pos() int {\n\treturn 0 }", "func pos() int {\n\treturn 0 }\n\nfunc format() {\n\tif x {\n\t\treturn\n\t}\n}", "refused"},
		{"a blank line that was not quoted is not one that is added",
			"  along with remotes in rclone.\n\nFiltering snapshots to copy\n", "    along with remotes in rclone.\nFiltering snapshots to copy", "    along with remotes in rclone.\n.. note:: It may be aborted.\n\nFiltering snapshots to copy", "refused"},
		{"of two equal brackets either has the blanks",
			"func a() error {\n\treturn nil\n}\t\n", "\treturn nil\n}\n", "\treturn nil\n}\n\nfunc b() error {\n\treturn err\n}\n", "refused"},
		{"of two blocks the one that looks like the quotation from the middle of a line",
			"first({\n  ctx, xfwd: true,\n  origin: origin,\n  secure: secure,\n})\nsecond({\n  xfwd: true,\n  secure: secure,\n})\n", "  xfwd: true,\n  origin: origin,\n  secure: secure,\n})\n", "  xfwd: true,\n  origin: origin,\n  secure: secure,\n  agent,\n})\n", "refused"},
		{"a line that goes was quoted in quite other words, and would stay",
			"import \"io\"\n\ntype (\n\t// Config of a limit.\n\tConfig struct {\n\t\tSkipper Skipper\n\n\t\tLimit string\n", "\nctx, type (\n\t// Config of a limit.\n\tConfig struct {\n\t\tSkipper Skipper\n",
			"\n// Config of a limit.\ntype Config struct {\n\tSkipper Skipper\n", "refused"},
		{"a line that goes has gone already",
			"import \"io\"\n\n// Config of a limit.\ntype Config struct {\n\tSkipper Skipper\n\n\tLimit string\n", "\n// see below\n// Config of a limit.\ntype Config struct {\n\tSkipper Skipper\n",
			"\n// Config of a limit.\ntype Config struct {\n\tSkipper Checker\n", "import \"io\"\n\n// Config of a limit.\ntype Config struct {\n\tSkipper Checker\n\n\tLimit string\n"},
		{"a part of a level is no depth",
			"version: 3\n\njobs:\n  one:\n    cmds:\n      - exit 41\n  two:\n    cmds:\n      - exit 42\n", "    cmds: \n        - exit 42 ", "    cmds: \n        - exit 42 \n\n    indirect: \n      cmds: \n        - task: direct ", "refused"},
		{"the file has tabs only, the rule for one depth leads to blanks",
			"package a\n\ntype t struct {\n\tx int\n\ty int\n\tz int\n\tw int\n}\n\nfunc (t) pos() int {\n", " type t struct {\n \tx int\n", " func f() {\n         handle()\n }\n type t struct {\n \tx int\n", "refused"},
		{"eight blanks below a line that opens a block are one level",
			"import (\n\t\"runtime\"\n\t\"strings\"\n\t\"testing\"\n\t\"time\"\n)\n", "\"runtime\"\n\"strings\"\n\"testing\"", "\"runtime\"\n\"strings\"\nfor range list {\n        handle()\n}\n\"testing\"",
			"import (\n\t\"runtime\"\n\t\"strings\"\n\tfor range list {\n\t\thandle()\n\t}\n\t\"testing\"\n\t\"time\"\n)\n"},
		{"moved by the change or written at the file's depth",
			"\n    const factory = (handler) => {\n      t.ok(handler, 'it is called twice')\n", "\n  const factory = (handler) => {\n    t.ok(handler, 'it is called twice')", "\n    const fastify = Fastify({\n      factory: (handler) => {\n        t.ok(handler, 'once')", "refused"},
		{"put into a block, in a file that has been indented since",
			"\t\t\tresult,\n\t\t});\n\t\t}\n", "\t\tresult,\n\t});\n\t}", "\t\tif enabled {\n\t\t\tresult,\n\t\t}\n\t});\n\t}", "refused"},
		{"entities in both texts, none in the file",
			"const props = (p?: Record<string, any>) => {\n  render(props)\n}\n", "const props = (p?: Record&lt;string, any&gt;) =&gt; {\n  render(props)", "const props = (p?: Record&lt;string, any&gt;) =&gt; {\n  if (a &lt; b) return\n  render(props)",
			"refused"},
		{"entities that the file has stay", "<p>a &lt; b</p>\n<p>c</p>\n", "<p>a &lt; b</p> \n<p>c</p>", "<p>a &lt; b</p>\n<p>d &lt; e</p>", "<p>a &lt; b</p>\n<p>d &lt; e</p>\n"},
		{"JSON's escapes in both texts, none in the file",
			"serializers?: Record<string, Serializer>;\n}): string;\n", "serializers?: Record\\u003cstring, Serializer\\u003e;\n}): string;", "// a \\u0026 b\nserializers?: Record\\u003cstring, Serializer\\u003e;\n}): string;",
			"refused"},
		{"two blanks at the end mean a line break where some lines only have them",
			"The first line\nof a paragraph\nand its end.\n", "The first line  \nof a paragraph\nand its end.", "The first line  \nof another paragraph  \nand its end.", "refused"},
		{"two blanks behind all lines are a habit",
			"The first line\nof a paragraph\nand its end.\n", "The first line  \nof a paragraph  \nand its end.  ", "The first line  \nof another paragraph  \nand its end.  ", "The first line\nof another paragraph\nand its end.\n"},
		{"blanks of several kinds behind the lines",
			"\taccounts := make(map[string]int)\n\tfor _, a := range list {\n\t\tuse(a)\n\t}\n", "\taccounts := make(map[string]int) \n\tfor _, a := range list { \t\n\t\tuse(a) \n\t}", "\taccounts := make(map[string]int) \n\tfor _, a := range list { \t\n\t\tuse(b) \t\n\t}",
			"\taccounts := make(map[string]int)\n\tfor _, a := range list {\n\t\tuse(b)\n\t}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Apply(c.text, c.old, c.new, false)
			got := r.Text
			if err != nil {
				got = "refused"
			}
			if got != c.want {
				t.Errorf("got  %q (%v)\nwant %q", got, err, c.want)
			}
			if crlf := strings.NewReplacer("\n", "\r\n"); err == nil {
				if r, err := Apply(crlf.Replace(c.text), c.old, c.new, false); err != nil || r.Text != crlf.Replace(c.want) {
					t.Errorf("with CRLF: %q, %v", r.Text, err)
				}
			}
		})
	}
}
