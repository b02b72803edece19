package agent

import (
	"slices"
	"testing"
)

// preferring is a configuration of nothing but preferences.
type preferring struct {
	Configuration
	p Preferences
}

func (c preferring) Preferences(string) Preferences { return c.p }

// writing are models that are agents of other makers, which change files by themselves.
type writing struct{ Models }

func (writing) WritesItself(_, model string) bool { return model == "agents/codex" }

func TestReviewStylesThatHaveAnEffect(t *testing.T) {
	for _, c := range []struct {
		p     Preferences
		model string
		own   string
		want  []string
	}{
		{model: "test/m", want: ReviewStyles},
		{model: "test/m", own: ReviewFollow, want: ReviewStyles},
		{model: "agents/codex", own: ReviewFollow, want: []string{ReviewDraft}},
		{p: Preferences{Review: ReviewPreview, ReviewFixed: "a:1:1"}, model: "test/m", own: ReviewFollow, want: []string{ReviewPreview}},
		// What the machine decides cannot make such an agent write without a draft.
		{p: Preferences{Review: ReviewFollow, ReviewFixed: "a:1:1"}, model: "agents/codex", want: []string{ReviewDraft}},
	} {
		r := &directories{o: Options{Configuration: preferring{p: c.p}, Models: writing{}}}
		info := SessionInfo{Model: c.model, Review: c.own}
		if got := r.ReviewsOf(info); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
		if !slices.Contains(c.want, r.ReviewOf(info)) {
			t.Errorf("%+v: the session works with %s", c, r.ReviewOf(info))
		}
	}
}
