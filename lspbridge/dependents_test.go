package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// A server that does not say in time who uses what is changed leaves the answer partial, asked before a write or after.
func TestUsesThatAreNotSaidInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"referencesProvider": true, "documentSymbolProvider": true},
			On: func(ctx context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				switch m {
				case "textDocument/documentSymbol":
					return json.RawMessage(`[{"name":"x","kind":13,"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":4}},"selectionRange":{"start":{"line":0,"character":0},"end":{"line":0,"character":4}}}]`), true, nil
				case "textDocument/references":
					<-ctx.Done()
					return nil, true, ctx.Err()
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh {
			t.Fatal(r)
		}
		const late = "did not report in time which other files use"
		edit := []Proposal{{Path: f.path, Text: "good\n", Old: "fine\n"}}
		if d := f.Check(f.ctx(time.Minute), edit); d.Certainty != change.Partial || !strings.Contains(d.Reason, late) {
			t.Errorf("before the write: %s %q", d.Certainty, d.Reason)
		}
		if d := f.Changed(f.ctx(time.Minute), edit); d.Certainty != change.Partial || !strings.Contains(d.Reason, late) {
			t.Errorf("after the write: %s %q", d.Certainty, d.Reason)
		}
	})
}

// symbolsOf answers textDocument/documentSymbol with a variable in each of the first n lines.
func symbolsOf(n int) json.RawMessage {
	var out []map[string]any
	for line := range n {
		r := map[string]any{"start": map[string]int{"line": line, "character": 0}, "end": map[string]int{"line": line, "character": 4}}
		out = append(out, map[string]any{"name": string(rune('x' + line)), "kind": 13, "range": r, "selectionRange": r})
	}
	b, _ := json.Marshal(out)
	return b
}

var withReferences = map[string]any{"referencesProvider": true, "documentSymbolProvider": true}

// An error is not the answer "no uses".
func TestUsesThatCannotBeSaid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: withReferences,
			On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				switch m {
				case "textDocument/documentSymbol":
					return symbolsOf(1), true, nil
				case "textDocument/references":
					return nil, true, errors.New("this._token.cancel is not a function")
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		edit := []Proposal{{Path: f.path, Text: "good\n", Old: "fine\n"}}
		if d := f.Check(f.ctx(time.Minute), edit); d.Certainty != change.Partial || !strings.Contains(d.Reason, "could not say which other files use") {
			t.Errorf("%s %q", d.Certainty, d.Reason)
		}
	})
}

// pyright fails for good when a request for references is cancelled, and drops one that overlaps another.
func TestRequestsThatMustNotOverlap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most, cancelled := 0, 0, 0
		slow := 15 * time.Second
		f := newFaked(t, Quirks{Alone: []string{"textDocument/references"}}, fakelsp.Options{Pull: true, Capabilities: withReferences,
			On: func(ctx context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				switch m {
				case "textDocument/documentSymbol":
					return symbolsOf(3), true, nil
				case "textDocument/references":
					mu.Lock()
					running++
					most = max(most, running)
					pause := slow
					mu.Unlock()
					select {
					case <-time.After(pause):
					case <-ctx.Done():
						mu.Lock()
						cancelled++
						mu.Unlock()
					}
					mu.Lock()
					running--
					mu.Unlock()
					return json.RawMessage("[]"), true, nil
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "fin1\nfin2\nfin3\n"})
		edit := []Proposal{{Path: f.path, Text: "goo1\ngoo2\ngoo3\n"}}
		if d := f.Check(f.ctx(time.Minute), edit); d.Certainty != change.Partial || !strings.Contains(d.Reason, "did not report in time") {
			t.Errorf("slow: %s %q", d.Certainty, d.Reason)
		}
		mu.Lock()
		slow = time.Second
		mu.Unlock()
		time.Sleep(time.Minute) // the bubble's: the request that was given up is answered
		if d := f.Check(f.ctx(time.Minute), edit); d.Certainty != change.Fresh {
			t.Errorf("quick: %s %q", d.Certainty, d.Reason)
		}
		mu.Lock()
		if most != 1 || cancelled != 0 {
			t.Errorf("%d at the same time, %d cancelled", most, cancelled)
		}
		mu.Unlock()
		f.Close(context.Background())
	})
}

