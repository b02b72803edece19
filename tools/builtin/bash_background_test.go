//go:build unix && cgo

package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// newBackgroundSession has all the tools for commands, on one table.
func newBackgroundSession(t *testing.T, config string) *bashSession {
	s := newBashSession(t, config)
	s.env.Shell.Background = &run.Background{}
	t.Cleanup(s.env.Shell.Background.Close)
	return s
}

// tool calls one of them.
func (s *bashSession) tool(id string, input map[string]any) (tools.Result, error) {
	s.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		s.t.Fatal(err)
	}
	s.asked = nil
	for _, t := range All(s.env) {
		if t.ID == id {
			return tools.Invoke(s.t.Context(), t, raw, &tools.Call{SessionID: "s", CallID: "c", Tool: id, Host: tools.Host{Gate: s.gate}}, tools.CapOptions{})
		}
	}
	s.t.Fatal("no tool", id)
	return tools.Result{}, nil
}

func (s *bashSession) must(id string, input map[string]any) tools.Result {
	s.t.Helper()
	r, err := s.tool(id, input)
	if err != nil {
		s.t.Fatalf("%s %v: %v", id, input, err)
	}
	return r
}

// until looks until the output holds want.
func (s *bashSession) until(id string, r tools.Result, want string) tools.Result {
	s.t.Helper()
	for !strings.Contains(r.Output, want) {
		if r.Metadata["running"] != true {
			s.t.Fatalf("it ended without %q:\n%s", want, r.Output)
		}
		r = s.must("bash_output", map[string]any{"id": id, "wait": 30000})
	}
	return r
}

func TestABackgroundCommandFromStartToEnd(t *testing.T) {
	s := newBackgroundSession(t, `{"bash":"allow","bash_input":"allow"}`)
	r := s.must("bash", map[string]any{"command": `echo "$$ up"; while read -r x; do echo "got $x"; done; exit 4`, "background": true, "description": "Serve"})
	if r.Metadata["id"] != "bg_1" || r.Metadata["running"] != true || r.Metadata["exit"] != nil || r.Title != "Serve" || !strings.Contains(r.Output, "id: bg_1\n") {
		t.Errorf("%+v", r)
	}
	r = s.until("bg_1", r, " up\n")
	pid, err := strconv.Atoi(strings.Fields(r.Output)[0])
	if err != nil {
		t.Fatal(err)
	}
	if r := s.must("bash_output", map[string]any{}); !strings.Contains(r.Output, "bg_1 (runs for ") || r.Metadata["count"] != 1 {
		t.Errorf("%s", r.Output)
	}
	if r := s.must("bash_output", map[string]any{"id": "bg_1"}); !strings.HasPrefix(r.Output, "(no new output)\n") {
		t.Errorf("%s", r.Output)
	}
	s.until("bg_1", s.must("bash_input", map[string]any{"id": "bg_1", "text": "a line\n"}), "got a line\n")
	if len(s.asked) != 0 {
		t.Errorf("asked %s", s.asks())
	}
	r = s.until("bg_1", s.must("bash_input", map[string]any{"id": "bg_1", "text": "", "eof": true}), "exit code: 4")
	if r.Metadata["exit"] != 4 || r.Metadata["running"] != false {
		t.Errorf("%+v", r.Metadata)
	}
	if r := s.must("bash_output", map[string]any{}); !strings.HasPrefix(r.Output, "No command runs") {
		t.Errorf("%s", r.Output)
	}
	if r := s.must("bash_kill", map[string]any{"id": "bg_1"}); !strings.Contains(r.Output, "It had ended before.") {
		t.Errorf("%s", r.Output)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Error(pid, "is still there")
	}
}

func TestTheEndOfTheSessionLeavesNoProcess(t *testing.T) {
	s := newBackgroundSession(t, `{"bash":"allow"}`)
	start := map[string]any{"command": "sleep 1000 & echo $! up; wait", "background": true}
	var pids []int
	for i := range 3 {
		id := fmt.Sprintf("bg_%d", i+1)
		r := s.until(id, s.must("bash", start), " up\n")
		pid, err := strconv.Atoi(strings.Fields(r.Output)[0])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	// A command in the foreground can leave a process behind too.
	left := s.must("bash", map[string]any{"command": "sleep 1000 >/dev/null 2>&1 & echo $!"})
	pid, err := strconv.Atoi(strings.Fields(left.Output)[0])
	if err != nil {
		t.Fatal(err)
	}
	pids = append(pids, pid)
	r := s.must("bash_kill", map[string]any{"id": "bg_2"})
	if r.Metadata["running"] != false || !strings.Contains(r.Output, "ended by signal") || !strings.Contains(r.Output, "killed with all") {
		t.Errorf("%s", r.Output)
	}
	if syscall.Kill(pids[1], 0) == nil || syscall.Kill(pids[0], 0) != nil {
		t.Error("bg_2 should be gone, bg_1 not")
	}
	s.env.Shell.Close()
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil {
			t.Error(pid, "is still there")
		}
	}
	var te *tools.Error
	if _, err := s.tool("bash", start); !errors.As(err, &te) || te.Kind != "not_started" {
		t.Errorf("%v", err)
	}
}

