package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
)

// deltas streams n pieces of text, numbered, and nothing else.
func deltas(n int) func(context.Context, *provider.Request, func(provider.Event) error) error {
	return func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		for i := range n {
			if err := emit(provider.Event{Type: provider.EventText, Text: fmt.Sprintf("%d,", i)}); err != nil {
				return err
			}
		}
		return emit(provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()
}

// collect reads updates until the answer with the id, and gives the text they carried.
func (e *editor) collect(id string) string {
	e.t.Helper()
	var b strings.Builder
	for {
		m, _ := e.receive()
		if fmt.Sprint(m["id"]) == id {
			return b.String()
		}
		params, _ := m["params"].(map[string]any)
		u, _ := params["update"].(map[string]any)
		if u["sessionUpdate"] == "agent_message_chunk" {
			c, _ := u["content"].(map[string]any)
			s, _ := c["text"].(string)
			b.WriteString(s)
		}
	}
}

func TestNothingIsLostOfAFastStream(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	const n = 20000
	r.model.steps = append(r.model.steps, deltas(n))
	r.ed.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
	if got := r.ed.collect("p"); got != numbered(n) {
		t.Errorf("%d bytes of %d", len(got), len(numbered(n)))
	}
}

// TestADeltaIsNotHeldForTheNext: the model pauses after its first delta; the editor has it all the same.
func TestADeltaIsNotHeldForTheNext(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	seen := make(chan struct{})
	r.model.steps = append(r.model.steps, func(ctx context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		if err := emit(provider.Event{Type: provider.EventText, Text: "first"}); err != nil {
			return err
		}
		select {
		case <-seen:
		case <-ctx.Done():
		}
		return emit(provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
	})
	r.ed.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
	r.ed.expect(`{"params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"first"}}}}`)
	close(seen)
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
}

func TestAMessageOf31MBGoesBothWays(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	big := strings.Repeat("x", 30<<20)
	r.model.steps = append(r.model.steps, func(_ context.Context, req *provider.Request, emit func(provider.Event) error) error {
		last := req.Messages[len(req.Messages)-1].Parts[0].Text
		return says(last)(context.Background(), req, emit)
	})
	r.ed.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"` + big + `"}]}}`)
	if got := r.ed.collect("p"); got != big {
		t.Errorf("%d bytes came back", len(got))
	}
}

// BenchmarkTurn20000 is a whole turn of 20,000 deltas, from the model to the editor, through the store.
func BenchmarkTurn20000(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		r := newRig(b, testStore(b), b.TempDir())
		r.start("")
		const n = 20000
		r.model.steps = append(r.model.steps, deltas(n))
		b.StartTimer()
		begun := time.Now()
		r.ed.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
		for line := range r.ed.in {
			if strings.Contains(line, `"id":"p"`) {
				break
			}
		}
		b.ReportMetric(n/time.Since(begun).Seconds(), "deltas/s")
	}
}
