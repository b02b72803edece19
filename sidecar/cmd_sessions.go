package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/sidecar/terminal"
)

// sessionsCommand is `pillion sessions`. delete stops at the first id that fails; those before it are gone.
func sessionsCommand() *cobra.Command {
	c := &cobra.Command{Use: "sessions", Short: "List, show, export, restore, fork and delete sessions"}
	c.AddCommand(sessionsList(), sessionsShow(), sessionsExport(), sessionsCheckpoints(), sessionsRestore(), sessionsFork(), &cobra.Command{
		Use: "delete ID...", Short: "Delete sessions permanently", Args: cobra.MinimumNArgs(1),
		// Deletion is for good and asks nothing: the ids have to be written out, and there is no --all.
		RunE: func(c *cobra.Command, ids []string) error {
			a := app.New(app.Options{Place: app.NewWorkplace(version)})
			defer a.Close()
			for _, id := range ids {
				if err := a.Runtime.Delete(c.Context(), id); err != nil {
					return sessionError(id, err)
				}
				fmt.Fprintln(c.OutOrStdout(), "deleted", id)
			}
			return nil
		},
	})
	return c
}

// sessionError adds the next step to the error of an unknown id; the commands of `pillion sessions` share it.
func sessionError(id string, err error) error {
	if errors.Is(err, agent.ErrNoSession) {
		return fmt.Errorf("there is no session %s; pillion sessions list --all shows them", id)
	}
	return err
}

// sessionsList is `pillion sessions list`. The JSON has the sessions of sub-agents as well, with their parent.
func sessionsList() *cobra.Command {
	var asJSON, all bool
	var cwd string
	c := &cobra.Command{
		Use: "list", Short: "List the sessions of this directory, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir := ""
			// An empty directory lists the sessions of all.
			if !all {
				var err error
				if dir, err = app.Directory(cwd); err != nil {
					return err
				}
			}
			a := app.New(app.Options{Place: app.NewWorkplace(version)})
			defer a.Close()
			list, err := a.Runtime.List(c.Context(), dir)
			if err != nil {
				return err
			}
			// Without an error the list may still be that of this machine only.
			if problem := a.Store.Problem(); problem != nil {
				fmt.Fprintf(c.ErrOrStderr(), "! %v. These are the sessions that wait on this machine until it answers.\n", problem)
			}
			if asJSON {
				return writeLines(c.OutOrStdout(), list)
			}
			list = slices.DeleteFunc(list, func(s agent.SessionInfo) bool { return s.Parent != "" }) // sub-agents' belong to theirs
			if len(list) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "no sessions in this directory; --all lists those of other directories")
				return nil
			}
			return writeTable(c.OutOrStdout(), list, func(w io.Writer, s agent.SessionInfo) {
				// A session that changed no file has no Diff.
				changed := ""
				if d := s.Diff; d != nil {
					changed = fmt.Sprintf("+%d −%d in %d", d.Additions, d.Deletions, d.Files)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.Updated.Local().Format(time.DateTime), s.Model, changed, terminal.Clean(s.Title))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	c.Flags().BoolVar(&all, "all", false, "list the sessions of every directory")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "directory (default: this one)")
	return c
}

// storedSession opens a session for reading; the caller closes the app. It fails with sessionError, and has closed
// the app then.
func storedSession(c *cobra.Command, id string) (s *agent.Session, a *app.App, err error) {
	a = app.New(app.Options{Place: app.NewWorkplace(version)})
	if s, err = a.Runtime.LoadSession(c.Context(), id); err != nil {
		a.Close()
		return nil, nil, sessionError(id, err)
	}
	return s, a, nil
}

// sessionsShow is `pillion sessions show`: it replays the events into the same terminal view that a live turn uses,
// without the prompts that a restore has hidden.
func sessionsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Print a session as the terminal showed it", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, a, err := storedSession(c, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			// A restore hides prompts without deleting their events, since it can be undone itself.
			hidden, err := s.Hidden(c.Context())
			if err != nil {
				return err
			}
			// No keys and no approval: the view only prints, also where the log ends in an open question.
			t := terminal.New(terminal.Options{Out: c.OutOrStdout(), Cwd: s.Info().Cwd, Color: isTerminal(c.OutOrStdout())})
			defer t.Close()
			return s.Events(c.Context(), 0, func(e agent.Event) error {
				if hidden.Has(e) {
					return nil
				}
				// Large texts are outside the events; without them a diff could not be shown.
				e = review.Hydrated(e, a.Changes.Blobs.Load)
				if e.Type == agent.EventPrompt {
					var p agent.PromptData
					// Synthetic parts are what Pillion added to the prompt, such as the content of files.
					if json.Unmarshal(e.Data, &p) == nil {
						for _, part := range p.Parts {
							if part.Type == provider.PartText && !part.Synthetic {
								fmt.Fprintf(c.OutOrStdout(), "\n> %s\n\n", terminal.Clean(part.Text))
							}
						}
					}
				}
				t.Event(e)
				return nil
			})
		},
	}
}

// sessionsExport is `pillion sessions export`. Large texts are kept outside the events (review.Hydrated puts them
// back), so that the export is complete by itself.
func sessionsExport() *cobra.Command {
	return &cobra.Command{
		Use: "export ID", Short: "Print every event of a session as JSON lines", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, a, err := storedSession(c, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			// The same lines as `pillion run --json` prints, so one reader understands both.
			lines := &jsonLines{w: c.OutOrStdout()}
			return s.Events(c.Context(), 0, func(e agent.Event) error { lines.event(review.Hydrated(e, a.Changes.Blobs.Load)); return nil })
		},
	}
}
