package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools/change"
)

// pillionRun runs the real program.
func pillionRun(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &errs)
	}
	return out.String(), err
}

// changed makes a session whose one prompt is followed by changes of twenty files, and closes it.
func changed(t *testing.T, dir string) (session, prompt string, before, after map[string]string) {
	t.Helper()
	body := strings.Repeat("line\n", 500)
	for i := range 20 {
		if i%4 != 0 {
			put(t, filepath.Join(dir, fmt.Sprintf("f%d", i)), fmt.Sprintf("head %d\n", i)+body)
		}
	}
	before = texts(t, dir)
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: allowAll{}, NoLSP: true})
	defer a.Close()
	s, err := a.Runtime.NewSession(context.Background(), agent.SessionOptions{Cwd: dir, Model: "builtin/quickfix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(context.Background(), agent.Prompt{MessageID: "msg_first", Parts: []provider.Part{{Type: provider.PartText, Text: "hello"}}}); err != nil {
		t.Fatal(err)
	}
	patch := "*** Begin Patch\n"
	for i := range 20 {
		name, head := fmt.Sprintf("f%d", i), fmt.Sprintf("head %d\n", i)
		switch i % 4 {
		case 0:
			patch += "*** Add File: " + name + "\n+" + head
		case 1:
			patch += "*** Update File: " + name + "\n@@\n-" + head + "+new\n"
		case 2:
			patch += "*** Update File: " + name + "\n*** Move to: sub/" + name + "\n@@\n-" + head + "+new\n"
		case 3:
			patch += "*** Delete File: " + name + "\n"
		}
	}
	for i := range 20 {
		in, _ := json.Marshal(map[string]string{"filePath": fmt.Sprintf("f%d", i)})
		if i%4 != 0 {
			if _, err := s.Tool(context.Background(), "read", in); err != nil {
				t.Fatal(err)
			}
		}
	}
	in, _ := json.Marshal(map[string]string{"patchText": patch + "*** End Patch"})
	d, err := s.Tool(context.Background(), "apply_patch", in)
	if err != nil || d.Status != agent.ToolCompleted {
		t.Fatal(d.Error, err)
	}
	return s.ID(), "msg_first", before, texts(t, dir)
}

// The whole program is killed while it restores a checkpoint of twenty files. Whenever that is, the next start finds
// every file old or every file new, and what the session says of it is true; then it can be restored, and undone.
func TestKilledInTheMiddleOfARestore(t *testing.T) {
	const runs = 3 // TestARestoreIsTrueAtEveryStep goes through the steps one by one
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 3))
	outcomes := map[string]int{}
	home := atHome(t)
	// The journal has an entry from before the first file to after the last: what a restore takes from there on.
	journal := filepath.Join(home, "state", "pillion", "journal", "*.json")
	for i := range runs {
		dir := t.TempDir()
		id, prompt, before, after := changed(t, dir)
		cmd := exec.Command(os.Args[0], "sessions", "restore", id, prompt)
		cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killAfter(cmd, journal, time.Duration(r.Int64N(int64(8*time.Millisecond))))
		check := func(step string) (restored bool) {
			t.Helper()
			out, err := pillionRun(t, "sessions", "checkpoints", id, "--json")
			if err != nil {
				t.Fatal(err)
			}
			// A tool call ends an interrupted write, as every start of an agent does.
			callTools(t, dir, `{"tool":"list","input":{}}`)
			got := texts(t, dir)
			switch {
			case maps.Equal(got, before):
				restored = true
			case !maps.Equal(got, after):
				t.Fatalf("run %d, %s: neither old nor new", i, step)
			}
			var said bool
			for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
				var c protocol.Checkpoint
				if err := json.Unmarshal([]byte(line), &c); err != nil {
					t.Fatal(err, line)
				}
				if c.ID == prompt {
					said = c.Current
				}
			}
			if said != restored {
				t.Errorf("run %d, %s: the session says restored %v, the files %v:\n%s", i, step, said, restored, out)
			}
			shown, err := pillionRun(t, "sessions", "show", id)
			if err != nil || strings.Contains(shown, "> hello") == restored {
				t.Errorf("run %d, %s: restored is %v, shown is %q %v", i, step, restored, shown, err)
			}
			return restored
		}
		restored := check("after the kill")
		outcomes[fmt.Sprint("restored ", restored)]++
		if !restored {
			if _, err := pillionRun(t, "sessions", "restore", id, prompt); err != nil {
				t.Fatal(err)
			}
			if !check("restored again") {
				t.Fatalf("run %d: not restored at the second try", i)
			}
		}
		out, err := pillionRun(t, "sessions", "checkpoints", id, "--json")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var last protocol.Checkpoint
		_ = json.Unmarshal([]byte(lines[len(lines)-1]), &last)
		if _, err := pillionRun(t, "sessions", "restore", id, last.ID); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(texts(t, dir), after) {
			t.Fatalf("run %d: the restore could not be undone", i)
		}
	}
	t.Log(outcomes)
}

