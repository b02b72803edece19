package main

import (
	"context"

	"github.com/pillion-dev/pillion/agent"
)

// undoCommands take the last prompt back, files and conversation, and forward again. No model is asked.
func undoCommands() []Command {
	return []Command{
		{Name: "undo", Description: "Take the last prompt back: its words and what it changed in files", Run: undoLast},
		{Name: "redo", Description: "Take the last /undo or restore back", Run: redoLast},
	}
}

func undoLast(ctx context.Context, h commandHost, args string) (string, *agent.Prompt, error) {
	text, err := h.review().UndoLast(ctx, args)
	return text, nil, err
}

func redoLast(ctx context.Context, h commandHost, _ string) (string, *agent.Prompt, error) {
	text, err := h.review().RedoLast(ctx)
	return text, nil, err
}
