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

// Where the newest release needs a newer Go than the one that is installed, the newest that it can build is installed, and said. The go
// command is a script that answers as the real one.
func TestInstallTakesTheReleaseForTheInstalledGo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the package manager of this test is a shell script")
	}
	for name, c := range map[string]struct{ installed, needs, said, err string }{
		"the newest fits":           {installed: "go1.27.1", said: "installed @latest"},
		"an older one fits":         {installed: "go1.26.8", needs: "1.26.0", said: "gopls v0.24.0 needs Go 1.27.0, and this is go1.26.8: installing v0.22.0, the newest release for it\ninstalled @v0.22.0"},
		"none fits":                 {installed: "go1.20.1", needs: "1.26.0", err: "go could not install it"},
		"it failed for its own":     {installed: "go1.28.0", needs: "never", err: "go could not install it"},
		"a go that names no number": {installed: "devel", needs: "1.26.0", err: "go could not install it"},
	} {
		t.Run(name, func(t *testing.T) {
			tools, cache := t.TempDir(), filepath.Join(t.TempDir(), "servers")
			t.Setenv("PATH", tools+":/bin:/usr/bin")
			if err := os.WriteFile(filepath.Join(tools, "go"), []byte(`#!/bin/sh
needs="`+c.needs+`"
case "$*" in
"env GOVERSION") echo `+c.installed+` ;;
"list -m -json golang.org/x/tools/gopls@latest" | *"@v0.24.0") case "$1" in install) exit 1 ;; esac; echo '{"Version":"v0.24.0","GoVersion":"1.27.0"}' ;;
"list -m -versions -json golang.org/x/tools/gopls") echo '{"Versions":["v0.20.0","v0.21.0","v0.22.0","v0.23.0-pre.1","v0.24.0"]}' ;;
"list -m -json "*) echo '{"Version":"v0","GoVersion":"1.26.0"}' ;;
"install "*@latest) [ -z "$needs" ] || exit 1; echo "installed @latest"; printf '#!/bin/sh\n' > "$GOBIN/gopls"; chmod +x "$GOBIN/gopls" ;;
"install "*) echo "installed @${2#*@}"; printf '#!/bin/sh\n' > "$GOBIN/gopls"; chmod +x "$GOBIN/gopls" ;;
*) echo "unexpected: $*" >&2; exit 3 ;;
esac
`), 0o755); err != nil {
				t.Fatal(err)
			}
			plan, err := PlanInstall("gopls", cache)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			_, err = Install(t.Context(), plan, &out)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || strings.TrimSpace(out.String()) != c.said {
				t.Errorf("%v, %q", err, out.String())
			}
		})
	}
}
