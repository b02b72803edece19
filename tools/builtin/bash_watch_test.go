//go:build unix && cgo

package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// listens hears of commands.
type listens struct{ heard []string }

func (l *listens) Before(_ context.Context, run CommandRun) func(context.Context) []string {
	l.heard = append(l.heard, fmt.Sprintf("before %s %v %v", run.Command, len(run.Writes), run.Background))
	return func(context.Context) []string {
		l.heard = append(l.heard, "after "+run.Command)
		return []string{"noted"}
	}
}

func TestCommandsThatMayChangeFilesAreToldOf(t *testing.T) {
	s := newBashSession(t, `{"bash":"allow","edit":"allow"}`)
	l := &listens{}
	s.env.Commands = l
	if _, err := s.call(map[string]any{"command": "ls"}); err != nil {
		t.Fatal(err)
	}
	r, err := s.call(map[string]any{"command": "echo x > new.txt"})
	if err != nil || !strings.Contains(r.Output, "\nnoted\n") {
		t.Errorf("%v %q", err, r.Output)
	}
	if _, err := s.call(map[string]any{"command": "touch q; sleep 100", "timeout": 50}); err == nil {
		t.Error("a time-out is no success")
	}
	want := "[before echo x > new.txt 1 false after echo x > new.txt before touch q; sleep 100 1 false after touch q; sleep 100]"
	if got := fmt.Sprint(l.heard); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFilesThatWereReadAndChangedByACommandAreNamed(t *testing.T) {
	s := newBackgroundSession(t, `{"*":"allow"}`)
	s.env.Tracker, s.env.Locks = &files.Tracker{}, &files.Locks{}
	a, b := filepath.Join(s.env.Cwd, "a.txt"), filepath.Join(s.env.Cwd, "b.txt")
	for _, p := range []string{a, b} {
		if err := os.WriteFile(p, []byte("one\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s.must("read", map[string]any{"filePath": p})
	}
	r := s.must("bash", map[string]any{"command": "echo two >> a.txt"})
	if !strings.Contains(r.Output, "It changed files you have read: a.txt. Read them again") || strings.Contains(r.Output, "b.txt") {
		t.Errorf("%q", r.Output)
	}
	// The next edit demands it, too, unless it quotes exactly.
	if _, err := s.tool("edit", map[string]any{"filePath": a, "oldString": "one ", "newString": "1"}); err == nil || !strings.Contains(err.Error(), "has been modified since it was last read") {
		t.Errorf("%v", err)
	}
	if r := s.must("bash", map[string]any{"command": "rm b.txt"}); !strings.Contains(r.Output, "b.txt (gone)") {
		t.Errorf("%q", r.Output)
	}
}

func TestCommandsCanBeWatchedAndEndedByThePerson(t *testing.T) {
	s := newBashSession(t, `{"bash":"allow"}`)
	ts := &run.Terminals{}
	t.Cleanup(ts.Close)
	s.env.Shell.Terminals = ts
	seen := make(chan string, 1)
	go func() {
		for ts.Get("term_1") == nil {
			time.Sleep(time.Millisecond) // nobody tells of a command's start
		}
		term := ts.Get("term_1")
		var all []byte
		for at := int64(0); !strings.Contains(string(all), "up"); {
			data, next, _, err := term.Read(t.Context(), at)
			if err != nil {
				break
			}
			all, at = append(all, data...), next
		}
		if err := term.Input(t.Context(), []byte("x")); !errors.Is(err, run.ErrNoInput) {
			all = fmt.Append(all, err)
		}
		term.Kill()
		seen <- string(all)
	}()
	r, err := s.call(map[string]any{"command": "printf '\\033[31mred\\033[0m\\nup'; sleep 1000"})
	var failed *tools.Error
	if !errors.As(err, &failed) || failed.Kind != "cancelled" || !strings.HasPrefix(r.Output, "red\nup\n") {
		t.Errorf("%v %q", err, r.Output)
	}
	if got := <-seen; got != "\x1b[31mred\x1b[0m\r\nup" { // control codes are kept for the person
		t.Errorf("%q", got)
	}
	if code, word := ts.Get("term_1").Exit(); code != -1 || word != "cancelled" {
		t.Errorf("%d %q", code, word)
	}
}

func TestBackgroundOnAPseudoTerminal(t *testing.T) {
	s := newBackgroundSession(t, `{"bash":"allow","bash_input":"allow"}`)
	r := s.must("bash", map[string]any{"command": `test -t 0 && test -t 1 && read -rp 'name? ' n && echo "hello $n"`, "background": true, "pty": true})
	s.until("bg_1", r, "name?")
	r = s.until("bg_1", s.must("bash_input", map[string]any{"id": "bg_1", "text": "Pat\n"}), "exit code: 0")
	if !strings.Contains(r.Output, "hello Pat") {
		t.Errorf("%q", r.Output)
	}
	if _, err := s.tool("bash", map[string]any{"command": "ls", "pty": true}); err == nil || !strings.Contains(err.Error(), "background") {
		t.Errorf("%v", err)
	}
	// The key that means the end of input.
	r = s.must("bash", map[string]any{"command": `cat; echo "got all"`, "background": true, "pty": true})
	s.must("bash_input", map[string]any{"id": "bg_2", "text": "line\n"})
	s.until("bg_2", s.must("bash_input", map[string]any{"id": "bg_2", "text": "", "eof": true}), "got all")
}
