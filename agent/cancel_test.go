package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// cancelAt runs a prompt and cancels it when at is closed. That the prompt returns while what it waits for is still
// deaf is the test; BenchmarkCancel has the times.
func (h *harness) cancelAt(s *Session, at <-chan struct{}) TurnData {
	h.t.Helper()
	var end TurnData
	var wg sync.WaitGroup
	wg.Go(func() { end = h.prompt(s, "go") })
	<-at
	s.Cancel()
	wg.Wait()
	if end.Stop != TurnCancelled || end.Error != "" {
		h.t.Errorf("end %+v", end)
	}
	return end
}

func TestCancelEndsWhatIsGoingOn(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		at := make(chan struct{})
		h := newHarness(t, func(ctx context.Context, _ *provider.Request, emit func(provider.Event) error) error {
			_ = emit(provider.Event{Type: provider.EventText, Text: "I was say"})
			close(at)
			<-ctx.Done()
			return ctx.Err()
		}, says("on"))
		s := h.session()
		h.cancelAt(s, at)
		h.consistent(s)
		h.prompt(s, "go on")
		if got := h.model.seen()[1].Messages[1].Parts[0].Text; got != "I was say" {
			t.Errorf("partial text %q", got)
		}
		h.consistent(s)
	})
	t.Run("a deaf stream", func(t *testing.T) {
		at, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		h := newHarness(t, func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
			close(at)
			<-leave
			err := emit(provider.Event{Type: provider.EventText, Text: "too late"})
			left <- err
			return err
		})
		s := h.session()
		h.cancelAt(s, at)
		close(leave)
		if err := <-left; err == nil {
			t.Error("emit took an event of a turn that is over")
		}
		h.consistent(s)
	})
	t.Run("tool", func(t *testing.T) {
		at := make(chan struct{})
		h := newHarness(t, calls(`write {"text":"a"}`, `write {"text":"b"}`))
		h.special["a"] = func(ctx context.Context, _ *tools.Call, _ string) error { close(at); <-ctx.Done(); return ctx.Err() }
		s := h.session()
		h.cancelAt(s, at)
		for _, d := range final(h.events(s)) {
			if d.ErrorKind != "cancelled" || d.Error != cancelledText {
				t.Errorf("got %+v", d)
			}
		}
		h.consistent(s)
	})
	t.Run("a deaf tool", func(t *testing.T) {
		at, leave, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
		h := newHarness(t, calls(`read {"text":"a"}`))
		h.special["a"] = func(_ context.Context, c *tools.Call, _ string) error {
			defer close(gone)
			c.Report(tools.Update{Metadata: map[string]any{"output": "so far", "list": []string{"x"}}})
			close(at)
			<-leave
			c.Report(tools.Update{Title: "too late"})
			return nil
		}
		s := h.session()
		h.cancelAt(s, at)
		close(leave)
		<-gone
		d := final(h.events(s))[0]
		if d.ErrorKind != "cancelled" || d.Title != "" || d.Metadata["output"] != "so far" {
			t.Errorf("got %+v", d)
		}
		h.consistent(s)
	})
	t.Run("permission", func(t *testing.T) {
		at, leave := make(chan struct{}), make(chan struct{})
		h := newHarness(t, calls(`write {"text":"a"}`))
		h.person.answer = func(context.Context, permission.Request) (permission.Reply, error) {
			close(at)
			<-leave // a person who is deaf too
			return permission.Reply{Kind: permission.Once}, nil
		}
		s := h.session()
		h.cancelAt(s, at)
		close(leave)
		asks := ofType[AskData](h.events(s), EventAsk)
		if len(asks) != 2 || asks[1].Reply != "cancelled" {
			t.Errorf("asks %+v", asks)
		}
		if h.order() != "" {
			t.Errorf("ran %s", h.order())
		}
		h.consistent(s)
	})
	t.Run("queue", func(t *testing.T) {
		at := make(chan struct{})
		h := newHarness(t, calls(`read {"text":"a"}`))
		s := h.session()
		queued := make(chan TurnData, 1)
		h.special["a"] = func(ctx context.Context, _ *tools.Call, _ string) error {
			go func() { queued <- h.prompt(s, "later") }()
			for n := 0; n == 0; {
				s.Runner.mu.Lock()
				n = len(s.queue)
				s.Runner.mu.Unlock()
			}
			close(at)
			<-ctx.Done()
			return ctx.Err()
		}
		h.cancelAt(s, at)
		if end := <-queued; end.Stop != TurnCancelled {
			t.Errorf("queued prompt: %+v", end)
		}
		if n := len(ofType[PromptData](h.events(s), EventPrompt)); n != 1 {
			t.Errorf("%d prompts", n)
		}
		h.consistent(s)
	})
	t.Run("the caller's context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := newHarness(t, func(ctx context.Context, _ *provider.Request, _ func(provider.Event) error) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		s := h.session()
		if end, err := s.Prompt(ctx, words("go")); err != nil || end.Stop != TurnCancelled {
			t.Errorf("end %+v, %v", end, err)
		}
		h.consistent(s)
	})
}

