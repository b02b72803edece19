package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
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

// stuck is an editor that does not read until it is told to.
type stuck struct {
	open chan struct{}
	io.Writer
}

func (s stuck) Write(p []byte) (int, error) { <-s.open; return s.Writer.Write(p) }
func (s stuck) Read([]byte) (int, error)    { select {} }
func (s stuck) Close() error                { return nil }

func TestASlowEditorCostsBoundedMemoryAndLosesNothing(t *testing.T) {
	pr, pw := io.Pipe()
	conn := stuck{make(chan struct{}), pw}
	w := newWire(conn, func(context.Context, *rpc.Request) (any, error) { return nil, nil }, func(error) {})
	const n, size = 20000, 5000 // 100 MB of updates
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	posted := make(chan int, 1)
	full := make(chan struct{})
	go func() {
		pad := strings.Repeat("x", size)
		for i := range n {
			// Alternating kinds: nothing can be merged.
			kind := "agent_message_chunk"
			if i%2 == 1 {
				kind = "agent_thought_chunk"
			}
			if i == 2*maxWaiting/size {
				close(full)
			}
			err := w.update(context.Background(), "s", protocol.SessionUpdate{SessionUpdate: kind, Value: &protocol.ContentChunk{Content: protocol.TextBlock(fmt.Sprintf("%d %s", i, pad))}}, nil)
			if err != nil {
				posted <- i
				return
			}
		}
		posted <- n
	}()
	// The producer stops by itself when enough waits.
	for {
		w.mu.Lock()
		waiting := w.waiting
		w.mu.Unlock()
		if waiting > maxWaiting-2*size {
			break
		}
		select {
		case <-full:
			t.Fatal("the producer was not stopped")
		default:
			runtime.Gosched()
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d MB wait", grown>>20)
	}
	close(conn.open)
	s := bufio.NewScanner(pr)
	s.Buffer(nil, 32<<20)
	for i := range n {
		if !s.Scan() {
			t.Fatalf("ended after %d: %v", i, s.Err())
		}
		var m struct {
			Params struct {
				Update struct{ Content struct{ Text string } }
			}
		}
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d ", i); !strings.HasPrefix(m.Params.Update.Content.Text, want) {
			t.Fatalf("update %d is %.20q", i, m.Params.Update.Content.Text)
		}
	}
	if got := <-posted; got != n {
		t.Errorf("%d posted", got)
	}
}

func TestWaitingUpdatesOfACallAreMerged(t *testing.T) {
	a := &pendingUpdate{w: &wire{room: make(chan struct{})}, update: protocol.SessionUpdate{SessionUpdate: "tool_call_update", Value: &protocol.ToolCallUpdate{ToolCallID: "1", Title: "old", Status: "in_progress", RawInput: json.RawMessage(`1`)}}}
	b := &pendingUpdate{w: a.w, update: protocol.SessionUpdate{SessionUpdate: "tool_call_update", Value: &protocol.ToolCallUpdate{ToolCallID: "1", Status: "completed", Content: []protocol.ToolCallContent{protocol.TextOfCall("x")}}}}
	if !mergeUpdates(&rpc.Note{Params: a}, &rpc.Note{Params: b}) {
		t.Fatal("not merged")
	}
	u := a.update.Value.(*protocol.ToolCallUpdate)
	if u.Title != "old" || u.Status != "completed" || string(u.RawInput) != "1" || len(u.Content) != 1 {
		t.Errorf("got %+v", u)
	}
	other := &pendingUpdate{w: a.w, update: protocol.SessionUpdate{SessionUpdate: "tool_call_update", Value: &protocol.ToolCallUpdate{ToolCallID: "2"}}}
	if mergeUpdates(&rpc.Note{Params: a}, &rpc.Note{Params: other}) {
		t.Error("updates of different calls were merged")
	}
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

func BenchmarkDeltas(b *testing.B) {
	pr, pw := io.Pipe()
	conn := stuck{make(chan struct{}), pw}
	close(conn.open)
	// An editor that never sends and always reads.
	quiet := struct {
		io.Reader
		io.Writer
		io.Closer
	}{blocked{}, conn, conn}
	w := newWire(quiet, func(context.Context, *rpc.Request) (any, error) { return nil, nil }, func(error) {})
	got := make(chan int64)
	go func() { n, _ := io.Copy(io.Discard, pr); got <- n }()
	for b.Loop() {
		_ = w.update(context.Background(), "s", protocol.SessionUpdate{SessionUpdate: "agent_message_chunk", Value: &protocol.ContentChunk{Content: protocol.TextBlock("token "), MessageID: "m"}}, nil)
	}
	_ = w.out.Flush(context.Background())
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deltas/s")
	_ = pw.Close()
	<-got
}

type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }

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
