package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

var updateScreens = flag.Bool("update-screens", false, "write testdata/screens anew from what the terminal shows")

// tmux is a conversation in a real terminal. What it shows is compared with testdata/screens.
type tmux struct {
	t       *testing.T
	socket  string
	program []string        // what runs in a window
	first   <-chan struct{} // see window
}

const screenName = "conversation"

func (s *tmux) run(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// seat is how a conversation in tmux begins. The zero seat is 80 columns and 40 rows, and a project with one text file.
type seat struct {
	columns, rows int
	config        string            // pillion.jsonc of the person; empty: no language servers
	files         map[string]string // of the project
	env           []string          // above the rest
	args          []string          // of the program
	shell         bool              // a shell is in the terminal, and the program is started by typing "ride" and Enter
}

// talkInTmux starts the program in a project of its own, 80 columns wide.
func talkInTmux(t *testing.T, model *wiretest.Server) (s *tmux, project string) {
	t.Helper()
	return sitInTmux(t, model, seat{})
}

// sitInTmux starts the program in a terminal and a project of its own.
func sitInTmux(t *testing.T, model *wiretest.Server, o seat) (s *tmux, project string) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed (make setup-go installs it)")
	}
	home := t.TempDir()
	project = filepath.Join(home, "till")
	files := map[string]string{"till/a.txt": "one\ntwo\nthree\n", "config/pillion/pillion.jsonc": cmp.Or(o.config, `{"lsp": false}`)}
	for path, text := range o.files {
		files["till/"+path] = text
	}
	env := []string{"env", "-i", "PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm-256color", "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0", "PS1=$ ",
		"XDG_CONFIG_HOME=" + home + "/config", "XDG_STATE_HOME=" + home + "/state", "XDG_CACHE_HOME=" + home + "/cache",
		"OPENAI_BASE_URL=" + model.OpenAIURL(), "OPENAI_API_KEY=k", "PILLION_MODEL=openai/scripted", "PILLION_TEST_MAIN=1"}
	env = append(env, o.env...)
	program := append([]string{os.Args[0]}, o.args...)
	if o.shell {
		files["bin/ride"] = "#!/bin/sh\nexec " + strings.Join(program, " ") + " \"$@\"\n"
		program = []string{"PATH=" + home + "/bin:" + os.Getenv("PATH"), "bash", "--norc", "--noprofile", "-i"}
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, path), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s = &tmux{t: t, socket: filepath.Join(home, "tmux"), program: slices.Concat(env, program)}
	size := []string{"-x", strconv.Itoa(cmp.Or(o.columns, 80)), "-y", strconv.Itoa(cmp.Or(o.rows, 40))}
	s.first = s.window(project, slices.Concat([]string{"new-session", "-s", screenName}, size)...)
	return s, project
}

// window opens a window with the program in a folder. ended is closed when the program and all that it started have ended, which the test
// waits for before it removes their files: they hold the other end of a pipe open.
func (s *tmux) window(dir string, how ...string) (ended <-chan struct{}) {
	s.t.Helper()
	pipe := filepath.Join(s.t.TempDir(), "open")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		s.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		if f, err := os.Open(pipe); err == nil {
			_, _ = io.Copy(io.Discard, f)
			_ = f.Close()
		}
	}()
	s.run(slices.Concat(how, []string{"-d", "-c", dir, "sh", "-c", `exec 9>"$0"; exec "$@"`, pipe}, s.program)...)
	s.t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", s.socket, "kill-server").Run()
		select {
		case <-over:
		case <-time.After(patience):
			s.t.Error("the program outlives its terminal")
		}
	})
	return over
}

func (s *tmux) types(text string) { s.t.Helper(); s.run("send-keys", "-t", screenName, "-l", text) }
func (s *tmux) press(keys ...string) {
	s.t.Helper()
	s.run(append([]string{"send-keys", "-t", screenName}, keys...)...)
}

