package custom

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// bunPackage is how js_runtime names a Bun that is not on PATH: bun@VERSION, with a version as npm has it. It is what plugins need that use
// more of Bun than bun.mjs has, such as bun:ffi, bun:sqlite or Bun.serve.
const bunPackage = "bun@"

// runsInBun reports whether files are bundled for Bun, whose own modules an import then leads to.
func (h *Host) runsInBun() bool {
	return strings.HasPrefix(strings.TrimSuffix(filepath.Base(h.o.Runtime), ".exe"), "bun")
}

// installedBun returns the program of a Bun that js_runtime names as bun@VERSION. The first time it is installed from npm into the cache,
// without running its scripts, and stays as installed. npm has a program for each processor and C library and may install more than one that
// the package allows, so the first that runs is taken.
func (h *Host) installedBun(ctx context.Context, spec string) (string, error) {
	root, err := packageRoot(ctx, spec, h.o.CacheDir, func() { h.notice("info", "Installing "+spec+" from npm, about 100 MB …") })
	if err != nil {
		return "", fmt.Errorf("js_runtime: %w", err)
	}
	programs, err := filepath.Glob(filepath.Join(filepath.Dir(root), "@oven", "bun-*", "bin", "bun*"))
	if err != nil {
		return "", err
	}
	reason := h.o.Reason
	reason.Who = guard.Tool
	for _, path := range programs {
		within, cancel := context.WithTimeout(ctx, startLimit)
		cmd := guard.CommandFor(within, reason, path, "--version")
		cmd.WaitDelay = time.Second
		err = cmd.Run()
		cancel()
		if err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("js_runtime: npm has no program of %s that runs on this machine (%d tried, the last: %v)", spec, len(programs), err)
}

// isBunPackage reports whether js_runtime names a package instead of a program.
func isBunPackage(runtime string) bool {
	return strings.HasPrefix(runtime, bunPackage) && !strings.ContainsAny(runtime, `/\`)
}

// found is the program that the setting js_runtime stands for, and its arguments before the script.
func (h *Host) found(ctx context.Context) (program string, args []string, err error) {
	configured := h.o.Runtime
	if _, err := exec.LookPath(configured); isBunPackage(configured) && err != nil {
		if configured, err = h.installedBun(ctx, configured); err != nil {
			return "", nil, err
		}
	}
	return findRuntime(configured)
}
