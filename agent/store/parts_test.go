package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// longEventOf makes an event of so many bytes, which no two seeds have in common.
func longEventOf(seq int64, size int) Event {
	r := rand.New(rand.NewPCG(uint64(seq), uint64(size)))
	e := event(seq, "")
	const hex = "0123456789abcdef"
	e.Data = make([]byte, size)
	for i := range e.Data {
		e.Data[i] = hex[r.Uint32()&15]
	}
	copy(e.Data, `{"text":"`)
	copy(e.Data[size-2:], `"}`)
	return e
}

// A very long event comes back as it was, among short ones, wherever it is read, and goes with its session.
func TestLongEventsAreStoredInParts(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		s := New(where)
		s.PutSession(Session{ID: "a", Cwd: "/p", Updated: time.Unix(2, 0)})
		s.PutSession(Session{ID: "b", Cwd: "/p", Updated: time.Unix(2, 0)})
		var want []Event
		for i := int64(1); i <= 40; i++ {
			e := event(i, fmt.Sprint("n", i))
			switch i {
			case 1, 17: // the first of a statement, and one in the middle
				e = longEventOf(i, longData+1)
			case 18: // two that follow each other; one ends with a whole part
				e = longEventOf(i, 5*partSize)
			case 30:
				e = longEventOf(i, longData) // not long
			}
			want = append(want, e)
		}
		s.Append("a", want...)
		s.Append("b", longEventOf(1, 5<<20))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = newStore(t, where)
		same := func(a, b Event) bool { return a.Seq == b.Seq && a.Type == b.Type && bytes.Equal(a.Data, b.Data) }
		if got := read(t, s, "a", 0); !slices.EqualFunc(got, want, same) {
			t.Error("read: other events")
		}
		var scanned []Event
		if err := s.Scan(t.Context(), time.Time{}, []string{"text"}, func(h Session, e Event) error {
			if h.ID == "a" {
				scanned = append(scanned, e)
			}
			return nil
		}); err != nil || !slices.EqualFunc(scanned, want, same) {
			t.Error("scan: other events", err)
		}
		// Written again, as after a commit whose answer was lost: the same event is not stored twice, another one gets the next number.
		s.Append("a", want[16], Event{Seq: 17, Time: want[16].Time, Type: "text", Data: longEventOf(99, 5<<20).Data})
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s, "a", 40); len(got) != 1 || got[0].Seq != 41 || !bytes.Equal(got[0].Data, longEventOf(99, 5<<20).Data) {
			t.Errorf("%d events after the conflict", len(got))
		}
		for _, id := range []string{"a", "b"} {
			if err := s.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if left := partsIn(t, where); left != 0 {
			t.Errorf("%d parts are left", left)
		}
	})
}

// partsIn counts the parts in a file; 0 for a server.
func partsIn(t *testing.T, path string) (n int) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return 0
	}
	d, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.QueryRow("SELECT count(*) FROM event_parts").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A long event survives a damaged file, also when the schema is lost with the first page.
func TestLongEventsOfADamagedFile(t *testing.T) {
	for _, schema := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "p.db")
		fill(t, path, 2, 100)
		long := longEventOf(101, 6<<20)
		s := New(path)
		s.Append("s0", long)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(3 * pageSize4k)
		if schema {
			at = 0
		}
		if _, err := f.WriteAt(bytes.Repeat([]byte{7}, pageSize4k), at); err != nil {
			t.Fatal(err)
		}
		f.Close()
		s = newStore(t, path)
		got := read(t, s, "s0", 100)
		if schema && len(got) == 0 { // its session may have lost its head; then it has another id
			continue
		}
		if len(got) != 1 || !bytes.Equal(got[0].Data, long.Data) {
			t.Errorf("schema lost %v: %d events", schema, len(got))
		}
	}
}
