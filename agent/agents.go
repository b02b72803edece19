package agent

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// DefaultSteps is how many model steps a turn may take when the agent sets no limit. It only stops a turn that would never end: long jobs
// take 50 to 100 steps.
const DefaultSteps = 200

// DefaultAgent is the agent of a session for which no other is chosen.
const DefaultAgent = "build"

// PlanAgent is the agent that plans. The tools plan_enter and plan_exit switch to it and back.
const PlanAgent = "plan"

// DefaultAgents are the agents that always exist. A configured agent of the same name changes only what it sets.
func DefaultAgents() []Agent { return slices.Clone(defaultAgents()) }

// defaultAgents are made once, because every step of every session looks for its agent. Their rules are clipped (capacity equals length),
// so that appending to them copies instead of writing into the shared array.
var defaultAgents = sync.OnceValue(func() []Agent {
	// The arguments are permission, pattern and action, three by three, which keeps the table readable.
	rule := func(agent string, pairs ...string) permission.Ruleset {
		var rules permission.Ruleset
		for i := 0; i < len(pairs); i += 3 {
			rules = append(rules, permission.Rule{Permission: pairs[i], Pattern: pairs[i+1], Action: permission.Action(pairs[i+2]), Origin: "agent " + agent})
		}
		return slices.Clip(rules)
	}
	return []Agent{
		{
			Name: "build", Mode: ModePrimary,
			Description: "Does the work: reads, edits, runs. Changes and commands are asked first.",
		},
		{
			Name: "plan", Mode: ModePrimary,
			Description: "Reads and plans; changes nothing but plan files.",
			// Commands that are known to change nothing run without approval. All others ask, even where the configuration allows them for
			// the agent build.
			Rules: rule("plan", "edit", "*", "deny", "edit", ".pillion/plans/*.md", "ask", "edit", ".opencode/plans/*.md", "ask", "bash", "*", "ask"),
		},
		{
			Name: "general", Mode: ModeSubagent,
			Description: "Takes a whole job with many steps off your hands, or several at once in parallel.",
			Rules:       rule("general", "todowrite", "*", "deny", "todoread", "*", "deny"),
		},
		{
			Name: "explore", Mode: ModeSubagent,
			Description: "Finds things out in the code base quickly, read-only. Say what to find and how thorough to be.",
			// Commands that are known to change nothing run without approval; all others are denied. The rule for the empty command comes
			// last, because a tool is not offered when its last rule denies "*".
			Rules: rule("explore", "*", "*", "deny",
				"read", "*", "allow", "read", "*.env", "ask", "read", "*.env.*", "ask", "read", "*.envrc", "ask", "read", "*.env.example", "allow",
				"grep", "*", "allow", "glob", "*", "allow", "list", "*", "allow", "lsp", "*", "allow",
				"webfetch", "*", "ask", "websearch", "*", "ask", "codesearch", "*", "ask", "skill", "*", "allow",
				"external_directory", "*", "ask", "doom_loop", "*", "ask",
				"bash", "*", "deny", permission.ReadOnlyCommands, "*", "allow", "bash", "", "deny"),
		},
		{Name: titleAgent, Mode: ModePrimary, Hidden: true, Description: "Names sessions.", Rules: rule(titleAgent, "*", "*", "deny")},
		{Name: commitAgent, Mode: ModePrimary, Hidden: true, Description: "Writes commit messages.", Rules: rule(commitAgent, "*", "*", "deny")},
		{Name: summaryAgent, Mode: ModePrimary, Hidden: true, Description: "Describes finished work.", Rules: rule(summaryAgent, "*", "*", "deny")},
		{Name: compactionAgent, Mode: ModePrimary, Hidden: true, Description: "Summarises what no longer fits the context.", Rules: rule(compactionAgent, "*", "*", "deny")},
	}
})

// merge returns the defaults with the configured agents applied in order. A disabled one removes the default of its name, so that a
// configuration can leave "plan" out. The inputs are not changed.
func merge(defaults, configured []Agent) []Agent {
	out := slices.Clone(defaults)
	for _, c := range configured {
		i := slices.IndexFunc(out, func(a Agent) bool { return a.Name == c.Name })
		if c.Disabled {
			if i >= 0 {
				out = slices.Delete(out, i, i+1)
			}
			continue
		}
		if i < 0 {
			if c.Mode == "" {
				c.Mode = ModeAll
			}
			out = append(out, c)
			continue
		}
		out[i] = overlay(out[i], c)
	}
	return out
}

