package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// reviewed is a Go module in a repository with an uncommitted mistake: line 4 of a.go does not compile, b.go breaks with it.
func reviewed(t *testing.T) (home, cwd string) {
	t.Helper()
	if _, err := exec.LookPath("gopls"); err != nil {
		t.Skip("gopls is not installed")
	}
	// Another home would have gopls read the standard library again, for each run of it.
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, strings.TrimSpace(string(out)))
	}
	t.Setenv("GOPLSCACHE", filepath.Join(filepath.Dir(os.Getenv("GOCACHE")), "gopls"))
	home = atHome(t)
	cwd = filepath.Join(home, "project")
	put(t, filepath.Join(cwd, "go.mod"), "module a\n\ngo 1.21\n")
	put(t, filepath.Join(cwd, "a.go"), "package a\n\nfunc F() int {\n\treturn 1\n}\n")
	put(t, filepath.Join(cwd, "b.go"), "package a\n\nvar x int = F()\n")
	gitIn(t, cwd, "init", "-q", "-b", "main")
	gitIn(t, cwd, "add", ".")
	gitIn(t, cwd, "commit", "-qm", "a: add F, numbered by hand")
	put(t, filepath.Join(cwd, "a.go"), "package a\n\nfunc F() string {\n\treturn 1 + 0\n}\n")
	return home, cwd
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// An editor that shows findings gets those of the language servers and those of the model, each at its line; what the model makes up
// of files that do not exist is left out.
func TestTheFindingsOfAReviewReachTheEditor(t *testing.T) {
	_, cwd := reviewed(t)
	srv := wiretest.New(t, wiretest.Step{Text: "- a.go:3-4: error: the type has changed\n  and its callers have not\n- z.go:1: error: made up\n\nThe rest is good."})
	p := acpProcess(t, "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+srv.OpenAIURL())
	p.request("initialize", `{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"methods":["_pillion/review/updated"]}}}}`)
	s, _ := p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[],"_meta":{"pillion":{"model":"openai/gpt-5"}}}`, cwd))["sessionId"].(string)
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"/review"}]}}`, s))
	// gopls reads the project again, so its findings may come last, or not.
	got := p.expectAll(`{"method":"_pillion/review/updated","params":{"by":"servers","findings":"*"}}`,
		fmt.Sprintf(`{"method":"_pillion/review/updated","params":{"by":"model","findings":[{"path":%q,"line":3,"endLine":4,"severity":"error","source":"model","message":"the type has changed\n  and its callers have not"}]}}`, filepath.Join(cwd, "a.go")),
		`{"id":"turn","result":{"stopReason":"end_turn"}}`)[0]
	b, _ := json.Marshal(got)
	for _, want := range []string{fmt.Sprintf(`"path":%q`, filepath.Join(cwd, "a.go")), fmt.Sprintf(`"path":%q`, filepath.Join(cwd, "b.go")), `"source":"gopls"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	// a.go's is on a changed line, so it comes first
	if strings.Index(string(b), "a.go") > strings.Index(string(b), "b.go") {
		t.Errorf("the finding on a changed line does not come first: %s", b)
	}
}

// A commit message is made from what is staged and from the messages there are, and of nothing outside the session's project.
func TestACommitMessageIsMadeOfWhatIsStaged(t *testing.T) {
	home, cwd := reviewed(t)
	put(t, filepath.Join(home, "other", "x"), "")
	srv := wiretest.New(t, wiretest.Step{Text: "```\na: make F a string\n```"})
	p := acpProcess(t, "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+srv.OpenAIURL())
	p.request("initialize", `{"protocolVersion":1}`)
	s, _ := p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[],"_meta":{"pillion":{"model":"openai/gpt-5"}}}`, cwd))["sessionId"].(string)
	refused := func(id, params, why string) {
		t.Helper()
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"_pillion/commit/message","params":%s}`, id, params))
		if b, _ := json.Marshal(p.expect(fmt.Sprintf(`{"id":%q,"error":"*"}`, id))); !strings.Contains(string(b), why) {
			t.Errorf("%s: %s", params, b)
		}
	}
	refused("1", fmt.Sprintf(`{"sessionId":%q}`, s), "nothing is staged")
	refused("2", fmt.Sprintf(`{"sessionId":%q,"cwd":%q}`, s, filepath.Join(home, "other")), "not in the session's project")
	gitIn(t, cwd, "add", "a.go")
	put(t, filepath.Join(cwd, "b.go"), "package a\n\n// not staged\n")
	if m := p.request("_pillion/commit/message", fmt.Sprintf(`{"sessionId":%q,"cwd":%q}`, s, cwd))["message"]; m != "a: make F a string" {
		t.Errorf("message %q", m)
	}
	heard := string(srv.Requests()[0].Body)
	for want, is := range map[string]bool{"a: add F, numbered by hand": true, "func F() string": true, "a.go": true, "not staged": false} {
		if strings.Contains(heard, want) != is {
			t.Errorf("the model heard %q: %v, want %v", want, !is, is)
		}
	}
}

// For scripts: findings of the language servers first, then the model's, as JSON and SARIF, with exit codes that tell what was
// found. A model that tries to change a file cannot.
func TestReviewOnTheCommandLine(t *testing.T) {
	_, cwd := reviewed(t)
	run := func(url string, args ...string) (out string, code int) {
		t.Helper()
		c := exec.Command(os.Args[0], append([]string{"review", "-C", cwd}, args...)...)
		c.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+url)
		var errs strings.Builder
		c.Stderr = &errs
		b, err := c.Output()
		if err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		t.Logf("standard error: %s", errs.String()) // a loaded machine's server says there that it is busy
		return string(b), c.ProcessState.ExitCode()
	}
	srv := wiretest.New(t,
		wiretest.Step{Calls: []wiretest.Call{{Name: "write", Input: json.RawMessage(fmt.Sprintf(`{"filePath":%q,"content":"x"}`, filepath.Join(cwd, "new.txt")))}}},
		wiretest.Step{Text: "- b.go:3: warning: it is not used"})
	out, code := run(srv.OpenAIURL(), "--json", "-m", "openai/gpt-5")
	var got struct {
		Model    string
		Findings []struct {
			Path, Source, Severity string
			Line                   int
			Changed                bool
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n := len(got.Findings)
	if code != exitError || n != 3 || !got.Findings[0].Changed || got.Findings[0].Source != "gopls" || got.Findings[1].Changed || got.Findings[2].Source != "model" || got.Findings[2].Line != 3 {
		t.Errorf("exit %d: %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(cwd, "new.txt")); err == nil {
		t.Error("a review has written a file")
	}
	if heard := string(srv.Requests()[0].Body); !strings.Contains(heard, "+func F() string") {
		t.Errorf("the model has not got the change: %.3000s", heard)
	}
	out, code = run("http://127.0.0.1:1/v1", "--no-model")
	if code != exitError || !strings.Contains(out, "a.go:4: error:") || !strings.Contains(out, "[gopls") || strings.Index(out, "a.go") > strings.Index(out, "b.go") {
		t.Errorf("exit %d: %s", code, out)
	}
	out, code = run("http://127.0.0.1:1/v1", "--no-model", "--format", "sarif")
	var sarif struct {
		Runs []struct{ Results []struct{ Level string } }
	}
	if err := json.Unmarshal([]byte(out), &sarif); err != nil || code != exitError || len(sarif.Runs) != 1 || len(sarif.Runs[0].Results) != 2 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	gitIn(t, cwd, "checkout", "-q", "a.go")
	if out, code = run("http://127.0.0.1:1/v1"); code != 0 || !strings.Contains(out, "nothing has changed") {
		t.Errorf("exit %d: %s", code, out)
	}
}
