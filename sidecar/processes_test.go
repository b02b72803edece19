package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestTwoProcessesOnOneFileLoseNothing lets two Pillions edit lines of their own in one file at the same time. One that comes
// too late is told so, reads again, and continues; in the end every edit is there.
func TestTwoProcessesOnOneFileLoseNothing(t *testing.T) {
	const edits = 15
	dir := t.TempDir()
	path := filepath.Join(dir, "both.txt")
	var text strings.Builder
	for who := range 2 {
		for i := range edits {
			fmt.Fprintf(&text, "line %d of %d: before\n\n\n\n", i, who)
		}
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/c", "XDG_STATE_HOME="+dir+"/s", "XDG_CACHE_HOME="+dir+"/k")
	var wg sync.WaitGroup
	late := make([]int, 2)
	for who := range 2 {
		call := toolProcess(t, dir, env)
		wg.Go(func() {
			call("read", map[string]any{"filePath": path})
			for i := 0; i < edits; {
				line := fmt.Sprintf("line %d of %d: ", i, who)
				problem := call("edit", map[string]any{"filePath": path, "oldString": line + "before", "newString": line + "after"})
				if problem == "" {
					i++
					continue
				}
				if late[who]++; late[who] > 50*edits {
					t.Errorf("process %d never gets through: %s", who, problem)
					return
				}
				call("read", map[string]any{"filePath": path})
			}
		})
	}
	wg.Wait()
	if got, want := read(t, path), strings.ReplaceAll(text.String(), "before", "after"); got != want {
		t.Errorf("an edit was lost (told to read again: %v):\n%s", late, got)
	}
}

// toolProcess starts `pillion tool call --jsonl` and gives a function that calls: it returns the error that a model would read.
func toolProcess(t *testing.T, dir string, env []string) func(tool string, input map[string]any) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "tool", "call", "--jsonl", "--no-lsp", "--approve", "all", "--cwd", dir)
	cmd.Env, cmd.Dir, cmd.Stderr = env, dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	return func(tool string, input map[string]any) string {
		data, err := json.Marshal(map[string]any{"tool": tool, "input": input})
		if err != nil {
			return err.Error()
		}
		if _, err := io.WriteString(in, string(data)+"\n"); err != nil {
			return err.Error()
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		var answer struct{ Error *struct{ Message string } }
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			return err.Error()
		}
		if answer.Error != nil {
			return answer.Error.Message
		}
		return ""
	}
}
