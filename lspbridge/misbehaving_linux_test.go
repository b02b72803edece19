package lspbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// misdeed is what a server does wrong, as a process of its own.
type misdeed struct {
	name   string
	server func() fakelsp.Options // nil: the program itself is the misdeed
	argv   []string
	state  change.Certainty // of what is said of an edit in the end
	told   int              // how often the person is
}

type on = func(context.Context, *fakelsp.Server, string, json.RawMessage) (any, bool, error)

func misdeeds() []misdeed {
	var mu sync.Mutex
	once := map[string]bool{}
	first := func(what string) bool {
		mu.Lock()
		defer mu.Unlock()
		if once[what] {
			return false
		}
		once[what] = true
		return true
	}
	pulls := func(f on) func() fakelsp.Options {
		return func() fakelsp.Options { return fakelsp.Options{Pull: true, On: f} }
	}
	released := make(chan struct{})
	var waiting chan struct{}
	return []misdeed{
		{name: "is missing", argv: []string{"/no/such/language-server"}, state: change.Unavailable, told: 1},
		{name: "exits at once", argv: []string{"/bin/sh", "-c", "echo 'error: no licence' >&2; exit 3"}, state: change.Unavailable, told: 1},
		{name: "prints and never speaks", argv: []string{"/bin/sh", "-c", "while echo hello; do sleep 0.2; done"}, state: change.Pending},
		{name: "reads nothing and says nothing", argv: []string{"/bin/sleep", "600"}, state: change.Pending},
		{name: "leaves children that hold its output", argv: []string{"/bin/sh", "-c", "sleep 600 & exit 1"}, state: change.Unavailable, told: 1},
		{name: "logs to stdout", state: change.Fresh, server: pulls(func(_ context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			s.Raw("debug: " + m + "\n\x00\xff{\n")
			return nil, false, nil
		})},
		{name: "answers late", state: change.Fresh, server: pulls(func(ctx context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/diagnostic" && first(m) {
				select {
				case <-time.After(700 * time.Millisecond): // the first question is given up by then
				case <-ctx.Done():
				}
				return map[string]any{"kind": "full", "items": fakelsp.Problems("BAD late")}, true, nil
			}
			return nil, false, nil
		})},
		{name: "answers out of order", state: change.Fresh, server: func() fakelsp.Options {
			return fakelsp.Options{Pull: true, Aside: []string{"textDocument/diagnostic"}, On: func(ctx context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				if m != "textDocument/diagnostic" {
					return nil, false, nil
				}
				if mu.Lock(); waiting == nil { // the first of two waits for the second
					waiting = make(chan struct{})
					second := waiting
					mu.Unlock()
					select {
					case <-second:
						time.Sleep(10 * time.Millisecond) // whose answer is on the way
					case <-ctx.Done():
					}
					return nil, false, nil
				}
				close(waiting)
				waiting = nil
				mu.Unlock()
				return nil, false, nil
			}}
		}},
		{name: "answers twice", state: change.Fresh, server: pulls(func(_ context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m != "initialize" {
				for id := range 2 { // whatever number the first question had, it is answered again and again
					b := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"kind":"full","items":[]}}`, id)
					s.Raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b))
				}
			}
			return nil, false, nil
		})},
		{name: "answers null", state: change.Pending, server: pulls(func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			return nil, m != "initialize" && m != "shutdown", nil
		})},
		{name: "answers with wrong shapes", state: change.Pending, server: pulls(func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			return []any{1, map[string]any{"uri": 7}}, m != "initialize" && m != "shutdown", nil
		})},
		{name: "initialises with a wrong shape", state: change.Unavailable, told: 1, server: pulls(func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			return "hello", m == "initialize", nil
		})},
		{name: "sends 100 MB", state: change.Fresh, server: pulls(func(_ context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/didOpen" && first(m) {
				big := `{"jsonrpc":"2.0","method":"window/logMessage","params":{"message":"` + strings.Repeat("x", 100<<20) + `"}}`
				s.Raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(big), big))
			}
			return nil, false, nil
		})},
		{name: "asks what nobody knows", state: change.Fresh, server: pulls(func(_ context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/didChange" {
				_ = s.Peer().Call(context.Background(), "x/y", json.RawMessage(`[1,null]`), nil)
				_ = s.Peer().Call(context.Background(), "workspace/applyEdit", json.RawMessage(`{"edit":{"changes":7}}`), nil)
				_ = s.Peer().Call(context.Background(), "client/registerCapability", json.RawMessage(`{"registrations":[{"id":1}]}`), nil)
				_ = s.Peer().Notify(context.Background(), "$/x", json.RawMessage(`{}`))
			}
			return nil, false, nil
		})},
		{name: "dies between didChange and diagnostics", state: change.Pending, server: pulls(func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/didChange" || m == "textDocument/diagnostic" { // five times in ten minutes: TestServerThatCrashesAlways
				os.Exit(4)
			}
			return nil, false, nil
		})},
		{name: "never answers shutdown", state: change.Fresh, server: func() fakelsp.Options {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			child := exec.Command("/bin/sleep", "600")
			_ = child.Start()
			return fakelsp.Options{Pull: true, On: func(ctx context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				if m == "shutdown" {
					<-released
				}
				return nil, m == "exit", nil
			}}
		}},
	}
}

const misdeedEnv = "PILLION_TEST_MISDEED"

// Each of these servers is a real process that misbehaves in one way. The edit continues within its budget, the person is
// told once at most, and nothing of the server is left in the end.
func TestMisbehavingServers(t *testing.T) {
	if name := os.Getenv(misdeedEnv); name != "" {
		for _, d := range misdeeds() {
			if d.name == name {
				s := fakelsp.New(d.server())
				r, w := s.Pipes()
				go func() { _, _ = io.Copy(w, os.Stdin); select {} }() // it does not care that nobody is there
				_, _ = io.Copy(os.Stdout, r)
			}
		}
		os.Exit(0)
	}
	for _, d := range misdeeds() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			argv := d.argv
			if d.server != nil {
				argv = []string{os.Args[0], "-test.run=^TestMisbehavingServers$"}
			}
			var mu sync.Mutex
			var told []string
			var pids []int
			root := t.TempDir()
			m := New(Options{Root: root, NoWatch: true, Idle: -1,
				Servers: map[string]ServerConfig{"odd": {Command: argv, Extensions: []string{".odd"}, Env: map[string]string{misdeedEnv: d.name}}},
				Notice:  func(_, text string) { mu.Lock(); told = append(told, text); mu.Unlock() },
				Start: func(cmd *exec.Cmd) error {
					err := cmd.Start()
					if err == nil {
						mu.Lock()
						pids = append(pids, cmd.Process.Pid)
						mu.Unlock()
					}
					return err
				}})
			a, b := filepath.Join(root, "a.odd"), filepath.Join(root, "b.odd")
			write(t, a, "BAD before\n")
			write(t, b, "fine\n")
			edit := []Proposal{{Path: a, Text: "BAD after\n"}, {Path: b, Text: "BAD beside\n"}}
			const budget = 400 * time.Millisecond
			var last Delta
			for try, began := 0, time.Now(); ; try++ {
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				asked := time.Now()
				last = m.Check(ctx, edit)
				if took := time.Since(asked); took > budget+20*time.Second { // the machine may be busy
					t.Errorf("try %d: the edit waited %v", try, took)
				}
				cancel()
				if last.Certainty == d.state && (try >= 2 || d.state == change.Fresh) || time.Since(began) > 5*time.Minute {
					break
				}
			}
			if last.Certainty != d.state || last.Reason == "" && d.state != change.Fresh {
				t.Errorf("%s %q", last.Certainty, last.Reason)
			}
			if d.state == change.Fresh && (messages(last.Introduced) != "a.odd: after\nb.odd: beside" || messages(last.Fixed) != "a.odd: before") {
				t.Errorf("introduced %q, fixed %q", messages(last.Introduced), messages(last.Fixed))
			}
			closing := time.Now()
			m.Close(t.Context())
			if took := time.Since(closing); took > 20*time.Second {
				t.Errorf("Close took %v", took)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(told) != d.told {
				t.Errorf("the person was told %q", told)
			}
			for _, pid := range pids {
				if left := group(t, pid); left != "" {
					t.Errorf("left of process %d: %s", pid, left)
				}
			}
		})
	}
}

// group says what is left of a process and of its group, zombies included; the dead of other parents get a moment.
func group(t *testing.T, pgid int) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // nobody tells us of their end
		left := ""
		all, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, f := range all {
			b, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			_, rest, _ := bytes.Cut(b, []byte(") "))
			fields := strings.Fields(string(rest)) // state, parent, group …
			if len(fields) < 3 || fields[2] != strconv.Itoa(pgid) {
				continue
			}
			if fields[0] != "Z" || fields[1] == strconv.Itoa(os.Getpid()) { // a zombie of ours is ours to reap
				left += string(b[:min(len(b), 60)]) + "; "
			}
		}
		if left == "" || time.Now().After(deadline) {
			return left
		}
	}
}
