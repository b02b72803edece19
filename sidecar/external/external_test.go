package external

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/guard"
)

// The line that is analysed and shown must be what runs: bash reads it back as the words that the agent gave.
func TestCommandLineIsWhatRuns(t *testing.T) {
	for _, words := range [][]string{
		{"printf", "%s\n", "plain"}, {"printf", "%s\n", "two words", "$HOME", "`id`", "it's", "", "a\nb", "*", "!x", "~"},
		{"printf", "%s\n", "ü", "--x=y", "{a,b}", "#", "\\", "\""},
	} {
		line := commandLine(words)
		want := strings.Join(words[2:], "\n") + "\n"
		out, err := exec.Command("bash", "-c", line).Output()
		if err != nil || string(out) != want {
			t.Errorf("%q as %q printed %q (%v), want %q", words, line, out, err, want)
		}
	}
	if got := commandLine([]string{"/bin/bash", "-lc", "ls | wc"}); got != "ls | wc" {
		t.Errorf("%q", got)
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "it's", "$(x)", "\x01", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, word string) {
		q := quote(word)
		if q == word { // nothing that bash expands, splits or ends a command at
			if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`*?[]{}()<>|&;!#~^") {
				t.Errorf("%q is not quoted", word)
			}
			return
		}
		if got := strings.ReplaceAll(q[1:len(q)-1], `'\''`, "'"); got != word {
			t.Errorf("%q reads back as %q", q, got)
		}
	})
}

// Agents put the command that they ask about in different places.
func TestCommandOfACall(t *testing.T) {
	for _, c := range []struct{ name, call, command, dir string }{
		{"a line", `{"toolCallId":"1","kind":"execute","title":"Run it","rawInput":{"command":"go test ./...","cwd":"/p"}}`, "go test ./...", "/p"},
		{"words of a shell", `{"toolCallId":"1","kind":"execute","rawInput":{"command":["bash","-lc","ls | wc"],"workdir":"/w"}}`, "ls | wc", "/w"},
		{"words", `{"toolCallId":"1","kind":"execute","rawInput":{"command":["ls","a b"]}}`, "ls 'a b'", ""},
		{"the title alone", "{\"toolCallId\":\"1\",\"kind\":\"execute\",\"title\":\"`rm -rf x`\"}", "rm -rf x", ""},
		{"no kind", `{"toolCallId":"1","title":"t","rawInput":{"command":"ls"}}`, "ls", ""},
		{"an edit with a command of its own", `{"toolCallId":"1","kind":"edit","rawInput":{"command":"str_replace"}}`, "", ""},
		{"arguments that are no object", `{"toolCallId":"1","kind":"execute","title":"x","rawInput":[1]}`, "x", ""},
	} {
		var u protocol.ToolCallUpdate
		if err := protocol.Decode([]byte(c.call), &u); err != nil {
			t.Fatal(err)
		}
		if command, dir := commandOf(u); command != c.command || dir != c.dir {
			t.Errorf("%s: %q in %q, want %q in %q", c.name, command, dir, c.command, c.dir)
		}
	}
}

func TestRegistry(t *testing.T) {
	const registry = `{"version":"1.0.0","agents":[
		{"id":"a","name":"A","version":"1","distribution":{"npx":{"package":"@x/a@1","args":["--acp"],"env":{"E":"1"}}}},
		{"id":"b","name":"B","version":"1","distribution":{"uvx":{"package":"b==1"}}},
		{"id":"several","name":"S","version":"1","distribution":{"npx":{"package":"@x/s@1","cmd":"s-acp","args":["-q"]}}},
		{"id":"snake","name":"S","version":"1","distribution":{"uvx":{"package":"snake==1","cmd":"snake-acp"}}},
		{"id":"c","name":"C","version":"1","distribution":{"binary":{"linux-x86_64":{"archive":"https://x.example/c.tgz","cmd":"./c"}}}}]}`
	a, err := RegistryEntry([]byte(registry), "a")
	if err != nil || !slices.Equal(a.Command, []string{"npx", "-y", "@x/a@1", "--acp"}) || a.Env["E"] != "1" || a.Name != "A" {
		t.Errorf("%+v %v", a, err)
	}
	if b, err := RegistryEntry([]byte(registry), "b"); err != nil || !slices.Equal(b.Command, []string{"uvx", "b==1"}) {
		t.Errorf("%+v %v", b, err)
	}
	for id, want := range map[string]string{"several": "npx -y --package @x/s@1 s-acp -q", "snake": "uvx --from snake==1 snake-acp"} {
		if e, err := RegistryEntry([]byte(registry), id); err != nil || strings.Join(e.Command, " ") != want {
			t.Errorf("%s: %q %v", id, e.Command, err)
		}
	}
	for id, want := range map[string]string{"c": "as an archive only", "d": "it has a, b, c, several, snake"} {
		if _, err := RegistryEntry([]byte(registry), id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	for text, want := range map[string]string{
		"<html>":                               "not in the ACP registry's format",
		"[]":                                   "it is a JSON array",
		`{"agents": {"a": {}}}`:                "the value of agents is a JSON object",
		"{}":                                   "the registry lists no agents",
		`{"agents": [{"id": "a"}]}`:            "without a package of npm or uv",
		`{"agents": [{"id": "a"}, {"id": 2}]}`: "is a JSON number",
	} {
		if _, err := RegistryEntry([]byte(text), "a"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "struct") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// An agent writes where its environment says, so that place has to be writable and not the usual one.
func TestFoldersFollowTheEnvironment(t *testing.T) {
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_DATA_HOME", "/data")
	t.Setenv("XDG_STATE_HOME", "relative") // to be ignored, as the specification says
	t.Setenv("CODEX_HOME", "/codex")
	got := Folders("/home/a", []string{".local/share/x", ".local/state/x", "~/.config/x", ".codex", ".codexes", "/abs", ".claude.json"})
	want := []string{"/data/x", "/home/a/.local/state/x", "/home/a/.config/x", "/codex", "/home/a/.codexes", "/abs", "/home/a/.claude.json"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What the agent is given of a conversation: all that it has not seen, and nothing twice.
func TestWhatAnAgentIsTold(t *testing.T) {
	text := func(id string, role provider.Role, model, s string) provider.Message {
		return provider.Message{ID: id, Role: role, Model: model, Parts: []provider.Part{{Type: provider.PartText, Text: s}}}
	}
	req := &provider.Request{Messages: []provider.Message{
		text("1", provider.RoleUser, "", "first"), text("2", provider.RoleAssistant, "acp/x", "mine"),
		text("3", provider.RoleUser, "", "second"), text("4", provider.RoleAssistant, "other/model", "theirs"), text("5", provider.RoleUser, "", "third"),
	}}
	for _, c := range []struct {
		name      string
		l         *link
		want, not []string
	}{
		{"a new conversation", &link{fresh: true}, []string{"first", "mine", "second", "theirs", "third"}, nil},
		{"one that goes on", &link{memory: memory{Seen: "1"}}, []string{"second", "theirs", "third"}, []string{"first", "mine"}},
		{"all but the last is known", &link{memory: memory{Seen: "4"}}, []string{"third"}, []string{"first", "mine", "second", "theirs", "began without you"}},
		{"what it has seen was taken back", &link{memory: memory{Seen: "gone"}}, []string{"third"}, []string{"first", "second", "theirs"}},
	} {
		c.l.agent = Agent{ID: "x"}
		blocks, seen := c.l.blocks(req)
		raw, _ := json.Marshal(blocks)
		if seen != "5" {
			t.Errorf("%s: seen %q", c.name, seen)
		}
		for _, w := range c.want {
			if strings.Count(string(raw), w) != 1 {
				t.Errorf("%s: %q is not once in %s", c.name, w, raw)
			}
		}
		for _, w := range c.not {
			if strings.Contains(string(raw), w) {
				t.Errorf("%s: %q is in %s", c.name, w, raw)
			}
		}
	}
}

// An agent that never answers is stopped, and the person reads that it did not answer and what it wrote instead.
func TestWhyAnAgentDidNotStart(t *testing.T) {
	l := &link{agent: Agent{Name: "Mute", Command: []string{"mute", "-x"}}, program: ended{}, said: &guard.Tail{}, bad: "skipped: Welcome\x1b[2J"}
	got := l.why(context.DeadlineExceeded).Error()
	if !strings.Contains(got, "Mute did not answer within 2m0s (skipped: Welcome") || !strings.Contains(got, "mute -x") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	if got := l.why(io.EOF).Error(); !strings.Contains(got, "Mute stopped before it was ready (it ended)") {
		t.Errorf("%q", got)
	}
}

// ended is a program that has ended.
type ended struct{ Program }

func (ended) Exited() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
func (ended) Err() error { return nil }
