package store

import (
	"fmt"
	"testing"
	"time"
)

func TestAHundredThousandEvents(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		path := where
		s := New(path)
		for i := int64(1); i <= 100_000; i++ {
			s.Append(fmt.Sprint("s", i%10), Event{Seq: (i-1)/10 + 1, Time: time.Unix(i, 0), Type: "text", Data: []byte(`{"messageID":"msg_1","text":"some words"}`)})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = newStore(t, path)
		for i := range 10 {
			wantSeqs(t, read(t, s, fmt.Sprint("s", i), 0), 1, 10_000)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	s := newStore(b, file(b))
	e := event(1, "word")
	b.ReportAllocs()
	for b.Loop() {
		e.Seq++
		s.Append("a", e)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkAppendDurably(b *testing.B) {
	s := newStore(b, file(b))
	e := event(1, "word")
	const n = 20_000
	for b.Loop() {
		for range n {
			e.Seq++
			s.Append("a", e)
		}
		if err := s.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkAppendAndSync(b *testing.B) {
	s := newStore(b, file(b))
	e := event(1, "word")
	for b.Loop() {
		e.Seq++
		s.Append("a", e)
		if err := s.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
