package terminal

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// --approve clean: only a fresh verdict without an error is a yes, and only for changes of files that no person must see.
func TestOnlyACleanVerdictIsAYes(t *testing.T) {
	e, w := change.Problem{Path: "/p/a.go", Line: 3, Column: 1, Severity: change.SeverityError, Message: "no such thing"}, change.Problem{Severity: change.SeverityWarning}
	edit := func(v *change.Verdict) permission.Request {
		return permission.Request{Permission: "edit", Change: &change.Set{ID: "c", Verdict: v}}
	}
	protected := edit(&change.Verdict{Certainty: change.Fresh})
	protected.Why = ".git/config is protected"
	for name, c := range map[string]struct {
		r    permission.Request
		says string // "" for a yes
	}{
		"clean":             {edit(&change.Verdict{Certainty: change.Fresh, Fixed: []change.Problem{e}}), ""},
		"a warning":         {edit(&change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{w}}), ""},
		"an error":          {edit(&change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{e}}), "a.go:3:1: no such thing"},
		"behind warnings":   {edit(&change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{w, w, w, w, w, e}}), "a.go:3:1: no such thing"},
		"partial":           {edit(&change.Verdict{Certainty: change.Partial, Reason: "still indexing"}), "partial: still indexing"},
		"partial and wrong": {edit(&change.Verdict{Certainty: change.Partial, Introduced: []change.Problem{e}}), "introduces 1"},
		"pending":           {edit(&change.Verdict{Certainty: change.Pending}), "pending"},
		"unavailable":       {edit(&change.Verdict{Certainty: change.Unavailable, Reason: "no server"}), "no server"},
		"not checked":       {edit(nil), "no language server has looked"},
		"protected":         {protected, "no user can answer"},
		"a command":         {permission.Request{Permission: "bash", Title: "ls"}, "no user can answer"},
	} {
		term := New(Options{Out: io.Discard, Cwd: "/p", Approve: IfClean})
		reply, err := term.AskPermission(context.Background(), c.r)
		if err != nil {
			t.Fatal(name, err)
		}
		if yes := reply.Kind == permission.Once; yes != (c.says == "") || !yes && (reply.Kind != permission.Reject || !strings.Contains(reply.Message, c.says)) {
			t.Errorf("%s: %+v", name, reply)
		}
	}
}

// reading is a person who reads until something has happened, and then presses the keys.
type reading struct {
	script
	until func()
}

func (r *reading) Key(ctx context.Context, keys string, notice time.Duration, ready func(bool)) (byte, error) {
	if r.until != nil {
		r.until()
		r.until = nil
	}
	return r.script.Key(ctx, keys, notice, ready)
}

// The question is asked while the servers still load, with what they do; what they say while it is open is printed, each thing once.
func TestAVerdictThatComesWhileTheQuestionIsOpenIsPrinted(t *testing.T) {
	at := func(certainty change.Certainty, reason string, introduced ...change.Problem) *change.Set {
		return twoHunks().WithVerdict(&change.Verdict{Certainty: certainty, Reason: reason, Introduced: introduced})
	}
	const loading, typed = "gopls is still busy: loading", "gopls is still busy: loading; types alone find 1 error that this change introduces in package a: a.go:1: undefined: ONE"
	var out strings.Builder
	keys := &reading{script: script{keys: "nn"}}
	term := New(Options{Out: &out, Cwd: "/p", Approve: Ask, Keys: keys, Width: 200})
	tell := func(set *change.Set) {
		term.Event(agent.Event{Type: agent.EventChange, Value: agent.ChangeData{State: change.Proposed, Full: set}})
	}
	other := at(change.Fresh, "")
	other.ID = "other"
	keys.until = func() {
		tell(at(change.Pending, loading))
		tell(at(change.Pending, typed))
		tell(at(change.Pending, typed))
		tell(other)
		tell(at(change.Fresh, "", change.Problem{Path: "/p/a.go", Line: 1, Column: 2, Severity: "error", Message: "undefined: ONE"}))
	}
	if _, err := term.AskPermission(t.Context(), permission.Request{CallID: "call", Permission: "edit", Change: at(change.Pending, loading)}); err != nil {
		t.Fatal(err)
	}
	tell(at(change.Pending, "after the answer"))
	got := out.String()
	if !strings.HasPrefix(got, "\na.go · 2 hunks · not checked yet\n  "+loading+"\n") {
		t.Errorf("asked with\n%s", got)
	}
	for text, n := range map[string]int{"\n  not checked yet\n  " + typed + "\n": 1, "\n  fixes 0 errors, introduces 1\n  + a.go:1:2 error undefined: ONE\n": 1, "fixes 0": 1, "after the answer": 0} {
		if strings.Count(got, text) != n {
			t.Errorf("%q is printed %d times, want %d:\n%s", text, strings.Count(got, text), n, got)
		}
	}
}

// The verdict that came while another question was open is the one that the question is asked with.
func TestTheLastVerdictIsShown(t *testing.T) {
	var out strings.Builder
	term := New(Options{Out: &out, Cwd: "/p", Approve: Ask, Keys: &script{keys: "nn"}, Width: 200})
	asked := twoHunks().WithVerdict(&change.Verdict{Certainty: change.Pending, Reason: "loading"})
	term.Event(agent.Event{Type: agent.EventChange, Value: agent.ChangeData{State: change.Proposed, Full: twoHunks()}})
	if _, err := term.AskPermission(t.Context(), permission.Request{CallID: "call", Permission: "edit", Change: asked}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "fixes 2 errors, introduces 0") || strings.Contains(got, "loading") {
		t.Errorf("asked with\n%s", got)
	}
}

// While a question waits for a key the terminal is in raw mode: each line that is printed meanwhile begins in the first column all the same.
func TestLinesBelowAnOpenQuestionBeginInTheFirstColumn(t *testing.T) {
	var out strings.Builder
	s := newLineScreen(Options{Out: &out, Keys: TTY{}})
	s.print("before\n")
	s.ask("Sure [y/n]? ")
	s.endLine()
	s.print("one\ntwo\n")
	s.askAgain()
	s.answered("y", false)
	s.print("after\n")
	if got, want := out.String(), "before\nSure [y/n]? \r\none\r\ntwo\r\nSure [y/n]? y\nafter\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
