package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/guard"
)

// ErrNotInstallable means that no package manager that Pillion knows has the server; the person must
// install it.
var ErrNotInstallable = errors.New("Pillion cannot install it")

// Installation says how a server is installed into Pillion's own cache. Nothing outside Dir is written,
// and npm runs no scripts of the packages.
type Installation struct {
	ID   string
	Argv []string // the package manager's command line
	Env  []string // KEY=value, added to the environment
	Dir  string   // the cache; absolute
	Bin  string   // where the programs are afterwards
}

// String is the command as a person would type it.
func (i Installation) String() string {
	return strings.Join(append(append([]string(nil), i.Env...), i.Argv...), " ")
}

// CacheBins are the directories of a cache that hold programs, for Options.Bin. They need not exist.
func CacheBins(dir string) []string {
	return []string{filepath.Join(dir, "go", "bin"), filepath.Join(dir, "npm", "node_modules", ".bin")}
}

// PlanInstall returns what Install would do for a server of the table, by go install or npm. It fails with
// ErrNotInstallable for other servers, and for an unknown id. dir is the cache; absolute.
func PlanInstall(id, dir string) (Installation, error) {
	for _, row := range Servers() {
		if row.ID != id {
			continue
		}
		// What follows in parentheses is a note for people.
		how, _, _ := strings.Cut(row.Install, " (")
		bins := CacheBins(dir)
		if module, ok := strings.CutPrefix(how, "go install "); ok {
			return Installation{ID: id, Argv: []string{"go", "install", module}, Env: []string{"GOBIN=" + bins[0]}, Dir: dir, Bin: bins[0]}, nil
		}
		if packages, ok := strings.CutPrefix(how, "npm i -g "); ok {
			argv := append([]string{"npm", "install", "--prefix", filepath.Join(dir, "npm"), "--ignore-scripts", "--no-audit", "--no-fund"}, strings.Fields(packages)...)
			return Installation{ID: id, Argv: argv, Dir: dir, Bin: bins[1]}, nil
		}
		return Installation{}, fmt.Errorf("%s: %w; %s", id, ErrNotInstallable, row.Install)
	}
	return Installation{}, errors.New(Unknown(id))
}

// Unknown says that no server of the table has an id, and which may have been meant.
func Unknown(id string) string {
	return fmt.Sprintf("unknown language server %q%s pillion doctor lists them", id, suggestion(id))
}

// suggestion ends the sentence about an unknown server: whose extension was given for the name, or whose name was mistyped.
func suggestion(id string) string {
	best, least := "", min(3, 1+len(id)/2) // slips, fewer than that
	for _, row := range Servers() {
		if !row.Extra && !row.Required && row.matches("x."+strings.TrimPrefix(id, ".")) {
			return fmt.Sprintf("; did you mean %q?", row.ID)
		}
		if n := fuzzy.Slips(strings.ToLower(id), row.ID); n < least {
			best, least = row.ID, n
		}
	}
	if best == "" {
		return ";"
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// Install carries a plan out. It does not ask for permission: the caller must have. The output of the
// package manager goes to out. It returns the path of the server's program, and fails when the package
// manager is missing, fails, or installs no such program.
func Install(ctx context.Context, plan Installation, out io.Writer) (program string, err error) {
	tool, err := exec.LookPath(plan.Argv[0])
	if err != nil {
		return "", fmt.Errorf("%s is needed to install %s and was not found; install it first", plan.Argv[0], plan.ID)
	}
	if err := os.MkdirAll(plan.Bin, 0o755); err != nil {
		return "", err
	}
	cmd := guard.CommandContext(ctx, guard.Helper, append([]string{tool}, plan.Argv[1:]...)...)
	cmd.Dir = plan.Dir // not the project's: its .npmrc and go.work have no say
	cmd.Env = append(cmd.Env, plan.Env...)
	if plan.Argv[0] == "go" {
		// The settings of a project (-mod=vendor, a go.work) must not decide what is installed.
		cmd.Env = append(cmd.Env, "GOFLAGS=", "GOWORK=off")
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = processAttributes()
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	// Killed with its parent's thread, where there is such a thing: the thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("%s could not install it (%w); its output above says why. Check the network and proxy settings and try again, or install %s yourself and set lsp.%s.command", plan.Argv[0], err, plan.ID, plan.ID)
	}
	for _, row := range Servers() {
		if row.ID != plan.ID {
			continue
		}
		for _, argv := range row.Commands {
			if p, err := exec.LookPath(filepath.Join(plan.Bin, argv[0])); err == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("%s succeeded, but %s contains no program of %s", plan, plan.Bin, plan.ID)
}
