package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a wrong command line; the process exits with exitUsage, so that a script can tell its own mistake
// from a failed run.
type usageError struct{ error }

// usagef formats a usageError; %w works.
func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// strictArgs makes every wrong command line an error that names the help to read. Cobra alone prints the help for an
// unknown subcommand and exits with 0, which hides a typing mistake from scripts.
func strictArgs(c *cobra.Command) {
	// Depth first: each command's own check is wrapped once.
	for _, sub := range c.Commands() {
		strictArgs(sub)
	}
	if c.HasSubCommands() {
		alone := c.RunE
		if alone == nil {
			alone = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
		// Two slips at most, as for the keys of the configuration.
		c.Args, c.SuggestionsMinimumDistance = cobra.ArbitraryArgs, 2
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return alone(c, args)
			}
			near := ""
			if s := c.SuggestionsFor(args[0]); len(s) > 0 {
				near = "; did you mean " + strings.Join(s, " or ") + "?"
			}
			return usagef("%s has no command %q%s (%s --help lists them)", c.CommandPath(), args[0], near, c.CommandPath())
		}
		return
	}
	check := c.Args
	if check == nil {
		check = cobra.NoArgs
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usagef("%s: %w; see %s --help", c.CommandPath(), err, c.CommandPath())
		}
		return nil
	}
}
