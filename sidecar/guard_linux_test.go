package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// carrying finds the live processes whose command line holds a word.
func carrying(word string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(line, []byte(word)) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(f), "stat"))
		if i := bytes.LastIndexByte(stat, ')'); err == nil && i > 0 && stat[i+2] != 'Z' && stat[i+2] != 'X' {
			out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

// Whatever a command did to get away, kill -9 of the program takes it along: at several moments, a start under way
// included. The processes are found by a word in their command lines, not by the marks that the guard goes by.
func TestNothingOutlivesKill9(t *testing.T) {
	for name, command := range map[string]string{
		"children":              `sleep %[1]s & sleep %[1]s`,
		"two forks":             `(setsid sleep %[1]s >/dev/null 2>&1 & ) ; (nohup setsid sh -c 'sleep %[1]s & sleep %[1]s' >/dev/null 2>&1 &); sleep %[1]s`,
		"no environment":        `(env -i setsid /bin/sh -c '/bin/sleep %[1]s & exec /bin/sleep %[1]s' >/dev/null 2>&1 &); sleep %[1]s`,
		"deaf":                  `trap '' TERM HUP INT; setsid sh -c 'trap "" TERM HUP; while :; do sleep %[1]s; done' & sleep %[1]s`,
		"left by an ended call": `setsid sleep %[1]s >/dev/null 2>&1 &`,
		"many":                  `for i in 1 2 3 4 5 6 7 8 9 10; do (setsid sh -c 'for j in 1 2 3; do sleep %[1]s & done; wait' >/dev/null 2>&1 &); done; sleep %[1]s`,
	} {
		for i, moment := range []time.Duration{0, 3 * time.Millisecond, 15 * time.Millisecond, 60 * time.Millisecond, time.Hour} {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				t.Parallel()
				for _, n := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
					if err := os.MkdirAll(filepath.Join(t.TempDir(), n), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				home := t.TempDir()
				word := fmt.Sprintf("7%08d.%d", time.Now().UnixNano()%1e8, i) // a number of seconds nobody else sleeps
				cmd := exec.Command(os.Args[0], "tool", "call", "--jsonl", "--no-lsp", "--approve", "all", "-C", t.TempDir())
				cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+home, "XDG_CONFIG_HOME="+home+"/c", "XDG_STATE_HOME="+home+"/s", "XDG_DATA_HOME="+home+"/d")
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				stdout, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				said := make(chan struct{})
				go func() {
					defer close(said)
					s := bufio.NewScanner(stdout)
					s.Buffer(nil, 1<<20)
					s.Scan()
				}()
				line, _ := json.Marshal(map[string]any{"tool": "bash", "input": map[string]any{"command": fmt.Sprintf(command, word), "background": name != "left by an ended call"}})
				if _, err := in.Write(append(line, '\n')); err != nil {
					t.Fatal(err)
				}
				// The moment counts from the first sight of the command.
				for deadline := time.Now().Add(patience); len(carrying(word)) == 0 && time.Now().Before(deadline); {
					select {
					case <-said:
						deadline = time.Time{}
					case <-time.After(time.Millisecond): // reading /proc without a pause takes the processor from what starts
					}
				}
				select {
				case <-time.After(moment):
				case <-said: // the last moment: the tool has answered
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				deadline := time.Now().Add(patience)
				for left := carrying(word); len(left) > 0; left = carrying(word) { // nobody tells us of their death
					if time.Now().After(deadline) {
						t.Fatalf("%d outlived it:\n%s", len(left), strings.Join(left, "\n"))
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
	}
}
