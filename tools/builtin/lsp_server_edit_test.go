package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

// An action that is a command goes through the change pipeline like every other: what the server asks for is the
// call's own change set.
func TestLSPCommandAction(t *testing.T) {
	s := newLSPSession(t, gopls(t), permission.Rule{Permission: "edit", Pattern: "locked_test.go", Action: permission.Deny})
	put(t, filepath.Join(s.dir, "main.go"), strings.Replace(brokenGo, "\tmissing()\n", "", 1))
	put(t, filepath.Join(s.dir, "locked.go"), "package main\n\nfunc locked() {}\n")
	add := regexp.MustCompile(`(?m)^(a\d+)  Add test for`)
	for _, c := range []struct{ file, made, says string }{
		{"main.go", "main_test.go", "Checked after the command: no errors in the changed files."},
		{"locked.go", "locked_test.go", ""},
	} {
		line := map[string]string{"main.go": "9", "locked.go": "3"}[c.file]
		list := s.must(`{"operation":"codeActions","filePath":"`+c.file+`","line":`+line+`,"character":6,"kind":"source"}`, "Add test for")
		id := add.FindStringSubmatch(list.Output)
		if id == nil {
			t.Fatal(list.Output)
		}
		r, err := s.run(`{"operation":"codeActions","apply":"` + id[1] + `"}`)
		b, read := os.ReadFile(filepath.Join(s.dir, c.made))
		if c.says == "" {
			if !errors.Is(err, permission.ErrDenied) || read == nil {
				t.Errorf("%v %q, file %q", err, r.Output, b)
			}
			continue
		}
		if err != nil || !strings.Contains(r.Output, c.says) || !strings.Contains(string(b), "func Test") {
			t.Errorf("%v: %s\n%s", err, r.Output, b)
		}
	}
}

// An edit of a server's own accord, and what the server is told of it.
func TestServerEdit(t *testing.T) {
	s := newLSPSession(t, func(string) Bridge { return nil })
	path := filepath.Join(s.dir, "main.go")
	env := Env{Cwd: s.dir, Root: s.dir, StateDir: t.TempDir(), Tracker: &files.Tracker{}, Locks: &files.Locks{}}
	var asked []permission.Request
	answer := permission.Reply{Kind: permission.Once, Asked: true}
	gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset {
		return permission.Ruleset{{Permission: "edit", Pattern: "*", Action: permission.Allow}}
	},
		Asker: askerFunc(func(_ context.Context, r permission.Request) (permission.Reply, error) {
			asked = append(asked, r)
			return answer, nil
		})})
	try := func(confirm string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		old := string(b)
		tool, failed := ServerEdit(env, "fake", "", []lspbridge.FileEdit{{Path: path, Kind: "edit", Old: old, New: old + "// more\n", Confirm: confirm}})
		_, _ = tool.Run(t.Context(), json.RawMessage(`{}`), &tools.Call{SessionID: "s", CallID: "c", Tool: tool.ID, Host: tools.Host{Gate: gate}})
		return failed()
	}
	if err := try(""); err != nil || len(asked) != 0 {
		t.Errorf("allowed by a rule: %v, asked %d times", err, len(asked))
	}
	if err := try("Risky: in a comment"); err != nil || len(asked) != 1 || !strings.Contains(asked[0].Why, "Risky: in a comment") || asked[0].Always != nil {
		t.Errorf("to be confirmed: %v, asked %+v", err, asked)
	}
	answer = permission.Reply{Kind: permission.Reject, Asked: true}
	if err := try("Risky"); !errors.Is(err, permission.ErrRejected) {
		t.Errorf("rejected: %v", err)
	}
	if b, _ := os.ReadFile(path); strings.Count(string(b), "// more") != 2 {
		t.Errorf("%s", b)
	}
}

type askerFunc func(context.Context, permission.Request) (permission.Reply, error)

func (f askerFunc) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	return f(ctx, r)
}
