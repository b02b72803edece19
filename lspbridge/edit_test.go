package lspbridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
)

// lspEdit writes a text edit: line and characters, half-open.
func lspEdit(line, from, to int, text string) string {
	return fmt.Sprintf(`{"range":{"start":{"line":%d,"character":%d},"end":{"line":%d,"character":%d}},"newText":%q}`, line, from, line, to, text)
}

func TestResolveEdit(t *testing.T) {
	files := map[string]string{"/p/a": "one two\nthree\n", "/p/b": "b𝄞c\n", "/p/dir/x": "x\n", "/p/dir/in/y": "y\n", "/p/typed": "typed\n"}
	versions := map[string]int32{"/p/a": 5, "/p/typed": -1}
	doc := func(path, version string, edits ...string) string {
		return fmt.Sprintf(`{"textDocument":{"uri":"file://%s","version":%s},"edits":[%s]}`, path, version, strings.Join(edits, ","))
	}
	for _, c := range []struct{ name, edit, want, err string }{
		{"changes", `{"changes":{"file:///p/a":[` + lspEdit(0, 4, 7, "2") + `,` + lspEdit(0, 0, 3, "1") + `]}}`, "edit /p/a 1 2|three|", ""},
		{"inserts at one place keep their order", `{"changes":{"file:///p/a":[` + lspEdit(0, 0, 0, "x") + `,` + lspEdit(0, 0, 0, "y") + `]}}`, "edit /p/a xyone two|three|", ""},
		{"an insert where a replacement begins", `{"changes":{"file:///p/a":[` + lspEdit(0, 0, 3, "1") + `,` + lspEdit(0, 0, 0, "x") + `]}}`, "edit /p/a x1 two|three|", ""},
		{"overlap", `{"changes":{"file:///p/a":[` + lspEdit(0, 0, 4, "x") + `,` + lspEdit(0, 3, 5, "y") + `]}}`, "", "overlap"},
		{"UTF-16 columns", `{"changes":{"file:///p/b":[` + lspEdit(0, 3, 4, "C") + `]}}`, "edit /p/b b𝄞C|", ""},
		{"changes to no file creates it", `{"changes":{"file:///p/new":[` + lspEdit(0, 0, 0, "n") + `]}}`, "create /p/new n", ""},
		{"nothing changes", `{"changes":{"file:///p/a":[` + lspEdit(0, 0, 3, "one") + `]}}`, "", ""},
		{"empty", `{}`, "", ""},
		{"documentChanges win", `{"changes":{"file:///p/b":[]},"documentChanges":[` + doc("/p/a", "5", lspEdit(0, 0, 3, "1")) + `]}`, "edit /p/a 1 two|three|", ""},
		{"two steps on one file", `{"documentChanges":[` + doc("/p/a", "5", lspEdit(0, 0, 3, "1")) + `,` + doc("/p/a", "null", lspEdit(0, 0, 1, "2")) + `]}`, "edit /p/a 2 two|three|", ""},
		{"old version", `{"documentChanges":[` + doc("/p/a", "4", lspEdit(0, 0, 3, "1")) + `]}`, "", "version 4"},
		{"version 0 of a closed file", `{"documentChanges":[` + doc("/p/b", "0", lspEdit(0, 0, 1, "B")) + `]}`, "edit /p/b B𝄞c|", ""},
		{"create and fill", `{"documentChanges":[{"kind":"create","uri":"file:///p/n"},` + doc("/p/n", "null", lspEdit(0, 0, 0, "x")) + `]}`, "create /p/n x", ""},
		{"create what exists", `{"documentChanges":[{"kind":"create","uri":"file:///p/a"}]}`, "", "exists"},
		{"create over", `{"documentChanges":[{"kind":"create","uri":"file:///p/a","options":{"overwrite":true}}]}`, "edit /p/a ", ""},
		{"create or leave", `{"documentChanges":[{"kind":"create","uri":"file:///p/a","options":{"ignoreIfExists":true}}]}`, "", ""},
		{"rename and edit", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/c"},` + doc("/p/c", "null", lspEdit(0, 0, 1, "B")) + `]}`, "rename /p/b>/p/c B𝄞c|", ""},
		{"rename twice", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/c"},{"kind":"rename","oldUri":"file:///p/c","newUri":"file:///p/d"}]}`, "rename /p/b>/p/d b𝄞c|", ""},
		{"rename onto a file", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/a"}]}`, "", "exists"},
		{"edit under the old name", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/c"},` + doc("/p/b", "null", lspEdit(0, 0, 1, "B")) + `]}`, "", "does not exist"},
		{"delete", `{"documentChanges":[{"kind":"delete","uri":"file:///p/b"}]}`, "delete /p/b ", ""},
		{"delete what is not there", `{"documentChanges":[{"kind":"delete","uri":"file:///p/x"}]}`, "", "does not exist"},
		{"create and delete is nothing", `{"documentChanges":[{"kind":"create","uri":"file:///p/n"},{"kind":"delete","uri":"file:///p/n"}]}`, "", ""},
		{"delete and create", `{"documentChanges":[{"kind":"delete","uri":"file:///p/b"},{"kind":"create","uri":"file:///p/b"},` + doc("/p/b", "null", lspEdit(0, 0, 0, "new")) + `]}`, "edit /p/b new", ""},
		{"no file at all", `{"changes":{"untitled:x":[]}}`, "", "not a file"},
		{"rename over a file", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/a","options":{"overwrite":true}}]}`, "delete /p/b ; edit /p/a b𝄞c|", ""},
		{"rename over a file and edit it", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/a","options":{"overwrite":true}},` + doc("/p/a", "null", lspEdit(0, 0, 1, "B")) + `]}`, "delete /p/b ; edit /p/a B𝄞c|", ""},
		{"rename or leave", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/a","options":{"ignoreIfExists":true}}]}`, "", ""},
		{"delete or leave", `{"documentChanges":[{"kind":"delete","uri":"file:///p/x","options":{"ignoreIfNotExists":true}}]}`, "", ""},
		{"delete a folder", `{"documentChanges":[{"kind":"delete","uri":"file:///p/dir","options":{"recursive":true}}]}`, "delete /p/dir/in/y ; delete /p/dir/x ", ""},
		{"delete a folder by accident", `{"documentChanges":[{"kind":"delete","uri":"file:///p/dir"}]}`, "", "not empty"},
		{"delete an empty folder", `{"documentChanges":[{"kind":"delete","uri":"file:///p/empty"}]}`, "", ""},
		{"move a folder", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/dir","newUri":"file:///p/moved"},` + doc("/p/moved/x", "null", lspEdit(0, 0, 1, "X")) + `]}`, "rename /p/dir/in/y>/p/moved/in/y y|; rename /p/dir/x>/p/moved/x X|", ""},
		{"one edit of two is to be confirmed", `{"changeAnnotations":{"q":{"label":"Risky","description":"in a comment","needsConfirmation":true},"n":{"label":"Fine"}},"documentChanges":[` +
			doc("/p/a", "5", strings.Replace(lspEdit(0, 0, 3, "1"), `"newText"`, `"annotationId":"q","newText"`, 1)) + `,` + doc("/p/b", "null", strings.Replace(lspEdit(0, 0, 1, "B"), `"newText"`, `"annotationId":"n","newText"`, 1)) + `]}`,
			"edit /p/a 1 two|three| (Risky: in a comment); edit /p/b B𝄞c|", ""},
		{"a deletion to be confirmed", `{"changeAnnotations":{"q":{"label":"Gone","needsConfirmation":true}},"documentChanges":[{"kind":"delete","uri":"file:///p/b","annotationId":"q"}]}`, "delete /p/b  (Gone)", ""},
		{"a snippet", `{"changes":{"file:///p/a":[{"range":{},"newText":"","snippet":{"value":"$1"}}]}}`, "", "snippet"},
		{"two edits for one version count from it", `{"documentChanges":[` + doc("/p/a", "5", lspEdit(0, 0, 3, "first of\n")) + `,` + doc("/p/a", "5", lspEdit(1, 0, 5, "3")) + `]}`, "edit /p/a first of| two|3|", ""},
		{"two edits for one version that overlap", `{"documentChanges":[` + doc("/p/a", "5", lspEdit(0, 0, 3, "1")) + `,` + doc("/p/a", "5", lspEdit(0, 1, 2, "2")) + `]}`, "", "overlap"},
		{"no documentChanges beside changes", `{"changes":{"file:///p/a":[` + lspEdit(0, 0, 3, "1") + `]},"documentChanges":[]}`, "edit /p/a 1 two|three|", ""},
		{"a text the server never saw", `{"changes":{"file:///p/typed":[` + lspEdit(0, 0, 1, "1") + `]}}`, "", "since the server saw it"},
		{"… also when it names the version it saw", `{"documentChanges":[` + doc("/p/typed", "3", lspEdit(0, 0, 1, "1")) + `]}`, "", "since the server saw it"},
		{"swapped over a third name", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/a","newUri":"file:///p/t"},{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/a"},{"kind":"rename","oldUri":"file:///p/t","newUri":"file:///p/b"}]}`,
			"edit /p/a b𝄞c|; edit /p/b one two|three|", ""},
		{"moved away and made anew", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/c"},{"kind":"create","uri":"file:///p/b"},` + doc("/p/b", "null", lspEdit(0, 0, 0, "see c")) + `]}`, "edit /p/b see c; create /p/c b𝄞c|", ""},
		{"moved away, made anew, and the moved one deleted", `{"documentChanges":[{"kind":"rename","oldUri":"file:///p/b","newUri":"file:///p/c"},{"kind":"create","uri":"file:///p/b"},{"kind":"delete","uri":"file:///p/c"},` + doc("/p/b", "null", lspEdit(0, 0, 0, "new")) + `]}`, "edit /p/b new", ""},
		{"moved to where one was deleted", `{"documentChanges":[{"kind":"delete","uri":"file:///p/b"},{"kind":"rename","oldUri":"file:///p/a","newUri":"file:///p/b"}]}`, "delete /p/a ; edit /p/b one two|three|", ""},
		{"a folder made, filled and moved", `{"documentChanges":[{"kind":"create","uri":"file:///p/fresh/n"},` + doc("/p/fresh/n", "null", lspEdit(0, 0, 0, "n")) + `,{"kind":"rename","oldUri":"file:///p/fresh","newUri":"file:///p/final"}]}`, "create /p/final/n n", ""},
		{"a folder deleted with what was just put there", `{"documentChanges":[{"kind":"create","uri":"file:///p/dir/n"},{"kind":"delete","uri":"file:///p/dir","options":{"recursive":true}}]}`, "delete /p/dir/in/y ; delete /p/dir/x ", ""},
		{"no range", `{"changes":{"file:///p/a":[{"newText":"x"}]}}`, "", "which range"},
		{"half a range", `{"changes":{"file:///p/a":[{"range":{"start":{"line":0,"character":1}},"newText":"x"}]}}`, "", "which range"},
		{"a line below zero", `{"changes":{"file:///p/a":[{"range":{"start":{"line":-1,"character":0},"end":{"line":0,"character":3}},"newText":"x"}]}}`, "", "which range"},
		{"a line in quotes", `{"changes":{"file:///p/a":[{"range":{"start":{"line":"1","character":0},"end":{"line":1,"character":3}},"newText":"x"}]}}`, "", "wrong shape"},
		{"no new text", `{"changes":{"file:///p/a":[` + strings.Replace(lspEdit(0, 0, 3, "1"), `"newText":"1"`, `"newText":null`, 1) + `]}}`, "", "without a new text"},
		{"whole floats, and the end of everything", `{"changes":{"file:///p/a":[{"range":{"start":{"line":1.0,"character":0},"end":{"line":99999999999,"character":0}},"newText":"x"}]}}`, "edit /p/a one two|x", ""},
		{"unknown kind", `{"documentChanges":[{"kind":"chmod"}]}`, "", "unknown kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e lsp.WorkspaceEdit
			if err := json.Unmarshal([]byte(c.edit), &e); err != nil {
				t.Fatal(err)
			}
			got, err := resolveEdit(e, UTF16, func(p string) (string, int32, bool) { text, ok := files[p]; return text, versions[p], ok }, func(dir string) (in []string, ok bool) {
				for _, f := range slices.Sorted(maps.Keys(files)) {
					if strings.HasPrefix(f, dir+"/") {
						in = append(in, f)
					}
				}
				return in, len(in) > 0 || dir == "/p/empty"
			})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			var out []string
			for _, f := range got {
				name := f.Path
				if f.NewPath != "" {
					name += ">" + f.NewPath
				}
				out = append(out, f.Kind+" "+name+" "+strings.ReplaceAll(f.New, "\n", "|"))
				if f.Confirm != "" {
					out[len(out)-1] += " (" + f.Confirm + ")"
				}
			}
			if s := strings.Join(out, "; "); err != nil || s != c.want {
				t.Errorf("%q %v, want %q", s, err, c.want)
			}
		})
	}
}

// Edits that do not overlap give the same text whatever their order on the wire.
func FuzzTextEdits(f *testing.F) {
	f.Add("hello\nworld\n", 0, 1, 3, "x", 1, 2, "y")
	f.Fuzz(func(t *testing.T, text string, l1, a, b int, s1 string, l2, c int, s2 string) {
		if l1 == l2 {
			return
		}
		u := func(n int) lsp.Uint { return lsp.Uint(max(0, min(n, 1000))) }
		e1 := lsp.TextEdit{Range: lsp.Range{Start: lsp.Position{Line: u(l1), Character: u(a)}, End: lsp.Position{Line: u(l1), Character: u(b)}}, NewText: s1}
		e2 := lsp.TextEdit{Range: lsp.Range{Start: lsp.Position{Line: u(l2), Character: u(c)}, End: lsp.Position{Line: u(l2), Character: u(c)}}, NewText: s2}
		x, err1 := applyTextEdits(text, []lsp.TextEdit{e1, e2}, UTF16)
		y, err2 := applyTextEdits(text, []lsp.TextEdit{e2, e1}, UTF16)
		same := offset(text, int(e1.Range.Start.Line), int(e1.Range.Start.Character), UTF16) == offset(text, int(e2.Range.Start.Line), int(e2.Range.Start.Character), UTF16)
		if (err1 == nil) != (err2 == nil) || err1 == nil && x != y && !same {
			t.Fatalf("%q %v and %q %v", x, err1, y, err2)
		}
	})
}
