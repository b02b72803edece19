package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// script is a person who answers from a list.
type script struct {
	keys  string
	lines []string
}

func (s *script) Discard() {}

func (s *script) Key(ctx context.Context, keys string, _ time.Duration, ready func(bool)) (byte, error) {
	ready(false)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for s.keys != "" {
		k := s.keys[0]
		s.keys = s.keys[1:]
		if strings.IndexByte(keys, k) >= 0 {
			return k, nil
		}
	}
	return 0, errors.New("the script ran out of keys")
}

func (s *script) Line(context.Context) (string, error) {
	l := s.lines[0]
	s.lines = s.lines[1:]
	return l, nil
}
func (s *script) Suspend(f func() error) error { return f() }

func twoHunks() *change.Set {
	return &change.Set{ID: "c1", Files: []change.File{{Path: "/p/a.go", Kind: change.Edit, Old: "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n", New: "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\n",
		Hunks: []change.Hunk{
			{ID: "h1", OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 1, OldText: "one\n", NewText: "ONE\n"},
			{ID: "h2", OldStart: 9, OldLines: 1, NewStart: 9, NewLines: 1, OldText: "nine\n", NewText: "NINE\n"},
		}}},
		Verdict: &change.Verdict{Certainty: change.Fresh, Fixed: []change.Problem{{Path: "/p/a.go", Line: 1, Column: 2, Severity: "error", Message: "undefined: one"}, {Path: "/p/a.go", Line: 9, Column: 2, Severity: "error", Message: "x"}}}}
}

func ask(t *testing.T, keys string, lines ...string) (permission.Reply, string, error) {
	t.Helper()
	var out bytes.Buffer
	term := New(Options{Out: &out, Cwd: "/p", Approve: Ask, Keys: &script{keys: keys, lines: lines}})
	r, err := term.AskPermission(context.Background(), permission.Request{CallID: "call", Permission: "edit", Patterns: []string{"a.go"}, Always: []string{"*"}, Change: twoHunks()})
	return r, out.String(), err
}

func verdicts(r permission.Reply) string {
	d := r.Decisions
	if d == nil {
		d = new(change.Decisions)
	}
	return string(d.Hunks["h1"].Kind) + " " + string(d.Hunks["h2"].Kind)
}

func TestEachKeyDecidesItsHunk(t *testing.T) {
	for _, c := range []struct {
		name, keys, want string
		kind             permission.ReplyKind
	}{
		{"yes then no", "yn", "accept reject", permission.Once},
		{"rest of this change", "ay", "accept accept", permission.Once},
		{"not the rest after all", "anny", "reject accept", permission.Once},
		{"always", "Ay", "accept accept", permission.Always},
		{"unknown keys are passed over", "xz\ryn", "accept reject", permission.Once},
		{"help asks again", "?n?y", "reject accept", permission.Once},
		{"stop after one keeps the one", "yq", "accept reject", permission.Once},
		{"stop at once", "q", " ", permission.Reject},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := ask(t, c.keys)
			if err != nil || r.Kind != c.kind || verdicts(r) != c.want {
				t.Errorf("got %v %q %v, want %v %q", r.Kind, verdicts(r), err, c.kind, c.want)
			}
		})
	}
}

// TestQuittingIsStopping: the turn that a q ends is told, and counted, as stopped, not as done.
func TestQuittingIsStopping(t *testing.T) {
	for keys, want := range map[string]agent.StopReason{"q": agent.TurnCancelled, "yq": agent.TurnCancelled, "nn": agent.TurnEnd} {
		var out bytes.Buffer
		term := New(Options{Out: &out, Approve: Ask, Keys: &script{keys: keys}})
		if _, err := term.AskPermission(context.Background(), permission.Request{Permission: "edit", Change: twoHunks()}); err != nil {
			t.Fatal(err)
		}
		term.Event(agent.Event{Type: agent.EventNotice, Value: agent.NoticeData{Level: "info", Text: "Say how to go on."}})
		term.Event(agent.Event{Type: agent.EventTurn, Value: agent.TurnData{Stop: agent.TurnEnd}})
		s := term.Summary()
		term.Result(s)
		if s.Stop != want || strings.Contains(out.String(), "stopped") != (want == agent.TurnCancelled) || strings.Contains(out.String(), "how to go on") == (want == agent.TurnCancelled) {
			t.Errorf("%s: %s\n%s", keys, s.Stop, out.String())
		}
		term.Close()
	}
}

func TestCommentGoesWithItsHunk(t *testing.T) {
	r, _, err := ask(t, "cny", "use the constant")
	if err != nil {
		t.Fatal(err)
	}
	d := r.Decisions
	if h := d.Hunks["h1"]; h.Kind != change.Reject || h.Comment != "use the constant" {
		t.Errorf("%+v", h)
	}
}

