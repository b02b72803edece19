package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
)

// searcher is the session's, or one of its own.
func (e Env) searcher() *search.Searcher {
	if e.Search != nil {
		return e.Search
	}
	return search.New(search.Options{})
}

// searchPlace resolves where a search begins.
func (e Env) searchPlace(path string) (place, error) {
	if path == "" {
		path = e.Cwd
	}
	abs, err := e.abs(path)
	if err != nil {
		return place{}, err
	}
	return e.place(abs)
}

// askSearch asks when a search begins outside the project. The folder of long outputs, to which the model is
// pointed, is never outside.
func (e Env) askSearch(ctx context.Context, call *tools.Call, at place) error {
	if spill := e.spill(); spill != "" && files.Within(spill, at.real) {
		return nil
	}
	return e.askReading(ctx, call, at)
}

// named is a path below at.real as the model named it.
func (at place) named(path string) string {
	if at.path == at.real {
		return path
	}
	rel, err := filepath.Rel(at.real, path)
	if err != nil {
		return path
	}
	return filepath.Join(at.path, rel)
}

// visible says which files below at a search may show. Names appear unless a rule denies reading the file; content
// only where reading is allowed without a question: one search would otherwise have to ask for every .env file.
func (e Env) visible(ctx context.Context, call *tools.Call, at place, content bool) func(string) bool {
	would := foretold(ctx, call.Host.Gate)
	return func(real string) bool {
		path := at.named(real)
		action := would(permission.Request{
			SessionID: call.SessionID, CallID: call.CallID, Tool: "read", Permission: "read",
			Patterns: e.patterns(path, real), Also: []string{path, real},
		})
		return action == permission.Allow || action == permission.Ask && !content
	}
}

// hidden says which files a command may not print without asking: those that the tool read would ask for.
func (e Env) hidden(ctx context.Context, gate any, session string) func(string) bool {
	would := foretold(ctx, gate)
	return func(real string) bool {
		return would(permission.Request{SessionID: session, Tool: "read", Permission: "read", Patterns: []string{e.rel(real)}, Also: []string{real}}) != permission.Allow
	}
}

// foretold is what a gate will say; the default rules for one that cannot tell.
func foretold(ctx context.Context, gate any) func(permission.Request) permission.Action {
	if f, ok := gate.(tools.Foreteller); ok {
		return func(r permission.Request) permission.Action { return f.Would(ctx, r) }
	}
	return func(r permission.Request) permission.Action {
		worst := permission.Allow
		for _, p := range r.Patterns {
			if a, _ := permission.Default().Judge(r, p); a != permission.Allow {
				worst = a
			}
		}
		return worst
	}
}

// unsaved are the open documents whose text differs from the disk, by their real paths.
func (e Env) unsaved() []search.Buffer {
	if e.Buffers == nil {
		return nil
	}
	var out []search.Buffer
	for _, b := range e.Buffers.Dirty() {
		if real, err := files.Real(b.Path); err == nil {
			out = append(out, search.Buffer{Path: real, Text: b.Text})
		}
	}
	return out
}

// searchError gives a search's failure its kind, and a missing path its neighbours.
func searchError(at place, err error) error {
	var pattern *search.PatternError
	var path *search.PathError
	switch {
	case errors.As(err, &pattern):
		return &tools.Error{Kind: "bad_pattern", Message: pattern.Message, Err: err}
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		msg := "Search path not found: " + at.path
		if names := similar(at.path); len(names) > 0 {
			msg += "\n\nDid you mean one of these?\n" + strings.Join(names, "\n")
		}
		return &tools.Error{Kind: "file_missing", Message: msg, Err: err}
	case errors.As(err, &path):
		return &tools.Error{Kind: "bad_path", Message: path.Message, Err: err}
	}
	return err
}

// notes are what a person would want to know about how far a search came.
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

// markTruncated marks a result that left something out. A text over the cap is left to the cap, which saves the whole.
func markTruncated(r *tools.Result, more bool) {
	if len(r.Output) <= tools.MaxBytes && strings.Count(r.Output, "\n") < tools.MaxLines {
		r.Metadata["truncated"] = more
	}
}
