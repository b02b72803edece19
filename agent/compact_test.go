package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// forSummary tells a compaction's request from others.
func forSummary(req *provider.Request) bool {
	return strings.HasPrefix(req.System[0], "You write the memory")
}

// withUsage answers and says how large the context is.
func withUsage(answer answerFunc, used int) answerFunc {
	return func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		return answer(ctx, req, func(e provider.Event) error {
			if e.Type == provider.EventUsage {
				e.Usage = provider.Usage{Input: used}
			}
			return emit(e)
		})
	}
}

func compactions(h *harness, s *Session) (done []CompactionData) {
	for _, d := range ofType[CompactionData](h.events(s), EventCompaction) {
		if d.State != CompactionBegun {
			done = append(done, d)
		}
	}
	return done
}

func TestAFullContextIsCompactedAndTheTurnGoesOn(t *testing.T) {
	h := newHarness(t)
	h.model.info = provider.Model{Provider: "fake", ID: "m", Context: 20_000, Output: 2_000}
	long := strings.Repeat("some words of an older answer. ", 1500)
	h.model.script = []answerFunc{
		says(long), withUsage(says("short"), 17_900),
		says("## Goal\nTo fix it."), // the summary, once the third prompt does not fit
		calls(`read {"text":"x"}`), says("Done."),
	}
	s := h.session()
	h.prompt(s, "first: "+strings.Repeat("word ", 2000))
	h.prompt(s, "second")
	end := h.prompt(s, "third "+strings.Repeat("more ", 300))
	if end.Stop != TurnEnd || end.Steps != 2 {
		t.Fatalf("%+v", end)
	}
	reqs := h.model.seen()
	if !forSummary(&reqs[2]) || len(reqs[2].Tools) > 0 || !strings.Contains(reqs[2].Messages[0].Parts[0].Text, "[person]\nfirst: word") {
		t.Fatalf("%+v", reqs[2])
	}
	next := reqs[3].Messages
	if !strings.Contains(next[0].Parts[0].Text, "To fix it.") || next[len(next)-1].Parts[0].Text[:5] != "third" || len(next) != 4 {
		t.Errorf("after it %d messages, the first %q", len(next), next[0].Parts[0].Text)
	}
	got := compactions(h, s)
	if len(got) != 1 || got[0].State != CompactionDone || !got[0].Auto || got[0].Messages != 2 || got[0].After >= got[0].Before || got[0].Summary != "## Goal\nTo fix it." {
		t.Errorf("%+v", got)
	}
	var streamed strings.Builder
	for _, d := range ofType[TextData](h.events(s), EventSummary) {
		streamed.WriteString(d.Text)
	}
	if streamed.String() != got[0].Summary {
		t.Errorf("streamed %q", streamed.String())
	}
	h.consistent(s)
	before := string(encode(s.hist.messages))
	h.restart()
	if s = h.load(s.ID()); string(encode(s.hist.messages)) != before {
		t.Error("the compacted history is another after a restart")
	}
	if texts := ofType[PromptData](h.events(s), EventPrompt); len(texts) != 3 {
		t.Errorf("the transcript has %d prompts", len(texts))
	}
}

func TestATooLongRequestIsCompactedOnce(t *testing.T) {
	tooLong := fails(provider.ErrContextLength, "prompt is too long.")
	for _, c := range []struct {
		name    string
		then    []answerFunc
		stop    StopReason
		compact int
	}{
		{"and fits", []answerFunc{says("the summary"), says("Done.")}, TurnEnd, 1},
		{"and does not fit even then", []answerFunc{says("the summary"), tooLong}, TurnError, 1},
		{"no summary can be made either", []answerFunc{tooLong, says("Done.")}, TurnEnd, 1},
		{"the summary fails", []answerFunc{fails(provider.ErrAuth, "wrong key"), says("Done.")}, TurnEnd, 1},
		{"the summary is empty", []answerFunc{says(""), says("Done.")}, TurnEnd, 1},
		{"the summary is declined", []answerFunc{emits(provider.Event{Type: provider.EventText, Text: "I can't."}, provider.Event{Type: provider.EventStop, Stop: provider.StopRefusal}), says("Done.")}, TurnEnd, 1},
		{"the summary is longer than what it stands for", []answerFunc{says(strings.Repeat("a summary ", 4000)), says("Done.")}, TurnEnd, 1},
	} {
		h := newHarness(t)
		h.model.info = provider.Model{Provider: "fake", ID: "m"} // the window is not known
		h.model.script = append([]answerFunc{says(strings.Repeat("an answer ", 2000)), tooLong}, c.then...)
		s := h.session()
		h.prompt(s, "first")
		end := h.prompt(s, "second")
		if end.Stop != c.stop || len(compactions(h, s)) != c.compact {
			t.Errorf("%s: %+v, %+v", c.name, end, compactions(h, s))
		}
		if c.stop == TurnError && strings.Count(end.Error, "start a new session") != 1 {
			t.Errorf("%s: %s", c.name, end.Error)
		}
		h.consistent(s)
	}
}

