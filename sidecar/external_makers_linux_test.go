package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// maker is a published agent, as npm has it, and how its model asks for things.
type maker struct {
	name, id, program string
	bin               string // the folder of the program, below .cache/peers
	// setUp writes the agent's own configuration in home and returns variables for its environment. url is the scripted model's.
	setUp func(t *testing.T, home, url string) []string
	keys  []string // variables that its row in our configuration names
	write func(path, text string) wiretest.Call
	shell func(command string) wiretest.Call
	// allows means that it runs commands without asking its client.
	allows bool
}

func wireCall(name string, input map[string]any) wiretest.Call {
	b, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return wiretest.Call{Name: name, Input: b}
}

const peersBin = "node_modules/.bin"

var makers = []maker{
	{name: "codex", id: "codex", program: "codex-acp", bin: "codex/" + peersBin, keys: []string{"SCRIPTED_KEY"}, allows: true, setUp: setUpCodex,
		write: func(path, text string) wiretest.Call {
			return wireCall("exec_command", map[string]any{"cmd": fmt.Sprintf("cat > %s <<'EOF'\n%sEOF", path, text)})
		},
		shell: func(command string) wiretest.Call {
			return wireCall("exec_command", map[string]any{"cmd": command})
		}},
	{name: "codex of Zed", id: "codex", program: "codex-acp", bin: peersBin, keys: []string{"SCRIPTED_KEY"}, allows: true,
		setUp: setUpCodex,
		write: func(path, text string) wiretest.Call {
			return wireCall("shell_command", map[string]any{"command": fmt.Sprintf("cat > %s <<'EOF'\n%sEOF", path, text)})
		},
		shell: func(command string) wiretest.Call {
			return wireCall("shell_command", map[string]any{"command": command})
		}},
	{name: "gemini", id: "gemini", program: "gemini", bin: peersBin,
		setUp: func(t *testing.T, home, url string) []string {
			settings(t, filepath.Join(home, ".gemini/settings.json"), `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "model": {"name": "gemini-2.5-flash", "skipNextSpeakerCheck": true},
 "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}}`)
			return []string{"GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true", "GOOGLE_GEMINI_BASE_URL=" + url}
		},
		write: func(path, text string) wiretest.Call {
			return wireCall("write_file", map[string]any{"file_path": path, "content": text})
		},
		shell: func(command string) wiretest.Call {
			return wireCall("run_shell_command", map[string]any{"command": command, "description": "run it"})
		}},
	{name: "opencode", id: "opencode", program: "opencode", bin: peersBin,
		setUp: func(t *testing.T, home, url string) []string {
			settings(t, filepath.Join(home, "config/opencode/opencode.json"), fmt.Sprintf(`{"model": "scripted/m", "autoupdate": false, "share": "disabled", "snapshot": false, "lsp": false,
 "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": %q, "apiKey": "none"}, "models": {"m": {"limit": {"context": 1000000, "output": 10000}}}}}}`, url+"/v1"))
			return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"}
		},
		write: func(path, text string) wiretest.Call {
			return wireCall("write", map[string]any{"filePath": path, "content": text})
		},
		shell: func(command string) wiretest.Call {
			return wireCall("bash", map[string]any{"command": command, "description": "run it"})
		}},
	{name: "claude", id: "claude", program: "claude-agent-acp", bin: peersBin,
		setUp: func(t *testing.T, home, url string) []string {
			return []string{"ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL=" + url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
		},
		write: func(path, text string) wiretest.Call {
			return wireCall("Write", map[string]any{"file_path": path, "content": text})
		},
		shell: func(command string) wiretest.Call {
			return wireCall("Bash", map[string]any{"command": command, "description": "run it"})
		}},
}

func setUpCodex(t *testing.T, home, url string) []string {
	settings(t, filepath.Join(home, ".codex/config.toml"), fmt.Sprintf("model = \"m\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n", url+"/v1"))
	return []string{"SCRIPTED_KEY=none"}
}

// settings writes a file and the folders above it.
func settings(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, text)
}

// brain is a scripted model that answers what is asked besides the conversation (a title, a check of the key) without a step of the script.
type brain struct {
	*wiretest.Server
	url string
}

func newBrain(t *testing.T) *brain {
	b := &brain{Server: wiretest.New(t)}
	other := wiretest.New(t, wiretest.Step{Text: "Title"})
	other.Repeat = true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the agent went away
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		to := b.Server
		// A title, a check of the key, a guess of the person's next message.
		if r.Method == http.MethodPost && (len((wiretest.Request{Path: r.URL.Path, Body: body}).ToolNames()) == 0 || bytes.Contains(body, []byte("[SUGGESTION MODE"))) {
			to = other
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	b.url = s.URL
	return b
}

func newMakersRider(t *testing.T, m maker) (*rider, *brain) {
	programs, err := filepath.Abs(filepath.Join("../.cache/peers", m.bin))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(programs, m.program)); err != nil {
		t.Skip("not installed; run scripts/setup-peers.sh .cache")
	}
	b := newBrain(t)
	r := newRider(t, "")
	home := ""
	for _, e := range r.env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		}
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			programs += ":" + v
		}
	}
	r.env = append(r.env, "PATH="+programs, "NO_PROXY=*")
	r.env = append(r.env, m.setUp(t, home, b.url)...)
	keys, err := json.Marshal(m.keys)
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.conf, fmt.Sprintf(`{"lsp": false, "agents": {%q: {"keys": %s}}}`, m.id, keys))
	r.model = "acp/" + m.id
	return r, b
}

