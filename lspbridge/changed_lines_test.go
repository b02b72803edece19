package lspbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

func TestChangedRuns(t *testing.T) {
	for name, c := range map[string]struct {
		old, now string
		want     []run
	}{
		"nothing":              {"a\nb\n", "a\nb\n", nil},
		"first and last":       {"a\nb\nc\nd\n", "A\nb\nc\nD\n", []run{{0, 0, false}, {3, 3, false}}},
		"gone":                 {"a\nb\nc\n", "a\nc\n", []run{{1, 1, false}}},
		"between":              {"a\nb\nc\n", "a\nnew\nb\nC\n", []run{{0, 1, true}, {2, 2, false}}},
		"before everything":    {"a\nb\n", "new\na\nb\n", nil},
		"after everything":     {"a\nb\n", "a\nb\nnew\n", nil},
		"the same line twice":  {"x\nx\ny\nz\n", "x\ny\nQ\n", []run{{0, 0, false}, {3, 3, false}}},
		"two change places":    {"a\nb\nc\n", "b\na\nc\n", []run{{0, 0, false}, {1, 2, true}}},
		"emptied":              {"a\nb\n", "", []run{{0, 1, false}}},
		"nothing has an order": {"a\na\nb\n", "b\na\na\n", []run{{0, 1, false}}},
	} {
		got := changedRuns(c.old, c.now)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What uses a change is looked for where it is changed, not in all that is between its first and its last line; and
// where there is more of it than can be looked at, the answer says so.
func TestUsersThatAreTooMany(t *testing.T) {
	const lines = 30
	var text strings.Builder
	var symbols []any
	for i := range lines {
		fmt.Fprintf(&text, "line %d\n", i)
		at := map[string]any{"start": map[string]int{"line": i, "character": 0}, "end": map[string]int{"line": i, "character": 4}}
		symbols = append(symbols, map[string]any{"name": fmt.Sprint("d", i), "kind": 13, "range": at, "selectionRange": at})
	}
	old := text.String()
	edited := func(which ...int) string {
		s := old
		for _, n := range which {
			s = strings.Replace(s, fmt.Sprintf("line %d\n", n), fmt.Sprintf("other %d\n", n), 1)
		}
		return s
	}
	for name, c := range map[string]struct {
		now   string
		users int
		state change.Certainty
		says  string
	}{
		"far apart":         {edited(0, 29), 1, change.Fresh, ""},
		"many users":        {edited(5), 33, change.Partial, "20 of the 33 files that use the changed declarations"},
		"many declarations": {edited(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 1, change.Partial, "uses of 8 of the 10 changed declarations"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				files := map[string]string{"a.fake": old}
				for i := range c.users {
					files[fmt.Sprintf("user%d.fake", i)] = "uses\n"
				}
				f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"documentSymbolProvider": true, "referencesProvider": true},
					On: func(_ context.Context, _ *fakelsp.Server, method string, p json.RawMessage) (any, bool, error) {
						switch method {
						case "textDocument/documentSymbol":
							return symbols, true, nil
						case "textDocument/references":
							var at struct{ Position Position }
							_ = json.Unmarshal(p, &at)
							out := []any{}
							for i := range c.users {
								if name != "far apart" || at.Position.Line == 29 {
									out = append(out, map[string]any{"uri": fmt.Sprintf("file:///p/user%d.fake", i), "range": map[string]any{"start": map[string]int{"line": 0, "character": 0}, "end": map[string]int{"line": 0, "character": 1}}})
								}
							}
							return out, true, nil
						}
						return nil, false, nil
					}}, files)
				defer f.Close(context.Background())
				d := f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: c.now}})
				if d.Certainty != c.state || !strings.Contains(d.Reason, c.says) {
					t.Errorf("%s %q", d.Certainty, d.Reason)
				}
				if _, _, open := f.server().Text("file:///p/user0.fake"); !open {
					t.Error("a file that uses what is changed was not looked at")
				}
			})
		})
	}
}

