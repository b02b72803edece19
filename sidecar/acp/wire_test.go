package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

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
			if i == 2*maxQueued/size {
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
		waiting := w.queued
		w.mu.Unlock()
		if waiting > maxQueued-2*size {
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

// What is to follow an answer also follows it in a batch, whose answers leave in one frame: a session that is attached in one
// would otherwise never be free to close.
func TestWhatFollowsAnAnswerFollowsItInABatchToo(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	wires := make(chan *wire, 1)
	w := newWire(here, func(_ context.Context, r *rpc.Request) (any, error) {
		w := <-wires
		wires <- w
		id, _ := r.ID.StringValue()
		w.afterAnswer(r, func() { go func() { _ = w.peer.Notify(context.Background(), "after", id) }() })
		return "done", nil
	}, func(err error) { t.Error(err) })
	wires <- w
	lines := bufio.NewScanner(there)
	receive := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		return lines.Text()
	}
	for _, in := range []string{
		`{"jsonrpc":"2.0","id":"alone","method":"x"}`,
		`[{"jsonrpc":"2.0","id":"o\\ne <&>","method":"x"},{"jsonrpc":"2.0","id":"two","method":"x"}]`,
	} {
		if _, err := io.WriteString(there, in+"\n"); err != nil {
			t.Fatal(err)
		}
		answer := receive()
		if !strings.Contains(answer, "done") {
			t.Fatal("something came before the answer: ", answer)
		}
		for range strings.Count(in, `"id"`) {
			if note := receive(); !strings.Contains(note, `"after"`) {
				t.Errorf("after %s: %s", in, note)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.after) > 0 {
		t.Errorf("%d answers were not noticed", len(w.after))
	}
}
