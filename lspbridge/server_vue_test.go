package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// vueInstalled is a project with a component, and a folder of programs that holds Vue's server.
func vueInstalled(t *testing.T, version, manifest string) (root, bin string) {
	t.Helper()
	root, prefix := t.TempDir(), t.TempDir()
	bin = filepath.Join(prefix, "node_modules", ".bin")
	for _, name := range []string{"vue-language-server", "typescript-language-server", "astro-ls"} {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		write(t, filepath.Join(bin, name), "#!/bin/sh\n")
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(prefix, "node_modules", "@vue", "language-server", "package.json"), `{"name":"@vue/language-server","version":"`+version+`"}`)
	write(t, filepath.Join(prefix, "node_modules", "typescript", "lib", "typescript.js"), "")
	write(t, filepath.Join(root, "package.json"), manifest)
	write(t, filepath.Join(root, "App.vue"), "<script></script>\n")
	return root, bin
}

// What Vue's server asks TypeScript's is asked there, of an open component, and answered, whatever comes of it.
func TestVueAsksTypeScript(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want, problems string }{
		"in a Vue project": {`{"dependencies":{"vue":"^3"}}`, `[[7,{"configFileName":"tsconfig.json"}]] [[8,null]]`, "App.vue: of the template\nApp.vue: of the script"},
		"elsewhere":        {`{}`, `[[7,null]] [[8,null]]`, "App.vue: of the template"},
	} {
		t.Run(name, func(t *testing.T) {
			root, bin := vueInstalled(t, "3.3.0", c.manifest)
			path := filepath.Join(root, "App.vue")
			file, _ := json.Marshal(path)
			var mu sync.Mutex
			var answers []string
			answered := make(chan struct{})
			vue := func(ctx context.Context, s *fakelsp.Server, method string, p json.RawMessage) (any, bool, error) {
				switch method {
				case "textDocument/didOpen":
					for _, q := range []string{`[[7,"_vue:projectInfo",{"file":` + string(file) + `}]]`, `[[8,"_vue:unknown",[` + string(file) + `]]]`} {
						_ = s.Peer().Notify(ctx, "tsserver/request", json.RawMessage(q))
					}
				case "tsserver/response":
					mu.Lock()
					if answers = append(answers, string(p)); len(answers) == 2 {
						close(answered)
					}
					mu.Unlock()
				case "textDocument/diagnostic": // nothing without the answers
					<-answered
				}
				return nil, false, nil
			}
			ts := func(_ context.Context, s *fakelsp.Server, method string, p json.RawMessage) (any, bool, error) {
				if method != "workspace/executeCommand" {
					return nil, false, nil
				}
				var q struct{ Arguments []json.RawMessage }
				_ = json.Unmarshal(p, &q)
				_, _, open := s.Text(string(pathURI(path)))
				switch command := string(q.Arguments[0]); {
				case command == `"_vue:projectInfo"` && open:
					return map[string]any{"success": true, "body": map[string]string{"configFileName": "tsconfig.json"}}, true, nil
				case command == `"semanticDiagnosticsSync"`:
					return map[string]any{"success": true, "body": []any{map[string]any{"start": map[string]int{"line": 1, "offset": 1}, "end": map[string]int{"line": 1, "offset": 2}, "text": "of the script", "category": "error"}}}, true, nil
				case strings.HasSuffix(command, `DiagnosticsSync"`):
					return map[string]any{"success": true, "body": []any{}}, true, nil
				}
				return nil, true, errors.New("unknown command")
			}
			m := New(Options{Root: root, NoWatch: true, Idle: -1, Bin: []string{bin}, Dial: func(s Server, _ string) (io.ReadCloser, io.WriteCloser, error) {
				o := fakelsp.Options{Pull: true, On: vue, Aside: []string{"textDocument/diagnostic"}}
				if s.ID == typescriptID {
					o = fakelsp.Options{On: ts, Capabilities: map[string]any{"executeCommandProvider": map[string]any{"commands": []string{tsserverRequest}}}}
				}
				r, w := fakelsp.New(o).Pipes()
				return r, w, nil
			}})
			defer m.Close(context.Background())
			write(t, path, "BAD of the template\n")
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh || messages(r.Items) != c.problems {
				t.Errorf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
			}
			mu.Lock()
			defer mu.Unlock()
			got := strings.Join(answers, " ")
			if strings.HasPrefix(got, "[[8") { // each is answered when it can be
				got = answers[1] + " " + answers[0]
			}
			if got != c.want {
				t.Errorf("it was answered %s, want %s", got, c.want)
			}
		})
	}
}

func TestWebServersAreToldOfTypeScript(t *testing.T) {
	for _, c := range []struct{ version, id, program, want string }{
		{"3.3.0", typescriptID, "typescript-language-server", "@vue/typescript-plugin"},
		{"2.2.12", typescriptID, "typescript-language-server", ""},
		{"3.3.0", vueID, "vue-language-server", ""},
		{"2.2.12", vueID, "vue-language-server", `"hybridMode":false`},
		{"3.3.0", "astro", "astro-ls", `"tsdk":`},
	} {
		root, bin := vueInstalled(t, c.version, `{"dependencies":{"vue":"1"}}`)
		m := New(Options{Root: root, NoWatch: true, Bin: []string{bin}})
		row, _ := m.programs.row(c.id)
		got := m.programs.withOptions(row, []string{filepath.Join(bin, c.program)}, root).Init
		if c.want == "" && got != row.Init || !strings.Contains(got, c.want) || row.Init != "" && !strings.Contains(got, "useSyntaxServer") {
			t.Errorf("%s beside Vue's server %s: %s", c.id, c.version, got)
		}
		lib, _ := json.Marshal(filepath.Join(filepath.Dir(filepath.Dir(bin)), "node_modules", "typescript", "lib"))
		if strings.Contains(c.want, "tsdk") && !strings.Contains(got, string(lib)) {
			t.Errorf("%s: %s", c.id, got)
		}
	}
}
