// Package agent is the loop between a model and its tools. It turns a prompt into numbered events: it streams a model's answer, runs its
// tool calls and feeds the results back, until the model stops. It never changes a project file and never sees an editor: tools change
// files, the sidecar talks to editors.
//
//	rt := agent.New(agent.Options{Store: st, Models: models, Toolbox: toolbox})
//	s, err := rt.NewSession(ctx, agent.SessionOptions{Cwd: dir})
//	stop := s.Subscribe(0, func(e agent.Event) { … })
//	end, err := s.Prompt(ctx, agent.Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: "fix all errors"}}})
package agent

import (
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Mode says who may choose an agent: the person (primary), the task tool (subagent), or both (all).
type Mode string

// Modes of OpenCode's agents.
const (
	ModePrimary  Mode = "primary"
	ModeSubagent Mode = "subagent"
	ModeAll      Mode = "all"
)

// Agent is a named configuration of the loop: a prompt, a model, permission rules and tools.
type Agent struct {
	Name        string
	Description string
	Mode        Mode   // empty in a configuration: ModeAll for a new agent, unchanged for a default one
	Prompt      string // replaces the task part of the built-in system prompt; empty: keeps it
	Model       string // provider/model; empty: the session's
	Temperature *float64
	TopP        *float64
	Options     provider.Options   // sent with its requests, over the model's own
	Variant     string             // reasoning effort where the session has chosen none
	Steps       int                // model steps a turn may take; 0: DefaultSteps
	Rules       permission.Ruleset // after the configuration's; the last rule that matches decides
	Tools       map[string]bool    // switches by tool name, wildcards allowed
	Hidden      bool               // not offered to people or to the task tool; Pillion uses it for titles and summaries
	Disabled    bool               // in a configuration: remove the default agent of this name
}
