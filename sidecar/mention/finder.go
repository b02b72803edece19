// Package mention finds what a person may mention with @ in a prompt: files and folders by path, declarations by name,
// resources of MCP servers by server, address and name. Answers come from listings and indexes that are kept and
// remade behind the answers, so that who types never waits for a busy disk or language server.
package mention

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/search"
)

// What can be mentioned; the names are those of the wire.
const (
	File     = "file"
	Folder   = "folder"
	Symbol   = "symbol"
	Resource = "resource"
)

// Kinds is a set of what to look for.
type Kinds map[string]bool

// All are the kinds there are.
func All() []string { return []string{File, Folder, Symbol, Resource} }

// symbolWait is how long a search waits for language servers and MCP servers: who types does not wait for a busy one.
const symbolWait = 40 * time.Millisecond

// MaxQuery is the longest query, in bytes. A longer word is pasted text and no mention.
const MaxQuery = 256

// Options are where a Finder looks.
type Options struct {
	Searcher  func(cwd string) *search.Searcher
	Servers   func(cwd string) *lspbridge.Manager                  // nil, or nil for a directory: only the index is asked
	Resources func(ctx context.Context, cwd string) []mcp.Resource // nil: there are no MCP servers
}

// Finder answers searches. Its methods are safe for concurrent use.
type Finder struct {
	o       Options
	lists   *listings
	symbols *declarations
}

// Match is something that fits a query. URI is set for resources only; File is the absolute path of everything
// else. Scores of all kinds are comparable, since one ranking makes them.
type Match struct {
	protocol.FileMatch
	File  string
	score int
}

// New makes a Finder; it looks at nothing before it is asked.
func New(o Options) *Finder {
	l := newListings(o.Searcher)
	return &Finder{o: o, lists: l, symbols: &declarations{names: l.names, ctx: l.ctx, kept: map[string]*index{}, servers: o.Servers}}
}

// Close ends what is being listed and indexed. The listings come first: their context is that of the index, too.
func (f *Finder) Close() {
	f.lists.close()
	f.symbols.wg.Wait()
}

// Search returns what fits a query best, the best first; more reports that there is more. Symbols and resources that are
// not known within a moment are left out.
func (f *Finder) Search(ctx context.Context, cwd, query string, limit int, want Kinds) (found []Match, more bool, err error) {
	if want[File] || want[Folder] {
		list, err := f.lists.names(ctx, cwd)
		if err != nil {
			return nil, false, err
		}
		found, more = list.find(query, limit, want)
		more = more || list.more
		for i := range found {
			found[i].File = filepath.Join(cwd, filepath.FromSlash(found[i].Path))
		}
	}
	// An empty query fits every declaration, and no one is more likely than another.
	if want[Symbol] && strings.TrimSpace(query) != "" {
		within, cancel := context.WithTimeout(ctx, symbolWait)
		list := f.symbols.find(within, cwd, query, limit)
		cancel()
		for _, x := range list {
			rel := x.path
			// A server may know declarations outside the project (the standard library); they keep their absolute
			// path.
			if r, err := filepath.Rel(cwd, x.path); err == nil && filepath.IsLocal(r) {
				rel = filepath.ToSlash(r)
			}
			at := x.at
			found = append(found, Match{score: x.score, File: x.path, FileMatch: protocol.FileMatch{Path: rel, Kind: Symbol, Name: x.name, Range: &at, Indices: wide(x.marks)}})
		}
	}
	if want[Resource] && f.o.Resources != nil {
		within, cancel := context.WithTimeout(ctx, symbolWait)
		list := resources(f.o.Resources(within, cwd), query, limit)
		cancel()
		if len(want) > 1 && strings.TrimSpace(query) == "" { // everything fits: files leave room for a few resources
			list = list[:min(len(list), limit/5)]
			slices.SortStableFunc(found, byScore)
			more = more || len(found)+len(list) > limit
			found = found[:min(len(found), limit-len(list))]
		}
		found = append(found, list...)
	}
	slices.SortStableFunc(found, byScore)
	more = more || len(found) > limit
	return found[:min(limit, len(found))], more, ctx.Err()
}

// byScore orders the best first; the sort is stable, so files stay before symbols of the same score.
func byScore(a, b Match) int { return b.score - a.score }

// wide converts the offsets of a match to the type of the wire.
func wide(list []int) []int64 {
	var out []int64
	for _, n := range list {
		out = append(out, int64(n))
	}
	return out
}

// resources are the resources that a query fits, by the words of their mention or by their name. Templates are left out:
// they are not addresses before their parameters are filled in.
func resources(all []mcp.Resource, query string, limit int) []Match {
	var mentions, names []string
	var list []mcp.Resource
	for _, r := range all {
		if !r.Template {
			list, mentions, names = append(list, r), append(mentions, ServerName(r.Server)+":"+r.URI), append(names, r.Name)
		}
	}
	best := map[int]Match{}
	byMention, byName := fuzzy.New(mentions), fuzzy.New(names)
	// Both fields are ranked and the better score counts. The marked characters are those of the mention, since
	// that is what is shown.
	for i, from := range []*fuzzy.List{byMention, byName} {
		found, _ := from.Best(query, limit)
		for _, f := range found {
			if have, ok := best[f.Index]; ok && have.score >= f.Score {
				continue
			}
			x := Match{score: f.Score, FileMatch: protocol.FileMatch{URI: list[f.Index].URI, Path: mentions[f.Index], Kind: Resource, Name: names[f.Index]}}
			if i == 0 {
				x.Indices = wide(byMention.Positions(query, f.Index))
			}
			best[f.Index] = x
		}
	}
	var out []Match
	for i := range list {
		if x, ok := best[i]; ok {
			out = append(out, x)
		}
	}
	return out
}

// ServerName is an MCP server's name as one word, as mentions spell it.
func ServerName(server string) string { return strings.Join(strings.Fields(server), "_") }
