package run

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"testing"
)

func TestRingKeepsTheLastBytes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is waited for
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r := newRing(1 + rnd.IntN(50))
		var all []byte
		var place int64
		for range 30 {
			p := make([]byte, rnd.IntN(70))
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
			r.Write(p)
			all = append(all, p...)
			if len(r.buf) > r.size {
				t.Fatalf("%d bytes in a ring of %d", len(r.buf), r.size)
			}
			data, next, lost, err := r.read(ctx, place, 1+rnd.IntN(80))
			first := max(place, int64(len(all)-r.size))
			if err != nil {
				if place != int64(len(all)) {
					t.Fatalf("nothing to read at %d of %d", place, len(all))
				}
				continue
			}
			if lost != first-place || !bytes.Equal(data, all[first:next]) {
				t.Fatalf("ring of %d at %d of %d: lost %d, %d bytes to %d", r.size, place, len(all), lost, len(data), next)
			}
			place = next
		}
		r.end()
		for {
			_, next, _, err := r.read(ctx, place, 7)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			place = next
		}
		if place != int64(len(all)) {
			t.Errorf("ended at %d of %d", place, len(all))
		}
	}
}

// Lines of a pipe end as on a terminal, also where a chunk ends between CR and LF.
func TestLineEnds(t *testing.T) {
	var l, counts lineEnds
	var got string
	for _, chunk := range []string{"a\nb\r", "\nc\r\n", "", "\n", "d\r", "e\n"} {
		more := l.add(nil, []byte(chunk))
		if n := counts.length([]byte(chunk)); n != len(more) {
			t.Errorf("%q: length %d, want %d", chunk, n, len(more))
		}
		got += string(more)
	}
	if want := "a\r\nb\r\nc\r\n\r\nd\re\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A ring that converts late gives the same bytes at the same offsets as one that gets them converted.
func TestRingConvertsLineEndsLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is waited for
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		size := 1 + rnd.IntN(50)
		late, want := newRing(size), newRing(size)
		late.lines = new(lineEnds)
		var l lineEnds
		var place int64
		for range 60 {
			p := make([]byte, rnd.IntN(4*size))
			for i := range p {
				p[i] = "a\r\n\n"[rnd.IntN(4)]
			}
			late.Write(p)
			want.Write(l.add(nil, p))
			if rnd.IntN(3) > 0 {
				continue // several writes between two reads
			}
			limit := 1 + rnd.IntN(80)
			data, next, lost, err := late.read(ctx, place, limit)
			data2, next2, lost2, err2 := want.read(ctx, place, limit)
			if !bytes.Equal(data, data2) || next != next2 || lost != lost2 || err != err2 {
				t.Fatalf("ring of %d at %d: %q to %d, lost %d, %v; want %q to %d, lost %d, %v", size, place, data, next, lost, err, data2, next2, lost2, err2)
			}
			place = next
		}
		if len(late.raw) > 2*size {
			t.Fatalf("%d bytes wait in a ring of %d", len(late.raw), size)
		}
	}
}

// What watching costs a command that floods: yes, 32 KiB at a time.
func BenchmarkFloodWatched(b *testing.B) {
	chunk := bytes.Repeat([]byte("y\n"), 16<<10)
	t := &Terminal{out: newRing(Scrollback)}
	t.out.lines = new(lineEnds)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		_, _ = t.Write(chunk)
	}
}
