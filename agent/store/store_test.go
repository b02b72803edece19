package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	switch os.Getenv("PILLION_STORE_CHILD") {
	case "":
		code := m.Run()
		stopCluster()
		if err := goleak.Find(); code == 0 && err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	case "append":
		childAppend()
	case "lock":
		childLock()
	}
}

func newStore(t testing.TB, path string) *Store {
	t.Helper()
	s := New(path)
	t.Cleanup(func() { s.Close() })
	return s
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "pillion.db") }

func event(seq int64, text string) Event {
	return Event{Seq: seq, Time: time.Unix(1700000000, int64(seq)*1000).UTC(), Type: "text", Data: []byte(`{"text":"` + text + `"}`)}
}

func read(t testing.TB, s *Store, session string, from int64) []Event {
	t.Helper()
	var out []Event
	if err := s.Events(t.Context(), session, from, func(e Event) error { out = append(out, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantSeqs(t testing.TB, got []Event, from, to int64) {
	t.Helper()
	if len(got) != int(to-from+1) {
		t.Fatalf("got %d events, want %d..%d", len(got), from, to)
	}
	for i, e := range got {
		if e.Seq != from+int64(i) {
			t.Fatalf("event %d has number %d, want %d", i, e.Seq, from+int64(i))
		}
	}
}

func TestNothingIsTouchedBeforeTheFirstUse(t *testing.T) {
	path := file(t)
	s := New(path)
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Fatalf("New or Sync made something: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEventsComeBackAsTheyWere(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		path := where
		s := New(path)
		s.PutSession(Session{ID: "a", Cwd: "/p", Info: []byte(`{"x":1}`), Created: time.Unix(1, 0).UTC(), Updated: time.Unix(2, 0).UTC()})
		var want []Event
		for i := int64(1); i <= 700; i++ {
			want = append(want, event(i, fmt.Sprint("n", i)))
		}
		s.Append("a", want[:300]...)
		for _, e := range want[300:] {
			s.Append("a", e)
		}
		s.Append("b", event(1, "another session's"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}

		s = newStore(t, path)
		got := read(t, s, "a", 0)
		wantSeqs(t, got, 1, 700)
		for i := range want {
			if got[i].Type != want[i].Type || string(got[i].Data) != string(want[i].Data) || !got[i].Time.Equal(want[i].Time) {
				t.Fatalf("event %d: got %+v, want %+v", i+1, got[i], want[i])
			}
		}
		wantSeqs(t, read(t, s, "a", 690), 691, 700)
		if last, err := s.LastSeq(t.Context(), "a"); err != nil || last != 700 {
			t.Fatalf("last is %d, %v", last, err)
		}
		if last, err := s.LastSeq(t.Context(), "nobody"); err != nil || last != 0 {
			t.Fatalf("last of no session is %d, %v", last, err)
		}
	})
}

func TestReadersSeeWhatIsStillQueued(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		s := newStore(t, where)
		for i := int64(1); i <= 2000; i++ {
			s.Append("a", event(i, "x"))
			if i%100 == 0 {
				wantSeqs(t, read(t, s, "a", 0), 1, i)
			}
		}
	})
}

func TestAReaderMayWriteWhileItReads(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		for _, path := range []string{"", where} {
			s := newStore(t, path)
			for i := int64(1); i <= 600; i++ {
				s.Append("a", event(i, "x"))
			}
			n := 0
			err := s.Events(t.Context(), "a", 0, func(e Event) error {
				n++
				if n%200 == 0 {
					s.Append("copy", e)
					return s.Sync(t.Context())
				}
				return nil
			})
			if err != nil || n != 600 {
				t.Fatalf("path %q: %d events, %v", path, n, err)
			}
		}
	})
}

func TestFileAndFolderAreForTheOwnerOnly(t *testing.T) {
	path := file(t)
	s := newStore(t, path)
	s.Append("a", event(1, "x"))
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", p, info.Mode().Perm(), want)
		}
	}
	// A copy or a backup may have brought a file that others can read.
	copied := file(t)
	if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o700), os.WriteFile(copied, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, copied)
	s.Append("a", event(1, "x"))
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v %v", copied, info.Mode(), err)
	}
}

func TestAPathWithSpecialCharacters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20e", "p.db")
	s := newStore(t, path)
	s.Append("a", event(1, "x"))
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
}

