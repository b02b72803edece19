package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// permissionList is `pillion permission list`. Grants are kept by worktree, so a directory below it shows the same
// ones.
func permissionList() *cobra.Command {
	var asJSON, all bool
	var cwd string
	c := &cobra.Command{
		Use: "list", Short: "List the grants of this project (approvals with “always”)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			project := paths.Worktree(dir)
			// An empty project means all of them to GrantsIn.
			if all {
				project = ""
			}
			a := app.New(app.Options{Place: app.NewWorkplace(version)})
			defer a.Close()
			list, err := acp.GrantsIn(c.Context(), a.Grants, project)
			if err != nil {
				return err
			}
			if asJSON {
				return writeLines(c.OutOrStdout(), list)
			}
			if len(list) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "this project has no grants")
			}
			return printGrants(c.OutOrStdout(), list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	c.Flags().BoolVar(&all, "all", false, "list the grants of every project")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// printGrants prints one grant a line, first the number that revoke takes. Patterns come from commands of a model,
// so they are cleaned.
func printGrants(to io.Writer, list []permission.Grant) error {
	return writeTable(to, list, func(w io.Writer, g permission.Grant) {
		project := g.Project
		// Everywhere is a marker in the store and no path.
		if project == permission.Everywhere {
			project = "every project"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", g.ID, g.Permission, terminal.Clean(g.Pattern), g.Created.Local().Format(time.DateTime), project)
	})
}

// permissionRevoke is `pillion permission revoke`. It revokes nothing before all arguments are understood.
func permissionRevoke() *cobra.Command {
	var all bool
	var cwd string
	c := &cobra.Command{
		Use:   "revoke {NUMBER | PERMISSION | PATTERN}... | --all",
		Short: "Revoke grants",
		Long: "Revoke grants of this project or of every project, by the numbers of `pillion permission list`, by permission,\n" +
			"by pattern, or by a permission followed by its patterns. Either all named grants are revoked, or none.",
		Args: cobra.ArbitraryArgs,
		Example: `  pillion permission revoke 3
  pillion permission revoke bash              # all of bash
  pillion permission revoke bash 'go test *'
  pillion permission revoke --all             # all grants that apply to this project`,
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			// Neither "all" by leaving out the arguments, nor both: revoking more than was meant cannot be undone
			// here.
			if all == (len(args) > 0) {
				return usagef("say which grants to revoke: numbers from pillion permission list, a permission, patterns, or --all alone")
			}
			a := app.New(app.Options{Place: app.NewWorkplace(version), NoLSP: true})
			defer a.Close()
			here, err := acp.GrantsIn(c.Context(), a.Grants, paths.Worktree(dir))
			if err != nil {
				return err
			}
			// Numbers are unique over all projects, so those of others are accepted as well.
			every, err := acp.GrantsIn(c.Context(), a.Grants, "")
			if err != nil {
				return err
			}
			chosen := here
			if !all {
				if chosen, err = chosenGrants(args, here, every); err != nil {
					return err
				}
			}
			// All arguments have been understood. Each grant is printed as it is revoked: after an error of the store the person sees how far
			// the command came.
			for _, g := range chosen {
				if err := a.Grants.Revoke(c.Context(), g.ID); err != nil {
					return fmt.Errorf("%d: %w", g.ID, err)
				}
				fmt.Fprintln(c.OutOrStdout(), "revoked", g.ID, g.Permission, terminal.Clean(g.Pattern))
			}
			if len(chosen) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "this project has no grants")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all grants that apply to this project")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// chosenGrants finds the grants that the arguments name. A number is a grant of any project. A word is about the
// grants of this project: a permission, or a pattern, which belongs to the permission before it if there is one.
// It fails for the first argument that names none, before anything is revoked: half of a revocation would leave
// the person with a list that they have not asked for.
func chosenGrants(words []string, here, every []permission.Grant) ([]permission.Grant, error) {
	var out []permission.Grant
	add := func(from []permission.Grant, is func(permission.Grant) bool) bool {
		found := false
		for _, g := range from {
			if is(g) {
				found = true
				// Two words may name the same grant; it can be revoked once only.
				if !slices.Contains(out, g) {
					out = append(out, g)
				}
			}
		}
		return found
	}
	// name is the last permission among the words; patterns behind it are looked for in that one only.
	name := ""
	for i, word := range words {
		ok := false
		switch id, err := strconv.ParseInt(word, 10, 64); {
		case err == nil:
			ok = add(every, func(g permission.Grant) bool { return g.ID == id })
		case slices.ContainsFunc(here, func(g permission.Grant) bool { return g.Permission == word }):
			name = word
			if i+1 < len(words) && isPattern(words[i+1], here) {
				continue // patterns of it follow
			}
			ok = add(here, func(g permission.Grant) bool { return g.Permission == word })
		default:
			ok = add(here, func(g permission.Grant) bool { return g.Pattern == word && (name == "" || g.Permission == name) })
		}
		if !ok {
			return nil, noSuchGrant(word, name, here)
		}
	}
	return out, nil
}

// isPattern reports whether a word after a permission is a pattern of it: neither a number nor a permission.
func isPattern(word string, here []permission.Grant) bool {
	_, err := strconv.ParseInt(word, 10, 64)
	return err != nil && !slices.ContainsFunc(here, func(g permission.Grant) bool { return g.Permission == word })
}

// noSuchGrant lists the grants that could have been meant, so that a second command is not needed to find the
// right word.
func noSuchGrant(word, name string, here []permission.Grant) error {
	what := strconv.Quote(word)
	if name != "" && name != word {
		what = name + " " + what
	}
	// The commonest mistake is the wrong directory, so the message names the other projects.
	if len(here) == 0 {
		return fmt.Errorf("this project has no grants, so nothing was revoked; %s may belong to another project, which `pillion permission list --all` shows", what)
	}
	var b strings.Builder
	_ = printGrants(&b, here) // to memory
	return fmt.Errorf("this project has no grant %s, so nothing was revoked. Its grants are:\n%s", what, strings.TrimRight(b.String(), "\n"))
}
