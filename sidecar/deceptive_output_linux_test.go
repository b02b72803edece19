package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// A line that an editor without protection would show in another order than a compiler reads it, and a character that
// clears a terminal.
const deceptive = "if user \u202e \u2066// is admin\u2069 \u2066{ \x1b[2J\u200b"

// What an editor shows of a tool's result acts on nothing; the model, which quotes it in edits, gets it as it is.
func TestDeceptiveOutputOfToolsReachesNoEditor(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	write(t, filepath.Join(r.cwd, "a.txt"), deceptive+"\n")
	r.start("")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("grep", `{"pattern":"admin"}`), says("done"))
	r.ed.send(prompt("p", "look"))
	for calls, ended := 0, false; !ended; {
		m, line := r.ed.receive()
		if strings.ContainsAny(line, "\u202e\u2066\u2069\u200b") || strings.Contains(line, `\u001b[2J`) {
			t.Errorf("raw: %s", line)
		}
		if strings.Contains(line, "‹U+202E›") && strings.Contains(line, `"rawOutput"`) {
			calls++
		}
		if ended = m["id"] == "p"; ended && calls != 2 {
			t.Errorf("%d calls showed the line, not 2", calls)
		}
	}
	if exact, _, _ := strings.Cut(deceptive, "\x1b"); !r.told(exact) {
		t.Error("the model did not get the text as it is")
	}
}

// The command line prints a tool's output for a terminal without what the terminal would obey, and for a program as it is.
func TestDeceptiveOutputOfToolsReachesNoTerminal(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), deceptive+"\n")
	command := func(name string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "tool", "call", "read", "--no-lsp", "--input", `{"filePath":"`+name+`"}`)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/.config", "XDG_STATE_HOME="+dir+"/s", "TERM=dumb")
		return cmd
	}
	for name, want := range map[string]string{"a.txt": "<U+202E> <U+2066>// is admin", `none\u202e`: "none<U+202E>"} {
		person, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		cmd := command(name)
		cmd.Stdout, cmd.Stderr = tty, tty
		_ = cmd.Run() // fails for the file that is missing: its name is in the message
		_ = tty.Close()
		var shown strings.Builder
		for buf := make([]byte, 4096); ; {
			n, err := person.Read(buf)
			shown.Write(buf[:n])
			if err != nil {
				break // EIO: all is read and the program has ended
			}
		}
		_ = person.Close()
		if s := shown.String(); !strings.Contains(s, want) || strings.ContainsAny(s, "\u202e\u2066\u2069\u200b\x1b") {
			t.Errorf("%s: %q", name, s)
		}
	}
	if out, err := command("a.txt").Output(); err != nil || !strings.Contains(string(out), deceptive) {
		t.Errorf("%q, %v", out, err)
	}
}