// While pyright searches the project, a verdict is pending and says so; if its log never tells the end, it becomes partial.
func TestFilesThatAreStillSearched(t *testing.T) {
	for _, found := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			said := func(s *fakelsp.Server, text string) {
				_ = s.Peer().Notify(context.Background(), "window/logMessage", map[string]any{"type": 3, "message": text})
			}
			f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: withReferences,
				On: func(_ context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
					switch m {
					case "initialize":
						said(s, `Starting service instance "<default>"`)
						said(s, `Starting service instance "p"`)
					case "textDocument/documentSymbol":
						return symbolsOf(1), true, nil
					case "textDocument/references":
						return json.RawMessage("[]"), true, nil
					}
					return nil, false, nil
				}}, map[string]string{"a.fake": "fine\n"})
			defer f.Close(context.Background())
			f.rows = func() []Server {
				return []Server{{ID: "fake", Extensions: []string{".fake"}, hooks: hooks{log: pyrightSearches}}}
			}
			edit := []Proposal{{Path: f.path, Text: "good\n"}}
			if d := f.Check(f.ctx(20*time.Second), edit); d.Certainty != change.Pending || !strings.Contains(d.Reason, fileSearch) {
				t.Errorf("searching: %s %q", d.Certainty, d.Reason)
			}
			if !found {
				if d := f.Check(f.ctx(3*time.Minute), edit); d.Certainty != change.Partial || !strings.Contains(d.Reason, "has not found all source files yet") {
					t.Errorf("never found: %s %q", d.Certainty, d.Reason)
				}
				return
			}
			said(f.server(), "Found 8 source files")
			if d := f.Check(f.ctx(20*time.Second), edit); d.Certainty != change.Fresh {
				t.Errorf("found: %s %q", d.Certainty, d.Reason)
			}
		})
	}
}

// A file that decides about others, of which its own server knows nothing, leaves the verdict incomplete.
func TestFilesThatAreReadWhenSaved(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n", "a.go": "package m\n",
		"web/tsconfig.json": "{}", "web/tsconfig.base.json": "{}", "web/package.json": "{}", "web/src/a.ts": "import d from \"./data.json\"\n", "web/src/data.json": "{}", "web/src/other.json": "{}",
		"docs/package.json": "{}", "py/pyproject.toml": "", "py/setup.py": "", "py/a.py": "",
		"web/tsconfig.app.json": `{"extends":"../shared/strict"}`, "shared/strict.json": "{}", "shared/strictly.json": "{}", "shared/tsconfig.all.json": "{}",
		"go.sum": "", "go.work": "go 1.24\n", "c/c.go": "package c\n\nimport \"C\"\n", "c/sub/c.h": "", "plain/p.go": "package p\n\nvar _ = \"C\"\n", "plain/p.h": "",
		"emb/e.go": "package e\n\n//go:embed a.txt \"static/*.css\" all:dir\nvar f embed.FS\n", "emb/a.txt": "", "emb/b.txt": "", "emb/static/x.css": "", "emb/dir/deep/y.txt": "",
		"cs/x.csproj": "", "cs/x.cs": "",
	} {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := New(Options{Root: dir, NoWatch: true})
	defer m.Close(context.Background())
	for name, want := range map[string]string{
		"go.mod": "gopls reads go.mod", "a.go": "",
		"web/tsconfig.json": "typescript reads tsconfig.json", "web/tsconfig.base.json": "typescript reads", "web/package.json": "typescript reads package.json",
		"web/src/data.json": "data.json, which a.ts uses, only", "web/src/other.json": "", "web/src/a.ts": "",
		"docs/package.json": "", "py/pyproject.toml": "pyright reads", "py/setup.py": "",
		"shared/strict.json": "which tsconfig.app.json uses", "shared/strictly.json": "", "shared/tsconfig.all.json": "typescript reads",
		"go.sum": "gopls reads go.sum", "go.work": "gopls reads go.work", "c/sub/c.h": "which c.go uses", "plain/p.h": "", "emb/a.txt": "", "cs/x.csproj": "csharp reads",
	} {
		got := m.readFromDisk(t.Context(), []Proposal{{Path: filepath.Join(dir, filepath.FromSlash(name)), Text: "x"}}, false)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// An embedded file breaks the build when it is gone, whatever is in it.
	for name, want := range map[string]bool{"emb/a.txt": true, "emb/b.txt": false, "emb/static/x.css": true, "emb/dir/deep/y.txt": true, "web/src/other.json": false} {
		got := m.readFromDisk(t.Context(), []Proposal{{Path: filepath.Join(dir, filepath.FromSlash(name)), Delete: true}}, false)
		if strings.Contains(got, "which e.go uses") != want {
			t.Errorf("%s, deleted: %q", name, got)
		}
	}
	// After the write, a server that was asked about the file and reports all files knows what follows.
	for name, want := range map[string]string{"go.mod": "", "go.sum": "gopls was not asked which problems go.sum causes", "web/tsconfig.json": "typescript was not asked which problems tsconfig.json causes in other files",
		"c/sub/c.h": "c.h, which c.go uses, causes"} {
		got := m.readFromDisk(t.Context(), []Proposal{{Path: filepath.Join(dir, filepath.FromSlash(name)), Text: "x"}}, true)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s, written: %q, want %q", name, got, want)
		}
	}
}

