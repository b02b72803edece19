package patch

import "testing"

// upd is an envelope that updates f.
func upd(body string) string {
	return "*** Begin Patch\n*** Update File: f\n" + body + "\n*** End Patch"
}

// A new line ends as its neighbours do, whatever the patch was written with.
func TestLineEndingsOfNewLines(t *testing.T) {

	diff := func(body string) string { return "--- f\n+++ f\n" + body }
	for _, c := range []struct{ name, patch, old, want string }{
		{"CRs that the model copied along, file in CRLF", upd("@@\n-b\r\n+B\r"), "a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"},
		{"a line moves up in a file without final newline", upd("@@\n+c\n a\n b\n-c"), "a\nb\nc\r\nd", "c\r\na\nb\nd"},
		{"one line more like two that end differently", upd("@@\n a\n a\n+a\n b"), "a\r\na\nb\n", "a\r\na\na\nb\n"},
		{"a diff changes an ending where another line has changed its own", diff("@@ -1,3 +1,3 @@\n a\r\n-b\r\n+b\n c\r\n"), "a\r\nb\r\nc\n", "a\r\nb\nc\n"},
		{"a diff in LF of the last line, which has no ending", diff("@@ -2 +2,2 @@\n-b\n+B\n+C\n"), "a\r\nb", "a\r\nB\r\nC"},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.patch, files{"f": c.old}, files{"f": c.want}, "", "") })
	}
}

// A change that the file has already is refused instead of made twice.
func TestMadeAlreadyBesideTheQuotation(t *testing.T) {

	for _, c := range []struct{ name, patch, old, say string }{
		{"lines put into a block, quoted loosely", upd("@@\n- first()\n- second()\n+ if on {\n+     first()\n+     second()\n+ }"), "if on {\n\tfirst()\n\tsecond()\n}\nthird()\n", "already, from line 1"},
		{"in the first line", upd("@@\n+b\n a"), "b\na\n", "already, from line 1"},
		{"a blank line, and the quotation has a blank that the file has not", upd("@@\n a \n+"), "a\n\nb\n", "already, from line 2"},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.patch, files{"f": c.old}, nil, Conflict, c.say) })
	}
}

// Numbers before lines are copied from a listing only where the file has not got them itself.
func TestNumbersThatTheFileHas(t *testing.T) {
	check(t, upd("@@\n-2: b\n-3: c\n+2: B\n+3: C"), files{"f": "1: a\n2: b\n3: c\na\nb\nc\n"}, files{"f": "1: a\n2: B\n3: C\na\nb\nc\n"}, "", "")
}

// As many equal insertions as there are lines of their @@ mean one under each.
func TestEqualInsertionsUnderEqualLines(t *testing.T) {
	check(t, upd("@@ k\n+new\n@@ k\n+new"), files{"f": "x\nk\ny\nk\nz\n"}, files{"f": "x\nk\nnew\ny\nk\nnew\nz\n"}, "", "")
}

// A diff deletes a file once, an empty one too.
func TestDiffDeletesAFileTwice(t *testing.T) {
	section := "diff --git a/f b/f\ndeleted file mode 100644\nindex 1..0\n"
	check(t, section, files{"f": ""}, files{}, "", "")
	check(t, section+section, files{"f": ""}, nil, DeleteFailed, "f does not exist")
}

// Git writes a name with a backslash in quotes, with two of them.
func TestNamesWithABackslash(t *testing.T) {
	patch := `diff --git "a/x\\y\303\251" "b/x\\y\303\251"` + "\n" + `--- "a/x\\y\303\251"` + "\n" + `+++ "b/x\\y\303\251"` + "\n@@ -2 +2 @@\n-b\n+B\n"
	p, err := Parse(patch)
	if err != nil || len(p.Ops) != 1 || p.Ops[0].Path != `x\yé` {
		t.Errorf("%+v, %v", p, err)
	}
}
