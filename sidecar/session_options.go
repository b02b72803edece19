package main

import (
	"slices"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// Ids of the configuration options an editor sees.
const (
	optionMode    = "mode"
	optionModel   = "model"
	optionEffort  = "thought_level"
	optionReview  = "review"
	effortDefault = "default" // the empty effort: the model's own
)

// primaries are the agents a person can talk to.
func (s *Server) primaries(cwd string) []agent.Agent {
	if s.o.Modes == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.o.Modes(cwd)), func(a agent.Agent) bool { return a.Hidden || a.Mode == agent.ModeSubagent })
}

func (s *Server) modeNames(cwd string) []string {
	var out []string
	for _, a := range s.primaries(cwd) {
		out = append(out, a.Name)
	}
	return out
}

// modes is the older way to offer what is also the option "mode".
func (s *Server) modes(info agent.SessionInfo) *protocol.SessionModeState {
	all := s.primaries(info.Cwd)
	if len(all) == 0 {
		return nil
	}
	st := &protocol.SessionModeState{CurrentModeID: info.Agent, AvailableModes: []protocol.SessionMode{}}
	for _, a := range all {
		st.AvailableModes = append(st.AvailableModes, protocol.SessionMode{ID: a.Name, Name: a.Name, Description: a.Description})
	}
	if !slices.Contains(s.modeNames(info.Cwd), info.Agent) {
		st.AvailableModes = append(st.AvailableModes, protocol.SessionMode{ID: info.Agent, Name: info.Agent})
	}
	return st
}

func (s *Server) configOptions(info agent.SessionInfo) []protocol.SessionConfigOption {
	var out []protocol.SessionConfigOption
	if m := s.modes(info); m != nil {
		var opts []protocol.SessionConfigSelectOption
		for _, x := range m.AvailableModes {
			opts = append(opts, protocol.SessionConfigSelectOption{Value: x.ID, Name: x.Name, Description: x.Description})
		}
		out = append(out, selectOption(optionMode, "Mode", protocol.SessionConfigOptionCategoryMode, info.Agent, opts))
	}
	if models := s.models(info); len(models) > 0 {
		var opts []protocol.SessionConfigSelectOption
		for _, m := range models {
			name := m.Name
			if name == "" {
				name = m.ID
			}
			opts = append(opts, protocol.SessionConfigSelectOption{Value: m.ID, Name: name, Description: m.Description})
		}
		out = append(out, selectOption(optionModel, "Model", protocol.SessionConfigOptionCategoryModel, info.Model, opts))
	}
	if efforts := s.efforts(info); len(efforts) > 0 {
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
	return append(out, selectOption(optionReview, "Review", "", s.o.Runtime.ReviewOf(info), []protocol.SessionConfigSelectOption{
		{Value: agent.ReviewPreview, Name: "Preview", Description: "You decide on each change before it is written"},
		{Value: agent.ReviewFollow, Name: "Follow", Description: "Changes in the project are written at once; keep or undo them afterwards"},
	}))
}

func selectOption(id, name string, cat protocol.SessionConfigOptionCategory, current string, opts []protocol.SessionConfigSelectOption) protocol.SessionConfigOption {
	return protocol.SessionConfigOption{ID: id, Name: name, Category: cat, Type: "select", CurrentValue: rawJSON(current), Options: opts}
}

// models to choose from; the current one is always among them.
func (s *Server) models(info agent.SessionInfo) []models.Choice {
	if s.o.Models == nil {
		return nil
	}
	all := s.o.Models(info.Cwd)
	if info.Model != "" && !slices.ContainsFunc(all, func(m models.Choice) bool { return m.ID == info.Model }) {
		all = append(slices.Clone(all), models.Choice{ID: info.Model})
	}
	return all
}

// efforts of the session's model.
func (s *Server) efforts(info agent.SessionInfo) []string {
	for _, m := range s.models(info) {
		if m.ID == info.Model {
			if info.Effort != "" && !slices.Contains(m.Efforts, info.Effort) {
				return append(slices.Clone(m.Efforts), info.Effort)
			}
			return m.Efforts
		}
	}
	return nil
}

func (s *Server) knownModel(info agent.SessionInfo, id string) error {
	all := s.models(info)
	if len(all) > 0 && !slices.ContainsFunc(all, func(m models.Choice) bool { return m.ID == id }) {
		return rpc.InvalidParams("value: unknown model %q; the option's list has the known ones", id)
	}
	return nil
}
