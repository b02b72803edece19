package store

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		if err := s.PutChange(t.Context(), Change{ID: "c", Session: "a", Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]int{"a": 0, "child": 0, "b": 1} {
			if got := len(read(t, s, id, 0)); got != want {
				t.Errorf("%s has %d events, want %d", id, got, want)
			}
		}
		if changes, err := s.Changes(t.Context(), "a"); err != nil || len(changes) != 0 {
			t.Errorf("changes %v, %v", changes, err)
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

func TestJournalKeepsWhatWasNotEnded(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		path := where
		s := New(path)
		for _, id := range []string{"one", "two"} {
			if err := s.Begin(t.Context(), id, []byte("data "+id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Begin(t.Context(), "two", []byte("again")); err != nil {
			t.Fatal(err)
		}
		if err := s.End(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		s.Close()
		s = newStore(t, path)
		got, err := s.Pending(t.Context())
		if err != nil || len(got) != 1 || got[0].ID != "two" || string(got[0].Data) != "again" || got[0].PID != os.Getpid() {
			t.Fatalf("got %+v, %v", got, err)
		}
	})
}

func TestANumberTakenTwiceLosesNothing(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		s := newStore(t, where)
		s.Append("a", event(1, "x"), event(2, "mine"))
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Append("a", event(2, "theirs"), event(2, "mine"))
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := read(t, s, "a", 0)
		wantSeqs(t, got, 1, 3)
		if string(got[1].Data) != `{"text":"mine"}` || string(got[2].Data) != `{"text":"theirs"}` {
			t.Fatalf("got %s, %s", got[1].Data, got[2].Data)
		}
	})
}

// watch hears what OnProblem says.
func watch(s *Store) <-chan error {
	said := make(chan error, 16)
	s.OnProblem(func(err error) { said <- err })
	return said
}

func TestFullDiskKeepsTheSessionInMemoryAndSavesLater(t *testing.T) {
	s := newStore(t, file(t))
	seen := watch(s)
	s.Append("a", event(1, "before"))
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	var pages int
	if err := db.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(fmt.Sprintf("PRAGMA max_page_count=%d", pages)); err != nil { // what a full disk looks like to SQLite
		t.Fatal(err)
	}
	s.Append("a", event(2, strings.Repeat("x", 100_000)), event(3, "y"))
	var p *Problem
	if err := s.Sync(t.Context()); !errors.As(err, &p) || p.Kind != ProblemFull || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("got %v", err)
	}
	if err := <-seen; err == nil {
		t.Fatal("OnProblem said nil first")
	}
	if _, err := s.AddGrant(t.Context(), Grant{Project: "/" + strings.Repeat("x", 100_000)}); !errors.As(err, &p) {
		t.Fatalf("a grant on a full disk: %v", err)
	}
	wantSeqs(t, read(t, s, "a", 0), 1, 3)
	if last, err := s.LastSeq(t.Context(), "a"); err != nil || last != 3 {
		t.Fatalf("last is %d, %v", last, err)
	}
	if _, err := db.Exec("PRAGMA max_page_count=1000000"); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-seen; err != nil {
		t.Fatalf("not told that it is well again: %v", err)
	}
	wantSeqs(t, read(t, s, "a", 0), 1, 3)
	if s.Problem() != nil {
		t.Fatal(s.Problem())
	}
}

func TestALockedFileIsReportedAndReadOn(t *testing.T) {
	path := file(t)
	s := newStore(t, path)
	s.b.(*sqlite).busyTimeout = 20 * time.Millisecond
	s.Append("a", event(1, "x"))
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", s.b.(*sqlite).dsn(true))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	s.Append("a", event(2, "y"))
	var p *Problem
	if err := s.Sync(t.Context()); !errors.As(err, &p) || p.Kind != ProblemLocked {
		t.Fatalf("got %v", err)
	}
	wantSeqs(t, read(t, s, "a", 0), 1, 2)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSeqs(t, read(t, s, "a", 0), 1, 2)
}

func TestAFileThatIsNotOursIsLeftAlone(t *testing.T) {
	foreignDB := func(t *testing.T, path string, statements ...string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, q := range statements {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		kind ProblemKind
	}{
		{"newer", func(t *testing.T, path string) {
			foreignDB(t, path, "CREATE TABLE schema_version(version INTEGER PRIMARY KEY, applied INTEGER)", "INSERT INTO schema_version VALUES (999, 0)")
		}, ProblemNewer},
		{"another program's", func(t *testing.T, path string) { foreignDB(t, path, "CREATE TABLE bookmarks(url)") }, ProblemForeign},
		{"not a database", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("this is a text file\n", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ProblemDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.db")
			c.make(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := New(path)
			s.Append("a", event(1, "x"))
			var p *Problem
			if err := s.Sync(t.Context()); !errors.As(err, &p) || p.Kind != c.kind || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v", err)
			}
			wantSeqs(t, read(t, s, "a", 0), 1, 1)
			if err := s.Close(); err == nil {
				t.Error("Close did not say that the session is not saved")
			}
			after, err := os.ReadFile(path)
			if err != nil || string(before) != string(after) {
				t.Fatalf("the file was changed (%v)", err)
			}
		})
	}
}

func TestATornFileIsReported(t *testing.T) {
	path := file(t)
	s := New(path)
	for i := int64(1); i <= 5000; i++ {
		s.Append("a", event(i, strings.Repeat("x", 100)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("\xff", 300_000)), 4096*2); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s = newStore(t, path)
	err = s.Events(t.Context(), "a", 0, func(Event) error { return nil })
	var p *Problem
	if !errors.As(err, &p) || p.Kind != ProblemDamaged {
		t.Fatalf("got %v", err)
	}
}

func TestClosedStoreAnswers(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		s := New(where)
		s.Append("a", event(1, "x"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.Append("a", event(2, "dropped"))
		if _, err := s.AddGrant(t.Context(), Grant{}); !errors.Is(err, ErrClosed) {
			t.Fatalf("got %v", err)
		}
	})
}

// child runs this test binary again in another role.
func child(t *testing.T, role string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PILLION_STORE_CHILD="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

// childAppend appends for ever and says after each Sync how far it got.
func childAppend() {
	s := New(os.Args[1])
	for seq := int64(1); ; seq++ {
		s.Append(os.Args[2], event(seq, strings.Repeat("y", 200)))
		if seq%50 == 0 {
			if err := s.Sync(context.Background()); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			fmt.Println(seq)
		}
	}
}

func childLock() {
	s := New(os.Args[1])
	if _, err := s.Lock(context.Background(), os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	select {}
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	text, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

func TestKillMinusNineInMidWrite(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		path := where
		for round := range 5 {
			session := fmt.Sprint("s", round)
			cmd, out := child(t, "append", path, session)
			var synced int64
			for range 3 + round {
				if _, err := fmt.Sscan(line(t, out), &synced); err != nil {
					t.Fatal(err)
				}
			}
			cmd.Process.Kill()
			cmd.Wait()
			s := New(path)
			got := read(t, s, session, 0)
			if int64(len(got)) < synced {
				t.Fatalf("%d events were synced, %d are left", synced, len(got))
			}
			wantSeqs(t, got, 1, int64(len(got)))
			if !IsServer(where) {
				var check string
				db, err := s.open()
				if err == nil {
					err = db.QueryRow("PRAGMA integrity_check").Scan(&check)
				}
				if err != nil || check != "ok" {
					t.Fatalf("integrity: %q, %v", check, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestTwoProcessesOnOneNewFile(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		path := where
		_, out1 := child(t, "append", path, "one")
		_, out2 := child(t, "append", path, "two")
		s := newStore(t, path)
		for i := int64(1); i <= 200; i++ {
			s.Append("mine", event(i, "x"))
			if i%20 == 0 {
				if err := s.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 10 {
			for _, out := range []*bufio.Reader{out1, out2} {
				if text := line(t, out); strings.HasPrefix(text, "error") {
					t.Fatal(text)
				}
			}
		}
		wantSeqs(t, read(t, s, "mine", 0), 1, 200)
		for _, id := range []string{"one", "two"} {
			got := read(t, s, id, 0)
			if len(got) < 500 {
				t.Errorf("%s: %d events", id, len(got))
			}
			wantSeqs(t, got, 1, int64(len(got)))
		}
	})
}

func TestASessionHasOneWriterAmongProcesses(t *testing.T) {
	both(t, func(t *testing.T, where string) {
		path := where
		s := newStore(t, path)
		cmd, out := child(t, "lock", path, "a")
		if got := line(t, out); got != "locked" {
			t.Fatal(got)
		}
		var locked *LockedError
		if _, err := s.Lock(t.Context(), "a"); !errors.As(err, &locked) || locked.PID != cmd.Process.Pid {
			t.Fatalf("got %v", err)
		}
		other, err := s.Lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		cmd.Process.Kill()
		cmd.Wait()
		unlock, err := s.Lock(t.Context(), "a")
		if err != nil {
			t.Fatalf("the lock outlived its process: %v", err)
		}
		unlock()
		if left, _ := os.ReadDir(filepath.Join(filepath.Dir(path), "locks")); !IsServer(where) && len(left) != 0 {
			t.Errorf("lock files left: %v", left)
		}
	})
}

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
