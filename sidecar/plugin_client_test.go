package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/sidecar/app"
)

// A plugin in the whole program: it adds to what the person wrote, and reads the session through its client.
func TestAPluginReadsAndChangesTheConversation(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	home := atHome(t)
	dir := scratch(t)
	put(t, filepath.Join(home, "config/pillion/plugin/p.js"), `export const P = async ({ client }) => ({
  "chat.message": async (input, output) => {
    const before = await client.session.messages({ path: { id: input.sessionID } })
    output.parts.push({ type: "text", text: "Messages so far: " + before.data.map((m) => m.info.role + " " + m.parts.map((p) => p.text ?? p.type).join("|")).join("; ") })
    output.parts = output.parts.filter((p) => p.text !== "secret")
  },
  tool: { look: { description: "d", args: {}, execute: async (_, { sessionID }) => {
    const of = async (name) => { try { return JSON.stringify((await client.session[name]({ path: { id: sessionID } })).data) } catch (e) { return e.message } }
    const here = await client.project.current()
    return [await of("get"), await of("children"), await of("todo"), await of("list"), await of("abort"), here.data.worktree, JSON.stringify((await client.session.get({ path: { id: "ses_none" } })).error)].join("\n")
  } } },
})`)
	srv := wiretest.New(t, wiretest.Step{Text: "Hello."}, wiretest.Step{Calls: []wiretest.Call{{Name: "look", Input: []byte(`{}`)}}}, wiretest.Step{Text: "Done."})
	put(t, filepath.Join(home, "config/pillion/pillion.jsonc"), fmt.Sprintf(`{"lsp": false, "model": "mine/m", "provider": {"mine": {"baseURL": %q, "models": ["m"]}}}`, srv.OpenAIURL()))
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: allowAll{}, NoLSP: true})
	t.Cleanup(a.Close)
	s, err := a.Runtime.NewSession(t.Context(), agent.SessionOptions{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	s.Subscribe(0, func(e agent.Event) {
		if d, ok := agent.Value[agent.NoticeData](e); ok && e.Type == agent.EventNotice {
			t.Log(d.Text)
		}
	})
	prompt := func(texts ...string) string {
		var parts []provider.Part
		for _, text := range texts {
			parts = append(parts, provider.Part{Type: provider.PartText, Text: text})
		}
		if turn, err := s.Prompt(t.Context(), agent.Prompt{Parts: parts}); err != nil || turn.Error != "" {
			t.Fatal(err, turn.Error)
		}
		all := srv.Requests()
		body := string(all[len(all)-1].Body)
		return body[strings.Index(body, `"role":"user"`):]
	}
	if sent := prompt("hi", "secret"); !strings.Contains(sent, "hi\\n\\nMessages so far: ") || strings.Contains(sent, "secret") {
		t.Error(sent)
	}
	sent := prompt("look")
	if !strings.Contains(sent, "Messages so far: user hi|Messages so far: ; assistant Hello.") {
		t.Error(sent)
	}
	for _, want := range []string{`\"id\":\"` + s.ID(), `\n[]\n[]\n[{`, "client.session.abort is not available: Pillion offers plugins app.log", `\n` + dir + `\n`, `\"name\":\"NotFoundError\"`} {
		if !strings.Contains(sent, want) {
			t.Errorf("no %s in %s", want, sent)
		}
	}
	theirs, err := a.Runtime.PluginMessages(context.Background(), s.ID())
	if err != nil || len(theirs) != 5 || theirs[3].Parts[0]["tool"] != "look" || theirs[3].Info["role"] != "assistant" || theirs[1].Info["tokens"] == nil {
		t.Errorf("%v %+v", err, theirs)
	}
}
