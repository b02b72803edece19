package store

import (
	"testing"
	"time"
)

// The clock of a machine jumps: back by years after a dead battery, ahead, to before 1970. Numbers are the order, not times.
func TestAClockThatJumpsChangesNoOrder(t *testing.T) {
	path := file(t)
	s := newStore(t, path)
	day := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clock := []time.Time{day, day.Add(-30 * 365 * 24 * time.Hour), time.Unix(-1000, 0).UTC(), day.Add(80 * 365 * 24 * time.Hour), day.Add(time.Second)}
	for i, now := range clock {
		s.Append("a", Event{Seq: int64(i + 1), Time: now, Type: "text", Data: []byte(`{}`)})
		s.PutSession(Session{ID: "a", Cwd: "/p", Created: clock[0], Updated: now, Info: []byte(`{}`)})
	}
	s.PutSession(Session{ID: "b", Cwd: "/p", Created: clock[1], Updated: clock[1], Info: []byte(`{}`)}) // made by a clock that was behind
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, path)
	got := read(t, s, "a", 0)
	wantSeqs(t, got, 1, int64(len(clock)))
	for i, e := range got {
		if !e.Time.Equal(clock[i]) {
			t.Errorf("event %d says %v, written at %v", i+1, e.Time, clock[i])
		}
	}
	list, err := s.Sessions(t.Context(), "/p")
	if err != nil || len(list) != 2 || list[0].ID != "a" || list[1].ID != "b" {
		t.Fatalf("%v %v", list, err)
	}
	unlock, err := s.Lock(t.Context(), "b") // a lock does not look at clocks
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	n := 0
	if err := s.Scan(t.Context(), day.Add(-time.Hour), []string{"text"}, func(Session, Event) error { n++; return nil }); err != nil || n == 0 {
		t.Errorf("%d events since then, %v", n, err)
	}
}
