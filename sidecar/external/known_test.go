package external

import (
	"os"
	"path/filepath"
	"runtime"
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
