package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/permission"
)

// says no to everything that is asked.
type saysNo struct{}

func (saysNo) AskPermission(context.Context, permission.Request) (permission.Reply, error) {
	return permission.Reply{Kind: permission.Reject, Message: "not that"}, nil
}

func commandApp(t *testing.T, asker permission.Asker, files map[string]string) (*app.App, *agent.Session, []slash.Command) {
	t.Helper()
	atHome(t)
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: asker, NoLSP: true})
	t.Cleanup(a.Close)
	s, err := a.Runtime.NewSession(t.Context(), agent.SessionOptions{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	return a, s, allCommands(a, dir)
}

func made(t *testing.T, a *app.App, s *agent.Session, all []slash.Command, typed string) (string, *agent.Prompt, error) {
	t.Helper()
	c, args, ok := slash.Parse([]provider.Part{{Type: provider.PartText, Text: typed}}, all)
	if !ok || c.Run == nil {
		t.Fatalf("%s is no command", typed)
	}
	return c.Run(t.Context(), slash.Host{Session: s, Runtime: a.Runtime, All: all}, args)
}

func TestACommandOfOnesOwn(t *testing.T) {
	a, s, all := commandApp(t, allowAll{}, map[string]string{
		".claude/commands/look.md":  "---\ndescription: Look at it\n---\nSay !`printf '%s' \"got\"` $1 and !`false`, see @notes.md and @missing.md, mail me@notes.md.",
		".opencode/command/bare.md": "Do the thing.",
		"notes.md":                  "the notes\n",
	})
	_, p, err := made(t, a, s, all, "/look it !`touch evil`")
	if err != nil {
		t.Fatal(err)
	}
	text := p.Parts[0].Text
	if !strings.HasPrefix(text, "Say got it !`touch evil` and ") || !strings.Contains(text, "exit code: 1") || !strings.Contains(text, "see @notes.md and @missing.md") {
		t.Errorf("%q", text)
	}
	if _, err := os.Stat(filepath.Join(s.Info().Cwd, "evil")); err == nil {
		t.Error("a command came in with the arguments")
	}
	if len(p.Parts) != 2 || !p.Parts[1].Synthetic || !strings.HasPrefix(p.Parts[1].Text, "Content of @notes.md:") || !strings.Contains(p.Parts[1].Text, "the notes") {
		t.Errorf("%+v", p.Parts)
	}
	if _, p, err = made(t, a, s, all, "/bare with care"); err != nil || p.Parts[0].Text != "Do the thing.\n\nwith care" {
		t.Errorf("%+v %v", p, err)
	}
}

func TestACommandsShellIsAsked(t *testing.T) {
	a, s, all := commandApp(t, saysNo{}, map[string]string{".pillion/command/danger.md": "Now !`touch made`"})
	_, _, err := made(t, a, s, all, "/danger")
	if err == nil || !strings.Contains(err.Error(), "was stopped") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Info().Cwd, "made")); err == nil {
		t.Error("it ran")
	}
}

func TestTheSharedCommands(t *testing.T) {
	a, s, all := commandApp(t, allowAll{}, map[string]string{".pillion/agent/mine.md": "---\ndescription: mine\nmode: primary\n---\nx"})
	for typed, want := range map[string]string{
		"/mode":        "- mine: mine",
		"/mode mine":   "the agent to mine",
		"/model":       "The model is builtin/quickfix",
		"/compact":     "nothing to compact",
		"/help":        "- /review [commit, branch or path]: Review",
		"/export":      ".md",
		"/export x.md": "x.md",
	} {
		said, p, err := made(t, a, s, all, typed)
		if err != nil || p != nil || !strings.Contains(said, want) {
			t.Errorf("%s: %q %v", typed, said, err)
		}
	}
	for typed, want := range map[string]string{"/mode general": "unknown agent \"general\"", "/model nonsense": "provider/model", "/export x.md": "exists already"} {
		if _, _, err := made(t, a, s, all, typed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", typed, err)
		}
	}
	for _, c := range all {
		if c.Description == "" || (c.Run == nil) == (c.Expand == nil) {
			t.Errorf("%+v", c)
		}
	}
}

// Skills are commands, as in OpenCode and Claude Code, with the two settings that Claude Code has for who starts one.
func TestASkillIsACommand(t *testing.T) {
	skillFile := func(head string) string {
		return "---\ndescription: When it helps\n" + head + "---\nGo to $1, then stop.\n"
	}
	a, s, all := commandApp(t, allowAll{}, map[string]string{
		".claude/skills/deploy/SKILL.md":       skillFile("disable-model-invocation: true\nargument-hint: [target] [force]\n"),
		".claude/skills/deploy/steps.sh":       "true\n",
		".opencode/skills/background/SKILL.md": skillFile("user-invocable: false\n"),
		".agents/skills/undo/SKILL.md":         skillFile(""),
		".agents/skills/twice/SKILL.md":        skillFile(""),
		".agents/skills/secret/SKILL.md":       skillFile(""),
		".opencode/command/twice.md":           "The command.",
		"opencode.json":                        `{"permission": {"skill": {"secret": "deny"}}}`,
	})
	_, p, err := made(t, a, s, all, "/deploy prod")
	if err != nil {
		t.Fatal(err)
	}
	if text := p.Parts[0].Text; !strings.Contains(text, "Go to prod, then stop.") || !strings.Contains(text, filepath.Join(".claude", "skills", "deploy", "steps.sh")) {
		t.Errorf("%s", text)
	}
	if _, p, err = made(t, a, s, all, "/twice"); err != nil || p.Parts[0].Text != "The command." {
		t.Errorf("%+v %v", p, err)
	}
	for _, c := range all {
		if c.Name == "background" || c.Name == "secret" || c.Name == "undo" && c.Description == "When it helps" {
			t.Errorf("/%s is the skill", c.Name)
		}
		if c.Name == "deploy" && c.Hint != "[target] [force]" {
			t.Errorf("the hint is %q", c.Hint)
		}
	}
	for name, want := range map[string]bool{"deploy": false, "secret": false, "background": true, "undo": true} {
		got, err := s.Tool(t.Context(), "skill", json.RawMessage(fmt.Sprintf(`{"name": %q}`, name)))
		if loaded := err == nil && got.Status == agent.ToolCompleted; loaded != want {
			t.Errorf("the model loads %s: %v, want %v; %v %s", name, loaded, want, err, got.Error)
		}
	}
}
