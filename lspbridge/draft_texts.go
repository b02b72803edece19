package lspbridge

import (
	"context"
	"slices"
)

// textsKey is where a context carries the texts of WithTexts.
type textsKey struct{}

// WithTexts returns a context whose questions the servers answer about other texts than the project's: those of a draft.
// The texts are laid over the documents for one question and taken off after it, as for a check. They travel in the
// context because every question of the Manager takes them in the same way, and none of them is about drafts.
func WithTexts(ctx context.Context, texts []Proposal) context.Context {
	if len(texts) == 0 {
		return ctx
	}
	return context.WithValue(ctx, textsKey{}, texts)
}

// Texts are those that a context's questions are about; nil: the project's own.
func Texts(ctx context.Context) []Proposal {
	texts, _ := ctx.Value(textsKey{}).([]Proposal)
	return texts
}

// layTexts lays the context's texts over the documents of a server, those that it serves. The caller has the documents
// and calls undo before it releases them.
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
