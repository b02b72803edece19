package replace

import (
	"strings"
	"testing"
)

const same = "as OpenCode"

// cascade is the same edit in OpenCode (as package opencode works it out) and here. Where the two columns differ the package comment
// says why, and deliberate has it for the page. Refusals are in angle brackets.
var cascade = []struct {
	name, text, old, new string
	all                  bool
	openCode, want       string
	stage                string
}{
	{"exact", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n", same, "simple"},
	{"exact inside a line", "x := foo + 1\n", "foo", "bar", false, "x := bar + 1\n", same, "simple"},
	{"exact, twice", "a\na\n", "a", "b", false, "<multiple>", same, ""},
	{"exact, twice, all", "a\na\n", "a", "b", true, "b\nb\n", same, "simple"},
	{"exact, overlapping", "aaa", "aa", "b", false, "<multiple>", same, ""},
	{"exact, overlapping, all", "aaa", "aa", "b", true, "ba", same, "simple"},
	{"identical", "a", "a", "a", false, "<identical>", same, ""},
	{"identical but for CR", "a\nb", "a\r\nb", "a\nb", false, "a\nb", "<identical>", ""},
	{"empty old", "a", "", "b", false, "<empty_old>", same, ""},
	{"empty old and new", "a", "", "", false, "<identical>", same, ""},
	{"not there", "a\nb\n", "zzz", "y", false, "<not_found>", same, ""},
	{"empty file", "", "a", "b", false, "<not_found>", same, ""},
	{"delete a line with its newline", "a\nb\nc\n", "b\n", "", false, "a\nc\n", same, "simple"},
	{"delete inside", "abc", "b", "", false, "ac", same, "simple"},
	{"dollar ampersand", "a FOO b", "FOO", "$&-$1-$$", false, "a $&-$1-$$ b", same, "simple"},
	{"dollar ampersand, all", "FOO FOO", "FOO", "$&-$$-x", true, "$&-$$-x $&-$$-x", same, "simple"},
	{"exact twice, a whole line only once", "foo\nfoobar\n", "foo", "x", false, "<multiple>", same, ""},
	{"exact twice, one deeper", "  k\n    k\n", "  k", "  j", false, "  k\n  j\n", "<multiple>", ""},
	{"multi-line exact", "a\nb\nc\n", "a\nb", "x\ny\nz", false, "x\ny\nz\nc\n", same, "simple"},
	{"unicode exact", "naïve café\n", "café", "thé", false, "naïve thé\n", same, "simple"},
	{"newline at the end quoted exactly", "a\nb\n", "b\n", "c\n", false, "a\nc\n", same, "simple"},
	{"trailing blank in old", "x := 1\ny := 2\n", "x := 1 ", "x := 2", false, "x := 2\ny := 2\n", same, "line_trimmed"},
	{"trailing blank in the file", "x := 1  \ny := 2\n", "x := 1\ny := 2", "x := 2\ny := 3", false, "x := 2\ny := 3\n", same, "line_trimmed"},
	{"indentation lacks", "\tif x {\n\t\ty()\n\t}\n", "if x {\n\ty()\n}", "if z {\n\ty()\n}", false, "if z {\n\ty()\n}\n", "\tif z {\n\t\ty()\n\t}\n", "line_trimmed"},
	{"indentation too deep", "a()\nb()\n", "    a()\n    b()", "    a()\n    c()", false, "    a()\n    c()\n", "a()\nc()\n", "line_trimmed"},
	{"spaces for tabs", "\tif x {\n\t\ty()\n\t}\n", "    if x {\n        y()\n    }", "    if x {\n        z()\n            deep()\n    }", false, "    if x {\n        z()\n            deep()\n    }\n", "\tif x {\n\t\tz()\n\t\t\tdeep()\n\t}\n", "line_trimmed"},
	{"tabs for spaces", "  if x:\n    y()\n", "\tif x:\n\t\ty()", "\tif x:\n\t\tz()", false, "\tif x:\n\t\tz()\n", "  if x:\n    z()\n", "line_trimmed"},
	{"four for two", "  if x:\n    y()\n      z\n", "    if x:\n        y()\n            z", "    if x:\n        q()\n            z", false, "    if x:\n        q()\n            z\n", "  if x:\n    q()\n      z\n", "line_trimmed"},
	{"flat quotation of two lines", "    beta one\n    beta two\n", "beta one\nbeta two", "beta 1\nbeta 2", false, "beta 1\nbeta 2\n", "    beta 1\n    beta 2\n", "line_trimmed"},
	{"first line without indentation, blank at the end", "\tif x {\n\t\ty()\n\t}\n", "if x {\n\t\ty() \n\t}", "if z {\n\t\ty()\n\t}", false, "if z {\n\t\ty()\n\t}\n", "\tif z {\n\t\ty()\n\t}\n", "line_trimmed"},
	{"new already at the file's indentation", "    a()\n    b()\n", "a()\nb()", "    c()\n    d()", false, "    c()\n    d()\n", "<conflict>", ""},
	{"new deeper than quoted", "  a()\n  b()\n", "a()\nb()", "if x {\n  a()\n  b()\n}", false, "if x {\n  a()\n  b()\n}\n", "  if x {\n    a()\n    b()\n  }\n", "line_trimmed"},
	{"blank line in new stays empty", "  a()\n  b()\n", "a()\nb()", "a()\n\nb()", false, "a()\n\nb()\n", "  a()\n\n  b()\n", "line_trimmed"},
	{"final newline quoted, blank at a line's end", "a()\nb()\nc()\n", "a() \nb()\n", "x()\ny()\n", false, "x()\ny()\n\nc()\n", "x()\ny()\nc()\n", "line_trimmed"},
	{"final newline quoted, file has none", "a\nb", "b\n", "c\n", false, "a\nc\n", "a\nc", "line_trimmed"},
	{"final newline quoted, nothing new", "a()\nb()\nc()\n", "b() \n", "", false, "a()\n\nc()\n", "a()\nc()\n", "line_trimmed"},
	{"final newline quoted, nothing new, file has none", "a()\nb()", "b() \n", "", false, "a()\n", "a()", "line_trimmed"},
	{"final newline quoted, not in new", "a()\nb()\nc()\n", "b() \n", "x()", false, "a()\nx()\nc()\n", same, "line_trimmed"},
	{"final newline quoted, nothing new, neighbours, all", "x\nx", "x \n", "", true, "\n", "", "line_trimmed"},
	{"no-break space", "a\u00a0\nb\n", "a\nb", "c\nd", false, "c\nd\n", same, "line_trimmed"},
	{"next-line character is white space", "a\u0085\nb\n", "a\nb", "c\nd", false, "c\nd\n", same, "line_trimmed"},
	{"byte order mark in the quotation", "a\nb\n", "\ufeffa\nb", "c\nd", false, "c\nd\n", same, "line_trimmed"},
	{"line trimmed, two places, different indentation", "  k()\n\tk()\n", "    k()", "    j()", false, "    j()\n\tk()\n", "<multiple>", ""},
	{"line trimmed, two places, the same text", "\tk()\nx\n\tk()\n", "  k()\n", "  j()\n", false, "<multiple>", same, ""},
	{"line trimmed, two places, one at the very indentation", "\tk()\n\tl()\nx\n  k()\n  l()\n", "  k() \n  l()", "  m()", false, "  m()\nx\n  k()\n  l()\n", "\tk()\n\tl()\nx\n  m()\n", "indentation_flexible"},
	{"line trimmed, all", "\tk()\nx\n\tk()\n", "  k()", "  j()", true, "  j()\nx\n  j()\n", "\tj()\nx\n\tj()\n", "line_trimmed"},
	{"made already, a line added", "a()\nb()\nc()\n", "a()\n", "a()\nb()\n", false, "a()\nb()\nb()\nc()\n", "<conflict>", ""},
	{"made already, within a line", "fooBar()\n", "foo", "fooBar", false, "fooBarBar()\n", "<conflict>", ""},
	{"made already, quoted loosely", "\tfirst()\n\tsecond()\n\tthird()\n", "    first()", "    first()\n    second()", false, "    first()\n    second()\n\tsecond()\n\tthird()\n", "<conflict>", ""},
	{"made already, lines put into a block", "if on {\n\tfirst()\n\tsecond()\n}\nthird()\n", " first()\n second()", " if on {\n     first()\n     second()\n }", false, "if on {\n if on {\n     first()\n     second()\n }\n}\nthird()\n", "<conflict>", ""},
	{"made already, more lines quoted", "a()\nb()\nc()\n", "a()\nb()\nc()\n", "a()\nb()\nb()\nc()\n", false, "a()\nb()\nb()\nc()\n", same, "simple"},
	{"new text abbreviated", "func f() {\n\topen()\n\tread()\n\tclose()\n}\n", "func f() {\n\topen()\n\tread()\n\tclose()\n}", "func g() {\n\t// ... existing code ...\n}", false, "func g() {\n\t// ... existing code ...\n}\n", "<conflict>", ""},
	{"new text abbreviated with dots", "x = 1\ny = 2\nz = 3\n", "x = 1\ny = 2\nz = 3", "x = 1\n# ...", false, "x = 1\n# ...\n", "<conflict>", ""},
	{"new text abbreviated, of lines that are alike", "drop(a_one);\ndrop(a_two);\ndrop(a_six);\n", "drop(a_one);\ndrop(a_two);\ndrop(a_six);", "drop(b_one);\n// ... existing code ...", false, "drop(b_one);\n// ... existing code ...\n", "<conflict>", ""},
	{"dots for one line, beside another change", "// Load a file\n// from the disk.\nx = 1\n", "// Load a file\n// from the disk.\nx = 1", "// Load a file\n// ...\nx = 2", false, "// Load a file\n// ...\nx = 2\n", "<conflict>", ""},
	{"dots for one line, and nothing else", "// Load a file\n// from the disk.\nx = 1\n", "// Load a file\n// from the disk.\nx = 1", "// Load a file\n// ...\nx = 1", false, "// Load a file\n// ...\nx = 1\n", same, "simple"},
	{"dots in a comment beside other new lines", "x = 1\ny = 2\nz = 3\n", "y = 2\nz = 3", "# ...\nall()", false, "x = 1\n# ...\nall()\n", same, "simple"},
	{"an abbreviation comes and nothing goes", "x = 1\n", "x = 1\n", "x = 1\n// ... existing code ...\n", false, "x = 1\n// ... existing code ...\n", same, "simple"},
	{"numbers in the new text only", "a()\nbody()\n", "a()\nbody()", "12: a()\n13: body(1)", false, "12: a()\n13: body(1)\n", "<conflict>", ""},
	{"three dots as one character in new lines only", "say('a')\nend()\n", "say(‘a‘)\nend()", "say(‘a‘)\nall(list…)\nend()", false, "<not_found>", "say('a')\nall(list...)\nend()\n", "typography"},
	{"a quote in new lines only, three dots as one character in the quotation", "all(list...)\nend()\n", "all(list…)\nend()", "all(list…)\nsay(‘a’)\nend()", false, "<not_found>", "all(list...)\nsay('a')\nend()\n", "typography"},
	{"a dash in new lines only", "say('a')\nend()\n", "say(‘a’)\nend()", "say(‘a’)\n// a – b\nend()", false, "<not_found>", "say('a')\n// a – b\nend()\n", "typography"},
	{"typographic quotes in new lines too", "say(\"a\")\nend()\n", "say(“a”)\nend()", "say(“a”)\nsay(“b”)\nend()", false, "<not_found>", "say(\"a\")\nsay(\"b\")\nend()\n", "typography"},
	{"no-break spaces in new lines too", "let x = 1\nend()\n", "let\u00a0x\u00a0=\u00a01\nend()", "let\u00a0x\u00a0=\u00a01\nlet\u00a0y\u00a0=\u00a02\nend()", false, "let\u00a0x\u00a0=\u00a01\nlet\u00a0y\u00a0=\u00a02\nend()\n", "let x = 1\nlet y = 2\nend()\n", "whitespace_normalized"},
	{"line trimmed, all, each at its indentation", "\tk()\n  k()\n", "    k()", "    j()", true, "    j()\n  k()\n", "\tj()\n  j()\n", "line_trimmed"},
	{"line trimmed once, elsewhere inside a line", "k()\na = k()\n", "k() \n", "j()\n", false, "<multiple>", same, ""},
	{"old longer than the file", "a\n", "a\nb\nc\nd", "x", false, "<not_found>", same, ""},
	{"block anchor, middle misquoted", "func f() {\n\ta := 1\n\tb := 2\n\tc := 3\n\treturn a\n}\n", "func f() {\n\ta := 1\n\tb := 22\n\tc := 33\n\treturn a\n}", "func f() {}", false, "func f() {}\n", "<conflict>", ""},
	{"block anchor, one line more in the file", "start\nalpha beta\ngamma\nend\n", "start\nalpha bet\nend", "X", false, "X\n", "<not_found>", ""},
	{"block anchor, one line less in the file", "start\nalpha beta\nend\n", "start\nalpha beta\ngamma\nend", "X", false, "X\n", "<not_found>", ""},
	{"block anchor, too unlike", "start\nalpha beta\nend\n", "start\nzzzzz\nend", "X", false, "<not_found>", same, ""},
	{"block anchor, size beyond a quarter", "start\na1\na2\na3\nend\n", "start\na1\nend", "X", false, "<not_found>", same, ""},
	{"block anchor, two lines with a newline", "first\nmiddle\nlast\n", "first\nlast\n", "X\n", false, "X\n\n", "<not_found>", ""},
	{"block anchor, best of two", "s\nalpha one\ne\ns\nalpha two\ne\n", "s\nalpha twoo\ne", "X", false, "s\nalpha one\ne\nX\n", "<not_found>", ""},
	{"block anchor, a telling line stands in another block", "s\ncase \"GIT_EDITOR\", \"EDITOR\":\nreturn 1\ne\n-\ns\nq\nq\ncase \"GIT_VIEWER\", \"VIEWER\":\nreturn 1\ne\n", "s\ncase \"GIT_VIEWER\", \"VIEWER\":\nreturn 1\ne", "X", false, "X\n-\ns\nq\nq\ncase \"GIT_VIEWER\", \"VIEWER\":\nreturn 1\ne\n", "<not_found>", ""},
	{"block anchor, tie", "s\nalpha 1\ne\n-\ns\nalpha 2\ne\n", "s\nalpha 3\ne", "X", false, "X\n-\ns\nalpha 2\ne\n", "<not_found>", ""},
	{"block anchor, nearest last line only", "{\nif\n}\nreturn 12\n}\n", "{\nif\n  x\nreturn 13\n}", "X", false, "<not_found>", same, ""},
	{"block anchor, exactly 0.65", "s\nabcdefghijklmnopqrst\ne\n", "s\nabcdefghijklm1234567\ne", "X", false, "X\n", "<not_found>", ""},
	{"block anchor, just below", "s\nabcdefghijklmnopqrst\ne\n", "s\nabcdefghijkl12345678\ne", "X", false, "<not_found>", same, ""},
	{"block anchor, code points", "s\nééééééééééééééééé\ne\n", "s\néééééééééééééabcd\ne", "X", false, "X\n", "<not_found>", ""},
	{"block anchor, blank middle lines count nothing", "s\n\n\nalpha\ne\n", "s\n\n\nalphb\ne", "X", false, "<not_found>", same, ""},
	{"block anchor, indentation", "\ts\n\t\talpha one\n\te\n", "s\n\talpha on\ne", "s\n\tbeta\ne", false, "s\n\tbeta\ne\n", "<not_found>", ""},
	{"block anchor, swallows a long line", "start\nshort one\n" + strings.Repeat("x", 700) + "\nend\n", "start\nshort one!\nend", "X", false, "<oversize>", "<not_found>", ""},
	{"a line that was not quoted stays", "start()\nauditLog()\nfinish(request)\nend()\n", "start()\nfinish(request)\nend()", "start()\nfinish(response)\nend()", false, "<not_found>", "start()\nauditLog()\nfinish(response)\nend()\n", "similar_block"},
	{"a parameter that was not quoted stays", "func save(ctx context.Context, name string) {\n\tbegin(ctx, name)\n\tcommit(ctx)\n}\n", "func save(name string) {\n\tbegin(ctx, name)\n\tcommit(ctx)\n}", "func saveAll(name string) {\n\tbegin(ctx, name)\n\tcommit(ctx)\n}", false, "<not_found>", "func saveAll(ctx context.Context, name string) {\n\tbegin(ctx, name)\n\tcommit(ctx)\n}\n", "similar_block"},
	{"what is added beside a line that was not quoted", "start()\nauditLog()\nfinish(request)\n", "start()\nfinish(request)\n", "start()\nwait()\nfinish(request)\n", false, "start()\nwait()\nfinish(request)\n\n", "<conflict>", ""},
	{"a line that the file has already is not added twice", "start(request)\nauditLog(request)\nfinish(request)\nend(request)\n", "start(request)\nfinish(request)\nend(request)\n", "start(request)\nauditLog(request)\nfinish(request)\nend(response)\n", false, "<not_found>", "start(request)\nauditLog(request)\nfinish(request)\nend(response)\n", "similar_block"},
	{"typographic quotes in a line", "say(“hello”, ‘x’)\n", "say(\"hello\", 'x')", "say(\"bye\", 'x')", false, "<not_found>", "say(“bye”, ‘x’)\n", "typography"},
	{"typography that the change makes, and one that it does not", "say(\"it's\",  ‘x’)\nend()\n", "say(\"it's\", 'x')\nend()", "say(\"it’s\", 'x')\nend()", false, "<not_found>", "say(\"it’s\",  ‘x’)\nend()\n", "typography"},
	{"typographic dash inside a line", "the file — as it was — stays\n", "file - as it was", "file - as it is", false, "<not_found>", "the file — as it is — stays\n", "typography"},
	{"line numbers", "a\n\tb()\n", "1: a\n2: \tb()", "1: a\n2: \tc()", false, "<not_found>", "a\n\tc()\n", "line_numbers"},
	{"white space, one line", "    foo(a,  b)\n", "foo(a, b)", "foo(a, c)", false, "foo(a, c)\n", "    foo(a,  c)\n", "whitespace_normalized"},
	{"white space, inside a line", "x = foo(a,  b) + 1\n", "foo(a, b)", "foo(a, c)", false, "x = foo(a, c) + 1\n", "x = foo(a,  c) + 1\n", "whitespace_normalized"},
	{"white space, twice in a line", "foo(a,  b); foo(a,   b)\n", "foo(a, b)", "z", false, "z; foo(a,   b)\n", "<multiple>", ""},
	{"white space, lines broken elsewhere", "foo(a,\n  b, c)\n", "foo(a, b,\n  c)", "foo()", false, "foo()\n", same, "whitespace_normalized"},
	{"white space, tab for blank", "x =\t1\n", "x = 1", "x = 2", false, "x = 2\n", "x =\t2\n", "whitespace_normalized"},
	{"white space, quoted on several lines", "foo(a, b)\n", "foo(a,\n   b)", "foo()", false, "foo()\n", same, "whitespace_normalized"},
	{"white space, regexp characters", "a[0]  += (b.*c)\n", "a[0] += (b.*c)", "x", false, "x\n", same, "whitespace_normalized"},
	{"white space, not within a word", "xfoo  barx\n", " foo bar ", "z", false, "xzx\n", "<not_found>", ""},
	{"white space, no blank at all in the file", "foo(a,b)\n", "foo(a, b)", "z", false, "<not_found>", same, ""},
	{"escaped newline", "a\nb\nc\n", "a\\nb", "x", false, "x\nc\n", same, "escape_normalized"},
	{"escaped quotes", "say(\"hi\")\n", "say(\\\"hi\\\")", "say(\\\"ho\\\")", false, "say(\\\"ho\\\")\n", "say(\"ho\")\n", "escape_normalized"},
	{"escaped tab", "a\tb\n", "a\\tb", "x", false, "x\n", same, "escape_normalized"},
	{"escaped in the file too", "print('it\\'s')\nx\n", "print('it's')", "print(1)", false, "print(1)\nx\n", "<conflict>", ""},
	{"escaped backslash", "a\\b\n", "a\\\\b", "x", false, "x\n", same, "escape_normalized"},
	{"escaped dollar and backtick", "cost `$5`\n", "cost \\`\\$5\\`", "x", false, "x\n", same, "escape_normalized"},
	{"four escaped lines in one", "a\nb\nc\nd\n", "a\\nb\\nc\\nd", "x", false, "<oversize>", same, ""},
	{"boundary, inside a line", "x = (foo)\n", " foo ", "bar", false, "x = (bar)\n", same, "whitespace_normalized"},
	{"boundary, newlines around", "a foo b\n", "\nfoo\n", "bar", false, "a bar b\n", "<not_found>", ""},
	{"boundary, blanks shared with new", "call(foo)\n", " foo ", " bar ", false, "call( bar )\n", "call(bar)\n", "whitespace_normalized"},
	{"boundary, newlines shared with new", "a foo(x) b\n", "\nfoo(x)\n", "\nbar(x)\n", false, "a \nbar(x)\n b\n", "<not_found>", ""},
	{"line break at the beginning, not in new", "alpha\nbeta\n", "\nbeta", "gamma", false, "alphagamma\n", "<conflict>", ""},
	{"line break at the end, not in new", "alpha\nbeta\n", "alpha\n", "gamma", false, "gammabeta\n", "<conflict>", ""},
	{"without the indentation, comes back below a new line", "{\n\tx()\n\ty()\n}\n", "y()", "z()\ny()", false, "{\n\tx()\n\tz()\ny()\n}\n", "{\n\tx()\n\tz()\n\ty()\n}\n", "simple"},
	{"boundary, several", "foo(foo)\n", " foo ", "bar", false, "<multiple>", same, ""},
	{"boundary, within a word", "xfoox\n", " foo ", "bar", false, "xbarx\n", "<not_found>", ""},
	{"boundary, once within a word, once not", "xfoo + foo\n", "foo  ", "bar", false, "<multiple>", same, ""},
	{"boundary, once within a word, once not, all", "foox + foo\n", "foo  ", "bar", true, "barx + bar\n", "foox + bar\n", "whitespace_normalized"},
	{"boundary, overlapping the end of a word, all", "0b bbb", "bb  ", "X", true, "0b Xb", "0b bX", "whitespace_normalized"},
	{"boundary, two lines inside", "a { b\nc } d\n", "  b\nc  ", "z", false, "a { z } d\n", "<not_found>", ""},
	{"context, half of the middle", "s\na\nzzzzzzzz\ne\n", "s\na\nq\ne", "X", false, "X\n", "<not_found>", ""},
	{"context, less than half", "s\nyyyyyyyy\nxxxxxxxx\nzzzzzzzz\ne\n", "s\nyyyyyyyy\nq\nr\ne", "X", false, "<not_found>", same, ""},
	{"context, best of two", "s\na\nb\nzzzzzzzz\nwwwwwwww\ne\n-\ns\na\nb\nccccccc\nvvvvvvvv\ne\n", "s\na\nb\nccccccc\nq\ne", "X", false, "s\na\nb\nzzzzzzzz\nwwwwwwww\ne\n-\nX\n", "<not_found>", ""},
	{"context, two as good", "s\na\nzzzzzzzz\ne\n-\ns\na\nwwwwwwww\ne\n", "s\na\nq\ne", "X", false, "X\n-\ns\na\nwwwwwwww\ne\n", "<not_found>", ""},
	{"context, other number of lines", "s\na\nb\nzzzzzzzz\nq\nq\ne\n", "s\na\nb\ne", "X", false, "<not_found>", same, ""},
	{"white space only, exact", "a  b\n", "  ", " ", false, "a b\n", same, "simple"},
	{"white space only, empty file", "", "  ", "x", false, "x", "<not_found>", ""},
	{"white space only, blank lines", "a\n\nb\n", "   ", "x", false, "<multiple>", "<not_found>", ""},
	{"white space only, blank lines, all", "a\n\nb\n", "   ", "x", true, "xax\nx\nxbx\nx", "<not_found>", ""},
	{"white space only, other white space", "a\n\t\nb\n", "    ", "x", false, "a\nx\nb\n", same, "line_trimmed"},
	{"CRLF, exact", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, "x\r\ny\r\nc\r\n", same, "simple"},
	{"CRLF in old only", "a\nb\nc\n", "a\r\nb", "x\r\ny", false, "x\ny\nc\n", same, "simple"},
	{"CRLF, line trimmed keeps the CR", "a\r\n\tb\r\nc\r\n", "b ", "B", false, "a\r\nB\nc\r\n", "a\r\n\tB\r\nc\r\n", "line_trimmed"},
	{"CRLF, final newline quoted", "a\r\n\tb\r\nc\r\n", "  b\n", "  B\n", false, "a\r\n  B\r\n\nc\r\n", "a\r\n\tB\r\nc\r\n", "line_trimmed"},
	{"CRLF, whole lines in the middle", "a\r\n\tb\r\n\tc\r\nd\r\n", "b\nc", "x\ny", false, "a\r\nx\r\ny\nd\r\n", "a\r\n\tx\r\n\ty\r\nd\r\n", "line_trimmed"},
	{"CRLF, last line without", "a\r\nb", "b ", "c\nd", false, "a\r\nc\r\nd", same, "line_trimmed"},
	{"mixed, one line", "a\r\nb\nc\r\n", "b", "B", false, "a\r\nB\nc\r\n", same, "simple"},
	{"mixed, LF lines", "a\r\nb\nc\nd\r\n", "b\nc", "b\nC", false, "a\r\nb\r\nC\nd\r\n", "a\r\nb\nC\nd\r\n", "simple"},
	{"mixed, CRLF lines", "a\nb\r\nc\r\nd\n", "b\nc", "x\ny\nz", false, "a\nx\r\ny\r\nz\r\nd\n", same, "simple"},
	{"mixed, the same text with either ending", "a\r\nb\r\nx\r\na\nb\n", "a\nb", "z", false, "z\r\nx\r\na\nb\n", "<multiple>", ""},
	{"old Mac endings", "a\rb\rc", "b", "B", false, "a\rB\rc", same, "simple"},
	{"not UTF-8", "\xff\xfe a\nb\xc3\n", "a\nb", "x\ny", false, "\xff\xfe x\ny\xc3\n", same, "simple"},
	{"not UTF-8, line trimmed", "\xff a \nb\xc3\n", "b\xc3 ", "c", false, "\xff a \nc\n", same, "line_trimmed"},
}

func TestCascade(t *testing.T) {
	for _, c := range cascade {
		t.Run(c.name, func(t *testing.T) {
			text, kind := openCode(c.text, c.old, c.new, c.all)
			if got := outcome(text, kind); got != c.openCode {
				t.Errorf("OpenCode: %q, the table says %q", got, c.openCode)
			}
			if c.want == same {
				c.want = c.openCode
			}
			r, got := ours(c.text, c.old, c.new, c.all)
			if got != c.want || r.Stage != c.stage {
				t.Errorf("got %q by %q\nwant %q by %q", got, r.Stage, c.want, c.stage)
			}
		})
	}
}
