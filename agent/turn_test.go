package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

func TestAPromptATextTheEnd(t *testing.T) {
	h := newHarness(t, says("Hello."))
	s := h.session()
	var live []Event
	stop := s.Subscribe(0, func(e Event) { live = append(live, e) })
	defer stop()
	end := h.prompt(s, "greet me\nplease")
	if end.Stop != TurnEnd || end.Steps != 1 || end.Usage.Input != 10 || end.ContextUsed != 15 || end.ContextSize != 1000 || end.Cost != 20e-6 {
		t.Errorf("end %+v", end)
	}
	var types []string
	for _, e := range live { // all delivered when Prompt returns
		types = append(types, string(e.Type))
	}
	if got := strings.Join(types, " "); got != "session prompt session message text step turn" {
		t.Errorf("events %s", got)
	}
	if title := s.Info().Title; title != "greet me" {
		t.Errorf("title %q", title)
	}
	stored := h.events(s)
	for i := range stored {
		if stored[i].Seq != live[i].Seq || string(stored[i].Data) != string(live[i].Data) || !stored[i].Time.Equal(live[i].Time) {
			t.Errorf("stored %+v, live %+v", stored[i], live[i])
		}
	}
	h.consistent(s)
}

func TestAServerThatDoesNotCountIsEstimated(t *testing.T) {
	words := strings.Repeat("many words ", 400)
	uncounted := emits(provider.Event{Type: provider.EventText, Text: words}, provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
	h := newHarness(t, uncounted, uncounted)
	s := h.session()
	one, two := h.prompt(s, "go").ContextUsed, h.prompt(s, "on").ContextUsed
	if one < len(words)/4 || two < one+len(words)/4 || two > 2*one+100 {
		t.Errorf("%d tokens, then %d", one, two)
	}
}

func TestResultsGoBackInCallOrder(t *testing.T) {
	h := newHarness(t, calls("Looking.", `read {"text":"a"}`, `read {"text":"b"}`, `write {"text":"c"}`, `read {"text":"d"}`), says("Done."))
	first := make(chan struct{})
	h.special["a"] = func(context.Context, *tools.Call, string) error { <-first; return nil } // a ends after b: they run together
	h.special["b"] = func(context.Context, *tools.Call, string) error { close(first); return nil }
	h.special["c"] = func(context.Context, *tools.Call, string) error {
		if got := h.order(); got != "read b, read a" && got != "read a, read b" {
			t.Errorf("before the write ran %q", got)
		}
		return nil
	}
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 2 {
		t.Fatalf("end %+v", end)
	}
	if got := h.order(); !strings.HasSuffix(got, "write c, read d") {
		t.Errorf("order %q", got)
	}
	req := h.model.seen()[1]
	var got []string
	for _, p := range req.Messages[2].Parts {
		got = append(got, p.Text)
	}
	if want := "read says a|read says b|write says c|read says d"; strings.Join(got, "|") != want {
		t.Errorf("results %q", got)
	}
	h.consistent(s)
}

func TestReadOnlyCallsStartBeforeTheAnswerEnds(t *testing.T) {
	ran := make(chan struct{})
	h := newHarness(t, func(ctx context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		for _, e := range callEvents(`read {"text":"a"}`) {
			if err := emit(e); err != nil {
				return err
			}
		}
		select { // the stream continues only when the call has run
		case <-ran:
		case <-ctx.Done():
			return ctx.Err()
		}
		return emit(provider.Event{Type: provider.EventStop, Stop: provider.StopTools})
	}, says("Done."))
	h.special["a"] = func(context.Context, *tools.Call, string) error { close(ran); return nil }
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd {
		t.Fatalf("end %+v", end)
	}
	h.consistent(s)
}

func TestHistoryIsAppendOnly(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"a"}`), calls(`read {"text":"b"}`), says("one"), says("two"))
	s := h.session()
	h.prompt(s, "first")
	h.prompt(s, "second")
	reqs := h.model.seen()
	for i := 1; i < len(reqs); i++ {
		before, after := reqs[i-1].Messages, reqs[i].Messages
		if len(after) <= len(before) {
			t.Fatalf("request %d has %d messages after %d", i, len(after), len(before))
		}
		for j := range before {
			if before[j].ID != after[j].ID || &before[j].Parts[0] != &after[j].Parts[0] {
				t.Errorf("request %d: message %d is another value", i, j)
			}
		}
		if strings.Join(reqs[i].System, "") != strings.Join(reqs[0].System, "") {
			t.Error("the system prompt changed")
		}
	}
}

func TestWhatAModelMayWrite(t *testing.T) {
	for _, c := range []struct {
		name, call, tool string
		kind, want       string // kind "" is success
	}{
		{"other case", `Read {"text":"a"}`, "read", "", "read says a"},
		{"number as text", `read {"text":5}`, "read", "invalid", "Expected string, got 5"},
		{"missing key", `read {}`, "read", "invalid", `Missing key at ["text"]`},
		{"not JSON", `read {"text": }`, "read", "invalid", "not valid JSON"},
		{"unknown tool", `reed_file {"text":"a"}`, "reed_file", "unknown_tool", "Available tools"},
		{"name no provider takes back", `we ird/ñame {"x":1}`, "we ird/ñame", "unknown_tool", "unavailable tool"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, calls(c.call), says("I see."))
			s := h.session()
			if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 2 {
				t.Fatalf("end %+v", end)
			}
			d := final(h.events(s))[0]
			if d.Tool != c.tool || d.ErrorKind != c.kind || !strings.Contains(d.Output+d.Error, c.want) {
				t.Errorf("got %+v", d)
			}
			part := h.model.seen()[1].Messages[1].Parts[0]
			if strings.ContainsAny(part.Name, " /ñ") {
				t.Errorf("name %q goes back to the provider", part.Name)
			}
			if result := h.model.seen()[1].Messages[2].Parts[0]; !strings.Contains(result.Text, c.want) || result.IsError != (c.kind != "") {
				t.Errorf("the model reads %+v", result)
			}
			h.consistent(s)
		})
	}
}

func TestDuplicateAndMissingCallIDs(t *testing.T) {
	same := emits(
		provider.Event{Type: provider.EventToolEnd, Index: 0, CallID: "x", Name: "read", Text: `{"text":"a"}`},
		provider.Event{Type: provider.EventToolEnd, Index: 1, CallID: "x", Name: "read", Text: `{"text":"b"}`},
		provider.Event{Type: provider.EventToolEnd, Index: 2, Name: "read", Text: `{"text":"c"}`},
		provider.Event{Type: provider.EventStop, Stop: provider.StopTools})
	h := newHarness(t, same, same, says("ok"))
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd {
		t.Fatalf("end %+v", end)
	}
	if n := len(final(h.events(s))); n != 6 {
		t.Errorf("%d calls", n)
	}
	h.consistent(s)
}

func doomQuestions(h *harness) (n int) {
	for _, q := range h.person.questions() {
		if q.Permission == "doom_loop" {
			n++
		}
	}
	return n
}

func TestToolUpdatesAndPlan(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"a"}`, `todowrite {"todos":[{"content":"x","status":"pending","priority":"high"}]}`), says("ok"))
	h.special["a"] = func(_ context.Context, c *tools.Call, _ string) error {
		c.Report(tools.Update{Title: "at it", Metadata: map[string]any{"output": strings.Repeat("é", 5000)}, Locations: []tools.Location{{Path: "/a", Line: 3}}})
		c.Report(tools.Update{Change: &change.Set{ID: "c1"}, ChangeState: change.Proposed})
		return nil
	}
	s := h.session()
	h.prompt(s, "go")
	events := h.events(s)
	changes := ofType[ChangeData](events, EventChange)
	if len(changes) != 1 || changes[0].State != change.Proposed || changes[0].Set == nil || changes[0].Set.ID != "c1" {
		t.Errorf("changes %+v", changes)
	}
	for _, d := range ofType[ToolData](events, EventTool) {
		if out, ok := d.Metadata["output"].(string); ok && d.Status == ToolRunning && (len(out) > maxLive+3 || !strings.HasPrefix(out, "…é")) {
			t.Errorf("a running update stores %d bytes of output", len(out))
		}
	}
	d := final(events)[0]
	if d.Title != "read" || len(d.Locations) != 1 || len(d.Metadata["output"].(string)) != 10000 {
		t.Errorf("got %+v", d)
	}
	if plan := ofType[PlanData](events, EventPlan); len(plan) != 1 || plan[0].Todos[0].Content != "x" {
		t.Errorf("plan %+v", plan)
	}
	h.consistent(s)
}

