package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/tools/guard"
)

// installer is the program that has installed this one, and its command for the newest release.
type installer struct {
	Name    string   // as shown to people
	Command []string // nil: there is no command; Advice says what to do
	Advice  string
	Root    bool // the command needs the rights of root; it is shown and never run
}

// upgradeCommand is `pillion upgrade`. It never replaces files itself: the package manager keeps a record of them,
// which would be wrong afterwards.
func upgradeCommand() *cobra.Command {
	var yes, show bool
	c := &cobra.Command{
		Use: "upgrade", Short: "Install the newest release in the way this one was installed", Args: cobra.NoArgs,
		Long: `Install the newest release in the way this one was installed: with npm, the system's package manager, Homebrew, go install, install.sh or an
editor's extension. Pillion shows the command and asks before it runs it. A command that needs root is only shown.`,
		RunE: func(c *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			// The program in PATH is often a link; the place of the file itself shows who installed it.
			if real, err := filepath.EvalSymlinks(self); err == nil {
				self = real
			}
			module := ""
			// The go command records "(devel)" for a build from a checkout.
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
				module = info.Main.Version
			}
			i := installerOf("/", self, module)
			out := c.OutOrStdout()
			fmt.Fprintf(out, "pillion %s, %s, installed by %s\n", version, self, i.Name)
			if i.Command == nil {
				fmt.Fprintln(out, i.Advice)
				return nil
			}
			fmt.Fprintln(out, " ", strings.Join(i.Command, " "))
			// A command that needs root is only shown: the person runs it in their own shell.
			if show || i.Root {
				return nil
			}
			// Without a terminal the question cannot be answered: in stays nil, and Confirm fails with ErrNoTerminal.
			var in io.Reader
			if isTerminal(c.InOrStdin()) {
				in = c.InOrStdin()
			}
			if !yes {
				switch approved, err := app.Confirm(in, out, "Run it?"); {
				case errors.Is(err, app.ErrNoTerminal):
					return errors.New("upgrading needs approval, but standard input is not a terminal; nothing was changed. Run it again with --yes")
				case err != nil:
					return err
				case !approved:
					return errors.New("nothing was changed")
				}
			}
			cmd := guard.CommandContext(c.Context(), guard.Person, i.Command...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, c.ErrOrStderr()
			return cmd.Run()
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "run the command without a question")
	c.Flags().BoolVar(&show, "show", false, "only show the command")
	return c
}

// installScript is the script of the newest release: GitHub redirects latest to it.
const installScript = "https://github.com/pillion-dev/pillion/releases/latest/download/install.sh"

// installerOf finds who installed a program, by its place and by the records that package managers keep below root. self is the
// program's path without links. module is the version that the go command recorded, "" for a build from a checkout.
func installerOf(root, self, module string) installer {
	has := func(pattern string) bool {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		return len(found) > 0
	}
	slash := filepath.ToSlash(self)
	// An editor's extension comes before npm: some are below a node_modules of the editor.
	switch {
	case strings.Contains(slash, "/extensions/pillion-dev.pillion-"):
		return installer{Name: "the VS Code extension", Advice: "The editor keeps its extensions up to date: Extensions > Pillion > Update."}
	case strings.Contains(slash, "/node_modules/@pillion-dev/"):
		if strings.Contains(slash, "/_npx/") {
			return installer{Name: "npx", Advice: "npx takes the newest release by itself: npx pillion@latest"}
		}
		if before, _, _ := strings.Cut(slash, "/node_modules/"); strings.HasSuffix(before, "/lib") { // npm's folder for all projects is PREFIX/lib/node_modules
			return installer{Name: "npm, for all projects", Command: []string{"npm", "install", "--global", "pillion@latest"}}
		}
		return installer{Name: "npm, in a project", Advice: "In that project: npm install pillion@latest"}
	case strings.Contains(slash, "/Cellar/pillion/"):
		return installer{Name: "Homebrew", Command: []string{"brew", "upgrade", "pillion"}}
	case strings.Contains(slash, "/share/pillion/"):
		return installer{Name: "install.sh", Command: []string{"sh", "-c", "curl -fsSL " + installScript + " | sh"}}
	case slash == "/usr/bin/pillion" && has("var/lib/dpkg/info/pillion.list"):
		return installer{Name: "the Debian package", Root: true, Command: []string{"sudo", "apt-get", "install", "--only-upgrade", "pillion"}}
	case slash == "/usr/bin/pillion" && has("var/lib/pacman/local/pillion-bin-*"):
		return installer{Name: "the Arch package", Root: true, Command: []string{"sudo", "pacman", "-Syu", "pillion-bin"}}
	case slash == "/usr/bin/pillion" && (has("var/lib/rpm/rpmdb*") || has("usr/lib/sysimage/rpm/rpmdb*")):
		return installer{Name: "the RPM package", Root: true, Command: []string{"sudo", "dnf", "upgrade", "pillion"}}
	case module != "":
		return installer{Name: "go install", Command: []string{"go", "install", "github.com/pillion-dev/pillion/sidecar@latest"}}
	}
	return installer{Name: "hand", Advice: "It was built from source or copied here: git pull && make build in the checkout, or install a release: curl -fsSL " + installScript + " | sh"}
}
