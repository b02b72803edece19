package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"go.lsp.dev/jsonrpc2"
)

// pair connects two peers by in-memory pipes, each with its outbox.
func pair(t *testing.T, framed func(io.Reader, io.Writer, rpc.StreamOptions) rpc.Stream, a, b rpc.PeerOptions) (*rpc.Peer, *rpc.Peer) {
	t.Helper()
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	pa := rpc.NewPeer(framed(ar, rpc.NewOutbox(aw, rpc.OutboxOptions{}), rpc.StreamOptions{}), a)
	pb := rpc.NewPeer(framed(br, rpc.NewOutbox(bw, rpc.OutboxOptions{}), rpc.StreamOptions{}), b)
	t.Cleanup(func() { _ = pa.Close(); _ = pb.Close() })
	return pa, pb
}

func TestCancelReachesAnAsyncHandler(t *testing.T) {
	for _, method := range []string{rpc.CancelACP, rpc.CancelLSP} {
		t.Run(method, func(t *testing.T) {
			started, ended := make(chan struct{}), make(chan error, 1)
			server := rpc.PeerOptions{Handler: func(ctx context.Context, r *rpc.Request) (any, error) {
				r.Async()
				close(started)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return nil, ctx.Err()
			}}
			client, _ := pair(t, rpc.NewLineStream, rpc.PeerOptions{Cancel: method}, server)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-started; cancel() }()
			if err := client.Call(ctx, "wait", nil, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("Call returned %v", err)
			}
			if err := <-ended; !errors.Is(err, rpc.ErrCancelledByPeer) {
				t.Errorf("the handler's context ended with %v", err)
			}
		})
	}
}

func TestCancelledRequestIsAnsweredAsCancelled(t *testing.T) {
	in, out := strings.NewReader(`{"jsonrpc":"2.0","id":"a","method":"m"}`+"\n"+`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"a"}}`+"\n"), &lines{got: make(chan string, 10)}
	r, w := io.Pipe()
	go func() { _, _ = io.Copy(w, in) }() // and stays open
	p := rpc.NewPeer(rpc.NewLineStream(r, out, rpc.StreamOptions{}), rpc.PeerOptions{Handler: func(ctx context.Context, r *rpc.Request) (any, error) {
		r.Async()
		<-ctx.Done()
		return nil, fmt.Errorf("gave up: %w", ctx.Err())
	}})
	defer p.Close()
	if got, want := <-out.got, `{"jsonrpc":"2.0","id":"a","error":{"code":-32800,"message":"Request cancelled"}}`+"\n"; got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
}

type lines struct{ got chan string }

func (l *lines) Write(p []byte) (int, error) { l.got <- string(p); return len(p), nil }

