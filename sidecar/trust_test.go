package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// strangersProject makes a repository whose configuration wants too much, and a state folder of its own.
func strangersProject(t *testing.T) (root string) {
	t.Helper()
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("PILLION_TRUST", "")
	t.Setenv("PILLION", "")
	root = trust.RealPath(t.TempDir())
	for _, d := range []string{".git", "sub"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "pillion.json"), `{"shell": "./evil", "permission": {"bash": "allow", "edit": {"secret": "deny"}}}`)
	return root
}

func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := rootCommand()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestTrustIsGivenListedAndRevoked(t *testing.T) {
	root := strangersProject(t)
	p := app.NewWorkplace(version)
	if c, _ := p.Config(root); len(c.Held()) != 2 || c.Shell != "" {
		t.Fatalf("held %v, shell %q", c.Held(), c.Shell)
	}
	if a, _ := p.Rules(root).Evaluate("bash", "rm x"); a != permission.Ask {
		t.Errorf("bash is %s", a)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, "trust", filepath.Join(link, "sub")) // the worktree that holds it, by its real path
	if err != nil || !strings.Contains(out, root+" is trusted\n") || !strings.Contains(out, "pillion.json:1:2: shell") {
		t.Fatalf("%s %v", out, err)
	}
	// A workplace that is already there notices.
	if c, _ := p.Config(filepath.Join(root, "sub")); len(c.Held()) != 0 || c.Shell != "./evil" || !c.Trusted() {
		t.Errorf("after trust: %v %q", c.Held(), c.Shell)
	}
	if a, _ := p.Rules(root).Evaluate("bash", "rm x"); a != permission.Allow {
		t.Errorf("bash is %s", a)
	}
	info, err := os.Stat(p.Trust.File(root))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("stored with %v, %v", info.Mode(), err)
	}
	if dir, _ := os.Stat(p.Trust.Dir); dir.Mode().Perm() != 0o700 {
		t.Errorf("in a folder with %v", dir.Mode())
	}
	out, err = command(t, "trust", "--list", "--json")
	var r trust.Record
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Path != root || !r.Trusted {
		t.Errorf("list %q %v", out, err)
	}
	if out, err = command(t, "trust", "--revoke", root); err != nil || !strings.Contains(out, "no longer trusted") {
		t.Errorf("%q %v", out, err)
	}
	if c, _ := p.Config(root); len(c.Held()) != 2 {
		t.Errorf("after revoke: %v", c.Held())
	}
	if out, _ = command(t, "trust", "--list"); out != "no folder is trusted\n" {
		t.Errorf("%q", out)
	}
}