// stopAt is a store of changes that dies at a step: the state as it is then is copied away.
type stopAt struct {
	review.Store
	before, after func()
}

func (s stopAt) Files(session string) review.Files { return stopFiles{s.Store.Files(session), s} }

type stopFiles struct {
	review.Files
	at stopAt
}

func (s stopFiles) Apply(ctx context.Context, set *change.Set) (*change.Set, error) {
	s.at.before()
	done, err := s.Files.Apply(ctx, set)
	s.at.after()
	return done, err
}

// At each step of a restore the session and the files are copied, as a death there would leave them, and the copy is
// opened: it says of the restore what is true of the files.
func TestARestoreIsTrueAtEveryStep(t *testing.T) {
	home := atHome(t)
	dir := filepath.Join(home, "project")
	id, prompt, before, after := changed(t, dir)
	ctx := context.Background()
	a := app.New(app.Options{Place: app.NewWorkplace(version), NoLSP: true})
	s, err := a.Runtime.LoadSession(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	copies := map[string]string{}
	snapshot := func(step string) func() {
		return func() {
			to := filepath.Join(t.TempDir(), step)
			if err := os.CopyFS(to, os.DirFS(home)); err != nil {
				t.Error(err)
			}
			copies[step] = to
		}
	}
	// Each event is a step too.
	n := 0
	s.Subscribe(0, func(e agent.Event) {
		if d, ok := e.Value.(agent.RestoreData); ok && d.State == agent.RestoreBegun {
			n++
		}
	})
	a.Desk = review.NewDesk(stopAt{app.KeptChanges{App: a}, snapshot("announced, nothing written"), snapshot("written, not told")})
	r, err := reviewerOf(ctx, a, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Restore(ctx, review.Restoring{Checkpoint: prompt}); err != nil {
		t.Fatal(err)
	}
	a.Close()
	snapshot("done")()
	if n != 1 || len(copies) != 3 {
		t.Fatal(n, copies)
	}
	for step, at := range copies {
		// The copy is where the original was: paths are absolute.
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(home, os.DirFS(at)); err != nil {
			t.Fatal(err)
		}
		if step == "announced, nothing written" && !maps.Equal(texts(t, dir), after) || step != "announced, nothing written" && !maps.Equal(texts(t, dir), before) {
			t.Fatal("the copy is not of the step " + step)
		}
		b := app.New(app.Options{Place: app.NewWorkplace(version), NoLSP: true})
		s, err := b.Runtime.LoadSession(ctx, id)
		if err != nil {
			t.Fatal(step, err)
		}
		r, err := reviewerOf(ctx, b, s)
		if err != nil {
			t.Fatal(step, err)
		}
		want := prompt
		if step == "announced, nothing written" {
			want = ""
		}
		current := ""
		for _, p := range r.Checkpoints() {
			if p.Current {
				current = p.ID
			}
		}
		hidden, err := s.Hidden(ctx)
		if err != nil || current != want || hidden.MessageID != want {
			t.Errorf("%s: taken back to %q, conversation at %q (%v)", step, current, hidden.MessageID, err)
		}
		for _, c := range r.Changes() {
			if c.State != string(change.Applied) && c.State != string(change.Failed) {
				t.Errorf("%s: a change is still %s", step, c.State)
			}
		}
		b.Close()
	}
}
