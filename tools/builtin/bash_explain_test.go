//go:build unix && cgo

package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct{ command, config, want string }{
		{"ls", `{}`, `{"decision":"allow","commands":["ls"],"externalPaths":[],"protectedPaths":[],"opaque":false,"why":"","requests":[{"permission":"bash","patterns":["ls"],"always":["ls *"],"action":"allow","rule":{"permission":"bash_readonly","pattern":"*","action":"allow","origin":"default"},"why":"it changes nothing (bash_readonly: \"*\" is allow, from default)"}],"programs":[{"text":"ls","record":"files.yaml: ls","readOnly":true}]}`},
		{"A=1 go test ./... > ../log", `{}`, `{"decision":"ask","commands":["go test ./..."],"externalPaths":[{"path":"$UP/log","access":"write"}],"protectedPaths":[],"opaque":false,"why":"A=1 go test ./... \u003e ../log writes $UP/log (external_directory: \"*\" is ask, from default)","requests":[{"permission":"external_directory","patterns":["$UP/*"],"always":["$UP/*"],"action":"ask","rule":{"permission":"external_directory","pattern":"*","action":"ask","origin":"default"},"why":"A=1 go test ./... \u003e ../log writes $UP/log (external_directory: \"*\" is ask, from default)"},{"permission":"bash","patterns":["go test ./..."],"always":["go test *"],"action":"ask","rule":{"permission":"bash","pattern":"*","action":"ask","origin":"default"},"why":"it runs go test ./...; outside the project it writes $UP/log (bash: \"*\" is ask, from default)"}],"programs":[{"text":"go test ./...","record":"go.yaml: go test"}]}`},
		{"rm x", `{"bash":{"rm *":"deny"}}`, `{"decision":"deny","commands":["rm x"],"externalPaths":[],"protectedPaths":[],"opaque":false,"why":"a rule denies bash of rm x (bash: \"rm *\" is deny, from the rules)","requests":[{"permission":"bash","patterns":["rm x"],"always":["rm *"],"action":"deny","rule":{"permission":"bash","pattern":"rm *","action":"deny"},"why":"a rule denies bash of rm x (bash: \"rm *\" is deny, from the rules)"}],"programs":[{"text":"rm x","record":"files.yaml: rm"}]}`},
		{"ls \x00", `{}`, `{"decision":"refuse","commands":[],"externalPaths":[],"protectedPaths":[],"opaque":true,"why":"it contains a NUL byte, which no shell can run","requests":[],"programs":[]}`},
	} {
		s := newBashSession(t, c.config)
		got, err := json.Marshal(Explain(t.Context(), s.env, c.command, "", s.gate))
		if err != nil {
			t.Fatal(err)
		}
		g := strings.ReplaceAll(string(got), filepath.Dir(s.env.Root), "$UP")
		if g = strings.Replace(g, `"contained":true,`, "", 1); g != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.command, g, c.want)
		}
	}
}

// What is explained is what happens: the same decision and the same questions, whatever is configured and remembered.
func TestExplainSaysWhatTheGateDoes(t *testing.T) {
	commands := []string{
		"ls", "cat .env", "make", "make all > log", "make > ../log", "git status && make", "sudo make", "bash -c make", "echo x > .git/config", "$X",
		"touch .env", "rm a.txt", "cat ../x", "npm run dev -- --port 1", "> b.txt", "cd sub && make", "echo 'a", "ls | tee out", "cp a.txt docs/b", "curl https://x.invalid",
	}
	configs := []string{
		`{}`, `{"bash":"allow"}`, `"allow"`, `{"bash":{"make *":"deny","*":"allow"}}`, `{"bash":{"*":"ask","rm *":"allow"},"edit":{"docs/*":"deny"}}`,
		`{"read":{"*":"ask"}}`, `{"edit":"deny","bash":"allow"}`, `{"bash_readonly":"ask"}`, `{"external_directory":"allow"}`,
	}
	grants := [][]permission.Grant{
		nil,
		{{Permission: "bash", Pattern: "make *"}, {Permission: "bash", Pattern: "npm run dev *"}},
		{{Permission: "bash", Pattern: "*"}, {Permission: "external_directory", Pattern: "*"}, {Permission: "read", Pattern: ".env"}},
	}
	allowed := 0 // by a grant; a test where that never happens would prove nothing
	for _, config := range configs {
		for _, remembered := range grants {
			s := newBashSession(t, config)
			kept := &grantsKept{list: remembered}
			rs, err := permission.Parse([]byte(config), nil)
			if err != nil {
				t.Fatal(err)
			}
			rs = append(permission.Default(), rs...)
			gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rs }, Asker: s, Project: s.env.Root, Grants: kept})
			call := &tools.Call{SessionID: "s", CallID: "c", Tool: "bash", Host: tools.Host{Gate: gate}}
			for _, command := range commands {
				x := Explain(t.Context(), s.env, command, "", gate)
				s.asked = nil
				a := s.env.commands().analyzed(command, s.env.Cwd, "/bin/bash", run.Environ(nil), nil)
				_, err := s.env.commands().askCommand(t.Context(), call, a, bashParams{Command: command}, s.env.Cwd)
				did := "allow"
				if errors.Is(err, permission.ErrDenied) {
					did = "deny"
				} else if len(s.asked) > 0 {
					did = "ask"
				}
				var asked, explained []string
				for _, r := range s.asked {
					asked = append(asked, r.Permission)
				}
				for _, r := range x.Requests {
					if r.Action == permission.Ask {
						explained = append(explained, r.Permission)
					}
					if r.Action == permission.Allow && r.Rule != nil && r.Rule.Origin == "project" {
						allowed++
					}
				}
				if did != x.Decision || did != "deny" && !slices.Equal(asked, explained) {
					t.Errorf("%s with %s and %d grants: explained as %s %v, was %s %v", command, config, len(remembered), x.Decision, explained, did, asked)
				}
			}
		}
	}
	if allowed == 0 {
		t.Error("no grant ever counted")
	}
}

// grantsKept are what the person once allowed for good; nothing is added.
type grantsKept struct {
	permission.Grants
	list []permission.Grant
}

func (k *grantsKept) List(context.Context, string) ([]permission.Grant, error) { return k.list, nil }
