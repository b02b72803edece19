package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/check"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/paths"
)

// exitUncertain is the exit code when no error is known but not everything was checked. A build script must be
// able to tell that from success: a server that did not start would otherwise pass every change. exitError says
// that errors are introduced.
const exitUncertain = 3

// checkCommand is `pillion check`: the verdict of an edit, for a change that was made without Pillion. It is for
// builds: no model, no question, and exit codes that tell three outcomes apart.
func checkCommand() *cobra.Command {
	var cwd, format string
	var partial bool
	var budget time.Duration
	c := &cobra.Command{
		Use:   "check [COMMIT | RANGE | PATCH | -]",
		Short: "Report the errors that a change introduces and fixes",
		Long: `Ask the project's language servers for the verdict on a change: the errors that it introduces and fixes, also in files that it
does not touch. Without an argument the change is the difference between the working tree and the last commit. The argument can be a
commit, a range A..B or A...B, a file with a patch, or - for a patch on standard input. Nothing is written to the project.

Exit codes: 0 no error is introduced and every server has answered; 1 errors are introduced; 2 wrong usage, or the change cannot be
read (a patch that does not apply, a commit that is not there); 3 no error is known, but not everything was checked (the reason is printed).`,
		Example: `  pillion check
  pillion check main...HEAD --format sarif > pillion.sarif
  pillion check fix.patch`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(check.Formats, format) {
				return usagef("--format takes %s, not %q", strings.Join(check.Formats, ", "), format)
			}
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			// The budget covers the whole command, reading the change from Git included.
			ctx, cancel := context.WithTimeout(c.Context(), budget)
			defer cancel()
			// The real path, as for review: trust is kept by it, and Git reports resolved paths.
			root := trust.RealPath(paths.Worktree(dir))
			here, err := os.Getwd() // a patch is named from where the person is
			if err != nil {
				return err
			}
			plan, err := planChange(ctx, root, here, args, c.InOrStdin(), false)
			if err != nil {
				return err
			}
			defer plan.Close()
			place := app.NewWorkplace(version)
			// Problems of the configuration are not the change's; they do not fail a build.
			conf, _ := place.Config(dir)
			trust.Warn(c.ErrOrStderr(), conf, root)
			// Servers of its own, which end with the check: those of a session show the project's present text.
			v := place.Check(ctx, plan, conf, func(text string) { fmt.Fprintln(c.ErrOrStderr(), "pillion:", text) })
			if err := plan.Write(c.OutOrStdout(), format, version, v); err != nil {
				return err
			}
			switch check.Judge(v, partial) {
			case check.Errors:
				return exitCode(exitError)
			case check.Uncertain:
				return exitCode(exitUncertain)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().StringVar(&format, "format", "text", "text, json or sarif")
	c.Flags().BoolVar(&partial, "accept-partial", false, "exit with 0 even if only part of the change could be checked")
	c.Flags().DurationVar(&budget, "timeout", 2*time.Minute, "how long to wait for the language servers")
	return c
}

// planChange is the change that the arguments of check and review name; see check.Target. An argument that is a
// file is a patch; everything else is a commit or a range, which Git resolves. branches allows the name of a
// branch, as review does. The caller closes the plan. A change that cannot be read exits with exitUsage: a build
// takes exitError for errors in the change.
func planChange(ctx context.Context, root, dir string, args []string, in io.Reader, branches bool) (plan *check.Plan, err error) {
	switch {
	case len(args) == 0:
		plan, err = check.WorkingTree(ctx, root)
	case args[0] == "-": // standard input, as in git apply
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(in, maxLine)); err == nil {
			plan, err = check.Patch(root, string(b))
		}
	default:
		plan, err = check.Target(ctx, root, dir, args[0], branches)
	}
	if err != nil {
		return nil, usagef("%w", err)
	}
	return plan, nil
}
