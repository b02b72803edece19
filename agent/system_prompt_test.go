package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/permission"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSystemPromptHasItsBlocksInCacheOrder(t *testing.T) {
	h := newHarness(t, says("ok"), says("ok"))
	put(t, filepath.Join(h.dir, ".git", "HEAD"), "ref: refs/heads/main\n")
	put(t, filepath.Join(h.dir, "sub", "x"), "")
	put(t, filepath.Join(h.dir, "AGENTS.md"), "Use tabs.")
	h.with.instructions = ofProject
	s, err := h.rt.NewSession(t.Context(), SessionOptions{Cwd: filepath.Join(h.dir, "sub"), Extra: []string{"/other"}})
	if err != nil {
		t.Fatal(err)
	}
	h.prompt(s, "go")
	system := h.model.seen()[0].System
	if len(system) != 3 {
		t.Fatalf("%d blocks", len(system))
	}
	if !strings.HasPrefix(system[0], "You are Pillion") || !strings.Contains(system[0], promptText("build")) {
		t.Errorf("first block %q", system[0])
	}
	for _, want := range []string{"Working directory: " + filepath.Join(h.dir, "sub"), "Project root: " + h.dir, "Git repository: yes", "Also open: /other", "Date: "} {
		if !strings.Contains(system[1], want) {
			t.Errorf("%q is not in %q", want, system[1])
		}
	}
	if want := "Instructions from: " + filepath.Join(h.dir, "AGENTS.md") + "\nUse tabs."; system[2] != want {
		t.Errorf("third block %q", system[2])
	}
	if err := s.SetAgent("plan"); err != nil {
		t.Fatal(err)
	}
	h.prompt(s, "go")
	if got := h.model.seen()[1].System[0]; !strings.Contains(got, promptText("plan")) {
		t.Errorf("plan's first block %q", got)
	}
}

func TestPromptsAreShortAndWhole(t *testing.T) {
	for _, a := range DefaultAgents() {
		if promptText(a.Name) == "" {
			t.Errorf("agent %s has no prompt", a.Name)
		}
	}
	for _, name := range []string{"core", "build", "plan", "general", "explore", "steps"} {
		text := promptText(name)
		if text == "" || len(text) > 2500 || !utf8.ValidString(text) {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		if strings.Count(text, "%") != map[string]int{"steps": 1}[name] {
			t.Errorf("%s: its verbs are not what is filled in", name)
		}
	}
}

func TestInstructionsNearestLast(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "AGENTS.md"), "outside of the project")
	root := filepath.Join(dir, "project")
	put(t, filepath.Join(root, ".git", "HEAD"), "x")
	put(t, filepath.Join(root, "CLAUDE.md"), "another kind")
	put(t, filepath.Join(root, "AGENTS.md"), "top")
	put(t, filepath.Join(root, "a", "b", "AGENTS.md"), "near")
	put(t, filepath.Join(root, "a", "AGENTS.md"), "  \n")
	got := ofProject(filepath.Join(root, "a", "b"))
	if len(got) != 2 || !strings.HasSuffix(got[0], "\ntop") || !strings.HasSuffix(got[1], "\nnear") {
		t.Errorf("got %q", got)
	}
	if got := ofProject(filepath.Join(root, "a", "b")); strings.Contains(strings.Join(got, ""), "outside") {
		t.Error("instructions from outside of the project")
	}
}

