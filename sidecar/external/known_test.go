package external

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// An agent that was installed is offered after a moment, and at once on another PATH.
func TestAnInstalledProgramIsSeenAfterAMoment(t *testing.T) {
	program := "an-agent"
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	dir, other := t.TempDir(), t.TempDir()
	install := func(dir string) {
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	var o onPath
	now := time.Now()
	if o.has("an-agent", now) {
		t.Fatal("found before it was there")
	}
	install(dir)
	if o.has("an-agent", now.Add(onPathFor-1)) {
		t.Error("looked again at once")
	}
	if !o.has("an-agent", now.Add(onPathFor)) {
		t.Error("not seen after a moment")
	}
	t.Setenv("PATH", other)
	if o.has("an-agent", now.Add(onPathFor)) {
		t.Error("another PATH has it")
	}
}

// A row of any name has what is known of the agent that its command starts; a program that only mentions one has nothing of it.
func TestRunning(t *testing.T) {
	for line, want := range map[string]string{
		"codex-acp": "codex", "/opt/x/codex-acp -c a=b": "codex", `C:\x\codex-acp.cmd`: "codex", "env A=b claude-agent-acp": "claude", "GEMINI_X=1 gemini --acp": "gemini",
		"npx -y @agentclientprotocol/codex-acp@1.4.0": "codex", "npx -y @zed-industries/codex-acp": "codex", "npx --package=opencode-ai@2 opencode acp": "opencode",
		"npx -y --package @google/gemini-cli gemini --acp": "gemini", "pnpm dlx @agentclientprotocol/claude-agent-acp": "claude",
		"npx -y @qwen-code/qwen-code@0.24.4 --acp": "qwen", "cline --acp": "cline", "npx -y cline@3 --acp": "cline", "npx -y @augmentcode/auggie --acp": "auggie",
		"my-agent": "", "my-agent --like codex-acp": "", "npx -y @stranger/codex-acp": "", "npx -y stranger opencode-aid": "", "": "", "A=b": "", "env": "",
	} {
		if k, ok := Running(strings.Fields(line)); k.ID != want || ok != (want != "") {
			t.Errorf("%q: %q", line, k.ID)
		}
		if k, _ := Running(ShellCommand(line)); k.ID != want && !strings.Contains(line, `\`) {
			t.Errorf("%q by a shell: %q", line, k.ID)
		}
	}
	for _, k := range KnownAgents() {
		for _, argv := range append(k.Programs, k.Npx()) {
			if got, _ := Running(argv); got.ID != k.ID {
				t.Errorf("%q is %q", argv, got.ID)
			}
		}
	}
}

// What a person typed is divided as a shell does it, and arguments can be added.
func TestShellCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no /bin/sh")
	}
	for _, line := range []string{`printf '%s|' "a b" c`, `X=c printf '%s|' 'a b' c`} {
		argv := append(ShellCommand(line), "d e", "-x")
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil || string(out) != "a b|c|d e|-x|" {
			t.Errorf("%s: %q %v", line, out, err)
		}
	}
}
