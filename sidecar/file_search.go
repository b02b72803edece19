package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/mcp"
)

// Limits of _pillion/file/search.
const (
	searchDefault = 50
	searchMost    = 200
	symbolWait    = 40 * time.Millisecond // for servers that run; who types does not wait for a busy one
	maxQuery      = 256                   // bytes
)

// Finder knows what there is to mention in a project; the listings behind it are cached.
type Finder struct {
	Names   func(ctx context.Context, cwd string) (*names, error)
	Symbols func(ctx context.Context, cwd, query string, limit int) []foundSymbol // nil: none are known
	// Resources are what connected MCP servers can show; nil: there are none.
	Resources func(ctx context.Context, cwd string) []mcp.Resource
}

// foundSymbol is a declaration that may be mentioned.
type foundSymbol struct {
	name  string // with what it stands in: Server.Start
	path  string // absolute
	at    protocol.Range
	score int
	marks []int
}

// mentionKinds are what @ may mention.
var mentionKinds = []string{"file", "folder", "symbol", "resource"}

// fileSearch finds what @ may mention: files and folders by path, symbols by name, resources by server, address and name.
func (s *Server) fileSearch(ctx context.Context, es *editorSession, p *protocol.FileSearchRequest) (*protocol.FileSearchResponse, error) {
	limit := searchDefault
	if p.Limit != nil {
		if limit = int(*p.Limit); limit < 1 || limit > searchMost {
			return nil, rpc.InvalidParams("limit: want 1 to %d, got %d", searchMost, limit)
		}
	}
	if len(p.Query) > maxQuery {
		return nil, rpc.InvalidParams("query: is longer than %d bytes", maxQuery)
	}
	want := map[string]bool{}
	for _, k := range p.Kinds {
		if !slices.Contains(mentionKinds, k) {
			return nil, rpc.InvalidParams("kinds: unknown kind %q; known are %s", k, strings.Join(mentionKinds, ", "))
		}
		want[k] = true
	}
	if len(want) == 0 {
		for _, k := range mentionKinds {
			want[k] = true
		}
	}
	cwd := es.Info().Cwd
	var found []scored
	more := false
	if want["file"] || want["folder"] {
		list, err := s.o.Finder.Names(ctx, cwd)
		if err != nil {
			return nil, err
		}
		found, more = list.find(p.Query, limit, want)
		more = more || list.more
	}
	if want["symbol"] && s.o.Finder.Symbols != nil && strings.TrimSpace(p.Query) != "" {
		within, cancel := context.WithTimeout(ctx, symbolWait)
		list := s.o.Finder.Symbols(within, cwd, p.Query, limit)
		cancel()
		for _, x := range list {
			rel := x.path
			if r, err := filepath.Rel(cwd, x.path); err == nil && filepath.IsLocal(r) {
				rel = filepath.ToSlash(r)
			}
			at := x.at
			found = append(found, scored{x.score, protocol.FileMatch{URI: s.editor.Buffers.URI(x.path), Path: rel, Kind: "symbol", Name: x.name, Range: &at, Indices: wide(x.marks)}})
		}
	}
	if want["resource"] && s.o.Finder.Resources != nil {
		within, cancel := context.WithTimeout(ctx, symbolWait)
		list := findResources(s.o.Finder.Resources(within, cwd), p.Query, limit)
		cancel()
		if len(want) > 1 && strings.TrimSpace(p.Query) == "" { // everything fits: a few are kept a place
			list = list[:min(len(list), limit/5)]
			slices.SortStableFunc(found, byScore)
			more = more || len(found)+len(list) > limit
			found = found[:min(len(found), limit-len(list))]
		}
		found = append(found, list...)
	}
	slices.SortStableFunc(found, byScore)
	out := &protocol.FileSearchResponse{Matches: []protocol.FileMatch{}, Truncated: more || len(found) > limit}
	for _, f := range found[:min(limit, len(found))] {
		if f.match.URI == "" {
			f.match.URI = s.editor.Buffers.URI(filepath.Join(cwd, filepath.FromSlash(f.match.Path)))
		}
		out.Matches = append(out.Matches, f.match)
	}
	return out, ctx.Err()
}

type scored struct {
	score int
	match protocol.FileMatch
}

func byScore(a, b scored) int { return b.score - a.score }

func wide(list []int) []int64 {
	var out []int64
	for _, n := range list {
		out = append(out, int64(n))
	}
	return out
}