var passing = regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|\b\d+(m\d+)?s\b|context \d+%|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`) // what differs from run to run

// until waits until the screen shows a text and holds still, and returns it without what differs from run to run.
func (s *tmux) until(want string) string {
	s.t.Helper()
	last, same := "", 0
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	limit := time.After(patience)
	for {
		select {
		case <-look.C:
		case <-limit:
			s.t.Fatalf("never showed %q:\n%s", want, last)
		}
		var lines []string
		for _, l := range strings.Split(s.run("capture-pane", "-p", "-t", screenName), "\n") {
			lines = append(lines, strings.TrimRight(l, " "))
		}
		now := passing.ReplaceAllString(strings.TrimRight(strings.Join(lines, "\n"), "\n")+"\n", "~")
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		if same >= 4 && strings.Contains(now, want) {
			return now
		}
	}
}

// matches compares a screen with its golden file.
func (s *tmux) matches(name, screen string) {
	s.t.Helper()
	path := filepath.Join("testdata", "screens", name+".txt")
	_, screen, _ = strings.Cut(screen, "\n\n") // what is above the first blank line names the folder
	screen = "\n" + screen
	if *updateScreens {
		if err := os.WriteFile(path, []byte(screen), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if screen != string(want) {
		s.t.Errorf("%s: the screen is\n%s\nwant\n%s", name, screen, want)
	}
}

// A while in the terminal: an answer in Markdown, a prompt typed meanwhile and queued, a command and a change to approve, a command
// of the user's own, the list of sessions, and the end.
func TestAConversationOnTheScreen(t *testing.T) {
	t.Parallel()
	input := func(v any) json.RawMessage { b, _ := json.Marshal(v); return b }
	paused := make(chan struct{})
	used := &wiretest.Usage{Input: 4200, Output: 130}
	model := wiretest.New(t,
		wiretest.Step{Usage: used, Pause: paused, Text: "# A plan\n\nFirst **read** `a.txt`, then:\n\n1. change one\n2. check\n\n| file | lines |\n|---|--:|\n| a.txt | 3 |\n\n```go\nfunc main() {}\n```\n\nShall I"},
		wiretest.Step{Usage: used, Calls: []wiretest.Call{{Name: "bash", Input: input(map[string]string{"command": "touch made.txt", "description": "make a file"})}}},
		wiretest.Step{Usage: used, Calls: []wiretest.Call{{Name: "edit", Input: input(map[string]string{"filePath": "a.txt", "oldString": "two", "newString": "TWO"})}}},
		wiretest.Step{Usage: used, Text: "Both are done."},
	)
	s, project := talkInTmux(t, model)
	s.until("ctrl-d ends")
	s.types("What is to be done?")
	s.press("Enter")
	s.until("Shall I")
	s.types("Please do it. y")
	s.press("Enter")
	s.types("a draft")
	s.matches("queue", s.until("a draft"))
	s.press("C-c") // clears the draft only
	close(paused)
	s.until("Allow [y,n")
	s.matches("command", s.until("with enter: y yes")) // something was typed just before it came
	s.types("y")
	s.until("enter answers yes")
	s.press("Enter")
	s.until("Accept this hunk [y,n")
	s.matches("hunk", s.until("q stop"))
	s.types("y")
	s.until("2 files changed") // which comes after the turn's end
	s.types("!cat a.txt")
	s.press("Enter")
	s.until("three\n")
	s.types("/sessions")
	s.press("Enter")
	s.until("this one")
	s.types("/he")
	s.matches("completion", s.until("▸ /help"))
	s.press("C-c")
	s.until("again to exit")
	s.press("C-c")
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for exec.CommandContext(within, "tmux", "-S", s.socket, "has-session").Run() == nil {
		if within.Err() != nil {
			t.Fatal("the conversation did not end")
		}
	}
	if b, err := os.ReadFile(filepath.Join(project, "a.txt")); err != nil || string(b) != "one\nTWO\nthree\n" {
		t.Errorf("%q %v", b, err)
	}
}

// A window is resized while an answer streams and a question is open: no line of the answer is lost or shown twice, in the window or
// in the scroll-back.
func TestResizingLosesNoLine(t *testing.T) {
	t.Parallel()
	paragraphs := func(from, to int) (text string) {
		for i := from; i <= to; i++ {
			text += fmt.Sprintf("Paragraph %d begins here and goes on for a while so that it is wrapped, up to its end which is number %d.\n\n", i, i)
		}
		return text
	}
	pauses := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	// A list is one block, so its rows are still in the frame when the window changes.
	list := "- one\n- two\n- three\n- four\n- five"
	model := wiretest.New(t,
		wiretest.Step{Pause: pauses[0], Text: paragraphs(1, 30) + list},
		wiretest.Step{Pause: pauses[1], Text: paragraphs(31, 60) + list},
		wiretest.Step{Pause: pauses[2], Text: paragraphs(61, 90) + list},
	)
	s, _ := talkInTmux(t, model)
	s.run("set-option", "-g", "history-limit", "5000")
	s.until("ctrl-d ends")
	for i, size := range [][]string{{"50", "20"}, {"95", "45"}, {"44", "12"}} {
		s.types("More.")
		s.press("Enter")
		s.until("• five")
		s.run(append([]string{"resize-window", "-t", screenName, "-x"}, size[0], "-y", size[1])...)
		// The line below the prompt is cut where it does not fit, so it says that the window has been drawn for its new size.
		want := "…"
		if size[0] == "95" {
			want = "ctrl-d ends"
		}
		s.until(want)
		close(pauses[i])
		s.until("four\n• five\n\n›")
	}
	// -J joins rows that the terminal has broken; a paragraph that was wrapped by the program is several rows.
	all := strings.Join(strings.Fields(s.run("capture-pane", "-p", "-J", "-S", "-", "-t", screenName)), " ")
	for i := 1; i <= 90; i++ {
		if n := strings.Count(all, strings.TrimSpace(paragraphs(i, i))); n != 1 {
			t.Errorf("paragraph %d is there %d times", i, n)
		}
	}
	if n := strings.Count(all, "/help ·"); n > 1 {
		t.Errorf("%d prompts were left behind", n-1)
	}
	if t.Failed() {
		t.Log(all)
	}
}
