package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell"
)

func permissionCommand() *cobra.Command {
	c := &cobra.Command{Use: "permission", Short: "Explain, check, list and revoke permissions"}
	c.AddCommand(permissionExplain(), permissionCheck(), permissionList(), permissionRevoke())
	return c
}

func permissionExplain() *cobra.Command {
	var cwd, command string
	var lines, asJSON bool
	c := &cobra.Command{
		Use: "explain --command '…'", Short: "Show what a shell command would run and touch, and what would be asked", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := directory(cwd)
			if err != nil {
				return err
			}
			p := newWorkplace()
			a := newApp(appOptions{place: p, ephemeral: true, noLSP: true})
			defer a.close()
			env := a.env(agent.SessionInfo{Cwd: dir})
			explain := func(command, workdir string) builtin.Explanation {
				if workdir != "" && !filepath.IsAbs(workdir) {
					workdir = filepath.Join(dir, workdir)
				}
				return env.Explain(command, workdir, p.rules(dir))
			}
			if lines {
				return jsonl(c, func(line []byte) any {
					var q struct {
						ID      json.RawMessage `json:"id"`
						Command *string         `json:"command"`
						Workdir string          `json:"workdir"`
					}
					if err := json.Unmarshal(line, &q); err != nil {
						return badLine(nil, "invalid", "the line is not a JSON object with a command: %s", jsonFault(err))
					}
					if q.Command == nil {
						return badLine(q.ID, "invalid", "command is missing")
					}
					return struct {
						ID json.RawMessage `json:"id,omitempty"`
						builtin.Explanation
					}{q.ID, explain(*q.Command, q.Workdir)}
				})
			}
			if command == "" {
				return usagef("say which command: pillion permission explain --command 'rm -rf build'")
			}
			x := explain(command, "")
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				e.SetEscapeHTML(false)
				return e.Encode(x)
			}
			printExplanation(c.OutOrStdout(), x)
			return nil
		},
	}
	c.Flags().StringVar(&command, "command", "", "the shell command")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&lines, "jsonl", false, `read {"id"?,"command","workdir"?} lines from standard input`)
	return c
}

func printExplanation(w io.Writer, x builtin.Explanation) {
	fmt.Fprintf(w, "%s: %s\n", x.Decision, terminal.Clean(x.Why))
	for _, c := range x.Commands {
		fmt.Fprintln(w, "  runs      ", terminal.Clean(shell.Visible(c)))
	}
	for _, p := range x.ExternalPaths {
		fmt.Fprintf(w, "  %-10s %s (outside the project)\n", p.Access+"s", terminal.Clean(p.Path))
	}
	for _, p := range x.ProtectedPaths {
		fmt.Fprintln(w, "  protected ", terminal.Clean(p))
	}
	if x.Opaque {
		fmt.Fprintln(w, "  opaque     it cannot be known what it runs, so the whole command is asked and no rule allows it")
	}
	for _, r := range x.Requests {
		fmt.Fprintf(w, "  asks %s: %s", r.Permission, terminal.Clean(shell.Visible(strings.Join(r.Patterns, " · "))))
		if len(r.Always) > 0 {
			fmt.Fprintf(w, "   (always: %s)", terminal.Clean(strings.Join(r.Always, " · ")))
		}
		fmt.Fprintln(w)
	}
}

func permissionCheck() *cobra.Command {
	var cwd, name, pattern string
	var lines, asJSON bool
	c := &cobra.Command{
		Use: "check", Short: "Say what the rules decide for a permission and a pattern, and which rule", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := directory(cwd)
			if err != nil {
				return err
			}
			p := newWorkplace()
			if lines {
				return jsonl(c, func(line []byte) any {
					var q struct {
						ID         json.RawMessage `json:"id"`
						Config     json.RawMessage `json:"config"`
						Permission string          `json:"permission"`
						Pattern    string          `json:"pattern"`
					}
					if err := json.Unmarshal(line, &q); err != nil {
						return badLine(nil, "invalid", "the line is not a JSON object: %s", jsonFault(err))
					}
					rules := p.rules(dir)
					if len(q.Config) > 0 && string(q.Config) != "null" {
						var err error
						if rules, err = permission.Parse(q.Config, nil); err != nil {
							return badLine(q.ID, "invalid", "config: %v", err)
						}
					}
					return struct {
						ID json.RawMessage `json:"id,omitempty"`
						permission.Checked
					}{q.ID, permission.Check(rules, q.Permission, q.Pattern)}
				})
			}
			if name == "" {
				return usagef("say which permission: pillion permission check --permission edit --pattern src/a.go")
			}
			x := permission.Check(p.rules(dir), name, pattern)
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(x)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s", x.Action)
			if x.Rule != nil {
				fmt.Fprintf(c.OutOrStdout(), "  by %s %q = %s from %s", x.Rule.Permission, x.Rule.Pattern, x.Rule.Action, x.Rule.Origin)
			}
			fmt.Fprintln(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().StringVar(&name, "permission", "", "edit, bash, read …")
	c.Flags().StringVar(&pattern, "pattern", "*", "path, command or address")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&lines, "jsonl", false, `read {"id"?,"config"?,"permission","pattern"} lines from standard input`)
	return c
}

func permissionList() *cobra.Command {
	var asJSON, all bool
	var cwd string
	c := &cobra.Command{
		Use: "list", Short: "List what was allowed for good in this project", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := directory(cwd)
			if err != nil {
				return err
			}
			project := worktree(dir)
			if all {
				project = ""
			}
			a := newApp(appOptions{place: newWorkplace()})
			defer a.close()
			list, err := grantsIn(c.Context(), a.grants, project)
			if err != nil {
				return err
			}
			if asJSON {
				return writeLines(c.OutOrStdout(), list)
			}
			if len(list) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "nothing was allowed for good here")
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
			for _, g := range list {
				project := g.Project
				if project == permission.Everywhere {
					project = "every project"
				}
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", g.ID, g.Permission, terminal.Clean(g.Pattern), g.Created.Local().Format(time.DateTime), project)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	c.Flags().BoolVar(&all, "all", false, "of every project")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// grantsIn are what counts in a project: its own grants and those for every project. The empty project has all.
func grantsIn(ctx context.Context, grants permission.Grants, project string) ([]permission.Grant, error) {
	list, err := grants.List(ctx, project)
	if err != nil || project == "" {
		return list, err
	}
	everywhere, err := grants.List(ctx, permission.Everywhere)
	return append(list, everywhere...), err
}

func permissionRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID...", Short: "Take back what was allowed for good", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a := newApp(appOptions{place: newWorkplace()})
			defer a.close()
			for _, s := range args {
				id, err := strconv.ParseInt(s, 10, 64)
				if err != nil {
					return usagef("%q is not a number from pillion permission list", s)
				}
				if err := a.grants.Revoke(c.Context(), id); err != nil {
					return fmt.Errorf("%d: %w", id, err)
				}
				fmt.Fprintln(c.OutOrStdout(), "revoked", id)
			}
			return nil
		},
	}
}
