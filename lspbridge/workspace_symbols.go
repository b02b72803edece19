package lspbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// WorkspaceSymbols finds symbols of the project by name. With a path it asks that file's servers; without one it asks the running servers
// or, if none runs, those for the languages of most files. It waits 20 s when ctx has no deadline.
func (q questions) WorkspaceSymbols(ctx context.Context, path, query string) ([]Symbol, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, queryBudget)
		defer cancel()
	}
	asked := q.symbolServers(ctx, path)
	var out []Symbol
	var errs []error
	can := false
	for s, open := range asked {
		c, err := s.get(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// This is no error: other servers may support it.
		if !has(c.able.caps.WorkSymbol) {
			continue
		}
		can = true
		var files []string
		if open != "" {
			files = append(files, open) // typescript-language-server answers only with a file open
		}
		// Ask even if the documents cannot be acquired: names rarely depend on unsaved text.
		if release, err := c.exclusive.acquire(ctx); err == nil {
			c.sync(c.withBuffers(files))
			release()
		}
		var list []lsp.Symbol
		if err := c.call(ctx, protocol.MethodWorkspaceSymbol, map[string]any{"query": query}, &list); err != nil {
			errs = append(errs, errors.New(c.why(ctx, err)))
			continue
		}
		out = append(out, c.converter().symbols("", list)...)
	}
	if !can && len(errs) == 0 {
		return nil, fmt.Errorf("workspace symbols: %w by the language servers of this project", ErrUnsupported)
	}
	// Names from one server are worth more than an error of another.
	if len(out) > 0 {
		return out, nil
	}
	return out, errors.Join(errs...)
}

// Limits on the servers that are started to search a name. A monorepo has files of many languages; starting a server for each would take
// too much time and memory for a single question.
const (
	maxSymbolServers = 3
	fairShare        = 10 // a server must serve at least one in so many files
)

// symbolServers returns the servers to ask for a name, each with a file to open first ("" where none is needed). Servers marked Extra
// (linters) know no symbols.
func (q questions) symbolServers(ctx context.Context, path string) map[*slot]string {
	out := map[*slot]string{}
	if path != "" {
		for _, s := range q.serversOf(path) {
			if !s.spec.Extra {
				out[s] = path
			}
		}
		return out
	}
	for _, s := range q.running() {
		if s.current() != nil && !s.spec.Extra {
			out[s] = ""
		}
	}
	if len(out) > 0 {
		return out
	}
	files := map[string][]string{} // by server
	total := 0
	for _, f := range projectFiles(ctx, q.o.Root) {
		for _, row := range q.rows() {
			// Only the first matching row counts, as in slotsFor.
			if row.matches(f) && !row.Extra && len(row.Markers) > 0 { // rows without markers have no workspace to search
				files[row.ID] = append(files[row.ID], f)
				total++
				break
			}
		}
	}
	ids := slices.SortedFunc(maps.Keys(files), func(a, b string) int { return cmp.Or(len(files[b])-len(files[a]), strings.Compare(a, b)) })
	for _, id := range ids {
		if len(out) == maxSymbolServers || len(files[id])*fairShare < total {
			break
		}
		// A file from the middle is more likely to be in the main project than the first or last one.
		f := files[id][len(files[id])/2]
		for _, s := range q.slotsFor(f) {
			if !s.spec.Extra {
				out[s] = f
			}
		}
	}
	return out
}
