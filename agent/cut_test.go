package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/agent/store"
)

// TestACutAnswerIsNeverSaidTwice cuts an answer of words and two calls at its bytes, in every wire format, and lets
// the model say all of it again. What the person reads is one answer, every call has its result, and what goes to the
// provider afterwards is whole.
func TestACutAnswerIsNeverSaidTwice(t *testing.T) {
	const words = "I look at both files, größer and smaller. "
	answer := wiretest.Step{Thinking: "both", Text: words, Chunk: 9, Calls: []wiretest.Call{
		{ID: "c1", Name: "read", Input: []byte(`{"text":"a"}`)}, {ID: "c2", Name: "read", Input: []byte(`{"text":"b"}`)},
	}}
	stride := 61
	if testing.Short() {
		stride = 101
	}
	for _, kind := range []provider.Kind{provider.KindAnthropic, provider.KindOpenAI, provider.KindResponses, provider.KindGemini} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			kept := 0
			for n := 1; ; n += stride {
				first := answer
				first.Cut = n
				end, events, requests := playCut(t, kind, first, answer, wiretest.Step{Text: "Done."})
				if first := ofType[StepData](events, EventStep)[0]; first.Error == "" {
					break // the cut is behind the end
				}
				if end.Stop != TurnEnd {
					t.Fatalf("cut at %d: %+v", n, end)
				}
				var said strings.Builder
				for _, d := range ofType[TextData](events, EventText) {
					said.WriteString(d.Text)
				}
				for _, s := range ofType[StepData](events, EventStep) {
					if s.Cut {
						kept++
					}
				}
				// A stream that broke behind complete calls continues with their results, and the model speaks again.
				if got := said.String(); got != words+"Done." && !(strings.HasPrefix(got, words) && requests > 2 && strings.Count(got, words) == 2 && len(final(events)) > 2) {
					t.Fatalf("cut at %d after %d requests: said %q", n, requests, got)
				}
				for _, d := range final(events) {
					if d.Status != ToolCompleted && d.ErrorKind != "cut" {
						t.Fatalf("cut at %d: %+v", n, d)
					}
				}
				if n > 20_000 {
					t.Fatal("the answer has no end")
				}
			}
			if kept == 0 {
				t.Error("no cut was in the words")
			}
		})
	}
}

// playCut runs one prompt against a scripted server.
func playCut(t *testing.T, kind provider.Kind, steps ...wiretest.Step) (TurnData, []Event, int) {
	t.Helper()
	srv, err := wiretest.Start(steps...)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.Repeat = true
	url := map[provider.Kind]string{provider.KindAnthropic: srv.AnthropicURL(), provider.KindGemini: srv.GeminiURL()}[kind]
	if url == "" {
		url = srv.OpenAIURL()
	}
	via, err := provider.New(provider.Config{Kind: kind, BaseURL: url, Key: "test"})
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, model: &model{}, person: &person{}, dir: t.TempDir()}
	h.with = &parts{tools: h.tools}
	h.st = store.New("")
	h.rt = New(Options{Store: h.st, Models: wire{via, provider.Model{Provider: string(kind), ID: "scripted", Context: 100_000}}, Toolbox: h.with, Project: h.with, Asker: h.person})
	h.rt.backoff = func(int, *provider.Error) time.Duration { return 0 }
	defer h.stop()
	s := h.session()
	end := h.prompt(s, "go")
	h.consistent(s)
	return end, h.events(s), len(srv.Requests())
}

// TestTheSameIDInEveryStep: models give one id to two calls, none at all, or one of an earlier step.
func TestTheSameIDInEveryStep(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"a"}`), calls(`read {"text":"b"}`, `read {"text":"c"}`), func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		for i := range 3 {
			for _, e := range []provider.Event{{Type: provider.EventToolStart, Index: i, CallID: "id0", Name: "read"}, {Type: provider.EventToolEnd, Index: i, CallID: "id0", Name: "read", Text: fmt.Sprintf(`{"text":"d%d"}`, i)}} {
				if err := emit(e); err != nil {
					return err
				}
			}
		}
		return emit(provider.Event{Type: provider.EventStop, Stop: provider.StopTools})
	}, says("ok"))
	s := h.session()
	h.prompt(s, "go")
	if n := len(final(h.events(s))); n != 6 {
		t.Errorf("%d calls", n)
	}
	h.consistent(s)
}
