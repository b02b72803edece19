package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
)

//go:embed grep.txt
var grepText string

// grepParams has the names of OpenCode's tool, so that its prompts work unchanged.
type grepParams struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
	Include string `json:"include,omitempty"`
}

// maxLocations is how many places a result reports to editors. They follow the first ones; more would only fill the event log.
const maxLocations = 20

// Grep finds lines by a regular expression. For open documents with unsaved changes it searches the buffer and not the disk. It shows
// lines only of files that may be read without a question, since one search would otherwise ask about each .env file.
func Grep(env Env) tools.Tool {
	s, w := env.searcher(), env.workspace()
	return tools.New("grep", grepText, func(ctx context.Context, p grepParams, call *tools.Call) (tools.Result, error) {
		if p.Pattern == "" {
			return tools.Result{}, &tools.Error{Kind: "bad_pattern", Message: "pattern is required"}
		}
		at, err := w.searchPlace(p.Path)
		if err != nil {
			return tools.Result{}, err
		}
		// A folder needs only the permission for its place; a single file is judged like a read of it.
		if at.dir {
			err = w.askSearch(ctx, call, at)
		} else {
			err = w.askRead(ctx, call, at)
		}
		if err != nil {
			return tools.Result{}, err
		}
		if err := ask(ctx, call, permission.Request{
			Permission: "grep", Patterns: []string{p.Pattern}, Always: []string{"*"}, Title: "Search for " + p.Pattern,
			Metadata: map[string]any{"pattern": p.Pattern, "path": p.Path, "include": p.Include},
		}); err != nil {
			return tools.Result{}, err
		}
		q := search.GrepQuery{Root: at.real, Pattern: p.Pattern, Include: p.Include, Buffers: w.unsaved()}
		// A single file was asked about just now; the answer may have been yes to a secret one.
		if at.dir {
			q.Show = w.visible(ctx, call, at, true)
		}
		call.Report(tools.Update{Title: p.Pattern, Locations: []tools.Location{{Path: at.path}}})
		found, err := s.Grep(ctx, q)
		if err != nil {
			return tools.Result{}, searchError(at, err)
		}
		return grepResult(p.Pattern, at, found), nil
	}, tools.WithKind(tools.KindSearch), tools.WithReadOnly(), grepNames)
}

// grepResult has OpenCode's shape: matches grouped by file, "  Line N: text", N from 1. found must be sorted by path.
func grepResult(title string, at place, found search.Lines) tools.Result {
	r := tools.Result{Title: title, Metadata: map[string]any{"matches": len(found.Matches)}}
	var b strings.Builder
	if len(found.Matches) == 0 {
		b.WriteString("No files found")
	} else {
		fmt.Fprintf(&b, "Found %d matches", len(found.Matches))
		if found.More {
			b.WriteString(" (more matches available)")
		}
	}
	last := ""
	for _, m := range found.Matches {
		if m.Path != last {
			if last != "" {
				b.WriteByte('\n')
			}
			last = m.Path
			path := at.named(m.Path)
			b.WriteString("\n" + search.OneLine(path) + ":")
			if len(r.Locations) < maxLocations {
				r.Locations = append(r.Locations, tools.Location{Path: path, Line: m.Line})
			}
		}
		fmt.Fprintf(&b, "\n  Line %d: %s", m.Line, m.Text)
	}
	// Models write "a\|b" as for GNU grep; the search tries that reading when the first finds nothing, and must say so.
	if found.ReadAs != "" && found.ReadAs != title {
		fmt.Fprintf(&b, "\n\n(Nothing matches the pattern as ripgrep reads it; these lines match %s, which is how GNU grep reads it.)", found.ReadAs)
	}
	if found.More {
		b.WriteString("\n\n(Results truncated. Consider using a more specific path or pattern.)")
	}
	if n := notes(found.Partial, found.Unread); n != "" {
		b.WriteString("\n" + n)
	}
	r.Output = b.String()
	markTruncated(&r, found.More || found.Partial)
	return r
}

// searchError gives a failed search its kind; for a missing path the message lists similar names, because models slip in one part of a
// path.
func searchError(at place, err error) error {
	var pattern *search.PatternError
	var path *search.PathError
	switch {
	case errors.As(err, &pattern):
		return &tools.Error{Kind: "bad_pattern", Message: pattern.Message, Err: err}
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		msg := "Search path not found: " + at.path
		if names := similarNames(at.path); len(names) > 0 {
			msg += "\n\nDid you mean one of these?\n" + strings.Join(names, "\n")
		}
		return &tools.Error{Kind: KindFileMissing, Message: msg, Err: err}
	case errors.As(err, &path):
		return &tools.Error{Kind: "bad_path", Message: path.Message, Err: err}
	}
	return err
}

// notes says what a search left out: that it ran out of time, or could not read some files. Without it, the model takes "No files found"
// for an answer. It is empty when nothing was left out, and begins with a line break otherwise.
func notes(partial bool, unread search.Unread) string {
	var b strings.Builder
	if partial {
		fmt.Fprintf(&b, "\n(Results are partial: the search was stopped after %d seconds. Consider using a more specific path or pattern.)", search.DefaultTimeout/time.Second)
	}
	if unread.Count > 0 {
		what := "paths"
		if unread.Count == 1 {
			what = "path"
		}
		fmt.Fprintf(&b, "\n(%d %s could not be read: %s)", unread.Count, what, strings.Join(unread.First, "; "))
	}
	return b.String()
}

// markTruncated sets the metadata "truncated", which tells the output cap that the result was cut already. Text over the cap is left
// unmarked, so that the cap cuts it and saves the whole in a file.
func markTruncated(r *tools.Result, more bool) {
	if len(r.Output) <= tools.MaxBytes && strings.Count(r.Output, "\n") < tools.MaxLines {
		r.Metadata["truncated"] = more
	}
}
