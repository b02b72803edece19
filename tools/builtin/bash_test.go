//go:build unix && cgo

package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// bashSession is a session with the bash tool and a person who answers every question the same way.
type bashSession struct {
	t    *testing.T
	env  Env
	gate *permission.Gate

	mu     sync.Mutex
	answer permission.Reply
	asked  []permission.Request
}

func newBashSession(t *testing.T, config string) *bashSession {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &bashSession{t: t, answer: permission.Reply{Kind: permission.Once}}
	s.env = Env{Cwd: filepath.Join(dir, "work"), Root: filepath.Join(dir, "work"), StateDir: filepath.Join(dir, "state"), Home: filepath.Join(dir, "home")}
	s.env.Shell.Runner = &run.Runner{}
	t.Cleanup(s.env.Shell.Runner.Close)
	for _, d := range []string{s.env.Cwd, s.env.Home, filepath.Join(s.env.Cwd, "sub"), filepath.Join(s.env.Cwd, ".git", "hooks")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"a.txt": "one\n", ".env": "KEY=1\n", ".git/config": ""} {
		if err := os.WriteFile(filepath.Join(s.env.Cwd, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rs, err := permission.Parse([]byte(config), nil)
	if err != nil {
		t.Fatal(err)
	}
	rs = append(permission.Default(), rs...)
	s.gate = permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rs }, Asker: s, Project: s.env.Root})
	return s
}

func (s *bashSession) AskPermission(_ context.Context, r permission.Request) (permission.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	return s.answer, nil
}

func (s *bashSession) call(input map[string]any) (tools.Result, error) {
	s.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		s.t.Fatal(err)
	}
	s.asked = nil
	call := &tools.Call{SessionID: "s", CallID: "c", Tool: "bash", Host: tools.Host{Gate: s.gate}}
	return Bash(s.env).Run(s.t.Context(), raw, call)
}

func (s *bashSession) asks() string {
	var out []string
	for _, r := range s.asked {
		must := ""
		if r.MustAsk {
			must = "!"
		}
		out = append(out, r.Permission+must+" "+strings.Join(r.Patterns, ", "))
	}
	return strings.ReplaceAll(strings.Join(out, " | "), filepath.Dir(s.env.Root), "$UP")
}

func TestBashAsksForWhatACommandDoes(t *testing.T) {
	for _, c := range []struct{ name, config, command, asks string }{
		{"what only reads goes on", `{}`, "cat a.txt | wc -l && ls sub", ""},
		{"nothing at all", `{}`, "# a comment", ""},
		{"cd and assignments", `{}`, "cd sub; X=1", ""},
		{"a program is asked", `{}`, "chmod +x a.txt", "bash chmod +x a.txt"},
		{"quotes and assignments don't hide it", `{"bash":{"*":"allow","chmod *":"ask"}}`, `A=1 \ch"mod" +x a.txt`, "bash chmod +x a.txt"},
		{"only what is not read-only decides", `{"bash":{"*":"ask","chmod *":"allow"}}`, "ls && chmod +x a.txt", ""},
		{"switched off", `{"bash_readonly":"ask"}`, "ls", "bash ls"},
		{"a redirection writes", `{}`, "echo x > b.txt", "bash echo x"},
		{"a redirection alone", `{}`, "> b.txt", "bash > b.txt"},
		{"outside, read", `{}`, "ls ..", "external_directory $UP/*"},
		{"outside, written", `{}`, "echo x > ../b", "external_directory $UP/* | bash echo x"},
		{"outside, allowed", `{"external_directory":"allow","bash":"allow"}`, "echo x > ../b", ""},
		{"a secret", `{}`, "cat .env", "read .env"},
		{"a secret, the command allowed", `{"bash":"allow"}`, "cat .env", "read .env"},
		{"opaque beats allow", `{"bash":"allow"}`, "x=ls; $x", "bash! $x, x=ls; $x"},
		{"protected beats allow", `{"bash":"allow","edit":"allow"}`, "echo x >> .git/config", "bash! echo x"},
		{"an edit rule that names files", `{"bash":"allow","edit":{"*":"ask","docs/*":"ask"}}`, "mkdir -p docs && touch docs/x", "edit docs, docs/x"},
		{"a general edit rule leaves an allowed command alone", `{"bash":"allow"}`, "touch x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newBashSession(t, c.config)
			if _, err := s.call(map[string]any{"command": c.command}); err != nil {
				t.Fatal(err)
			}
			if got := s.asks(); got != c.asks {
				t.Errorf("asked %q\nwant  %q", got, c.asks)
			}
		})
	}
}

