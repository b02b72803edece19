package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// counted counts the transactions of a backend.
type counted struct {
	backend
	begun atomic.Int64
}

func (c *counted) begin(ctx context.Context, w *writeQueue, d *sql.DB) (*sql.Tx, error) {
	c.begun.Add(1)
	return c.backend.begin(ctx, w, d)
}

// What follows a commit at once is written together, until a caller waits for it or the store is closed.
func TestEventsGatherAfterACommit(t *testing.T) {
	for name, wait := range map[string]func(*Store) error{
		"a caller waits":      func(s *Store) error { return s.Sync(t.Context()) },
		"the store is closed": func(s *Store) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			s := newStore(t, path)
			c := &counted{backend: s.b}
			s.b, s.gather = c, time.Hour
			event := func(seq int64) {
				s.Append("a", Event{Seq: seq, Time: time.Now().UTC(), Type: "text", Data: fmt.Appendf(nil, `{"n":%d}`, seq)})
			}
			event(1)
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := c.begun.Load()
			for seq := range int64(20) {
				event(2 + seq)
			}
			if err := wait(s); err != nil {
				t.Fatal(err)
			}
			if n := c.begun.Load() - before; n != 1 {
				t.Errorf("20 events in %d transactions", n)
			}
			if s.Close() != nil {
				t.Fatal("not closed")
			}
			wantSeqs(t, read(t, newStore(t, path), "a", 0), 1, 21)
		})
	}
}

// A caller who waits does not wait for a pause of the writer, even where others append behind it.
func TestAPauseEndsForWhoeverWaits(t *testing.T) {
	s := newStore(t, file(t))
	w := s.writeQueue
	for name, c := range map[string]struct {
		ends  func(op) bool
		queue []op
		now   bool
	}{
		"nobody waits":             {waitedFor, []op{{event: &Event{}}}, false},
		"a caller at the end":      {waitedFor, []op{{event: &Event{}}, {done: make(chan error, 1)}}, true},
		"a caller, and an event":   {waitedFor, []op{{done: make(chan error, 1)}, {event: &Event{}}}, true},
		"told when committed":      {awaited, []op{{after: func() {}}, {event: &Event{}}}, true},
		"told, after a failure":    {waitedFor, []op{{after: func() {}}}, false},
		"all in the spool":         {unspooled, []op{{event: &Event{}, spooled: true}}, false},
		"not all are in the spool": {unspooled, []op{{event: &Event{}}, {event: &Event{}, spooled: true}}, true},
	} {
		w.mu.Lock()
		w.queue = c.queue
		w.mu.Unlock()
		length := time.Millisecond
		if c.now {
			length = time.Hour
		}
		done := make(chan struct{})
		began := time.Now()
		go func() {
			w.pause(length, c.ends)
			close(done)
		}()
		<-done
		if !c.now && time.Since(began) < length {
			t.Errorf("%s: the pause ended too soon", name)
		}
	}
	w.queue = nil
}
