package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pillion-dev/pillion/tools/permission"
)

// Host is what a tool may need from the sidecar. A nil field means that the session does not have it (no person connected,
// no sub-agents): Offer does not offer the tools that need it.
type Host struct {
	Gate      Gate       // always there
	Questions Questioner // a person who can answer
	Spawner   Spawner    // sub-agents
	Todos     Todos      // the session's plan
	Agents    Agents     // which agent works, and changing it
	Calls     Calls      // further calls in the name of this one
}

// Gate asks for permission; *permission.Gate is the one implementation.
// It returns an error matching permission.ErrDenied or permission.ErrRejected when the answer is no.
type Gate interface {
	Ask(ctx context.Context, r permission.Request) (permission.Reply, error)
}

// Foreteller is a Gate that also says how it would answer, without asking a person. Searches use it to leave out files that
// may not be read.
type Foreteller interface {
	Would(ctx context.Context, r permission.Request) permission.Action
}

// RuleReader is a Gate that also says by which rules it decides, defaults first; a request must pass every one of the sets. Walks
// over a whole project use it to ask Would only about files that no rule allows outright.
type RuleReader interface {
	Rulesets() []permission.Ruleset
}

// Question is one question to the person; see the tool question for what its fields mean.
type Question struct {
	Question string   `json:"question"`
	Header   string   `json:"header" jsonschema:"very short label, at most 30 characters"`
	Options  []Option `json:"options"`
	Multiple bool     `json:"multiple,omitempty"`
	Custom   *bool    `json:"custom,omitempty"` // free text offered; nil means yes
}

// ErrDismissed: the person closed the questions without an answer.
var ErrDismissed = errors.New("The user dismissed this question")

// Option is one answer to choose.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// Questioner asks the person; answers are labels or free text, one list per question.
// It returns ErrDismissed when the person closed the questions.
type Questioner interface {
	AskQuestions(ctx context.Context, call *Call, qs []Question) ([][]string, error)
}

// Spawner starts sub-agents for the task tool.
type Spawner interface {
	// Spawn runs a task to its end, or starts it when it is a background one. A failure says what to do next.
	Spawn(ctx context.Context, call *Call, t Task) (TaskResult, error)
	// SubAgents are those that may be named.
	SubAgents() []SubAgent
}

// SubAgent is an agent for tasks.
type SubAgent struct{ Name, Description string }

// Task is a job for a sub-agent; ID resumes an earlier one.
type Task struct {
	Agent, Description, Prompt, ID string
	Command                        string // the slash command it comes from
	Background                     bool   // do not wait: the session is told when it is done
}

// TaskResult is the sub-agent's last message; ID resumes the task in a later call.
type TaskResult struct {
	ID, Text string
	Model    string
	Running  bool // a background task that was started
	Steps    int
}

// Agents is the session's agent.
type Agents interface {
	Agent() string
	// SetAgent changes it from the next step on.
	SetAgent(name string) error
	// Before is the agent the session had before the present one, "build" when it had none.
	Before() string
}

// Calls makes tool calls in the name of another one: the same gate, hooks and cap, a card of its own each.
type Calls interface {
	// CallTool returns what the tool gave. An unknown name, or one that must not be called this way, is an error.
	CallTool(ctx context.Context, name string, input json.RawMessage) (Result, error)
	// Callable are the tools that can be called.
	Callable() []string
}

// Todos is the session's todo list. Set replaces all of it.
type Todos interface {
	Get() []Todo
	Set(ctx context.Context, todos []Todo) error
}

// Todo is one line of the plan.
type Todo struct {
	Content  string `json:"content"`
	Status   string `json:"status" jsonschema:"pending, in_progress, completed or cancelled"`
	Priority string `json:"priority" jsonschema:"high, medium or low"`
}
