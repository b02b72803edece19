package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/sidecar/app"
)

// hooked is a session in a project with Claude Code's hooks, and what the person was told.
type hooked struct {
	*agent.Session
	dir string
	srv *wiretest.Server

	mu    sync.Mutex
	heard []string // guarded by mu
}

func newHooked(t *testing.T, trusted bool, settings string, steps ...wiretest.Step) *hooked {
	home, dir := atHome(t), scratch(t)
	if trusted {
		t.Setenv("PILLION_TRUST", "1")
	}
	h := &hooked{dir: dir, srv: wiretest.New(t, steps...)}
	put(t, filepath.Join(dir, ".claude/settings.json"), settings)
	patches := strings.HasSuffix(t.Name(), "apply_patch") // in the place of edit and write
	put(t, filepath.Join(home, "config/pillion/pillion.jsonc"), fmt.Sprintf(`{"lsp": false, "model": "mine/m", "tools": {%s}, "provider": {"mine": {"baseURL": %q, "models": ["m"]}}}`, map[bool]string{true: `"apply_patch": true`}[patches], h.srv.OpenAIURL()))
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: allowAll{}, NoLSP: true})
	t.Cleanup(a.Close)
	s, err := a.Runtime.NewSession(t.Context(), agent.SessionOptions{Cwd: dir, Title: "t"})
	if err != nil {
		t.Fatal(err)
	}
	h.Session = s
	s.Subscribe(0, func(e agent.Event) {
		if d, ok := agent.Value[agent.NoticeData](e); ok && e.Type == agent.EventNotice {
			h.mu.Lock()
			h.heard = append(h.heard, d.Text)
			h.mu.Unlock()
		}
	})
	return h
}

func (h *hooked) told(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.heard, func(s string) bool { return strings.Contains(s, text) })
}

func (h *hooked) ask(t *testing.T, text string) agent.TurnData {
	t.Helper()
	turn, err := h.Prompt(t.Context(), agent.Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: text}}})
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// last is the last request as it was sent.
func (h *hooked) last() string {
	all := h.srv.Requests()
	body := string(all[len(all)-1].Body)
	return body[strings.Index(body, `"messages":`):]
}

func calls(name, input string) wiretest.Step {
	return wiretest.Step{Calls: []wiretest.Call{{Name: name, Input: json.RawMessage(input)}}}
}

// hook is a settings file with one command for an event; the command is a script of the project.
func hook(event, matcher, script string) string {
	b, _ := json.Marshal(map[string]any{"hooks": map[string]any{event: []any{map[string]any{"matcher": matcher, "hooks": []any{map[string]any{"type": "command", "command": script}}}}}})
	return string(b)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A guard sees every way in which a file can be changed, by Claude Code's names and with whole paths, and stops it.
func TestAHookGuardsFiles(t *testing.T) {
	const guard = `f=$(sed -n 's/.*"file_path":"\([^"]*\)".*/\1/p'); case "$f" in "$CLAUDE_PROJECT_DIR"/secret/*) echo "secret is not yours" >&2; exit 2;; esac`
	patch := `{"patchText":"*** Begin Patch\n*** Add File: ok.txt\n+x\n*** Add File: secret/b.txt\n+x\n*** End Patch\n"}`
	unified := `{"patchText":"--- /dev/null\n+++ b/secret/b.txt\n@@ -0,0 +1 @@\n+x\n"}`
	for name, step := range map[string]wiretest.Step{
		"write": calls("write", `{"filePath":"secret/n.txt","content":"x"}`), "apply_patch": calls("apply_patch", patch), "unified apply_patch": calls("apply_patch", unified), "edit": calls("edit", `{"filePath":"./secret/../secret/n.txt","oldString":"","newString":"x"}`),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHooked(t, true, hook("PreToolUse", "Edit|Write|MultiEdit", guard), step, wiretest.Step{Text: "Done."})
			h.ask(t, "go")
			if exists(filepath.Join(h.dir, "secret")) || exists(filepath.Join(h.dir, "ok.txt")) || !strings.Contains(h.last(), "secret is not yours") || !h.told("secret is not yours") {
				t.Errorf("%v\n%s", h.heard, h.last())
			}
		})
	}
	h := newHooked(t, true, hook("PreToolUse", "Edit|Write|MultiEdit", guard), calls("write", `{"filePath":"n.txt","content":"x"}`), wiretest.Step{Text: "Done."})
	h.ask(t, "go")
	if !exists(filepath.Join(h.dir, "n.txt")) {
		t.Errorf("a file that is not guarded: %v", h.heard)
	}
}

