package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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

// Damage that the first read finds is repaired before the read answers, whatever is read first; what is lost is said.
func TestATornFileIsRepairedBeforeTheFirstAnswer(t *testing.T) {
	reads := map[string]func(s *Store) error{
		"events":   func(s *Store) error { return s.Events(t.Context(), "a", 0, func(Event) error { return nil }) },
		"last":     func(s *Store) error { _, err := s.LastSeq(t.Context(), "a"); return err },
		"sessions": func(s *Store) error { _, err := s.Sessions(t.Context(), ""); return err },
		"grants":   func(s *Store) error { _, err := s.Grants(t.Context(), ""); return err },
		"scan": func(s *Store) error {
			return s.Scan(t.Context(), time.Time{}, []string{"text"}, func(Session, Event) error { return nil })
		},
	}
	for name, first := range reads {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			s := New(path)
			s.PutSession(Session{ID: "a", Cwd: "/p"})
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
			if _, err := f.WriteAt([]byte(strings.Repeat("\xff", 300_000)), 4096*2); err != nil { // the roots of all tables, and some events
				t.Fatal(err)
			}
			f.Close()
			s = newStore(t, path)
			said := watch(s)
			if err := first(s); err != nil {
				t.Fatal(err)
			}
			var p *Problem
			if err := <-said; !errors.As(err, &p) || p.Kind != ProblemSalvaged {
				t.Errorf("said %v", err)
			}
			if aside, _ := filepath.Glob(path + ".damaged-*"); len(aside) != 1 {
				t.Errorf("kept %v", aside)
			}
			var n int
			list, err := s.Sessions(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range list {
				if err := s.Events(t.Context(), h.ID, 0, func(Event) error { n++; return nil }); err != nil {
					t.Error(err)
				}
			}
			if n < 2000 {
				t.Errorf("%d of 5000 events are left", n)
			}
		})
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
