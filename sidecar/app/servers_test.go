package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// decider answers every question alike, and remembers them.
type decider struct {
	mu    sync.Mutex
	asked []permission.Request
	kind  permission.ReplyKind
}

func (d *decider) AskPermission(_ context.Context, r permission.Request) (permission.Reply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r)
	return permission.Reply{Kind: d.kind, Asked: true}, nil
}

// What language servers say of their own accord reaches the person in the session that uses them.
func TestServersSpeakInSessions(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(path, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := &decider{kind: permission.Once}
	a := New(Options{Place: NewWorkplace("test"), Asker: d, Ephemeral: true})
	defer a.Close()
	link := a.Servers.of(paths.Worktree(dir), a.ConfigOf(dir))
	edits := []lspbridge.FileEdit{{Path: path, Kind: "edit", Old: "one\n", New: "two\n"}}
	if err := a.Servers.applyEdit(t.Context(), link, "fake", "tidy", edits); !errors.Is(err, errNoSession) {
		t.Errorf("without a session: %v", err)
	}
	a.Servers.notify(link, agent.NoticeData{Text: "fake is missing"})
	s, err := a.Runtime.NewSession(t.Context(), agent.SessionOptions{Cwd: dir, Model: "builtin/quickfix"})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var notices, changes []string
	stop := s.Subscribe(0, func(e agent.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch v := e.Value.(type) {
		case agent.NoticeData:
			notices = append(notices, v.Text)
		case agent.ChangeData:
			changes = append(changes, string(v.State))
		}
	})
	defer stop()
	a.Sessions.Env(s.Info()) // as its first tool does
	a.Servers.notify(link, agent.NoticeData{Text: "fake has stopped"})
	if err := a.Servers.applyEdit(t.Context(), link, "fake", "tidy", edits); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "two\n" {
		t.Errorf("%q", b)
	}
	d.kind = permission.Reject
	if err := a.Servers.applyEdit(t.Context(), link, "fake", "", []lspbridge.FileEdit{{Path: path, Kind: "edit", Old: "two\n", New: "three\n"}}); !errors.Is(err, permission.ErrRejected) {
		t.Errorf("rejected: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "two\n" {
		t.Errorf("%q", b)
	}
	if len(d.asked) != 2 || !strings.Contains(d.asked[0].Title, "tidy") {
		t.Errorf("asked %+v", d.asked)
	} else if set := d.asked[0].Change; set == nil || set.Files[0].New != "two\n" {
		t.Errorf("asked about %+v", d.asked[0].Change)
	}
	if err := s.Events(t.Context(), 1<<40, func(agent.Event) error { return nil }); err != nil { // hands out what waits
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(notices, []string{"fake is missing", "fake has stopped"}) || !slices.Contains(changes, "applied") || !slices.Contains(changes, "rejected") {
		t.Errorf("notices %q, changes %q", notices, changes)
	}
}
