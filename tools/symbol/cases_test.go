package symbol

import (
	"slices"
	"strings"
	"testing"
)

// cut is one edit of one declaration in a text as people write them. Only the changed part of the text is spelled out:
// from becomes to; everything else must stay as it is.
type cut struct {
	what, name, op, body string
	from, to             string // what changes in the text; both empty: nothing
	err                  string // part of the refusal instead
}

// cutText is a text with its edits.
type cutText struct {
	path, text string
	cuts       []cut
}

func TestCuts(t *testing.T) {
	if !hasParser {
		t.Skip("built without cgo: no grammars")
	}
	n := 0
	for _, f := range slices.Concat(goAndWebCuts, nativeCuts, webCuts, dataCuts) {
		for _, crlf := range []bool{false, true} {
			dos := func(s string) string {
				if crlf {
					return strings.ReplaceAll(s, "\n", "\r\n")
				}
				return s
			}
			text := dos(f.text)
			list, err := Outline(f.path, text)
			if err != nil {
				t.Fatal(f.path, err)
			}
			for _, c := range f.cuts {
				n++
				name := f.path + ": " + c.what
				found := Find(list, c.name)
				if c.op == "many" {
					if len(found) < 2 {
						t.Errorf("%s: %d symbols are called %s", name, len(found), c.name)
					}
					continue
				}
				if len(found) != 1 {
					t.Errorf("%s: %d symbols are called %s", name, len(found), c.name)
					continue
				}
				var got string
				switch c.op {
				case "replace":
					got, err = Replace(text, found[0], c.body)
				case "before":
					got, err = Before(text, found[0], c.body)
				case "after":
					got, err = After(text, found[0], c.body)
				case "delete":
					got, err = Delete(text, found[0])
				}
				if c.err != "" {
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("%s: %v, want %q", name, err, c.err)
					}
					continue
				}
				if strings.Count(f.text, c.from) != 1 {
					t.Fatalf("%s: %q is not there once", name, c.from)
				}
				want := dos(strings.Replace(f.text, c.from, c.to, 1))
				if err != nil || got != want {
					t.Errorf("%s (CRLF %v): %v\n%s\nwant\n%s", name, crlf, err, got, want)
				}
				if was, _ := Broken(f.path, text); !was {
					if broken, ok := Broken(f.path, got); ok && broken {
						t.Errorf("%s leaves a syntax error", name)
					}
				}
			}
		}
	}
	if n < 120 {
		t.Errorf("only %d cases", n)
	}
}
