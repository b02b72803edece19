// Package agent is the loop between a model and its tools. It turns prompts into numbered events: a model's
// answer streamed, its tool calls run, results fed back, until a stop reason. It never changes a file and never
// sees an editor: tools do the one, the sidecar the other.
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

// Mode says where an agent may be used: by the person (primary), by the task tool (subagent), or by both (all).
type Mode string

// Modes of OpenCode's agents.
const (
	ModePrimary  Mode = "primary"
	ModeSubagent Mode = "subagent"
	ModeAll      Mode = "all"
)

// Agent is a way of working: a prompt, a model, rules and tools.
type Agent struct {
	Name        string
	Description string
	Mode        Mode   // empty in a configuration: ModeAll for a new agent, unchanged for a default one
	Prompt      string // replaces the base prompt's task part; empty: the built-in one
	Model       string // provider/model; empty: the session's
	Temperature *float64
	TopP        *float64
	Options     provider.Options   // sent with its requests, over the model's own
	Variant     string             // effort where the session has chosen none
	Steps       int                // model steps a turn may take; 0: DefaultSteps
	Rules       permission.Ruleset // after the configuration's; the last rule that matches decides
	Tools       map[string]bool    // switches by tool name, wildcards allowed
	Hidden      bool               // not offered to people or to the task tool; Pillion uses it for titles and summaries
	Disabled    bool               // in a configuration: remove the default agent of this name
}
