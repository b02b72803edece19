package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
)

func TestCommandsEndWithTheirSessionOnly(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: yes{}, Ephemeral: true, NoLSP: true})
	closed := false
	defer func() {
		if !closed {
			a.Close()
		}
	}()
	// start runs a command in a session of its own and tells the process it leaves.
	start := func(input map[string]any) (*agent.Session, int) {
		t.Helper()
		s, err := a.Runtime.NewSession(t.Context(), agent.SessionOptions{Cwd: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(input)
		d, err := s.Tool(t.Context(), "bash", raw)
		for err == nil && !strings.Contains(d.Output, " up\n") && d.Error == "" {
			d, err = s.Tool(t.Context(), "bash_output", json.RawMessage(`{"id":"bg_1","wait":30000}`))
		}
		if err != nil || d.Error != "" {
			t.Fatal(err, d.Error)
		}
		pid, err := strconv.Atoi(strings.Fields(d.Output)[0])
		if err != nil {
			t.Fatal(err)
		}
		return s, pid
	}
	alive := func(pid int) bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		return err == nil && syscall.Kill(pid, 0) == nil
	}
	const command = "sleep 1000 >/dev/null 2>&1 & echo $! up"
	s1, p1 := start(map[string]any{"command": command + "; wait", "background": true})
	s2, p2 := start(map[string]any{"command": command})
	_, p3 := start(map[string]any{"command": command + "; wait", "background": true})
	s1.Close(t.Context())
	if alive(p1) || !alive(p2) || !alive(p3) {
		t.Errorf("after the first session: %v %v %v", alive(p1), alive(p2), alive(p3))
	}
	s2.Close(t.Context())
	if alive(p2) || !alive(p3) {
		t.Errorf("after the second session: %v %v", alive(p2), alive(p3))
	}
	a.Close()
	if closed = true; alive(p3) {
		t.Error("the third outlived the program's end")
	}
}
