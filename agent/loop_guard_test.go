package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

func TestDoomLoop(t *testing.T) {
	a, b := calls(`read {"text":"a"}`), calls(`read {"text":"b"}`)
	for _, c := range []struct {
		name   string
		script []answerFunc
		asks   int
	}{
		{"three times across steps", []answerFunc{a, a, a, says("x")}, 1},
		{"six times asks twice", []answerFunc{a, a, a, a, a, a, says("x")}, 2},
		{"three in one step", []answerFunc{calls(`read {"text":"a"}`, `read {"text": "a"}`, `read { "text":"a"}`), says("x")}, 1},
		{"A B A B", []answerFunc{a, b, a, b, says("x")}, 1},
		{"A B C A B C", []answerFunc{a, b, calls(`read {"text":"c"}`), a, b, calls(`read {"text":"c"}`), says("x")}, 1},
		{"ever new failing calls", []answerFunc{calls(`n1 {}`, `n2 {}`, `n3 {}`, `n4 {}`), calls(`n5 {}`, `n6 {}`, `n7 {}`, `n8 {}`), calls(`n9 {}`, `n10 {}`, `n11 {}`, `n12 {}`), says("x")}, 1},
		{"twice is fine", []answerFunc{a, a, b, a, a, says("x")}, 0},
		{"same error", []answerFunc{calls(`nope {}`), calls(`nope {}`), calls(`nope {}`), says("x")}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, c.script...)
			s := h.session()
			if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Error != "" {
				t.Fatalf("end %+v", end)
			}
			if got := doomQuestions(h); got != c.asks {
				t.Errorf("asked %d times, want %d", got, c.asks)
			}
			h.consistent(s)
		})
	}
}

// A command that ends with an exit code is a result to the tool and a failure to the loop: whatever else the agent tries, one success
// begins the count again.
func TestCommandsThatFailOneAfterTheOther(t *testing.T) {
	var w loopWatch
	run := func(n int, exit any) string {
		c := &call{name: "bash"}
		c.raw.add(fmt.Sprintf(`{"command":"attempt %d"}`, n))
		return w.add(c, ToolData{Status: ToolCompleted, Output: fmt.Sprint("not found: ", n), Metadata: map[string]any{"exit": exit}})
	}
	for n := range failingCalls - 1 {
		if why := run(n, 127); why != "" {
			t.Fatalf("after %d: %s", n+1, why)
		}
	}
	if why := run(100, 0); why != "" {
		t.Fatal(why)
	}
	for n := range failingCalls - 1 {
		run(200+n, float64(1))
	}
	if why := run(300, 2); !strings.Contains(why, "all failed") {
		t.Errorf("%q", why)
	}
}

func TestPollingWithNewResultsIsNoLoop(t *testing.T) {
	a := calls(`read {"text":"a"}`)
	h := newHarness(t, a, a, a, a, says("x"))
	n := 0
	h.special["a"] = func(_ context.Context, c *tools.Call, _ string) error {
		n++
		return fmt.Errorf("state %d", n)
	}
	h.prompt(h.session(), "go")
	if got := doomQuestions(h); got != 0 {
		t.Errorf("asked %d times", got)
	}
}

func TestDoomLoopAnswers(t *testing.T) {
	a := calls(`read {"text":"a"}`)
	t.Run("no ends the turn", func(t *testing.T) {
		h := newHarness(t, a, a, a)
		h.person.answer = rejects("")
		s := h.session()
		if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 3 {
			t.Errorf("end %+v", end)
		}
		h.consistent(s)
	})
	t.Run("words reach the model", func(t *testing.T) {
		h := newHarness(t, a, a, a, says("ok"))
		h.person.answer = rejects("read b")
		s := h.session()
		h.prompt(s, "go")
		msgs := h.model.seen()[3].Messages
		if got := msgs[len(msgs)-1].Parts[0].Text; !strings.Contains(got, "read says a") || !strings.Contains(got, "read b") {
			t.Errorf("the model reads %q", got)
		}
		h.consistent(s)
	})
	t.Run("always asks no more", func(t *testing.T) {
		h := newHarness(t, a, a, a, a, a, a, says("ok"))
		h.person.answer = func(context.Context, permission.Request) (permission.Reply, error) {
			return permission.Reply{Kind: permission.Always}, nil
		}
		h.prompt(h.session(), "go")
		if got := doomQuestions(h); got != 1 {
			t.Errorf("asked %d times", got)
		}
	})
	t.Run("a deny ends the turn", func(t *testing.T) {
		h := newHarness(t, a, a, a, a, says("ok"))
		h.with.rules = func(string) permission.Ruleset {
			return permission.Ruleset{{Permission: "doom_loop", Pattern: "*", Action: permission.Deny, Origin: "test"}}
		}
		s := h.session()
		if end := h.prompt(s, "go"); end.Stop != TurnError || end.Steps != 3 || !strings.Contains(end.Error, "3 times in a row") {
			t.Errorf("end %+v", end)
		}
		h.consistent(s)
	})
	t.Run("nobody to ask ends the turn", func(t *testing.T) {
		h := newHarness(t, a, a, a, a, a, a, says("ok"))
		h.person.answer = func(context.Context, permission.Request) (permission.Reply, error) {
			return permission.Reply{Kind: permission.Reject, Message: "nobody is connected", Unanswered: true}, nil
		}
		s := h.session()
		if end := h.prompt(s, "go"); end.Stop != TurnError || end.Steps != 3 {
			t.Errorf("end %+v", end)
		}
		h.consistent(s)
	})
}

