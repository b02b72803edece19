package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// draftsCommand is `pillion drafts`: the drafts of turns with --review draft that ended without a decision.
func draftsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "drafts", Short: "List, show, land or drop the drafts that are kept",
		Long: `With --review draft the agent works in a copy-on-write view of the project and proposes all its changes at the end. Pillion keeps a
draft if its proposal was not answered or was rejected, if its turn was cut off, or if it was made with pillion run --background. It
keeps at most 20 drafts for each project, each for 14 days after its last use.`,
		Example: `  pillion run --background "rename the field and fix its callers"
  pillion drafts list
  pillion drafts show dr1a2b3c4d
  pillion drafts land dr1a2b3c4d`,
	}
	c.AddCommand(draftsList(), draftsShow(), draftsLand(), draftsDrop())
	return c
}

// draftsDir is where drafts are kept: in the state folder, outside every project, so that no watcher or build sees
// them.
func draftsDir() string { return filepath.Join(app.NewWorkplace(version).State, "drafts") }

// draftRow is a draft in the JSON output. Files and bytes are counted when it is listed; they are not stored.
type draftRow struct {
	draft.Head
	Busy  bool  `json:"busy,omitempty"` // a session works in it now
	Files int   `json:"files"`          // changed, made or deleted
	Bytes int64 `json:"bytes"`          // size of its folder
	// Error says why it, or a part of it, cannot be read.
	Error string `json:"error,omitempty"`
}

// rowOf describes a draft. A draft that cannot be read is listed too, so that it can be dropped.
func rowOf(d *draft.Draft) draftRow {
	row := draftRow{Head: d.Head(), Busy: d.Busy()}
	p, err := proposalOf(d)
	if err == nil {
		row.Files, err = len(p.Files), p.Err()
	}
	if err != nil {
		row.Error = err.Error()
	}
	// Errors are skipped: a size that is too small is better than no list.
	_ = filepath.WalkDir(d.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if fi, err := e.Info(); err == nil {
				row.Bytes += fi.Size()
			}
		}
		return nil
	})
	return row
}

// draftState is a draft's stage as a word for people.
func draftState(r draftRow) string {
	if r.Busy {
		return "working"
	}
	return string(r.State)
}

// proposalOf is the change of a draft in which no session works.
func proposalOf(d *draft.Draft) (*draft.Proposal, error) { return app.ReadDraft(d) }

