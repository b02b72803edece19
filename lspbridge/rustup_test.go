package lspbridge

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// rustup's stand-in for a component that is not installed is not a language server.
func TestRustupProxyWithoutItsComponent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links")
	}
	home, bin := t.TempDir(), t.TempDir()
	t.Setenv("RUSTUP_HOME", home)
	t.Setenv("PATH", bin)
	t.Setenv("HOME", home)
	rustup := filepath.Join(bin, "rustup")
	if err := os.WriteFile(rustup, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(rustup, filepath.Join(bin, "rust-analyzer")); err != nil {
		t.Fatal(err)
	}
	m := New(Options{Root: t.TempDir(), NoWatch: true})
	row := Server{ID: "rust-analyzer", Commands: [][]string{{"rust-analyzer"}}, Install: "rustup component add rust-analyzer"}
	if _, _, err := m.programs.find(row, m.o.Root); err == nil || !strings.Contains(err.Error(), "rustup component add") {
		t.Errorf("found: %v", err)
	}
	write(t, filepath.Join(home, "toolchains", "stable", "bin", "rust-analyzer"), "x")
	if _, argv, err := m.programs.find(row, m.o.Root); err != nil || filepath.Base(argv[0]) != "rust-analyzer" {
		t.Errorf("not found: %v %v", argv, err)
	}
}
