package lspbridge

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestPlanInstall(t *testing.T) {
	dir := filepath.FromSlash("/cache")
	for id, want := range map[string]string{
		"gopls":         "GOBIN=/cache/go/bin go install golang.org/x/tools/gopls@latest",
		"bash":          "npm install --prefix /cache/npm --ignore-scripts --no-audit --no-fund bash-language-server",
		"typescript":    "npm install --prefix /cache/npm --ignore-scripts --no-audit --no-fund typescript-language-server typescript",
		"rust-analyzer": "rust-analyzer: Pillion cannot install it; rustup component add rust-analyzer",
		"nope":          `unknown language server "nope"; pillion doctor lists them`,
		"pyrigth":       `unknown language server "pyrigth"; did you mean "pyright"? pillion doctor lists them`,
		"ts":            `unknown language server "ts"; did you mean "typescript"? pillion doctor lists them`,
	} {
		plan, err := PlanInstall(id, dir)
		got := filepath.ToSlash(plan.String())
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
		if id == "rust-analyzer" && !errors.Is(err, ErrNotInstallable) {
			t.Error(err)
		}
	}
}

// The package manager is a script that does what the real one would, or fails.
func TestInstall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the package manager of this test is a shell script")
	}
	tools, cache := t.TempDir(), filepath.Join(t.TempDir(), "servers")
	t.Setenv("PATH", tools+":/bin:/usr/bin")
	t.Setenv("GOFLAGS", "-mod=vendor")
	script := func(text string) {
		if err := os.WriteFile(filepath.Join(tools, "go"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := PlanInstall("gopls", cache)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	script(`echo "installing $* in $PWD with [$GOFLAGS]"; printf '#!/bin/sh\n' > "$GOBIN/gopls"; chmod +x "$GOBIN/gopls"`)
	program, err := Install(t.Context(), plan, &out)
	if err != nil || program != filepath.Join(cache, "go", "bin", "gopls") || out.String() != "installing install golang.org/x/tools/gopls@latest in "+cache+" with []\n" {
		t.Errorf("%s, %v, %s", program, err, out.String())
	}
	// A manager with that cache finds it before anything in PATH.
	m := New(Options{Root: t.TempDir(), NoWatch: true, Bin: CacheBins(cache)})
	for _, l := range m.Doctor() {
		if l.ID == "gopls" && l.Path != program {
			t.Errorf("the doctor finds %s", l.Path)
		}
	}
	_ = os.Remove(program)
	script("exit 0\n")
	if _, err = Install(t.Context(), plan, &out); err == nil || !strings.Contains(err.Error(), "contains no program of gopls") {
		t.Error(err)
	}
	script("echo no network; exit 3\n")
	if _, err = Install(t.Context(), plan, &out); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "lsp.gopls.command") || !strings.HasSuffix(out.String(), "no network\n") {
		t.Errorf("%v, %s", err, out.String())
	}
	t.Setenv("PATH", t.TempDir())
	if _, err = Install(t.Context(), plan, &out); err == nil || !strings.Contains(err.Error(), "go is needed to install gopls") {
		t.Error(err)
	}
}