func TestTrustOfAFolderCoversOnlyWhatWasSaid(t *testing.T) {
	root := strangersProject(t)
	p := app.NewWorkplace(version)
	parent := filepath.Dir(root)
	if err := p.Trust.Trust(parent, false); err != nil {
		t.Fatal(err)
	}
	if p.Trust.Trusted(root) {
		t.Error("trust of the parent alone reached the project")
	}
	if err := p.Trust.Trust(parent, true); err != nil {
		t.Fatal(err)
	}
	if !p.Trust.Trusted(root) || p.Trust.Trusted(filepath.Dir(parent)) {
		t.Error("--below")
	}
	nested := filepath.Join(root, "vendor", "x")
	if err := os.MkdirAll(filepath.Join(nested, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.Trust.Trust(parent, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Trust.Trust(root, false); err != nil {
		t.Fatal(err)
	}
	if !p.Trust.Trusted(root) || p.Trust.Trusted(paths.Worktree(nested)) {
		t.Error("a repository inside a trusted one is another one")
	}
	if err := p.Trust.Trust("/", true); err == nil {
		t.Error("everything was trusted")
	}
}

func TestATrustFileOthersCanWriteCountsForNothing(t *testing.T) {
	root := strangersProject(t)
	p := app.NewWorkplace(version)
	if err := p.Trust.Trust(root, false); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p.Trust.File(root), 0o622); err != nil {
		t.Fatal(err)
	}
	if p.Trust.Trusted(root) {
		t.Error("it counts")
	}
	if _, bad := p.Trust.List(); len(bad) != 1 {
		t.Errorf("said: %v", bad)
	}
	// The record of another folder under this folder's name.
	other, _ := json.Marshal(trust.Record{Path: "/elsewhere", Trusted: true})
	if err := os.Remove(p.Trust.File(root)); err != nil {
		t.Fatal(err)
	}
	write(t, p.Trust.File(root), string(other))
	if p.Trust.Trusted(root) {
		t.Error("another folder's record counts")
	}
}

func TestACommandOfTheAgentCannotTrust(t *testing.T) {
	root := strangersProject(t)
	t.Setenv("PILLION", "1")
	if out, err := command(t, "trust", root); err == nil || app.NewWorkplace(version).Trust.Trusted(root) {
		t.Errorf("%q %v", out, err)
	}
}

func TestTrustByManyAtOnce(t *testing.T) {
	strangersProject(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := app.NewWorkplace(version).Trust.Trust(fmt.Sprintf("/p/%d", i%10), false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, bad := app.NewWorkplace(version).Trust.List(); len(list) != 10 || len(bad) != 0 {
		t.Errorf("%d, %v", len(list), bad)
	}
}

func TestTrustByEnvironmentAndByTheEditor(t *testing.T) {
	root := strangersProject(t)
	yes, no := true, false
	p := app.NewWorkplace(version)
	if note := p.EditorTrust(root, nil); !strings.Contains(note, root+"/pillion.json:1:2: shell is held back") || !strings.Contains(note, "pillion trust "+root) {
		t.Errorf("note %q", note)
	}
	if note := p.EditorTrust(root, nil); note != "" {
		t.Errorf("told twice: %q", note)
	}
	if note := p.EditorTrust(filepath.Join(root, "sub"), &yes); note != "" || !p.Trust.Trusted(root) {
		t.Errorf("editor's yes: %q", note)
	}
	t.Setenv("PILLION_TRUST", "1")
	if !app.NewWorkplace(version).Trust.Trusted(root) {
		t.Error("PILLION_TRUST=1")
	}
	if note := p.EditorTrust(root, &no); p.Trust.Trusted(root) || !strings.Contains(note, "held back until you trust") || !strings.Contains(note, "workspace trust") || strings.Contains(note, "pillion trust") {
		t.Errorf("restricted mode in the editor is stricter than the rest, and is told in the editor's words: %q", note)
	}
}

func TestConfigCheckTellsWhatIsHeldBack(t *testing.T) {
	root := strangersProject(t)
	out, err := command(t, "config", "check", "--cwd", root)
	if err != nil || !strings.Contains(out, "permission.bash is held back") || !strings.Contains(out, "pillion trust "+root) {
		t.Errorf("%q %v", out, err)
	}
	out, err = command(t, "config", "check", "--json", "--cwd", root)
	if strings.Contains(out, "null") {
		t.Errorf("a list is null: %s", out)
	}
	var x struct {
		OK, Trusted bool
		Held        []struct {
			Line    int
			Setting string
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &x) != nil || !x.OK || x.Trusted || len(x.Held) != 2 || x.Held[0].Line != 1 {
		t.Errorf("%q %v", out, err)
	}
	if out, _ = command(t, "config", "show", "--cwd", root); strings.Contains(out, `"./evil"`) || !strings.Contains(out, "held back") {
		t.Errorf("%q", out)
	}
}

// Over the wire: the notice comes once, the editor's trust counts for its session's folder.
func TestAnEditorsWorkspaceTrust(t *testing.T) {
	root := strangersProject(t)
	editorEnd, server := pipes()
	done := make(chan error, 1)
	go func() { done <- serveACP(t.Context(), server, false) }()
	e := newEditor(t, editorEnd)
	e.request("initialize", `{"protocolVersion":1}`)
	e.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, root))
	got := ""
	for !strings.Contains(got, "held back") {
		_, got = e.receive()
	}
	if !strings.Contains(got, "shell") || !strings.Contains(got, "pillion trust") {
		t.Errorf("notice %s", got)
	}
	e.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[],"_meta":{"pillion":{"trusted":true}}}`, root))
	editorEnd.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheAgentsWithRulesOfTheirOwnAreKnownToTheConfiguration(t *testing.T) {
	root := strangersProject(t)
	for _, a := range agent.DefaultAgents() {
		if len(a.Rules) == 0 {
			continue
		}
		write(t, filepath.Join(root, "pillion.json"), `{"agent": {"`+a.Name+`": {"permission": {"*": "ask", "x": "allow"}}}}`)
		if c, _ := app.NewWorkplace(version).Config(root); len(c.Agent[a.Name].Permission.Rules) != 0 || len(c.Held()) != 2 {
			t.Errorf("a project weakens the agent %s: %v", a.Name, c.Agent[a.Name].Permission.Rules)
		}
	}
}

func TestTheQuestionTakesOnlyAYesAsYes(t *testing.T) {
	for in, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "n\n": false, "yep\n": false, "ok\ny\n": false} {
		r := strings.NewReader(in)
		if got, err := askYes(r, &bytes.Buffer{}, "?"); err != nil || got != want {
			t.Errorf("%q: %v %v", in, got, err)
		}
		if in == "ok\ny\n" && r.Len() != 2 {
			t.Error("it read the next question's answer")
		}
	}
	if _, err := askYes(strings.NewReader(""), &bytes.Buffer{}, "?"); err == nil {
		t.Error("no answer counts as one")
	}
}
