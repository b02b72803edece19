package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// modelsCommand is `pillion models`. A mark "*" is the model of new sessions.
func modelsCommand() *cobra.Command {
	var asJSON, local, refresh bool
	var cwd string
	c := &cobra.Command{
		Use: "models [provider]", Short: "List the available models and the default", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			// No key is tried: a model is listed because there is a key, not because it works.
			a := app.New(app.Options{Place: app.NewWorkplace(version)})
			defer a.Close()
			_, problems := a.Place.Config(dir)
			app.Warn(c.ErrOrStderr(), problems)
			if refresh {
				r, err := a.Place.Catalogue.Refresh(c.Context())
				if err != nil {
					return fmt.Errorf("the catalogue of models is as it was: %w", err)
				}
				fmt.Fprintf(c.ErrOrStderr(), "pillion: the catalogue of models.dev has %s that Pillion can use\n", textutil.Plural(r.Models, "model"))
			}
			list := a.Models.List(c.Context(), dir, local)
			// By the provider of the model and not by the beginning of its id: ids of hosted models contain other
			// providers' names.
			if len(args) == 1 {
				list = slices.DeleteFunc(list, func(m models.Info) bool { return m.Model.Provider != args[0] })
				if len(list) == 0 {
					return fmt.Errorf("provider %q has no usable model; pillion models lists the usable ones", args[0])
				}
			}
			if asJSON {
				return writeLines(c.OutOrStdout(), list)
			}
			return writeTable(c.OutOrStdout(), list, func(w io.Writer, m models.Info) {
				mark := " "
				// The default may be a model that is not usable: then no row has the mark.
				if m.Default {
					mark = "*"
				}
				fmt.Fprintf(w, "%s %s\t%s\t%s\n", mark, m.ID, m.Name, m.Origin)
			})
		},
	}
	// local is on by default; it asks the usual ports of this machine, which takes up to 0.2 s.
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	c.Flags().BoolVar(&local, "local", true, "look for model servers on this machine")
	c.Flags().BoolVar(&refresh, "refresh", false, "fetch the public catalogue of models.dev first: limits and prices of hosted models")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}