func TestCompactionThatGainsNothingIsNotRepeated(t *testing.T) {
	h := newHarness(t)
	h.model.info = provider.Model{Provider: "fake", ID: "m", Context: 10_000, Output: 1_000}
	summaries := 0
	big := strings.Repeat("a summary that is longer than what it stands for. ", 2000)
	h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		if forSummary(req) {
			summaries++
			return says(big)(ctx, req, emit)
		}
		return withUsage(says("ok"), 9_500)(ctx, req, emit)
	}
	s := h.session()
	for i := range 6 {
		h.prompt(s, fmt.Sprintf("%d %s", i, strings.Repeat("x", 3000)))
	}
	if summaries != 1 {
		t.Errorf("%d summaries were asked for", summaries)
	}
	got := compactions(h, s)
	if len(got) != 1 || got[0].State != CompactionFailed || !strings.Contains(got[0].Error, "not shorter") {
		t.Errorf("%+v", got)
	}
	h.consistent(s)
}

func TestCompactByHand(t *testing.T) {
	h := newHarness(t, says("answer one"), says("the memory"), says("answer two"))
	s := h.session()
	if _, err := s.Compact(t.Context(), ""); err != ErrNothingToCompact {
		t.Errorf("an empty session: %v", err)
	}
	h.prompt(s, "one "+strings.Repeat("words ", 500))
	d, err := s.Compact(t.Context(), "keep the names")
	if err != nil || d.Summary != "the memory" || d.Auto {
		t.Fatalf("%+v %v", d, err)
	}
	if text := h.model.seen()[1].Messages[0].Parts[0].Text; !strings.Contains(text, "keep above all: keep the names") {
		t.Error(text)
	}
	if _, err := s.Compact(t.Context(), ""); err != ErrNothingToCompact {
		t.Errorf("twice: %v", err)
	}
	h.prompt(s, "two")
	if got := h.model.seen()[2].Messages; len(got) != 2 || !strings.Contains(got[0].Parts[0].Text, "the memory") {
		t.Errorf("%+v", got)
	}
	h.consistent(s)
}