func TestSessionsNewestFirst(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		s := newStore(t, where)
		at := func(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
		s.PutSession(Session{ID: "old", Cwd: "/p", Updated: at(1)})
		s.PutSession(Session{ID: "elsewhere", Cwd: "/q", Updated: at(5)})
		s.PutSession(Session{ID: "new", Cwd: "/p", Updated: at(3), Title: "first"})
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.PutSession(Session{ID: "new", Cwd: "/p", Updated: at(4), Title: "renamed"})
		ids := func(cwd string) string {
			all, err := s.Sessions(t.Context(), cwd)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, h := range all {
				out = append(out, h.ID+":"+h.Title)
			}
			return strings.Join(out, " ")
		}
		if got := ids("/p"); got != "new:renamed old:" {
			t.Errorf("got %q", got)
		}
		if got := ids(""); got != "elsewhere: new:renamed old:" {
			t.Errorf("got %q", got)
		}
		if _, err := s.Session(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeleteTakesEventsAndChildrenAlong(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		s := newStore(t, where)
		s.PutSession(Session{ID: "a"})
		s.PutSession(Session{ID: "child", Parent: "a"})
		s.PutSession(Session{ID: "b"})
		for _, id := range []string{"a", "child", "b"} {
			s.Append(id, event(1, "x"))
		}
		if err := s.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]int{"a": 0, "child": 0, "b": 1} {
			if got := len(read(t, s, id, 0)); got != want {
				t.Errorf("%s has %d events, want %d", id, got, want)
			}
		}
		if err := s.Delete(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
			t.Errorf("second delete: %v", err)
		}
	})
}

func TestGrants(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		s := newStore(t, where)
		a, err := s.AddGrant(t.Context(), Grant{Project: "/p", Permission: "edit", Pattern: "*"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.AddGrant(t.Context(), Grant{Project: "/p", Permission: "edit", Pattern: "*"})
		if err != nil || again.ID != a.ID {
			t.Fatalf("the same grant twice: %+v, %v", again, err)
		}
		if _, err := s.AddGrant(t.Context(), Grant{Project: "/q", Permission: "bash", Pattern: "git *"}); err != nil {
			t.Fatal(err)
		}
		if all, err := s.Grants(t.Context(), "/p"); err != nil || len(all) != 1 || all[0] != again {
			t.Fatalf("got %+v, %v", all, err)
		}
		if all, err := s.Grants(t.Context(), ""); err != nil || len(all) != 2 {
			t.Fatalf("got %+v, %v", all, err)
		}
		if err := s.RevokeGrant(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.RevokeGrant(t.Context(), a.ID); !errors.Is(err, ErrNotFound) {
			t.Fatalf("second revoke: %v", err)
		}
	})
}

func TestForgetfulKeepsEverythingButEvents(t *testing.T) {
	s := NewForgetful()
	defer s.Close()
	s.Append("s", Event{Seq: 1, Type: "x", Data: []byte("{}")})
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Events(t.Context(), "s", 0, func(Event) error { t.Error("an event"); return nil }); err != nil {
		t.Fatal(err)
	}
	if s.KeepsEvents() || !New("").KeepsEvents() {
		t.Error("the wrong one forgets")
	}
}

// Whoever hears that something is committed must not find it among what waits: a session that was deleted would still have its
// events for a moment.
func TestWhatIsCommittedHasLeftTheQueueBeforeItsCallerHears(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		s := newStore(t, where)
		s.PutSession(Session{ID: "a"})
		e := event(1, "x")
		waiting := make(chan int, 1)
		s.enqueue(op{session: "a", event: &e, after: func() { waiting <- len(s.queuedEvents("a")) }})
		if n := <-waiting; n != 0 {
			t.Errorf("%d events are still in the queue", n)
		}
	})
}

// TestSessionsOneByOneAreTheList: whatever is on disk or queued, in every folder and behind every session.
func TestSessionsOneByOneAreTheList(t *testing.T) {
	s := newStore(t, file(t))
	r := rand.New(rand.NewPCG(1, 2))
	folders := []string{"/a", "/b"}
	put := func(n int) {
		for range n {
			// Few different times, so that ids decide; some sessions come again, and move.
			id := r.IntN(700)
			s.PutSession(Session{ID: fmt.Sprintf("ses_%03d", id), Cwd: folders[id%2], Created: unixMicro(1), Updated: unixMicro(int64(r.IntN(40))), Info: []byte("{}")})
		}
	}
	put(1500)
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(50) // on disk or still queued, both must be the same
	for _, cwd := range append(folders, "") {
		list, err := s.Sessions(t.Context(), cwd)
		if err != nil || len(list) < 2*headPage {
			t.Fatalf("%d sessions, %v: too few for several pages", len(list), err)
		}
		for _, from := range []int{0, 1, headPage - 1, headPage, headPage + 1, len(list) - 1, len(list)} {
			after := ""
			if from > 0 {
				after = list[from-1].ID
			}
			var got []string
			for h, err := range s.EachSession(t.Context(), cwd, after) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, h.ID+h.Updated.String())
			}
			var want []string
			for _, h := range list[from:] {
				want = append(want, h.ID+h.Updated.String())
			}
			if !slices.Equal(got, want) {
				t.Fatalf("in %q behind %q came\n%s\nnot\n%s", cwd, after, got, want)
			}
		}
	}
	for _, x := range [][2]string{{"", "ses_none"}, {"/nowhere", "ses_000"}} {
		for _, err := range s.EachSession(t.Context(), x[0], x[1]) {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("behind %v came %v", x, err)
			}
		}
	}
}