// work scripts a turn that writes three files, and runs two commands, one of which writes a fourth.
func (m maker) work(b *brain, dir string) {
	for _, c := range []wiretest.Call{
		m.write(filepath.Join(dir, "one.txt"), "first\n"), m.shell("cat a.txt one.txt"), m.write(filepath.Join(dir, "two.txt"), "second\n"),
		m.shell("echo made > three.txt && cat three.txt"), m.write(filepath.Join(dir, "four.txt"), "fourth\n"),
	} {
		b.Add(wiretest.Step{Calls: []wiretest.Call{c}})
	}
	b.Add(wiretest.Step{Text: "All of it is done."})
}

// Of a proposal of each published agent one hunk is rejected: the other is written, and the agent's next request to its model has the words.
func TestPublishedAgentsAreAcceptedInPart(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			r, b := newMakersRider(t, m)
			b.Add(wiretest.Step{Calls: []wiretest.Call{m.shell(`printf "ONE\n-\nTWO\n" > a.txt`)}}, wiretest.Step{Text: "Both are capitals."}, wiretest.Step{Text: "I see."})
			r.rejectFirst("write a.txt in capitals")
			all := b.Requests()
			if last := all[len(all)-1]; !bytes.Contains(last.Body, []byte(firstStays)) {
				t.Errorf("the agent was not told: %s", last.Body)
			}
		})
	}
}

// A rule of the person's decides about the commands of each published agent that asks its client, and none begins in a mode that does not.
// The command moves a file: Codex refuses rm -f by itself.
func TestPublishedAgentsRunCommandsByPillionsRules(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			r, b := newMakersRider(t, m)
			conf, err := os.ReadFile(r.conf)
			if err != nil {
				t.Fatal(err)
			}
			write(t, r.conf, strings.Replace(string(conf), "{", `{"permission": {"bash": {"mv *": "deny"}}, `, 1))
			b.Add(wiretest.Step{Calls: []wiretest.Call{m.shell("touch kept && mv a.txt b.txt")}}, wiretest.Step{Calls: []wiretest.Call{m.shell("touch made")}}, wiretest.Step{Text: "Done."}, wiretest.Step{Text: "I see."})
			r.run("all", "move a.txt")
			if moved := r.file("a.txt") == "(none)"; moved != m.allows {
				t.Errorf("a.txt was moved: %v\n%s%s", moved, r.said, r.warned)
			}
		})
	}
}

// kill -9 in the middle of a turn of each published agent: no process is left, nothing is in the project, the next start says what happened,
// and the conversation goes on.
func TestPublishedAgentsEndWithTheirSidecar(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			r, b := newMakersRider(t, m)
			before := tree(t, r.dir, true)
			b.Add(wiretest.Step{Calls: []wiretest.Call{m.write(filepath.Join(r.dir, "one.txt"), "first\n")}}, wiretest.Step{Text: "Wait", Hang: true})
			cmd := r.command("all", "write one file and wait")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := b.Await(ctx, 2); err != nil {
				t.Fatal(err)
			}
			r.kill(cmd)
			sameTree(t, "killed", before, tree(t, r.dir, true))
			b.Drop()

			b.Add(wiretest.Step{Text: "I am back."}, wiretest.Step{Text: "I see."}) // the second to the words of the rejection
			r.run("none", "--continue", "what did you do?")
			r.wants(afterKill, "I am back.")
			sameTree(t, "rejected after the kill", before, tree(t, r.dir, true))
		})
	}
}

// Each published agent, as npm has it: nothing of its work is in the project before it is accepted, a cancelled turn leaves nothing, neither
// in the project nor of its processes, and the next process goes on with the conversation.
func TestPublishedAgents(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			r, b := newMakersRider(t, m)
			before := tree(t, r.dir, true)
			m.work(b, r.dir)
			b.Add(wiretest.Step{Text: "I see."}) // to the words of the rejection
			r.run("none", "write three files")
			sameTree(t, "rejected", before, tree(t, r.dir, true))
			r.wants("All of it is done.", "cat a.txt one.txt")
			if all := b.Requests(); len(all) == 0 {
				t.Fatal("it asked its model nothing")
			} else if !bytes.Contains(all[len(all)-1].Body, []byte("symbol_references")) {
				t.Errorf("Pillion's tools are not offered: %q", all[len(all)-1].ToolNames())
			}
			b.Drop()

			b.Add(wiretest.Step{Calls: []wiretest.Call{m.write(filepath.Join(r.dir, "one.txt"), "first\n")}}, wiretest.Step{Text: "Wait", Hang: true})
			asked := len(b.Requests())
			cmd := r.command("all", "write one file and wait")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := b.Await(ctx, asked+2); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("a cancelled run succeeded")
			}
			sameTree(t, "cancelled", before, tree(t, r.dir, true))
			if left := r.processes(); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
			b.Drop()

			m.work(b, r.dir)
			if code := r.run("all", "write three files, again"); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if got := r.file("one.txt") + r.file("two.txt") + r.file("three.txt") + r.file("four.txt"); got != "first\nsecond\nmade\nfourth\n" {
				t.Errorf("%q\n%s%s", got, r.said, r.warned)
			}

			b.Add(wiretest.Step{Text: "I remember."})
			r.run("all", "--continue", "what did you do?")
			r.wants("I remember.")
			all := b.Requests()
			if last := all[len(all)-1]; !bytes.Contains(last.Body, []byte("write three files, again")) || !bytes.Contains(last.Body, []byte("what did you do?")) {
				t.Errorf("the conversation did not go on: %s", last.Body)
			}
		})
	}
}
