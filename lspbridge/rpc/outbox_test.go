package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// gate is a writer that blocks until it is opened.
type gate struct {
	mu   sync.Mutex
	b    bytes.Buffer
	open chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

func chunk(text string) *Note {
	return &Note{Method: "u", Key: "s1", Params: []string{text}, Merge: func(n, next *Note) bool {
		n.Params = []string{n.Params.([]string)[0] + next.Params.([]string)[0]}
		return true
	}}
}

func TestOutboxMergesOnlyWhatStaysInOrder(t *testing.T) {
	synctest.Test(t, testMerge)
}

func testMerge(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	q := NewOutbox(g, OutboxOptions{})
	ctx := t.Context()
	_, _ = q.Write([]byte("first\n")) // taken by the goroutine at once, and is in the gate
	synctest.Wait()
	for _, s := range []string{"a", "b", "c"} {
		_ = q.Post(ctx, chunk(s))
	}
	_, _ = q.Write([]byte("answer\n"))
	_ = q.Post(ctx, chunk("d"))
	_ = q.Post(ctx, &Note{Method: "u", Key: "s2", Params: []string{"other"}})
	_ = q.Post(ctx, chunk("e"))
	close(g.open)
	if err := q.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	want := `first
{"jsonrpc":"2.0","method":"u","params":["abc"]}
answer
{"jsonrpc":"2.0","method":"u","params":["de"]}
{"jsonrpc":"2.0","method":"u","params":["other"]}
`
	if got := g.b.String(); got != want {
		t.Errorf("left as\n%s\nwant\n%s", got, want)
	}
	_ = q.Close()
	<-q.Done()
}

func TestOutboxBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		q := NewOutbox(g, OutboxOptions{MaxBytes: 1000})
		big := bytes.Repeat([]byte("x"), 2000)
		_, _ = q.Write(big)
		synctest.Wait()
		_, _ = q.Write(big) // never waits
		posted := make(chan error, 1)
		go func() { posted <- q.Post(t.Context(), &Note{Method: "late"}) }()
		synctest.Wait()
		select {
		case err := <-posted:
			t.Fatalf("Post went through a full box: %v", err)
		default:
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Post(ctx, &Note{Method: "m"}); !errors.Is(err, context.Canceled) {
			t.Errorf("Post with an ended context: %v", err)
		}
		close(g.open)
		if err := <-posted; err != nil {
			t.Error(err)
		}
		_ = q.Close()
		<-q.Done()
		if !strings.HasSuffix(g.b.String(), `"method":"late","params":null}`+"\n") {
			t.Errorf("Close lost what waited: …%s", g.b.String()[max(0, g.b.Len()-80):])
		}
	})
}

func TestOutboxWriterFails(t *testing.T) {
	r, w := io.Pipe()
	_ = r.CloseWithError(errors.New("peer gone"))
	q := NewOutbox(w, OutboxOptions{})
	_, _ = q.Write([]byte("x"))
	<-q.Done()
	if _, err := q.Write([]byte("y")); err == nil || err.Error() != "peer gone" {
		t.Errorf("second write: %v", err)
	}
	if err := q.Flush(t.Context()); err == nil {
		t.Error("Flush of a broken box went well")
	}
}

func TestOutboxKeepsOrderOfManyWriters(t *testing.T) {
	var b bytes.Buffer
	q := NewOutbox(&b, OutboxOptions{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				_, _ = q.Write(fmt.Appendf(nil, "%d %d\n", w, i))
			}
		})
	}
	wg.Wait()
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := map[int]int{}
	for line := range strings.Lines(b.String()) {
		var w, i int
		_, _ = fmt.Sscanf(line, "%d %d", &w, &i)
		if next[w] != i {
			t.Fatalf("writer %d: %d came before %d", w, i, next[w])
		}
		next[w]++
	}
	_ = q.Close()
	<-q.Done()
}
