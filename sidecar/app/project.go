package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/rules"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/skill"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// project implements agent.ProjectContext: what a model is told about a directory. It caches what was just read, because sub-agents start
// by the dozen.
type project struct {
	app   *App
	pages instructionPages // fetched instructions
	trees recentTrees      // file trees, by directory

	mu      sync.Mutex
	finders map[string]*skill.Finder    // guarded by mu; by the places that they search
	search  map[string]*search.Searcher // guarded by mu; by the configured ripgrep and the folder of the file that configures it
}

// Instructions implements agent.ProjectContext: it returns what people wrote for agents. The project's files come first, then the
// configured files and pages; a file that two settings name comes once.
func (p *project) Instructions(cwd string) []string {
	c := p.app.ConfigOf(cwd)
	var files, pages []string
	for _, at := range c.Instructions {
		if strings.HasPrefix(at, "https://") || strings.HasPrefix(at, "http://") {
			pages = append(pages, at)
		} else {
			files = append(files, at)
		}
	}
	have := agent.Instructions(cwd, Imports(c, paths.Worktree(cwd)))
	have = append(have, ruleBlocks(paths.Worktree(cwd))...)
	have = append(have, agent.MoreInstructions(cwd, p.app.Place.Home, files, have)...)
	return append(have, p.pages.texts(c, pages, func(address string, err error) {
		p.app.O.Log.Warn("instructions could not be fetched", "address", address, "err", err)
		if p.app.O.Notices != nil {
			fmt.Fprintf(p.app.O.Notices, "pillion: instructions of %s could not be fetched: %v\n", address, err)
		}
	})...)
}

// Imports decides about the imports of a project's instruction files. What the read tool reads in the project without a question may be
// imported. Trust stands for the question about files outside; a rule that denies reading them counts.
func Imports(c *config.Config, root string) agent.Imports {
	all := append(permission.Default(), c.Permission.Rules...)
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	says := func(name, path string) permission.Action {
		action, _ := all.Evaluate(name, path)
		return action
	}
	return agent.Imports{
		Inside: func(path string) bool {
			rel, err := filepath.Rel(root, path)
			return err == nil && says("read", rel) == permission.Allow && says("read", path) != permission.Deny
		},
		Outside: func(path string) bool {
			return c.Trusted() && says("read", path) != permission.Deny && says("external_directory", filepath.Dir(path)+"/*") != permission.Deny
		},
	}
}

// maxRuleBytes limits the rules that always count in the system prompt, in bytes; configured instructions have a limit of their own of the
// same size. A rule that does not fit is left out whole; shorter ones after it are still included.
const maxRuleBytes = 192 << 10

// ruleBlocks returns the rules in the folders of other agents below root, for the system prompt: the text of the rules that always count,
// and one block that names those with only a description, for the model to read when it does such work. Rules for certain files are not
// included: the read tool shows them with such a file.
func ruleBlocks(root string) (blocks []string) {
	size, more := 0, ""
	for _, r := range rules.Find(root) {
		switch {
		case r.Always() && size+len(r.Text) <= maxRuleBytes:
			size += len(r.Text)
			blocks = append(blocks, "Instructions from: "+r.Path+"\n"+r.Text)
		case !r.Always() && len(r.Globs) == 0 && r.Description != "":
			more += "- " + r.Path + ": " + textutil.FirstLine(r.Description) + "\n"
		}
	}
	if more != "" {
		blocks = append(blocks, "Read these project rules before work that they are about:\n"+strings.TrimRight(more, "\n"))
	}
	return blocks
}

// Notes implements agent.ProjectContext: it returns the instructions of the MCP servers.
func (p *project) Notes(cwd string) []string { return p.app.MCP.notes(cwd) }

