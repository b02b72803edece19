package lspbridge

import (
	"context"
	"slices"
)

// textsKey is the context key of the texts of WithTexts.
type textsKey struct{}

// WithTexts returns a context whose questions are answered about other texts than the project's: those of a draft. The texts are laid over
// the documents for one question and removed after it, as for a check. They travel in the context because every question of the Manager
// handles them in the same way and none has a parameter for drafts.
func WithTexts(ctx context.Context, texts []Proposal) context.Context {
	if len(texts) == 0 {
		return ctx
	}
	return context.WithValue(ctx, textsKey{}, texts)
}

// Texts returns the texts that a context's questions are about; nil: the project's own.
func Texts(ctx context.Context) []Proposal {
	texts, _ := ctx.Value(textsKey{}).([]Proposal)
	return texts
}

// layTexts lays those of the context's texts over a server's documents that the server serves. The caller has acquired the documents, and
// must call undo before it releases them.
func (q questions) layTexts(ctx context.Context, s *slot, c *client) (undo func()) {
	var mine []Proposal
	for _, t := range Texts(ctx) {
		if slices.Contains(q.slotsFor(t.Path), s) {
			mine = append(mine, t)
		}
	}
	if len(mine) == 0 {
		return func() {}
	}
	laid := map[string]Proposal{}
	for _, t := range mine {
		laid[t.Path] = t
	}
	c.edits.laid.Store(&laid)
	takeOff := c.applyOverlay(mine)
	return func() {
		takeOff()
		c.edits.laid.Store(nil)
	}
}
