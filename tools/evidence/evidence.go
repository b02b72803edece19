// Package evidence collects what a person wants to know before reading a proposal: the uses of the declarations that it changes,
// the hunks that a program would have made in the same way, the hunks that belong together, and whether a run supports what the
// agent claims. It asks language servers about texts and writes nothing; the answers are values of package change.
//
//	uses, groups := evidence.Find(ctx, servers, set, root, nil)
//	claims := evidence.Claims("All tests pass.", runs, set.Evidence.Version)
package evidence

import (
	"context"
	"regexp"
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

// Servers are the requests to the language servers; *lspbridge.Manager implements them. The servers use the project's texts, except
// for the texts in the context (lspbridge.WithTexts).
type Servers interface {
	References(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error)
	Rename(ctx context.Context, path string, p lspbridge.Position, newName string) ([]lspbridge.FileEdit, error)
	Format(ctx context.Context, path string) ([]lspbridge.FileEdit, error)
	CodeActions(ctx context.Context, path string, r lspbridge.Range, only []string, diags []change.Problem) ([]lspbridge.Action, error)
	ResolveAction(ctx context.Context, a lspbridge.Action) ([]lspbridge.FileEdit, error)
}

// generated matches the line that marks a file as generated (go.dev/s/generatedcode); tools for other languages use it too.
var generated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(//|#|/\*|--|;) ?.*(Code generated .* DO NOT EDIT|@generated\b)`)
})

// Generated reports whether a text has a line that marks it as generated.
func Generated(text string) bool { return generated().MatchString(text) }

// Find returns the uses of the declarations that a proposal changes, and the groups of hunks that are one decision. servers may be
// nil; root is the project's folder, and done are groups that are known already. A hunk that only repeats a verified rename does
// not change the declaration around it.
func Find(ctx context.Context, servers Servers, set *change.Set, root string, done []change.Group) ([]change.Use, []change.Group) {
	g := grouping{ctx: ctx, servers: servers, set: set, in: map[string]bool{}, named: map[string]bool{}, out: done}
	for _, d := range done {
		for _, h := range d.Hunks {
			g.in[h] = true
		}
	}
	if servers != nil {
		g.mechanical()
	}
	list := slices.DeleteFunc(declarations(set), g.untouched)
	uses := usesOf(ctx, servers, set, root, list)
	if servers != nil {
		g.together(uses)
	}
	return uses, g.out
}
