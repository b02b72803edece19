package main

import (
	"context"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools"
)

// allCommands are the slash commands of a folder's configuration and the built-in ones that it does not replace.
func allCommands(a *app.App, cwd string) []slash.Command {
	return slash.WithBuiltin(a.CommandsOf(cwd))
}

// runPrompt runs a prompt as it was typed. A template command is expanded, a built-in one runs here; said is the text
// of one that needs no model, and turn is empty then.
func runPrompt(ctx context.Context, a *app.App, s *agent.Session, text string, limits agent.Limits) (turn agent.TurnData, said string, err error) {
	p := agent.Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: text}}}
	cwd := s.Info().Cwd
	all := allCommands(a, cwd)
	c, args, ok := slash.Parse(p.Parts, all)
	switch {
	case ok && c.Expand != nil:
		p.Parts[0].Text = c.Expand(args)
	case ok && c.Run != nil:
		r, err := reviewerOf(ctx, a, s)
		if err != nil {
			return turn, "", err
		}
		h := slash.Host{Session: s, Runtime: a.Runtime, All: all, Whole: a.Changes.Blobs.Load, Models: func(cwd string) []models.Choice { return a.Models.Choices(ctx, cwd) },
			Undoer: func() slash.Undoer { return r }}
		said, made, err := c.Run(ctx, h, args)
		if err != nil {
			return turn, "", err
		}
		if made == nil {
			return turn, said, nil
		}
		p = *made
	}
	p.Limits = limits
	turn, err = s.Prompt(ctx, p)
	return turn, "", err
}

// questionerIf is q if there is a person to answer, else nil: the tools that ask questions are then not offered to
// the model.
func questionerIf(q tools.Questioner, can bool) tools.Questioner {
	if !can {
		return nil
	}
	return q
}