func TestInTheBackgroundTheSameIsAsked(t *testing.T) {
	s := newBackgroundSession(t, `{}`)
	s.must("bash", map[string]any{"command": "echo x > ../b", "background": true})
	if got := s.asks(); got != "external_directory $UP/* | bash echo x" {
		t.Errorf("asked %s", got)
	}
	s.answer = permission.Reply{Kind: permission.Reject}
	if _, err := s.tool("bash", map[string]any{"command": "touch x", "background": true}); !errors.Is(err, permission.ErrRejected) {
		t.Errorf("%v", err)
	}
	if s.env.Shell.Background.Get("bg_2") != nil {
		t.Error("it was started")
	}
}

func TestWhatIsTypedIsAsked(t *testing.T) {
	for _, c := range []struct{ name, config, text, asks string }{
		{"each time", `{}`, "y\n", "bash_input cat < y"},
		{"also where everything is allowed", `"allow"`, "y\n", "bash_input cat < y"},
		{"a rule for it", `{"bash":"allow","bash_input":"allow"}`, "y\n", ""},
		{"a rule for this program", `{"bash":"allow","bash_input":{"cat < *":"allow"}}`, "y\n", ""},
		{"a rule for another", `{"bash":"allow","bash_input":{"dog < *":"allow"}}`, "y\n", "bash_input cat < y"},
		{"a protected file beats allow", `{"bash":"allow","bash_input":"allow"}`, "echo x >> .git/config\n", "bash_input! cat < echo x >> .git/config"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newBackgroundSession(t, c.config)
			s.must("bash", map[string]any{"command": "cat", "background": true})
			r := s.must("bash_input", map[string]any{"id": "bg_1", "text": c.text})
			if got := s.asks(); got != c.asks {
				t.Errorf("asked %q, want %q", got, c.asks)
			}
			for _, a := range s.asked {
				if len(a.Always) != 0 {
					t.Errorf("always is offered: %q", a.Always)
				}
			}
			s.until("bg_1", r, c.text)
		})
	}
}

func TestWhatIsDeniedIsNotTypedEither(t *testing.T) {
	s := newBackgroundSession(t, `{"bash":{"*":"allow","rm *":"deny"},"bash_input":"allow"}`)
	s.must("bash", map[string]any{"command": "cat", "background": true})
	for _, text := range []string{"rm a.txt\n", "true; FOO=1 /bin/rm a.txt\n", "bash -c 'rm a.txt'\n"} {
		if _, err := s.tool("bash_input", map[string]any{"id": "bg_1", "text": text}); !errors.Is(err, permission.ErrDenied) {
			t.Errorf("%q: %v", text, err)
		}
	}
	s.answer = permission.Reply{Kind: permission.Reject, Message: "no"}
	s.gate = permission.NewGate(permission.GateOptions{Asker: s})
	if _, err := s.tool("bash_input", map[string]any{"id": "bg_1", "text": "y\n"}); !errors.Is(err, permission.ErrRejected) {
		t.Errorf("%v", err)
	}
	if r := s.must("bash_output", map[string]any{"id": "bg_1"}); !strings.HasPrefix(r.Output, "(no new output)") {
		t.Errorf("it was typed: %s", r.Output)
	}
}

func TestBackgroundSaysWhatToDoNext(t *testing.T) {
	s := newBackgroundSession(t, `{"bash":"allow","bash_input":"allow"}`)
	s.must("bash", map[string]any{"command": "cat", "background": true})
	for _, c := range []struct {
		tool  string
		input map[string]any
		want  string
	}{
		{"bash_output", map[string]any{"id": "bg_7"}, `no background command "bg_7" in this session. In the background:` + "\nbg_1 (runs for "},
		{"bash_kill", map[string]any{"id": "1"}, "bg_1"},
		{"bash_output", map[string]any{"id": "bg_1", "wait": 30001}, "30000"},
		{"bash_input", map[string]any{"id": "bg_1", "text": ""}, "set text, or eof"},
		{"bash_input", map[string]any{"id": "bg_1", "text": "a\x00b"}, "This is not typed"},
	} {
		if _, err := s.tool(c.tool, c.input); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v", c.tool, c.input, err)
		}
	}
	for range run.MaxBackground - 1 {
		s.must("bash", map[string]any{"command": "echo; cat", "background": true})
	}
	if _, err := s.tool("bash", map[string]any{"command": "cat", "background": true}); err == nil || !strings.Contains(err.Error(), "end one first with bash_kill. In the background:\nbg_1") {
		t.Errorf("%v", err)
	}
	s.must("bash_kill", map[string]any{"id": "bg_1"})
	if _, err := s.tool("bash_input", map[string]any{"id": "bg_1", "text": "x"}); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("%v", err)
	}
}

// flushed is a bridge that counts.
type flushed struct {
	Bridge
	n atomic.Int64
}

func (f *flushed) Flush(context.Context) { f.n.Add(1) }

func TestTheLanguageServersHearOfCommandsThatMayWrite(t *testing.T) {
	s := newBackgroundSession(t, `{"bash":"allow"}`)
	f := &flushed{}
	s.env.Bridge = f
	for _, c := range []struct {
		command string
		n       int64
	}{{"touch x", 1}, {"cat a.txt", 1}, {"echo x >y", 2}} {
		s.must("bash", map[string]any{"command": c.command})
		if f.n.Load() != c.n {
			t.Errorf("%s: %d", c.command, f.n.Load())
		}
	}
	r := s.must("bash", map[string]any{"command": "touch z; echo done", "background": true})
	s.until("bg_1", r, "exit code: 0")
	if f.n.Load() < 3 { // once before its end is told, once at its end
		t.Errorf("%d after the end of a background command", f.n.Load())
	}
}
