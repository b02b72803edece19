package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/guard"
)

// installer is the program that has installed this one, and its command for the newest release.
type installer struct {
	Name    string   // as shown to people
	Env     []string // KEY=value, added to the environment of Command
	Command []string // nil: there is no command; Advice says what to do
	Advice  string
	Root    bool // the command needs the rights of root; it is shown and never run
}

// String returns the command as a person would type it.
func (i installer) String() string {
	var words []string
	for _, kv := range i.Env {
		key, value, _ := strings.Cut(kv, "=")
		words = append(words, key+"="+trust.QuoteArg(value))
	}
	for _, arg := range i.Command {
		words = append(words, trust.QuoteArg(arg))
	}
	return strings.Join(words, " ")
}

// upgradeCommand is `pillion upgrade`. It never replaces files itself: the package manager keeps a record of them,
// which would be wrong afterwards.
func upgradeCommand() *cobra.Command {
	var yes, show, check bool
	c := &cobra.Command{
		Use: "upgrade", Short: "Install the newest release in the way this one was installed", Args: cobra.NoArgs,
		Long: `Install the newest release in the way this one was installed: with npm, pnpm, yarn, Bun, the system's package manager, Homebrew, Scoop, winget, go
install, install.sh, or an editor's extension. Pillion shows the command and asks before it runs it. A command that needs root is only shown.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if check {
				return checkRelease(c.Context(), c.OutOrStdout())
			}
			i, self, err := thisInstaller()
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			fmt.Fprintf(out, "pillion %s, %s, installed by %s\n", version, self, i.Name)
			if i.Command == nil {
				fmt.Fprintln(out, i.Advice)
				return nil
			}
			fmt.Fprintln(out, " ", i)
			// A command that needs root is only shown: the person runs it in their own shell. On Windows no program can be replaced while it
			// runs, and this one waits for the command.
			if show || i.Root || runtime.GOOS == "windows" {
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
			cmd.Env = append(cmd.Env, i.Env...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, c.ErrOrStderr()
			return cmd.Run()
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "run the command without a question")
	c.Flags().BoolVar(&show, "show", false, "only show the command")
	c.Flags().BoolVar(&check, "check", false, "only ask whether there is a newer release")
	return c
}

// checkRelease says which release is the newest, and whether this one is.
func checkRelease(ctx context.Context, out io.Writer) error {
	newest, err := app.NewestRelease(ctx, releasePage)
	if err != nil {
		return fmt.Errorf("the newest release is not known: %w", err)
	}
	line := app.ReleaseLine(newest, version)
	if line == "" {
		line = fmt.Sprintf("this is pillion %s, the newest release is %s", version, newest)
	}
	fmt.Fprintln(out, line)
	return nil
}

// thisInstaller finds who installed this program, and returns its path without links.
func thisInstaller() (i installer, self string, err error) {
	self, err = os.Executable()
	if err != nil {
		return i, "", err
	}
	// The program in PATH is often a link; the place of the file itself shows who installed it.
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	module := ""
	// Only a module that the go command has fetched has a checksum: a build from a checkout has none, although its version may look like a
	// release.
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Sum != "" {
		module = info.Main.Version
	}
	return installerOf(system{"/", mayWrite}, self, module), self, nil
}

// Where releases are, and the script of the newest one: GitHub redirects latest to it.
const (
	releasePage   = app.ReleasePage
	installScript = releasePage + "/download/install.sh"
)

// installRecord is the file that install.sh writes beside the program: the folders that it was told to use, as KEY=value.
const installRecord = "install.env"

// system is the machine as installerOf sees it: the root folder in which package managers keep their records, and what this user may write.
type system struct {
	root     string
	mayWrite func(path string) bool
}

func (s system) exists(path string) bool {
	_, err := os.Stat(filepath.Join(s.root, path))
	return err == nil
}

func (s system) has(pattern string) bool {
	found, _ := filepath.Glob(filepath.Join(s.root, pattern))
	return len(found) > 0
}

// needsRoot reports that this user cannot write to a folder that exists.
func (s system) needsRoot(dir string) bool {
	return s.exists(dir) && !s.mayWrite(filepath.Join(s.root, dir))
}

// installerOf finds who installed a program, by its place and by the records of package managers. self is the
// program's path without links. module is the version of the module from which go install made it, else "".
func installerOf(on system, self, module string) installer {
	slash := filepath.ToSlash(self)
	// An editor's extension comes before npm: some are below a node_modules of the editor.
	switch {
	case strings.Contains(slash, "/extensions/pillion-dev.pillion-"):
		return installer{Name: "the VS Code extension", Advice: "The editor keeps its extensions up to date: Extensions > Pillion > Update."}
	case strings.Contains(slash, "/mason/packages/pillion/"):
		return installer{Name: "mason.nvim", Advice: "In Neovim: :MasonInstall pillion"}
	case strings.Contains(slash, "/node_modules/@pillion-dev/"):
		return nodeInstaller(on, slash)
	case strings.Contains(slash, "/Cellar/pillion/"):
		return installer{Name: "Homebrew", Command: []string{"brew", "upgrade", "pillion"}}
	case strings.Contains(slash, "/scoop/apps/pillion/"):
		return installer{Name: "Scoop", Command: []string{"scoop", "update", "pillion"}}
	case strings.Contains(strings.ToLower(slash), "/winget/packages/pillion-dev.pillion_"):
		return installer{Name: "winget", Command: []string{"winget", "upgrade", "--id", "pillion-dev.Pillion", "--exact"}}
	case strings.HasPrefix(slash, "/nix/store/"):
		return installer{Name: "Nix", Advice: "Nix takes the version from your profile or configuration: update it there."}
	case on.exists(filepath.Join(filepath.Dir(self), installRecord)):
		return scriptInstaller(on, filepath.Join(filepath.Dir(self), installRecord))
	case slash == "/usr/bin/pillion" && on.has("var/lib/dpkg/info/pillion.list"):
		if on.has("var/lib/apt/lists/*pillion*") { // a package source of Pillion's own
			return installer{Name: "the Debian package", Root: true, Command: []string{"sudo", "apt-get", "install", "--only-upgrade", "pillion"}}
		}
		return downloaded("the Debian package", "pillion_VERSION_"+runtime.GOARCH+".deb", "sudo apt-get install ./")
	case slash == "/usr/bin/pillion" && on.has("var/lib/pacman/local/pillion-bin-*"):
		return installer{Name: "the AUR", Advice: "The AUR's packages are built: yay -S pillion-bin, paru -S pillion-bin, or git pull && makepkg -si in your clone of pillion-bin"}
	case slash == "/usr/bin/pillion" && on.has("var/lib/pacman/local/pillion-*"):
		return downloaded("the Arch package", "pillion-VERSION-1-"+machine()+".pkg.tar.zst", "sudo pacman -U ")
	case slash == "/usr/bin/pillion" && (on.has("var/lib/rpm/rpmdb*") || on.has("var/lib/rpm/Packages*") || on.has("usr/lib/sysimage/rpm/rpmdb*")):
		return downloaded("the RPM package", "pillion-VERSION-1."+machine()+".rpm", "sudo rpm -U ")
	case module != "":
		return installer{Name: "go install", Env: []string{"GOBIN=" + filepath.Dir(self)}, Command: []string{"go", "install", "github.com/pillion-dev/pillion/sidecar@latest"}}
	}
	// A program in bin/ of a checkout was built there.
	if checkout := filepath.Dir(filepath.Dir(self)); on.exists(filepath.Join(checkout, "sidecar", "main.go")) {
		return installer{Name: "make build in " + checkout, Advice: "git -C " + trust.QuoteArg(checkout) + " pull && make -C " + trust.QuoteArg(checkout) + " build, or the plugin manager that keeps this checkout"}
	}
	return installer{Name: "hand", Advice: "Replace it with a file of " + releasePage + ", or install a release: curl -fsSL " + installScript + " | sh"}
}

// nodeInstaller tells the package managers of Node apart, by the folder that holds node_modules. slash is the program's path.
func nodeInstaller(on system, slash string) installer {
	home, _, _ := strings.Cut(slash, "/node_modules/")
	switch {
	case strings.Contains(slash, "/_npx/"):
		return installer{Name: "npx", Advice: "npx keeps the release that it fetched first; for the newest one: npx pillion@latest"}
	case strings.Contains(slash, "/dlx-") || strings.Contains(slash, "/pnpm/dlx/"):
		return installer{Name: "pnpm dlx", Advice: "For the newest release: pnpm dlx pillion@latest"}
	case strings.Contains(slash, "/bunx-"):
		return installer{Name: "bunx", Advice: "For the newest release: bunx pillion@latest"}
	case strings.Contains(slash, "/pnpm/global/"):
		return installer{Name: "pnpm, for all projects", Command: []string{"pnpm", "add", "--global", "pillion@latest"}}
	case strings.Contains(slash, "/.bun/install/global/"):
		return installer{Name: "Bun, for all projects", Command: []string{"bun", "add", "--global", "pillion@latest"}}
	case strings.HasSuffix(home, "/yarn/global") || strings.Contains(slash, "/Yarn/Data/global/"):
		return installer{Name: "yarn, for all projects", Command: []string{"yarn", "global", "add", "pillion@latest"}}
	case !on.exists(home + "/package.json"):
		// npm's folder for all projects is PREFIX/lib/node_modules, on Windows PREFIX/node_modules. The prefix is named, since the npm in
		// PATH may be that of another Node.
		i := installer{Name: "npm, for all projects", Command: []string{"npm", "install", "--global", "--prefix", strings.TrimSuffix(home, "/lib"), "pillion@latest"}}
		if on.needsRoot(home + "/node_modules") {
			i.Root, i.Command = true, append([]string{"sudo"}, i.Command...)
		}
		return i
	}
	add := "npm install"
	switch {
	case on.exists(home + "/pnpm-lock.yaml"):
		add = "pnpm add"
	case on.exists(home + "/yarn.lock"):
		add = "yarn add"
	case on.exists(home+"/bun.lock") || on.exists(home+"/bun.lockb"):
		add = "bun add"
	}
	return installer{Name: "npm, in a project", Advice: "In " + home + ": " + add + " pillion@latest"}
}

// scriptInstaller runs install.sh again with the folders that it was told the first time, so that the program in PATH is the one that is
// replaced. The script is saved first: a download that fails would be an empty script behind a pipe, which succeeds.
func scriptInstaller(on system, record string) installer {
	i := installer{Name: "install.sh"}
	text, _ := os.ReadFile(filepath.Join(on.root, record))
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, "=")
		if (key == "PILLION_BIN" || key == "XDG_DATA_HOME") && filepath.IsAbs(value) {
			i.Env = append(i.Env, line)
			i.Root = i.Root || on.needsRoot(value)
		}
	}
	fetch := `curl -fsSL -o "$f" `
	if _, err := exec.LookPath("curl"); err != nil {
		fetch = `wget -qO "$f" `
	}
	i.Command = []string{"sh", "-c", `f=$(mktemp) && ` + fetch + installScript + ` && sh "$f"; s=$?; rm -f "$f"; exit $s`}
	if i.Root {
		i.Command, i.Env = append(append([]string{"sudo", "env"}, i.Env...), i.Command...), nil
	}
	return i
}

// downloaded is a package that was fetched by hand. No package source has it, so the system's own upgrade never finds a newer one.
func downloaded(name, file, install string) installer {
	return installer{Name: name, Root: true, Advice: "Download " + file + " from " + releasePage + ", then: " + install + file}
}

// machine is this architecture as uname names it.
func machine() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}
