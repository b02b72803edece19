package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

//go:embed todowrite.txt
var todoWriteText string

//go:embed todoread.txt
var todoReadText string

// todoParams have the whole list, which replaces the one before: like OpenCode's tool, this one does not change single entries.
type todoParams struct {
	Todos []todoItem `json:"todos"`
}

// todoItem has the fields of tools.Todo in the same order, so one converts into the other.
type todoItem struct {
	Content  string `json:"content" minLength:"1"`
	Status   string `json:"status" enum:"pending,in_progress,completed,cancelled"`
	Priority string `json:"priority,omitempty" enum:"high,medium,low" default:"medium"`
}

// TodoWrite replaces the session's plan.
func TodoWrite(_ Env) tools.Tool {
	return tools.New("todowrite", todoWriteText, func(ctx context.Context, p todoParams, call *tools.Call) (tools.Result, error) {
		if err := askTodo(ctx, call, "todowrite", "Update the plan"); err != nil {
			return tools.Result{}, err
		}
		todos := make([]tools.Todo, len(p.Todos))
		for i, t := range p.Todos {
			todos[i] = tools.Todo(t)
		}
		if err := call.Host.Todos.Set(ctx, todos); err != nil {
			return tools.Result{}, fmt.Errorf("the list was not saved: %w", err)
		}
		return todoResult(todos)
	}, tools.WithKind(tools.KindThink))
}

// TodoRead returns the session's plan.
func TodoRead(_ Env) tools.Tool {
	return tools.New("todoread", todoReadText, func(ctx context.Context, _ struct{}, call *tools.Call) (tools.Result, error) {
		if err := askTodo(ctx, call, "todoread", "Read the plan"); err != nil {
			return tools.Result{}, err
		}
		return todoResult(call.Host.Todos.Get())
	}, tools.WithKind(tools.KindThink), tools.WithReadOnly())
}

// askTodo asks for the permission of one of the two tools. The patterns are "*": rules allow or deny the tool, not single lines of the plan.
func askTodo(ctx context.Context, call *tools.Call, name, title string) error {
	if call.Host.Todos == nil {
		return &tools.Error{Kind: "unavailable", Message: "this session keeps no todo list; continue without one"}
	}
	return ask(ctx, call, permission.Request{Permission: name, Patterns: []string{"*"}, Always: []string{"*"}, Title: title})
}

// todoResult has the form of OpenCode's result: the list as JSON, and in the title how many entries are open.
func todoResult(todos []tools.Todo) (tools.Result, error) {
	if todos == nil {
		todos = []tools.Todo{}
	}
	open := 0
	for _, t := range todos {
		if t.Status != "completed" && t.Status != "cancelled" {
			open++
		}
	}
	raw, err := json.MarshalIndent(todos, "", "  ")
	if err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Title: fmt.Sprintf("%d todos", open), Output: string(raw), Metadata: map[string]any{"todos": todos}}, nil
}
