package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
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
}

// foundSymbol is a declaration that may be mentioned.
type foundSymbol struct {
	name  string // with what it stands in: Server.Start
	path  string // absolute
	at    protocol.Range
	score int
	marks []int
}

// fileSearch finds what @ may mention: files and folders by path, symbols by name.
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
		switch k {
		case "file", "folder", "symbol":
			want[k] = true
		default:
			return nil, rpc.InvalidParams("kinds: unknown kind %q; known are file, folder, symbol", k)
		}
	}
	if len(want) == 0 {
		want = map[string]bool{"file": true, "folder": true, "symbol": true}
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
			found = append(found, scored{x.score, protocol.FileMatch{URI: s.o.Buffers.uri(x.path), Path: rel, Kind: "symbol", Name: x.name, Range: &at, Indices: wide(x.marks)}})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return b.score - a.score })
	out := &protocol.FileSearchResponse{Matches: []protocol.FileMatch{}, Truncated: more || len(found) > limit}
	for _, f := range found[:min(limit, len(found))] {
		if f.match.URI == "" {
			f.match.URI = s.o.Buffers.uri(filepath.Join(cwd, filepath.FromSlash(f.match.Path)))
		}
		out.Matches = append(out.Matches, f.match)
	}
	return out, ctx.Err()
}

type scored struct {
	score int
	match protocol.FileMatch
}

func wide(list []int) []int64 {
	var out []int64
	for _, n := range list {
		out = append(out, int64(n))
	}
	return out
}