// The hooks of a folder that is not trusted never run.
func TestAnUntrustedFoldersHooksDoNotRun(t *testing.T) {
	for _, event := range []string{"PreToolUse", "UserPromptSubmit", "SessionStart", "Stop", "PostToolUse"} {
		h := newHooked(t, false, hook(event, "", `touch ran`), calls("glob", `{"pattern":"*"}`), wiretest.Step{Text: "Done."})
		h.ask(t, "go")
		if exists(filepath.Join(h.dir, "ran")) {
			t.Errorf("%s ran", event)
		}
	}
}

// A prompt that a hook refuses reaches no model, and is not part of the conversation afterwards.
func TestAHookRefusesAPrompt(t *testing.T) {
	h := newHooked(t, true, hook("UserPromptSubmit", "", `grep -q password && { echo "no passwords" >&2; exit 2; }; echo "the branch is main"`), wiretest.Step{Text: "Done."})
	if turn := h.ask(t, "my password is x"); turn.Stop != agent.TurnRefusal || len(h.srv.Requests()) != 0 || !h.told("no passwords") {
		t.Errorf("%+v %v", turn, h.heard)
	}
	h.ask(t, "hello")
	if sent := h.last(); strings.Contains(sent, "my password") || !strings.Contains(sent, "the branch is main") {
		t.Error(sent)
	}
}

// What a hook answers after a call, at the session's start and at the turn's end reaches the model; a hook that always wants more
// does not continue for ever.
func TestHooksSpeakToTheModel(t *testing.T) {
	h := newHooked(t, true, hook("PostToolUse", "Write", `echo '{"decision":"block","reason":"lint: n.txt has no title"}'`), calls("write", `{"filePath":"n.txt","content":"x"}`), wiretest.Step{Text: "Done."})
	if h.ask(t, "go"); !strings.Contains(h.last(), "lint: n.txt has no title") {
		t.Error(h.last())
	}
	h = newHooked(t, true, hook("SessionStart", "startup", `echo "it is Monday"`), wiretest.Step{Text: "One."}, wiretest.Step{Text: "Two."})
	h.ask(t, "a")
	if h.ask(t, "b"); strings.Count(h.last(), "it is Monday") != 1 {
		t.Error(h.last())
	}
	again := make([]wiretest.Step, 20)
	for i := range again {
		again[i] = wiretest.Step{Text: "Done."}
	}
	h = newHooked(t, true, hook("Stop", "", `grep -q '"stop_hook_active":false,' || echo again >> count; echo "run the tests" >&2; exit 2`), again...)
	turn := h.ask(t, "go")
	if n := len(h.srv.Requests()); n != 9 || turn.Stop != agent.TurnEnd || !strings.Contains(h.last(), "run the tests") {
		t.Errorf("%d requests, %+v", n, turn)
	}
}

// allow skips a question of the rules, ask brings one that they would not, and neither goes past a deny.
func TestAHookDecides(t *testing.T) {
	decide := func(d string) string {
		return hook("PreToolUse", "Bash", `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"`+d+`"}}'`)
	}
	asked := func(h *hooked) (n int) {
		_ = h.Events(t.Context(), 0, func(e agent.Event) error {
			if d, ok := agent.Value[agent.AskData](e); ok && e.Type == agent.EventAsk && d.Reply == "" {
				n++
			}
			return nil
		})
		return n
	}
	step := calls("bash", `{"command":"touch made","description":"d"}`)
	for d, want := range map[string]int{"allow": 0, "ask": 1, "": 1} {
		h := newHooked(t, true, decide(d), step, wiretest.Step{Text: "Done."})
		if h.ask(t, "go"); asked(h) != want || !exists(filepath.Join(h.dir, "made")) {
			t.Errorf("%q: asked %d times, want %d: %v", d, asked(h), want, h.heard)
		}
	}
	h := newHooked(t, true, `{"permissions": {"allow": ["Bash(touch:*)"]}, `+strings.TrimPrefix(decide("ask"), "{"), step, wiretest.Step{Text: "Done."})
	if h.ask(t, "go"); asked(h) != 1 {
		t.Errorf("a rule allows it and a hook wants a question: asked %d times", asked(h))
	}
	h = newHooked(t, true, `{"permissions": {"deny": ["Bash(touch:*)"]}, `+strings.TrimPrefix(decide("allow"), "{"), step, wiretest.Step{Text: "Done."})
	if h.ask(t, "go"); exists(filepath.Join(h.dir, "made")) {
		t.Error("a hook went past a deny")
	}
}

// env reaches commands and hooks, without keys.
func TestEnvOfClaudeSettings(t *testing.T) {
	h := newHooked(t, true, `{"env": {"FLAVOUR": "plum", "A_TOKEN": "hunter2hunter2", "N": 3}}`, calls("bash", `{"command":"echo $FLAVOUR-$N-$A_TOKEN-","description":"d"}`), wiretest.Step{Text: "Done."})
	if h.ask(t, "go"); !strings.Contains(h.last(), "plum-3--") {
		t.Error(h.last())
	}
}
