package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// serverEdits are the edits that a server requests (workspace/applyEdit) while one action runs; each becomes a change set of the call.
type serverEdits struct {
	results []tools.Result
	err     error // of the last one; the server was told of it
}

// apply sends one edit of a server through the change pipeline. Its error is the answer to workspace/applyEdit: after a rejection, in whole
// or in part, the server must not continue as if the edit were made.
func (s *serverEdits) apply(c changes, call *tools.Call, title string) lspbridge.Apply {
	return func(ctx context.Context, label string, edits []lspbridge.FileEdit) error {
		if label == "" {
			label = title
		}
		for _, e := range edits {
			// Made says that the server has created the file on disk before the person decided. An empty file is removed, so that
			// the proposal creates it and a rejection leaves nothing.
			if !e.Made {
				continue
			}
			if fi, err := os.Lstat(e.Path); err == nil && fi.Mode().IsRegular() && fi.Size() == 0 {
				_ = os.Remove(e.Path)
			}
		}
		r, err := c.changeFiles(ctx, call, label, edits)
		if s.err = err; err != nil {
			return err
		}
		s.results = append(s.results, r)
		if r.Metadata["partly"] == true {
			return errors.New("the user accepted only a part of the edit")
		}
		return nil
	}
}

// runAction runs an action, which may be an edit or a command of the server.
func (c *lspCall) runAction(ctx context.Context, a lspbridge.Action) (tools.Result, error) {
	var s serverEdits
	title := a.Title + " in " + c.rel(a.Path)
	err := c.lsp.RunAction(ctx, a, s.apply(c.changes, c.call, title))
	switch {
	case s.err != nil && len(s.results) == 0: // rejected or stale: our own error says more than the server's
		return tools.Result{}, s.err
	case len(s.results) == 0 && err != nil:
		return tools.Result{}, err
	case len(s.results) == 0:
		return tools.Result{Title: title, Output: title + ": there is nothing to change.", Metadata: map[string]any{"files": []any{}}}, nil
	}
	r := s.results[0]
	for _, more := range s.results[1:] {
		r.Output += "\n\n" + more.Output
		r.Locations = append(r.Locations, more.Locations...)
	}
	r.Title = title
	if len(s.results) > 1 {
		r.Output = fmt.Sprintf("%s made %d changes.\n\n", a.Title, len(s.results)) + r.Output
	}
	r.Output += c.afterCommand(ctx, r.Locations)
	if err != nil {
		r.Output += "\n\nThe language server reported an error afterwards: " + strings.TrimSpace(err.Error())
	}
	return r, nil
}

// afterCommand says what is wrong in the changed files. propose could not say it: while a server runs a
// command it publishes no diagnostics.
func (c *lspCall) afterCommand(ctx context.Context, changed []tools.Location) string {
	ctx, cancel := context.WithTimeout(ctx, settleBudget)
	defer cancel()
	d := lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
	var set change.Set
	for _, l := range changed[:min(len(changed), maxOtherFiles)] {
		report := c.Bridge.Diagnostics(ctx, l.Path)
		if report.Certainty != change.Fresh {
			d.Certainty, d.Reason = report.Certainty, report.Reason
		}
		d.Introduced = append(d.Introduced, report.Items...)
		set.Files = append(set.Files, change.File{Path: l.Path})
	}
	if text := problemText(&d, &set); text != "" || d.Certainty != change.Fresh {
		return text
	}
	return "\n\nChecked after the command: no errors in the changed files."
}

// ServerEdit is an edit that a language server asks for of its own accord (workspace/applyEdit outside
// a call), as a tool that no model is offered. Run once, it takes the edit through the change pipeline
// of a session like any other; failed then says how it ended, which is the server's answer.
func ServerEdit(env Env, server, label string, edits []lspbridge.FileEdit) (tool tools.Tool, failed func() error) {
	var s serverEdits
	if label == "" {
		label = "Edit by " + server
	}
	var answer error
	tool = tools.New("lsp", "An edit of a language server.", func(ctx context.Context, _ struct{}, call *tools.Call) (tools.Result, error) {
		if answer = s.apply(env.changes(), call, label)(ctx, label, edits); len(s.results) == 0 {
			return tools.Result{}, answer
		}
		return s.results[0], nil
	}, tools.WithKind(tools.KindEdit))
	return tool, func() error { return answer }
}
