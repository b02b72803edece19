package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/pillion-dev/pillion/agent/provider"
)

// A script is a conversation: "> message" is sent, "< pattern" is awaited (see editor.expect), "file NAME: text" looks at
// the disk, "user NAME: text" writes to it, "told TEXT" is what the model has read, "# …" is a remark. $CWD is the session's folder. The model's steps are in their own section: "text …",
// "think …", "call TOOL {input}", with "---" between steps.
func runScript(t *testing.T, script, model string, tree map[string]string) {
	cwd := t.TempDir()
	for name, text := range tree {
		path := filepath.Join(cwd, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	r := newRig(t, testStore(t), cwd)
	r.model.steps = modelSteps(t, model)
	r.ed.vars["CWD"] = cwd
	for n, line := range strings.Split(script, "\n") {
		line = strings.TrimSpace(line)
		at := func(err any) { t.Fatalf("line %d: %s: %v", n+1, line, err) }
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "", "#":
		case ">":
			r.ed.send(rest)
		case "<":
			r.ed.expect(rest)
		case "file":
			name, want, _ := strings.Cut(rest, ": ")
			text, err := strUnquote(want)
			if err != nil {
				at(err)
			}
			if got := read(t, filepath.Join(cwd, name)); got != text {
				at(fmt.Sprintf("is %q", got))
			}
		case "impatient": // a question to the editor's program may take a moment only
			r.host.DataLimit = 50 * time.Millisecond
		case "patches": // the model changes files by patches
			r.world.switches = map[string]bool{"apply_patch": true}
		case "user":
			name, want, _ := strings.Cut(rest, ": ")
			text, err := strUnquote(want)
			if err != nil {
				at(err)
			}
			write(t, filepath.Join(cwd, name), text)
		case "told":
			r.model.mu.Lock()
			last := r.model.seen[len(r.model.seen)-1]
			r.model.mu.Unlock()
			body, err := json.Marshal(last.Messages)
			if err != nil {
				at(err)
			}
			if !strings.Contains(string(body), rest) {
				at("the model was told " + string(body))
			}
		default:
			at("unknown line")
		}
	}
}

func strUnquote(s string) (text string, err error) {
	err = json.Unmarshal([]byte(s), &text)
	return text, err
}

func modelSteps(t *testing.T, text string) []func(context.Context, *provider.Request, func(provider.Event) error) error {
	t.Helper()
	var out []func(context.Context, *provider.Request, func(provider.Event) error) error
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for i, step := range strings.Split(text, "---\n") {
		var events []provider.Event
		stop := provider.StopEnd
		for j, line := range strings.Split(strings.TrimSpace(step), "\n") {
			kind, rest, _ := strings.Cut(line, " ")
			id := fmt.Sprintf("call-%d-%d", i, j)
			switch kind {
			case "text":
				events = append(events, provider.Event{Type: provider.EventText, Text: rest})
			case "think":
				events = append(events, provider.Event{Type: provider.EventThinking, Text: rest})
			case "call":
				name, input, _ := strings.Cut(rest, " ")
				events = append(events, provider.Event{Type: provider.EventToolStart, Index: j, CallID: id, Name: name},
					provider.Event{Type: provider.EventToolEnd, Index: j, CallID: id, Name: name, Text: input})
				stop = provider.StopTools
			default:
				t.Fatalf("model: unknown line %q", line)
			}
		}
		events = append(events, provider.Event{Type: provider.EventStop, Stop: stop})
		out = append(out, func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
			for _, e := range events {
				if err := emit(e); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return out
}

func TestScripts(t *testing.T) {
	names, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		if base := strings.TrimSuffix(filepath.Base(name), ".txtar"); promised[base] == "" { // those run under their promise's name
			t.Run(base, func(t *testing.T) { scenario(t, name) })
		}
	}
}

// scenario runs a script file.
func scenario(t *testing.T, name string) {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var script, model string
	tree := map[string]string{}
	for _, f := range a.Files {
		switch f.Name {
		case "script":
			script = string(f.Data)
		case "model":
			model = string(f.Data)
		default:
			tree[f.Name] = string(f.Data)
		}
	}
	runScript(t, script, model, tree)
}
