package agent

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// BenchmarkStep is the loop's own time for a step with one read: from the model's last event to its next request.
func BenchmarkStep(b *testing.B) {
	for _, history := range []int{0, 500} {
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			h := newHarness(b)
			n := 0
			var left time.Time
			var spent time.Duration
			h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
				h.model.mu.Lock()
				h.model.requests = nil
				h.model.mu.Unlock()
				if !left.IsZero() {
					spent += time.Since(left)
				}
				n++
				var err error
				if n > b.N {
					err = says("done")(ctx, req, emit)
				} else {
					err = calls(fmt.Sprintf(`read {"text":"%d"}`, n))(ctx, req, emit)
				}
				left = time.Now()
				return err
			}
			h.with.agents = func(string) []Agent { return []Agent{{Name: "build", Steps: b.N + 1000}} }
			s := h.session()
			for i := range history {
				s.hist.messages = append(s.hist.messages, provider.Message{ID: fmt.Sprint(i), Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "some words"}}})
			}
			b.ResetTimer()
			h.prompt(s, "go")
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/step")
		})
	}
}

// BenchmarkDeltas is 20,000 deltas from the provider's emit to a subscriber's sink, durably.
func BenchmarkDeltas(b *testing.B) {
	const deltas = 20_000
	h := newHarness(b)
	var began time.Time
	h.model.def = func(ctx context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		began = time.Now()
		for range deltas {
			if err := emit(provider.Event{Type: provider.EventText, Text: "word "}); err != nil {
				return err
			}
		}
		return emit(provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
	}
	s := h.session()
	var bytes, events atomic.Int64
	var first, total time.Duration
	seen := false
	defer s.Subscribe(0, func(e Event) {
		if t, ok := e.Value.(TextData); ok {
			if !seen {
				seen = true
				first += time.Since(began)
			}
			bytes.Add(int64(len(t.Text)))
			events.Add(1)
		}
	})()
	turns := 0
	for b.Loop() {
		seen = false
		h.prompt(s, "go")
		total += time.Since(began)
		turns++
		if err := h.st.Sync(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	if got, want := bytes.Load(), int64(turns*deltas*5); got != want {
		b.Fatalf("%d bytes arrived of %d", got, want)
	}
	b.ReportMetric(float64(turns*deltas)/total.Seconds(), "deltas/s")
	b.ReportMetric(float64(first.Microseconds())/float64(turns), "µs-to-first")
	b.ReportMetric(float64(events.Load())/float64(turns), "events/turn")
}

// BenchmarkLoad is session/load of 500 steps.
func BenchmarkLoad(b *testing.B) {
	h := newHarness(b)
	n := 0
	h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		if n++; n > 500 {
			return says("done")(ctx, req, emit)
		}
		return calls("some words", fmt.Sprintf(`read {"text":"%d"}`, n))(ctx, req, emit)
	}
	h.with.agents = func(string) []Agent { return []Agent{{Name: "build", Steps: 1000}} }
	s := h.session()
	h.prompt(s, "go")
	id := s.ID()
	for b.Loop() {
		s.Close(context.Background())
		s = h.load(id)
		events := 0
		s.Subscribe(0, func(Event) { events++ })()
		if events < 2000 {
			b.Fatal(events)
		}
	}
}

// BenchmarkCancel is from Cancel to the end of Prompt, with a tool that does not listen.
func BenchmarkCancel(b *testing.B) {
	h := newHarness(b)
	h.model.def = calls(`read {"text":"deaf"}`)
	at, leave := make(chan struct{}, 1), make(chan struct{})
	h.special["deaf"] = func(context.Context, *tools.Call, string) error { at <- struct{}{}; <-leave; return nil }
	s := h.session()
	var worst time.Duration
	for b.Loop() {
		done := make(chan struct{})
		go func() { h.prompt(s, "go"); close(done) }()
		<-at
		began := time.Now()
		s.Cancel()
		<-done
		worst = max(worst, time.Since(began))
	}
	close(leave)
	b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
}
