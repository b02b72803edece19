package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// strict makes every wrong command line an error that says where to read on: cobra alone takes a misspelt
// subcommand for a wish to read the help, and ends well.
func strict(c *cobra.Command) {
	for _, sub := range c.Commands() {
		strict(sub)
	}
	if c.HasSubCommands() {
		alone := c.RunE
		if alone == nil {
			alone = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
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