func TestPanicsAndFailedNotificationsDoNotEndTheConnection(t *testing.T) {
	var mu sync.Mutex
	var logged []string
	server := rpc.PeerOptions{
		Log: func(err error) { mu.Lock(); logged = append(logged, err.Error()); mu.Unlock() },
		Handler: func(_ context.Context, r *rpc.Request) (any, error) {
			switch r.Method {
			case "fine":
				return "fine", nil
			case "nothing":
				return nil, nil
			case "bad":
				return nil, errors.New("bad")
			case "unknown":
				return nil, rpc.MethodNotFound(r.Method)
			}
			panic("ouch")
		}}
	client, _ := pair(t, rpc.NewHeaderStream, rpc.PeerOptions{Codec: rpc.LSP}, server)
	ctx := t.Context()
	_ = client.Notify(ctx, "panics", nil)
	_ = client.Notify(ctx, "bad", nil)
	var e *jsonrpc2.Error
	if err := client.Call(ctx, "panics", nil, nil); !errors.As(err, &e) || e.Code != jsonrpc2.InternalError {
		t.Errorf("a panic was answered with %v", err)
	}
	if err := client.Call(ctx, "unknown", nil, nil); !errors.As(err, &e) || e.Code != jsonrpc2.MethodNotFound {
		t.Errorf("unknown method: %v", err)
	}
	var raw json.RawMessage
	if err := client.Call(ctx, "nothing", nil, &raw); err != nil || string(raw) != "null" {
		t.Errorf("nil result: %s %v", raw, err)
	}
	var s string
	if err := client.Call(ctx, "fine", nil, &s); err != nil || s != "fine" {
		t.Errorf("after all that: %q %v", s, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(logged) != 3 || !strings.Contains(logged[0], "ouch") || logged[1] != "bad: bad" {
		t.Errorf("logged %q", logged)
	}
}

func TestOrderOfTheWire(t *testing.T) {
	var got []int
	server := rpc.PeerOptions{Handler: func(_ context.Context, r *rpc.Request) (any, error) {
		var n int
		if r.IsCall {
			return len(got), nil
		}
		err := json.Unmarshal(r.Params, &n)
		got = append(got, n)
		return nil, err
	}}
	client, _ := pair(t, rpc.NewLineStream, rpc.PeerOptions{}, server)
	const n = 5000
	for i := range n {
		_ = client.Notify(t.Context(), "n", json.RawMessage(fmt.Sprint(i)))
	}
	var count int
	if err := client.Call(t.Context(), "count", nil, &count); err != nil || count != n {
		t.Fatalf("%d of %d, %v", count, n, err)
	}
	for i, g := range got {
		if i != g {
			t.Fatalf("%d came as %d", g, i)
		}
	}
}

func TestCloseWithASilentPeer(t *testing.T) {
	client, _ := pair(t, rpc.NewLineStream, rpc.PeerOptions{}, rpc.PeerOptions{Handler: func(ctx context.Context, r *rpc.Request) (any, error) {
		r.Async()
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	failed := make(chan error, 1)
	go func() { failed <- client.Call(context.Background(), "never", nil, nil) }()
	_ = client.Notify(t.Context(), "x", nil)
	_ = client.Close()
	if err := <-failed; err == nil {
		t.Error("a call outlived its connection")
	}
	select {
	case <-client.Done():
	case <-time.After(2 * time.Minute):
		t.Error("Close returned, Done did not")
	}
}

func TestHandlersEndWithTheirConnection(t *testing.T) {
	r, w := io.Pipe()
	started := make(chan struct{})
	p := rpc.NewPeer(rpc.NewLineStream(r, io.Discard, rpc.StreamOptions{}), rpc.PeerOptions{Handler: func(ctx context.Context, r *rpc.Request) (any, error) {
		r.Async()
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"m"}`+"\n")
	<-started
	_ = w.Close() // the editor goes away
	<-p.Done()
	if err := p.Err(); err != nil {
		t.Errorf("a clean end was reported as %v", err)
	}
}

func TestTwoRequestsWithOneID(t *testing.T) {
	out := &lines{got: make(chan string, 10)}
	r, w := io.Pipe()
	p := rpc.NewPeer(rpc.NewLineStream(r, out, rpc.StreamOptions{}), rpc.PeerOptions{Handler: func(ctx context.Context, r *rpc.Request) (any, error) {
		r.Async()
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	defer p.Close()
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"m"}`+"\n"+`{"jsonrpc":"2.0","id":1,"method":"m"}`+"\n")
	if got := <-out.got; !strings.Contains(got, "-32600") {
		t.Errorf("the second was answered with %s", got)
	}
}

func TestBatchIsAnsweredAsBatch(t *testing.T) {
	out := &lines{got: make(chan string, 10)}
	r, w := io.Pipe()
	p := rpc.NewPeer(rpc.NewLineStream(r, out, rpc.StreamOptions{}), rpc.PeerOptions{Handler: func(context.Context, *rpc.Request) (any, error) { return 1, nil }})
	defer p.Close()
	_, _ = io.WriteString(w, `[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","method":"n"},3]`+"\n")
	if got := <-out.got; !strings.HasPrefix(got, `[{"jsonrpc":"2.0","id":1,"result":1},{"jsonrpc":"2.0","id":null,"error"`) {
		t.Errorf("answered %s", got)
	}
}

// Two peers that send each other megabytes at once must not stop: neither reader waits for a writer.
func TestMutualFlood(t *testing.T) {
	echo := func(_ context.Context, r *rpc.Request) (any, error) { return r.Params, nil }
	a, b := pair(t, rpc.NewLineStream, rpc.PeerOptions{Handler: echo}, rpc.PeerOptions{Handler: echo})
	big := json.RawMessage(`["` + strings.Repeat("x", 4<<20) + `"]`)
	var wg sync.WaitGroup
	for _, p := range []*rpc.Peer{a, b} {
		for range 3 {
			wg.Go(func() {
				var back json.RawMessage
				if err := p.Call(t.Context(), "echo", big, &back); err != nil || len(back) != len(big) {
					t.Errorf("%d bytes, %v", len(back), err)
				}
			})
		}
	}
	wg.Wait()
}

func Example() {
	editorIn, agentOut := io.Pipe()
	agentIn, editorOut := io.Pipe()

	// The agent's side: one outbox, one stream, one peer.
	out := rpc.NewOutbox(agentOut, rpc.OutboxOptions{})
	agent := rpc.NewPeer(rpc.NewLineStream(agentIn, out, rpc.StreamOptions{}), rpc.PeerOptions{
		Handler: func(ctx context.Context, r *rpc.Request) (any, error) {
			if r.Method != "session/prompt" {
				return nil, rpc.MethodNotFound(r.Method)
			}
			r.Async() // the editor may cancel while this runs
			for _, word := range []string{"hel", "lo"} {
				note := &rpc.Note{Method: "session/update", Key: "s1", Params: []string{word}}
				if err := out.Post(ctx, note); err != nil { // before the answer, always
					return nil, err
				}
			}
			return map[string]string{"stopReason": "end_turn"}, nil
		},
	})
	defer agent.Close()

	editor := rpc.NewPeer(rpc.NewLineStream(editorIn, editorOut, rpc.StreamOptions{}), rpc.PeerOptions{
		Handler: func(_ context.Context, r *rpc.Request) (any, error) {
			fmt.Printf("%s %s\n", r.Method, r.Params)
			return nil, nil
		},
	})
	defer editor.Close()
	var answer struct{ StopReason string }
	err := editor.Call(context.Background(), "session/prompt", nil, &answer)
	fmt.Println(answer.StopReason, err)
	// Output:
	// session/update ["hel"]
	// session/update ["lo"]
	// end_turn <nil>
}
