package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/stats"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/paths"
)

// statsCommand is `pillion stats`. It reads the event log only, so it costs no request.
func statsCommand() *cobra.Command {
	var asJSON, here bool
	var days int
	c := &cobra.Command{
		Use: "stats", Short: "Show tokens, cost, tool calls and accepted hunks",
		Long: "Show tokens and cost per project and model, and how many of the proposed hunks were kept.\n\nA hunk counts as accepted when it was written and not undone afterwards.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// 0 is the default and means all.
			if days < 0 {
				return usagef("--days needs a number above 0")
			}
			var since time.Time
			if days > 0 {
				since = time.Now().Add(-time.Duration(days) * 24 * time.Hour).UTC()
			}
			project := ""
			if here {
				dir, err := app.Directory("")
				if err != nil {
					return err
				}
				// paths.Worktree is also what Count maps the directories of sessions with, so the two are comparable.
				project = paths.Worktree(dir)
			}
			a := app.New(app.Options{Place: app.NewWorkplace(version)})
			defer a.Close()
			st, err := stats.Count(c.Context(), a.Store, since, project, paths.Worktree)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				// One object and no lines: the report is read as a whole.
				e.SetIndent("", "  ")
				return e.Encode(st)
			}
			return printStats(c.OutOrStdout(), st)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&here, "here", false, "only this project")
	c.Flags().IntVar(&days, "days", 0, "only the last N days (default: all)")
	return c
}

// printStats prints the tables of a report. Most expensive first, tools by their calls, equal ones by name, so
// that two runs print the same.
func printStats(out io.Writer, st *stats.Report) error {
	// Steps as well as sessions: with --days, only the later steps of an old session may be counted.
	if st.Total.Sessions == 0 && st.Total.Steps == 0 {
		fmt.Fprintln(out, "no session has used a model yet")
		return nil
	}
	for _, part := range []struct {
		name string
		all  map[string]*stats.Spent
	}{{"PROJECT", st.Projects}, {"MODEL", st.Models}} {
		// Columns are aligned within one table only, so each has a writer of its own.
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		fmt.Fprintf(w, "%s\tSESSIONS\tPROMPTS\tSTEPS\tINPUT\tCACHED\tOUTPUT\tCOST\tHUNKS\tKEPT\n", part.name)
		for _, name := range stats.ByCost(part.all) {
			statLine(w, name, part.all[name])
		}
		// The total of all projects is that of all models as well, so it is printed once.
		if len(part.all) > 1 && part.name == "PROJECT" {
			statLine(w, "all", &st.Total)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tCALLS\tFAILED\tTIME")
	names := make([]string, 0, len(st.Tools))
	for name := range st.Tools {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		// The most used first; equal ones by name, because the order of a map changes.
		if n := st.Tools[b].Calls - st.Tools[a].Calls; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		t := st.Tools[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", terminal.Clean(name), t.Calls, t.Failed, (time.Duration(t.Millis) * time.Millisecond).Round(100*time.Millisecond))
	}
	return w.Flush()
}

// statLine prints one row. KEPT is "-" where no hunk was proposed: 0 % would look like a bad result.
func statLine(w io.Writer, name string, x *stats.Spent) {
	kept := "-"
	if x.Hunks.Acceptance != nil {
		// 0.5 rounds to the nearest percent.
		kept = strconv.Itoa(int(*x.Hunks.Acceptance*100+0.5)) + "%"
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t$%.2f\t%d\t%s\n", terminal.Clean(name), x.Sessions, x.Prompts, x.Steps,
		// Tokens that are written to the cache are input that is paid for; those that are read from it have a column
		// of their own.
		compactNumber(x.Tokens.Input+x.Tokens.CacheWrite), compactNumber(x.Tokens.CacheRead), compactNumber(outputTokens(x.Tokens)), x.Cost, x.Hunks.Proposed, kept)
}

// outputTokens are all tokens that the model wrote; providers bill reasoning as output, so it is counted as such.
func outputTokens(u provider.Usage) int { return u.Output + u.Reasoning }

// compactNumber is a number as a person reads it: 950, 12.3k, 4.5M. The exact ones are in the JSON.
func compactNumber(n int) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "M"
	case n >= 1000:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + "k"
	}
	return strconv.Itoa(n)
}
