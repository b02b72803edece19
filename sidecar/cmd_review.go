package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/check"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/paths"
)

// maxReviewedDiff is how much of a change the model gets along with the prompt, in bytes; it reads the rest
// itself. A larger prompt would fill the context of small models before the review begins.
const maxReviewedDiff = 100_000

// reviewFlags are the flags of `pillion review`. The two budgets run at the same time.
type reviewFlags struct {
	cwd, format, model      string
	json, noModel, trust    bool
	checkBudget, turnBudget time.Duration
	limits                  agent.Limits
}

// reviewCommand is `pillion review`: the check of `pillion check` and, beside it, a turn of a model that may only
// read.
func reviewCommand() *cobra.Command {
	var f reviewFlags
	c := &cobra.Command{
		Use:   "review [COMMIT | BRANCH | RANGE | PATCH | -]",
		Short: "Review a change: the language servers' findings, then the model's",
		Long: `Review a change and print the findings, each with its file and line. The findings of the language servers come first, those on
changed lines before others; they need no model. The findings of the model follow; it reads the project and can change nothing.
Without an argument the change is the difference between the working tree and the last commit. The argument can be a commit, a branch
(what it changed since it left the default branch), a range A..B or A...B, a file with a patch, or - for a patch on standard input.

Exit codes: 0 no error was found and everything was checked; 1 errors were found; 2 wrong usage, or the change cannot be read; 3 no
error is known, but not everything was checked, or the model gave no answer (the reason is printed).`,
		Example: `  pillion review
  pillion review --no-model main...HEAD
  pillion review --json my-branch | jq '.findings[] | select(.changed)'
  gh pr diff 42 | pillion review - --format sarif > pillion.sarif`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runReview(c, f, args) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.cwd, "cwd", "C", "", "project directory (default: this one)")
	fl.StringVarP(&f.model, "model", "m", "", "model as provider/model (pillion models lists them)")
	fl.BoolVar(&f.noModel, "no-model", false, "ask the language servers only")
	fl.StringVar(&f.format, "format", "text", "text, json or sarif")
	fl.BoolVar(&f.json, "json", false, "short for --format json")
	fl.BoolVar(&f.trust, "trust", false, "trust this folder's own configuration for this run (pillion trust remembers it)")
	fl.DurationVar(&f.checkBudget, "timeout", 2*time.Minute, "how long to wait for the language servers")
	fl.DurationVar(&f.turnBudget, "model-timeout", 10*time.Minute, "how long to wait for the model")
	fl.IntVar(&f.limits.Steps, "max-steps", 0, "stop the model after this many requests (default: the limit of the agent)")
	fl.Float64Var(&f.limits.Cost, "max-cost", 0, "stop the model when it has cost this many US dollars")
	return c
}

// runReview writes the report and returns an exitCode for its outcome. The errors of the model's turn are part of
// the report (Skipped), because the findings of the servers are worth printing without it.
func runReview(c *cobra.Command, f reviewFlags, args []string) error {
	if f.json {
		f.format = "json"
	}
	// Before any work: a misspelt format would otherwise be noticed after minutes.
	if !slices.Contains(check.Formats, f.format) {
		return usagef("--format takes %s, not %q", strings.Join(check.Formats, ", "), f.format)
	}
	dir, err := app.Directory(f.cwd)
	if err != nil {
		return err
	}
	// Not the project's root: "pillion review ../fix.patch" means a file beside the person.
	here, err := os.Getwd() // a patch is named from where the person is
	if err != nil {
		return err
	}
	// The real path, by which trust is kept; Git reports resolved paths as well.
	root := trust.RealPath(paths.Worktree(dir))
	plan, err := planChange(c.Context(), root, here, args, c.InOrStdin(), true)
	if err != nil {
		return err
	}
	defer plan.Close()
	place := app.NewWorkplace(version)
	if f.trust {
		place.TrustFor(dir, true)
	}
	conf, _ := place.Config(dir)
	trust.Warn(c.ErrOrStderr(), conf, root)
	// Both take long and neither needs the other, so the servers check while the model reads.
	// Room for one value: an early return must not leave the goroutine blocked.
	verdict := make(chan change.Verdict, 1)
	go func() {
		ctx, cancel := context.WithTimeout(c.Context(), f.checkBudget)
		defer cancel()
		verdict <- place.Check(ctx, plan, conf, func(text string) { fmt.Fprintln(c.ErrOrStderr(), "pillion:", text) })
	}()
	var r check.Review
	switch {
	case f.noModel:
		r.Skipped = "--no-model"
	case len(plan.Files) == 0:
		r.Skipped = "nothing has changed"
	default:
		ctx, cancel := context.WithTimeout(c.Context(), f.turnBudget)
		answer, model, err := reviewByModel(ctx, place, dir, plan, f, c.ErrOrStderr())
		cancel()
		r.Model = model
		if err != nil {
			r.Skipped = err.Error()
		}
		// Also after an error: what the model wrote until then is still worth reading.
		r.Found = check.ParseFindings(root, answer, plan.Lines)
		plan.Mark(r.Found)
	}
	r.Verdict = <-verdict
	if err := plan.WriteReview(c.OutOrStdout(), f.format, version, r); err != nil {
		return err
	}
	// The same judgement as in check, so that both commands agree about a change.
	outcome := check.Judge(r.Verdict, false)
	switch {
	case outcome == check.Errors, slices.ContainsFunc(r.Found, func(x check.Finding) bool { return x.Severity == change.SeverityError }):
		return exitCode(exitError)
	// A build must not take a review without an answer for one without findings.
	case outcome == check.Uncertain, r.Skipped != "" && !f.noModel && len(plan.Files) > 0:
		return exitCode(exitUncertain)
	}
	return nil
}

// errNoReviewer: the built-in model understands a few requests about errors, and a review is none of them.
var errNoReviewer = errors.New("no model is configured; see pillion auth login, or use --no-model")

// reviewByModel lets a model read the project and answer. It runs as the agent "plan", whose rules deny changes,
// and what that agent may ask for is refused: the text of a change may contain instructions for the model.
func reviewByModel(ctx context.Context, place *app.Workplace, dir string, plan *check.Plan, f reviewFlags, errOut io.Writer) (answer, model string, err error) {
	// Its output is discarded; it only collects the answer (Summary) and refuses what is asked.
	quiet := terminal.New(terminal.Options{Out: io.Discard, Cwd: dir, Approve: terminal.None})
	defer quiet.Close()
	a := app.New(app.Options{Place: place, Asker: quiet, Ephemeral: true, Notices: errOut, Verdict: builtin.VerdictAwaited})
	defer a.Close()
	s, err := a.Runtime.NewSession(ctx, agent.SessionOptions{Cwd: dir, Model: f.model, Agent: "plan"})
	if err != nil {
		return "", "", err
	}
	if model = s.Info().Model; strings.HasPrefix(model, "builtin/") {
		return "", "", errNoReviewer
	}
	// A commit may not be checked out, so the text of the diff counts and not the files.
	prompt := slash.ReviewPrompt("") + "\n\nWhat to review is this change; its files may differ from those on disk:\n\n" + plan.Diff(maxReviewedDiff)
	defer s.Subscribe(0, quiet.Event)()
	turn, _, err := runPrompt(ctx, a, s, prompt, nil, f.limits)
	if err != nil {
		return "", model, err
	}
	answer = quiet.Summary().Text
	if turn.Stop != agent.TurnEnd {
		err = fmt.Errorf("the turn ended with %s: %s", turn.Stop, turn.Error)
	}
	return answer, model, err
}
