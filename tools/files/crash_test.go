//go:build unix

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patch20 is a commit of twenty files: writes, creations in new folders, removals, a move, a hard link.
func patch20(t *testing.T, dir string, r *rand.Rand) (ops []Op, old, new map[string]string) {
	old, new = map[string]string{}, map[string]string{}
	for i := range 20 {
		p := filepath.Join(dir, "d"+string(rune('a'+i%4)), "f"+string(rune('a'+i)))
		body := strings.Repeat("old "+p+"\n", 1+r.IntN(50))
		fresh := strings.Repeat("new "+p+"\n", 1+r.IntN(50))
		switch i % 7 {
		case 3:
			p = filepath.Join(dir, "fresh", "deep", "f"+string(rune('a'+i)))
			ops = append(ops, Op{Kind: Write, Path: p, Data: []byte(fresh)})
			new[p] = fresh
		case 4:
			write(t, p, body)
			ops = append(ops, Op{Kind: Remove, Path: p, Base: Hash([]byte(body))})
			old[p] = body
		case 5:
			write(t, p, body)
			ops = append(ops, Op{Kind: Move, Path: p, NewPath: p + ".moved", Data: []byte(fresh), Base: Hash([]byte(body))})
			old[p], new[p+".moved"] = body, fresh
		default:
			write(t, p, body)
			if i == 6 {
				os.Link(p, p+".link")
				old[p+".link"], new[p+".link"] = body, fresh
			}
			ops = append(ops, Op{Kind: Write, Path: p, Data: []byte(fresh), Base: Hash([]byte(body))})
			old[p], new[p] = body, fresh
		}
	}
	return ops, old, new
}

// tree is every file's text under dir.
func tree(dir string) map[string]string {
	out := map[string]string{}
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, _ := os.ReadFile(p)
			out[p] = string(b)
		}
		return nil
	})
	return out
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// The process dies at each point of the commit in turn; the next start must find all files old or all new.
func TestCrashAtEveryPoint(t *testing.T) {
	outcomes := dieEverywhere(t, 40, tree, func(dir string, n int) ([]Op, map[string]string, map[string]string) {
		return patch20(t, dir, rand.New(rand.NewPCG(uint64(n), 1)))
	})
	if outcomes[Finished] < 10 || outcomes[RolledBack] < 10 {
		t.Errorf("outcomes %v", outcomes)
	}
}

// dieEverywhere lets the process die at each point of a commit, of which there are at least least, and counts what became
// of it. make lays out a folder, and says the commit and what look sees before and after it.
func dieEverywhere(t *testing.T, least int, look func(dir string) map[string]string, make func(dir string, n int) (ops []Op, old, new map[string]string)) map[Outcome]int {
	t.Helper()
	defer func() { crash = nil }()
	outcomes := map[Outcome]int{}
	for n := 0; ; n++ {
		dir := t.TempDir()
		j := &DirJournal{filepath.Join(t.TempDir(), "j")}
		ops, old, new := make(dir, n)
		points := 0
		crash = func(string) error {
			if points++; points > n {
				return errCrash
			}
			return nil
		}
		err := Commit(bg, ops, j)
		crash = nil
		if err == nil {
			if n < least {
				t.Fatalf("only %d points", n)
			}
			if !equal(look(dir), new) {
				t.Fatal("the commit that ran through is wrong")
			}
			return outcomes
		}
		pretendDead(t, j)
		rs, err := Recover(bg, j)
		if err != nil || len(rs) != 1 {
			t.Fatalf("point %d: %v %v", n, rs, err)
		}
		outcomes[rs[0].Outcome]++
		got := look(dir)
		if want := map[Outcome]map[string]string{Finished: new, RolledBack: old}[rs[0].Outcome]; !equal(got, want) {
			t.Fatalf("point %d: %s, but there is\n%v\nwant\n%v", n, rs[0].Outcome, got, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "fresh")); err == nil && rs[0].Outcome == RolledBack {
			t.Errorf("point %d: made folders stay", n)
		}
		if p, _ := j.Pending(bg); len(p) != 0 {
			t.Fatalf("point %d: still pending", n)
		}
	}
}

