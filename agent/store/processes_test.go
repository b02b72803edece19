package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
