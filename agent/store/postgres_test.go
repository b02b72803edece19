//go:build unix

package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"
)

func synced(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// elsewhere makes a store that looks like another machine's: a process is one writer, a store another.
func elsewhere(t testing.TB, where string) *Store { return newStore(t, where) }

func TestASessionGoesOnOnAnotherMachine(t *testing.T) {
	where := schema(t)
	a, b := newStore(t, where), elsewhere(t, where)
	for turn := range int64(5) {
		one, first := a, turn*20
		if turn%2 == 1 {
			one = b
		}
		unlock, err := one.Lock(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if last, err := one.LastSeq(t.Context(), "s"); err != nil || last != first {
			t.Fatalf("turn %d sees %d events, %v", turn, last, err)
		}
		for i := int64(1); i <= 20; i++ {
			one.Append("s", event(first+i, "x"))
		}
		unlock() // the next one waits for what is queued
	}
	synced(t, a)
	wantSeqs(t, read(t, b, "s", 0), 1, 100)
}

func TestTwoMachinesDoNotWriteOneSession(t *testing.T) {
	where := schema(t)
	a, b := newStore(t, where), elsewhere(t, where)
	unlock, err := a.Lock(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := b.Lock(t.Context(), "s"); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("got %v", err)
	}
	if _, err := a.Lock(t.Context(), "s"); !errors.As(err, &locked) {
		t.Fatalf("twice in one process: %v", err)
	}
	unlock()
	unlock() // does nothing
	theirs, err := b.Lock(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	theirs()
}

func TestALostConnectionCostsNothing(t *testing.T) {
	where := schema(t)
	s, root := newStore(t, where), admin(t, where+"x")
	unlock, err := s.Lock(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for round := int64(0); round < 4; round++ {
		s.Append("s", event(2*round+1, "x"))
		synced(t, s)
		cut(t, root, where)
		s.Append("s", event(2*round+2, "y"))
		for s.Sync(t.Context()) != nil { // at most once: the connection was cut in use
		}
	}
	wantSeqs(t, read(t, s, "s", 0), 1, 8)
	var locked *LockedError
	if _, err := elsewhere(t, where).Lock(t.Context(), "s"); !errors.As(err, &locked) {
		t.Fatalf("the lock was not taken again: %v", err)
	}
	unlock()
}

func TestASessionTakenOverIsNotMixed(t *testing.T) {
	where := schema(t)
	a, b, root := newStore(t, where), elsewhere(t, where), admin(t, where+"x")
	seen := watch(a)
	if _, err := a.Lock(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	a.Append("s", event(1, "before"))
	synced(t, a)
	cut(t, root, where)
	theirs, err := b.Lock(t.Context(), "s") // the server let go of a dead machine's lock
	if err != nil {
		t.Fatal(err)
	}
	b.Append("s", event(2, "theirs"))
	theirs()
	synced(t, b)
	a.Append("s", event(2, "stale"), event(3, "stale"))
	a.Append("other", event(1, "fine"))
	for a.Sync(t.Context()) != nil {
	}
	var fenced *FencedError
	for err := range seen {
		if errors.As(err, &fenced) {
			break
		}
	}
	if fenced.Session != "s" || fenced.PID != os.Getpid() {
		t.Fatalf("got %+v", fenced)
	}
	got := read(t, b, "s", 0)
	wantSeqs(t, got, 1, 2)
	if !strings.Contains(string(got[1].Data), "theirs") {
		t.Fatalf("got %s", got[1].Data)
	}
	wantSeqs(t, read(t, b, "other", 0), 1, 1)
	if _, err := a.Lock(t.Context(), "s"); !errors.As(err, &fenced) {
		t.Fatalf("a session that fell behind was locked: %v", err)
	}
}

// shut makes the server go away; the address is a folder with a socket like the server's.
func shut(t *testing.T, where string) (gated string, let func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	host := param(t, where, "host")
	return strings.Replace(where, filepath.Base(host), filepath.Base(dir), 1), func() {
		if err := os.Symlink(filepath.Join(host, ".s.PGSQL.5432"), filepath.Join(dir, ".s.PGSQL.5432")); err != nil {
			t.Error(err)
		}
	}
}

func TestAServerThatIsAwayIsCaughtUpWith(t *testing.T) {
	where := schema(t)
	gated, let := shut(t, where)
	s := newStore(t, gated)
	seen := watch(s)
	unlock, err := s.Lock(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	s.PutSession(Session{ID: "s", Cwd: "/p", Updated: time.Unix(1, 0)})
	s.Append("s", event(1, "x"), event(2, "y"))
	var p *Problem
	if err := s.Sync(t.Context()); !errors.As(err, &p) || p.Kind != ProblemAway || !strings.Contains(err.Error(), "does not answer") {
		t.Fatalf("got %v", err)
	}
	if err := <-seen; err == nil {
		t.Fatal("OnProblem said nil first")
	}
	wantSeqs(t, read(t, s, "s", 0), 1, 2)
	let()
	synced(t, s)
	if err := <-seen; err != nil {
		t.Fatalf("not told that it is well again: %v", err)
	}
	other := elsewhere(t, where)
	wantSeqs(t, read(t, other, "s", 0), 1, 2)
	var locked *LockedError
	if _, err := other.Lock(t.Context(), "s"); !errors.As(err, &locked) {
		t.Fatalf("the lock was not taken when the server came: %v", err)
	}
	unlock()
}

func TestWhatWasSaidAwayDoesNotGoOverWhatOthersSaid(t *testing.T) {
	where := schema(t)
	b := newStore(t, where)
	b.Append("s", event(1, "theirs"))
	synced(t, b)
	gated, let := shut(t, where)
	a := newStore(t, gated)
	seen := watch(a)
	if _, err := a.Lock(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	a.Append("s", event(1, "mine"))
	if err := a.Sync(t.Context()); err == nil {
		t.Fatal("the server is away")
	}
	let()
	synced(t, a)
	var fenced *FencedError
	for err := range seen {
		if errors.As(err, &fenced) {
			break
		}
	}
	wantSeqs(t, read(t, b, "s", 0), 1, 1)
}

func TestOddTextStopsNothing(t *testing.T) {
	where := schema(t)
	s := newStore(t, where)
	cwd := "/p\xff\x00x"
	s.PutSession(Session{ID: "a\x00", Cwd: cwd, Title: "\xfe", Info: []byte("{}")})
	s.Append("a\x00", Event{Seq: 1, Type: "t\x00"}, event(2, "x"))
	if _, err := s.AddGrant(t.Context(), Grant{Project: cwd, Permission: "edit", Pattern: "\xff"}); err != nil {
		t.Fatal(err)
	}
	synced(t, s)
	if all, err := s.Sessions(t.Context(), cwd); err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if all, err := s.Grants(t.Context(), cwd); err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	wantSeqs(t, read(t, s, "a\x00", 0), 1, 2)
	if _, err := s.Session(t.Context(), "no\x00body"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

func TestNoPartOfAWrongAddressIsTold(t *testing.T) {
	for _, where := range []string{
		"postgres://u:sesame/x@host/db", "postgres://u:sesame%zz@host/db", "postgres://u:sesame x@host/db", "postgres://u:1@sesame:sesame/db",
		"postgres://u:x?sesame@host/db", "postgres://u:sesame#1@host/db", "host=h password=open sesame", "host=h password='sesame", `host=h password=sesame\`,
		"postgres://u:sesame@host:port/db", "postgres://u:sesame@host/db?sslmode=maybe", "postgres://u:sesame@host/db?connect_timeout=x",
	} {
		p := newPostgres(where)
		_, _, err := p.config()
		if err == nil {
			continue // the driver understands some of these, in another way than they were meant
		}
		if said := p.explain(err).Error() + p.name(); strings.Contains(said, "sesame") || !strings.Contains(said, "postgres://user@host/database") {
			t.Errorf("%s: %s", where, said)
		}
	}
	if _, _, err := newPostgres("postgres://u:sesame@host/db?sslmode=maybe").config(); err == nil || !strings.Contains(err.Error(), "sslmode") {
		t.Errorf("a wrong setting is not named: %v", err)
	}
}

func TestAServerIsAskedForEncryption(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	os.Unsetenv("PGSSLMODE") // Setenv puts back what was there
	for query, want := range map[string]pq.SSLMode{"": "prefer", "?sslmode=verify-full": "verify-full", "?sslmode=disable": "disable"} {
		if c, _, err := newPostgres("postgres://u@host/db" + query).config(); err != nil || c.SSLMode != want {
			t.Errorf("%q: %q, %v", query, c.SSLMode, err)
		}
	}
}

func TestAWholeTransactionOfEvents(t *testing.T) {
	s := newStore(t, schema(t))
	const n = 3*maxBatch + 1
	all := make([]Event, n)
	for i := range all {
		all[i] = event(int64(i)+1, "x")
	}
	s.Append("s", all...)
	synced(t, s)
	wantSeqs(t, read(t, s, "s", 0), 1, n)
}

func TestServersThatCannotBeUsedAreExplained(t *testing.T) {
	where := schema(t)
	root := admin(t, where)
	name := param(t, where, "search_path")
	// Unlike a schema a role is of the whole server, which an earlier run of this test in the same process has used.
	for _, q := range []string{"DROP ROLE IF EXISTS nothing", "CREATE ROLE nothing LOGIN", "CREATE SCHEMA " + name + "f", "CREATE TABLE " + name + "f.bookmarks(url text)",
		"CREATE SCHEMA " + name + "n", "CREATE TABLE " + name + "n.schema_version(version integer, applied bigint)", "INSERT INTO " + name + "n.schema_version VALUES (999, 0)"} {
		if _, err := root.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, where string
		kind        ProblemKind
		says        string
	}{
		{"no database", strings.Replace(where, "///postgres", "///nowhere", 1), ProblemOther, "createdb"},
		{"no such user", strings.Replace(where, "tester", "stranger", 1), ProblemOther, "user or password"},
		{"no rights", strings.Replace(where, "tester", "nothing", 1), ProblemReadOnly, "CREATE on the database"},
		{"another program's", where + "&search_path=" + name + "f", ProblemForeign, "another program"},
		{"newer", where + "&search_path=" + name + "n", ProblemNewer, "newer Pillion"},
		{"no address", "postgres://u:sesame@[::1", ProblemOther, "postgres://user@host/database"},
		{"nobody there", "postgres://u:sesame@127.0.0.1:1/x", ProblemAway, "does not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(c.where, "search_path") > 1 {
				c.where = strings.Replace(c.where, "search_path="+name+"&", "", 1)
			}
			s := New(c.where)
			defer s.Close()
			s.Append("a", event(1, "x"))
			err := s.Sync(t.Context())
			var p *Problem
			if !errors.As(err, &p) || p.Kind != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error()+s.Path(), "sesame") {
				t.Fatalf("the password is told: %v", err)
			}
			wantSeqs(t, read(t, s, "a", 0), 1, 1)
		})
	}
}
