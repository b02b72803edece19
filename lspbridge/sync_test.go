package lspbridge

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// A server takes back the problems of a document that is closed, and may say so only when the document is open again.
func TestTheProblemsOfAClosedDocument(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		ctx := f.ctx(time.Minute)
		f.Diagnostics(ctx, f.path)
		c := f.running()[0].current()
		c.docs.close(f.path)
		c.docs.put(f.path, "BAD one\n")
		taken := lsp.Publish{URI: string(pathURI(f.path))}
		c.published(taken)
		if doc, _ := c.docs.get(f.path); c.ledger.latest(f.path).publishedFor(doc) {
			t.Error("it counts as the answer about the document that was opened afterwards")
		}
		synctest.Wait()
		if r := f.Diagnostics(ctx, f.path); messages(r.Items) != "a.fake: one" {
			t.Errorf("%s %q", r.Certainty, messages(r.Items))
		}
		c.docs.close(f.path)
		synctest.Wait()
		if got := c.ledger.latest(f.path).items(); len(got) > 0 {
			t.Errorf("closed, and it still has %q", messages(got))
		}
	})
}

// Where a change on disk needs the server to load the project again, it is told of the texts before, with which it loads.
func TestAReloadFollowsTheTexts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		loaded := ""
		row := f.rows()[0]
		row.hooks.reload = func(c *client, _ []fileEvent) {
			doc, _ := c.docs.get(f.path)
			loaded = doc.text
		}
		f.rows = func() []Server { return []Server{row} }
		ctx := f.ctx(time.Minute)
		f.Diagnostics(ctx, f.path)
		f.edit("BAD other\n")
		c := f.running()[0].current()
		c.disk.add([]fileEvent{{f.path, 2}})
		if err := c.await(ctx, c.disk.isIdle); err != nil || loaded != "BAD other\n" {
			t.Errorf("loaded with %q (%v)", loaded, err)
		}
	})
}

// A server is told of texts what it says it wants to hear: nothing at all, or openings only.
func TestServersThatTakeNoChanges(t *testing.T) {
	for name, sync := range map[string]any{"number": 0, "object": map[string]any{"openClose": false, "save": true}, "empty": map[string]any{}} {
		t.Run("none, as "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFaked(t, Quirks{}, fakelsp.Options{Capabilities: map[string]any{"textDocumentSync": sync}}, map[string]string{"a.fake": "fine\n"})
				defer f.Close(context.Background())
				ctx, began := f.ctx(time.Minute), time.Now()
				d := f.Check(ctx, []Proposal{{Path: f.path, Text: "BAD one\n"}})
				if d.Certainty != change.Unavailable || !strings.Contains(d.Reason, "does not accept unsaved texts") {
					t.Errorf("check: %s %q", d.Certainty, d.Reason)
				}
				f.edit("BAD one\n")
				if d := f.Changed(ctx, []Proposal{{Path: f.path, Text: "BAD one\n", Old: "fine\n"}}); d.Certainty != change.Unavailable {
					t.Errorf("changed: %s %q", d.Certainty, d.Reason)
				}
				if r := f.Diagnostics(ctx, f.path); r.Certainty != change.Unavailable {
					t.Errorf("diagnostics: %s %q", r.Certainty, r.Reason)
				}
				if time.Since(began) > time.Second {
					t.Errorf("waited %v for what cannot come", time.Since(began))
				}
				synctest.Wait()
				seen := f.server().Seen()
				for _, m := range []string{"textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"} {
					if slices.Contains(seen, m) {
						t.Errorf("it was sent %s", m)
					}
				}
				if slices.Contains(seen, "textDocument/didSave") != (name == "object") {
					t.Errorf("saves: %q", seen)
				}
			})
		})
	}
	t.Run("openings only", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true, Capabilities: map[string]any{"textDocumentSync": map[string]any{"openClose": true}}}, map[string]string{"a.fake": "BAD one\n"})
			defer f.Close(context.Background())
			ctx := f.ctx(time.Minute)
			for range 3 {
				if d := f.Check(ctx, []Proposal{{Path: f.path, Text: "BAD two\n"}}); d.Certainty != change.Fresh || messages(d.Introduced) != "a.fake: two" || messages(d.Fixed) != "a.fake: one" {
					t.Fatalf("%s %q: introduced %q, fixed %q", d.Certainty, d.Reason, messages(d.Introduced), messages(d.Fixed))
				}
			}
			synctest.Wait()
			if got, _, _ := f.server().Text("file:///p/a.fake"); got != "BAD one\n" {
				t.Errorf("left with %q", got)
			}
			if slices.Contains(f.server().Seen(), "textDocument/didChange") {
				t.Error("it was sent didChange")
			}
		})
	})
	t.Run("registered later", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true, Capabilities: map[string]any{"textDocumentSync": 0},
				On: func(ctx context.Context, s *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
					if method == "initialized" {
						_ = s.Peer().Call(ctx, "client/registerCapability", map[string]any{"registrations": []any{
							map[string]any{"id": "1", "method": "textDocument/didOpen"},
							map[string]any{"id": "2", "method": "textDocument/didChange", "registerOptions": map[string]any{"syncKind": 2}}}}, nil)
					}
					return nil, false, nil
				}}, map[string]string{"a.fake": "BAD one\n"})
			defer f.Close(context.Background())
			ctx := f.ctx(time.Minute)
			_ = f.Diagnostics(ctx, f.path)
			synctest.Wait()
			if d := f.Check(ctx, []Proposal{{Path: f.path, Text: "BAD two\n"}}); d.Certainty != change.Fresh || messages(d.Introduced) != "a.fake: two" {
				t.Errorf("%s %q: introduced %q", d.Certainty, d.Reason, messages(d.Introduced))
			}
		})
	})
}