func TestEditedTextIsTheDecision(t *testing.T) {
	var out bytes.Buffer
	term := New(Options{Out: &out, Approve: Ask, Keys: &script{keys: "ey"}, Editor: []string{"sh", "-c", `printf 'mine\n' > "$0"`}})
	r, err := term.AskPermission(context.Background(), permission.Request{Permission: "edit", Always: []string{"*"}, Change: twoHunks()})
	if err != nil {
		t.Fatal(err)
	}
	h := r.Decisions.Hunks["h1"]
	if h.Kind != change.Replace || h.NewText != "mine\n" {
		t.Errorf("%+v", h)
	}
}

func TestHeadSaysWhatTheChangeDoesToTheProblems(t *testing.T) {
	_, out, _ := ask(t, "yy")
	for _, want := range []string{"2 hunks · fixes 2 errors, introduces 0", "a.go:1:2 undefined: one", "@@ -1,1 +1,1 @@\n-one\n+ONE\n two\n", "-nine\n+NINE\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestNobodyToAskAppliesNothingButShowsTheDiff(t *testing.T) {
	for _, approve := range []Approve{Ask, None, All} {
		var out bytes.Buffer
		term := New(Options{Out: &out, Approve: approve})
		r, err := term.AskPermission(context.Background(), permission.Request{Permission: "edit", Change: twoHunks()})
		want := permission.Reject
		if approve == All {
			want = permission.Once
		}
		if err != nil || r.Kind != want || (want == permission.Reject) != (r.Message != "") {
			t.Errorf("%s: %+v %v", approve, r, err)
		}
		if !strings.Contains(out.String(), "+NINE") {
			t.Errorf("%s: no diff in %s", approve, out.String())
		}
	}
}

func TestOneFileIsNamedOnceSeveralEach(t *testing.T) {
	var out bytes.Buffer
	term := New(Options{Out: &out, Cwd: "/p"})
	set := twoHunks()
	term.page.set(set)
	if strings.Count(out.String(), "a.go\n") != 0 || !strings.HasPrefix(out.String(), "\na.go · 2 hunks") {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	set.Files = append(set.Files, change.File{Path: "/p/b.go", Kind: change.Edit})
	set.Title = "a.go"
	term.page.set(set)
	if !strings.Contains(out.String(), "\na.go\n") || !strings.Contains(out.String(), "\nb.go\n") {
		t.Errorf("%s", out.String())
	}
}

func TestALineOfAMinifiedFileDoesNotFillTheScreen(t *testing.T) {
	var out bytes.Buffer
	term := New(Options{Out: &out})
	long := strings.Repeat("é", 50_000)
	term.page.set(&change.Set{Files: []change.File{{Path: "a.js", Kind: change.Edit, Old: long, New: long + "x",
		Hunks: []change.Hunk{{ID: "1", OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 1, OldText: long, NewText: long + "x"}}}}})
	if out.Len() > 3*maxLine || !strings.Contains(out.String(), "… 98001 more bytes in this line") {
		t.Errorf("%d bytes: …%s", out.Len(), out.String()[max(0, out.Len()-200):])
	}
}

func TestACallsStatusIsSeenAfterHalfALine(t *testing.T) {
	term := New(Options{Out: &bytes.Buffer{}})
	term.Event(agent.Event{Type: agent.EventText, Value: agent.TextData{Text: "Now I run it."}})
	term.Event(agent.Event{Type: agent.EventTool, Value: agent.ToolData{CallID: "1", Tool: "bash", Status: agent.ToolRunning, Title: "make"}})
	if s := term.page.screen.(*lineScreen); s.midLine || s.doing.what != "bash make" {
		t.Errorf("%v %q", s.midLine, s.doing.what)
	}
}

// interrupted prints an event while the question is open.
type interrupted struct {
	script
	term  *Terminal
	event agent.Event
}

func (i *interrupted) Key(ctx context.Context, keys string, notice time.Duration, ready func(bool)) (byte, error) {
	i.term.Event(i.event)
	return i.script.Key(ctx, keys, notice, ready)
}

func TestAQuestionStaysOnTheScreen(t *testing.T) {
	for name, c := range map[string]struct {
		event agent.ToolData
		want  string
	}{
		"its own progress":  {agent.ToolData{CallID: "1", Tool: "edit", Status: agent.ToolRunning}, "Allow [y,n,q,?]? y\n"},
		"another call ends": {agent.ToolData{CallID: "2", Tool: "read", Title: "a.go", Status: agent.ToolCompleted}, "Allow\n✓ read a.go\nAllow [y,n,q,?]? y\n"},
	} {
		var out bytes.Buffer
		keys := &interrupted{script: script{keys: "y"}, event: agent.Event{Type: agent.EventTool, Value: c.event}}
		keys.term = New(Options{Out: &out, Approve: Ask, Keys: keys})
		if _, err := keys.term.AskPermission(context.Background(), permission.Request{CallID: "1", Permission: "bash", Title: "make"}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.String(), c.want) {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}

func TestAFileThatMovesIsAskedAboutAsSuch(t *testing.T) {
	var out bytes.Buffer
	term := New(Options{Out: &out, Approve: Ask, Keys: &script{keys: "yyy"}})
	set := &change.Set{Files: []change.File{
		{Path: "a", NewPath: "b", Kind: change.Rename, Old: "x\n", New: "x\n", Hunks: []change.Hunk{{ID: "1"}}},
		{Path: "c", Kind: change.Delete, Hunks: []change.Hunk{{ID: "2"}}},
		{Path: "d", Kind: change.Create, New: "y\n", Hunks: []change.Hunk{{ID: "3", NewStart: 1, NewLines: 1, NewText: "y\n"}}},
	}}
	if _, err := term.AskPermission(context.Background(), permission.Request{Permission: "edit", Change: set}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "@@ -0,0 +0,0 @@") {
		t.Errorf("%s", out.String())
	}
	for _, want := range []string{"move a → b\nMove this file [", "delete c\nDelete this file [", "+y\nCreate this file ["} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestARetryCountsDown(t *testing.T) {
	now := time.Unix(1000, 0)
	term := New(Options{Out: &bytes.Buffer{}, Now: func() time.Time { return now }})
	term.Event(agent.Event{Type: agent.EventNotice, Value: agent.NoticeData{Level: "warning", Text: "Trying again in 6s.", Until: now.Add(6 * time.Second)}})
	now = now.Add(1500 * time.Millisecond)
	doing := func() string {
		a := term.page.screen.(*lineScreen).doing
		return a.what + " " + a.clock(now)
	}
	if got := doing(); got != "waiting to try again 5s left" {
		t.Error(got)
	}
	term.Event(agent.Event{Type: agent.EventMessage})
	now = now.Add(time.Second)
	if got := doing(); got != "thinking 1s" {
		t.Error(got)
	}
}

func TestTheSummaryCountsOnlyWhatWasChecked(t *testing.T) {
	none := &change.Set{ID: "u", Files: []change.File{{Path: "b.txt", Kind: change.Edit}}, Verdict: &change.Verdict{Certainty: change.Unavailable}}
	for want, sets := range map[string][]*change.Set{
		"1 file changed, fixes 2 errors, introduces 0\n":                        {twoHunks()},
		"1 file changed, not checked by a language server\n":                    {none},
		"2 files changed, fixes 2 errors, introduces 0, 1 change not checked\n": {twoHunks(), none},
	} {
		var out bytes.Buffer
		term := New(Options{Out: &out, Cwd: "/p"})
		for _, set := range sets {
			early := *set
			early.Verdict = nil // it is applied before its problems are known, and told again then
			term.Event(agent.Event{Type: agent.EventChange, Value: agent.ChangeData{State: change.Applied, Full: &early}})
			term.Event(agent.Event{Type: agent.EventChange, Value: agent.ChangeData{State: change.Applied, Full: set}})
		}
		term.Result(term.Summary())
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
		if n := len(term.Summary().Changes); n != len(sets) {
			t.Errorf("%d changes for %d", n, len(sets))
		}
	}
}

// What the language servers do not know is said beside what they know: a failed test is no problem of theirs.
func TestTheSummarySaysWhoKnowsWhat(t *testing.T) {
	test := func(status, before change.EvidenceStatus) change.TestResult {
		return change.TestResult{Name: "T", Status: status, Before: before}
	}
	pass, fail, old, skip := test(change.EvidencePassed, ""), test(change.EvidenceFailed, change.EvidencePassed), test(change.EvidenceFailed, change.EvidenceFailed), test(change.EvidenceSkipped, "")
	check := func(status change.EvidenceStatus, tests ...change.TestResult) change.Check {
		return change.Check{Command: "make test", Status: status, Tests: tests}
	}
	for want, checks := range map[string][]change.Check{
		"":                       nil,
		"1 of 3 tests failed · ": {check(change.EvidenceFailed, pass, fail, pass, skip)},
		"1 of 1 test failed as before the change · ":              {check(change.EvidenceFailed, old)},
		"2 of 3 tests failed, 1 of them before the change too · ": {check(change.EvidenceFailed, old, fail), check(change.EvidencePassed, pass)},
		"1 test passed · ":    {check(change.EvidencePassed, pass, skip)},
		"make test failed · ": {check(change.EvidenceFailed)},
		"1 of 2 tests failed, 1 package failed as a whole · ": {check(change.EvidenceFailed, fail, pass, change.TestResult{Name: change.WholePackage, Status: change.EvidenceFailed})},
		"make test failed · 1 test passed · ":                 {check(change.EvidenceFailed, skip), check(change.EvidencePassed, pass)},
		"make test passed · ":                                 {check(change.EvidencePassed)},
		"make test not run · ":                                {check(change.EvidenceNotRun)},
		"1 test passed before the last change · ":             {{Command: "make test", Status: change.EvidencePassed, Tests: []change.TestResult{pass}, Stale: true}},
		"make test passed before the last change · ":          {{Command: "make test", Status: change.EvidencePassed, Stale: true}},
	} {
		var out bytes.Buffer
		term := New(Options{Out: &out, Cwd: "/p"})
		term.Event(agent.Event{Type: agent.EventChange, Value: agent.ChangeData{State: change.Applied, Full: twoHunks().WithEvidence(&change.Evidence{Checks: checks})}})
		s := term.Summary()
		s.LeftKnown = true
		term.Result(s)
		if want = "1 file changed, fixes 2 errors, introduces 0 · " + want + "language servers: no problems left\n"; !strings.HasSuffix(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

// What no server has checked is said beside what they have found: "no problems left" would cover it else.
func TestTheSummarySaysWhatWasNotChecked(t *testing.T) {
	problem := change.Problem{Path: "/p/a.go", Line: 1, Severity: change.SeverityError, Message: "m"}
	for want, left := range map[string][]change.Problem{
		"» language servers: no problems left in what they checked · not checked: 12 .py files, 1 .json file\n": nil,
		"» language servers: 1 problem left in what they checked · not checked: 12 .py files, 1 .json file\n":   {problem},
	} {
		var out bytes.Buffer
		term := New(Options{Out: &out, Cwd: "/p"})
		s := term.Summary()
		s.Left, s.LeftKnown, s.NotChecked = left, true, []string{"12 .py files", "1 .json file"}
		term.Result(s)
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

func TestACancelledTurnEndsItsQuestion(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	term := New(Options{Out: &bytes.Buffer{}, Approve: Ask, Keys: &script{keys: "y"}})
	if _, err := term.AskPermission(ctx, permission.Request{Change: twoHunks()}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestEscapeSequencesFromAModelAreShownNotObeyed(t *testing.T) {
	var out bytes.Buffer
	term := New(Options{Out: &out})
	for _, text := range []string{"a\x1b[2Jb", "c\r\nd", "e\u202ef", "\x9b31m"} {
		data, _ := json.Marshal(agent.TextData{Text: text})
		term.Event(agent.Event{Type: agent.EventText, Data: data})
	}
	if strings.ContainsAny(out.String(), "\x1b\r\u202e\u009b") {
		t.Errorf("%q", out.String())
	}
	if !strings.Contains(out.String(), "a␛[2Jb") || !strings.Contains(out.String(), "c\nd") {
		t.Errorf("%q", out.String())
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b]0;t\x07b\xff\u2066")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Clean(s) {
			if r != '\n' && r != '\t' && r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e {
				t.Fatalf("%q kept %U", s, r)
			}
		}
	})
}

func TestADiffStressesTheWordsThatDiffer(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"a word", "\treturn total\n", "\treturn totals\n", "\x1b[31m-\treturn \x1b[7mtotal\x1b[27m\x1b[0m\n\x1b[32m+\treturn \x1b[7mtotals\x1b[27m\x1b[0m\n"},
		{"another line", "one two\n", "three\n", "\x1b[31m-one two\x1b[0m\n\x1b[32m+three\x1b[0m\n"},
		{"lines of another number", "a b c d\n", "a b c e\na b c f\n", "\x1b[31m-a b c d\x1b[0m\n\x1b[32m+a b c e\x1b[0m\n\x1b[32m+a b c f\x1b[0m\n"},
		{"what would act on the terminal does not", "a b c \x1b[2J\n", "a b c d\n", "\x1b[31m-a b c \x1b[7m␛[2J\x1b[27m\x1b[0m\n\x1b[32m+a b c \x1b[7md\x1b[27m\x1b[0m\n"},
	} {
		lines := func(s string) int { return strings.Count(s, "\n") }
		f := &change.File{Path: "/p/a.go", Kind: change.Edit, Old: c.old, New: c.new}
		h := &change.Hunk{ID: "h1", OldStart: 1, OldLines: lines(c.old), NewStart: 1, NewLines: lines(c.new), OldText: c.old, NewText: c.new}
		for _, color := range []bool{true, false} {
			var out bytes.Buffer
			New(Options{Out: &out, Cwd: "/p", Color: color}).page.hunk(f, h)
			_, got, _ := strings.Cut(out.String(), "@@ -")
			_, got, _ = strings.Cut(got, "\n")
			if want := c.want; color && got != want {
				t.Errorf("%s: %q, want %q", c.name, got, want)
			}
			if !color && strings.Contains(got, "\x1b") {
				t.Errorf("%s, without colours: %q", c.name, got)
			}
		}
	}
}
