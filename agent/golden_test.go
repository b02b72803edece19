package agent

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var today = regexp.MustCompile(`(?m)^Date: .*$`)

// TestPromptsAreTheOnesThatWereAgreed holds each agent's whole system prompt, so that no word of it changes unseen.
func TestPromptsAreTheOnesThatWereAgreed(t *testing.T) {
	for _, name := range []string{"build", "plan", "general", "explore"} {
		h := newHarness(t, says("ok"))
		put(t, filepath.Join(h.dir, ".git", "HEAD"), "ref: refs/heads/main\n")
		put(t, filepath.Join(h.dir, "AGENTS.md"), "Use tabs.")
		put(t, filepath.Join(h.dir, "docs", "style.md"), "Short names.")
		h.with.instructions = func(cwd string) []string {
			have := ofProject(cwd)
			return append(have, MoreInstructions(cwd, "/nowhere", []string{"docs/*.md", "AGENTS.md", "~/none.md", "[", "missing/**"}, have)...)
		}
		h.with.tree = func(context.Context, string) string { return "docs/\n  style.md\nAGENTS.md\n" }
		s, err := h.rt.NewSession(t.Context(), SessionOptions{Cwd: h.dir, Agent: name})
		if err != nil {
			t.Fatal(err)
		}
		h.prompt(s, "go")
		got := strings.Join(h.model.seen()[0].System, "\n\n----\n\n") + "\n"
		got = today.ReplaceAllString(strings.ReplaceAll(got, h.dir, "/project"), "Date: today")
		got = regexp.MustCompile(`(?m)^Platform: .*$`).ReplaceAllString(got, "Platform: this")
		path := filepath.Join("testdata", "prompts", name+".golden")
		if *update {
			put(t, path, got)
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != got {
			t.Errorf("%s: go test ./agent -run Agreed -update, and read the diff\ngot\n%s", name, got)
		}
	}
}

func TestTheSketchIsMadeOnce(t *testing.T) {
	h := newHarness(t, says("ok"), says("ok"))
	made := 0
	h.with.tree = func(context.Context, string) string { made++; return "a\n" }
	s := h.session()
	h.prompt(s, "one")
	h.prompt(s, "two")
	seen := h.model.seen()
	if made != 1 || seen[0].System[1] != seen[1].System[1] || !strings.HasSuffix(seen[0].System[1], "<tree>\na\n</tree>") {
		t.Errorf("made %d times: %q", made, seen[1].System[1])
	}
}
