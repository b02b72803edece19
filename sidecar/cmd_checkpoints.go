package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// reviewerOf is the reviewer of a session for the command line. No editor follows the session, so the ledger is
// filled from the event log. The subscription ends with ctx.
func reviewerOf(ctx context.Context, a *app.App, s *agent.Session) (*review.Reviewer, error) {
	l := review.NewLedger()
	stop := s.Subscribe(0, func(e agent.Event) { l.Take(e) })
	context.AfterFunc(ctx, stop)
	return a.Desk.Reviewer(s, l), nil
}

// sessionsCheckpoints is `pillion sessions checkpoints`. Its ids are what restore and fork take.
func sessionsCheckpoints() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "checkpoints ID", Short: "List the checkpoints of a session, oldest first", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, a, err := storedSession(c, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			r, err := reviewerOf(c.Context(), a, s)
			if err != nil {
				return err
			}
			list := r.Checkpoints()
			if asJSON {
				return writeLines(c.OutOrStdout(), list)
			}
			if len(list) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "this session has no checkpoints; each prompt makes one")
				return nil
			}
			return writeTable(c.OutOrStdout(), list, func(w io.Writer, p protocol.Checkpoint) {
				added, removed := int64(0), int64(0)
				for _, f := range p.Files {
					// Added and Removed are set in every checkpoint of the reviewer.
					added, removed = added+*f.Added, removed+*f.Removed
				}
				// A time that cannot be read is printed as year 1, which harms less than no list.
				at, _ := time.Parse(time.RFC3339Nano, p.Time)
				// The session was restored to this checkpoint and has not continued since.
				mark := ""
				if p.Current {
					mark = "  (now)"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s +%d −%d\t%s%s\n", p.ID, p.Kind, at.Local().Format(time.DateTime), textutil.Plural(len(p.Files), "file"), added, removed, terminal.Clean(p.Title), mark)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	return c
}

// sessionsRestore is `pillion sessions restore`, the same operation as an editor's _pillion/checkpoint/restore, so
// that a mistake can be undone where no editor runs.
func sessionsRestore() *cobra.Command {
	var filesOnly, conversation, dry, asJSON bool
	var paths []string
	c := &cobra.Command{
		Use: "restore ID CHECKPOINT", Short: "Restore files, the conversation or both to a checkpoint",
		Long: "Restore files, the conversation or both (the default) to the state before a prompt, or undo an earlier restore.\n" +
			"What you changed in the files since is kept: it is merged, and a file where both changed the same lines is\nleft as it is. The restore is a checkpoint itself.",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			// Both flags would mean the default, but a person who writes both may expect something else.
			if filesOnly && conversation {
				return errors.New("--files and --conversation exclude each other; without either both are restored")
			}
			s, a, err := storedSession(c, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			// A write that a crash has interrupted must be finished or rolled back first: the restore compares files
			// with what was written.
			a.Changes.RecoverOnce(c.Context())
			r, err := reviewerOf(c.Context(), a, s)
			if err != nil {
				return err
			}
			// An empty Scope restores both, or only the files that --file names.
			w := review.Restoring{Checkpoint: args[1], DryRun: dry}
			switch {
			case filesOnly:
				w.Scope = review.ScopeFiles
			case conversation:
				w.Scope = review.ScopeConversation
			}
			// Relative names are those of the session's directory, not of this one: a session can be restored from
			// anywhere.
			for _, p := range paths {
				if !filepath.IsAbs(p) {
					p = filepath.Join(s.Info().Cwd, p)
				}
				w.Paths = append(w.Paths, filepath.Clean(p))
			}
			done, err := r.Restore(c.Context(), w)
			if err != nil {
				return restoreError(args, err)
			}
			return printRestored(c, s.Info().Cwd, done, w, asJSON)
		},
	}
	c.Flags().BoolVar(&filesOnly, "files", false, "only files")
	c.Flags().BoolVar(&conversation, "conversation", false, "only the conversation")
	c.Flags().StringArrayVar(&paths, "file", nil, "only this file (may be repeated)")
	c.Flags().BoolVar(&dry, "dry-run", false, "show what would happen, change nothing")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// restoreError adds the next step to the errors that a person can do something about. The reviewer's errors are
// those of the wire; their code tells what happened.
func restoreError(args []string, err error) error {
	var coded *jsonrpc2.Error
	var locked *store.LockedError
	switch {
	case errors.As(err, &coded) && coded.Code == jsonrpc2.Code(protocol.ErrorCodeResourceNotFound):
		return fmt.Errorf("there is no checkpoint %s in this session; pillion sessions checkpoints %s lists them", args[1], args[0])
	// Another process has the session open; two writers of one event log would contradict each other.
	case errors.As(err, &locked):
		return fmt.Errorf("%w; undo it there, or close the session first", err)
	}
	return err
}

// printRestored lists what happened to each file and names the checkpoint that undoes the restore. The JSON is the
// answer of the wire method, so that scripts and editors read the same.
func printRestored(c *cobra.Command, cwd string, done *review.Restored, w review.Restoring, asJSON bool) error {
	out := c.OutOrStdout()
	if asJSON {
		answer := protocol.CheckpointRestoreResponse{Files: []protocol.RestoredFile{}, Undo: done.Undo, Prompt: acp.Blocks(done.Prompt)}
		if done.Plan != nil {
			answer.Files = review.RestoredFiles(done.Plan)
		}
		return writeLines(out, []protocol.CheckpointRestoreResponse{answer})
	}
	if done.Plan != nil {
		for _, o := range done.Plan.Outcomes {
			name := o.Path
			// A file of another folder is shown with its whole path: "../" hides where it is.
			if rel, err := filepath.Rel(cwd, o.Path); err == nil && filepath.IsLocal(rel) {
				name = rel
			}
			fmt.Fprintf(out, "%-9s  %s%s\n", o.Status, terminal.Clean(name), terminal.Clean(review.Because(o.Reason)))
		}
	}
	switch {
	// Said last, where a reader of the list above sees it.
	case w.DryRun:
		fmt.Fprintln(out, "nothing was changed (--dry-run)")
	case done.Undo == "":
		fmt.Fprintln(out, "nothing to restore: everything is as it was at this checkpoint")
	default:
		fmt.Fprintln(out, "to undo this, restore checkpoint", done.Undo)
	}
	return nil
}

// sessionsFork is `pillion sessions fork`: it prints the id of the new session and nothing else, for scripts.
func sessionsFork() *cobra.Command {
	var title string
	c := &cobra.Command{
		Use: "fork ID [PROMPT]", Short: "Copy a conversation, up to a prompt or all of it, into a new session", Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			a := app.New(app.Options{Place: app.NewWorkplace(version)})
			defer a.Close()
			// An empty id copies the whole conversation.
			before := ""
			if len(args) == 2 {
				before = args[1]
			}
			info, _, err := a.Runtime.Fork(c.Context(), args[0], before, title)
			// ErrNoMessage names no prompt; the person sees the one that was written.
			if errors.Is(err, agent.ErrNoMessage) {
				return fmt.Errorf("there is no prompt %s in this session; pillion sessions checkpoints %s lists them", before, args[0])
			}
			if err != nil {
				return sessionError(args[0], err)
			}
			fmt.Fprintln(c.OutOrStdout(), info.ID)
			return nil
		},
	}
	c.Flags().StringVar(&title, "title", "", "title of the new session")
	return c
}
