package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/files"
)

// callTools runs "pillion tool call --jsonl" in dir and gives its answers and what it said to a person.
func callTools(t *testing.T, dir string, lines ...string) (answers []toolAnswer, said string) {
	t.Helper()
	c := toolCall()
	var out, errs bytes.Buffer
	c.SetIn(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SetArgs([]string{"--jsonl", "--no-lsp", "--approve", "all", "-C", dir})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&out)
	for d.More() {
		var a toolAnswer
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	return answers, errs.String()
}

// atHome gives the process folders of its own.
func atHome(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	return home
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Formatters run only where the configuration asks for them.
func TestFormatterOfTheConfiguration(t *testing.T) {
	if _, err := exec.LookPath("gofmt"); err != nil {
		t.Skip("gofmt is not installed")
	}
	raw, formatted := "package a\n\nvar  x=1\n", "package a\n\nvar x = 1\n"
	for _, c := range []struct{ name, config, want, say string }{
		{"nothing configured", `{}`, raw, ""},
		{"off", `{"formatter": false}`, raw, ""},
		{"on", `{"formatter": true}`, formatted, "formatter gofmt changed a.go"},
		{"another one switched off", `{"formatter": {"prettier": {"disabled": true}}}`, formatted, "formatter gofmt changed a.go"},
		{"this one switched off", `{"formatter": {"gofmt": {"disabled": true}}}`, raw, ""},
		{"one's own", `{"formatter": {"mine": {"command": ["tr", "a-z", "A-Z"], "extensions": [".go"]}}}`, strings.ToUpper(raw), "formatter mine changed a.go"},
		{"one's own, with the file and a variable", `{"formatter": {"mine": {"command": ["sh", "-c", "echo $WORD >\"$1\"", "sh", "$FILE"], "environment": {"WORD": "hi"}, "extensions": [".go"]}}}`, "hi\n", "formatter mine changed a.go"},
		{"one that is not there", `{"formatter": {"mine": {"command": ["no-such-program"], "extensions": [".go"]}}}`, raw, "no-such-program is not installed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := atHome(t)
			dir := t.TempDir()
			put(t, filepath.Join(dir, "go.mod"), "module x\n")
			put(t, filepath.Join(home, "config", "pillion", "pillion.jsonc"), c.config)
			in, err := json.Marshal(map[string]any{"tool": "write", "input": map[string]string{"filePath": "a.go", "content": raw}})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := callTools(t, dir, string(in))
			text, err := os.ReadFile(filepath.Join(dir, "a.go"))
			if err != nil || string(text) != c.want || !strings.Contains(got[0].Output, c.say) || c.say == "" && got[0].Output != "Wrote file successfully." {
				t.Errorf("%v %q\n%+v", err, text, got)
			}
		})
	}
}

// What a crash left half-done is ended at the next start, and the person is told which way.
func TestRecoveryIsTold(t *testing.T) {
	home := atHome(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "old a\n")
	put(t, filepath.Join(dir, "b.txt"), "old b\n")
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	backup := filepath.Join(dir, ".pillion-x-0.old")
	if err := os.Rename(filepath.Join(dir, "a.txt"), backup); err != nil {
		t.Fatal(err)
	}
	half, err := json.Marshal(map[string]any{"id": "x", "host": host, "pid": 1 << 30, "steps": []map[string]string{
		{"kind": "remove", "path": filepath.Join(dir, "a.txt"), "backup": backup},
		{"kind": "create", "path": filepath.Join(dir, "c.txt"), "temp": filepath.Join(dir, "gone"), "newHash": "ff"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	j := &files.DirJournal{Dir: filepath.Join(home, "state", "pillion", "journal")}
	if err := j.Begin(t.Context(), "x", half); err != nil {
		t.Fatal(err)
	}
	_, said := callTools(t, dir, `{"tool":"list","input":{}}`)
	text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	if want := "interrupted earlier: rolled back: " + filepath.Join(dir, "a.txt"); err != nil || string(text) != "old a\n" || !strings.Contains(said, want) {
		t.Errorf("said %q; a.txt: %q %v", said, text, err)
	}
}

// The switches of the configuration reach the model's list, and choose between the two ways to edit.
func TestToolSwitchesOfTheConfiguration(t *testing.T) {
	for _, c := range []struct{ model, config, with, without string }{
		{"openai/gpt-5", `{}`, "apply_patch bash", "edit write"},
		{"openai/qwen3", `{}`, "edit write multiedit", "apply_patch"},
		{"openai/gpt-5", `{"tools": {"apply_patch": false}}`, "edit write", "apply_patch"},
		{"openai/qwen3", `{"tools": {"apply_patch": true}}`, "apply_patch", "edit write multiedit"},
		{"openai/qwen3", `{"tools": {"todo*": false, "bash": false}, "agent": {"build": {"tools": {"bash": true}}}}`, "bash edit", "todowrite todoread"},
	} {
		home := atHome(t)
		dir := t.TempDir()
		put(t, filepath.Join(home, "config", "pillion", "pillion.jsonc"), c.config)
		offered := make(chan []string, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var q struct {
				Tools []struct {
					Function struct {
						Name string `json:"name"`
					} `json:"function"`
				} `json:"tools"`
			}
			if json.NewDecoder(r.Body).Decode(&q) == nil && q.Tools != nil {
				var names []string
				for _, x := range q.Tools {
					names = append(names, x.Function.Name)
				}
				select {
				case offered <- names:
				default:
				}
			}
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		}))
		t.Setenv("PILLION_MODEL", c.model)
		t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
		t.Setenv("OPENAI_API_KEY", "k")
		cmd := runCommand()
		cmd.SetArgs([]string{"--approve", "none", "-C", dir, "hi"})
		cmd.SetIn(strings.NewReader(""))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		select {
		case names := <-offered:
			for _, n := range strings.Fields(c.with) {
				if !slices.Contains(names, n) {
					t.Errorf("%s %s: no %s in %v", c.model, c.config, n, names)
				}
			}
			for _, n := range strings.Fields(c.without) {
				if slices.Contains(names, n) {
					t.Errorf("%s %s: %s in %v", c.model, c.config, n, names)
				}
			}
		default:
			t.Errorf("%s %s: the model was not asked with tools", c.model, c.config)
		}
	}
}