func TestStepLimit(t *testing.T) {
	h := newHarness(t)
	n := 0
	h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		n++
		if len(req.Tools) == 0 {
			return says("I got this far.")(ctx, req, emit)
		}
		return calls(fmt.Sprintf(`read {"text":"%d"}`, n))(ctx, req, emit)
	}
	h.with.agents = func(string) []Agent { return []Agent{{Name: "build", Steps: 4}} }
	s := h.session()
	end := h.prompt(s, "go")
	if end.Stop != TurnMaxSteps || end.Steps != 5 {
		t.Fatalf("end %+v", end)
	}
	last := h.model.seen()[4].Messages
	if got := last[len(last)-1]; got.Role != provider.RoleUser || !got.Parts[0].Synthetic || !strings.Contains(got.Parts[0].Text, "4 steps") {
		t.Errorf("last request ends with %+v", got)
	}
	h.consistent(s)
}

func TestOutputLimitInACall(t *testing.T) {
	cut := emits(
		provider.Event{Type: provider.EventToolStart, CallID: "w", Name: "write"},
		provider.Event{Type: provider.EventToolDelta, Text: `{"text":"half of a lo`},
		provider.Event{Type: provider.EventStop, Stop: provider.StopMaxTokens})
	t.Run("once", func(t *testing.T) {
		h := newHarness(t, cut, says("Smaller then."))
		s := h.session()
		if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 2 {
			t.Fatalf("end %+v", end)
		}
		if got := h.model.seen()[1].Messages[2].Parts[0]; !got.IsError || !strings.Contains(got.Text, "smaller pieces") {
			t.Errorf("the model reads %+v", got)
		}
		h.consistent(s)
	})
	t.Run("again and again", func(t *testing.T) {
		h := newHarness(t, cut, cut, cut)
		s := h.session()
		if end := h.prompt(s, "go"); end.Stop != TurnMaxTokens || end.Steps != 3 {
			t.Fatalf("end %+v", end)
		}
		h.consistent(s)
	})
	t.Run("in the text", func(t *testing.T) {
		half := emits(provider.Event{Type: provider.EventText, Text: "and then"}, provider.Event{Type: provider.EventStop, Stop: provider.StopMaxTokens})
		h := newHarness(t, half, says(" it ends."))
		s := h.session()
		if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 2 {
			t.Fatalf("end %+v", end)
		}
		if got := h.model.seen()[1].Messages; !strings.Contains(got[len(got)-1].Parts[0].Text, "Go on exactly where it stops") {
			t.Errorf("the model reads %+v", got)
		}
		h.consistent(s)
		h = newHarness(t, half, half, half, half, half, half)
		if end := h.prompt(h.session(), "go"); end.Stop != TurnMaxTokens || end.Steps != maxContinued+1 {
			t.Fatalf("end %+v", end)
		}
	})
}

func TestEmptyAnswers(t *testing.T) {
	empty := emits(provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
	thought := emits(provider.Event{Type: provider.EventThinking, Text: "hm", Signature: "s"}, provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
	h := newHarness(t, empty, says("Sorry."), thought, empty)
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 2 {
		t.Fatalf("end %+v", end)
	}
	if end := h.prompt(s, "again"); end.Stop != TurnEnd || end.Steps != 2 {
		t.Fatalf("end %+v", end)
	}
	notices := ofType[NoticeData](h.events(s), EventNotice)
	if len(notices) != 1 || !strings.Contains(notices[0].Text, "empty answer") {
		t.Errorf("notices %+v", notices)
	}
	h.consistent(s)
}

func TestRefusal(t *testing.T) {
	h := newHarness(t, emits(provider.Event{Type: provider.EventText, Text: "I can't"}, provider.Event{Type: provider.EventStop, Stop: provider.StopRefusal}))
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnRefusal {
		t.Fatalf("end %+v", end)
	}
	h.consistent(s)
}
