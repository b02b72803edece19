package change

import "testing"

func TestCompare(t *testing.T) {
	text := func(s string, mode uint32) Side { return Side{Exists: true, Text: s, Encoding: "utf-8", Mode: mode} }
	link := func(to string) Side { return Side{Exists: true, Text: to, Encoding: Link} }
	for name, c := range map[string]struct {
		before, after Side
		want          File
		same          bool
	}{
		"nothing":                  {same: true},
		"the same":                 {before: text("a", 0o644), after: text("a", 0o644), same: true},
		"an edit":                  {before: text("a", 0o644), after: text("b", 0o644), want: File{Kind: Edit, Old: "a", New: "b", OldMode: 0o644, Encoding: "utf-8"}},
		"the mode alone":           {before: text("a", 0o644), after: text("a", 0o755), want: File{Kind: Edit, Old: "a", New: "a", OldMode: 0o644, Mode: 0o755, Encoding: "utf-8"}},
		"made":                     {after: text("a", 0o644), want: File{Kind: Create, New: "a", Encoding: "utf-8"}},
		"made with another mode":   {after: text("a", 0o600), want: File{Kind: Create, New: "a", Mode: 0o600, Encoding: "utf-8"}},
		"removed":                  {before: text("a", 0o755), want: File{Kind: Delete, Old: "a", OldMode: 0o755, Encoding: "utf-8"}},
		"zero bytes":               {before: text("a", 0o644), after: text("\x00", 0o644), want: File{Kind: Edit, Old: "a", New: "\x00", OldMode: 0o644, Encoding: "utf-8", OldEncoding: "utf-8", Binary: true}},
		"the encoding alone":       {before: text("a", 0o644), after: Side{Exists: true, Text: "a", Encoding: "utf-16le", Mode: 0o644}, want: File{Kind: Edit, Old: "a", New: "a", OldMode: 0o644, Encoding: "utf-16le", OldEncoding: "utf-8", Binary: true}},
		"a link":                   {after: link("b"), want: File{Kind: Create, New: "b", Encoding: Link, Binary: true}},
		"a link in a file's place": {before: text("a", 0o600), after: link("b"), want: File{Kind: Edit, Old: "a", New: "b", OldMode: 0o600, Encoding: Link, OldEncoding: "utf-8", Binary: true}},
		"a file in a link's place": {before: link("b"), after: text("a", 0o600), want: File{Kind: Edit, Old: "b", New: "a", Mode: 0o600, Encoding: "utf-8", OldEncoding: Link, Binary: true}},
		"a link that is removed":   {before: link("b"), want: File{Kind: Delete, Old: "b", Encoding: Link, Binary: true}},
	} {
		got, ok := Compare("/p", c.before, c.after, 0o022)
		c.want.Path = "/p"
		if ok == c.same || ok && (got.Kind != c.want.Kind || got.Old != c.want.Old || got.New != c.want.New || got.Mode != c.want.Mode || got.OldMode != c.want.OldMode ||
			got.Encoding != c.want.Encoding || got.OldEncoding != c.want.OldEncoding || got.Binary != c.want.Binary) {
			t.Errorf("%s: %v %+v", name, ok, got)
		}
	}
}

func TestBothSides(t *testing.T) {
	if got := BothSides("a\nb\nc\n", "a\nB\nc\nd"); got != "a\n<<<<<<< the project\nb\n=======\nB\n>>>>>>> the draft\nc\n<<<<<<< the project\n=======\nd\n>>>>>>> the draft\n" {
		t.Errorf("%q", got)
	}
	if got := BothSides("a\n", "a\n"); got != "a\n" {
		t.Errorf("%q", got)
	}
}
