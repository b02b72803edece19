package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/tools/permission"
)

// configuration implements agent.Configuration with the settings of a directory. It reads them at each call, so that a change takes effect
// at the next step of a turn.
type configuration struct{ place *Workplace }

// Rules returns only the configured rules; the runtime appends them to its defaults.
func (conf configuration) Rules(cwd string) permission.Ruleset {
	return conf.place.recentConfig(cwd).Permission.Rules
}

// Preferences returns the settings that are not about one agent.
func (conf configuration) Preferences(cwd string) agent.Preferences {
	own := conf.place.recentConfig(cwd)
	p := agent.Preferences{DefaultAgent: own.DefaultAgent, Review: own.Review, Auto: own.Permission.Auto, NoAuto: own.Permission.NoAuto, Compaction: compaction(own), Depth: depth(own)}
	if at, managed := own.Managed("review"); managed {
		p.ReviewFixed = at
	}
	return p
}

// Agents returns the configured agents, sorted by name. The runtime merges them into its own agents of the same name. Disabled agents are
// included, because that is how a built-in agent is turned off.
func (conf configuration) Agents(cwd string) []agent.Agent {
	c := conf.place.recentConfig(cwd)
	names := slices.Sorted(maps.Keys(c.Agent))
	if c.Steps > 0 { // the limit also applies to built-in agents, which the configuration does not name
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

// Switches returns the configured tool switches. OpenCode turns on its batch tool by experimental.batch_tool; that counts unless the person
// has switched "batch" itself.
func (conf configuration) Switches(cwd string) map[string]bool {
	c := conf.place.recentConfig(cwd)
	var tried struct {
		Batch bool `json:"batch_tool"`
	}
	_ = json.Unmarshal(c.Experimental, &tried) // a value of another shape is not this setting
	if _, said := c.Tools["batch"]; said || !tried.Batch {
		return c.Tools
	}
	// A copy: the configuration is shared.
	out := map[string]bool{"batch": true}
	maps.Copy(out, c.Tools)
	return out
}

// depth returns how deep sub-agents may nest. It stays below editors.MaxParents: a deeper sub-agent could not be traced to the editor that
// shows it, and nobody could answer its approval requests.
func depth(c *config.Config) int {
	if d := c.Depth; d != nil {
		return max(0, min(*d, editors.MaxParents-1))
	}
	return agent.DefaultDepth
}

// compaction converts the settings of compaction; an unset switch means the default, which is on.
func compaction(of *config.Config) agent.CompactionOptions {
	c := of.Compaction
	off := func(b *bool) bool { return b != nil && !*b }
	return agent.CompactionOptions{NoAuto: off(c.Auto), NoPrune: off(c.Prune), Reserved: c.Reserved, TailTurns: c.Tail, Recent: c.Recent}
}

// AgentRules returns the effective rules of an agent; for the name "" those of the agent of new sessions. It fails for an unknown name and
// lists the known ones.
func (a *App) AgentRules(cwd, name string) (permission.Ruleset, error) {
	all := a.Runtime.Agents(cwd)
	find := func(name string) int {
		return slices.IndexFunc(all, func(x agent.Agent) bool { return x.Name == name })
	}
	if name == "" {
		name = a.Runtime.DefaultAgentOf(cwd)
	} else if find(name) < 0 {
		var names []string
		for _, x := range all {
			if !x.Hidden {
				names = append(names, x.Name)
			}
		}
		return nil, fmt.Errorf("unknown agent %q; the agents are %s", name, strings.Join(names, ", "))
	}
	return a.Rules(cwd, name), nil
}
