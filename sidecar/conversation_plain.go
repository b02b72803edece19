package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"github.com/pillion-dev/pillion/sidecar/terminal"
)

// prompter reads what the person types into a conversation.
type prompter interface {
	// Run reads prompts until the person ends the conversation (nil) or ctx ends (its error).
	Run(ctx context.Context) error
	// Close ends Run.
	Close()
}

// plainPrompt reads a conversation's prompts line by line, for screen readers and for terminals that cannot move their cursor. A backslash
// at the end of a line continues it in the next one. While a turn runs nothing is read: a prompt that appeared would interrupt what is
// being read out.
type plainPrompt struct {
	c      *conversation
	closed atomic.Bool
}

func (p *plainPrompt) Close() { p.closed.Store(true) }

func (p *plainPrompt) Run(ctx context.Context) error {
	for !p.closed.Load() {
		text, err := p.read(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case text == "":
			continue
		}
		p.carryOut(ctx, text)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// read reads one prompt.
func (p *plainPrompt) read(ctx context.Context) (string, error) {
	var whole strings.Builder
	for question := "> "; ; question = "… " {
		line, err := p.c.t.ReadLine(ctx, question)
		if err != nil {
			return "", err
		}
		begun, more := strings.CutSuffix(line, `\`)
		whole.WriteString(begun)
		if !more {
			return whole.String(), nil
		}
		whole.WriteString("\n")
	}
}

// carryOut carries out a prompt and waits until the conversation rests. The first Ctrl-C stops the turn, the second one the program.
func (p *plainPrompt) carryOut(ctx context.Context, text string) {
	defer interrupts(p.c.stop)()
	select {
	case <-p.c.rests: // of a turn that somebody else began
	default:
	}
	if !p.c.take(ctx, terminal.Prompt{Text: text}) {
		return
	}
	select {
	case <-p.c.rests:
	case <-ctx.Done():
	}
}
