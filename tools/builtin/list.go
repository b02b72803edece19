package builtin

import (
	"context"
	_ "embed"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
)

//go:embed list.txt
var listText string

// listParams has the names of OpenCode's tool.
type listParams struct {
	Path   string   `json:"path,omitempty"`
	Ignore []string `json:"ignore,omitempty" jsonschema:"more globs to leave out"`
}

// List shows a folder as a tree with at most 100 entries; those near the top come first, because they say most about a project. The
// root of the tree has the name that the model used, not the one with links resolved.
func List(env Env) tools.Tool {
	s, w := env.searcher(), env.workspace()
	return tools.New("list", listText, func(ctx context.Context, p listParams, call *tools.Call) (tools.Result, error) {
		at, err := w.searchPlace(p.Path)
		if err != nil {
			return tools.Result{}, err
		}
		if err := w.askSearch(ctx, call, at); err != nil {
			return tools.Result{}, err
		}
		if err := ask(ctx, call, permission.Request{
			// Rules may name the folder in each of its spellings.
			Permission: "list", Patterns: []string{at.path}, Also: []string{at.real, w.rel(at.path)}, Always: []string{"*"}, Title: "List " + w.rel(at.path),
			Metadata: map[string]any{"path": at.path},
		}); err != nil {
			return tools.Result{}, err
		}
		call.Report(tools.Update{Title: w.rel(at.path), Locations: []tools.Location{{Path: at.path}}})
		found, err := s.Tree(ctx, search.TreeQuery{Root: at.real, Ignore: p.Ignore, Show: w.visible(ctx, call, at, false)})
		if err != nil {
			return tools.Result{}, searchError(at, err)
		}
		found.Root.Name = at.path
		r := tools.Result{Title: w.rel(at.path), Metadata: map[string]any{"count": found.Entries}, Locations: []tools.Location{{Path: at.path}}}
		r.Output = strings.TrimSuffix(found.Root.String(), "\n")
		if found.Entries == 0 {
			r.Output += "\n\n(No files found)"
		}
		if found.More {
			r.Output += "\n\n(Results are truncated: showing first 100 entries, those near the top. List a subfolder, or use glob.)"
		}
		if n := notes(found.Partial, found.Unread); n != "" {
			r.Output += "\n" + n
		}
		markTruncated(&r, found.More || found.Partial)
		return r, nil
	}, tools.WithKind(tools.KindSearch), tools.WithReadOnly(), listNames)
}
