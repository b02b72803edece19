package agent

import (
	"context"
	"fmt"
)

// The styles of review. With preview the person decides before anything is written. With follow changes inside the
// project that the rules would ask about are written at once, and kept or undone afterwards.
const (
	ReviewPreview = "preview"
	ReviewFollow  = "follow"
)

// Review is the session's style, its own or the configured one.
func (s *Session) Review() string { return s.rt.ReviewOf(s.Info()) }

// ReviewOf is the style of a session with this head.
func (r *Runtime) ReviewOf(info SessionInfo) string {
	if info.Review == "" {
		info.Review = r.o.Configuration.Preferences(info.Cwd).Review
	}
	if info.Review != ReviewFollow {
		return ReviewPreview
	}
	return ReviewFollow
}

// SetReview changes the style. Changes that wait for an answer are accepted when it becomes follow.
func (s *Session) SetReview(style string) error {
	if style != ReviewPreview && style != ReviewFollow {
		return fmt.Errorf("the review style is %s or %s, not %q", ReviewPreview, ReviewFollow, style)
	}
	s.change(func(i *SessionInfo) { i.Review = style })
	if style == ReviewFollow {
		s.gate.Settle(context.Background())
	}
	return nil
}

// follows reports whether changes are written at once and reviewed afterwards. A sub-agent has no style of its own: its changes
// are reviewed like those of the session it works for.
func (s *Session) follows() bool { return s.Top().Review() == ReviewFollow }
