package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/paths"
)

// importCommand is `pillion import`: it translates the settings of another agent, and writes them after the same hunk-by-hunk
// review as an edit of a model.
func importCommand() *cobra.Command {
	var cwd, approve string
	var own, dry bool
	c := &cobra.Command{
		Use: "import PROGRAM", Short: "Translate the settings of " + strings.Join(config.Programs, ", ") + " into pillion.jsonc", Args: cobra.ExactArgs(1), ValidArgs: config.Programs,
		Long: "Read the settings of another agent in this project (with --global: your own settings) and propose the same settings for pillion.jsonc,\n" +
			"hunk by hunk. Settings that pillion.jsonc has already stay as they are. Settings that Pillion does not have are listed.",
		Example: "  pillion import claude\n  pillion import codex --global\n  pillion import cursor --print",
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			place := app.NewWorkplace(version)
			s := config.Sources{Cwd: dir, Root: paths.Worktree(dir), UserDir: place.User, Home: place.Home, Env: os.Getenv}
			found, err := config.Import(s, args[0], own)
			if err != nil {
				return usagef("%w", err)
			}
			// Standard error, because with --print standard output is the file alone.
			for _, p := range found.Problems {
				fmt.Fprintln(c.ErrOrStderr(), p)
			}
			for _, u := range found.Left {
				fmt.Fprintln(c.ErrOrStderr(), u)
			}
			if len(found.Used) > 0 {
				fmt.Fprintln(c.ErrOrStderr(), "used where they are, without an import: "+strings.Join(shortPaths(found.Used, dir), ", "))
			}
			if len(found.Files) == 0 {
				fmt.Fprintln(c.ErrOrStderr(), "there are no settings of "+args[0]+" to translate")
				return nil
			}
			if dry {
				fmt.Fprint(c.OutOrStdout(), found.Text)
				return nil
			}
			// The command fails if nothing could be translated, and succeeds if there is nothing left to do.
			switch {
			case found.Text == "":
				return exitCode(exitError)
			case found.Text == found.Old:
				fmt.Fprintf(c.ErrOrStderr(), "%s says all of it already\n", found.Path)
				return nil
			}
			return proposeSettings(c, found, approve)
		},
	}
	c.Flags().BoolVar(&own, "global", false, "your own settings instead of the project's")
	c.Flags().BoolVar(&dry, "print", false, "print the file instead of proposing it")
	c.Flags().StringVar(&approve, "approve", "ask", "how to answer the approval request: ask, all or none")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// shortPaths are paths as a person reads them in a folder.
func shortPaths(all []string, dir string) (out []string) {
	for _, p := range all {
		if rel, err := filepath.Rel(dir, p); err == nil && filepath.IsLocal(rel) {
			p = rel
		}
		out = append(out, p)
	}
	return out
}
