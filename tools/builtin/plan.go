package builtin

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

//go:embed plan_enter.txt
var planEnterText string

//go:embed plan_exit.txt
var planExitText string

// OpenCode's name of the agent that reads and plans only.
const planAgent = "plan"

// PlanEnter asks the person whether to plan first, and switches to the plan agent.
func PlanEnter(Env) tools.Tool {
	return tools.New("plan_enter", planEnterText, func(ctx context.Context, _ struct{}, call *tools.Call) (tools.Result, error) {
		return switchAgent(ctx, call, planAgent, tools.Question{
			Header: "Plan first?", Question: "Switch to planning? Nothing is changed until you agree to the plan.",
			Options: []tools.Option{{Label: "Yes", Description: "Plan first"}, {Label: "No", Description: "Go on without a plan"}},
		}, "The user agreed: you are planning now. Read and think; edits are refused. Call plan_exit when the plan is complete.")
	}, tools.WithKind(tools.KindThink))
}

// PlanExit asks whether to carry the plan out, and switches back to the agent that was there before.
func PlanExit(Env) tools.Tool {
	return tools.New("plan_exit", planExitText, func(ctx context.Context, _ struct{}, call *tools.Call) (tools.Result, error) {
		if call.Host.Agents == nil {
			return tools.Result{}, errNoModes
		}
		to := call.Host.Agents.Before()
		// A session that began with planning had no other agent before.
		if to == planAgent {
			to = "build"
		}
		return switchAgent(ctx, call, to, tools.Question{
			Header: "Start the work?", Question: fmt.Sprintf("The plan is complete. Switch to %s and carry it out?", to),
			Options: []tools.Option{{Label: "Yes", Description: "Carry the plan out"}, {Label: "No", Description: "Keep planning"}},
		}, "The user approved the plan. You may change files now: carry it out.")
	}, tools.WithKind(tools.KindThink))
}

// errNoModes is for hosts without a person or without agents; the model continues as it is.
var errNoModes = &tools.Error{Kind: "unavailable", Message: "The agent cannot be switched, because no user is connected; continue with the present agent."}

// switchAgent asks, and changes the session's agent when the answer is yes. A no to plan_exit ends the turn; an answer in the person's own
// words goes to the model, which then improves the plan. A no to plan_enter lets the work continue.
func switchAgent(ctx context.Context, call *tools.Call, to string, q tools.Question, done string) (tools.Result, error) {
	if call.Host.Agents == nil || call.Host.Questions == nil {
		return tools.Result{}, errNoModes
	}
	answers, err := call.Host.Questions.AskQuestions(ctx, call, []tools.Question{q})
	if err != nil {
		return tools.Result{}, err
	}
	answer := ""
	if len(answers) > 0 && len(answers[0]) > 0 {
		answer = answers[0][0]
	}
	switch answer {
	case "Yes":
	case "No", "":
		if call.Tool == "plan_enter" {
			return tools.Result{Title: "No plan first", Output: "The user wants no plan first: continue with the work."}, nil
		}
		return tools.Result{}, &permission.RejectedError{}
	default:
		return tools.Result{}, &permission.RejectedError{Message: answer}
	}
	if err := call.Host.Agents.SetAgent(to); err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Title: "Switched to " + to, Output: done, Metadata: map[string]any{"agent": to}}, nil
}
