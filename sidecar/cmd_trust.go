package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/paths"
)

// trustCommand is `pillion trust`. What trust is about is decided in sidecar/config, the decisions are kept by
// sidecar/trust.
func trustCommand() *cobra.Command {
	var revoke, list, below, asJSON bool
	c := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust a folder's own configuration",
		Long: `Trust a folder's own configuration.

Configuration that comes with a repository cannot start programs, send requests elsewhere or loosen permissions
until you trust its folder. Trust is kept in your state folder, for the whole worktree that holds DIR (default: this
directory), by its real path.`,
		Example: `  pillion trust
  pillion trust ~/work --below
  pillion trust --list --json
  pillion trust --revoke ~/work`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p := app.NewWorkplace(version)
			if list {
				// Flags that would be ignored are refused: the person may believe that they did something.
				if len(args) > 0 || revoke || below {
					return usagef("--list takes no directory, and only --json as another flag")
				}
				return printTrust(p, c.OutOrStdout(), c.ErrOrStderr(), asJSON)
			}
			if revoke && below {
				return usagef("--below cannot be combined with --revoke")
			}
			arg := ""
			if len(args) == 1 {
				arg = args[0]
			}
			dir, err := app.Directory(arg)
			if err != nil {
				if !revoke || arg == "" {
					return err
				}
				// A folder that is gone can still be revoked: otherwise one that is created in its place later would
				// be trusted.
				dir = arg // the folder may have been deleted since
			}
			if revoke {
				return revokeTrust(p, c.OutOrStdout(), dir, asJSON)
			}
			return giveTrust(p, c.OutOrStdout(), dir, below, asJSON)
		},
	}
	c.Flags().BoolVar(&revoke, "revoke", false, "revoke the trust")
	c.Flags().BoolVar(&list, "list", false, "list the trusted folders")
	c.Flags().BoolVar(&below, "below", false, "trust DIR and every project below it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// giveTrust stores the decision and prints the settings that are used from now on, so that the person sees what
// was released. It refuses in a command of the agent: a model that read a hostile file could otherwise trust the
// folder itself.
func giveTrust(p *app.Workplace, out io.Writer, dir string, below, asJSON bool) error {
	if os.Getenv("PILLION") == "1" { // set for every command of the agent
		return errors.New("a command that the agent runs cannot trust a folder; run pillion trust yourself, in your own terminal")
	}
	root := dir
	// --below names the folder itself; without it the worktree is meant, whose files are what is configured.
	if !below {
		root = trust.RealPath(paths.Worktree(dir))
	}
	// Read before the decision: afterwards nothing is held back any more.
	before, _ := p.Config(dir)
	if err := p.Trust.Trust(root, below); err != nil {
		return fmt.Errorf("trust could not be stored: %w", err)
	}
	held := before.Held()
	if asJSON {
		// JSON lists are never null.
		if held == nil {
			held = []config.Held{}
		}
		return json.NewEncoder(out).Encode(map[string]any{"path": root, "trusted": true, "below": below, "released": held})
	}
	fmt.Fprintf(out, "%s is trusted\n", root)
	for _, h := range held {
		fmt.Fprintf(out, "now used: %s:%d:%d: %s\n", h.File, h.Line, h.Column, h.Setting)
	}
	return nil
}

// revokeTrust deletes the decision. A folder below another trusted one stays trusted, and the output says so: the
// person would otherwise rely on a revocation that has no effect.
func revokeTrust(p *app.Workplace, out io.Writer, dir string, asJSON bool) error {
	// A folder that was trusted with --below is named itself; otherwise it is the worktree that holds DIR.
	var done bool
	for _, path := range []string{dir, paths.Worktree(dir)} {
		was, err := p.Trust.Revoke(path)
		if err != nil {
			return fmt.Errorf("trust could not be revoked: %w", err)
		}
		done = done || was
	}
	// Asked again after the deletion: a folder above, or PILLION_TRUST, may still cover this one.
	still := p.Trust.Trusted(paths.Worktree(dir))
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]any{"path": trust.RealPath(paths.Worktree(dir)), "revoked": done, "trusted": still})
	}
	switch {
	case still:
		fmt.Fprintf(out, "%s is still trusted, by a folder above it or by PILLION_TRUST; see pillion trust --list\n", paths.Worktree(dir))
	case done:
		fmt.Fprintf(out, "%s is no longer trusted\n", paths.Worktree(dir))
	default:
		fmt.Fprintf(out, "%s was not trusted\n", paths.Worktree(dir))
	}
	return nil
}

// printTrust lists the stored decisions; damaged files are reported on errOut and skipped, because one of them
// must not hide the others.
func printTrust(p *app.Workplace, out, errOut io.Writer, asJSON bool) error {
	list, bad := p.Trust.List()
	for _, err := range bad {
		fmt.Fprintln(errOut, "trust:", err)
	}
	if asJSON {
		return writeLines(out, list)
	}
	for _, r := range list {
		if r.Below {
			fmt.Fprintf(out, "%s and all below\n", r.Path)
		} else {
			fmt.Fprintln(out, r.Path)
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "no folder is trusted")
	}
	return nil
}
