// Package evidence finds out what a reader of a proposal would like to know before reading it: what uses the declarations
// that it changes, which of its hunks a program would have made just so, which belong together, and whether what the agent
// says was really run. It asks language servers about texts and writes nothing; the answers are values of package change.
//
//	uses, groups := evidence.Find(ctx, servers, set, root, nil)
//	claims := evidence.Claims("All tests pass.", runs, set.Evidence.Version)
package evidence

import (
	"context"
	"regexp"
	"slices"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

// Servers are the questions to the language servers; *lspbridge.Manager answers them. They are asked about the texts that the
// project has, except where the context has others (lspbridge.WithTexts).
type Servers interface {
	References(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error)
	Rename(ctx context.Context, path string, p lspbridge.Position, newName string) ([]lspbridge.FileEdit, error)
	Format(ctx context.Context, path string) ([]lspbridge.FileEdit, error)
	CodeActions(ctx context.Context, path string, r lspbridge.Range, only []string, diags []change.Problem) ([]lspbridge.Action, error)
	ResolveAction(ctx context.Context, a lspbridge.Action) ([]lspbridge.FileEdit, error)
}

// generated is the line that marks a file as written by a program (go.dev/s/generatedcode), which others use as well.
var generated = regexp.MustCompile(`(?m)^(//|#|/\*|--|;) ?.*(Code generated .* DO NOT EDIT|@generated\b)`)

// Generated reports a text that says of itself that a program wrote it.
func Generated(text string) bool { return generated.MatchString(text) }

// Find is what uses the declarations that a proposal changes, and which of its hunks are one decision. servers may be nil;
// root is the project's folder, and done are groups that are known already. What only repeats a verified rename is not a change of the declaration around it.
func Find(ctx context.Context, servers Servers, set *change.Set, root string, done []change.Group) ([]change.Use, []change.Group) {
	g := grouping{ctx: ctx, servers: servers, set: set, in: map[string]bool{}, out: done}
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
