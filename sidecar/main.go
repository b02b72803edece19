// Command pillion is a coding agent that works behind your editor: one binary that editors start (pillion acp),
// that people run in a terminal (pillion run), and that scripts ask (pillion tool, permission, sessions …).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/draft/worker"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// version is set by the linker: -X main.version=1.2.3.
var version = "0.1.0-dev"

// Exit codes, documented in `pillion --help`. 130 is what shells report for a program that Ctrl-C ended.
const (
	exitOK        = 0
	exitError     = 1
	exitUsage     = 2
	exitCancelled = 130
)

// exitCode is an error that only carries the process's exit code: the message has been printed already.
type exitCode int

// Error implements error; it is never printed.
func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// ensureHome sets HOME from the user database where it is missing: some editors start agents with PATH alone, and
// without it neither the configuration nor the person's keys are found, nor by the commands that are run.
func ensureHome() {
	if os.Getenv("HOME") != "" || runtime.GOOS == "windows" {
		return
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		_ = os.Setenv("HOME", u.HomeDir)
	}
}

// main dispatches the hidden modes before anything else: a command that starts in the sandbox, the watcher of another
// Pillion and a terminal relay must not load cobra, tune the heap or change the environment.
func main() {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Arg { // we are a command about to start in the sandbox
		// os.Exit skips deferred calls, so the hidden modes must not rely on any.
		os.Exit(sandbox.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == draft.Arg { // we are a program about to start in a draft's view
		os.Exit(draft.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == worker.RelayArg { // we stand for a program in a draft's view
		os.Exit(worker.Relay(os.Args[2:]))
	}
	// Behind these, which run in an environment that was made for them.
	ensureHome()
	if len(os.Args) > 1 && os.Args[1] == guard.Arg { // we watch another Pillion, as long as it runs
		dropFilePages()
		os.Exit(guard.Main())
	}
	if len(os.Args) > 1 && os.Args[1] == acp.RelayArg { // an editor's terminal shows a command of another Pillion's
		os.Exit(acp.RelayMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == app.IndexArg { // we make a search index for another Pillion
		os.Exit(app.BuildIndex(os.Args[2:]))
	}
	tuneHeap()
	// From here on, children end with this program, also when it is killed (package guard).
	guard.Enable()
	if len(os.Args) > 1 && os.Args[1] == worker.Arg { // we run the tools of another Pillion's draft
		dropFilePages() // it runs as long as the draft
		code := worker.Main()
		guard.Close()
		os.Exit(code)
	}
	code := execute(os.Args[1:])
	guard.Close()
	os.Exit(code)
}

// execute runs the command line and returns the exit code. SIGTERM and SIGHUP cancel the context, so that a running
// turn is ended and stored; Ctrl-C is left to the commands, which treat it differently.
func execute(args []string) int {
	// Both are what an editor or a closed terminal sends; without a handler a running turn would not be stored.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root := rootCommand()
	var prof profile
	prof.flag(root)
	root.SetArgs(args)
	// The profile is written also when the command failed: a slow failure is what it may be for.
	err := errors.Join(root.ExecuteContext(ctx), prof.stop())
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		return exitCancelled
	}
	fmt.Fprintln(os.Stderr, "pillion:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}

// rootCommand is `pillion` with all its subcommands. Alone, in a terminal, it starts a conversation; with a pipe
// at either end it prints the help, so that a script does not wait for a prompt.
func rootCommand() *cobra.Command {
	var f runFlags
	root := &cobra.Command{
		Use:   "pillion",
		Short: "A coding agent that works behind your editor",
		Long: `A coding agent that works behind your editor.

pillion in a terminal starts a conversation; pillion run "…" sends one prompt.
Try it now, without a key or a network:  pillion run "fix all errors"

Exit codes: 0 done, 1 failed, 2 the command line is wrong, 130 cancelled.`,
		// execute prints errors itself, once, with the exit code that belongs to them.
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if show, err := c.Flags().GetBool("version"); err == nil && show {
				_, err := fmt.Fprintln(c.OutOrStdout(), "pillion", version)
				return err
			}
			if !isTerminal(os.Stdin) || !isTerminal(c.OutOrStdout()) {
				return c.Help()
			}
			return runPrompts(c.Context(), f, nil, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.flags(root)
	// Cobra's own --version goes through text/template, which makes the linker keep every exported method of every package.
	root.Flags().Bool("version", false, "print the version")
	// A wrong flag exits with exitUsage, like every other mistake in the command line.
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, c.CommandPath())
	})
	root.AddCommand(acpCommand(), attachCommand(), runCommand(), toolCommand(), checkCommand(), reviewCommand(), mcpCommand(), authCommand(), permissionCommand(), sessionsCommand(), draftsCommand(), statsCommand(), modelsCommand(), agentsCommand(), configCommand(), importCommand(), trustCommand(), doctorCommand(), versionCommand(), upgradeCommand(), docsCommand())
	strictArgs(root)
	return root
}