func TestInstructionsAreBounded(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "AGENTS.md"), strings.Repeat("ä", maxInstructions))
	got := ofProject(dir)
	if len(got) != 1 || len(got[0]) > maxInstructions+500 || !utf8.ValidString(got[0]) || !strings.Contains(got[0], "read it for the rest") {
		t.Errorf("got %d blocks", len(got))
	}
	if cut := CutInstructions(dir, Imports{}); len(cut) != 1 || cut[0] != filepath.Join(dir, "AGENTS.md") {
		t.Errorf("cut: %v", cut)
	}
	put(t, filepath.Join(dir, "AGENTS.md"), "short")
	put(t, filepath.Join(dir, "CLAUDE.md"), "See @AGENTS.md and @long.md.")
	put(t, filepath.Join(dir, "long.md"), strings.Repeat("long ", maxInstructions))
	if cut := CutInstructions(dir, Imports{}); len(cut) != 1 || filepath.Base(cut[0]) != "long.md" {
		t.Errorf("cut: %v", cut)
	}
	other := t.TempDir()
	if err := os.Mkdir(filepath.Join(other, "AGENTS.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(other, "CLAUDE.md"), "the next kind counts")
	if got := ofProject(other); len(got) != 1 || !strings.Contains(got[0], "next kind") {
		t.Errorf("got %q", got)
	}
}

func TestTheOwnInstructionsComeFirst(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	put(t, filepath.Join(home, ".claude", "CLAUDE.md"), "not this one")
	put(t, filepath.Join(home, ".config", "pillion", "AGENTS.md"), "mine")
	dir := t.TempDir()
	put(t, filepath.Join(dir, "CONTEXT.md"), "the project's")
	got := Instructions(dir, Imports{})
	if len(got) != 2 || !strings.HasSuffix(got[0], "\nmine") || !strings.HasSuffix(got[1], "\nthe project's") {
		t.Errorf("got %q", got)
	}
}

func TestAgentsOfTheConfiguration(t *testing.T) {
	h := newHarness(t)
	h.with.agents = func(string) []Agent {
		return []Agent{{Name: "build", Model: "fake/big", Steps: 7}, {Name: "explore", Disabled: true}, {Name: "mine", Description: "My own."}}
	}
	var names []string
	for _, a := range h.rt.Agents(h.dir) {
		names = append(names, a.Name)
		if a.Name == "build" && (a.Model != "fake/big" || a.Steps != 7 || a.Description == "") {
			t.Errorf("build is %+v", a)
		}
		if a.Name == "mine" && a.Mode != ModeAll {
			t.Errorf("mine is %+v", a)
		}
	}
	if got := strings.Join(names, " "); got != "build plan general title commit summary compaction mine" {
		t.Errorf("agents %s", got)
	}
	if s := h.session(); s.Info().Model != "fake/big" {
		t.Errorf("model %s", s.Info().Model)
	}
}

func TestWhatTheAgentsMayDo(t *testing.T) {
	h := newHarness(t)
	judge := func(agent string, r permission.Request, pattern string) permission.Action {
		a, ok := h.rt.agent(h.dir, agent)
		if !ok {
			t.Fatal(agent)
		}
		action, _ := h.rt.rules(h.dir, a).Judge(r, pattern)
		return action
	}
	for _, c := range []struct {
		agent, permission, pattern string
		readOnly                   bool
		want                       permission.Action
	}{
		{"build", "edit", "a.go", false, permission.Ask},
		{"build", "bash", "make", false, permission.Ask},
		{"build", "bash", "ls", true, permission.Allow},
		{"build", "read", "a.go", false, permission.Allow},
		{"build", "read", "x/.env", false, permission.Ask},
		{"build", "doom_loop", "read", false, permission.Ask},
		{"plan", "edit", "a.go", false, permission.Deny},
		{"plan", "edit", ".pillion/plans/a.md", false, permission.Ask},
		{"plan", "bash", "make", false, permission.Ask},
		{"plan", "bash", "ls", true, permission.Allow},
		{"general", "todowrite", "*", false, permission.Deny},
		{"general", "edit", "a.go", false, permission.Ask},
		{"explore", "edit", "a.go", false, permission.Deny},
		{"explore", "bash", "make", false, permission.Deny},
		{"explore", "bash", "ls", true, permission.Allow},
		{"explore", "read", "a.go", false, permission.Allow},
		{"explore", "read", ".env", false, permission.Ask},
		{"explore", "some_mcp_tool", "*", false, permission.Deny},
	} {
		r := permission.Request{Permission: c.permission}
		if c.readOnly {
			r.ReadOnly = []string{c.pattern}
		}
		if got := judge(c.agent, r, c.pattern); got != c.want {
			t.Errorf("%s: %s %s (read-only %v) is %s, want %s", c.agent, c.permission, c.pattern, c.readOnly, got, c.want)
		}
	}
}
