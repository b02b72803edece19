package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
)

// outcome is the resulting files ("name=text" each, sorted by the caller's want) or "<kind>".
func apply(t *testing.T, text string, fs files) (files, *Error) {
	t.Helper()
	p, err := Parse(text)
	var changes []FileChange
	if err == nil {
		changes, err = p.Apply(fs.read)
	}
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("not an *Error: %v", err)
		}
		if e.Message == "" || len(changes) != 0 {
			t.Errorf("message %q, %d changes beside the error", e.Message, len(changes))
		}
		return nil, e
	}
	return fs.after(t, changes), nil
}

const abc = "a\nb\nc\n"

func TestEnvelope(t *testing.T) {
	env := func(body string) string { return "*** Begin Patch\n" + body + "\n*** End Patch" }
	upd := func(body string) string { return env("*** Update File: f\n" + body) }
	dup := "x\nk\ny\nk\nz\n"
	for _, c := range []struct {
		name, patch string
		old         files
		want        files  // all files after
		kind        string // or the refusal
		say         string // part of the message
	}{
		{name: "empty text", patch: " \n", kind: EmptyText},
		{name: "no envelope", patch: "hello", kind: BadEnvelope, say: "Begin Patch"},
		{name: "no end", patch: "*** Begin Patch\n*** Delete File: f", kind: BadEnvelope, say: "cut off"},
		{name: "end before begin", patch: "*** End Patch\n*** Begin Patch\n", kind: BadEnvelope},
		{name: "nothing inside", patch: "*** Begin Patch\n*** End Patch", kind: EmptyPatch},
		{name: "only blank lines inside", patch: env("\n  \n"), kind: EmptyPatch},
		{name: "no section inside", patch: env("hello"), kind: NoHunks},
		{name: "update without hunks", patch: env("*** Update File: f"), old: files{"f": abc}, kind: NoHunks},
		{name: "update with context only", patch: upd("@@\n a\n b"), old: files{"f": abc}, kind: NoHunks},
		{name: "unknown section", patch: env("*** Delete File: f\n*** Rename File: g"), old: files{"f": abc}, kind: BadEnvelope, say: "line 3"},
		{name: "unknown line in an update", patch: upd("@@\n-a\n*** Foo: x\n+b"), old: files{"f": abc}, kind: BadEnvelope, say: "line 5"},
		{name: "line without prefix", patch: upd("@@\n-a\nb\n+c"), old: files{"f": abc}, kind: BadEnvelope, say: "line 5"},
		{name: "line without plus in an add", patch: env("*** Add File: f\n+a\nb"), kind: BadEnvelope, say: "line 4"},
		{name: "lines after a delete", patch: env("*** Delete File: f\n-a"), old: files{"f": abc}, kind: BadEnvelope, say: "line 3"},
		{name: "no path", patch: env("*** Add File: \n+a"), kind: BadEnvelope, say: "line 2"},

		{name: "made already, the quotation ends before it", patch: upd("@@\n a\n+b"), old: files{"f": abc}, kind: Conflict, say: "already, from line 2"},
		{name: "the same line again, with what is around it", patch: upd("@@\n a\n b\n+b\n c"), old: files{"f": abc}, want: files{"f": "a\nb\nb\nc\n"}},
		{name: "abbreviated", patch: upd("@@\n-a\n-b\n+a2\n+// ... existing code ...\n c"), old: files{"f": abc}, kind: Conflict, say: "existing code"},
		{name: "numbers, and an escape that may be meant", patch: upd("@@\n-2: b\n+2: say(\\`b\\`)"), old: files{"f": abc}, kind: LinesNotFound},
		{name: "numbers in new lines only", patch: upd("@@\n-b\n+2: b\n+3: b2"), old: files{"f": abc}, kind: Conflict, say: "line numbers"},
		{name: "a line moves up, in mixed line endings", patch: upd("@@\n+c\n a\n b\n-c"), old: files{"f": "a\nb\nc\r\n"}, want: files{"f": "c\r\na\nb\n"}},
		{name: "a line like the last one, which has no ending", patch: upd("@@\n+c\n a\n-c\n+d"), old: files{"f": "a\r\nc"}, want: files{"f": "c\r\na\r\nd"}},
		{name: "a line comes back, in mixed line endings", patch: upd("@@\n-a\n-b\n-c\n+a\n+B\n+c"), old: files{"f": "a\r\nb\nc\r\n"}, want: files{"f": "a\r\nB\r\nc\r\n"}},

		{name: "new lines before an empty line that is not there", patch: upd("@@\n a\n+b\n "), old: files{"f": "a\nx\n\nc\n"}, kind: Conflict, say: "on top of these lines"},
		{name: "new lines for old ones before an empty line that is not there", patch: upd("@@\n-a\n+b\n+c\n \n "), old: files{"f": "a\nx\n\nc\n"}, kind: Conflict},
		{name: "an empty line that is not there, behind a line that is", patch: upd("@@\n-a\n+A\n b\n "), old: files{"f": abc}, want: files{"f": "A\nb\nc\n"}},
		{name: "an empty line that stands for the end of the file", patch: upd("@@\n c\n+d\n "), old: files{"f": abc}, want: files{"f": abc + "d\n"}},
		{name: "space in the patch behind new lines", patch: upd("@@\n a\n+x\n"), old: files{"f": abc}, want: files{"f": "a\nx\nb\nc\n"}},

		{name: "heredoc", patch: "cat <<'EOF'\n" + upd("@@\n-b\n+B") + "\nEOF\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "words before and after", patch: "Here you are:\n\n" + upd("@@\n-b\n+B") + "\nThat is it.", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "indented markers", patch: "  *** Begin Patch\n*** Delete File: f\n  *** End Patch", old: files{"f": abc}, want: files{}},
		{name: "two envelopes", patch: env("*** Delete File: f") + "\n" + env("*** Add File: g\n+x"), old: files{"f": abc}, want: files{"g": "x\n"}},
		{name: "End Patch as a line of the file", patch: upd("@@\n a\n *** End Patch\n-b\n+B"), old: files{"f": "a\n*** End Patch\nb\n"}, want: files{"f": "a\n*** End Patch\nB\n"}},
		{name: "patch text in CRLF, file in LF", patch: strings.ReplaceAll(upd("@@\n-b\n+B")+"\n", "\n", "\r\n"), old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},

		{name: "add", patch: env("*** Add File: d/g\n+one\n+\n+two"), want: files{"d/g": "one\n\ntwo\n"}},
		{name: "add with an empty line between", patch: env("*** Add File: g\n+one\n\n+two\n\n*** Add File: h"), want: files{"g": "one\n\ntwo\n", "h": ""}},
		{name: "add over a file", patch: env("*** Add File: f\n+x"), old: files{"f": abc}, kind: Exists, say: "f exists"},
		{name: "add over a file deleted before", patch: env("*** Delete File: f\n*** Add File: f\n+x"), old: files{"f": abc}, want: files{"f": "x\n"}},
		{name: "add twice", patch: env("*** Add File: f\n+x\n*** Add File: ./f\n+y"), kind: Exists},
		{name: "add, then update", patch: env("*** Add File: f\n+x\n*** Update File: f\n@@\n-x\n+y"), want: files{"f": "y\n"}},
		{name: "add, then delete", patch: env("*** Add File: f\n+x\n*** Delete File: f"), want: files{}},
		{name: "delete", patch: env("*** Delete File: f"), old: files{"f": abc, "g": abc}, want: files{"g": abc}},
		{name: "delete a missing file", patch: env("*** Delete File: f"), kind: DeleteFailed, say: "f does not exist"},
		{name: "delete twice", patch: env("*** Delete File: f\n*** Delete File: f"), old: files{"f": abc}, kind: DeleteFailed},
		{name: "update a missing file", patch: upd("@@\n-a\n+b"), kind: UpdateTargetMissing, say: "f does not exist"},
		{name: "update a file deleted before", patch: env("*** Delete File: f\n*** Update File: f\n@@\n-a\n+b"), old: files{"f": abc}, kind: UpdateTargetMissing},

		{name: "move", patch: env("*** Update File: f\n*** Move to: d/g\n@@\n-a\n+A"), old: files{"f": abc}, want: files{"d/g": "A\nb\nc\n"}},
		{name: "move only", patch: env("*** Update File: f\n*** Move to: g"), old: files{"f": abc}, want: files{"g": abc}},
		{name: "move onto itself", patch: env("*** Update File: f\n*** Move to: ./f\n@@\n-a\n+A"), old: files{"f": abc}, kind: Exists, say: "itself"},
		{name: "move onto a file", patch: env("*** Update File: f\n*** Move to: g"), old: files{"f": abc, "g": ""}, kind: Exists, say: "g, which exists"},
		{name: "move onto a file deleted before", patch: env("*** Delete File: g\n*** Update File: f\n*** Move to: g"), old: files{"f": abc, "g": "x"}, want: files{"g": abc}},
		{name: "move onto a file deleted after", patch: env("*** Update File: f\n*** Move to: g\n*** Delete File: g"), old: files{"f": abc, "g": "x"}, kind: Exists},
		{name: "move a missing file", patch: env("*** Update File: f\n*** Move to: g"), kind: UpdateTargetMissing},
		{name: "move, then update there", patch: env("*** Update File: f\n*** Move to: g\n*** Update File: g\n@@\n-a\n+A"), old: files{"f": abc}, want: files{"g": "A\nb\nc\n"}},
		{name: "move, then add in its place", patch: env("*** Update File: f\n*** Move to: g\n*** Add File: f\n+x"), old: files{"f": abc}, want: files{"g": abc, "f": "x\n"}},
		{name: "move twice", patch: env("*** Update File: f\n*** Move to: g\n*** Update File: g\n*** Move to: h"), old: files{"f": abc}, want: files{"h": abc}},
		{name: "move away and back", patch: env("*** Update File: f\n*** Move to: g\n*** Update File: g\n*** Move to: f\n@@\n-a\n+A"), old: files{"f": abc}, want: files{"f": "A\nb\nc\n"}},
		{name: "Move to after a hunk", patch: upd("@@\n-a\n+A\n*** Move to: g"), old: files{"f": abc}, kind: BadEnvelope},

		{name: "hunk without @@", patch: upd(" a\n-b\n+B\n c"), old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "two sections for one file", patch: env("*** Update File: f\n@@\n-a\n+A\n*** Update File: f\n@@\n-b\n+B"), old: files{"f": abc}, want: files{"f": "A\nB\nc\n"}},
		{name: "second section builds on the first", patch: env("*** Update File: f\n@@\n-a\n+A\n*** Update File: ./f\n@@\n-A\n+AA"), old: files{"f": abc}, want: files{"f": "AA\nb\nc\n"}},
		{name: "several hunks", patch: upd("@@\n-a\n+A\n@@\n-c\n+C"), old: files{"f": abc}, want: files{"f": "A\nb\nC\n"}},
		{name: "hunks out of order", patch: upd("@@\n-c\n+C\n@@\n-a\n+A"), old: files{"f": abc}, want: files{"f": "A\nb\nC\n"}},
		{name: "lines an earlier hunk took", patch: upd("@@\n-b\n+B\n@@\n-b\n+BB"), old: files{"f": abc}, kind: LinesNotFound},
		{name: "delete all lines", patch: upd("@@\n-a\n-b\n-c"), old: files{"f": abc}, want: files{"f": ""}},
		{name: "not found", patch: upd("@@\n a\n-x\n+y"), old: files{"f": abc}, kind: LinesNotFound, say: `f`},
		{name: "nearest lines are named", patch: upd("@@\n hello world\n-the seconds line\n+x"), old: files{"f": "1\nhello world\nthe second line\n"}, kind: LinesNotFound, say: `closest match at lines 2–3, differs in line 3: the file has "the second line", the patch has "the seconds line"`},

		{name: "trailing white space", patch: upd("@@\n a \n-b\n+B"), old: files{"f": "a\t\nb  \n"}, want: files{"f": "a\t\nB\n"}},
		{name: "surrounding white space; context keeps its bytes", patch: upd("@@\n a\n-b\n+B"), old: files{"f": "\t\ta\n  b\n"}, want: files{"f": "\t\ta\n  B\n"}},
		{name: "typographic punctuation; context keeps its bytes", patch: upd("@@\n it's \"x\" - y...\n-b\n+B"), old: files{"f": "it’s “x” – y…\nb\n"}, want: files{"f": "it’s “x” – y…\nB\n"}},
		{name: "an exact place before a looser one", patch: upd("@@\n-k\n+K"), old: files{"f": " k\nx\nk\n"}, want: files{"f": " k\nx\nK\n"}},

		{name: "two places and nothing to tell", patch: upd("@@\n-k\n+K"), old: files{"f": dup}, kind: LinesNotFound, say: "lines 2, 4"},
		{name: "as many equal hunks as places", patch: upd("@@\n-k\n+K\n@@\n-k\n+K"), old: files{"f": dup}, want: files{"f": "x\nK\ny\nK\nz\n"}},
		{name: "@@ tells", patch: upd("@@ y\n-k\n+K"), old: files{"f": dup}, want: files{"f": "x\nk\ny\nK\nz\n"}},
		{name: "@@ with the first line itself", patch: upd("@@ y\n y\n-k\n+K"), old: files{"f": dup}, want: files{"f": "x\nk\ny\nK\nz\n"}},
		{name: "@@ @@", patch: upd("@@ y @@\n-k\n+K"), old: files{"f": dup}, want: files{"f": "x\nk\ny\nK\nz\n"}},
		{name: "@@ @@ with nothing between", patch: upd("@@ @@\n-y\n+Y"), old: files{"f": dup}, want: files{"f": "x\nk\nY\nk\nz\n"}},
		{name: "a diff's head inside the section", patch: upd("--- a/f\n+++ b/f\n@@ -3 +3 @@\n-y\n+Y"), old: files{"f": dup}, want: files{"f": "x\nk\nY\nk\nz\n"}},
		{name: "lines that only look like a diff's head", patch: upd("@@\n--- a\n+++ b"), old: files{"f": "-- a\n"}, want: files{"f": "++ b\n"}},
		{name: "@@ loosely", patch: upd("@@ it's\n-k\n+K"), old: files{"f": "k\n  it’s\nk\n"}, want: files{"f": "k\n  it’s\nK\n"}},
		{name: "@@ with only the beginning of the line", patch: upd("@@ func g\n-k\n+K"), old: files{"f": "func f() {\nk\nfunc g() {\nk\n"}, want: files{"f": "func f() {\nk\nfunc g() {\nK\n"}},
		{name: "@@ not there", patch: upd("@@ nowhere\n-k\n+K"), old: files{"f": dup}, kind: ContextNotFound, say: `"nowhere"`},
		{name: "nested @@", patch: upd("@@ class B\n@@ def f\n-k\n+K"), old: files{"f": "class A\ndef f\nk\nclass B\ndef f\nk\n"}, want: files{"f": "class A\ndef f\nk\nclass B\ndef f\nK\n"}},
		{name: "@@ in two places, lines under both", patch: upd("@@ def f\n-k\n+K"), old: files{"f": "class A\ndef f\nk\nclass B\ndef f\nk\n"}, kind: LinesNotFound, say: "lines 3, 6"},
		{name: "@@ in two places, lines under one", patch: upd("@@ def f\n-k\n+K"), old: files{"f": "class A\ndef f\nq\nclass B\ndef f\nk\n"}, want: files{"f": "class A\ndef f\nq\nclass B\ndef f\nK\n"}},
		{name: "numbers of a diff in @@", patch: upd("@@ -4,1 +4,1 @@\n-k\n+K"), old: files{"f": dup}, want: files{"f": "x\nk\ny\nK\nz\n"}},

		{name: "insert under @@", patch: upd("@@ b\n+new"), old: files{"f": abc}, want: files{"f": "a\nb\nnew\nc\n"}},
		{name: "insert under an @@ that stands twice", patch: upd("@@ k\n+new"), old: files{"f": dup}, kind: LinesNotFound, say: "lines 2, 4"},
		{name: "insert without anything goes to the end", patch: upd("@@\n+new"), old: files{"f": abc}, want: files{"f": "a\nb\nc\nnew\n"}},
		{name: "insert into an empty file", patch: upd("@@\n+new"), old: files{"f": ""}, want: files{"f": "new\n"}},
		{name: "two inserts under one @@ stay in order", patch: upd("@@ b\n+1\n@@ b\n+2"), old: files{"f": abc}, want: files{"f": "a\nb\n1\n2\nc\n"}},
		{name: "insert and change at one line", patch: upd("@@ a\n+1\n@@\n-b\n+B"), old: files{"f": abc}, want: files{"f": "a\n1\nB\nc\n"}},

		{name: "End of File anchors", patch: upd("@@\n-k\n+K\n*** End of File"), old: files{"f": "k\nx\nk\n"}, want: files{"f": "k\nx\nK\n"}},
		{name: "End of File, several lines", patch: upd("@@\n-marker\n-end\n+M\n+end\n*** End of File"), old: files{"f": "marker\nend\nx\nmarker\nend\n"}, want: files{"f": "marker\nend\nx\nM\nend\n"}},
		{name: "indentation of the file, not of the patch", patch: upd("@@\n def f():\n-    return 1\n+    x = 1\n+    if x:\n+        return x"), old: files{"f": "class A:\n    def f():\n        return 1\n"}, want: files{"f": "class A:\n    def f():\n        x = 1\n        if x:\n            return x\n"}},
		{name: "tabs for the patch's spaces", patch: upd("@@\n func f() {\n-    a()\n+    if x {\n+        b()\n+    }\n }"), old: files{"f": "func f() {\n\ta()\n}\n"}, want: files{"f": "func f() {\n\tif x {\n\t\tb()\n\t}\n}\n"}},
		{name: "a line that the patch does not know stays", patch: upd("@@\n begin(request)\n-commit(request)\n+rollback(request)\n finish(request)"), old: files{"f": "begin(request)\naudit(request)\ncommit(request)\nfinish(request)\n"}, want: files{"f": "begin(request)\naudit(request)\nrollback(request)\nfinish(request)\n"}},
		{name: "padded headers", patch: "  *** Begin Patch\n   *** Update File: f\n@@\n-a\n+b\n    *** End Patch\n", old: files{"f": "a\n"}, want: files{"f": "b\n"}},
		{name: "padded header after Add", patch: "*** Begin Patch\n*** Add File: g\n+x\n *** Update File: f\n@@\n-a\n+b\n *** End Patch", old: files{"f": "a\n"}, want: files{"f": "b\n", "g": "x\n"}},
		{name: "an empty line goes at the end of the file", patch: upd("@@\n a\n-b\n-"), old: files{"f": "a\nb\n"}, want: files{"f": "a\n"}},
		{name: "End of File loosely before exactly elsewhere", patch: upd("@@\n-k\n+K\n*** End of File"), old: files{"f": "k\nx\n k\n"}, want: files{"f": "k\nx\n K\n"}},
		{name: "End of File, lines in one other place", patch: upd("@@\n-k\n+K\n*** End of File"), old: files{"f": "k\nx\n"}, want: files{"f": "K\nx\n"}},
		{name: "End of File, lines in several other places", patch: upd("@@\n-k\n+K\n*** End of File"), old: files{"f": "k\nx\nk\ny\n"}, kind: LinesNotFound},
		{name: "insert at End of File", patch: upd("@@ a\n+new\n*** End of File"), old: files{"f": abc}, want: files{"f": "a\nb\nc\nnew\n"}},
		{name: "hunk after End of File", patch: upd("@@\n-c\n+C\n*** End of File\n@@\n-a\n+A"), old: files{"f": abc}, want: files{"f": "A\nb\nC\n"}},
		{name: "hunk after End of File without @@", patch: upd("@@\n-c\n+C\n*** End of File\n-a\n+A"), old: files{"f": abc}, want: files{"f": "A\nb\nC\n"}},

		{name: "empty line for an empty context line", patch: upd("@@\n a\n\n-b\n+B"), old: files{"f": "a\n\nb\n"}, want: files{"f": "a\n\nB\n"}},
		{name: "empty line before the next section is just space", patch: env("*** Update File: f\n@@\n-b\n+B\n\n*** Delete File: g"), old: files{"f": abc, "g": ""}, want: files{"f": "a\nB\nc\n"}},

		{name: "no final newline stays", patch: upd("@@\n-c\n+C"), old: files{"f": "a\nb\nc"}, want: files{"f": "a\nb\nC"}},
		{name: "no final newline, appended", patch: upd("@@\n+d"), old: files{"f": "a\nb\nc"}, want: files{"f": "a\nb\nc\nd"}},
		{name: "no final newline, last line deleted", patch: upd("@@\n-c"), old: files{"f": "a\nb\nc"}, want: files{"f": "a\nb"}},
		{name: "no final newline, first line changed", patch: upd("@@\n-a\n+A"), old: files{"f": "a\nb"}, want: files{"f": "A\nb"}},
		{name: "CRLF stays", patch: upd("@@\n a\n-b\n+B\n+BB"), old: files{"f": "a\r\nb\r\nc\r\n"}, want: files{"f": "a\r\nB\r\nBB\r\nc\r\n"}},
		{name: "CRLF, appended, no final newline", patch: upd("@@\n+d"), old: files{"f": "a\r\nc"}, want: files{"f": "a\r\nc\r\nd"}},
		{name: "CRLF, last line deleted, no final newline", patch: upd("@@\n-c"), old: files{"f": "a\r\nc"}, want: files{"f": "a"}},
		{name: "mixed endings follow the line before", patch: upd("@@\n a\n+x\n b\n+y\n c"), old: files{"f": "a\r\nb\nc\r\n"}, want: files{"f": "a\r\nx\r\nb\ny\nc\r\n"}},
		{name: "bytes that are not UTF-8", patch: upd("@@\n-b\n+B"), old: files{"f": "\xff\nb\n\xfe"}, want: files{"f": "\xff\nB\n\xfe"}},
		{name: "a diff in the envelope", patch: env("--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B"), old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "all or nothing", patch: env("*** Update File: f\n@@\n-a\n+A\n*** Update File: g\n@@\n-x\n+y"), old: files{"f": abc, "g": abc}, kind: LinesNotFound},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.patch, c.old, c.want, c.kind, c.say) })
	}
}

