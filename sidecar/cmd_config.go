package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// configCommand is `pillion config`.
func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check and show the configuration"}
	c.AddCommand(configCheck(), configShow(), &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of pillion.jsonc", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(config.JSONSchema())
			return err
		},
	})
	return c
}

// configCheck is `pillion config check`: mistakes, settings that are held back, and settings of OpenCode that Pillion
// does not support. Only mistakes make it fail.
func configCheck() *cobra.Command {
	var asJSON bool
	var cwd string
	c := &cobra.Command{
		Use: "check", Short: "Report configuration errors as file:line:column", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			conf, problems := app.NewWorkplace(version).Config(dir)
			if asJSON {
				held := conf.Held()
				if problems == nil {
					problems = []config.Problem{}
				}
				if held == nil {
					held = []config.Held{}
				}
				if err := json.NewEncoder(c.OutOrStdout()).Encode(map[string]any{"ok": len(problems) == 0, "problems": problems, "trusted": conf.Trusted(), "held": held, "unsupported": slices.Concat([]config.Unsupported{}, conf.Unsupported()), "doubtful": slices.Concat([]string{}, permission.Lint(conf.Permission.Rules))}); err != nil {
					return err
				}
			} else {
				for _, p := range problems {
					fmt.Fprintln(c.OutOrStdout(), p)
				}
				for _, h := range conf.Held() {
					fmt.Fprintln(c.OutOrStdout(), h)
				}
				for _, u := range conf.Unsupported() {
					fmt.Fprintln(c.OutOrStdout(), u)
				}
				for _, doubt := range permission.Lint(conf.Permission.Rules) { // not mistakes: an MCP server may bring a tool of that name
					fmt.Fprintln(c.OutOrStdout(), doubt)
				}
				if len(conf.Held()) > 0 {
					fmt.Fprintln(c.OutOrStdout(), "to use the settings that are held back, run: pillion trust "+trust.QuoteArg(paths.Worktree(dir)))
				}
				switch held := len(conf.Held()); {
				case len(problems) > 0:
				case held > 0:
					fmt.Fprintf(c.OutOrStdout(), "no mistakes; %d setting(s) are held back until you trust this folder\n", held)
				default:
					fmt.Fprintln(c.OutOrStdout(), "the configuration is fine")
				}
			}
			if len(problems) > 0 {
				return exitCode(exitError)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// configShow is `pillion config show`.
func configShow() *cobra.Command {
	var origin, asJSON bool
	var cwd string
	c := &cobra.Command{
		Use: "show", Short: "Print the merged configuration; keys are masked", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			conf, problems := app.NewWorkplace(version).Config(dir)
			app.Warn(c.ErrOrStderr(), problems)
			trust.Warn(c.ErrOrStderr(), conf, paths.Worktree(dir))
			if origin {
				origins := conf.Origins()
				if asJSON {
					return json.NewEncoder(c.OutOrStdout()).Encode(origins)
				}
				paths := make([]string, 0, len(origins))
				for p := range origins {
					paths = append(paths, p)
				}
				slices.Sort(paths)
				if len(paths) == 0 {
					fmt.Fprintln(c.ErrOrStderr(), "no configuration file sets anything; the defaults are used")
				}
				for _, p := range paths {
					fmt.Fprintf(c.OutOrStdout(), "%-40s %s\n", p, origins[p])
				}
				return nil
			}
			mask(conf)
			e := json.NewEncoder(c.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(conf)
		},
	}
	c.Flags().BoolVar(&origin, "origin", false, "print where each value comes from")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON (with --origin too; the configuration always is)")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// masked keeps the names of a map of secrets, so that a reader sees what is set, and hides the values.
func masked(values map[string]string) map[string]string {
	if values == nil {
		return nil
	}
	out := map[string]string{}
	for k := range values {
		out[k] = "********"
	}
	return out
}

// mask hides keys, tokens, headers and query parameters in c: the output is pasted into bug reports. It changes c.
func mask(c *config.Config) {
	hide := func(s *string) {
		if *s != "" {
			*s = "********"
		}
	}
	for id, p := range c.Provider {
		hide(&p.Key)
		hide(&p.APIKey)
		p.Headers = masked(p.Headers)
		for name, m := range p.Models {
			m.Headers = masked(m.Headers)
			p.Models[name] = m
		}
		if p.Options != nil {
			o := *p.Options
			hide(&o.APIKey)
			hide(&o.Token)
			o.Headers, o.Query = masked(o.Headers), masked(o.Query)
			p.Options = &o
		}
		c.Provider[id] = p
	}
}
