package acp

import (
	"slices"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// Ids of the configuration options that an editor sees.
const (
	optionMode   = "mode"
	optionModel  = "model"
	optionEffort = "thought_level"
	optionReview = "review"
	optionAsk    = "permission"
	// The prefix of the options of an agent of another maker, before the agent's own id.
	agentOption = "agent."
	// ACP has no empty value of an option.
	effortDefault = "default" // the empty effort: the model's own
)

// sessionOptions are what a person can choose for a session: agent, model, thinking level, how commands are asked about
// and review style.
type sessionOptions struct {
	rt      *agent.Runtime
	folders Folders
}

// primaries are the agents that can lead a session.
func (c *sessionOptions) primaries(cwd string) []agent.Agent {
	return slices.DeleteFunc(slices.Clone(c.rt.Agents(cwd)), func(a agent.Agent) bool { return a.Hidden || a.Mode == agent.ModeSubagent })
}

// modeNames are the names of the agents that can lead a session.
func (c *sessionOptions) modeNames(cwd string) []string {
	var out []string
	for _, a := range c.primaries(cwd) {
		out = append(out, a.Name)
	}
	return out
}

// modes are ACP's session modes, for editors from before configuration options: the agents, and modeAuto. nil means
// that no agent can lead a session; ACP then has no modes at all.
func (c *sessionOptions) modes(info agent.SessionInfo) *protocol.SessionModeState {
	st := c.agents(info)
	if st == nil {
		return nil
	}
	return c.withAuto(st, info)
}

// agents are the agents as session modes. The session's own is always among them.
func (c *sessionOptions) agents(info agent.SessionInfo) *protocol.SessionModeState {
	all := c.primaries(info.Cwd)
	if len(all) == 0 {
		return nil
	}
	st := &protocol.SessionModeState{CurrentModeID: info.Agent, AvailableModes: []protocol.SessionMode{}}
	for _, a := range all {
		st.AvailableModes = append(st.AvailableModes, protocol.SessionMode{ID: a.Name, Name: a.Name, Description: a.Description})
	}
	// The agent may be hidden, or gone from the configuration; an editor would otherwise show another one as
	// selected.
	if !slices.Contains(c.modeNames(info.Cwd), info.Agent) {
		st.AvailableModes = append(st.AvailableModes, protocol.SessionMode{ID: info.Agent, Name: info.Agent})
	}
	return st
}

// modeAuto is a mode for editors that show no configuration options: the session's agent, with commands asked about by
// their effects. An agent of this name hides it.
const modeAuto = "auto"

// withAuto adds the mode "auto" to the agents and selects it where commands are asked about by their effects; st is
// changed.
func (c *sessionOptions) withAuto(st *protocol.SessionModeState, info agent.SessionInfo) *protocol.SessionModeState {
	if slices.ContainsFunc(st.AvailableModes, func(m protocol.SessionMode) bool { return m.ID == modeAuto }) || !slices.Contains(c.rt.Permissions(info), agent.PermissionAuto) {
		return st
	}
	st.AvailableModes = append(st.AvailableModes, protocol.SessionMode{ID: modeAuto, Name: modeAuto, Description: "Commands run in the sandbox without a question where their effects stay in the project and can be undone"})
	if c.rt.Permission(info) == agent.PermissionAuto {
		st.CurrentModeID = modeAuto
	}
	return st
}

// configOptions are all options with their present values. An option without anything to choose from is left out.
func (c *sessionOptions) configOptions(info agent.SessionInfo) []protocol.SessionConfigOption {
	var out []protocol.SessionConfigOption
	if m := c.agents(info); m != nil {
		var opts []protocol.SessionConfigSelectOption
		for _, x := range m.AvailableModes {
			opts = append(opts, protocol.SessionConfigSelectOption{Value: x.ID, Name: x.Name, Description: x.Description})
		}
		out = append(out, selectOption(optionMode, "Mode", protocol.SessionConfigOptionCategoryMode, info.Agent, opts))
	}
	if all := c.models(info); len(all) > 0 {
		var opts []protocol.SessionConfigSelectOption
		for _, m := range all {
			name := m.Name
			if name == "" {
				name = m.ID
			}
			opts = append(opts, protocol.SessionConfigSelectOption{Value: m.ID, Name: name, Description: m.Description})
		}
		out = append(out, selectOption(optionModel, "Model", protocol.SessionConfigOptionCategoryModel, info.Model, opts))
	}
	if efforts := c.efforts(info); len(efforts) > 0 {
		opts := []protocol.SessionConfigSelectOption{{Value: effortDefault, Name: "Default"}}
		for _, e := range efforts {
			opts = append(opts, protocol.SessionConfigSelectOption{Value: e, Name: e})
		}
		current := info.Effort
		if current == "" {
			current = effortDefault
		}
		out = append(out, selectOption(optionEffort, "Thinking", protocol.SessionConfigOptionCategoryThoughtLevel, current, opts))
	}
	out = append(out, selectOption(optionAsk, "Commands", "", c.rt.Permission(info), among(c.rt.Permissions(info), []protocol.SessionConfigSelectOption{
		{Value: agent.PermissionAsk, Name: "Ask", Description: "You are asked about each command that your rules do not allow"},
		{Value: agent.PermissionAuto, Name: "Auto", Description: "Commands run in the sandbox without a question where their effects stay in the project and can be undone; others are asked"},
	})))
	out = append(out, selectOption(optionReview, "Review", "", c.rt.ReviewOf(info), among(c.rt.ReviewsOf(info), []protocol.SessionConfigSelectOption{
		{Value: agent.ReviewPreview, Name: "Preview", Description: "You decide on each change before it is written"},
		{Value: agent.ReviewFollow, Name: "Follow", Description: "Changes in the project are written at once; keep or undo them afterwards"},
		{Value: agent.ReviewDraft, Name: "Draft", Description: "The agent works in a copy, commands included; you decide once, at the end of its turn"},
	})))
	own, _ := c.folders.AgentMenu(info)
	for _, o := range own {
		o.ID, o.Category = agentOption+o.ID, "" // an editor shows a category's first option in a place of its own, and that is Pillion's
		out = append(out, o)
	}
	return out
}

// among are those of the values that have an effect. One that stands alone is shown all the same: it says how the session works.
func among(effective []string, all []protocol.SessionConfigSelectOption) []protocol.SessionConfigSelectOption {
	return slices.DeleteFunc(all, func(o protocol.SessionConfigSelectOption) bool { return !slices.Contains(effective, o.Value) })
}

// selectOption is an option with a list to choose from.
func selectOption(id, name string, cat protocol.SessionConfigOptionCategory, current string, opts []protocol.SessionConfigSelectOption) protocol.SessionConfigOption {
	return protocol.SessionConfigOption{ID: id, Name: name, Category: cat, Type: "select", CurrentValue: rawJSON(current), Options: opts}
}

// models are the models to choose from. The session's own is always among them: an editor would show another one as
// selected.
func (c *sessionOptions) models(info agent.SessionInfo) []models.Choice {
	all := c.folders.Models(info.Cwd)
	if info.Model != "" && !slices.ContainsFunc(all, func(m models.Choice) bool { return m.ID == info.Model }) {
		all = append(slices.Clone(all), models.Choice{ID: info.Model})
	}
	return all
}

// efforts are the thinking levels of the session's model; nil when it has none.
func (c *sessionOptions) efforts(info agent.SessionInfo) []string {
	for _, m := range c.models(info) {
		if m.ID == info.Model {
			// A level that another model had stays visible until the person chooses another one.
			if info.Effort != "" && !slices.Contains(m.Efforts, info.Effort) {
				return append(slices.Clone(m.Efforts), info.Effort)
			}
			return m.Efforts
		}
	}
	return nil
}

// knownModel fails for a model that is not in the list. Without a list every name is accepted. It keeps an editor
// from choosing what its own list has never shown.
func (c *sessionOptions) knownModel(info agent.SessionInfo, id string) error {
	all := c.models(info)
	if len(all) > 0 && !slices.ContainsFunc(all, func(m models.Choice) bool { return m.ID == id }) {
		return rpc.InvalidParams("value: unknown model %q; the option's list has the known ones", id)
	}
	return nil
}
