//go:build unix

package files

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMain is also the child of the tests that kill, which commits or recovers until it is killed, and of TestAsAnotherUser.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PILLION_TEST_RECOVER"); dir != "" {
		recoverOnce(dir)
	}
	if dir := os.Getenv("PILLION_TEST_KILL"); dir != "" {
		commitOnce(dir)
	}
	if dir := os.Getenv("PILLION_TEST_NOBODY"); dir != "" {
		asNobody(dir)
	}
	os.Exit(m.Run())
}

type killCase struct {
	Ops   []Op
	Point *int // at which the child kills itself, from 0; nil: it does not
}

func commitOnce(dir string) {
	b, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		panic(err)
	}
	var c killCase
	if err := json.Unmarshal(b, &c); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	if c.Point != nil {
		killSelf(*c.Point)
	}
	if err := Commit(bg, c.Ops, &DirJournal{filepath.Join(dir, "j")}); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("done")
	os.Exit(0)
}

// A real kill -9 at a random moment of a patch of twenty files, 200 times: no torn file, never half a patch.
func TestKill(t *testing.T) {
	runs := 200
	if testing.Short() {
		runs = 20
	}
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	outcomes := map[string]int{}
	longest := 10 * time.Millisecond
	for i := range runs {
		dir := t.TempDir()
		proj := filepath.Join(dir, "p")
		ops, old, new := patch20(t, proj, r)
		b, _ := json.Marshal(killCase{Ops: ops})
		write(t, filepath.Join(dir, "case.json"), string(b))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PILLION_TEST_KILL="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "ready" {
			t.Fatalf("child says %q", lines.Text())
		}
		begun := time.Now()
		kill := time.AfterFunc(time.Duration(r.Int64N(int64(longest))), func() { cmd.Process.Kill() })
		finished := lines.Scan()
		if finished {
			if lines.Text() != "done" {
				t.Fatalf("child says %q", lines.Text())
			}
			longest = max(time.Since(begun), time.Millisecond) // as long as a commit takes here
		}
		kill.Stop()
		cmd.Wait()
		j := &DirJournal{filepath.Join(dir, "j")}
		rs, err := Recover(bg, j)
		if err != nil {
			t.Fatal(err)
		}
		what := "before"
		if len(rs) == 1 {
			what = string(rs[0].Outcome)
		} else if finished {
			what = "done"
		}
		outcomes[what]++
		switch what {
		case "done":
		case "before": // on a loaded machine the child has not had its turn yet
			longest += longest / 2
		default:
			longest += longest / 50
		}
		switch got := tree(proj); {
		case equal(got, old) && what != "done" && what != string(Finished):
		case equal(got, new) && what != string(RolledBack):
		default:
			t.Fatalf("run %d (%s): the files are neither old nor new: %v", i, what, got)
		}
	}
	t.Log(outcomes)
	if n := outcomes[string(Finished)] + outcomes[string(RolledBack)]; n < runs/10 {
		t.Errorf("only %d of %d kills hit the commit: %v", n, runs, outcomes)
	}
}
