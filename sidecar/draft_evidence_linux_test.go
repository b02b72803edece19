package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/tools/change"
)

// evidenceIn finds the evidence of the proposal among the events that a run printed.
func evidenceIn(t *testing.T, out string) *change.Evidence {
	t.Helper()
	var e *change.Evidence
	for line := range strings.Lines(out) {
		var x struct {
			Type string
			Data struct {
				Set struct{ Evidence *change.Evidence }
			}
		}
		if json.Unmarshal([]byte(line), &x) == nil && x.Type == "change" && x.Data.Set.Evidence != nil {
			e = x.Data.Set.Evidence
		}
	}
	if e == nil {
		t.Fatalf("no proposal has evidence:\n%s", out)
	}
	return e
}

// goModule writes a module: a function with uses in four files, one with none but its test, and a test that always failed.
func goModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
	}
	put("go.mod", "module example.com/p\n\ngo 1.22\n")
	put("cfg/cfg.go", "package cfg\n\n// Load reads.\nfunc Load(name string) (int, error) { return len(name), nil }\n\n// Size counts.\nfunc Size() int { return 3 }\n")
	put("cfg/cfg_test.go", "package cfg\n\nimport \"testing\"\n\nfunc TestLoad(t *testing.T) {\n\tif n, _ := Load(\"abc\"); n != 3 {\n\t\tt.Fatal(n)\n\t}\n}\n\n"+
		"func TestSize(t *testing.T) {\n\tif Size() < 3 {\n\t\tt.Fatal(\"size\")\n\t}\n}\n\nfunc TestBroken(t *testing.T) { t.Fatal(\"was always broken\", Size()) }\n")
	for i := range 4 {
		put(fmt.Sprintf("app/a%d.go", i), fmt.Sprintf("package app\n\nimport \"example.com/p/cfg\"\n\n// Run%d runs.\nfunc Run%d() int {\n\tn, _ := cfg.Load(\"x\")\n\treturn n\n}\n", i, i))
	}
	return dir
}

