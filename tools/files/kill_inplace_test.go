//go:build unix

package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// killSelf ends this process by kill -9 at the nth point of a commit or a recovery, from 0.
func killSelf(n int) {
	crash = func(string) error {
		if n--; n < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
}

// recoverOnce is a child that recovers, and may be killed as well.
func recoverOnce(dir string) {
	b, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		panic(err)
	}
	var c killCase
	if err := json.Unmarshal(b, &c); err != nil {
		panic(err)
	}
	if c.Point != nil {
		killSelf(*c.Point)
	}
	if _, err := Recover(bg, &DirJournal{filepath.Join(dir, "j")}); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("done")
	os.Exit(0)
}

// anothers are files that must keep their inodes, in a folder in which a child with another user may write: one with two names that
// shrinks, one with two names that grows, one of root's and, where this process may mount, one on which something is mounted. The child that is
// killed is that other user where this process is root.
func anothers(t *testing.T, dir string) (ops []Op, old, new map[string]string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, "p", name) }
	text := func(word string, n int) string { return strings.Repeat(word+"\n", n) }
	root := os.Geteuid() == 0
	new = map[string]string{}
	for _, f := range []struct {
		name, old, new string
		own            bool
	}{
		{"shrinks", text("shrinks, old", 900), text("shrinks, new", 300), true},
		{"grows", text("grows, old", 100), text("grows, new", 2000), true},
		{"theirs", text("theirs, old", 500), text("theirs, new", 501), false},
		{"mounted", text("mounted, old", 400), text("mounted, new", 399), true},
	} {
		path := write(t, at(f.name), f.old)
		names := []string{f.name}
		switch f.name {
		case "shrinks", "grows":
			names = append(names, f.name+" too")
			if err := os.Link(path, at(f.name+" too")); err != nil {
				t.Fatal(err)
			}
		case "mounted":
			from := write(t, at("elsewhere"), f.old)
			names = append(names, "elsewhere")
			if !mount(t, from, path) {
				continue
			}
		}
		for _, name := range names {
			new[at(name)] = f.new
			if root && f.own {
				if err := os.Chown(at(name), 65534, 65534); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(at(name), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		ops = append(ops, Op{Kind: Write, Path: path, Data: []byte(f.new), Base: Hash([]byte(f.old))})
	}
	ops = append(ops, Op{Kind: Write, Path: at("fresh"), Data: []byte("fresh")})
	new[at("fresh")] = "fresh"
	if err := os.Chmod(filepath.Join(dir, "p"), 0o777); err != nil {
		t.Fatal(err)
	}
	old = tree(filepath.Join(dir, "p"))
	for name, text := range old { // what could not be mounted
		if new[name] == "" {
			new[name] = text
		}
	}
	return ops, old, new
}

// Kill -9 at each point of a commit of files that are overwritten, as their owner and as another user, and again at each point of the
// recovery: all of it is there afterwards, or nothing.
func TestKillAtEveryPointOfFilesThatKeepTheirInode(t *testing.T) {
	top, err := os.MkdirTemp("", "pillion")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) }) // after what is mounted there
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(top, "self")
	if b, err := os.ReadFile(os.Args[0]); err != nil || os.WriteFile(self, b, 0o755) != nil {
		t.Fatal(err)
	}
	run := func(env, dir string) (said string, killed bool) {
		cmd := exec.Command(self)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), env+"="+dir, "GOCOVERDIR="+dir)
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		b, err := cmd.CombinedOutput()
		lines := strings.Fields(string(b))
		if len(lines) > 0 {
			said = lines[len(lines)-1]
		}
		if err != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%v: %s", err, b)
		}
		return said, err != nil
	}
	outcomes := map[Outcome]int{}
	commits, recoveries := 0, 0
	for n, over := 0, false; !over; n++ {
		for m, done := -1, false; !done && !over; m++ { // at first the recovery is not killed
			dir := filepath.Join(top, fmt.Sprintf("%d.%d", n, m))
			ops, old, new := anothers(t, dir)
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			say := func(point *int) {
				b, err := json.Marshal(killCase{Ops: ops, Point: point})
				if err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "case.json"), string(b))
			}
			say(&n)
			_, killed := run("PILLION_TEST_KILL", dir)
			if over = !killed; over {
				if got := tree(filepath.Join(dir, "p")); !equal(got, new) {
					t.Errorf("the commit that ran through left %v", short(got))
				}
				break
			}
			commits++
			if m >= 0 {
				say(&m)
				if _, killed = run("PILLION_TEST_RECOVER", dir); killed {
					recoveries++
				}
				done = !killed || testing.Short()
			}
			rs, err := Recover(bg, &DirJournal{filepath.Join(dir, "j")})
			if err != nil || len(rs) > 1 || len(rs) == 1 && rs[0].Outcome == Left {
				t.Fatalf("point %d, then %d: %v %v", n, m, rs, err)
			}
			for _, r := range rs {
				outcomes[r.Outcome]++
			}
			if got := tree(filepath.Join(dir, "p")); !equal(got, old) && !equal(got, new) {
				t.Errorf("point %d, then %d: neither the old files nor the new ones: %v", n, m, short(got))
			}
		}
	}
	if commits < 20 || recoveries < 10 || outcomes[Finished] == 0 || outcomes[RolledBack] == 0 {
		t.Errorf("%d commits and %d recoveries were killed, %v", commits, recoveries, outcomes)
	}
}