func TestTheBuiltinModelKeepsTheFactsWithoutARequest(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"x","filePath":"a.go"}`), says("done "+strings.Repeat("with many words ", 300)))
	h.model.info = provider.Model{Provider: builtinProvider, ID: "quickfix", Context: 1 << 20}
	s := h.session()
	h.prompt(s, "fix errors in a.go "+strings.Repeat("please ", 400))
	d, err := s.Compact(t.Context(), "")
	if err != nil || len(h.model.seen()) != 2 || !strings.Contains(d.Summary, "fix errors in a.go") || !strings.Contains(d.Summary, "read a.go (1 time)") {
		t.Errorf("%+v %v", d, err)
	}
	h.consistent(s)
}

func TestCancelledCompactionLeavesEverything(t *testing.T) {
	h := newHarness(t, says("answer "+strings.Repeat("words ", 500)))
	s := h.session()
	h.prompt(s, "one")
	before := string(encode(s.hist.messages))
	h.model.script = []answerFunc{func(ctx context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		_ = emit(provider.Event{Type: provider.EventText, Text: "half a "})
		s.Cancel()
		<-ctx.Done()
		return ctx.Err()
	}}
	if _, err := s.Compact(t.Context(), ""); err == nil {
		t.Error("no error")
	}
	if got := compactions(h, s); len(got) != 1 || got[0].State != CompactionCancelled || string(encode(s.hist.messages)) != before {
		t.Errorf("%+v", got)
	}
	h.consistent(s)
}

// TestNoCallIsLostInACompaction makes random conversations, of whole turns and in the middle of one, and compacts
// them at random: calls and their results stay or go together, what the model has not answered yet stays, and what
// stays is in its order.
func TestNoCallIsLostInACompaction(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 400 {
		h := newHistory()
		id := 0
		next := func(prefix string) string { id++; return fmt.Sprintf("%s%d", prefix, id) }
		text := func() string { return strings.Repeat("word ", r.IntN(600)) + "." }
		for range 1 + r.IntN(6) {
			h.messages = append(h.messages, provider.Message{ID: next("u"), Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: text()}}})
			for range r.IntN(6) {
				m := provider.Message{ID: next("a"), Role: provider.RoleAssistant, Parts: []provider.Part{{Type: provider.PartText, Text: text()}}}
				res := provider.Message{ID: m.ID + "r", Role: provider.RoleTool}
				for range r.IntN(4) {
					call := next("c")
					m.Parts = append(m.Parts, provider.Part{Type: provider.PartToolCall, CallID: call, Name: "read", Input: []byte(`{}`)})
					res.Parts = append(res.Parts, provider.Part{Type: provider.PartToolResult, CallID: call, Name: "read", Text: strings.Repeat(text(), 1+r.IntN(20))})
				}
				h.add(m, &res)
				if r.IntN(8) == 0 { // words of the person in the middle
					h.messages = append(h.messages, provider.Message{ID: next("s"), Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: text()}}})
				}
			}
		}
		for range 1 + r.IntN(3) {
			was := h.messages
			o := CompactionOptions{TailTurns: r.IntN(3), Recent: r.IntN(2) * r.IntN(3000)}
			p := h.plan(r.IntN(40_000), o, compaction{auto: r.IntN(2) == 0, hard: r.IntN(3) == 0})
			if p.messages == 0 && len(p.trimmed) == 0 {
				continue
			}
			running, summary := h.running(), "s"
			if p.messages == 0 {
				summary = ""
			}
			h.compact(CompactionData{ID: next("cmp_"), Summary: summary, Prompt: p.prompt, From: p.from, Trimmed: p.trimmed})
			checkMessages(t, h.messages)
			if running && h.messages[len(h.messages)-1].ID != was[len(was)-1].ID {
				t.Fatalf("round %d: the newest message %s went", round, was[len(was)-1].ID)
			}
			at := 0
			kept := h.messages
			if summary != "" {
				kept = kept[1:]
			}
			for _, m := range kept {
				for at < len(was) && was[at].ID != m.ID {
					at++
				}
				if at == len(was) {
					t.Fatalf("round %d: %s is out of order", round, m.ID)
				}
			}
			if len(kept)+len(p.gone) != len(was) {
				t.Fatalf("round %d: %d stay and %d went of %d", round, len(kept), len(p.gone), len(was))
			}
			if running { // the words that are worked on stay
				for i := len(was) - 1; i >= 0; i-- {
					if was[i].Role == provider.RoleUser && !synthetic(was[i]) {
						if !strings.Contains(string(encode(h.messages)), `"id":"`+was[i].ID+`"`) {
							t.Fatalf("round %d: the prompt %s went", round, was[i].ID)
						}
						break
					}
				}
			}
		}
	}
}

// An extension may end the turn that a compaction interrupts, whether Pillion or the provider found the context too full. Before a turn's
// first step nothing is interrupted, and it is not asked.
func TestAnExtensionEndsATurnAfterACompaction(t *testing.T) {
	for name, c := range map[string]struct {
		window         int
		script         []answerFunc
		overflow, asks bool
		steps          int
	}{
		"in the middle":       {window: 20_000, script: []answerFunc{withUsage(calls(`read {"text":"big"}`), 17_900), says("the summary"), says("never asked for")}, asks: true, steps: 1},
		"refused in a step":   {script: []answerFunc{withUsage(calls(`read {"text":"big"}`), 17_900), fails(provider.ErrContextLength, "prompt is too long."), says("the summary"), says("never asked for")}, asks: true, overflow: true, steps: 1},
		"refused at the head": {script: []answerFunc{fails(provider.ErrContextLength, "prompt is too long."), says("the summary"), says("Done.")}, steps: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.model.info = provider.Model{Provider: "fake", ID: "m", Context: c.window, Output: 2_000}
			h.special["big"] = func(context.Context, *tools.Call, string) error {
				return &tools.Error{Kind: "test", Message: strings.Repeat("a line of output\n", 1500)}
			}
			var asked []bool
			h.with.extensions = func(string) *Extensions {
				return &Extensions{Continue: func(_ context.Context, _ SessionInfo, m provider.Model, overflow bool) bool {
					if m.ID != "m" {
						t.Errorf("model %q", m.ID)
					}
					asked = append(asked, overflow)
					return false
				}}
			}
			h.model.script = append([]answerFunc{says(strings.Repeat("an answer ", 2000))}, c.script...)
			s := h.session()
			h.prompt(s, "first")
			end := h.prompt(s, "second")
			if end.Stop != TurnEnd || end.Steps != c.steps || len(asked) > 0 != c.asks || c.asks && asked[0] != c.overflow {
				t.Errorf("%+v; asked %v", end, asked)
			}
			if n := len(compactions(h, s)); n != 1 {
				t.Errorf("%d compactions", n)
			}
			h.consistent(s)
		})
	}
}

func TestALongTurnIsCompactedInItsMiddle(t *testing.T) {
	h := newHarness(t)
	h.model.info = provider.Model{Provider: "fake", ID: "m", Context: 20_000, Output: 2_000}
	h.special["big"] = func(context.Context, *tools.Call, string) error {
		return &tools.Error{Kind: "test", Message: strings.Repeat("a line of output\n", 1500)}
	}
	n, summaries := 0, 0
	h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		if forSummary(req) {
			summaries++
			return says("a summary")(ctx, req, emit)
		}
		size := estimateAll(req.Messages)
		if size > 20_000 {
			t.Errorf("a request of %d tokens", size)
		}
		if n++; n > 30 {
			return says("done")(ctx, req, emit)
		}
		return withUsage(calls(fmt.Sprintf(`read {"text":"big","n":%d}`, n)), size)(ctx, req, emit)
	}
	s := h.session()
	if end := h.prompt(s, "the task, word for word"); end.Stop != TurnEnd || summaries < 3 {
		t.Errorf("%+v after %d summaries", end, summaries)
	}
	last := h.model.seen()
	if !strings.Contains(string(encode(last[len(last)-1].Messages)), "the task, word for word") {
		t.Error("the prompt went")
	}
	h.consistent(s)
}
