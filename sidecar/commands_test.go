package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// allowAll allows whatever is asked.
type allowAll struct{}

func (allowAll) AskPermission(context.Context, permission.Request) (permission.Reply, error) {
	return permission.Reply{Kind: permission.Once}, nil
}

// commands is a session of the real program in a folder, with nobody but the test in front of it.
type commands struct {
	t   *testing.T
	dir string
	a   *app.App
	s   *agent.Session
	l   *review.Ledger
}

func newCommands(t *testing.T, dir string) *commands {
	atHome(t)
	c := &commands{t: t, dir: dir, a: app.New(app.Options{Place: app.NewWorkplace(version), Asker: allowAll{}, NoLSP: true}), l: review.NewLedger()}
	t.Cleanup(c.a.Close)
	s, err := c.a.Runtime.NewSession(context.Background(), agent.SessionOptions{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	c.s = s
	s.Subscribe(0, func(e agent.Event) { c.l.Take(e) })
	return c
}

func (c *commands) tool(name string, input map[string]any) agent.ToolData {
	c.t.Helper()
	in, _ := json.Marshal(input)
	d, err := c.s.Tool(context.Background(), name, in)
	if err != nil || d.Status != agent.ToolCompleted {
		c.t.Fatal(d.Error, err)
	}
	return d
}

func (c *commands) bash(command string) {
	c.t.Helper()
	c.tool("bash", map[string]any{"command": command})
}

// last is the newest change set, whole.
func (c *commands) last() *change.Set {
	c.t.Helper()
	all := c.l.Applied()
	if len(all) == 0 {
		c.t.Fatal("no change set")
	}
	set, err := c.a.Changes.Blobs.Load(all[len(all)-1])
	if err != nil {
		c.t.Fatal(err)
	}
	return set
}

func (c *commands) reviewer() *review.Reviewer { return c.a.Desk.Reviewer(c.s, c.l) }

func kinds(set *change.Set) string {
	var out []string
	for _, f := range set.Files {
		out = append(out, string(f.Kind)+" "+filepath.Base(f.Path))
	}
	return strings.Join(out, ", ")
}

func gitInit(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"}} {
		if b, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Skip("git: ", string(b))
		}
	}
}

// What a command does to files is a change set of its own, and comes back like an edit of the agent's.
func TestCommandsChangesAreCaughtAndTakenBack(t *testing.T) {
	for _, withGit := range []bool{false, true} {
		name := "without git"
		if withGit {
			name = "with git"
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"a.txt": "1\n2\n3\n", "b.txt": "b\n", "gone.txt": "gone\n", "bin": "\x00\x01\xff", "sub/c.txt": "c\n", "same.txt": "same\n"}
			for name, text := range files {
				put(t, filepath.Join(dir, name), text)
			}
			put(t, filepath.Join(dir, ".gitignore"), "*.log\n")
			if withGit {
				gitInit(t, dir)
				put(t, filepath.Join(dir, "b.txt"), "b changed since\n") // not as git has it
				files["b.txt"] = "b changed since\n"
			}
			c := newCommands(t, dir)
			c.bash("sed -i s/2/two/ a.txt && echo more >> b.txt && rm gone.txt && printf '\\000\\002' > bin && echo new > sub/new.txt && chmod 755 sub/c.txt && touch same.txt && echo x > build.log")
			set := c.last()
			if got := kinds(set); got != "edit a.txt, edit b.txt, edit bin, create build.log, delete gone.txt, edit c.txt, create new.txt" {
				t.Errorf("caught %s", got)
			}
			if set.Source != change.ByCommand || set.Uncaught != "" {
				t.Errorf("source %q, uncaught %q", set.Source, set.Uncaught)
			}
			// The person writes on in other lines, then all of it is taken back.
			put(t, filepath.Join(dir, "a.txt"), "1\ntwo\n3\nmine\n")
			if _, err := c.reviewer().Undo(context.Background(), set.ID, nil); err != nil {
				t.Fatal(err)
			}
			files["a.txt"] = "1\n2\n3\nmine\n"
			for name, want := range files {
				if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != want {
					t.Errorf("%s is %q, want %q (%v)", name, b, want, err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "sub/new.txt")); !os.IsNotExist(err) {
				t.Error("new.txt is still there")
			}
			if info, _ := os.Stat(filepath.Join(dir, "sub/c.txt")); info.Mode().Perm() != 0o644 {
				t.Errorf("mode %o", info.Mode().Perm())
			}
			// An undo of a command is undone like any other, byte for byte.
			back := c.last()
			if _, err := c.reviewer().Undo(context.Background(), back.ID, nil); err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(filepath.Join(dir, "bin")); string(b) != "\x00\x02" {
				t.Errorf("bin is %q again", b)
			}
			if _, err := c.reviewer().Undo(context.Background(), set.ID, nil); err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(filepath.Join(dir, "bin")); string(b) != files["bin"] {
				t.Errorf("bin is %q", b)
			}
			// A command after an undo sees what is there now.
			c.bash("echo again >> a.txt")
			if f := c.last().Files[0]; f.Old != "1\n2\n3\nmine\n" || f.New != "1\n2\n3\nmine\nagain\n" {
				t.Errorf("%q → %q", f.Old, f.New)
			}
			if withGit {
				if b, err := exec.Command("git", "-C", dir, "status", "--porcelain", "--ignored").CombinedOutput(); err != nil || strings.Contains(string(b), "A ") {
					t.Errorf("git's index was touched: %s %v", b, err)
				}
			}
		})
	}
}