// Tree implements agent.ProjectContext: it returns the first entries of the file tree, so that a model need not list it first; "" when it
// could not be made in time.
func (p *project) Tree(ctx context.Context, cwd string) string {
	p.trees.mu.Lock()
	if p.trees.dir == nil {
		p.trees.dir = map[string]*recentTree{}
	}
	s := p.trees.dir[cwd]
	if s == nil {
		s = &recentTree{}
		p.trees.dir[cwd] = s
	}
	p.trees.mu.Unlock()
	// Only one walk at a time for each directory; the other sessions wait for its result.
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.made) < treeMaxAge {
		return s.text
	}
	ctx, cancel := context.WithTimeout(ctx, treeTimeout)
	defer cancel()
	// A failure is not cached, so the next session tries again.
	l, err := p.searcher(p.app.ConfigOf(cwd)).Tree(ctx, search.TreeQuery{Root: cwd, Limit: treeEntries})
	if err != nil || l.Root == nil || l.Entries == 0 {
		return ""
	}
	s.text, s.made = l.Root.String(), time.Now()
	if l.More || l.Partial {
		s.text += "(and more)\n"
	}
	return s.text
}

// Mentioned implements agent.ProjectContext: it reads the resources that a prompt mentions, by a tool call that the person sees. It loads
// the settings first, so that a turn uses those that were saved when it began instead of a cached copy.
func (p *project) Mentioned(ctx context.Context, e agent.Entering) []provider.Part {
	p.app.Place.Config(e.Session.Cwd)
	set := p.app.MCP.of(e.Session.Cwd)
	if set == nil {
		return e.Parts
	}
	parts := e.Parts
	for _, r := range mentionedResources(ctx, set, e.Parts) {
		input, _ := json.Marshal(map[string]string{"server": r.server, "uri": r.uri})
		got, err := e.Call(ctx, "read_mcp_resource", input)
		// The slice is clipped, so that append does not write into the prompt's own array.
		say := func(text string) {
			parts = append(parts[:len(parts):len(parts)], provider.Part{Type: provider.PartText, Synthetic: true, Text: text})
		}
		switch word := "@" + mention.ServerName(r.server) + ":" + r.uri; {
		case err != nil:
			say(word + " could not be read: " + err.Error())
		// Tell the model, so that it does not answer as if it had read the resource.
		case got.Status != agent.ToolCompleted:
			say(word + " could not be read: " + got.Error)
		default:
			say("Content of " + word + ":\n" + got.Output)
			for _, f := range got.Attachments {
				parts = append(parts, provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: f.Mime, Name: f.Name, Data: f.Data}}})
			}
		}
	}
	return parts
}

// searcher returns the search engine for the configured ripgrep. Sessions share it, so that rg is searched once.
func (p *project) searcher(c *config.Config) *search.Searcher {
	reason := c.Reason("ripgrep")
	indexed := c.SearchIndex == nil || *c.SearchIndex
	key := fmt.Sprintf("%s\x00%s\x00%v", c.Ripgrep, reason.Folder, indexed)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.search[key]
	if s == nil {
		s = search.New(search.Options{Ripgrep: c.Ripgrep, Reason: reason, Index: p.app.Place.index(indexed)})
		p.search[key] = s
	}
	return s
}

// close ends the work on search indexes.
func (p *project) close() {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.search))
	p.mu.Unlock()
	for _, s := range all {
		s.Close()
	}
}

// SkillPlaces are where a directory's skills are: those of the project, of the person, of OpenCode's configuration and of the setting
// skills.paths, where ~/ is the home folder and other relative paths start at root.
func (p *Workplace) SkillPlaces(cwd, root string, c *config.Config) skill.Places {
	at := skill.Places{Cwd: cwd, Root: root, Home: p.Home, Config: []string{p.User}}
	if p.Home != "" {
		at.Config = append(at.Config, p.openCodeDir())
	}
	for _, dir := range c.Skills.Paths {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(p.Home, rest)
		} else if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		at.More = append(at.More, dir)
	}
	return at
}

// skills returns the finder of a directory's skills. Directories with the same places share one Finder, so that the folders are read once.
func (p *project) skills(cwd, root string, c *config.Config) *skill.Finder {
	at := p.app.Place.SkillPlaces(cwd, root, c)
	key := fmt.Sprintf("%q", at)
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.finders[key]
	if f == nil {
		f = skill.New(at)
		p.finders[key] = f
	}
	return f
}

// Project returns what a model is told about a directory.
func (a *App) Project() agent.ProjectContext { return a.project }
