//go:build unix

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func background(t *testing.T) *Background {
	b := &Background{}
	t.Cleanup(b.Close)
	return b
}

func started(t *testing.T, b *Background, c Command) *BackgroundJob {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	j, err := b.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// looked gathers looks until the text holds want.
func looked(t *testing.T, j *BackgroundJob, want string) string {
	t.Helper()
	var all strings.Builder
	for {
		l, err := j.Look(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(l.Output.Head + l.Output.Tail)
		if strings.Contains(all.String(), want) {
			return all.String()
		}
		if !l.Running {
			t.Fatalf("ended with %+v, printed %q, not %q", l.Ending, all.String(), want)
		}
	}
}

// printed waits, without a look, until the output ends with want.
func printed(j *BackgroundJob, want string) {
	for {
		more := j.out.more() // before the check, so that nothing is missed
		if strings.HasSuffix(j.out.tail(100), want) {
			return
		}
		<-more
	}
}

func TestEachLookGivesWhatIsNew(t *testing.T) {
	j := started(t, background(t), Command{Text: `echo ready; while read -r x; do echo "got $x"; done; echo over; exit 3`})
	if got := looked(t, j, "ready\n"); got != "ready\n" {
		t.Errorf("%q", got)
	}
	if l, err := j.Look(t.Context(), 0); err != nil || l.Output.Bytes != 0 || !l.Running {
		t.Errorf("%+v %v", l, err)
	}
	for _, x := range []string{"one", "two"} {
		if err := j.Input(t.Context(), x+"\n", false); err != nil {
			t.Fatal(err)
		}
		if got := looked(t, j, "got "+x); got != "got "+x+"\n" {
			t.Errorf("%q", got)
		}
	}
	if err := j.Input(t.Context(), "", true); err != nil {
		t.Fatal(err)
	}
	<-j.done
	if err := j.Input(t.Context(), "x", false); !errors.Is(err, ErrBackgroundEnded) {
		t.Errorf("%v", err)
	}
	l, err := j.Look(t.Context(), time.Minute)
	if err != nil || l.Output.Head != "over\n" || l.Running || l.Ending.Exit != 3 {
		t.Errorf("%+v %v", l, err)
	}
}

func TestALookThatIsGivenUpLosesNothing(t *testing.T) {
	b := background(t)
	j := started(t, b, Command{Text: "read -r x; echo $x; read -r y"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Look(ctx, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := j.Input(t.Context(), "hello\n", false); err != nil {
		t.Fatal(err)
	}
	looked(t, j, "hello\n")
}

func TestACharacterInTwoPartsStaysOne(t *testing.T) {
	j := started(t, background(t), Command{Text: `printf 'a\303'; read -r x; printf '\244b\033[3'; read -r x; printf '1mred'; read -r x; printf '\303'`})
	var got []string
	for _, want := range []string{"a", "\u00e4b", "red"} {
		got = append(got, looked(t, j, want))
		if err := j.Input(t.Context(), "\n", false); err != nil {
			t.Fatal(err)
		}
	}
	got = append(got, looked(t, j, "\uFFFD")) // it will not be completed any more
	if strings.Join(got, "|") != "a|\u00e4b|red|\uFFFD" {
		t.Errorf("%q", got)
	}
}

func TestMuchNewOutputIsCutAndTheWholeInAFile(t *testing.T) {
	dir := t.TempDir()
	j := started(t, background(t), Command{Text: "seq 1 60000; read -r x; seq 60001 200000; read -r x; seq 1 3000; exit", SpillDir: dir})
	pass := func(last string) Look {
		t.Helper()
		printed(j, last)
		l, err := j.Look(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	check := func(l Look, first, last string) {
		t.Helper()
		o := l.Output
		if !o.Truncated || !strings.HasPrefix(o.Head, first) || !strings.HasSuffix(o.Tail, last) || int64(len(o.Head)+len(o.Tail))+o.Cut != o.Bytes {
			t.Errorf("head %.20q tail %.20q: %d + %d + %d cut of %d", o.Head, o.Tail[max(0, len(o.Tail)-20):], len(o.Head), len(o.Tail), o.Cut, o.Bytes)
		}
	}
	check(pass("60000\n"), "1\n2\n", "60000\n")
	if err := j.Input(t.Context(), "\n", false); err != nil {
		t.Fatal(err)
	}
	l := pass("200000\n")
	check(l, "60001\n60002\n", "200000\n") // its head is in the file only
	if whole, err := os.ReadFile(l.Output.Path); err != nil || !strings.HasSuffix(string(whole), "\n200000\n") {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	if err := j.Input(t.Context(), "\n", false); err != nil {
		t.Fatal(err)
	}
	<-j.done
	check(pass("3000\n"), "1\n2\n", "3000\n") // many short lines
	if cap(j.out.ring) > 2*tailSize || cap(j.out.head) > 2*headSize {
		t.Errorf("keeps %d + %d bytes", cap(j.out.ring), cap(j.out.head))
	}
}

func TestManyShortLinesOfARunningCommandAreSavedOnce(t *testing.T) {
	dir := t.TempDir()
	j := started(t, background(t), Command{Text: "seq 1 3000; read -r x; seq 3001 100000", SpillDir: dir})
	printed(j, "3000\n")
	if l, err := j.Look(t.Context(), 0); err != nil || !l.Output.Truncated || l.Output.Path == "" {
		t.Fatalf("%+v %v", l.Output.Path, err)
	}
	if err := j.Input(t.Context(), "\n", false); err != nil {
		t.Fatal(err)
	}
	<-j.done
	l, err := j.Look(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	whole, err := os.ReadFile(l.Output.Path)
	if want, _ := exec.Command("seq", "1", "100000").Output(); err != nil || string(whole) != string(want) || len(files) != 1 {
		t.Errorf("%d bytes in %d files, %v", len(whole), len(files), err)
	}
}

func TestKillEndsTheWholeTree(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed (util-linux)")
	}
	for name, command := range map[string]string{
		"child":        "sleep 1000 & echo $! ready; wait",
		"own session":  "setsid -f sh -c 'echo $$ ready; exec sleep 1000'; sleep 1000",
		"deaf to TERM": "trap '' TERM; (trap '' TERM; echo $BASHPID ready; while :; do sleep 1; done) & while :; do sleep 1; done",
	} {
		t.Run(name, func(t *testing.T) {
			j := started(t, background(t), Command{Text: command})
			pid := firstNumber(t, looked(t, j, "ready\n"))
			if !j.Kill() || j.Running() {
				t.Error("it runs")
			}
			gone(t, pid)
			if l, err := j.Look(t.Context(), 0); err != nil || l.Ending.Exit != -1 {
				t.Errorf("%+v %v", l, err)
			}
			if j.Kill() {
				t.Error("ended twice")
			}
		})
	}
}

func TestKillEndsWhatAnEndedCommandLeft(t *testing.T) {
	j := started(t, background(t), Command{Text: "sleep 1000 >/dev/null 2>&1 & echo $! ready"})
	pid := firstNumber(t, looked(t, j, "ready\n"))
	<-j.done
	if l, err := j.Look(t.Context(), 0); err != nil || l.Running || l.Ending.Left != 1 {
		t.Errorf("%+v %v", l, err)
	}
	if !j.Kill() || j.Kill() {
		t.Error("once, please")
	}
	gone(t, pid)
}

func TestCloseEndsAllAndNothingStartsAfterwards(t *testing.T) {
	b := &Background{}
	var pids []int
	for range 3 {
		j := started(t, b, Command{Text: "sleep 1000 & echo $! ready; wait"})
		pids = append(pids, firstNumber(t, looked(t, j, "ready\n")))
	}
	b.Close()
	for _, pid := range pids {
		gone(t, pid)
	}
	if _, err := b.Start(Command{Text: "echo", Dir: t.TempDir()}); !errors.Is(err, ErrBackgroundClosed) {
		t.Errorf("%v", err)
	}
	for _, j := range b.List() {
		if j.Running() {
			t.Error(j.ID, "runs")
		}
	}
}

func TestTimeoutEndsABackgroundCommand(t *testing.T) {
	j := started(t, background(t), Command{Text: "sleep 1000 & echo $!; wait", Timeout: 300 * time.Millisecond})
	<-j.done
	l, err := j.Look(t.Context(), 0)
	if err != nil || !l.Ending.TimedOut {
		t.Errorf("%+v %v", l, err)
	}
	gone(t, firstNumber(t, l.Output.Head))
}

func TestTwentyRunAtOnce(t *testing.T) {
	b, dir := background(t), t.TempDir()
	var all []*BackgroundJob
	for i := range MaxBackground {
		j := started(t, b, Command{Text: "read -r x", Dir: dir})
		if want := fmt.Sprintf("bg_%d", i+1); j.ID != want {
			t.Errorf("%s, want %s", j.ID, want)
		}
		all = append(all, j)
	}
	if _, err := b.Start(Command{Text: "echo", Dir: dir}); !errors.Is(err, ErrBackgroundFull) {
		t.Errorf("%v", err)
	}
	if len(b.List()) != MaxBackground {
		t.Error(len(b.List()))
	}
	all[3].Kill()
	j := started(t, b, Command{Text: "echo hi", Dir: dir})
	looked(t, j, "hi\n")
	<-j.done
	if b.Get(all[3].ID) == nil || b.Get("bg_99") != nil {
		t.Error("not found by id")
	}
	for range keptEnded + 5 { // ended ones are forgotten, not running ones
		<-started(t, b, Command{Text: ":", Dir: dir}).done
	}
	if b.Get(all[3].ID) != nil || b.Get(all[4].ID) == nil || len(b.all()) > MaxBackground+keptEnded+1 {
		t.Errorf("%d kept", len(b.all()))
	}
}

func TestInputNobodyReads(t *testing.T) {
	j := started(t, background(t), Command{Text: "exec <&-; echo ready; sleep 1000"})
	looked(t, j, "ready\n")
	if err := j.Input(t.Context(), "x\n", false); !errors.Is(err, ErrInputClosed) {
		t.Errorf("closed: %v", err)
	}
	deaf := started(t, background(t), Command{Text: "echo ready; sleep 1000"})
	looked(t, deaf, "ready\n")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := deaf.Input(ctx, strings.Repeat("x", 1<<20), false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deaf: %v", err)
	}
	if err := deaf.Input(t.Context(), "", true); err != nil {
		t.Error(err)
	}
	if err := deaf.Input(t.Context(), "y", false); !errors.Is(err, ErrInputClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAMissingDirectoryStartsNothing(t *testing.T) {
	b := background(t)
	before := openFiles(t)
	if _, err := b.Start(Command{Text: "echo", Dir: "/nosuchdir_x"}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
	if after := openFiles(t); after > before || len(b.List()) != 0 {
		t.Errorf("%d open files, before %d", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}