// draftsList is `pillion drafts list`. It writes "no drafts" to standard error, so that the output of a pipe stays
// empty.
func draftsList() *cobra.Command {
	var asJSON, all bool
	var cwd string
	c := &cobra.Command{
		Use: "list", Short: "List the drafts of this project", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			project := ""
			// draft.List takes an empty project as "all".
			if !all {
				dir, err := app.Directory(cwd)
				if err != nil {
					return err
				}
				project = app.DraftProject(dir)
			}
			list, err := draft.List(draftsDir(), project)
			if err != nil {
				return err
			}
			list = draft.Prune(list)
			rows := make([]draftRow, len(list))
			for i, d := range list {
				rows[i] = rowOf(d)
			}
			if asJSON {
				return writeLines(c.OutOrStdout(), rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(c.ErrOrStderr(), "no drafts; pillion drafts list --all shows those of other projects")
				return nil
			}
			return writeTable(c.OutOrStdout(), rows, func(w io.Writer, r draftRow) {
				// Titles come from a model and paths from a repository: Clean keeps control characters in them from
				// the terminal.
				count := textutil.Plural(r.Files, "file")
				if r.Error != "" {
					count += ", a part cannot be read"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, draftState(r), count, r.Used.Local().Format(time.DateTime), terminal.Clean(r.Title), terminal.Clean(r.Project))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	c.Flags().BoolVar(&all, "all", false, "list the drafts of all projects")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// findDraft finds a draft by its id, or the beginning of it, in all projects.
func findDraft(id string) (*draft.Draft, error) { return draft.Find(draftsDir(), id) }

// draftsShow is `pillion drafts show`. Changes that a unified diff cannot express follow in lines that begin with "#".
func draftsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Print what a draft would change, as a unified diff", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := findDraft(args[0])
			if err != nil {
				return err
			}
			// A draft is kept as files; the proposal is computed from them at each call.
			p, err := proposalOf(d)
			if err != nil {
				return err
			}
			text := app.DraftDiff(d, p)
			out := c.OutOrStdout()
			if _, err := io.WriteString(out, outputFor(text, isTerminal(out))); err != nil {
				return err
			}
			// What Git ignores, and files too large to be read, are landed as a whole and have no diff.
			for i := range p.Bulk {
				fmt.Fprintln(out, "# as a whole:", terminal.Clean(p.Bulk[i].Summary()))
			}
			for _, note := range append(p.Notes, p.Left...) {
				fmt.Fprintln(out, "#", terminal.Clean(note))
			}
			for line := range strings.Lines(app.DraftEvidence(d, p)) {
				fmt.Fprintln(out, "#", terminal.Clean(strings.TrimSuffix(line, "\n")))
			}
			return nil
		},
	}
}

// draftsLand is `pillion drafts land`: the same review as at the end of a turn, in a session of its own that is
// not stored.
func draftsLand() *cobra.Command {
	var approve string
	var asJSON, noLSP bool
	c := &cobra.Command{
		Use: "land ID", Short: "Propose a draft again: review it and write what you accept", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			how, err := parseApprove(approve)
			if err != nil {
				return err
			}
			d, err := findDraft(args[0])
			if err != nil {
				return err
			}
			// In the draft's project and not in this directory: the changes belong there, with its rules and language servers.
			dir := d.Head().Project
			o := terminal.Options{Out: c.OutOrStdout(), Cwd: dir, Approve: how, Editor: textEditor()}
			if isTerminal(os.Stdin) && isTerminal(c.OutOrStdout()) {
				// Keys only if input and output are a terminal: a question that is not visible cannot be answered.
				o.Keys, o.Color = terminal.TTY{File: os.Stdin}, os.Getenv("NO_COLOR") == ""
			}
			// With --json, standard output is for the result alone.
			if asJSON {
				o.Out = io.Discard
			}
			t := terminal.New(o)
			defer t.Close()
			a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: t, Questions: t, Ephemeral: true, NoLSP: noLSP, Notices: c.ErrOrStderr(), Verdict: verdictMode(how)})
			defer a.Close()
			s, err := a.Runtime.NewSession(c.Context(), agent.SessionOptions{Cwd: dir})
			if err != nil {
				return err
			}
			// Before LandStored: the proposal is an event, and the terminal shows it from that.
			proposed := newProposals()
			stop := s.Subscribe(0, func(e agent.Event) {
				proposed.event(e)
				if n, ok := agent.Value[agent.NoticeData](e); ok && e.Type == agent.EventNotice {
					fmt.Fprintln(c.ErrOrStderr(), "pillion:", terminal.Clean(n.Text))
				}
				t.Event(e)
			})
			defer func() { s.Last(); stop() }() // the last notice is delivered before the end
			data, made, err := a.Drafts.LandStored(c.Context(), s, d)
			if err != nil {
				return err
			}
			// An empty draft is not an error, since a turn may have undone its own changes.
			if !made {
				fmt.Fprintln(c.ErrOrStderr(), "the draft changes nothing; it was removed")
				return nil
			}
			x := answer(nil, data, nil)
			x.Changes = proposed.take()
			if asJSON {
				if err := json.NewEncoder(c.OutOrStdout()).Encode(x); err != nil {
					return err
				}
			} else if x.Output != "" {
				fmt.Fprintln(c.OutOrStdout(), outputFor(x.Output, isTerminal(c.OutOrStdout())))
			}
			// The reason was printed above: of a call by the terminal, of a draft that could not be proposed as a notice.
			if x.Error != nil {
				return exitCode(exitError)
			}
			return nil
		},
	}
	c.Flags().StringVar(&approve, "approve", "ask", approveHelp)
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.Flags().BoolVar(&noLSP, "no-lsp", false, "do not start language servers")
	return c
}

// draftsDrop is `pillion drafts drop`. Several ids are removed one by one; the first unknown one ends it.
func draftsDrop() *cobra.Command {
	return &cobra.Command{
		Use: "drop ID...", Short: "Remove drafts; the project stays as it is", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, id := range args {
				d, err := findDraft(id)
				if err != nil {
					return err
				}
				if err := app.DropDraft(d); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