// A command that ran in the background did not do what the agent's own edits did meanwhile.
func TestABackgroundCommandIsNotBlamedForOthersEdits(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "a\n")
	put(t, filepath.Join(dir, "b.txt"), "b\n")
	c := newCommands(t, dir)
	d := c.tool("bash", map[string]any{"command": "while ! test -e go; do sleep 0.02; done; echo B > b.txt; rm go", "background": true})
	id, _ := d.Metadata["id"].(string)
	c.tool("read", map[string]any{"filePath": "a.txt"})
	c.tool("write", map[string]any{"filePath": "a.txt", "content": "mine\n"})
	done := make(chan *change.Set, 1)
	stop := c.s.Subscribe(0, func(e agent.Event) {
		if d, ok := agent.Value[agent.ChangeData](e); ok && e.Type == agent.EventChange && d.State == change.Applied {
			if set := d.Full; set != nil && set.Source == change.ByCommand {
				select {
				case done <- set:
				default:
				}
			}
		}
	})
	defer stop()
	put(t, filepath.Join(dir, "go"), "")
	select {
	case set := <-done:
		if got := kinds(set); got != "edit b.txt" {
			t.Errorf("blamed for %s", got)
		}
	case <-c.timeout():
		t.Fatal("nothing was caught of the background command", id)
	}
}

func (c *commands) timeout() <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	return ctx.Done()
}

// What could not be kept is said, never passed over.
func TestWhatACommandChangedAndWasNotKeptIsSaid(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "big.bin"), strings.Repeat("0123456789abcdef", 300<<10)) // 4.7 MB
	put(t, filepath.Join(dir, "a.txt"), "a\n")
	c := newCommands(t, dir)
	c.bash("echo x >> big.bin; echo x >> a.txt")
	set := c.last()
	if kinds(set) != "edit a.txt" || !strings.Contains(set.Uncaught, "big.bin") {
		t.Errorf("%s; uncaught %q", kinds(set), set.Uncaught)
	}
	found := false
	if err := c.s.Events(context.Background(), 0, func(e agent.Event) error {
		d, _ := agent.Value[agent.NoticeData](e)
		found = found || e.Type == agent.EventNotice && strings.Contains(d.Text, "big.bin")
		return nil
	}); err != nil || !found {
		t.Error("the person was not told", err)
	}
}