func check(t *testing.T, patch string, old, want files, kind, say string) {
	t.Helper()
	got, e := apply(t, patch, old)
	if e != nil {
		if e.Kind != kind || !strings.Contains(e.Message, say) {
			t.Fatalf("<%s> %s\nwant <%s> …%s…", e.Kind, e.Message, kind, say)
		}
		return
	}
	if kind != "" {
		t.Fatalf("got %q, want <%s>", got, kind)
	}
	for n := range union(got, want) {
		g, ok1 := got[n]
		w, ok2 := want[n]
		if g != w || ok1 != ok2 {
			t.Errorf("%s: got %q %v, want %q %v", n, g, ok1, w, ok2)
		}
	}
}

func TestUnified(t *testing.T) {
	dup := "x\nk\ny\nk\nz\n"
	for _, c := range []struct {
		name, patch string
		old         files
		want        files
		kind, say   string
	}{
		{name: "plain", patch: "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "times after tabs", patch: "--- a/f\t2024-01-01 10:00:00 +0000\n+++ b/f\t2024-01-01 10:00:01 +0000\n@@ -2 +2 @@\n-b\n+B\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "git", patch: "diff --git a/d/f b/d/f\nindex 1..2 100644\n--- a/d/f\n+++ b/d/f\n@@ -2 +2 @@ func x\n-b\n+B\n", old: files{"d/f": abc}, want: files{"d/f": "a\nB\nc\n"}},
		{name: "git without prefix", patch: "diff --git d/f d/f\n--- d/f\n+++ d/f\n@@ -2 +2 @@\n-b\n+B\n", old: files{"d/f": abc}, want: files{"d/f": "a\nB\nc\n"}},
		{name: "a folder named a", patch: "--- a/f\n+++ a/f\n@@ -2 +2 @@\n-b\n+B\n", old: files{"a/f": abc}, want: files{"a/f": "a\nB\nc\n"}},
		{name: "git's other prefixes", patch: "diff --git i/f w/f\n--- i/f\n+++ w/f\n@@ -2 +2 @@\n-b\n+B\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "x.orig and x", patch: "--- f.orig\n+++ f\n@@ -2 +2 @@\n-b\n+B\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "old and new, only old there", patch: "--- f\n+++ g\n@@ -2 +2 @@\n-b\n+B\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "new file", patch: "diff --git a/g b/g\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/g\n@@ -0,0 +1,2 @@\n+x\n+y\n", want: files{"g": "x\ny\n"}},
		{name: "new file, plain", patch: "--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", want: files{"g": "x"}},
		{name: "new file, diff -N", patch: "--- g\t1970-01-01 00:00:00.000000000 +0000\n+++ g\t2024-01-01 10:00:00 +0000\n@@ -0,0 +1 @@\n+x\n", want: files{"g": "x\n"}},
		{name: "new empty file", patch: "diff --git a/g b/g\nnew file mode 100644\nindex 0..0\n", want: files{"g": ""}},
		{name: "new file that exists", patch: "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", old: files{"f": abc}, kind: Exists},
		{name: "update that only adds, file missing", patch: "--- a/g\n+++ b/g\n@@ -0,0 +1 @@\n+x\n", want: files{"g": "x\n"}},
		{name: "deleted file", patch: "diff --git a/f b/f\ndeleted file mode 100644\nindex 1..0\n--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", old: files{"f": abc}, want: files{}},
		{name: "deleted empty file", patch: "diff --git a/f b/f\ndeleted file mode 100644\nindex 1..0\n", old: files{"f": ""}, want: files{}},
		{name: "deleted file has other lines too", patch: "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", old: files{"f": abc}, kind: LinesNotFound, say: "other lines"},
		{name: "deleted file is gone", patch: "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", kind: DeleteFailed},
		{name: "rename", patch: "diff --git a/f b/d/g\nsimilarity index 100%\nrename from f\nrename to d/g\n", old: files{"f": abc}, want: files{"d/g": abc}},
		{name: "rename with a change", patch: "diff --git a/f b/g\nsimilarity index 60%\nrename from f\nrename to g\nindex 1..2\n--- a/f\n+++ b/g\n@@ -2 +2 @@\n-b\n+B\n", old: files{"f": abc}, want: files{"g": "a\nB\nc\n"}},
		{name: "two files exchange names", patch: "diff --git a/f b/g\nrename from f\nrename to g\ndiff --git a/g b/f\nrename from g\nrename to f\n", old: files{"f": abc, "g": "x"}, want: files{"f": "x", "g": abc}},
		{name: "rename onto a file", patch: "diff --git a/f b/g\nrename from f\nrename to g\n", old: files{"f": abc, "g": "x"}, kind: Exists},
		{name: "rename chain in alphabetical order", patch: "diff --git a/f b/g\nrename from f\nrename to g\ndiff --git a/g b/h\nrename from g\nrename to h\n", old: files{"f": abc, "g": "x"}, want: files{"g": abc, "h": "x"}},
		{name: "copy", patch: "diff --git a/f b/g\nsimilarity index 90%\ncopy from f\ncopy to g\n--- a/f\n+++ b/g\n@@ -2 +2 @@\n-b\n+B\n", old: files{"f": abc}, want: files{"f": abc, "g": "a\nB\nc\n"}},
		{name: "quoted names", patch: "diff --git \"a/\\303\\251 \\\"x\\\".t\" \"b/\\303\\251 \\\"x\\\".t\"\n--- \"a/\\303\\251 \\\"x\\\".t\"\n+++ \"b/\\303\\251 \\\"x\\\".t\"\n@@ -2 +2 @@\n-b\n+B\n", old: files{"é \"x\".t": abc}, want: files{"é \"x\".t": "a\nB\nc\n"}},
		{name: "names with blanks", patch: "diff --git a/x y b/x y\ndeleted file mode 100644\n", old: files{"x y": ""}, want: files{}},
		{name: "wrong line numbers", patch: "--- f\n+++ f\n@@ -40,3 +40,3 @@\n a\n-b\n+B\n c\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "nearest to the stated line", patch: "--- f\n+++ f\n@@ -5 +5 @@\n-k\n+K\n", old: files{"f": dup}, want: files{"f": "x\nk\ny\nK\nz\n"}},
		{name: "equally near", patch: "--- f\n+++ f\n@@ -3 +3 @@\n-k\n+K\n", old: files{"f": dup}, kind: LinesNotFound, say: "lines 2, 4"},
		{name: "@@ without numbers", patch: "--- f\n+++ f\n@@ ... @@\n a\n-b\n+B\n", old: files{"f": abc}, kind: ContextNotFound},
		{name: "bare @@", patch: "--- f\n+++ f\n@@\n a\n-b\n+B\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "counts too small", patch: "--- f\n+++ f\n@@ -1,1 +1,1 @@\n a\n-b\n+B\n c\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "counts too large", patch: "--- f\n+++ f\n@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "counts too large inside a fence", patch: "Here:\n```diff\n--- f\n+++ f\n@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n```\nDone.\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "counts too large before another file", patch: "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n-a\n+A\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1,9 +1,9 @@\n-a\n+B\n", old: files{"f": abc, "g": abc}, want: files{"f": "A\nb\nc\n", "g": "B\nb\nc\n"}},
		{name: "removed line that looks like a header", patch: "--- f\n+++ f\n@@ -1,2 +1,2 @@\n--- a\n+++ b\n c\n", old: files{"f": "-- a\nc\n"}, want: files{"f": "++ b\nc\n"}},
		{name: "blank context line without its blank", patch: "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n", old: files{"f": "a\n\nb\n"}, want: files{"f": "a\n\nB\n"}},
		{name: "two files, two hunks, words around", patch: "From: me\nSubject: x\n\n---\n f | 2 +-\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-c\n+C\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+B\n-- \n2.43.0\n", old: files{"f": abc, "g": abc}, want: files{"f": "A\nb\nC\n", "g": "B\nb\nc\n"}},
		{name: "newline added at the end", patch: "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", old: files{"f": "a"}, want: files{"f": "a\n"}},
		{name: "newline taken away", patch: "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", old: files{"f": "a\n"}, want: files{"f": "a"}},
		{name: "diff that does not mention the missing newline", patch: "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n", old: files{"f": "a\nb"}, want: files{"f": "a\nB"}},
		{name: "LF diff, CRLF file", patch: "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", old: files{"f": "a\r\nb\r\nc\r\n"}, want: files{"f": "a\r\nB\r\nc\r\n"}},
		{name: "CRLF diff, LF file", patch: "--- f\r\n+++ f\r\n@@ -1,3 +1,3 @@\r\n a\r\n-b\r\n+B\r\n c\r\n", old: files{"f": abc}, want: files{"f": "a\nB\nc\n"}},
		{name: "CRs become LFs", patch: "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\r\n-b\r\n+b\n c\r\n", old: files{"f": "a\r\nb\r\nc\r\n"}, want: files{"f": "a\r\nb\nc\r\n"}},
		{name: "insert between lines 1 and 2 without context", patch: "--- f\n+++ f\n@@ -1,0 +2 @@\n+x\n", old: files{"f": abc}, want: files{"f": "a\nx\nb\nc\n"}},
		{name: "insert at the top without context", patch: "--- f\n+++ f\n@@ -0,0 +1 @@\n+x\n", old: files{"f": abc}, want: files{"f": "x\na\nb\nc\n"}},
		{name: "missing file", patch: "--- f\n+++ f\n@@ -2 +2 @@\n-b\n+B\n", kind: UpdateTargetMissing},
		{name: "lines not there", patch: "--- f\n+++ f\n@@ -2 +2 @@\n-q\n+B\n", old: files{"f": abc}, kind: LinesNotFound},
		{name: "no hunks", patch: "--- f\n+++ f\n", old: files{"f": abc}, kind: NoHunks},
		{name: "binary", patch: "diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n", old: files{"f": abc}, kind: BadEnvelope, say: "binary"},
		{name: "git binary", patch: "diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 1\nA\n", old: files{"f": abc}, kind: BadEnvelope, say: "binary"},
		{name: "combined", patch: "diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n -b\n++c\n", old: files{"f": abc}, kind: BadEnvelope, say: "combined"},
		{name: "symbolic link", patch: "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", kind: BadEnvelope, say: "symbolic"},
		{name: "submodule", patch: "diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+x\n", kind: BadEnvelope, say: "submodule"},
		{name: "unprefixed line inside a hunk", patch: "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\nb\n-c\n+C\n", old: files{"f": abc}, kind: BadEnvelope, say: "line 5"},
		{name: "hunk without a file", patch: "@@ -1 +1 @@\n-a\n+b\n--- f\n+++ f\n", old: files{"f": abc}, kind: BadEnvelope, say: "without a file"},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.patch, c.old, c.want, c.kind, c.say) })
	}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		name, patch string
		want        fs.FileMode
		kind        Kind
	}{
		{"new file", "diff --git a/g b/g\nnew file mode 100755\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+x\n", 0o755, Add},
		{"mode alone", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", 0o755, Update},
		{"mode with a change", "diff --git a/f b/f\nold mode 100755\nnew mode 100644\nindex 1..2\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n", 0o644, Update},
		{"rename with mode", "diff --git a/f b/g\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from f\nrename to g\n", 0o755, Move},
		{"index line says nothing new", "diff --git a/f b/f\nindex 1..2 100755\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n", 0, Update},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse(c.patch)
			if err != nil {
				t.Fatal(err)
			}
			changes, err := p.Apply(files{"f": abc}.read)
			if err != nil || len(changes) != 1 || changes[0].Mode != c.want || changes[0].Kind != c.kind {
				t.Fatalf("%+v %v", changes, err)
			}
		})
	}
}

