package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
)

const (
	maxAttempts = 5                // of one request, the first included
	longestWait = 10 * time.Minute // what a provider may ask to wait; beyond it the person decides
)

// answer asks the model until it has answered, repeating what may succeed later. It returns an answer with an error
// when the stream broke after calls were complete: those count, and the history goes on behind them. An error alone
// means that there is nothing to go on with.
func (t *turn) answer(ctx context.Context, set *setup, last bool) (*answer, error) {
	req := &provider.Request{
		Model: set.model, System: t.system, Messages: t.s.hist.messages, Tools: set.specs,
		Temperature: set.agent.Temperature, TopP: set.agent.TopP, Effort: set.info.Effort, SessionID: set.info.ID,
	}
	if last {
		// Only for this request: it is not part of what was said.
		req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], provider.Message{
			ID: newID("msg_"), Role: provider.RoleUser,
			Parts: []provider.Part{{Type: provider.PartText, Synthetic: true, Text: fmt.Sprintf(stepsPrompt(), steps(set.agent))}},
		})
	}
	for attempt := 1; ; attempt++ {
		a := t.newAnswer(set)
		err := a.stream(ctx, set.via, req)
		if err == nil || ctx.Err() != nil {
			return a, nil // cancelled: finish answers what there is
		}
		var perr *provider.Error
		if !errors.As(err, &perr) {
			perr = &provider.Error{Kind: provider.ErrServer, Message: err.Error(), Err: err}
		}
		if a.completeCalls() > 0 {
			t.notice("warning", "The answer broke off ("+perr.Message+"). The calls that were complete are kept; the model goes on from there.")
			return a, perr
		}
		wait := t.s.rt.backoff(attempt, perr)
		if !perr.Retriable() || attempt == maxAttempts || wait > longestWait {
			return t.giveUp(set, a, perr, attempt, wait)
		}
		t.drop(set, a, perr)
		t.s.log.emit(EventNotice, NoticeData{Level: "warning", Attempt: attempt + 1, Until: now().Add(wait),
			Text: fmt.Sprintf("%s. Trying again in %s (attempt %d of %d).", trimDot(perr.Message), wait.Round(100*time.Millisecond), attempt+1, maxAttempts)})
		if !pause(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// drop closes an answer whose request is repeated: what it said stays in the transcript, marked, and out of the
// history.
func (t *turn) drop(set *setup, a *answer, why error) {
	a.abandonCalls("The answer broke off before this call was complete; the request is repeated.")
	message, _ := a.messages(set.model.String(), false)
	step := StepData{Message: message, Usage: a.usage, Cost: cost(set.model, a.usage), Error: why.Error(), Dropped: true}
	t.s.log.emit(EventStep, step)
	t.end.Usage = sum(t.end.Usage, step.Usage)
	t.end.Cost += step.Cost
}

// giveUp ends the turn with words a person can act on. Partial text stays in the history: the person has read it.
func (t *turn) giveUp(set *setup, a *answer, err *provider.Error, attempt int, wait time.Duration) (*answer, error) {
	text := trimDot(err.Message)
	switch {
	case err.Kind == provider.ErrContextLength && !strings.Contains(text, "start a new session"):
		text += "; start a new session or choose a model with a larger context"
	case wait > longestWait && err.Retriable():
		text += fmt.Sprintf(". The provider asks to wait %s: prompt again then, or choose another model", wait.Round(time.Second))
	case attempt > 1:
		text += fmt.Sprintf(". It failed %d times in a row: try again later, or choose another model", attempt)
	}
	shown := *err
	shown.Message, shown.Err = text+".", err
	a.abandonCalls("The answer broke off before this call was complete.")
	if a.isEmpty() {
		t.drop(set, a, &shown)
		return nil, &shown
	}
	a.calls = nil // none was complete, and all are answered
	return a, &shown
}

func trimDot(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '.' || s[len(s)-1] == ' ' || s[len(s)-1] == '\n') {
		s = s[:len(s)-1]
	}
	return s
}
