package agent

import (
	"context"
	"slices"
)

// The review styles. With preview the person decides before anything is written. With follow, changes inside the project that need approval
// by the rules are written at once, and kept or undone afterwards. With draft, a turn and its commands work in a copy-on-write view of the
// project, and the turn's changes are proposed at its end.
const (
	ReviewPreview = "preview"
	ReviewFollow  = "follow"
	ReviewDraft   = "draft"
)

// ReviewStyles are the styles that a person can choose.
var ReviewStyles = []string{ReviewPreview, ReviewFollow, ReviewDraft}

// Drafts keep the changes of sessions with ReviewDraft until the person decides on them.
type Drafts interface {
	// Begin is called when a turn of a session that a person talks to begins. It does not wait: what a draft needs is started beside the
	// model's answer, so that the first call finds it ready.
	Begin(s *Session)
	// Finish is called when a turn of a session that a person talks to ends. It proposes the changes in the session's draft, if there is
	// one. round counts from 0 how often this turn was continued by Finish. may means that the model can still be asked to continue. A
	// non-empty result goes to the model, and the turn continues: problems to fix before a person is asked, or the person's own message.
	// over: the person rejected without a message, so the turn ends, and the model reads again with the next prompt.
	Finish(ctx context.Context, s *Session, round int, may bool) (again string, over bool)
	// Interrupted is called instead of Finish when a turn was cancelled or has failed: the draft is kept for the next turn.
	Interrupted(s *Session)
}

// LastWords returns the text of the newest answer in the present turn that has any. Only Drafts.Finish may call it, while the turn's
// goroutine waits for Finish: the history has no lock.
func (s *Session) LastWords() string { return s.hist.lastWords() }

// Review returns the session's review style, its own or the configured one.
func (h *Head) Review() string { return h.rt.ReviewOf(h.Info()) }

// ReviewOf returns the review style of a session with this head.
func (r *directories) ReviewOf(info SessionInfo) string {
	// A session without its own style follows the configuration, also when that changes.
	if p := r.o.Configuration.Preferences(info.Cwd); info.Review == "" || p.ReviewFixed != "" {
		info.Review = p.Review
	}
	if r.writesItself(info) {
		return ReviewDraft
	}
	// An unknown style, such as one of a later version, counts as the strictest.
	if !slices.Contains(ReviewStyles, info.Review) {
		return ReviewPreview
	}
	return info.Review
}

// ReviewsOf are the styles that have an effect on a session with this head: one, where the machine's settings fix it or the agent changes
// files by itself.
func (r *directories) ReviewsOf(info SessionInfo) []string {
	if r.o.Configuration.Preferences(info.Cwd).ReviewFixed != "" || r.writesItself(info) {
		return []string{r.ReviewOf(info)}
	}
	return ReviewStyles
}

// writesItself reports whether the session's model is an agent of another maker that changes files by itself.
func (r *directories) writesItself(info SessionInfo) bool {
	m, ok := r.o.Models.(ExternalModels)
	return ok && m.WritesItself(info.Cwd, info.Model)
}
