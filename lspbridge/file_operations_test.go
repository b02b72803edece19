package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
)

func renaming(ops string) map[string]any {
	return map[string]any{"textDocumentSync": 2, "workspace": map[string]any{"fileOperations": json.RawMessage(ops)}}
}

const fakeFiles = `{"filters":[{"scheme":"file","pattern":{"glob":"**/*.fake","matches":"file"}}]}`

// A server is asked only what it announced, and told afterwards in the order: rename, then the new texts.
func TestRenamedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		ops        string
		asked, did bool
	}{
		"both":            {`{"willRename":` + fakeFiles + `,"didRename":` + fakeFiles + `}`, true, true},
		"only will":       {`{"willRename":` + fakeFiles + `}`, true, false},
		"none":            {`{}`, false, false},
		"other files":     {`{"willRename":{"filters":[{"pattern":{"glob":"**/*.other"}}]}}`, false, false},
		"folders":         {`{"willRename":{"filters":[{"pattern":{"glob":"**","matches":"folder"}}]}}`, false, false},
		"ignoring case":   {`{"willRename":{"filters":[{"pattern":{"glob":"**/*.FAKE","options":{"ignoreCase":true}}}]}}`, true, false},
		"in a wrong form": {`{"willRename":7,"didRename":` + fakeFiles + `}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				edit := `{"changes":{"file:///p/b.fake":[{"range":{"start":{"line":0,"character":4},"end":{"line":0,"character":5}},"newText":"moved"}]}}`
				var told string
				f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true, Capabilities: renaming(c.ops),
					On: func(_ context.Context, _ *fakelsp.Server, method string, params json.RawMessage) (any, bool, error) {
						switch method {
						case "workspace/willRenameFiles":
							return json.RawMessage(edit), true, nil
						case "workspace/didRenameFiles":
							told = string(params)
						}
						return nil, false, nil
					}}, map[string]string{"a.fake": "a\n", "b.fake": "use a\n"})
				defer f.Close(context.Background())
				moved := filepath.FromSlash("/p/moved.fake")
				edits, err := f.WillRename(f.ctx(time.Minute), []FileRename{{f.path, moved}})
				if err != nil {
					t.Fatal(err)
				}
				if c.asked && (len(edits) != 1 || edits[0].New != "use moved\n") || !c.asked && len(edits) != 0 {
					t.Errorf("edits %+v", edits)
				}
				f.Changed(f.ctx(time.Minute), []Proposal{{Path: moved, Text: "a\n", From: f.path}, {Path: f.path, Delete: true}})
				synctest.Wait()
				seen := f.server().Seen()
				at := slices.Index(seen, "workspace/didRenameFiles")
				if (at >= 0) != c.did || c.did && at > slices.Index(seen[at:], "textDocument/didOpen")+at {
					t.Errorf("the server saw %q", seen)
				}
				if c.did && told != `{"files":[{"newUri":"file:///p/moved.fake","oldUri":"file:///p/a.fake"}]}` {
					t.Errorf("told %s", told)
				}
				if slices.Contains(seen, "workspace/willRenameFiles") != c.asked {
					t.Errorf("the server saw %q", seen)
				}
			})
		})
	}
}

// Files that come and go: asked before, told after, announced or registered later.
func TestCreatedAndDeletedFiles(t *testing.T) {
	for _, later := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			ops := `{"willCreate":` + fakeFiles + `,"didCreate":` + fakeFiles + `,"willDelete":` + fakeFiles + `,"didDelete":` + fakeFiles + `}`
			caps := renaming(ops)
			if later {
				caps = nil
			}
			var told []string
			f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true, Capabilities: caps,
				On: func(_ context.Context, s *fakelsp.Server, method string, params json.RawMessage) (any, bool, error) {
					switch method {
					case "initialized":
						if later {
							var regs []map[string]any
							for _, m := range []string{"willCreateFiles", "didCreateFiles", "willDeleteFiles", "didDeleteFiles"} {
								regs = append(regs, map[string]any{"id": m, "method": "workspace/" + m, "registerOptions": json.RawMessage(fakeFiles)})
							}
							return nil, true, s.Peer().Call(context.Background(), "client/registerCapability", map[string]any{"registrations": regs}, nil)
						}
					case "workspace/willDeleteFiles":
						told = append(told, method+string(params))
						return json.RawMessage(`{"changes":{"file:///p/b.fake":[{"range":{"start":{"line":0,"character":0},"end":{"line":1,"character":0}},"newText":""}]}}`), true, nil
					case "workspace/willCreateFiles", "workspace/didCreateFiles", "workspace/didDeleteFiles":
						told = append(told, method+string(params))
						return nil, true, nil
					}
					return nil, false, nil
				}}, map[string]string{"a.fake": "a\n", "b.fake": "use a\n"})
			defer f.Close(context.Background())
			made, other := filepath.FromSlash("/p/new.fake"), filepath.FromSlash("/p/new.other")
			if edits, err := f.WillChange(f.ctx(time.Minute), []string{made}, nil); len(edits) != 0 || err != nil || len(f.servers) != 0 {
				t.Errorf("a server was started for it: %v %v", edits, err)
			}
			f.Diagnostics(f.ctx(time.Minute), f.path)
			edits, err := f.WillChange(f.ctx(time.Minute), []string{made, other}, []string{f.path})
			if err != nil || len(edits) != 1 || edits[0].New != "" || edits[0].Path != filepath.FromSlash("/p/b.fake") {
				t.Errorf("%+v %v", edits, err)
			}
			files := []Proposal{{Path: made, Text: "x\n"}, {Path: f.path, Delete: true}}
			f.newFiles.note(files)
			f.Changed(f.ctx(time.Minute), files)
			synctest.Wait()
			slices.Sort(told)
			const is = `didCreateFiles{"files":[{"uri":"file:///p/new.fake"}]} didDeleteFiles{"files":[{"uri":"file:///p/a.fake"}]} willCreateFiles{"files":[{"uri":"file:///p/new.fake"}]} willDeleteFiles{"files":[{"uri":"file:///p/a.fake"}]}`
			if got := strings.ReplaceAll(strings.Join(told, " "), "workspace/", ""); got != is {
				t.Errorf("registered later %v: told %s", later, got)
			}
		})
	}
}

// A server that sits on the question is named, and holds the move no longer than the budget.
func TestRenamedFilesSilentServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Capabilities: renaming(`{"willRename":` + fakeFiles + `}`),
			On: func(ctx context.Context, _ *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
				if method == "workspace/willRenameFiles" {
					<-ctx.Done()
					return nil, true, ctx.Err()
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "a\n"})
		defer f.Close(context.Background())
		start := time.Now()
		edits, err := f.WillRename(f.ctx(3*time.Second), []FileRename{{f.path, filepath.FromSlash("/p/c.fake")}})
		if len(edits) != 0 || err == nil || !strings.Contains(err.Error(), "fake has not answered yet") || time.Since(start) != 3*time.Second {
			t.Errorf("%v, %v after %v", edits, err, time.Since(start))
		}
	})
}

func TestTypescriptFollowsAMove(t *testing.T) {
	files := map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true,"module":"nodenext","moduleResolution":"nodenext"}}`,
		"src/a.ts": "import { twice } from './lib/b.js';\nexport const four = twice(2);\n", "src/lib/b.ts": "import { one } from './c.js';\nexport const twice = (n: number) => 2 * n * one;\n", "src/lib/c.ts": "export const one = 1;\n"}
	m, root := project(t, "typescript", files)
	edits, err := m.WillRename(longer(t), []FileRename{{filepath.Join(root, "src/lib/b.ts"), filepath.Join(root, "src/b.ts")}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range edits {
		got[filepath.Base(e.Path)] = e.New
	}
	if !strings.Contains(got["a.ts"], `from './b.js'`) || !strings.Contains(got["b.ts"], `from './lib/c.js'`) || len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestGoplsTypeHierarchy(t *testing.T) {
	text := "package x\n\ntype Shape interface{ Area() int }\n\ntype Square struct{ side int }\n\nfunc (s Square) Area() int { return s.side * s.side }\n"
	m, root := project(t, "gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "a.go": text})
	path := filepath.Join(root, "a.go")
	trees, err := m.TypeHierarchy(longer(t), path, at(text, "Square struct"))
	if err != nil || len(trees) != 1 || trees[0].Type.Name != "Square" || len(trees[0].Supertypes) != 1 || trees[0].Supertypes[0].Name != "Shape" {
		t.Fatalf("%+v, %v", trees, err)
	}
	if trees, err = m.TypeHierarchy(longer(t), path, at(text, "Shape")); err != nil || len(trees) != 1 || len(trees[0].Subtypes) != 1 || trees[0].Subtypes[0].Path != path {
		t.Errorf("%+v, %v", trees, err)
	}
}
