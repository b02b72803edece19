package agent

import (
	"context"
	"slices"
)

// The styles of review. With preview the person decides before anything is written. With follow changes inside the
// project that the rules would ask about are written at once, and kept or undone afterwards. With draft a turn works in a
// copy-on-write view of the project, commands included, and proposes at its end what it has done.
const (
	ReviewPreview = "preview"
	ReviewFollow  = "follow"
	ReviewDraft   = "draft"
)

// ReviewStyles are those that can be chosen.
var ReviewStyles = []string{ReviewPreview, ReviewFollow, ReviewDraft}

// Drafts hold what sessions with ReviewDraft do until the person has decided on it.
type Drafts interface {
	// Finish is called when a turn of a session that a person talks to comes to its end. It proposes what the session's
	// draft holds, if there is one. round counts how often this turn was sent back, from 0. may: the model can still be
	// asked to continue. A text that is not empty is for the model, and the turn continues with it: problems to fix before a
	// person is asked, or the person's own words.
	Finish(ctx context.Context, s *Session, round int, may bool) (again string)
	// Interrupted is called instead when a turn was cancelled or failed: the draft stays for the next one.
	Interrupted(s *Session)
}

// LastWords is the text of the last answer of the present turn that has any. It is called by Drafts.Finish, while the
// turn's own goroutine waits for that.
func (s *Session) LastWords() string { return s.hist.lastWords() }

// Review is the session's style, its own or the configured one.
func (h *Head) Review() string { return h.rt.ReviewOf(h.Info()) }

// ReviewOf is the style of a session with this head.
func (r *directories) ReviewOf(info SessionInfo) string {
	if info.Review == "" {
		// A session without a style of its own follows the configuration when that changes.
		info.Review = r.o.Configuration.Preferences(info.Cwd).Review
	}
	// An unknown style, of a newer version for example, is the strictest one.
	if !slices.Contains(ReviewStyles, info.Review) {
		return ReviewPreview
	}
	return info.Review
}
