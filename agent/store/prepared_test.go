package store

import (
	"fmt"
	"testing"
)

// What is asked again and again is parsed once, whatever is asked besides, and however many rows come at a time.
func TestStatementsAreKept(t *testing.T) {
	s := newStore(t, file(t))
	seq := int64(0)
	for n := 1; n < 70; n += 9 {
		var batch []Event
		for range n {
			seq++
			batch = append(batch, event(seq, fmt.Sprint("event ", seq)))
		}
		s.Append("a", batch...)
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantSeqs(t, read(t, s, "a", 0), 1, seq)
	s.openMu.Lock()
	writes, reads := s.writes, s.reads
	s.openMu.Unlock()
	for _, q := range insertTexts() {
		if st, _ := writes.look(q, false); st == nil {
			t.Errorf("not ready: %.60s… (%d bytes)", q, len(q))
		}
	}
	for i := range 2 * maxPrepared {
		var got int
		if err := (db{s.read, s.b, reads}).QueryRow(t.Context(), fmt.Sprint("SELECT ", i)).Scan(&got); err != nil || got != i {
			t.Fatalf("%d: %d, %v", i, got, err)
		}
	}
	if n := len(reads.ready); n != maxPrepared {
		t.Errorf("%d statements are kept, %d is the bound", n, maxPrepared)
	}
	if err := (db{s.read, s.b, reads}).QueryRow(t.Context(), "SELECT nothing FROM nowhere").Scan(new(int)); err == nil {
		t.Error("a query that is wrong did not fail")
	}
}
