package draft

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// isOut is what Git ignores in these tests: it lands as a whole, file by file.
func isOut(abs string, dir bool) bool { return dir && filepath.Base(abs) == "out" }

// landUntil is the child of the tests below: it lands the bulk changes of the draft in dir and kills itself at the nth point.
func landUntil(dir string, n int) {
	d, err := Load(dir)
	if err != nil {
		panic(err)
	}
	if _, err := d.Acquire(); err != nil {
		panic(err)
	}
	crash = func(point string) {
		if n--; n == 0 {
			fmt.Println(point)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	p, err := d.Propose(isOut, 0o022)
	if err == nil {
		err = d.LandBulk(p.Bulk)
	}
	if err != nil {
		panic(err)
	}
	fmt.Println("landed")
}

// killedAt lands a draft in another process that is killed at its nth point, and returns the name of the point.
func killedAt(t *testing.T, d *Draft, n int) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PILLION_TEST_LAND="+d.Dir, "PILLION_TEST_POINT="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	point := strings.TrimSpace(string(out))
	if killed := err != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; err == nil != (point == "landed") || err != nil && !killed {
		t.Fatalf("%s: %v", point, err)
	}
	return point
}

// staging matches the names that a landing uses on its way; a person's own file may begin like them.
var staging = regexp.MustCompile(`^\.pillion-[A-Z2-7]{26}\.new$`)

// left are the names of that kind in a project, which nobody may find after a landing.
func left(t *testing.T, tree string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if staging.MatchString(filepath.Base(path)) {
			name, _ := filepath.Rel(tree, path)
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// released gives up the lock that Create took, as the end of its process would.
func released(t *testing.T, d *Draft) {
	t.Helper()
	release, err := d.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	release()
}

const (
	bulkBefore = "mkdir -p f/sub out/old; echo 1 > f/one; echo 2 > f/sub/two; echo file > file; ln -s f link; echo gone > out/old/x; echo same > out/same" + bulkOwn
	bulkWork   = "rm -rf f; echo plain > f; rm file; mkdir -p file/a; echo new > file/a/b; rm link; mkdir link; rm -r out/old; mkdir out/new; echo y > out/new/y; echo changed > out/same; echo changed > out/$(printf 'l%.0s' $(seq 250))"
	// bulkOwn are files of the person that have the names which Pillion once used on the way.
	bulkOwn = "; for f in f file link out/old out/same; do echo mine > $(dirname $f)/.pillion-$(basename $f).new; done"
)

// Landing is killed at each of its points: the next start leaves nothing under a name of its own in the project and loses no version, and
// landing again makes it whole.
func TestAKillInTheMiddleOfLandingLeavesNothing(t *testing.T) {
	for _, view := range views(t) {
		seen := map[string]int{}
		for n := 1; ; n++ {
			dir := t.TempDir()
			tree := filepath.Join(dir, "tree")
			sh(t, dir, "mkdir tree; cd tree; "+bulkBefore)
			work := bulkWork
			sh(t, dir, "cp -a tree twin; cd twin; "+work)
			d := made(t, tree, view)
			in(t, d, work)
			if err := d.Record(time.Time{}, isOut); err != nil {
				t.Fatal(err)
			}
			released(t, d)
			point := killedAt(t, d, n)
			seen[point]++
			if err := Recover(filepath.Dir(d.Dir)); err != nil {
				t.Errorf("%s, %d (%s): %v", view, n, point, err)
			}
			if names := left(t, tree); len(names) > 0 {
				t.Errorf("%s, %d (%s): %v stays", view, n, point, names)
			}
			if _, err := os.Stat(filepath.Join(d.Dir, stepsFile)); err == nil {
				t.Errorf("%s, %d (%s): the steps stay", view, n, point)
			}
			if point != "landed" {
				if again := killedAt(t, d, 0); again != "landed" {
					t.Fatal(again)
				}
			}
			if diff := diffOf(snapshot(t, filepath.Join(dir, "twin"), false), snapshot(t, tree, false)); diff != "" {
				t.Errorf("%s, %d (%s): %s", view, n, point, diff)
			}
			if point == "landed" || t.Failed() {
				break
			}
		}
		t.Log(view, seen)
		if seen["carried"] < 3 || seen["exchanged"] < 3 {
			t.Errorf("%s: points that were not reached: %v", view, seen)
		}
	}
}

// What the person writes at the moment of the exchange is theirs: after a kill it has its name again, and the draft's version is beside it.
func TestAKillInTheMiddleOfLandingKeepsWhatThePersonWrote(t *testing.T) {
	if Probe().View != Overlay {
		t.Skip("no overlay")
	}
	tree := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	big, old := filepath.Join(tree, "big"), filepath.Join(tree, "old")
	bigFile(t, big, "start")
	bigFile(t, old, "start")
	d := made(t, tree, Overlay)
	in(t, d, "printf draft | dd of=big conv=notrunc status=none; rm old")
	if err := d.Record(time.Time{}, isOut); err != nil {
		t.Fatal(err)
	}
	released(t, d)
	for n, want := range []string{"carried", "exchanged"} {
		if point := killedAt(t, d, n+1); point != want {
			t.Fatal(point)
		}
		if n == 0 {
			if err := Recover(filepath.Dir(d.Dir)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The editor had the old file open when it was exchanged, so its bytes are in what is about to go.
	write := func() {
		t.Helper()
		names := left(t, tree)
		if len(names) != 1 {
			t.Fatal(names)
		}
		f, err := os.OpenFile(filepath.Join(tree, names[0]), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("mine!")
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write()
	err := Recover(filepath.Dir(d.Dir))
	if err == nil || !strings.Contains(err.Error(), "the draft's version is beside it as big."+d.Head().ID) {
		t.Errorf("%v", err)
	}
	begins := func(path string) string {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b := make([]byte, 5)
		if _, err := f.Read(b); err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := begins(big) + " " + begins(big+"."+d.Head().ID); got != "mine! draft" {
		t.Error(got)
	}
	// The same for a file that was being removed.
	if point := killedAt(t, d, 1); point != "aside" {
		t.Fatal(point)
	}
	write()
	if err := Recover(filepath.Dir(d.Dir)); err != nil {
		t.Error(err)
	}
	if got := begins(old); got != "mine!" {
		t.Error(got)
	}
	if names := left(t, tree); len(names) > 0 {
		t.Errorf("%v", names)
	}
}

// A note that names nothing of ours, for example one of another version of Pillion, removes nothing.
func TestANoteWithoutANameRemovesNothing(t *testing.T) {
	for _, aside := range []string{"", ".", "sub/.pillion-x", ".pillion-/../../keep", "keep"} {
		tree := filepath.Join(t.TempDir(), "tree")
		sh(t, filepath.Dir(tree), "mkdir -p tree/sub; echo 1 > tree/sub/f; echo 2 > tree/keep; echo 3 > tree/sub/keep")
		d := made(t, tree, Copy)
		released(t, d)
		before := snapshot(t, tree, false)
		fi, err := os.Lstat(filepath.Join(tree, "sub", "f"))
		if err != nil {
			t.Fatal(err)
		}
		note, err := json.Marshal(landStep{Rel: "sub/f", Aside: aside, Mine: mark(fi), Whole: true})
		if err == nil {
			err = os.WriteFile(d.path(stepsFile), append(note, '\n'), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := Recover(filepath.Dir(d.Dir)); err == nil || !strings.Contains(err.Error(), "sub/f was being landed") {
			t.Errorf("%q: %v", aside, err)
		}
		if diff := diffOf(before, snapshot(t, tree, false)); diff != "" {
			t.Errorf("%q: %s", aside, diff)
		}
	}
}

// The draft's version of a file that stays gets a name beside it only if that name is free, and stays in the draft if there can be none.
func TestTheNameBesideIsTakenOrTooLong(t *testing.T) {
	for _, view := range views(t) {
		tree, long := filepath.Join(t.TempDir(), "tree"), strings.Repeat("l", 250)
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		bigFile(t, filepath.Join(tree, "big"), "start")
		bigFile(t, filepath.Join(tree, long), "start")
		d := made(t, tree, view)
		in(t, d, "for f in big l*; do printf draft | dd of=$f conv=notrunc status=none; done")
		bigFile(t, filepath.Join(tree, "big"), "mine!")
		bigFile(t, filepath.Join(tree, long), "mine!")
		id := d.Head().ID
		sh(t, tree, "echo other > big."+id)
		_, p := changed(t, d)
		err := d.LandBulk(p.Bulk)
		if err == nil || !strings.Contains(err.Error(), "beside it as big."+id+".2:") || !strings.Contains(err.Error(), long+" cannot be landed: file name too long") {
			t.Errorf("%s: %v", view, err)
		}
		sh(t, tree, "for f in *; do echo \"${f/#ll*/long} $(head -c 5 $f)\"; done > ../said")
		said, err := os.ReadFile(filepath.Join(filepath.Dir(tree), "said"))
		if want := fmt.Sprintf("big mine!\nbig.%s other\nbig.%[1]s.2 draft\nlong mine!\n", id); err != nil || string(said) != want {
			t.Errorf("%s: %v, %s\nwant %s", view, err, said, want)
		}
		if names := left(t, tree); len(names) > 0 {
			t.Errorf("%s: %v", view, names)
		}
		if _, p := changed(t, d); len(p.Bulk) == 0 || p.Bulk[len(p.Bulk)-1].Rel != long {
			t.Errorf("%s: the draft has lost its version: %v", view, p.Bulk)
		}
	}
}

// What the system refuses to exchange, here because it is a mount point, stays in the draft and nothing of it stays in the project.
func TestWhatCannotBeExchangedStaysInTheDraft(t *testing.T) {
	if Probe().View != Overlay {
		t.Skip("no overlay")
	}
	tree := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(tree, "big")
	bigFile(t, big, "start")
	d := made(t, tree, Overlay)
	in(t, d, "printf draft | dd of=big conv=notrunc status=none")
	if err := d.Record(time.Time{}, isOut); err != nil {
		t.Fatal(err)
	}
	p, err := d.Propose(isOut, 0o022)
	if err != nil {
		t.Fatal(err)
	}
	refusal := make(chan error)
	go func() {
		// The thread ends with the goroutine, and its mounts with it.
		runtime.LockOSThread()
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(big, big, "", unix.MS_BIND, ""))
		if err != nil {
			refusal <- fmt.Errorf("no mount: %w", err)
			return
		}
		refusal <- d.LandBulk(p.Bulk)
	}()
	err = <-refusal
	if err != nil && strings.HasPrefix(err.Error(), "no mount") {
		t.Skip(err)
	}
	if err == nil || err.Error() != "big cannot be landed: device or resource busy" {
		t.Errorf("%v", err)
	}
	if names := left(t, tree); len(names) > 0 {
		t.Errorf("%v", names)
	}
	if err := d.LandBulk(p.Bulk); err != nil { // the mount is gone
		t.Error(err)
	}
	b, err := os.ReadFile(big)
	if err != nil || string(b[:5]) != "draft" {
		t.Errorf("%q, %v", b[:min(5, len(b))], err)
	}
}