// clangd says nothing of an error that a template of a header has only where it is used.
func TestTemplatesInHeaders(t *testing.T) {
	const text = "#pragma once\ntemplate <typename T>\nT f(T x) { return x; }\n"
	for path, want := range map[string]bool{"/p/a.hh": true, "/p/a.cc": false} {
		if got := clangdGap(path, text, nil, nil) != ""; got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if why := clangdGap("/p/a.h", "int template_of(int x);\n", nil, nil); why != "" {
		t.Error(why)
	}
	// After 20 errors clangd looks no further, so the verdict lacks some.
	if why := clangdGap("/p/a.h", "int f(void);\n", nil, []change.Problem{{Path: "/p/b.c", Code: "fatal_too_many_errors"}}); why != "clangd ends after 20 errors, and b.c has more after this change" {
		t.Error(why)
	}
}

// Who only takes a changed type breaks as well, and its callers need not name the type.
func TestTakersOfAChangedType(t *testing.T) {
	const text = "interface Options {\n  size: number;\n}\nfunction draw(o: Options): number {\n  return 1;\n}\nfunction other(): void {\n  const o: Options = { size: 1 };\n}\n"
	symbol := func(name string, kind, first, last int) Symbol {
		const keyword = 9 // "function "
		return Symbol{Name: name, Kind: kind, Range: Range{Position{first, 0}, Position{last, 1}}, Selection: Range{Position{first, keyword}, Position{first, keyword + len(name)}}}
	}
	options, draw, other := symbol("Options", kindInterface, 0, 2), symbol("draw", kindFunction, 3, 5), symbol("other", kindFunction, 6, 8)
	list := []Symbol{options, draw, other}
	for _, c := range []struct {
		path    string
		changed []Symbol
		want    string
	}{
		{"/p/a.ts", []Symbol{options}, "draw"},
		{"/p/a.ts", []Symbol{options, draw}, ""}, // searched anyway
		{"/p/a.ts", []Symbol{other}, ""},
		{"/p/a.c", []Symbol{options}, ""},
	} {
		var got []string
		for _, s := range takers(c.path, text, list, c.changed) {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %v: %q, want %q", c.path, c.changed, got, c.want)
		}
	}
}
