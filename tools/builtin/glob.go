package builtin

import (
	"context"
	_ "embed"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
)

//go:embed glob.txt
var globText string

// globParams has the names of OpenCode's tool.
type globParams struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
}

// Glob finds files by name. It also names files whose content is withheld, since the model must be able to know that there is an .env;
// only files that a rule denies are left out.
func Glob(env Env) tools.Tool {
	s, w := env.searcher(), env.workspace()
	return tools.New("glob", globText, func(ctx context.Context, p globParams, call *tools.Call) (tools.Result, error) {
		if p.Pattern == "" {
			return tools.Result{}, &tools.Error{Kind: "bad_pattern", Message: "pattern is required"}
		}
		root := w.Cwd
		if p.Path != "" {
			var err error
			if root, err = w.abs(p.Path); err != nil {
				return tools.Result{}, err
			}
		}
		dir, pattern := search.SplitPattern(root, p.Pattern) // ../x/*.go leads elsewhere than path
		at, err := w.searchPlace(dir)
		if err != nil {
			return tools.Result{}, err
		}
		// The place first: when a search outside the project is rejected, the pattern need not be asked about.
		if err := w.askSearch(ctx, call, at); err != nil {
			return tools.Result{}, err
		}
		if err := ask(ctx, call, permission.Request{
			Permission: "glob", Patterns: []string{p.Pattern}, Always: []string{"*"}, Title: "Find files " + p.Pattern,
			Metadata: map[string]any{"pattern": p.Pattern, "path": p.Path},
		}); err != nil {
			return tools.Result{}, err
		}
		call.Report(tools.Update{Title: p.Pattern, Locations: []tools.Location{{Path: at.path}}})
		found, err := s.Glob(ctx, search.GlobQuery{Root: at.real, Pattern: pattern, Show: w.visible(ctx, call, at, false)})
		if err != nil {
			return tools.Result{}, searchError(at, err)
		}
		return globResult(p.Pattern, at, found), nil
	}, tools.WithKind(tools.KindSearch), tools.WithReadOnly(), globNames)
}

// globResult lists absolute paths, newest first, one a line; a line break in a name is escaped, or one
// file would look like two.
func globResult(title string, at place, found search.Names) tools.Result {
	r := tools.Result{Title: title, Metadata: map[string]any{"count": len(found.Paths)}}
	lines, paths := make([]string, 0, len(found.Paths)+1), make([]string, 0, len(found.Paths))
	for i, p := range found.Paths {
		path := at.named(p)
		lines, paths = append(lines, search.OneLine(path)), append(paths, path)
		// The result's text has all paths; an editor follows only some of them.
		if i < maxLocations {
			r.Locations = append(r.Locations, tools.Location{Path: filepath.Clean(path)})
		}
	}
	// Scripts and the built-in model read this list; the text also has remarks, and escapes line breaks.
	r.Metadata["paths"] = paths
	if len(lines) == 0 {
		lines = append(lines, "No files found")
	}
	r.Output = strings.Join(lines, "\n")
	if found.More {
		r.Output += "\n\n(Results are truncated: showing first 100 results. Consider using a more specific path or pattern.)"
	}
	if n := notes(found.Partial, found.Unread); n != "" {
		r.Output += "\n" + n
	}
	markTruncated(&r, found.More || found.Partial)
	return r
}
