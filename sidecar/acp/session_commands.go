package acp

import (
	"context"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/slash"
)

// commandList knows the slash commands of folders.
type commandList struct{ folders Folders }

// of are a folder's commands: the configured ones, and the built-in ones that they do not replace.
func (l *commandList) of(cwd string) []slash.Command {
	return slash.WithBuiltin(l.folders.Commands(cwd))
}

// runCommand runs a slash command after the prompts before it. It returns the prompt for the agent, or the answer to
// session/prompt when no turn is needed. It waits for before, the answers to all earlier prompts: /undo must not undo
// a turn that is still to begin.
func (es *editorSession) runCommand(ctx context.Context, before <-chan struct{}, c slash.Command, args string) (*agent.Prompt, *protocol.PromptResponse, error) {
	cancelled := &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}
	select {
	case <-before:
	case <-ctx.Done():
		return nil, cancelled, nil
	}
	h := slash.Host{Session: es.Session, Runtime: es.rt, Models: es.choices.folders.Models, All: es.input.commands.of(es.Info().Cwd), Whole: es.desk.Whole, Undoer: func() slash.Undoer { return es.reviewer() }}
	answer, p, err := c.Run(ctx, h, args)
	switch {
	case ctx.Err() != nil:
		return nil, cancelled, nil
	case err != nil:
		return nil, nil, err
	case p != nil:
		return p, nil, nil
	}
	if answer != "" {
		es.send("agent_message_chunk", &protocol.ContentChunk{Content: protocol.TextBlock(answer)})
	}
	return nil, &protocol.PromptResponse{StopReason: protocol.StopReasonEndTurn}, nil
}
