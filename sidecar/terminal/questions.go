package terminal

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools"
)

// AskQuestions asks the question tool's questions, one after the other. It fails with tools.ErrDismissed when no user
// can answer or one of them is dismissed; answers given before that are dropped.
func (t *approvals) AskQuestions(ctx context.Context, _ *tools.Call, qs []tools.Question) ([][]string, error) {
	if t.keys == nil || t.approve != Ask {
		return nil, tools.ErrDismissed
	}
	defer t.waiting.turn()()
	asked := t.now()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.resume(asked)
	}()
	var out [][]string
	for _, q := range qs {
		t.mu.Lock()
		t.waitFor(activity{})
		t.endLine()
		t.line("")
		t.line(t.paint(bold, "? "+Clean(q.Question)))
		for i, o := range q.Options {
			t.line(fmt.Sprintf("  %d  %s  %s", i+1, Clean(o.Label), t.paint(dim, Clean(o.Description))))
		}
		t.mu.Unlock()
		t.keys.Discard() // typed before the question could be read
		how := "  number"
		if q.Multiple {
			how = "  numbers, separated by commas"
		}
		// Own words are allowed unless the model has excluded them.
		if q.Custom == nil || *q.Custom {
			how += " or your own words"
		}
		for ok := false; !ok; {
			answer, err := t.words(ctx, how+" (enter dismisses): ")
			if err != nil {
				return nil, err
			}
			if answer == "" {
				return nil, tools.ErrDismissed
			}
			var labels []string
			if labels, ok = choose(q, answer); ok {
				out = append(out, labels)
			}
		}
	}
	return out, nil
}

// choose turns "1, 3" and the options' own words, or how they begin, into labels; anything else is the person's own
// words. ok is false for words where only the options count.
func choose(q tools.Question, answer string) (labels []string, ok bool) {
	// Own words may hold a comma, so a single answer is not split.
	parts := []string{answer}
	if q.Multiple {
		parts = strings.Split(answer, ",")
	}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		// A number names an option by its place, from 1.
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 1 + meant(q.Options, part)
		}
		if n < 1 || n > len(q.Options) {
			// One part that is not an option makes the whole answer the person's own words.
			return []string{answer}, q.Custom == nil || *q.Custom
		}
		labels = append(labels, q.Options[n-1].Label)
	}
	return labels, true
}

// meant is the one option that a word names or begins, like y for Yes; -1 when there is none, or more than one. An
// option of exactly that name wins over those that only begin with it.
func meant(options []tools.Option, word string) int {
	found := -1
	for i, o := range options {
		if strings.EqualFold(o.Label, word) {
			return i
		}
		if len(word) > 0 && len(word) <= len(o.Label) && strings.EqualFold(o.Label[:len(word)], word) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}