// pretendDead makes the journal's entries those of a process that is gone.
func pretendDead(t *testing.T, j *DirJournal) {
	t.Helper()
	es, err := j.Pending(bg)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		b := bytes.Replace(e.Data, []byte(`"start":"`), []byte(`"start":"0`), 1)
		if err := j.Begin(bg, e.ID, b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecoverLeavesTheLivingAlone(t *testing.T) {
	defer func() { crash = nil }()
	dir := t.TempDir()
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	ops, _, _ := patch20(t, dir, rand.New(rand.NewPCG(1, 1)))
	crash = func(p string) error { return map[string]error{"apply": errCrash}[p] }
	if err := Commit(bg, ops, j); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	crash = nil
	if rs, err := Recover(bg, j); err != nil || len(rs) != 0 {
		t.Errorf("%v %v", rs, err)
	}
	pretendDead(t, j)
	if rs, err := Recover(bg, j); err != nil || len(rs) != 1 || rs[0].Outcome != RolledBack {
		t.Errorf("%v %v", rs, err)
	}
}

// Between the crash and the next start the person edited one of the files: it is theirs.
func TestRecoverKeepsLaterEdits(t *testing.T) {
	defer func() { crash = nil }()
	dir := t.TempDir()
	j := &DirJournal{filepath.Join(t.TempDir(), "j")}
	a, b := write(t, filepath.Join(dir, "a"), "a"), write(t, filepath.Join(dir, "b"), "b")
	n := 0
	crash = func(p string) error {
		if p == "apply" {
			if n++; n == 2 {
				return errCrash
			}
		}
		return nil
	}
	Commit(bg, []Op{{Kind: Write, Path: a, Data: []byte("A"), Base: Hash([]byte("a"))}, {Kind: Write, Path: b, Data: []byte("B"), Base: Hash([]byte("b"))}}, j)
	crash = nil
	write(t, b, "mine")
	pretendDead(t, j)
	rs, err := Recover(bg, j)
	if err != nil || len(rs) != 1 || rs[0].Outcome != RolledBack {
		t.Fatalf("%+v %v", rs, err)
	}
	if read(t, a) != "a" || read(t, b) != "mine" {
		t.Errorf("a %q, b %q", read(t, a), read(t, b))
	}
	clean(t, dir)
}

// failing is a journal that stops working at its nth Begin.
type failing struct {
	DirJournal
	n int
}

func (j *failing) Begin(ctx context.Context, id string, data []byte) error {
	if j.n--; j.n < 0 {
		return syscall.ENOSPC
	}
	return j.DirJournal.Begin(ctx, id, data)
}

func TestFailureInTheMiddleTakesAllBack(t *testing.T) {
	defer func() { crash = nil }()
	for _, c := range []struct {
		name  string
		n     int // Begins that work
		spoil int // before this step somebody changes the last file; 0: never
	}{
		{"journal cannot begin", 0, 0},
		{"journal fails at the end", 1, 0},
		{"a file changes at the last moment", 9, 17},
	} {
		dir := t.TempDir()
		ops, old, _ := patch20(t, dir, rand.New(rand.NewPCG(3, 3)))
		last := ops[len(ops)-1].Path
		step := 0
		crash = func(p string) error {
			if p == "apply" {
				if step++; step == c.spoil {
					old[last] = "theirs"
					return os.WriteFile(last, []byte("theirs"), 0o644)
				}
			}
			return nil
		}
		j := &failing{DirJournal{filepath.Join(t.TempDir(), "j")}, c.n}
		err := Commit(bg, ops, j)
		crash = nil
		if err == nil || c.spoil > 0 && !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := tree(dir); !equal(got, old) {
			t.Errorf("%s: the files are %v", c.name, got)
		}
		if p, _ := j.Pending(bg); len(p) != 0 {
			t.Errorf("%s: still pending", c.name)
		}
		if _, err := os.Stat(filepath.Join(dir, "fresh")); err == nil {
			t.Errorf("%s: made folders stay", c.name)
		}
	}
}

// A kill between writing a plan and giving it its name leaves a file that nobody asks for.
func TestJournalSweepsWhatItLeft(t *testing.T) {
	j := &DirJournal{t.TempDir()}
	old, fresh := write(t, filepath.Join(j.Dir, ".w1.tmp"), "{"), write(t, filepath.Join(j.Dir, ".w2.tmp"), "{")
	hours := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, hours, hours); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one is still there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the one that may be in use is gone: %v", err)
	}
}

// Two writers that both compared the same base: the second must see what the first wrote, never write over it.
func TestWritersOfOneFileLoseNothing(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "f"), "")
	const writers, each = 4, 25
	var wait sync.WaitGroup
	for w := range writers {
		j := &DirJournal{filepath.Join(dir, "j")} // one each, as of as many processes
		wait.Go(func() {
			for n := 0; n < each; {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Error(err)
					return
				}
				err = Commit(t.Context(), []Op{{Kind: Write, Path: path, Data: fmt.Appendf(b, "%d %d\n", w, n), Base: Hash(b)}}, j)
				if err == nil {
					n++
				} else if !errors.Is(err, ErrStale) {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	b, err := os.ReadFile(path)
	if got := strings.Count(string(b), "\n"); err != nil || got != writers*each {
		t.Errorf("%d of %d lines are there: %v", got, writers*each, err)
	}
}

// A commit that cannot have its turn ends with its call.
func TestWaitingForAnotherWriterIsCancelled(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "f"), "a")
	j := &DirJournal{filepath.Join(dir, "j")}
	unlock, err := j.writing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Commit(ctx, []Op{{Kind: Write, Path: path, Data: []byte("b"), Base: Hash([]byte("a"))}}, j); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
