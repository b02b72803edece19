package store

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopServer stops the real server and all its children as a frozen machine would be: connections stay, answers do not come.
func stopServer(t *testing.T) (resume func()) {
	t.Helper()
	was := serverPatience.Load()
	serverPatience.Store(int64(3 * time.Second)) // far more than any call that waits for nothing takes on a busy machine
	pids := []int{cluster.cmd.Process.Pid}
	procs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range procs {
		stat, _ := os.ReadFile(p)
		rest := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil && len(rest) > 1 && rest[1] == strconv.Itoa(pids[0]) {
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	done := false
	resume = func() {
		if !done {
			done = true
			serverPatience.Store(was) // a server that runs may be silent for as long on a busy machine
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
	}
	t.Cleanup(resume)
	return resume
}

// atServer waits until the server has everything. On a loaded machine a commit may be so slow that Sync is content with the spool.
func atServer(t *testing.T, s *Store, dir string) {
	t.Helper()
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		left, _ := filepath.Glob(filepath.Join(dir, "*.spool"))
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still in the spool: %v", left)
		}
	}
}

// A server that stops answering: what was said is safe on this machine within seconds, reads and locks fail soon and then at once, and
// when it answers again it gets everything, in order and once.
func TestServerThatStops(t *testing.T) {
	where, dir := schema(t), t.TempDir()
	s := newStore(t, where)
	s.SpoolIn(dir)
	said := watch(s)
	s.PutSession(Session{ID: "a", Cwd: "/p"})
	s.Append("a", event(1, "x"), event(2, "y"))
	atServer(t, s, dir)
	read(t, s, "a", 0)
	resume := stopServer(t)
	within := func(what string, d time.Duration, f func()) {
		t.Helper()
		start := time.Now()
		f()
		if took := time.Since(start); took > d {
			t.Errorf("%s took %v", what, took)
		}
	}
	s.Append("a", event(3, "stopped"))
	within("the first wait", 20*time.Duration(serverPatience.Load()), func() {
		if err := s.Sync(t.Context()); err != nil {
			t.Errorf("not safe: %v", err)
		}
	})
	var p *Problem
	if err := <-said; !errors.As(err, &p) || p.Kind != ProblemAway || p.Kept == "" {
		t.Errorf("said %v", err)
	} else if text, err := os.ReadFile(p.Kept); err != nil || !strings.Contains(string(text), `"Seq":3`) {
		t.Errorf("the file has %s (%v)", text, err)
	}
	// atOnce runs f ten times. After a call that waited for the server the next ones fail at once, for as long as awayPause.
	atOnce := func(what string, f func()) {
		t.Helper()
		began, slow := time.Now(), 0
		for range 10 {
			start := time.Now()
			f()
			if time.Since(start) >= time.Duration(serverPatience.Load()) {
				slow++
			}
		}
		if may := 1 + int(time.Since(began)/awayPause); slow > may {
			t.Errorf("%d of ten %s waited for the server, want %d at most", slow, what, may)
		}
	}
	seq := int64(3)
	atOnce("writes", func() {
		seq++
		s.Append("a", event(seq, "more"))
		if err := s.Sync(t.Context()); err != nil {
			t.Errorf("not safe: %v", err)
		}
	})
	atOnce("reads", func() {
		if _, err := s.Grants(t.Context(), ""); err == nil {
			t.Error("read grants of a stopped server")
		}
	})
	within("a lock", 12*connectPatience, func() {
		unlock, err := s.Lock(t.Context(), "b")
		if err != nil {
			t.Error(err)
		} else {
			unlock()
		}
	})
	resume()
	for err := range said {
		if err == nil {
			break
		}
	}
	wantSeqs(t, read(t, s, "a", 0), 1, 13)
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The process ends while the server is stopped; the next one stores what it left, once, and not over what others did since.
func TestSpoolOfADeadProcess(t *testing.T) {
	where, dir := schema(t), t.TempDir()
	first := newStore(t, where)
	first.SpoolIn(dir)
	first.PutSession(Session{ID: "a", Cwd: "/p"})
	first.PutSession(Session{ID: "b", Cwd: "/p"})
	first.Append("a", event(1, "x"))
	first.Append("b", event(1, "x"))
	atServer(t, first, dir)
	resume := stopServer(t)
	first.Append("a", event(2, "kept"))
	first.Append("b", event(2, "ours"), event(3, "ours"))
	if err := first.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Errorf("everything is in the spool, but Close says %v", err)
	}
	first.spool.file.Close() // the process is dead: its lock is gone
	resume()

	other := newStore(t, where) // another machine
	other.Append("b", event(2, "theirs"))
	if err := other.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}

	for range 2 { // the second finds nothing left
		next := newStore(t, where)
		next.SpoolIn(dir)
		said := watch(next)
		wantSeqs(t, read(t, next, "a", 0), 1, 2)
		if err := next.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := read(t, other, "b", 0)
		wantSeqs(t, got, 1, 2)
		if string(got[1].Data) != `{"text":"theirs"}` {
			t.Errorf("b has %s", got[1].Data)
		}
		select {
		case err := <-said:
			var p *Problem
			if !errors.As(err, &p) || p.Kind != ProblemSalvaged || !strings.Contains(p.Message, "1 session") {
				t.Errorf("said %v", err)
			}
		default:
		}
		wantSeqs(t, read(t, other, "a", 0), 1, 2)
		_ = next.Close()
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.kept")); len(left) != 1 {
		t.Errorf("what could not be stored is gone: %v", left)
	}
}

