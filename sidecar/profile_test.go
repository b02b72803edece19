package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProfilesAreWrittenWhereAskedForOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if code := execute([]string{"version", "--profile", dir}); code != exitOK {
		t.Fatalf("exit %d", code)
	}
	for _, name := range []string{"cpu.pprof", "heap.pprof"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(data) < 2 || data[0] != 0x1f || data[1] != 0x8b { // pprof is gzip
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	if code := execute([]string{"version", "--profile", "/dev/null/x"}); code != exitError {
		t.Errorf("a folder that cannot be made: exit %d", code)
	}
}
