package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// finding is one line of the report of `pillion doctor`, also as JSON. Fix is a command or a sentence; it may be
// set for what works but could work better.
type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it something that every session uses does not work
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
	Files  int    `json:"files,omitempty"` // of a language server: how many files of the project it serves
	server bool
}

// doctorFiles is how many files of a project `pillion doctor` looks at to see which language servers it needs.
const doctorFiles = 20_000

// doctorCommand is `pillion doctor`. It changes nothing, except with --install.
func doctorCommand() *cobra.Command {
	var asJSON, yes, all bool
	var cwd, install string
	c := &cobra.Command{
		Use: "doctor", Short: "Show what is installed, what is missing, and how to install it", Args: cobra.NoArgs,
		Long: `Show what a session in this directory would use, what is missing, and how to install it. Of the language servers it lists those for
the files that the project has; --all lists every server that Pillion knows.`,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			if install != "" {
				// Without a terminal the installation cannot be confirmed, so in stays nil and InstallServer requires
				// --yes.
				var in io.Reader
				if isTerminal(c.InOrStdin()) {
					in = c.InOrStdin()
				}
				// The only thing in this command that changes something, into Pillion's own cache.
				return app.InstallServer(c.Context(), install, app.NewWorkplace(version).Servers(), yes, in, c.ErrOrStderr())
			}
			// Findings that fail do not change the exit code: what is missing may be missing on purpose.
			found := diagnose(c.Context(), dir)
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(found)
			}
			if !all {
				found = withoutOtherServers(found)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
			for _, f := range found {
				// Three marks: fine, missing but not needed, missing and needed.
				mark := "✓"
				if !f.OK {
					mark = "·"
					if f.Needed {
						mark = "✗"
					}
				}
				line := f.Detail
				if f.Fix != "" && !f.OK {
					line = strings.TrimSpace(line + " → " + f.Fix)
				}
				fmt.Fprintf(w, "%s %s\t%s\n", mark, f.Name, line)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&all, "all", false, "list the language servers for other kinds of files too")
	c.Flags().StringVar(&install, "install", "", "install this language server into Pillion's own cache (go install, npm); asks first")
	c.Flags().BoolVar(&yes, "yes", false, "with --install: do not ask")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// withoutOtherServers folds the servers for kinds of files that the project does not have into one line.
func withoutOtherServers(found []finding) []finding {
	var out []finding
	others, installed := 0, 0
	for _, f := range found {
		if !f.server || f.Files > 0 {
			out = append(out, f)
			continue
		}
		others++
		if f.OK {
			installed++
		}
	}
	if others == 0 {
		return out
	}
	return append(out, finding{Name: "other language servers", OK: true,
		Detail: fmt.Sprintf("%d for files that this project does not have, %d of them installed: pillion doctor --all lists them", others, installed)})
}

// diagnose looks at everything that a session in dir would use. It starts no language server and asks no model: it
// must answer at once, and also when those are what is broken.
func diagnose(ctx context.Context, dir string) []finding {
	p := app.NewWorkplace(version)
	var out []finding
	conf, problems := p.Config(dir)
	// A configuration with mistakes is still used in part, so each mistake has a line of its own.
	if len(problems) == 0 {
		out = append(out, finding{Name: "configuration", OK: true, Needed: true, Detail: "no mistakes"})
	}
	for _, pr := range problems {
		out = append(out, finding{Name: "configuration", Needed: true, Detail: pr.String()})
	}
	// Trust is per worktree, so the finding names its root.
	out = append(out, trustFinding(paths.Worktree(dir), conf))
	out = append(out, writable("state folder", p.State))
	// program looks a program up in PATH as a session would, and says what happens without it.
	program := func(name, what, fix string, needed bool) {
		path, err := exec.LookPath(name)
		if err != nil {
			out = append(out, finding{Name: name, Needed: needed, Detail: "not found: " + what, Fix: fix})
			return
		}
		out = append(out, finding{Name: name, OK: true, Needed: needed, Detail: path})
	}
	program("git", "the project is the folder itself, not the Git worktree around it", "install git with your package manager", false)
	rg := "rg"
	if conf.Ripgrep != "" {
		rg = conf.Ripgrep
	}
	program(rg, "searches use the built-in engine", "apt install ripgrep, brew install ripgrep", false)
	if runtime.GOOS == "windows" {
		sh, err := run.Detect(conf.Shell)
		f := finding{Name: "bash", OK: err == nil, Detail: sh + "; every command needs approval, because it has other names for folders (/c/Users) than the analysis"}
		if err != nil {
			f.Detail, f.Fix = "not found: commands are refused", "winget install Git.Git"
		}
		out = append(out, f)
	} else {
		program("bash", "commands run in sh", "install bash", false)
	}
	out = append(out, indexFinding(p, conf, dir), sandboxFinding(conf), containmentFinding(), draftFinding(ctx, paths.Worktree(dir)))
	a := app.New(app.Options{Place: p, Ephemeral: true})
	defer a.Close()
	id, origin := a.Models.Default(dir)
	// The built-in model is the default without a key, so there always is one.
	out = append(out, finding{Name: "model", OK: true, Needed: true, Detail: id + " (" + origin + ")"})
	// NoWatch: the servers are only looked up, so nothing has to be watched. Untrusted folders cannot name
	// programs.
	servers := lspbridge.New(lspbridge.Options{Root: paths.Worktree(dir), Servers: app.ServerConfigs(conf), NoWatch: true, Bin: lspbridge.CacheBins(p.Servers()), Trusted: conf.Trusted()})
	// Ignored files do not count: dependencies are not written in the project. A search that fails leaves all servers listed as others.
	names, err := search.New(search.Options{}).Glob(ctx, search.GlobQuery{Root: dir, Pattern: "**", Limit: doctorFiles})
	if err != nil {
		out = append(out, finding{Name: "files", Needed: true, Detail: err.Error()})
	}
	for _, s := range servers.Doctor(names.Paths...) {
		f := finding{Name: "language server " + s.ID, OK: s.Found, Detail: strings.Join(s.Extensions, " "), Fix: s.Install, Files: s.Files, server: true}
		// A plan exists for servers that Pillion can install itself; for others the package manager's command
		// remains.
		if _, err := lspbridge.PlanInstall(s.ID, p.Servers()); err == nil {
			f.Fix = "pillion doctor --install " + s.ID + ", or " + s.Install
		}
		if s.Found {
			f.Detail = s.Path + "  " + f.Detail
		}
		out = append(out, f)
	}
	return out
}

// writable creates a file in a folder for real: permissions, full disks and read-only mounts show only then.
func writable(name, dir string) finding {
	f := finding{Name: name, Needed: true, Detail: dir, Fix: "make it writable, or set XDG_STATE_HOME"}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.Detail = err.Error()
		return f
	}
	t, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	// 64 KiB: an empty file can still be created on a full disk.
	_, err = t.Write(make([]byte, 1<<16))
	if err = errors.Join(err, t.Close(), os.Remove(t.Name())); err != nil {
		f.Detail = err.Error()
		return f
	}
	f.OK = true
	return f
}

// trustFinding says whether the folder is trusted and which settings are held back until it is. That nothing is
// held back is fine without trust: most folders need none.
func trustFinding(root string, c *config.Config) finding {
	f := finding{Name: "trust", OK: true, Detail: root + " is a trusted folder: all of its own configuration is used"}
	switch held := c.Held(); {
	case len(held) > 0:
		f.OK = false
		f.Detail = fmt.Sprintf("%s of %s held back; the first: %s", textutil.Plural(len(held), "setting"), root, held[0])
		f.Fix = "pillion trust " + trust.QuoteArg(root)
	case !c.Trusted():
		f.Detail = root + " is not trusted; nothing in its configuration needs it"
	}
	return f
}

// draftFinding says how drafts show this project, and why not as an overlay: that can be the system, the project's file system or the owners
// of its files. A copy works as well but takes time and space, so it is not an error.
func draftFinding(ctx context.Context, project string) finding {
	s, err := draft.SupportOf(ctx, draft.Options{Dir: draftsDir(), Project: project})
	if err != nil {
		return finding{Name: "drafts", Detail: err.Error()}
	}
	f := finding{Name: "drafts", OK: true, Detail: s.String()}
	// Debian and Ubuntu restrict user namespaces with these two settings.
	if s.View == draft.Copy {
		f.Fix = "allow user namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), so that nothing has to be copied"
	}
	return f
}

// indexFinding says whether a large project gets a search index. Without one searches are as quick as ripgrep.
func indexFinding(p *app.Workplace, c *config.Config, dir string) finding {
	f := finding{Name: "search index", OK: true, Detail: "off (search_index)"}
	if c.SearchIndex == nil || *c.SearchIndex {
		f.Detail, f.OK = p.IndexReport(dir)
	}
	return f
}

// sandboxFinding says what the system offers and whether it is used. It is an error only if the configuration demands
// the sandbox.
func sandboxFinding(c *config.Config) finding {
	// Probe tries it for real, in a process of its own.
	support := sandbox.Probe()
	mode := c.Sandbox
	if mode == "" {
		mode = builtin.SandboxOff
	}
	f := finding{Name: "sandbox", OK: support.Usable(), Needed: mode == builtin.SandboxOn, Detail: mode + " (" + support.String() + ")"}
	switch {
	case !f.OK && mode != builtin.SandboxOff:
		f.Fix = `set "sandbox" to "off", or use a system that supports it`
	case f.OK && mode == builtin.SandboxOff:
		f.Detail = "off, available (" + support.String() + `); set "sandbox" to "ask" or "on" to use it`
	}
	return f
}

// containmentFinding says what holds the commands that run without a question. Without it more commands are asked
// about, which a person may take for a fault.
func containmentFinding() finding {
	if ok, why := sandbox.CanContain(); !ok {
		return finding{Name: "containment", Detail: "none: " + why + "; only the simplest commands run without a question"}
	}
	return finding{Name: "containment", OK: true, Detail: "commands that run without a question: " + sandbox.Layers()}
}