// overlay returns a with the settings of c. A zero value in c means "not set", so a configuration cannot make a text empty again. Rules
// are appended and not replaced: the last match decides, so the configured ones win, and the defaults hold for everything else.
func overlay(a, c Agent) Agent {
	set := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	set(&a.Description, c.Description)
	set((*string)(&a.Mode), string(c.Mode))
	set(&a.Prompt, c.Prompt)
	set(&a.Model, c.Model)
	if c.Temperature != nil {
		a.Temperature = c.Temperature
	}
	if c.TopP != nil {
		a.TopP = c.TopP
	}
	a.Options = a.Options.With(c.Options)
	set(&a.Variant, c.Variant)
	if c.Steps != 0 {
		a.Steps = c.Steps
	}
	if c.Tools != nil {
		a.Tools = c.Tools
	}
	a.Hidden = a.Hidden || c.Hidden
	a.Rules = append(slices.Clone(a.Rules), c.Rules...)
	return a
}

// directories reads the configuration of a directory: agents, rules, tool switches, extensions. It caches nothing, so a changed file takes
// effect at the next call.
type directories struct{ o Options }

// Agents returns the agents of a directory: the defaults, overlaid with those of the configuration.
func (r *directories) Agents(cwd string) []Agent {
	return merge(defaultAgents(), r.o.Configuration.Agents(cwd))
}

// smallModel as an agent's model means a small model of the session's provider. Agents written for Claude Code name "haiku", which says how
// much the work may cost rather than which provider does it.
const smallModel = "small"

// modelOf returns the model of an agent in a session whose model is session; "" means the session's own.
func (r *directories) modelOf(cwd, model, session string) string {
	if model != smallModel {
		return model
	}
	if small, ok := r.o.Models.(SmallModels); ok {
		return small.Small(cwd, session)
	}
	return ""
}

// agent finds an agent of a directory by its name; false when the configuration has none.
func (r *directories) agent(cwd, name string) (Agent, bool) {
	is := func(a Agent) bool { return a.Name == name }
	all := defaultAgents()
	// Merging copies all agents, and a step asks for one several times: a default that nothing configures is returned as it is.
	if configured := r.o.Configuration.Agents(cwd); slices.ContainsFunc(configured, is) {
		all = merge(all, configured)
	}
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return Agent{}, false
}

// rules returns the permission rules of an agent in a directory: the defaults, then those of the configuration, then the agent's own. The
// last match decides. Grants ("always") are not among them; permission.Gate adds those.
func (r *directories) rules(cwd string, a Agent) permission.Ruleset {
	rules := append(permission.Default(), r.o.Configuration.Rules(cwd)...)
	return append(rules, a.Rules...)
}

// DefaultAgentOf returns the agent of new sessions in a directory: the configured one, else DefaultAgent. Where a configuration has disabled
// both, it is the first agent that a person can choose.
func (r *directories) DefaultAgentOf(cwd string) string {
	all := r.Agents(cwd)
	for _, name := range []string{r.o.Configuration.Preferences(cwd).DefaultAgent, DefaultAgent, ""} {
		i := slices.IndexFunc(all, func(a Agent) bool { return !a.Hidden && a.Mode != ModeSubagent && (name == "" || a.Name == name) })
		if i >= 0 {
			return all[i].Name
		}
	}
	return DefaultAgent // unknown, which the error says with the names there are
}

// noAgent returns ErrNoAgent with the names that exist.
func (r *directories) noAgent(cwd, name string) error {
	var names []string
	for _, a := range r.Agents(cwd) {
		if !a.Hidden {
			names = append(names, a.Name)
		}
	}
	return fmt.Errorf("%w %q; there are %v", ErrNoAgent, name, names)
}

// SubAgents returns the agents of a directory that the task tool may use.
func (r *directories) SubAgents(cwd string) (out []tools.SubAgent) {
	for _, a := range r.Agents(cwd) {
		if !a.Hidden && a.Mode != ModePrimary {
			out = append(out, tools.SubAgent{Name: a.Name, Description: a.Description})
		}
	}
	return out
}

// switches returns the tool switches of a directory, overlaid with the agent's own. It clones the configuration's map, which others read.
func (r *directories) switches(cwd string, a Agent) map[string]bool {
	all := maps.Clone(r.o.Configuration.Switches(cwd))
	if all == nil {
		return a.Tools
	}
	maps.Copy(all, a.Tools)
	return all
}

// maxDepth returns how many levels of sub-agents may nest in a directory; 0: none may run.
func (r *directories) maxDepth(cwd string) int { return r.o.Configuration.Preferences(cwd).Depth }
