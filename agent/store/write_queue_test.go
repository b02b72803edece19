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