func TestBashDeniesInEveryDisguise(t *testing.T) {
	s := newBashSession(t, `{"bash":{"*":"allow","rm *":"deny"},"edit":{"*":"allow","keep/*":"deny"},"external_directory":"allow"}`)
	for _, command := range []string{
		"rm a.txt", "FOO=1 rm a.txt", "/bin/rm a.txt", `\rm a.txt`, "command rm a.txt", "bash -c 'rm a.txt'", "echo $(rm a.txt)", "find . -exec rm {} +", "echo a.txt | xargs rm", "env rm a.txt",
		"f() { rm a.txt; }; f", "cat <<E\n$(rm a.txt)\nE", "bash <<'E'\nrm a.txt\nE", "eval 'rm a.txt'", "touch keep/x", "echo x > keep/x", "cp a.txt keep/x",
	} {
		if _, err := s.call(map[string]any{"command": command}); !errors.Is(err, permission.ErrDenied) {
			t.Errorf("%s: %v", command, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.env.Cwd, "a.txt")); err != nil {
		t.Error(err)
	}
}

func TestBashAlwaysRemembersAPrefixOnly(t *testing.T) {
	s := newBashSession(t, `{}`)
	s.answer.Kind = permission.Always
	if _, err := s.call(map[string]any{"command": "touch x"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.asked[0].Always, []string{"touch *"}) {
		t.Fatalf("offered %q", s.asked[0].Always)
	}
	s.answer.Kind = permission.Once
	for command, asks := range map[string]string{
		"touch y":             "",
		"touch y > z":         "edit z", // the grant covers the program, not a redirection
		"env touch y":         "bash touch y, env touch y",
		"bash -c 'touch y'":   "bash touch y, bash -c touch y",
		"touch ../y":          "external_directory $UP/*",
		"touch .git/hooks/x":  "bash! touch .git/hooks/x",
		"touch y; chmod +x y": "bash touch y, chmod +x y",
	} {
		if _, err := s.call(map[string]any{"command": command}); err != nil {
			t.Fatal(err)
		}
		if got := s.asks(); got != asks {
			t.Errorf("%s: asked %q, want %q", command, got, asks)
		}
	}
}

func TestBashRejectedAndRefusedRunNothing(t *testing.T) {
	s := newBashSession(t, `{}`)
	s.answer = permission.Reply{Kind: permission.Reject, Message: "no"}
	if _, err := s.call(map[string]any{"command": "touch x"}); !errors.Is(err, permission.ErrRejected) {
		t.Errorf("%v", err)
	}
	var te *tools.Error
	if _, err := s.call(map[string]any{"command": "touch x \x00"}); !errors.As(err, &te) || te.Kind != "refused" {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(s.env.Cwd, "x")); err == nil {
		t.Error("it ran")
	}
}

func TestBashResult(t *testing.T) {
	s := newBashSession(t, `{"bash":"allow"}`)
	for _, c := range []struct {
		name  string
		input map[string]any
		want  string
		exit  any
	}{
		{"output and exit code", map[string]any{"command": "echo hi; exit 3"}, "hi\n\n<bash_metadata>\nexit code: 3\n</bash_metadata>", 3},
		{"no output", map[string]any{"command": "true"}, "(no output)\n\n<bash_metadata>\nexit code: 0\n</bash_metadata>", 0},
		{"workdir", map[string]any{"command": "basename $PWD", "workdir": "sub"}, "sub\n\n<bash_metadata>\nexit code: 0\n</bash_metadata>", 0},
		{"time-out", map[string]any{"command": "echo a; sleep 100", "timeout": 300}, "a\n\n<bash_metadata>\nbash tool terminated command after exceeding timeout 300 ms. If it is expected to take longer and is not waiting for interactive input, retry with a larger timeout value in milliseconds.\n</bash_metadata>", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := s.call(c.input)
			var failed *tools.Error
			if c.exit == nil && errors.As(err, &failed) && failed.Kind == "timeout" { // what it printed is told, but it is not a success
				err = nil
			} else if c.exit == nil {
				t.Errorf("not a time-out: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Output != c.want || r.Metadata["exit"] != c.exit {
				t.Errorf("%q exit %v", r.Output, r.Metadata["exit"])
			}
		})
	}
}

func TestBashLongOutputNamesItsFile(t *testing.T) {
	s := newBashSession(t, `{"bash":"allow"}`)
	r, err := s.call(map[string]any{"command": "seq 1 50000", "description": "Count"})
	if err != nil {
		t.Fatal(err)
	}
	path, _ := r.Metadata["outputPath"].(string)
	if r.Metadata["truncated"] != true || !strings.HasPrefix(path, filepath.Join(s.env.StateDir, "tool-output")) || !strings.Contains(r.Output, path) || r.Title != "Count" {
		t.Errorf("%v %q", r.Metadata["truncated"], path)
	}
	// What was cut out may be read without a question, also by a command.
	if _, err := s.call(map[string]any{"command": "tail -n 1 " + path}); err != nil || s.asks() != "" {
		t.Errorf("%v, asked %s", err, s.asks())
	}
}

func TestBashSaysWhatToDoNext(t *testing.T) {
	s := newBashSession(t, `{"bash":"allow"}`)
	for want, input := range map[string]map[string]any{
		"Invalid timeout value: -1. Timeout must be a positive number.": {"command": "ls", "timeout": -1},
		"does not exist (any more); give another workdir":               {"command": "ls", "workdir": "gone"},
	} {
		if _, err := s.call(input); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