// A change of a method's body is not a change of its class; what a line passes on without naming it has users nobody can say.
func TestWhatAChangeReaches(t *testing.T) {
	at := func(first, last int) map[string]any {
		return map[string]any{"start": map[string]int{"line": first, "character": 0}, "end": map[string]int{"line": last, "character": 1}}
	}
	const old = "export * from './x'\nimport { y } from './y'\nclass C extends y {\n  m(): number {\n    return 1\n  }\n  n = 1\n}\n"
	symbols := []any{map[string]any{"name": "C", "kind": 5, "range": at(2, 7), "selectionRange": at(2, 2), "children": []any{
		map[string]any{"name": "m", "kind": 6, "range": at(3, 5), "selectionRange": at(3, 3)}, map[string]any{"name": "n", "kind": 7, "range": at(6, 6), "selectionRange": at(6, 6)}}}}
	for _, c := range []struct {
		from, to string
		asked    int
		state    change.Certainty
	}{
		{"return 1", "return 2", 0, change.Fresh},
		{"m(): number", "m(): string", 2, change.Fresh}, // the method and the class
		{"n = 1", "n = 2", 2, change.Fresh},
		{"import { y }", "import { z }", 1, change.Fresh}, // the class; nobody takes y itself from here
		{"import { y }", "import { y, z }", 0, change.Fresh},
		{"export * from './x'\n", "export * from './x'\nimport w from 'w'\n", 0, change.Fresh},
		{"export * from './x'\n", "", 1, change.Partial}, // x
	} {
		t.Run(c.from, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				asked := make(chan struct{}, 20)
				f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"documentSymbolProvider": true, "referencesProvider": true},
					On: func(_ context.Context, _ *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
						switch method {
						case "textDocument/documentSymbol":
							return symbols, true, nil
						case "textDocument/references":
							asked <- struct{}{}
							return []any{}, true, nil
						}
						return nil, false, nil
					}}, map[string]string{"a.ts": old})
				defer f.Close(context.Background())
				f.path = filepath.Join(filepath.Dir(f.path), "a.ts")
				f.rows = func() []Server { return []Server{{ID: "fake", Extensions: []string{".ts"}}} }
				d := f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: strings.Replace(old, c.from, c.to, 1)}})
				if d.Certainty != c.state || len(asked) != c.asked {
					t.Errorf("%s %q, asked %d times, want %d", d.Certainty, d.Reason, len(asked), c.asked)
				}
			})
		})
	}
}

// A declaration that is made of what a file imports is another one when that comes from elsewhere, or not at all.
func TestWhatAnImportMakes(t *testing.T) {
	const ts = "import { Base, type Other } from './base'\nexport class C extends Base {}\n"
	const py = "from .base import (\n    Base,\n    Other,\n)\nclass C(Base): pass\n"
	for _, c := range []struct{ path, old, now, want string }{
		{"a.ts", ts, strings.Replace(ts, "import { Base, type Other } from './base'\n", "", 1), "Base Other"},
		{"a.ts", ts, strings.Replace(ts, "./base", "./other", 1), "Base Other"},
		{"a.ts", ts, strings.Replace(ts, "{ Base", "{ More, Base", 1), ""},
		{"a.ts", ts, strings.Replace(ts, ", type Other", "", 1), "Other"},
		{"a.ts", ts, strings.Replace(ts, "export", "import x from 'x'\nexport", 1), ""},
		{"a.py", py, strings.Replace(py, "    Base,\n", "", 1), "Base"},
		{"a.py", py, strings.Replace(py, "    Other,\n", "    Other, More,\n", 1), ""},
		{"a.go", "import \"x\"\n", "", ""},
	} {
		names := slices.Sorted(maps.Keys(lostImports(c.path, c.old, c.now, changedRuns(c.old, c.now))))
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.now, got, c.want)
		}
	}
	names := map[string]bool{"Base": true}
	for text, want := range map[string]bool{"class C extends Base {}": true, "class C extends Basement {}": false} {
		if got := signatureMentions("a.ts", text, Symbol{Kind: kindClass}, names); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	const head = "function f(b: number): number {\n  return new Base(b).n\n}\n"
	f := Symbol{Kind: kindFunction, Range: Range{End: Position{2, 1}}, Selection: Range{Position{0, 9}, Position{0, 10}}}
	if signatureMentions("a.ts", head, f, names) {
		t.Error("what a function does inside is its own")
	}
	if !signatureMentions("a.ts", strings.Replace(head, "): number", ")", 1), f, names) {
		t.Error("its result is inferred from it")
	}
}

// A line more or less may hide what is below it: nobody was asked who uses that.
func TestWhatAChangeHides(t *testing.T) {
	at := func(line int) map[string]any {
		return map[string]any{"start": map[string]int{"line": line, "character": 0}, "end": map[string]int{"line": line, "character": 4}}
	}
	for _, c := range []struct {
		now  string
		want change.Certainty
	}{{"open\nbelow\n", change.Partial}, {"other\nbelow\n", change.Fresh}, {"other\n", change.Fresh}} { // what is taken away is asked about
		bubble(t, func(t *testing.T) {
			f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"documentSymbolProvider": true, "referencesProvider": true},
				On: func(_ context.Context, s *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
					switch method {
					case "textDocument/documentSymbol":
						out := []any{}
						text, _, _ := s.Text("file:///p/a.fake")
						for i, l := range strings.Split(text, "\n") {
							if l == "open" { // and never closed
								break
							}
							if l != "" {
								out = append(out, map[string]any{"name": l, "kind": 12, "range": at(i), "selectionRange": at(i)})
							}
						}
						return out, true, nil
					case "textDocument/references":
						return []any{}, true, nil
					}
					return nil, false, nil
				}}, map[string]string{"a.fake": "above\nbelow\n"})
			defer f.Close(context.Background())
			edit := []Proposal{{Path: f.path, Text: c.now, Old: "above\nbelow\n"}}
			for name, d := range map[string]Delta{"check": f.Check(f.ctx(time.Minute), edit), "written": f.Changed(f.ctx(time.Minute), edit)} {
				if hides := strings.Contains(d.Reason, "use below, which it no longer sees"); d.Certainty != c.want || hides != (c.want == change.Partial) {
					t.Errorf("%q %s: %s %q", c.now, name, d.Certainty, d.Reason)
				}
			}
		})
	}
}
