package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/skill"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// configCommand is `pillion config`: what is set, by which file, and what is wrong with it.
func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check and show the configuration"}
	// The schema is made from the types, so it needs no folder and no app.
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
			// No app is made: a configuration that keeps one from starting must still be checked.
			place := app.NewWorkplace(version)
			conf, problems := place.Config(dir)
			unused := skill.New(place.SkillPlaces(dir, paths.Worktree(dir), conf)).Problems()
			if asJSON {
				// JSON lists are never null: scripts index and count them without a check.
				// "doubtful" are rules that probably do not do what was meant (permission.Lint).
				if err := json.NewEncoder(c.OutOrStdout()).Encode(map[string]any{"ok": len(problems) == 0, "problems": list(problems), "trusted": conf.Trusted(), "held": list(conf.Held()), "unsupported": list(conf.Unsupported()), "skills": list(unused), "doubtful": list(permission.Lint(conf.Permission.Rules))}); err != nil {
					return err
				}
			} else {
				for _, p := range problems {
					fmt.Fprintln(c.OutOrStdout(), p)
				}
				// What is held back is not a mistake: it is used as soon as the folder is trusted.
				for _, h := range conf.Held() {
					fmt.Fprintln(c.OutOrStdout(), h)
				}
				for _, u := range conf.Unsupported() {
					fmt.Fprintln(c.OutOrStdout(), u)
				}
				for _, p := range unused {
					fmt.Fprintf(c.OutOrStdout(), "%s; the skill is not offered\n", p)
				}
				imports := app.Imports(conf, paths.Worktree(dir))
				for _, u := range agent.LeftImports(dir, imports) {
					fmt.Fprintf(c.OutOrStdout(), "%s:1:1: @%s is not imported: %s\n", u.From, u.Path, u.Why)
				}
				for _, u := range agent.UnusedInstructions(dir, imports) {
					fmt.Fprintf(c.OutOrStdout(), "%s:1:1: it is not used: %s is; import it there with @, or name it under instructions\n", u[0], u[1])
				}
				for _, path := range agent.CutInstructions(dir, imports) {
					fmt.Fprintf(c.OutOrStdout(), "%s:1:1: it is long: each request has its first 64 KiB, and the model is told to read the rest; name what matters first\n", path)
				}
				for _, doubt := range permission.Lint(conf.Permission.Rules) { // not mistakes: an MCP server may bring a tool of that name
					fmt.Fprintln(c.OutOrStdout(), doubt)
				}
				if len(conf.Held()) > 0 {
					// QuoteArg: the path may contain blanks, and the line is meant to be copied into a shell.
					fmt.Fprintln(c.OutOrStdout(), "to use the settings that are held back, run: pillion trust "+trust.QuoteArg(paths.Worktree(dir)))
				}
				// The last line sums up for a person; the mistakes above speak for themselves.
				switch held := len(conf.Held()); {
				case len(problems) > 0:
				case held > 0:
					fmt.Fprintf(c.OutOrStdout(), "no mistakes; %s held back until you trust this folder\n", textutil.Plural(held, "setting"))
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

// list is what encoding/json writes as [] when there is nothing.
func list[T any](all []T) []T { return append([]T{}, all...) }

// configShow is `pillion config show`. Problems go to standard error, so that the output stays JSON.
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
			// What is held back is not in the output below; without a word it would seem to be missing.
			trust.Warn(c.ErrOrStderr(), conf, paths.Worktree(dir))
			if origin {
				origins := conf.Origins()
				if asJSON {
					return json.NewEncoder(c.OutOrStdout()).Encode(origins)
				}
				// The order of a map changes from run to run; a sorted list can be compared.
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
			// conf was loaded for this command, so changing it harms no one.
			mask(conf)
			e := json.NewEncoder(c.OutOrStdout())
			// Indented, since people read it, and valid JSON for those who do not.
			e.SetIndent("", "  ")
			return e.Encode(conf)
		},
	}
	c.Flags().BoolVar(&origin, "origin", false, "print where each value comes from")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON (with --origin too; the configuration always is)")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// masked keeps the names of a map of secrets, so that a reader sees what is set, and hides the values. It returns
// a copy; nil stays nil, so that an absent setting is not printed as an empty one.
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
// A setting that can hold a secret must be added here.
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
		// A copy: the pointer may be shared with the configuration that others hold.
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