func TestLanguageIDs(t *testing.T) {
	for path, want := range map[string]string{
		"/p/a.go": "go", "/p/a.MD": "markdown", "/p/a.mdx": "mdx", "/p/a.gql": "graphql", "/p/Dockerfile.dev": "dockerfile", "/p/web.Dockerfile": "dockerfile",
		"/p/tsconfig.json": "jsonc", "/p/a.json": "json", "/p/a.tsx": "typescriptreact", "/p/go.mod": "go.mod", "/p/a.txt": "plaintext", "/p/LICENSE": "plaintext",
		"/p/a.h": "c", "/p/a.sql": "sql", "/p/a.vue": "vue", "/p/Makefile": "makefile", "/p/a.ps1": "powershell", "/p/a.mli": "ocaml.interface",
	} {
		if got := languageID(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// OpenCode has one setting for the options of a server's start and for what it asks for later.
func TestInitializationAnswersConfiguration(t *testing.T) {
	rows := configured(map[string]ServerConfig{
		"pyright": {Initialization: json.RawMessage(`{"python":{"analysis":{"typeCheckingMode":"strict"}}}`)},
		"eslint":  {Initialization: json.RawMessage(`{"quiet":true}`)},
		"mine":    {Command: []string{"x"}, Extensions: []string{".x"}, Initialization: json.RawMessage(`{"a":{"b":1},"c":2}`), Settings: json.RawMessage(`{"c":3}`)},
		"odd":     {Command: []string{"x"}, Extensions: []string{".x"}, Initialization: json.RawMessage(`true`)},
	})
	for _, c := range []struct{ id, section, want string }{
		{"pyright", "python.analysis.typeCheckingMode", `"strict"`},
		{"pyright", "python.analysis.autoSearchPaths", "true"},
		{"mine", "a", `{"b":1}`},
		{"mine", "c", "3"},
		{"mine", "", `{"a":{"b":1},"c":3}`},
		{"odd", "a", "null"},
		{"odd", "", "{}"},
	} {
		row := rows[slices.IndexFunc(rows, func(s Server) bool { return s.ID == c.id })]
		if got := string(section(row.Settings, c.section)); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.id, c.section, got, c.want)
		}
	}
	eslint := string(section(rows[slices.IndexFunc(rows, func(s Server) bool { return s.ID == "eslint" })].Settings, ""))
	if !strings.Contains(eslint, `"quiet":true`) || !strings.Contains(eslint, `"run":"onType"`) {
		t.Errorf("eslint: %s", eslint)
	}
}

// A server of the person's own answers beside the table's, which must be there for that.
func TestOwnServersTakeNobodysPlace(t *testing.T) {
	root, bin := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "x.ts"), "")
	m := New(Options{Root: root, NoWatch: true, Bin: []string{bin}, Servers: map[string]ServerConfig{
		"classes": {Command: []string{"classes-ls"}, Extensions: []string{".ts", ".html"}},
		"names":   {Command: []string{"names-ls"}, Extensions: []string{".ts"}},
	}})
	rows := m.rows()
	rows[slices.IndexFunc(rows, func(s Server) bool { return s.ID == typescriptID })].Commands = [][]string{{"a-language-server-nobody-has"}}
	ids := func() string {
		var got []string
		for _, s := range m.slotsFor(filepath.Join(root, "x.ts")) {
			got = append(got, s.spec.ID)
		}
		return strings.Join(got, " ")
	}
	if got := ids(); got != "classes names" {
		t.Errorf("without TypeScript's server: %s", got)
	}
	clear(m.programs.known) // as a second later
	program := filepath.Join(bin, "a-language-server-nobody-has")
	if filepath.Separator == '\\' {
		program += ".exe"
	}
	write(t, program, "#!/bin/sh\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := ids(); got != "classes names typescript" {
		t.Errorf("with TypeScript's server: %s", got)
	}
}

func TestWhatARuntimeEndsWith(t *testing.T) {
	for said, want := range map[string]string{
		"/x/y.js:3\n  throw e\n  ^\n\nTypeError: Cannot read properties of null (reading 'a')\n    at f (/x/y.js:3:1)\n\nNode.js v20.20.2\n": "TypeError: Cannot read properties of null (reading 'a')",
		"node:internal\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'a'\n    at x\n\nNode.js v20\n":                                    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'a'",
		"Traceback (most recent call last):\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'a'\n":                            "ModuleNotFoundError: No module named 'a'",
		"Exception in thread \"main\" java.lang.Exception: no\n\tat x\nbye\n":                                                                "bye",
		"one\ntwo\n": "two",
	} {
		tail := &tail{max: 1000}
		_, _ = tail.Write([]byte(said))
		if got := tail.explanation(); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

// LSP's answer for settings that there are none of is null, and there are servers that die of it: once.
func TestServerThatDiesOfNull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked []string
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true,
			On: func(ctx context.Context, s *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
				if method == "textDocument/didOpen" {
					var settings []json.RawMessage
					if err := s.Peer().Call(ctx, "workspace/configuration", map[string]any{"items": []any{map[string]string{"section": "x"}}}, &settings); err != nil {
						return nil, false, nil
					}
					asked = append(asked, string(settings[0]))
					if string(settings[0]) == "null" {
						s.Die()
						return nil, true, nil
					}
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: one" || strings.Join(asked, " ") != "null {}" {
			t.Errorf("%s %q %q, told %q", r.Certainty, r.Reason, messages(r.Items), asked)
		}
	})
}
