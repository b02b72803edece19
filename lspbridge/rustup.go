package lspbridge

import (
	"os"
	"path/filepath"
	"strings"
)

// emptyProxy reports whether path is a rustup proxy for a component that no toolchain has. rustup puts such proxies into PATH, and they
// only print an error.
func emptyProxy(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || strings.TrimSuffix(filepath.Base(real), ".exe") != "rustup" {
		return false
	}
	home := os.Getenv("RUSTUP_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return false
		}
		home = filepath.Join(user, ".rustup")
	}
	// A component is installed when some toolchain has a program of this name.
	have, err := filepath.Glob(filepath.Join(home, "toolchains", "*", "bin", filepath.Base(path)))
	return err == nil && len(have) == 0
}
