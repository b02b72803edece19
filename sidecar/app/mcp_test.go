package app

import (
	"testing"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/mcp"
)

// Servers that differ in anything get another key, also when each has a reason with a function in it, as those of a configuration do.
func TestTheKeyTellsSetsOfServersApart(t *testing.T) {
	server := func(change func(*mcp.Server)) []mcp.Server {
		s := mcp.Server{Name: "docs", Reason: guard.Reason{Setting: "mcp.docs", Trusted: func(string) bool { return true }}}
		change(&s)
		return []mcp.Server{s}
	}
	same := keyOf(server(func(*mcp.Server) {}))
	if again := keyOf(server(func(*mcp.Server) {})); again != same {
		t.Errorf("%q, then %q", same, again)
	}
	for what, other := range map[string][]mcp.Server{
		"none":           nil,
		"another name":   server(func(s *mcp.Server) { s.Name = "other" }),
		"another place":  server(func(s *mcp.Server) { s.Reason.Place = "pillion.jsonc:3:1" }),
		"another folder": server(func(s *mcp.Server) { s.Reason.Folder = "/p" }),
	} {
		if keyOf(other) == same {
			t.Errorf("%s: the same key", what)
		}
	}
}
