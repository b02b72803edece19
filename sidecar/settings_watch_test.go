package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// What a project brings along starts when its folder comes to be trusted, also while a session is idle, and ends when
// that is taken back.
func TestTrustWhileASessionIsOpen(t *testing.T) {
	home := atHome(t)
	cwd := scratch(t)
	alive := func() (pids []string) { // the server's shell writes its number; on a busy machine it is killed before it could remove that
		found, _ := filepath.Glob(filepath.Join(cwd, "pid-*"))
		for _, f := range found {
			pid := strings.TrimPrefix(filepath.Base(f), "pid-")
			// Its command line tells it from another process that has got its number.
			line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
			if runtime.GOOS != "linux" || strings.Contains(string(line), "touch pid-$$") {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	conf, _ := json.Marshal(map[string]any{"mcp": map[string]any{"theirs": map[string]any{
		"command": []string{"sh", "-c", fmt.Sprintf(`touch pid-$$; trap 'rm -f pid-$$' EXIT; %q mcp --tools read`, os.Args[0])}, "environment": map[string]string{"PILLION_TEST_MAIN": "1", "GORACE": "atexit_sleep_ms=0"}}}})
	put(t, filepath.Join(cwd, "pillion.jsonc"), string(conf))
	put(t, filepath.Join(home, "config/pillion/pillion.jsonc"), `{"lsp": false}`)
	p := acpProcess(t)
	p.request("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd))
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env, cmd.Dir = append(os.Environ(), "PILLION_TEST_MAIN=1"), cwd
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	commands := func(want string) {
		t.Helper()
		for {
			m, line := p.receive()
			if m["method"] == "session/update" && strings.Contains(line, "available_commands_update") && strings.Contains(line, want) {
				return
			}
		}
	}
	put(t, filepath.Join(cwd, ".pillion/commands/mine.md"), "Do it.\n") // needs no trust; its folder is new
	commands(`"name":"mine"`)
	if len(alive()) != 0 {
		t.Fatal("a server of a folder that is not trusted was started")
	}
	run("trust")
	eventually(t, "the server starts", func() bool { return len(alive()) == 1 })
	put(t, filepath.Join(cwd, ".pillion/commands/other.md"), "Do the other.\n")
	commands(`"name":"other"`)
	if len(alive()) != 1 {
		t.Error("a change that has nothing to do with servers started or ended one")
	}
	run("trust", "--revoke")
	eventually(t, "the server ends", func() bool { return len(alive()) == 0 })
}

// eventually looks again until something has happened that other processes do.
func eventually(t *testing.T, what string, there func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !there(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not yet: " + what)
		}
	}
}