// A prompt is safe long before the connection's time-out tells that the server is silent: a process that is killed meanwhile loses nothing,
// and what the server got in the end is not stored twice.
func TestSlowCommitIsSpooled(t *testing.T) {
	where, dir := schema(t), t.TempDir()
	first := newStore(t, where)
	first.SpoolIn(dir)
	first.PutSession(Session{ID: "a", Cwd: "/p"})
	first.Append("a", event(1, "x"))
	atServer(t, first, dir)
	resume := stopServer(t)
	serverPatience.Store(int64(time.Minute)) // nothing below waits for it
	for i := range 3 {
		first.Append("a", event(int64(i)+2, "prompt"))
		if err := first.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.spool"))
	if len(names) != 1 {
		t.Fatalf("spool files: %v", names)
	}
	text, err := os.ReadFile(names[0])
	if err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("the file has %s (%v)", text, err)
	}
	// What a killed process leaves: its file, while the server may still get what was sent.
	killed := t.TempDir()
	if err := os.WriteFile(filepath.Join(killed, filepath.Base(names[0])), text, 0o600); err != nil {
		t.Fatal(err)
	}
	resume()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	next := newStore(t, where)
	next.SpoolIn(killed)
	if _, err := next.Grants(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := next.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSeqs(t, read(t, next, "a", 0), 1, 4)
}

// The connection of a process that was killed may hold the lock of its session until the server notices. What the process left is then
// stored a moment later; it is not taken for a session that another machine has continued.
func TestSpoolOfAProcessWhoseConnectionLives(t *testing.T) {
	where, dir := schema(t), t.TempDir()
	dead := newStore(t, where)
	dead.PutSession(Session{ID: "a", Cwd: "/p"})
	dead.Append("a", event(1, "x"))
	if err := dead.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock, err := dead.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	sp := &spool{dir: dir, server: dead.Path()}
	e := event(2, "left")
	if err := sp.save([]*op{{session: "a", event: &e}}); err != nil {
		t.Fatal(err)
	}
	sp.file.Close() // its process is dead, and the server does not know it yet

	next := newStore(t, where)
	next.SpoolIn(dir)
	said := watch(next)
	next.PutSession(Session{ID: "b", Cwd: "/p"})
	err = next.Sync(t.Context())
	var p *Problem
	if err != nil {
		t.Fatalf("not safe: %v", err)
	}
	if err := <-said; !errors.As(err, &p) || p.Kind != ProblemAway || !strings.Contains(p.Message, strconv.Itoa(os.Getpid())) {
		t.Errorf("said %v", err)
	}
	unlock()
	if err := dead.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for err := range said {
		if err == nil {
			break
		}
		t.Errorf("said %v", err)
	}
	wantSeqs(t, read(t, next, "a", 0), 1, 2)
	if _, err := next.Session(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
