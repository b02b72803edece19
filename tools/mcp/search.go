package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// maxFound is how many tools one search by words loads. More would cost what the search is meant to avoid. Tools selected by name are not
// limited.
const maxFound = 8

// size returns roughly how many bytes the tools add to a model request. The JSON around the texts is not counted.
func size(all []tools.Tool) int {
	n := 0
	for _, t := range all {
		n += len(t.ID) + len(t.Description) + len(t.Parameters)
	}
	return n
}

// within returns the tools that are offered when all exceed the budget: tool_search, the tools that the session has loaded, and those for
// resources. Loaded tools stay as long as the session, because each change of the list invalidates the provider's prompt cache.
func (s *Set) within(all []tools.Tool, loaded map[string]bool) []tools.Tool {
	out := []tools.Tool{s.searchTool(all)}
	for _, t := range all {
		if loaded[t.ID] || t.Permission == "read" { // the tools for resources are Pillion's own, and small
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b tools.Tool) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// searchInput is the input of tool_search.
type searchInput struct {
	Query string `json:"query" jsonschema:"what the tool should do, or select:name1,name2 for tools by name"`
}

// searchTool makes tool_search, which finds tools that were not offered. They can be called from the next step on, because the offer of a
// running step does not change.
func (s *Set) searchTool(all []tools.Tool) tools.Tool {
	counts := map[string]int{}
	var names []string
	for _, v := range s.servers {
		if n, _ := v.listing(); len(n) > 0 {
			counts[v.Name] = len(n)
			names = append(names, fmt.Sprintf("%s (%d)", v.Name, len(n)))
		}
	}
	t := tools.New("tool_search", "Finds tools of the connected MCP servers, which are too many to list here: "+strings.Join(names, ", ")+
		". Say in a few words what you need. The tools it names can be called from your next step on.",
		func(ctx context.Context, p searchInput, call *tools.Call) (tools.Result, error) {
			found := find(all, p.Query)
			if len(found) == 0 {
				return tools.Result{Title: p.Query, Output: "No tool fits. Try other words; the servers are " + strings.Join(names, ", ") + "."}, nil
			}
			s.load(call.SessionID, found)
			var b strings.Builder
			fmt.Fprintf(&b, "%d tools, to be called from your next step on:\n", len(found))
			for _, t := range found {
				fmt.Fprintf(&b, "\n%s: %s\n", t.ID, tools.Cut(t.Description, 500))
			}
			return tools.Result{Title: p.Query, Output: b.String(), Metadata: map[string]any{"count": len(found)}}, nil
		})
	t.Permission, t.ReadOnly, t.Kind = "tool_search", true, tools.KindSearch
	return t
}

// load records tools as loaded by a session. It makes a new map each time, because Tools reads the old one without the lock.
func (s *Set) load(session string, found []tools.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]bool{}
	for id := range s.loaded[session] {
		next[id] = true
	}
	for _, t := range found {
		next[t.ID] = true
	}
	s.loaded[session] = next
}

// Find returns a tool that was not offered in this step, and loads it for the session. A model may call one because an earlier process
// offered it in the same conversation. Within the budget every tool is offered, so there is nothing to find.
func (s *Set) Find(session, name string) (tools.Tool, bool) {
	s.mu.Lock()
	all, over := s.made, s.over
	s.mu.Unlock()
	if !over {
		return tools.Tool{}, false
	}
	i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.ID == name })
	if i < 0 {
		return tools.Tool{}, false
	}
	s.load(session, all[i:i+1])
	return all[i], true
}

// find ranks tools by the words of a query, see fuzzy.ByWords. A query "select:a,b" names tools exactly.
func find(all []tools.Tool, query string) (out []tools.Tool) {
	if list, ok := strings.CutPrefix(query, "select:"); ok {
		for name := range strings.SplitSeq(list, ",") {
			if i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.ID == strings.TrimSpace(name) }); i >= 0 {
				out = append(out, all[i])
			}
		}
		return out
	}
	described := make([]fuzzy.Described, len(all))
	for i, t := range all {
		described[i] = fuzzy.Described{Name: t.ID, Text: t.Description}
	}
	found := fuzzy.ByWords(query, described)
	for _, i := range found[:min(len(found), maxFound)] {
		out = append(out, all[i])
	}
	return out
}