// A proposal says what of it is mechanical, what uses what it changes, how each affected test ended and how it ended before,
// and whether the agent's words rest on a run. All of it is found out by the real programs.
func TestEvidenceOfAProposal(t *testing.T) {
	for _, program := range []string{"go", "gopls"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed; run make setup-go")
		}
	}
	dir := goModule(t)
	out, srv := turnInDraft(t, dir, []string{"--approve", "all", "--json", "--trust"},
		callStep("bash", `{"command":"sed -i 's/\\bLoad\\b/Fetch/' */*.go && sed -i 's/return 3/return 4/' cfg/cfg.go"}`),
		wiretest.Step{Text: "All tests pass. The linter is clean."})
	e := evidenceIn(t, out)
	if len(e.Groups) != 1 || e.Groups[0].Title != "verified rename Load → Fetch, 6 places" || len(e.Groups[0].Hunks) != 6 {
		t.Errorf("groups: %+v", e.Groups)
	}
	said := ""
	for _, l := range e.Lines(func(path string, line int) string { return fmt.Sprintf("%s:%d", path, line) }) {
		said += l.Text + "\n"
	}
	for _, want := range []string{
		"public function Load is removed or renamed: 5 uses in 5 files, 5 of them in this proposal; other projects may use it",
		"public function Size changed inside: 2 uses in 1 file, 0 of them in this proposal; 2 outside may be affected",
		"1 of 3 tests failed as before the change", "failed: TestBroken (example.com/p/cfg), failed before too",
		"the agent says “All tests pass.”, tests: NOT SO", "the agent says “The linter is clean.”, lint: no run of that is known",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	// What failed before does not go back to the agent.
	if n := len(srv.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// With review preview a change that is certain to introduce errors goes back to the model once before anybody is asked; the
// same change again is the model's will, and its words are beside the question.
func TestAChangeWithErrorsGoesBackToTheModelOnce(t *testing.T) {
	if _, err := exec.LookPath("gopls"); err != nil {
		t.Skip("gopls is not installed; run make setup-go")
	}
	bad := callStep("write", `{"filePath":"b.go","content":"package x\n\nfunc B() int { return A(2) }\n"}`)
	insisting := bad
	insisting.Text = "A gets its parameter in the next step."
	good := callStep("write", `{"filePath":"b.go","content":"package x\n\nfunc B() int { return A() }\n"}`)
	for name, c := range map[string]struct {
		second  wiretest.Step
		want    string // of b.go
		insists string
	}{"mended": {good, "A()", ""}, "insisted": {insisting, "A(2)", "A gets its parameter in the next step."}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module x\n\ngo 1.22\n")
			write(t, filepath.Join(dir, "a.go"), "package x\n\nfunc A() int { return 1 }\n")
			// A verdict that is still pending sends nothing back, so the model asks for the problems until the server has loaded the module.
			const ready, sentBack = "No problems.", "the user was not asked yet"
			first, second, done := bad, c.second, wiretest.Step{Text: "Done.", When: sentBack}
			first.When, second.When = ready, sentBack
			steps := []wiretest.Step{first, second, done}
			for range 40 {
				steps = append(steps, callStep("lsp", `{"operation":"diagnostics","filePath":"a.go"}`))
			}
			out, srv := turnInDraft(t, dir, []string{"--review", "preview", "--approve", "all", "--json", "--trust"}, steps...)
			told := ""
			for _, r := range srv.Requests() {
				for _, x := range r.Results() {
					if strings.Contains(x.Text, sentBack) {
						told = x.Text
					}
				}
			}
			if !strings.Contains(told, "b.go:3:") {
				t.Errorf("the model was told %q", told)
			}
			if got := read(t, filepath.Join(dir, "b.go")); !strings.Contains(got, c.want) {
				t.Errorf("%q", got)
			}
			if e := evidenceIn(t, out); e.Attempts != 1 || e.Insists != c.insists {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A generated file that its generator makes again just so is folded; one that was edited by hand afterwards is not.
func TestGeneratedFilesAreMadeAgain(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	for name, c := range map[string]struct {
		after string
		want  int
	}{"as generated": {"true", 1}, "edited": {`echo '// by hand' >> list.go`, 0}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module x\n\ngo 1.22\n")
			write(t, filepath.Join(dir, "names.txt"), "a\n")
			write(t, filepath.Join(dir, "x.go"), "package x\n\n//go:generate sh gen.sh\n")
			write(t, filepath.Join(dir, "gen.sh"), "{ echo '// Code generated by gen.sh. DO NOT EDIT.'; echo; echo 'package x'; echo; sed 's/.*/const name_& = 1/' names.txt; } > list.go\n")
			out, _ := turnInDraft(t, dir, []string{"--approve", "all", "--json", "--trust"},
				callStep("bash", `{"command":"echo b >> names.txt && go generate ./... && %s"}`, c.after), wiretest.Step{Text: "Done."})
			e := evidenceIn(t, out)
			if len(e.Groups) != c.want {
				t.Fatalf("groups: %+v", e.Groups)
			}
			if c.want == 1 && (e.Groups[0].Title != "verified generated: 1 file as `go generate .` makes it" || !e.Groups[0].Verified) {
				t.Errorf("%+v", e.Groups[0])
			}
		})
	}
}

// A script that makes calls in one draft gets the evidence with the proposal, as an agent's turn does.
func TestEvidenceOfAScriptsDraft(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	dir := goModule(t)
	answers := inDraft(t, dir, "all", draftEnv(t), "sed -i 's/return 3/return 4/' cfg/cfg.go")
	last := answers[len(answers)-1]
	if len(last.Changes) != 1 || last.Changes[0].Evidence == nil {
		t.Fatalf("%+v", last)
	}
	e := last.Changes[0].Evidence
	if len(e.Checks) != 1 || e.Checks[0].Count(change.EvidencePassed) != 1 || e.Checks[0].Count(change.EvidenceFailed) != 1 || len(e.Checks[0].New()) != 0 {
		t.Errorf("%+v", e.Checks)
	}
	// Without servers the uses are not counted, and it says so.
	if len(e.Uses) != 1 || e.Uses[0].Unknown == "" {
		t.Errorf("%+v", e.Uses)
	}
}

// A command of the person's own goes back to the agent where the change broke it, and not where it failed before; the proposal says which.
func TestWhatACommandSaidBefore(t *testing.T) {
	for name, c := range map[string]struct {
		check    string // of the project
		requests int
		before   change.EvidenceStatus
		attempts int
	}{
		"as before":  {"exit 3", 2, change.EvidenceFailed, 0},
		"broken now": {"! grep -q two a.txt", 3, change.EvidencePassed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "a.txt"), "one\n")
			write(t, filepath.Join(dir, "check.sh"), c.check+"\n")
			write(t, filepath.Join(dir, "pillion.jsonc"), `{"verify": ["sh check.sh"]}`)
			out, srv := turnInDraft(t, dir, []string{"--approve", "all", "--json", "--trust"},
				callStep("bash", `{"command":"echo two > a.txt"}`), wiretest.Step{Text: "Done."}, wiretest.Step{Text: "It has to be so."})
			if n := len(srv.Requests()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			e := evidenceIn(t, out)
			if e.Attempts != c.attempts || len(e.Checks) != 1 || e.Checks[0].Status != change.EvidenceFailed || e.Checks[0].Before != c.before {
				t.Fatalf("%+v", e)
			}
			if said := strings.Contains(e.Checks[0].String(), "it failed before the change too"); said != (c.before == change.EvidenceFailed) {
				t.Errorf("%s", &e.Checks[0])
			}
		})
	}
}

// A language server that is not ready keeps no test waiting: the failure of one is with the model before the verdict would have been given up
// (30 s).
func TestTestsDoNotWaitForALanguageServer(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.slow"), "one\n")
	write(t, filepath.Join(dir, "pillion.jsonc"), `{"verify": ["! grep -q two a.slow"], "lsp": {"slow": {"command": ["sh", "-c", "cat > /dev/null"], "extensions": [".slow"]}}}`)
	srv := wiretest.New(t)
	srv.Add(callStep("bash", `{"command":"echo two > a.slow"}`), wiretest.Step{Text: "Done."}, wiretest.Step{Text: "Wait", Hang: true})
	cmd := exec.Command(os.Args[0], "run", "--model", "anthropic/claude-sonnet-5-5", "--review", "draft", "--approve", "all", "--trust", "go")
	cmd.Env, cmd.Dir = append(draftEnv(t), "NO_PROXY=*", "ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL="+srv.AnthropicURL()), dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	start, cancel := context.WithTimeout(t.Context(), patience) // how long it takes to start is not the question
	defer cancel()
	_, _ = srv.Await(start, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	third, err := srv.Await(ctx, 3)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || !strings.Contains(third.LastText(), "FAILED: ! grep") {
		t.Errorf("%v: the model was told %q", err, third.LastText())
	}
}

// What nobody allowed to run is asked again when the draft is landed; what has run on these texts does not run again.
func TestChecksOfADraftThatIsLandedLater(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string // of the turn
		shown string // of the draft, before it is landed
		later string // the command of the setting at the landing
		want  string // the command whose result is in the proposal
	}{
		"refused": {"ask", "# Not run: echo first (it was not approved).", "echo first", "echo first"},
		"denied":  {"deny", "# Not run: echo first (a rule denies it).", "echo first", "echo first"},
		"ran":     {"allow", "# Passed: echo first", "echo second", "echo first"},
	} {
		t.Run(name, func(t *testing.T) {
			env := draftEnv(t)
			dir, conf := t.TempDir(), ""
			for _, e := range env {
				if v, ok := strings.CutPrefix(e, "XDG_CONFIG_HOME="); ok {
					conf = filepath.Join(v, "pillion", "pillion.jsonc")
				}
			}
			settings(t, conf, `{"verify": ["echo first"], "permission": {"verify": "`+c.rule+`"}}`)
			write(t, filepath.Join(dir, "a.txt"), "one\n")
			inDraft(t, dir, "none", env, "echo two > a.txt")
			rows := draftsOf(t, dir, env)
			if len(rows) != 1 {
				t.Fatalf("%+v", rows)
			}
			if said := pillionIn(dir, env, "drafts", "show", rows[0].ID); !strings.Contains(said, c.shown) {
				t.Errorf("%s", said)
			}
			settings(t, conf, `{"verify": ["`+c.later+`"]}`)
			cmd := exec.Command(os.Args[0], "drafts", "land", rows[0].ID, "--approve", "all", "--no-lsp", "--json")
			cmd.Env, cmd.Dir = env, dir
			out, err := cmd.Output()
			var x toolAnswer
			if err != nil || json.Unmarshal(out, &x) != nil || len(x.Changes) != 1 || x.Changes[0].Evidence == nil {
				t.Fatalf("%v %s", err, out)
			}
			if e := x.Changes[0].Evidence; len(e.Checks) != 1 || e.Checks[0].Command != c.want || e.Checks[0].Status != change.EvidencePassed || e.Checks[0].Stale {
				t.Errorf("%+v", e.Checks)
			}
		})
	}
}

// An agent that changes nothing after it was told is not told again: its words are the reason, and the tests are not run twice
// on the same texts.
func TestAnAgentThatInsistsIsAskedAboutOnce(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	dir := goModule(t)
	out, srv := turnInDraft(t, dir, []string{"--approve", "all", "--json"},
		callStep("bash", `{"command":"sed -i 's/return 3/return 2/' cfg/cfg.go"}`), wiretest.Step{Text: "Done."}, wiretest.Step{Text: "Two is what you asked for."})
	if n := len(srv.Requests()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	e := evidenceIn(t, out)
	if e.Attempts != 1 || e.Insists != "Two is what you asked for." || len(e.Checks) != 1 || e.Checks[0].Stale || len(e.Checks[0].New()) != 1 || e.Checks[0].New()[0].Name != "TestSize" {
		t.Errorf("%+v", e)
	}
}