// short is a tree that can be read.
func short(tree map[string]string) (out []string) {
	for path, text := range tree {
		out = append(out, fmt.Sprintf("%s: %d bytes, %.20q … %q", filepath.Base(path), len(text), text, text[max(0, len(text)-20):]))
	}
	slices.Sort(out)
	return out
}

// A kill while a file is overwritten, and another while that is taken back, leave three parts; a power failure leaves sectors of both texts in
// any order. None of it was written by a person, so the old text comes back. One byte of another text, and it is somebody's.
func TestRecoveryOfAFileInPieces(t *testing.T) {
	text := func(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }
	const page = 4096
	for _, c := range []struct {
		name      string
		old, new  []byte
		is        []byte
		recovered bool
	}{
		{"the new text's beginning", text('o', 3*page), text('n', 3*page), slices.Concat(text('n', page), text('o', 2*page)), true},
		{"half of that taken back", text('o', 3*page), text('n', 3*page), slices.Concat(text('o', page), text('n', page), text('o', page)), true},
		{"half of the new text taken back", text('o', 3*page), text('n', 3*page), slices.Concat(text('o', page), text('n', 2*page)), true},
		{"taken back, before the truncation", text('o', 700), text('n', 3*page), slices.Concat(text('o', 700), text('n', 3*page-700)), true},
		{"a shorter one taken back by half", text('o', 3*page), text('n', page+9), slices.Concat(text('o', 512), text('n', page+9-512), text('o', 100)), true},
		{"sectors in any order", text('o', 3*page), text('n', 3*page), slices.Concat(text('n', 512), text('o', 512), text('n', 1024), text('o', 3*page-2048)), true},
		{"a byte of another text", text('o', 3*page), text('n', 3*page), slices.Concat(text('o', page), text('x', 1), text('o', 2*page-1)), false},
		{"pieces that are no sectors", text('o', 3*page), text('n', 3*page), slices.Concat(text('o', 700), text('n', 9), text('o', 3*page-709)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, filepath.Join(dir, "f"), string(c.is))
			p := startPlan()
			p.Steps = []step{{Kind: stepInPlace, Path: path, Old: c.old, New: c.new, OldHash: Hash(c.old), NewHash: Hash(c.new)}}
			r, err := p.recover()
			if err != nil {
				t.Fatal(err)
			}
			want := c.old
			if !c.recovered {
				want = c.is
			}
			if got := read(t, path); got != string(want) {
				t.Errorf("%+v: %d bytes, %.20q", r, len(got), got)
			}
		})
	}
}
