package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/tools/checkpoint"
)

// undoCommands take the last prompt back, files and conversation, and forward again. No model is asked.
func undoCommands() []Command {
	return []Command{
		{Name: "undo", Description: "Take the last prompt back: its words and what it changed in files", Run: undoLast},
		{Name: "redo", Description: "Take the last /undo or restore back", Run: redoLast},
	}
}

func undoLast(ctx context.Context, h commandHost, args string) (string, *agent.Prompt, error) {
	r := h.review()
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
		return "", nil, rpc.InvalidParams("nothing to undo: no prompt is left in this conversation")
	}
	text, err := takeBack(ctx, r, id)
	return text, nil, err
}

func redoLast(ctx context.Context, h commandHost, _ string) (string, *agent.Prompt, error) {
	r := h.review()
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
		return "", nil, rpc.InvalidParams("nothing to redo: nothing was undone since the last prompt")
	}
	text, err := takeBack(ctx, r, id)
	return text, nil, err
}

func takeBack(ctx context.Context, r *reviewer, id string) (string, error) {
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
		if rel, err := filepath.Rel(r.session.Info().Cwd, o.Path); err == nil && filepath.IsLocal(rel) {
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
