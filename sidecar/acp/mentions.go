package acp

import (
	"context"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// Limits of _pillion/file/search, in matches.
const (
	searchDefault = 50
	searchMost    = 200
)

// mentions answers _pillion/file/search. The finder is shared by all connections; the buffers are this editor's.
type mentions struct {
	finder  *mention.Finder
	buffers *editors.Buffers
}

// fileSearch finds what @ can mention: files and folders by path, declarations by name, resources of MCP servers. No
// kinds means all kinds.
func (m *mentions) fileSearch(ctx context.Context, es *editorSession, p *protocol.FileSearchRequest) (*protocol.FileSearchResponse, error) {
	limit := searchDefault
	if p.Limit != nil {
		if limit = int(*p.Limit); limit < 1 || limit > searchMost {
			return nil, rpc.InvalidParams("limit: want 1 to %d, got %d", searchMost, limit)
		}
	}
	if len(p.Query) > mention.MaxQuery {
		return nil, rpc.InvalidParams("query: is longer than %d bytes", mention.MaxQuery)
	}
	// An unknown kind is an error and not ignored: it would look like "nothing found".
	want, kinds := mention.Kinds{}, mention.All()
	for _, k := range p.Kinds {
		if !slices.Contains(kinds, k) {
			return nil, rpc.InvalidParams("kinds: unknown kind %q; known are %s", k, strings.Join(kinds, ", "))
		}
		want[k] = true
	}
	if len(want) == 0 {
		for _, k := range kinds {
			want[k] = true
		}
	}
	found, more, err := m.finder.Search(ctx, es.Info().Cwd, p.Query, limit, want)
	if err != nil {
		return nil, err
	}
	out := &protocol.FileSearchResponse{Matches: []protocol.FileMatch{}, Truncated: more}
	for _, f := range found {
		// A file that the editor has open keeps the URI that the editor uses for it.
		if f.File != "" {
			f.URI = m.buffers.URI(f.File)
		}
		out.Matches = append(out.Matches, f.FileMatch)
	}
	return out, nil
}
