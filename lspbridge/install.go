package lspbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goversion "go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/guard"
)

// ErrNotInstallable means that Pillion knows no package manager for the server, and the person must install it.
var ErrNotInstallable = errors.New("Pillion cannot install it")

// Installation says how to install a server into Pillion's own cache. Nothing outside Dir is written, and npm runs no scripts of the
// packages.
type Installation struct {
	ID   string
	Argv []string // the package manager's command line
	Env  []string // KEY=value, added to the environment
	Dir  string   // the cache; absolute
	Bin  string   // the folder of the installed programs
}

// String returns the command as a person would type it.
func (i Installation) String() string {
	return strings.Join(append(append([]string(nil), i.Env...), i.Argv...), " ")
}

// CacheBins returns the folders of a cache that hold programs, for Options.Bin. They need not exist.
func CacheBins(dir string) []string {
	return []string{filepath.Join(dir, "go", "bin"), filepath.Join(dir, "npm", "node_modules", ".bin")}
}

// PlanInstall returns how Install would install a server of the table, by go install or npm. It fails with ErrNotInstallable for other
// servers and for an unknown id. dir is the absolute path of the cache.
func PlanInstall(id, dir string) (Installation, error) {
	for _, row := range Servers() {
		if row.ID != id {
			continue
		}
		// A note for people follows in parentheses.
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

// Unknown returns the message for an id that is not in the table, with the id that may have been meant.
func Unknown(id string) string {
	return fmt.Sprintf("unknown language server %q%s pillion doctor lists them", id, suggestion(id))
}

// suggestion returns the end of that message: the server for a file extension given in place of an id, or the id that was mistyped.
func suggestion(id string) string {
	best, least := "", min(3, 1+len(id)/2) // a suggestion has fewer slips than this
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

// command is the package manager with arguments, in the cache and not in the project's folder, so that its .npmrc and go.work have no effect.
func (i Installation) command(ctx context.Context, tool string, args []string, stdout, stderr io.Writer) *exec.Cmd {
	cmd := guard.CommandContext(ctx, guard.Helper, append([]string{tool}, args...)...)
	cmd.Dir = i.Dir
	cmd.Env = append(cmd.Env, i.Env...)
	if i.Argv[0] == "go" {
		// Settings of a project (-mod=vendor, a go.work) must not decide what is installed.
		cmd.Env = append(cmd.Env, "GOFLAGS=", "GOWORK=off")
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = processAttributes()
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	return cmd
}

// olderRelease returns the newest release of the module that the installed Go can build, as module@version, and a sentence about it. The
// newest of all may need a newer Go, which the go command fetches by itself only where GOTOOLCHAIN allows that; distributions set it to
// local. "" means that this is not why the installation failed, or that no release fits.
func (i Installation) olderRelease(ctx context.Context, tool string) (release, why string) {
	module, wanted, _ := strings.Cut(i.Argv[len(i.Argv)-1], "@")
	run := func(args ...string) []byte {
		var out bytes.Buffer
		if i.command(ctx, tool, args, &out, io.Discard).Run() != nil {
			return nil
		}
		return out.Bytes()
	}
	type listed struct{ Version, GoVersion string }
	look := func(version string) (m listed, ok bool) {
		return m, json.Unmarshal(run("list", "-m", "-json", module+"@"+version), &m) == nil && m.GoVersion != ""
	}
	installed := strings.TrimSpace(string(run("env", "GOVERSION")))
	newest, ok := look(wanted)
	if !ok || !goversion.IsValid(installed) || goversion.Compare("go"+newest.GoVersion, installed) <= 0 {
		return "", ""
	}
	var all struct{ Versions []string } // the oldest first
	if json.Unmarshal(run("list", "-m", "-versions", "-json", module), &all) != nil {
		return "", ""
	}
	slices.Reverse(all.Versions)
	for _, v := range all.Versions {
		if strings.Contains(v, "-") { // before a release
			continue
		}
		if m, ok := look(v); ok && goversion.Compare("go"+m.GoVersion, installed) <= 0 {
			return module + "@" + v, fmt.Sprintf("%s %s needs Go %s, and this is %s: installing %s, the newest release for it", i.ID, newest.Version, newest.GoVersion, installed, v)
		}
	}
	return "", ""
}

// Install executes a plan. The caller must have asked for permission. The output of the package manager goes to out. It returns the path of
// the server's program, and fails when the package manager is missing, fails, or installs no such program.
func Install(ctx context.Context, plan Installation, out io.Writer) (program string, err error) {
	tool, err := exec.LookPath(plan.Argv[0])
	if err != nil {
		return "", fmt.Errorf("%s is needed to install %s and was not found; install it first", plan.Argv[0], plan.ID)
	}
	if err := os.MkdirAll(plan.Bin, 0o755); err != nil {
		return "", err
	}
	// On Linux the child is killed when the thread that started it ends, so keep the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = plan.command(ctx, tool, plan.Argv[1:], out, out).Run()
	if err != nil && plan.Argv[0] == "go" && ctx.Err() == nil {
		if older, why := plan.olderRelease(ctx, tool); older != "" {
			fmt.Fprintln(out, why)
			err = plan.command(ctx, tool, []string{"install", older}, out, out).Run()
		}
	}
	if err != nil {
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
