package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/skill"
)

// agents are the configured ones; the runtime lays them over its own.
func (a *App) agents(cwd string) []agent.Agent {
	c := a.ConfigOf(cwd)
	names := slices.Sorted(maps.Keys(c.Agent))
	if c.Steps > 0 { // it counts for the agents nobody has configured, too
		for _, d := range agent.DefaultAgents() {
			if _, ok := c.Agent[d.Name]; !ok {
				names = append(names, d.Name)
			}
		}
	}
	var out []agent.Agent
	for _, name := range names {
		x := c.Agent[name]
		if x.Steps == 0 {
			x.Steps = c.Steps
		}
		out = append(out, agent.Agent{Name: name, Description: x.Description, Mode: agent.Mode(x.Mode), Prompt: x.Prompt, Model: x.Model, Temperature: x.Temperature,
			TopP: x.TopP, Options: models.RequestOptions(x.Options), Variant: x.Variant, Steps: x.Steps, Rules: x.Permission.Rules, Tools: x.Tools, Hidden: x.Hidden, Disabled: x.Disable})
	}
	return out
}

// AgentRules are the effective rules of an agent, of the one that new sessions get where none is named.
func (a *App) AgentRules(cwd, name string) (permission.Ruleset, error) {
	all := a.Runtime.Agents(cwd)
	find := func(name string) int {
		return slices.IndexFunc(all, func(x agent.Agent) bool { return x.Name == name })
	}
	if name == "" {
		name = agent.DefaultAgent
		if i := find(a.ConfigOf(cwd).DefaultAgent); i >= 0 && !all[i].Hidden && all[i].Mode != agent.ModeSubagent {
			name = all[i].Name
		}
	} else if find(name) < 0 {
		var names []string
		for _, x := range all {
			if !x.Hidden {
				names = append(names, x.Name)
			}
		}
		return nil, fmt.Errorf("there is no agent %q; there are %s", name, strings.Join(names, ", "))
	}
	return a.Rules(cwd, name), nil
}

// switches are the configured ones, with what is being tried.
func (a *App) switches(cwd string) map[string]bool {
	c := a.ConfigOf(cwd)
	var tried struct {
		Batch bool `json:"batch_tool"`
	}
	_ = json.Unmarshal(c.Experimental, &tried) // of another shape: nothing is tried
	if _, said := c.Tools["batch"]; said || !tried.Batch {
		return c.Tools
	}
	out := map[string]bool{"batch": true}
	maps.Copy(out, c.Tools)
	return out
}

func (a *App) depth(cwd string) int {
	if d := a.ConfigOf(cwd).Depth; d != nil {
		return max(0, min(*d, editors.MaxParents-1))
	}
	return agent.DefaultDepth
}

func (a *App) compaction(cwd string) agent.CompactionOptions {
	c := a.ConfigOf(cwd).Compaction
	off := func(b *bool) bool { return b != nil && !*b }
	return agent.CompactionOptions{NoAuto: off(c.Auto), NoPrune: off(c.Prune), Reserved: c.Reserved, TailTurns: c.Tail, Recent: c.Recent}
}

// skills of a session's directory; sessions of the same one look through the folders once.
func (a *App) skills(cwd, root string, c *config.Config) *skill.Finder {
	p := skill.Places{Cwd: cwd, Root: root, Home: a.Place.Home, Config: []string{a.Place.User}}
	if a.Place.Home != "" {
		p.Config = append(p.Config, filepath.Join(a.Place.Home, ".config", "opencode"))
	}
	for _, dir := range c.Skills.Paths {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(a.Place.Home, rest)
		} else if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		p.More = append(p.More, dir)
	}
	key := fmt.Sprintf("%q", p)
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.finders[key]
	if f == nil {
		f = skill.New(p)
		a.finders[key] = f
	}
	return f
}

func (a *App) subAgents(cwd string) func() []tools.SubAgent {
	return func() []tools.SubAgent { return a.Runtime.SubAgents(cwd) }
}
