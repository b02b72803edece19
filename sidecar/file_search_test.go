package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/tools/search"
)

// testFinder is the real one without language servers.
func testFinder(t testing.TB) *mention.Finder {
	s := search.New(search.Options{})
	f := mention.New(mention.Options{Searcher: func(string) *search.Searcher { return s }})
	t.Cleanup(f.Close)
	return f
}

func (r *rig) search(params string) string {
	r.t.Helper()
	var out []string
	for _, m := range r.ed.request("_pillion/file/search", `{"sessionId":"$S",`+params+`}`)["matches"].([]any) {
		m := m.(map[string]any)
		text := fmt.Sprint(m["kind"], " ", m["path"])
		if name, ok := m["name"]; ok {
			text += fmt.Sprint(" ", name, " ", m["range"].(map[string]any)["start"])
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

func TestFileSearchFindsFilesFoldersAndSymbols(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	for name, text := range map[string]string{
		"src/server/main.go": "package main\n\ntype Server struct{}\n\n// Start starts.\nfunc (s *Server) Start() { var 変数, local int; _, _ = 変数, local }\n",
		"docs/server.md":     "x", ".gitignore": "built/\n", "built/server.o": "x", ".git/config": "x", "übung/ß.txt": "x",
	} {
		path := filepath.Join(r.cwd, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	r.start("")
	for params, want := range map[string]string{
		`"query":"server","kinds":["file","folder"]`:      "folder src/server/\nfile docs/server.md\nfile src/server/main.go",
		`"query":"server","kinds":["folder"]`:             "folder src/server/",
		`"query":"src main","kinds":["file"]`:             "file src/server/main.go",
		`"query":"ß","kinds":["file"]`:                    "file übung/ß.txt",
		`"query":"built","kinds":["file","folder"]`:       "",
		`"query":"server","kinds":["file"],"limit":1`:     "file docs/server.md",
		`"query":"nothing like it","kinds":["file"]`:      "",
		`"query":"gitignore","kinds":["file"],"limit":20`: "file .gitignore",
	} {
		if got := r.search(params); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", params, got, want)
		}
	}
	// The index of symbols is made behind the first question.
	for deadline := time.Now().Add(patience); ; {
		got := r.search(`"query":"start","kinds":["symbol"]`)
		if got == "symbol src/server/main.go Server.Start map[character:17 line:5]" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("symbols: %q", got)
		}
	}
	if got := r.search(`"query":"local","kinds":["symbol"]`); got != "" {
		t.Errorf("a variable inside a function: %s", got)
	}
	for _, bad := range []string{`"query":"x","kinds":["class"]`, `"query":"x","limit":0`, `"query":"x","limit":999`, `"query":"` + strings.Repeat("x", 300) + `"`} {
		r.ed.send(`{"jsonrpc":"2.0","id":"bad","method":"_pillion/file/search","params":{"sessionId":"$S",` + bad + `}}`)
		r.ed.expect(`{"id":"bad","error":{"code":-32602}}`)
	}
}