func TestPathsNamesBothEndsOnce(t *testing.T) {
	p, err := Parse("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Update File: b\n@@\n-x\n+y\n*** Delete File: c\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Paths(), " "); got != "a b c" {
		t.Fatal(got)
	}
}

func TestReadFails(t *testing.T) {
	p, err := Parse("*** Begin Patch\n*** Delete File: a\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("denied")
	if _, err = p.Apply(func(string) (string, bool, error) { return "", false, broken }); !errors.Is(err, broken) {
		t.Fatal(err)
	}
}

// Two spellings that only the caller knows to be one file.
func TestKey(t *testing.T) {
	p, err := Parse("*** Begin Patch\n*** Update File: f\n@@\n-a\n+A\n*** Update File: /p/f\n@@\n-b\n+B\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	p.Key = func(path string) string { return strings.TrimPrefix(path, "/p/") }
	changes, err := p.Apply(files{"f": abc}.read)
	if err != nil || len(changes) != 1 || changes[0].Path != "f" || changes[0].New != "A\nB\nc\n" {
		t.Fatalf("%+v %v", changes, err)
	}
}

// Each hunk may look at the file, but must not copy it: a patch of a thousand hunks would copy it a thousand times.
func TestHunksDoNotCopyTheFile(t *testing.T) {
	var old, diff, envelope strings.Builder
	envelope.WriteString("*** Begin Patch\n*** Update File: a\n")
	diff.WriteString("--- a/a\n+++ b/a\n")
	for i := 1; i <= 20_000; i++ {
		fmt.Fprintf(&old, "line %d\n", i)
		if i%20 == 0 {
			fmt.Fprintf(&diff, "@@ -%d,2 +%d,2 @@\n-line %d\n+Line %d\n line %d\n", i, i, i, i, i+1)
			fmt.Fprintf(&envelope, "@@\n-line %d\n+Line %d\n line %d\n", i, i, i+1)
		}
	}
	old.WriteString("line 20001\n")
	envelope.WriteString("*** End Patch\n")
	for name, text := range map[string]string{"diff": diff.String(), "envelope": envelope.String()} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			changes, err := p.Apply(func(string) (string, bool, error) { return old.String(), true, nil })
			runtime.ReadMemStats(&after)
			if err != nil || len(changes) != 1 || strings.Count(changes[0].New, "Line ") != 1000 {
				t.Fatalf("%d changes, %v", len(changes), err)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > 100*uint64(old.Len()) {
				t.Errorf("%d bytes were allocated for a file of %d", made, old.Len())
			}
		})
	}
}
