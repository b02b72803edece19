package app

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/mcp"
)

// A resource of an MCP server is mentioned as @server:uri, or by an ACP resource_link with its URI. When the prompt's turn begins, the
// resource is read with the same tool that the model has for it: with approval, shown, and limited in size like every other call.

// resourceWait is how long a prompt with a link waits for starting servers, to find out whether one of them has the resource. It limits the
// whole search, so a server that hangs delays a turn by at most five seconds.
const resourceWait = 5 * time.Second

// mentionWords finds @word at the start of a text, after white space or after an opening bracket, so that e-mail addresses do not match.
var mentionWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s(])@(\S+)`) })

// resource is a resource that a prompt mentions.
type resource struct{ server, uri string }

// mentionedResources returns the resources that a prompt mentions, in order, each once, at most slash.MaxMentions. It starts the servers
// and waits for them only if a mention may be of one of them.
func mentionedResources(ctx context.Context, set *mcp.Set, parts []provider.Part) (out []resource) {
	ctx, cancel := context.WithTimeout(ctx, resourceWait)
	defer cancel()
	up := sync.OnceFunc(func() {
		set.Start()
		set.Ready(ctx, resourceWait)
	})
	seen := map[string]bool{}
	add := func(r resource) {
		if !seen[r.uri] && len(out) < slash.MaxMentions {
			seen[r.uri] = true
			out = append(out, r)
		}
	}
	for _, p := range parts {
		if p.Type != provider.PartText || p.Synthetic {
			continue
		}
		for _, m := range mentionWords().FindAllStringSubmatch(p.Text, -1) {
			for _, name := range set.Names() {
				// A URI has a scheme, so another colon must follow: "@ann:hello" is not a resource of a server called ann.
				if uri, ok := strings.CutPrefix(m[1], mention.ServerName(name)+":"); ok && strings.Contains(uri, ":") {
					up()
					add(resource{name, wholeURI(set.Known(ctx), name, uri)})
					break
				}
			}
		}
	}
	for _, p := range parts {
		scheme, _, ok := strings.Cut(p.Name, ":")
		if p.Type != provider.PartText || !ok || scheme == "file" {
			continue // a file is read as a file
		}
		up()
		if server, ok := set.Holder(ctx, p.Name); ok {
			add(resource{server, p.Name})
		}
	}
	return out
}

// wholeURI removes punctuation at the end of a word that belongs to the sentence instead of the URI: one character at a time, until the
// rest is a URI that the server lists, else all of it.
func wholeURI(known []mcp.Resource, server, word string) string {
	for uri := word; ; uri = uri[:len(uri)-1] {
		if slices.ContainsFunc(known, func(r mcp.Resource) bool { return r.Server == server && r.URI == uri }) {
			return uri
		}
		if strings.TrimRight(uri, ".,;:!?)") == uri {
			return uri
		}
	}
}