func TestACallByHand(t *testing.T) {
	h := newHarness(t)
	s := h.session()
	d, err := s.Tool(t.Context(), "write", []byte(`{"text":"a"}`))
	if err != nil || d.Status != ToolCompleted || d.Output != "write says a" {
		t.Fatalf("got %+v, %v", d, err)
	}
	if n := len(h.person.questions()); n != 1 {
		t.Errorf("asked %d times", n)
	}
	d, err = s.Tool(t.Context(), "nope", nil)
	if err != nil || d.Status != ToolError || d.ErrorKind != "unknown_tool" {
		t.Fatalf("got %+v, %v", d, err)
	}
	h.person.answer = rejects("")
	d, err = s.Tool(t.Context(), "write", []byte(`{"text":"b"}`))
	if err != nil || d.ErrorKind != "rejected" {
		t.Fatalf("got %+v, %v", d, err)
	}
	if len(s.hist.messages) != 0 {
		t.Error("calls by hand are in the model's history")
	}
	h.consistent(s)
}

func TestPromptsQueueInOrder(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"wait"}`), says("one"), says("two"), says("three"))
	waiting, goOn := make(chan struct{}), make(chan struct{})
	h.special["wait"] = func(context.Context, *tools.Call, string) error { close(waiting); <-goOn; return nil }
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "first") })
	<-waiting
	for i, text := range []string{"second", "third"} {
		wg.Go(func() { h.prompt(s, text) })
		for queued := 0; queued != i+1; { // until it is in the queue
			s.Runner.mu.Lock()
			queued = len(s.queue)
			s.Runner.mu.Unlock()
		}
	}
	close(goOn)
	wg.Wait()
	var got []string
	for _, p := range ofType[PromptData](h.events(s), EventPrompt) {
		got = append(got, p.Parts[0].Text)
	}
	if strings.Join(got, " ") != "first second third" {
		t.Errorf("order %v", got)
	}
	h.consistent(s)
}

func TestErrorsThatArePromptErrors(t *testing.T) {
	h := newHarness(t)
	s := h.session()
	if _, err := s.Prompt(t.Context(), Prompt{}); !errors.Is(err, ErrEmptyPrompt) {
		t.Errorf("empty: %v", err)
	}
	s.Close(t.Context())
	if _, err := s.Prompt(t.Context(), words("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	for _, dir := range []string{"relative", h.dir + "/missing", h.path} {
		if _, err := h.rt.NewSession(t.Context(), SessionOptions{Cwd: dir}); err == nil {
			t.Errorf("a session in %s", dir)
		}
	}
	if _, err := h.rt.NewSession(t.Context(), SessionOptions{Cwd: h.dir, Model: "fake/missing"}); err == nil || !strings.Contains(err.Error(), "pillion models") {
		t.Errorf("model: %v", err)
	}
	if _, err := h.rt.LoadSession(t.Context(), "ses_nope"); !errors.Is(err, ErrNoSession) {
		t.Errorf("load: %v", err)
	}
}

func TestATurnErrorSaysWhatToDo(t *testing.T) {
	h := newHarness(t, fails(provider.ErrContextLength, "prompt is too long: 210000 tokens."))
	s := h.session()
	end := h.prompt(s, "go")
	if end.Stop != TurnError || !strings.Contains(end.Error, "210000 tokens") || strings.Count(end.Error, "start a new session") != 1 {
		t.Errorf("end %+v", end)
	}
	h.consistent(s)
}

func TestTitleIsCutAtAWord(t *testing.T) {
	long := strings.Repeat("wörd ", 40)
	got := titleOf([]provider.Part{{Type: provider.PartText, Text: "\n  \n " + long}})
	if n := len([]rune(got)); n > 73 || !strings.HasSuffix(got, "wörd…") {
		t.Errorf("title %q", got)
	}
}
