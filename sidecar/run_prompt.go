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
// They are read again each time, since the configuration may have changed.
func allCommands(a *app.App, cwd string) []slash.Command {
	return slash.WithBuiltin(a.CommandsOf(cwd))
}

// expandPrompt makes the prompt of what was typed in a terminal. made is nil where a slash command has done all there is to do, and
// said is its answer.
func expandPrompt(ctx context.Context, a *app.App, s *agent.Session, text string) (made *agent.Prompt, said string, err error) {
	// A word behind a slash that is not a command is an ordinary prompt: paths begin with a slash, too.
	p := agent.Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: text}}}
	all := allCommands(a, s.Info().Cwd)
	c, args, ok := slash.Parse(p.Parts, all)
	switch {
	case ok && c.Expand != nil:
		p.Parts[0].Text = c.Expand(args)
	case ok && c.Run != nil:
		// A reviewer reads the whole event log, so it is made only for commands that may need it.
		r, err := reviewerOf(ctx, a, s)
		if err != nil {
			return nil, "", err
		}
		h := slash.Host{Session: s, Runtime: a.Runtime, All: all, Whole: a.Changes.Blobs.Load, Models: func(cwd string) []models.Choice { return a.Models.Choices(ctx, cwd) },
			Undoer: func() slash.Undoer { return r }}
		said, made, err := c.Run(ctx, h, args)
		return made, said, err
	}
	return &p, "", nil
}

// runPrompt runs what was typed, with more parts behind it, to the end of its turn. A turn that failed is not an error
// here: turn.Stop says how it ended. A command that needs no agent has no turn: said is its answer, or empty where the session's events
// were the answer.
func runPrompt(ctx context.Context, a *app.App, s *agent.Session, text string, more []provider.Part, limits agent.Limits) (turn agent.TurnData, said string, err error) {
	p, said, err := expandPrompt(ctx, a, s, text)
	if err != nil {
		return turn, "", err
	}
	if p == nil {
		turn.Stop = agent.TurnEnd
		return turn, said, nil
	}
	p.Parts = append(p.Parts, more...)
	p.Limits = limits
	turn, err = s.Prompt(ctx, *p)
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
