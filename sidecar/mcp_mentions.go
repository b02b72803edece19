package main

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/mcp"
)

// A resource of an MCP server is mentioned as @server:uri, or by a resource_link with its uri. It is read when the
// prompt's turn begins, with the tool that the model has for it: asked, shown and capped like every other call.

// resources are what a directory's servers can show. The servers are started, so that it is known soon.
func (a *app) resources(ctx context.Context, cwd string) []mcp.Resource {
	set := a.mcp.of(cwd)
	if set == nil {
		return nil
	}
	set.Start()
	return set.Known(ctx)
}

// findResources are those that a query fits, by the words of their mention or by their name.
func findResources(all []mcp.Resource, query string, limit int) []scored {
	var mentions, names []string
	var list []mcp.Resource
	for _, r := range all {
		if !r.Template {
			list, mentions, names = append(list, r), append(mentions, mentionName(r.Server)+":"+r.URI), append(names, r.Name)
		}
	}
	best := map[int]scored{}
	byMention, byName := fuzzy.New(mentions), fuzzy.New(names)
	for i, from := range []*fuzzy.List{byMention, byName} {
		found, _ := from.Best(query, limit)
		for _, f := range found {
			if have, ok := best[f.Index]; ok && have.score >= f.Score {
				continue
			}
			x := scored{f.Score, protocol.FileMatch{URI: list[f.Index].URI, Path: mentions[f.Index], Kind: "resource", Name: names[f.Index]}}
			if i == 0 {
				x.match.Indices = wide(byMention.Positions(query, f.Index))
			}
			best[f.Index] = x
		}
	}
	var out []scored
	for i := range list {
		if x, ok := best[i]; ok {
			out = append(out, x)
		}
	}
	return out
}

// mentionName is a server's name as one word.
func mentionName(server string) string { return strings.Join(strings.Fields(server), "_") }

// resourceWait is how long a prompt's link waits for servers that start, to find out whether one of them has it.
const resourceWait = 5 * time.Second

var mentionWords = regexp.MustCompile(`(?:^|[\s(])@(\S+)`)

// resource is one that a prompt mentions.
type resource struct{ server, uri string }

// mentionedResources are the resources that a prompt mentions, in order, each once. Servers that start are waited for
// when it may mean one of theirs.
func mentionedResources(ctx context.Context, set *mcp.Set, parts []provider.Part) (out []resource) {
	ctx, cancel := context.WithTimeout(ctx, resourceWait)
	defer cancel()
	up := sync.OnceFunc(func() {
		set.Start()
		set.Ready(ctx, resourceWait)
	})
	seen := map[string]bool{}
	add := func(r resource) {
		if !seen[r.uri] && len(out) < maxMentions {
			seen[r.uri] = true
			out = append(out, r)
		}
	}
	for _, p := range parts {
		if p.Type != provider.PartText || p.Synthetic {
			continue
		}
		for _, m := range mentionWords.FindAllStringSubmatch(p.Text, -1) {
			for _, name := range set.Names() {
				if uri, ok := strings.CutPrefix(m[1], mentionName(name)+":"); ok && strings.Contains(uri, ":") {
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

// wholeURI takes off what belongs to the sentence around a URI: only as much as leaves one that the server lists.
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

// enter reads the resources that a prompt mentions. It looks at the settings first: a turn runs with those that were
// there when it began, not with what was read a moment before.
func (a *app) enter(ctx context.Context, e agent.Entering) []provider.Part {
	a.place.config(e.Session.Cwd)
	set := a.mcp.of(e.Session.Cwd)
	if set == nil {
		return e.Parts
	}
	parts := e.Parts
	for _, r := range mentionedResources(ctx, set, e.Parts) {
		input, _ := json.Marshal(map[string]string{"server": r.server, "uri": r.uri})
		got, err := e.Call(ctx, "read_mcp_resource", input)
		say := func(text string) {
			parts = append(parts[:len(parts):len(parts)], provider.Part{Type: provider.PartText, Synthetic: true, Text: text})
		}
		switch mention := "@" + mentionName(r.server) + ":" + r.uri; {
		case err != nil:
			say(mention + " could not be read: " + err.Error())
		case got.Status != agent.ToolCompleted:
			say(mention + " could not be read: " + got.Error)
		default:
			say("Content of " + mention + ":\n" + got.Output)
			for _, f := range got.Attachments {
				parts = append(parts, provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: f.Mime, Name: f.Name, Data: f.Data}}})
			}
		}
	}
	return parts
}