func TestCancelWhileWaitingToRetry(t *testing.T) {
	h := newHarness(t, fails(provider.ErrRateLimit, "slow down"))
	h.rt.backoff = func(int, *provider.Error) time.Duration { return time.Minute }
	s := h.session()
	at := make(chan struct{})
	defer s.Subscribe(0, func(e Event) {
		if e.Type == EventNotice {
			close(at)
		}
	})()
	h.cancelAt(s, at)
	h.consistent(s)
}

// TestRandomScriptsAndCancels: whatever a model does and whenever the person cancels, the session is consistent, and
// the same after a restart.
func TestRandomScriptsAndCancels(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		rnd := rand.New(rand.NewPCG(uint64(round), 7))
		h := newHarness(t)
		var emitted atomic.Int64
		cancelAfter := int64(rnd.IntN(60))
		var s *Session
		tick := func() {
			if emitted.Add(1) == cancelAfter {
				go s.Cancel()
			}
		}
		var mu sync.Mutex
		h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
			mu.Lock()
			events, err := randomAnswer(rnd)
			mu.Unlock()
			for _, e := range events {
				tick()
				if err := emit(e); err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
			return ctx.Err()
		}
		for _, name := range []string{"a", "b", "c"} {
			h.special[name] = func(ctx context.Context, c *tools.Call, text string) error {
				tick()
				c.Report(tools.Update{Metadata: map[string]any{"n": emitted.Load()}})
				if text == "c" && emitted.Load()%3 == 0 {
					return fmt.Errorf("failed at %d", emitted.Load())
				}
				return nil
			}
		}
		h.person.answer = func(context.Context, permission.Request) (permission.Reply, error) {
			tick()
			switch n := emitted.Load() % 7; n {
			case 0:
				return permission.Reply{Kind: permission.Reject}, nil
			case 1:
				return permission.Reply{Kind: permission.Reject, Message: "no"}, nil
			}
			return permission.Reply{Kind: permission.Once}, nil
		}
		h.with.agents = func(string) []Agent { return []Agent{{Name: "build", Steps: 6}} }
		s = h.session()
		for range 3 {
			h.prompt(s, "go")
		}
		h.consistent(s)
		before := string(encode(s.hist.messages))
		h.restart()
		again := h.load(s.ID())
		if after := string(encode(again.hist.messages)); after != before {
			t.Errorf("round %d: after a restart the history is\n%s\nbefore\n%s", round, after, before)
		}
		h.consistent(again)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

func randomAnswer(rnd *rand.Rand) (events []provider.Event, err error) {
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	for i := range rnd.IntN(6) {
		switch rnd.IntN(5) {
		case 0, 1:
			events = append(events, provider.Event{Type: provider.EventText, Text: pick("Hello ", "wörld\n", " ")})
		case 2:
			events = append(events, provider.Event{Type: provider.EventThinking, Text: "hm", Signature: pick("", "sig")})
		default:
			name := pick("read", "write", "Read", "nope", "", "todowrite")
			args := pick(`{"text":"a"}`, `{"text":"b"}`, `{"text":"c"}`, `{"text":`, `{}`, ``)
			id := pick("", "x", fmt.Sprint("id", i))
			events = append(events, provider.Event{Type: provider.EventToolStart, Index: i, CallID: id, Name: name}, provider.Event{Type: provider.EventToolDelta, Index: i, Text: args})
			if rnd.IntN(4) > 0 {
				events = append(events, provider.Event{Type: provider.EventToolEnd, Index: i, CallID: id, Name: name, Text: args})
			}
		}
	}
	events = append(events, provider.Event{Type: provider.EventUsage, Usage: provider.Usage{Input: 3}})
	switch rnd.IntN(8) {
	case 0:
		return events, &provider.Error{Kind: provider.ErrCut, Message: "the connection broke"}
	case 1:
		return events, &provider.Error{Kind: provider.ErrInvalid, Message: "bad request"}
	case 2:
		return append(events, provider.Event{Type: provider.EventStop, Stop: provider.StopMaxTokens}), nil
	case 3:
		return append(events, provider.Event{Type: provider.EventStop, Stop: provider.StopRefusal}), nil
	}
	return append(events, provider.Event{Type: provider.EventStop, Stop: provider.StopEnd}), nil
}

func TestRetryWaitsAndIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{script: []answerFunc{
			func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
				_ = emit(provider.Event{Type: provider.EventText, Text: "Let me th"})
				return &provider.Error{Kind: provider.ErrCut, Message: "the connection broke."}
			},
			fails(provider.ErrOverloaded, "overloaded"),
			says("Here it is."),
		}}
		rt := New(Options{Models: m, Project: &parts{}})
		s, err := rt.NewSession(t.Context(), SessionOptions{Cwd: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		end, err := s.Prompt(t.Context(), words("go"))
		if err != nil || end.Stop != TurnEnd || end.Steps != 1 {
			t.Fatalf("end %+v, %v", end, err)
		}
		if d := time.Since(began); d < 2*time.Second || d > 4*time.Second {
			t.Errorf("waited %v", d)
		}
		h := &harness{t: t, rt: rt}
		events := h.events(s)
		notices := ofType[NoticeData](events, EventNotice)
		if len(notices) != 2 || notices[0].Attempt != 2 || notices[1].Attempt != 3 || notices[0].Until.Before(began) || !strings.Contains(notices[0].Text, "the connection broke. Trying again") {
			t.Errorf("notices %+v", notices)
		}
		steps := ofType[StepData](events, EventStep)
		if len(steps) != 3 || !steps[0].Cut || !steps[1].Dropped || steps[0].Message.Parts[0].Text != "Let me th" || steps[2].Dropped {
			t.Errorf("steps %+v", steps)
		}
		if last := m.seen()[2]; len(last.Messages) != 3 { // the words, what was said until then, and the wish to continue
			t.Errorf("the repeated request has %d messages", len(last.Messages))
		}
		h.consistent(s)
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := rt.st.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestRetryGivesUp(t *testing.T) {
	h := newHarness(t)
	h.model.def = fails(provider.ErrServer, "HTTP 500")
	s := h.session()
	end := h.prompt(s, "go")
	if end.Stop != TurnError || !strings.Contains(end.Error, "5 times in a row") || len(h.model.seen()) != maxAttempts {
		t.Errorf("end %+v after %d requests", end, len(h.model.seen()))
	}
	h.model.def = fails(provider.ErrAuth, "The key is wrong")
	before := len(h.model.seen())
	if end = h.prompt(s, "go"); end.Stop != TurnError || len(h.model.seen()) != before+1 {
		t.Errorf("a wrong key was tried %d times: %+v", len(h.model.seen())-before, end)
	}
	h.model.def = fails(provider.ErrRateLimit, "quota of the day")
	h.rt.backoff = func(int, *provider.Error) time.Duration { return time.Hour }
	if end = h.prompt(s, "go"); end.Stop != TurnError || !strings.Contains(end.Error, "1h0m0s") {
		t.Errorf("end %+v", end)
	}
	h.consistent(s)
}

func TestACutAfterCompleteCallsIsNotRepeated(t *testing.T) {
	h := newHarness(t, func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		for _, e := range append(callEvents("First.", `write {"text":"a"}`), provider.Event{Type: provider.EventToolStart, Index: 9, Name: "write"}) {
			if err := emit(e); err != nil {
				return err
			}
		}
		return &provider.Error{Kind: provider.ErrCut, Message: "the connection broke"}
	}, says("Done."))
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 2 {
		t.Fatalf("end %+v", end)
	}
	if h.order() != "write a" {
		t.Errorf("ran %q", h.order())
	}
	if got := len(h.model.seen()[1].Messages); got != 3 {
		t.Errorf("%d messages", got)
	}
	h.consistent(s)
}
