package main

import (
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/sidecar/pages"
	"github.com/spf13/cobra"
)

//go:generate go run . __docs ../docs/reference

// docsCommand is hidden. It writes the reference pages from the commands, the schema and the tools of this very program, so
// that they cannot be out of date, or its manual page for a package.
func docsCommand() *cobra.Command {
	var man bool
	c := &cobra.Command{
		Use: "__docs DIR", Short: "Write the reference pages, or pillion.1, into a folder", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			all := pages.Reference(c.Root())
			if man {
				all = map[string]string{"pillion.1": pages.Manual(c.Root())}
			}
			// The folder may be one of a package build, which does not exist yet; readable by all, as documentation
			// is.
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			for name, text := range all {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(text), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&man, "man", false, "the manual page instead")
	return c
}
