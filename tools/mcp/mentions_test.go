package mcp

import (
	"testing"
	"time"
)

func TestTemplatesAreFitted(t *testing.T) {
	for _, c := range []struct {
		template, uri string
		want          bool
	}{
		{"demo://text/{id}", "demo://text/5", true},
		{"demo://text/{id}", "demo://text/", false},
		{"demo://text/{id}", "demo://blob/5", false},
		{"repo:{owner}/{name}/issues/{n}", "repo:a/b/issues/7", true},
		{"repo:{owner}/{name}/issues/{n}", "repo:a/b/pulls/7", false},
		{"list:{kind}.json", "list:a.json", true},
		{"list:{kind}.json", "list:a.xml", false},
		{"list:all{?page}", "list:all", true},
		{"list:all{?page}", "list:all?page=2", true},
		{"{scheme}:x", "note:x", false},
		{"broken:{x", "broken:x", false},
		{"plain:x", "plain:x", true},
	} {
		if got := fits(c.template, c.uri); got != c.want {
			t.Errorf("%s of %s: %v", c.uri, c.template, got)
		}
	}
}

// Who types does not wait for a server each time; one that says that its list changed is asked again.
func TestResourcesAreKnown(t *testing.T) {
	s := program(t, "all", nil)
	s.Ready(t.Context(), time.Minute)
	first := s.Known(t.Context())
	if len(first) == 0 || first[0].URI != "note:1" {
		t.Fatalf("%+v", first)
	}
	if server, ok := s.Holder(t.Context(), "note:1"); !ok || server != "my srv" {
		t.Error(server, ok)
	}
	if server, ok := s.Holder(t.Context(), "other:1"); ok {
		t.Error(server)
	}
	v := s.servers[0]
	v.known.mu.Lock()
	made := v.known.made
	v.known.mu.Unlock()
	s.Known(t.Context())
	v.known.mu.Lock()
	again := v.known.made
	v.known.mu.Unlock()
	if !again.Equal(made) {
		t.Error("listed anew without need")
	}
	v.known.expire()
	if now := s.Known(t.Context()); len(now) != len(first) { // the old list, at once
		t.Errorf("%+v", now)
	}
	v.known.mu.Lock()
	busy := v.known.busy
	v.known.mu.Unlock()
	if busy != nil {
		<-busy
	}
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	if !v.known.made.After(made) {
		t.Error("not listed anew")
	}
}
