package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/checkpoint"
)

// undoCommands take the last prompt back, files and conversation, and forward again. No model is asked.
func undoCommands() []Command {
	return []Command{
		{Name: "undo", Description: "Take the last prompt back: its words and what it changed in files", Do: (*editorSession).undoLast},
		{Name: "redo", Description: "Take the last /undo or restore back", Do: (*editorSession).redoLast},
	}
}

// doing finds the command that a prompt is, when it is one that is carried out here.
func (es *editorSession) doing(parts []provider.Part) (Command, string, bool) {
	if len(parts) != 1 || parts[0].Type != provider.PartText || !strings.HasPrefix(parts[0].Text, "/") {
		return Command{}, "", false
	}
	name, args, _ := strings.Cut(strings.TrimSpace(parts[0].Text[1:]), " ")
	for _, c := range es.server.commands(es.Info().Cwd) {
		if c.Name == name {
			return c, strings.TrimSpace(args), c.Do != nil
		}
	}
	return Command{}, "", false
}

// carryOut answers a prompt with what a command did, after the prompts before it.
func (es *editorSession) carryOut(ctx context.Context, before <-chan struct{}, c Command, args string) (*protocol.PromptResponse, error) {
	select {
	case <-before:
	case <-ctx.Done():
		return &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
	}
	text, err := c.Do(es, ctx, args)
	if err != nil {
		return nil, err
	}
	es.send("agent_message_chunk", &protocol.ContentChunk{Content: textBlock(text)})
	return &protocol.PromptResponse{StopReason: protocol.StopReasonEndTurn}, nil
}

func (es *editorSession) undoLast(ctx context.Context, args string) (string, error) {
	r := es.server.reviewer(es)
	id := args
	r.read(func(l *ledger) {
		last := l.point(l.reverted)
		for _, p := range slices.Backward(l.points) {
			if id == "" && p.prompt != nil && !p.lost && (last == nil || p.seq < last.seq) {
				id = p.id
			}
		}
	})
	if id == "" {
		return "", rpc.InvalidParams("nothing to undo: no prompt is left in this conversation")
	}
	return es.takeBack(ctx, r, id)
}

func (es *editorSession) redoLast(ctx context.Context, _ string) (string, error) {
	r := es.server.reviewer(es)
	id := ""
	r.read(func(l *ledger) {
		taken := map[string]bool{}
		for _, p := range slices.Backward(l.points) {
			switch {
			case p.prompt != nil:
				return // the conversation went on: an undo before it is final
			case p.restore.Undoes != "":
				taken[p.restore.Undoes] = true
			case !taken[p.id]:
				id = p.id
				return
			}
		}
	})
	if id == "" {
		return "", rpc.InvalidParams("nothing to redo: nothing was undone since the last prompt")
	}
	return es.takeBack(ctx, r, id)
}

func (es *editorSession) takeBack(ctx context.Context, r *reviewer, id string) (string, error) {
	done, err := r.restore(ctx, restoring{checkpoint: id, scope: scopeBoth})
	if err != nil {
		return "", err
	}
	var d agent.RestoreData
	r.read(func(l *ledger) {
		if p := l.point(done.undo); p != nil {
			d = *p.restore
		}
	})
	var b strings.Builder
	if b.WriteString("Nothing to do: everything is as it was then."); done.undo != "" {
		b.Reset()
		fmt.Fprintf(&b, "%s: %s.", d.Title, done.plan)
	}
	for _, o := range done.plan.Outcomes {
		name := o.Path
		if rel, err := filepath.Rel(es.Info().Cwd, o.Path); err == nil && filepath.IsLocal(rel) {
			name = rel
		}
		if o.Status != checkpoint.Unchanged {
			fmt.Fprintf(&b, "\n- %s: %s%s", name, o.Status, because(o.Reason))
		}
	}
	if d.Undoes == "" && done.undo != "" {
		b.WriteString("\n\n/redo brings it back.")
	}
	return b.String() + "\n", nil
}
