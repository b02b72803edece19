package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/permission"
)

func permissionCLI(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := rootCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(append([]string{"permission"}, args...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func grantedIn(t *testing.T, project string, grants ...[2]string) {
	t.Helper()
	a := app.New(app.Options{Place: app.NewWorkplace(version), NoLSP: true})
	defer a.Close()
	for _, g := range grants {
		if _, err := a.Grants.Add(context.Background(), permission.Grant{Project: project, Permission: g[0], Pattern: g[1], Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
}

// What a person allowed for good, and the agent's rules, count in an explanation as they do at the gate.
func TestExplainKnowsGrantsAndAgents(t *testing.T) {
	home := atHome(t)
	dir, other := home+"/work", home+"/other"
	put(t, dir+"/go.mod", "module x\n")
	put(t, other+"/go.mod", "module x\n")
	put(t, home+"/config/pillion/pillion.json", `{"agent": {"careful": {"description": "d", "permission": {"bash": "deny"}}}}`)
	explain := func(dir string, more ...string) builtin.Explanation {
		t.Helper()
		out, err := permissionCLI(t, append([]string{"explain", "-C", dir, "--json", "--command", "go test ./..."}, more...)...)
		var x builtin.Explanation
		if err != nil || json.Unmarshal([]byte(out), &x) != nil {
			t.Fatalf("%v %s", err, out)
		}
		return x
	}
	if x := explain(dir); x.Decision != "ask" {
		t.Errorf("nothing remembered: %+v", x)
	}
	grantedIn(t, dir, [2]string{"bash", "go test *"})
	if x := explain(dir); x.Decision != "allow" || x.Requests[0].Rule == nil || x.Requests[0].Rule.Origin != "project" {
		t.Errorf("remembered: %+v", x)
	}
	if x := explain(other); x.Decision != "ask" {
		t.Errorf("another project: %+v", x)
	}
	if x := explain(dir, "--agent", "careful"); x.Decision != "deny" || !strings.Contains(x.Why, "bash") {
		t.Errorf("an agent's deny: %+v", x)
	}
	if _, err := permissionCLI(t, "explain", "-C", dir, "--command", "ls", "--agent", "none"); err == nil || !strings.Contains(err.Error(), "careful") {
		t.Errorf("an agent that is not there: %v", err)
	}
	out, err := permissionCLI(t, "explain", "-C", dir, "--command", "go test ./... > ../log")
	if err != nil || !strings.HasPrefix(out, "ask: ") || !strings.Contains(out, "asks       external_directory") || !strings.Contains(out, "allows     bash: go test ./...") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRevokeByWhatIsNamed(t *testing.T) {
	home := atHome(t)
	dir := home + "/work"
	put(t, dir+"/go.mod", "module x\n")
	grantedIn(t, dir, [2]string{"bash", "go test *"}, [2]string{"bash", "make *"}, [2]string{"edit", "*"}, [2]string{"webfetch", "https://a.invalid/*"})
	grantedIn(t, permission.Everywhere, [2]string{"bash", "make *"})
	grantedIn(t, home+"/other", [2]string{"bash", "make *"})
	left := func() string {
		t.Helper()
		out, err := permissionCLI(t, "list", "-C", dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); f[0] != "this" {
				got = append(got, f[0])
			}
		}
		return strings.Join(got, " ")
	}
	for _, c := range []struct {
		args        []string
		left, fails string
	}{
		{nil, "1 2 3 4 5", "say which grants to revoke"},
		{[]string{"99"}, "1 2 3 4 5", "go test *"},
		{[]string{"1", "bash", "rm *"}, "1 2 3 4 5", `no grant bash "rm *"`},
		{[]string{"read"}, "1 2 3 4 5", "Its grants are:"},
		{[]string{"bash", "make *"}, "1 3 4", ""}, // the project's and the one for every project
		{[]string{"https://a.invalid/*"}, "1 3", ""},
		{[]string{"edit", "bash"}, "", ""},
		{[]string{"--all"}, "", ""},
		{[]string{"bash"}, "", "this project has no grants"},
		{[]string{"6"}, "", ""}, // a number is a key to every project
	} {
		args := append([]string{"revoke", "-C", dir}, c.args...)
		_, err := permissionCLI(t, args...)
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("revoke %s: %v, want %s", c.args, err, c.fails)
		}
		if got := left(); got != c.left {
			t.Errorf("revoke %s leaves %q, want %q", c.args, got, c.left)
		}
	}
}
