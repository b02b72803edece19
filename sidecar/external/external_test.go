package external

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
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

// A request for permission may name the call alone: what the agent said of it before counts, and what it says now counts more.
func TestARequestHasWhatWasSaidOfItsCall(t *testing.T) {
	x := &turn{said: map[string]protocol.ToolCallUpdate{}}
	for _, c := range []struct{ update, command string }{
		{`{"toolCallId":"1","kind":"execute","title":"Run","rawInput":{"command":"ls"}}`, "ls"},
		{`{"toolCallId":"1","status":"in_progress"}`, "ls"},
		{`{"toolCallId":"1","rawInput":{"command":"rm x"}}`, "rm x"},
		{`{"toolCallId":"2","title":"t"}`, ""},
	} {
		var u protocol.ToolCallUpdate
		if err := protocol.Decode([]byte(c.update), &u); err != nil {
			t.Fatal(err)
		}
		if got, _ := commandOf(x.collect(u)); got != c.command {
			t.Errorf("%s: %q", c.update, got)
		}
	}
}

// Titles are read by people, so paths in the project are relative.
func TestTitlesHaveRelativePaths(t *testing.T) {
	x := &turn{link: &link{place: &Process{Cwd: "/home/me/shop"}}}
	for title, want := range map[string]string{
		"/home/me/shop/a.go": "a.go", "home/me/shop/sub/a.go": "sub/a.go", "Read /home/me/shop/a.go and /home/me/shop/b.go": "Read a.go and b.go",
		"/home/me/shopping/a.go": "/home/me/shopping/a.go", "see at home/me/shop/a": "see at home/me/shop/a", "ls /home/me/shop": "ls /home/me/shop",
	} {
		if got := x.title(title); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}

// The folder that a person must name is the agent's own, not one that many programs share, and none that is in the project or named already.
func TestFolderThatAnAgentCouldNotWrite(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	l := &link{agent: Agent{Folders: []string{filepath.Join(home, ".named")}}, place: &Process{Cwd: filepath.Join(home, ".project")}}
	for text, want := range map[string]string{
		"Error: ENOENT: no such file or directory, mkdir '" + home + "/.qwen'":                "~/.qwen",
		"EROFS: read-only file system, open '" + home + "/.augment/sessions/x.json'":          "~/.augment",
		"OSError: [Errno 30] Read-only file system: '" + home + "/.config/goose/config.yaml'": "~/.config/goose",
		"open " + home + "/.local/share/goose/x: permission denied":                           "~/.local/share/goose",
		"EACCES " + home + "/.config":                                                         "",
		"cannot parse " + home + "/.qwen/settings.json":                                       "", // it was read
		"EROFS " + home + "/.project/x":                                                       "",
		"EROFS " + home + "/.named/x, then " + home + "/.other/y":                             "~/.other",
		"EROFS " + home + "/notes.txt":                                                        "",
		"EROFS /etc/.x":                                                                       "", "": "",
	} {
		if got := l.stateFolder(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A request about a command or a tool is decided by the rules whatever options it has; one in which the options are modes is a question. The
// options are those of Qwen Code 0.24, Gemini CLI 0.61, Codex 2.6 and Claude Code's adapter 0.101.
func TestWhichRequestsAreChoices(t *testing.T) {
	const once, always, no = "allow_once", "allow_always", "reject_once"
	for _, c := range []struct {
		name, call string
		options    []protocol.PermissionOptionKind
		want       bool
	}{
		{"a command, once and always", `{"kind":"execute","rawInput":{"command":"ls"}}`, []protocol.PermissionOptionKind{once, always, no}, false},
		{"a command, always in two scopes", `{"kind":"execute","rawInput":{"command":"ls"}}`, []protocol.PermissionOptionKind{always, always, once, no}, false},
		{"a command, two ways to say no", `{"kind":"execute","rawInput":{"command":"ls"}}`, []protocol.PermissionOptionKind{once, always, always, no, no}, false},
		{"a command without a kind", `{"rawInput":{"command":"ls"}}`, []protocol.PermissionOptionKind{always, always, once, once, no}, false},
		{"a tool of an MCP server", `{"kind":"other","title":"lsp"}`, []protocol.PermissionOptionKind{always, always, always, once, no}, false},
		{"an edit", `{"kind":"edit"}`, []protocol.PermissionOptionKind{always, always, once, no}, false},
		{"modes of a plan", `{"kind":"switch_mode"}`, []protocol.PermissionOptionKind{always, always, once, no}, true},
		{"two modes", `{"kind":"switch_mode"}`, []protocol.PermissionOptionKind{always, once, no}, true},
		{"a plan, yes or no", `{"kind":"switch_mode"}`, []protocol.PermissionOptionKind{once, no}, false},
		{"answers", `{"kind":"think","title":"Which?"}`, []protocol.PermissionOptionKind{once, once, once}, true},
		{"nothing but always", `{"kind":"other"}`, []protocol.PermissionOptionKind{always, always, no}, true},
	} {
		var call protocol.ToolCallUpdate
		if err := json.Unmarshal([]byte(c.call), &call); err != nil {
			t.Fatal(err)
		}
		var list []protocol.PermissionOption
		for _, k := range c.options {
			list = append(list, protocol.PermissionOption{Kind: k})
		}
		if got := choices(call, list); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Agents put the command that they ask about in different places.
func TestCommandOfACall(t *testing.T) {
	for _, c := range []struct{ name, call, command, dir string }{
		{"a line", `{"toolCallId":"1","kind":"execute","title":"Run it","rawInput":{"command":"go test ./...","cwd":"/p"}}`, "go test ./...", "/p"},
		{"words of a shell", `{"toolCallId":"1","kind":"execute","rawInput":{"command":["bash","-lc","ls | wc"],"workdir":"/w"}}`, "ls | wc", "/w"},
		{"words", `{"toolCallId":"1","kind":"execute","rawInput":{"command":["ls","a b"]}}`, "ls 'a b'", ""},
		{"the title alone", "{\"toolCallId\":\"1\",\"kind\":\"execute\",\"title\":\"`rm -rf x`\"}", "rm -rf x", ""},
		{"the title with the tool's name", `{"toolCallId":"1","kind":"execute","title":"Shell: rm -rf x"}`, "rm -rf x", ""},
		{"several lines", `{"toolCallId":"1","kind":"execute","title":"run_commands: ls","rawInput":{"commands":["ls","mv a b"]}}`, "ls\nmv a b", ""},
		{"several objects", `{"toolCallId":"1","kind":"execute","title":"t","rawInput":{"commands":[{"command":"ls"},{"command":["mv","a","b c"]}]}}`, "ls\nmv a 'b c'", ""},
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
		{"id":"c","name":"C","version":"1","distribution":{"binary":{"linux-x86_64":{"archive":"https://x.example/c.tgz","cmd":"./c"}}}},
		{"id":"args","name":"D","version":"1","distribution":{"binary":{"darwin-aarch64":{"archive":"https://x.example/d.tgz","cmd":"./bin/d","args":["acp"]},"windows-x86_64":{"archive":"https://x.example/d.zip","cmd":"bin\\d.exe","args":["acp"]}}}}]}`
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
	for id, want := range map[string]string{"c": "pillion agents add c -- c", "args": "as an archive only; install it, then run: pillion agents add args -- d acp", "d": "it has a, args, b, c, several, snake"} {
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
