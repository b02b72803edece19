package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/permission"
)

//go:embed task.txt
var taskText string

// taskParams has the names of OpenCode's tool.
type taskParams struct {
	Description  string `json:"description" minLength:"1" jsonschema:"3 to 5 words for the user"`
	Prompt       string `json:"prompt" minLength:"1"`
	SubagentType string `json:"subagent_type" minLength:"1"`
	TaskID       string `json:"task_id,omitempty"`
	Command      string `json:"command,omitempty"`
	Background   bool   `json:"background,omitempty"`
}

// Task gives a job to a sub-agent, which works in a session of its own. Several tasks may run in parallel.
func Task(e Env) tools.Tool {
	return tools.New("task", taskText, func(ctx context.Context, p taskParams, call *tools.Call) (tools.Result, error) {
		if call.Host.Spawner == nil {
			return tools.Result{}, &tools.Error{Kind: "unavailable", Message: "This session cannot start sub-agents; do the task yourself."}
		}
		p.SubagentType = subAgentNamed(e.SubAgents, p.SubagentType)
		title := fmt.Sprintf("%s (@%s)", p.Description, p.SubagentType)
		// The pattern is the sub-agent's name, so that a rule can deny one of them; describeTask then does not offer it.
		err := ask(ctx, call, permission.Request{Permission: "task", Patterns: []string{p.SubagentType}, Always: []string{"*"}, Title: title,
			Metadata: map[string]any{"description": p.Description, "subagent_type": p.SubagentType}})
		if err != nil {
			return tools.Result{}, err
		}
		r, err := call.Host.Spawner.Spawn(ctx, call, tools.Task{Agent: p.SubagentType, Description: p.Description, Prompt: p.Prompt, ID: p.TaskID,
			Command: p.Command, Background: p.Background})
		if err != nil {
			return tools.Result{}, err
		}
		out := tools.Result{Title: title, Metadata: map[string]any{"sessionId": r.ID, "model": r.Model, "steps": r.Steps}}
		if r.Running {
			out.Metadata["background"] = true
			out.Output = fmt.Sprintf("<task id=%q state=\"running\">\n<summary>\nThe task runs in the background. You get a message when it is done; continue with something else.\n</summary>\n</task>", r.ID)
			return out, nil
		}
		// The result has the id, so that a later call can continue this task (task_id).
		out.Output = fmt.Sprintf("<task id=%q state=\"completed\">\n<task_result>\n%s\n</task_result>\n</task>", r.ID, strings.TrimSpace(r.Text))
		return out, nil
	}, tools.WithKind(tools.KindThink), tools.WithParallel(), tools.WithDescribe(func(rules permission.Ruleset) (string, bool) { return describeTask(e.SubAgents, rules) }))
}

// subAgentNamed is the listed name of a sub-agent. Commands, skills and agents that were written for Claude Code name its own:
// general-purpose, Explore. The name is settled before the rules are asked, so that it passes by none.
func subAgentNamed(agents func() []tools.SubAgent, name string) string {
	if agents == nil {
		return name
	}
	all := agents()
	for _, like := range []func(listed string) bool{
		func(listed string) bool { return listed == name },
		func(listed string) bool { return strings.EqualFold(listed, name) },
		func(listed string) bool { return listed == "general" && strings.EqualFold(name, "general-purpose") },
	} {
		if i := slices.IndexFunc(all, func(a tools.SubAgent) bool { return like(a.Name) }); i >= 0 {
			return all[i].Name
		}
	}
	return name
}

// describeTask is the tool's description with the sub-agents that the rules let start; without any the
// tool is not offered.
func describeTask(agents func() []tools.SubAgent, rules permission.Ruleset) (string, bool) {
	if agents == nil {
		return "", false
	}
	var all []fuzzy.Described
	for _, a := range agents() {
		if action, _ := rules.Evaluate("task", a.Name); action != permission.Deny {
			all = append(all, fuzzy.Described{Name: a.Name, Text: oneLine(a.Description, "no description")})
		}
	}
	if len(all) == 0 {
		return "", false
	}
	list, left := listing(all, maxListing)
	if left > 0 {
		list += fmt.Sprintf("\n%d more are not listed.", left)
	}
	return strings.TrimSpace(taskText) + "\n\nThe sub-agents:" + list, true
}

// oneLine is a text on one line for a list; none stands for an empty one.
func oneLine(s, none string) string {
	if s = strings.Join(strings.Fields(s), " "); s == "" {
		return none
	}
	return s
}
