package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
)

const (
	// The waits are 1, 2, 4 and 8 seconds; see provider.Backoff.
	maxAttempts = 5                // of one request, the first included; the waits between them add up to about 15 seconds
	longestWait = 10 * time.Minute // what a provider may ask to wait; beyond it the person decides
)

// tooLongAdvice ends the message of every provider.ErrContextLength that ends a turn. The provider's message leaves it
// out: the agent compacts first, and a person has to act only when that did not help.
const tooLongAdvice = "; start a new session or choose a model with a larger context"

// answer sends the step's request until the model has answered, and repeats what may succeed later. It returns an answer and an
// error when the stream broke after calls were complete: those calls may have run, so they stay and the history continues after
// them. An error alone means that there is no answer. last is the step after the allowed ones: the model is told to sum up.
func (t *turn) answer(ctx context.Context, set *setup, last bool) (*answer, error) {
	req := &provider.Request{
		Model: set.model, System: t.system, Tools: set.specs,
		Temperature: set.agent.Temperature, TopP: set.agent.TopP, Effort: cmp.Or(set.info.Effort, set.agent.Variant), SessionID: set.info.ID,
		Options: set.agent.Options,
	}
	if e := t.s.rt.extensions(set.info.Cwd); e.Params != nil {
		// A plugin may change the request of this step; what it sets holds for the retries too.
		e.Params(ctx, set.info, req)
	}
	converse := func() {
		if req.Messages = t.s.hist.messages; last {
			// Only for this request: it is not part of what was said.
			// The slice is cut to its length first, so that append copies it and the session's history stays as it
			// is.
			req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], provider.Message{
				ID: newID("msg_"), Role: provider.RoleUser,
				Parts: []provider.Part{{Type: provider.PartText, Synthetic: true, Text: fmt.Sprintf(stepsPrompt(), t.steps(set.agent))}},
			})
		}
	}
	converse()
	// A refusal may have another cause than the files; then they are put back.
	withFiles := t.s.hist.messages // as it was before the files that a provider refused were taken out
	var said []byte                // the text of the answers that broke off, which the next one may repeat
	for attempt := 1; ; attempt++ {
		a := t.newAnswer(set)
		// The model often begins its answer anew, so what was said is compared and not shown twice.
		if len(said) > 0 {
			a.echo = &echo{want: said}
		}
		err := a.stream(ctx, t.s.spans.traced(set.via), req)
		if err == nil {
			// Messages up to here are known to be acceptable, so a refusal is about one behind them.
			t.s.hist.accepted = len(t.s.hist.messages)
		}
		if err == nil || ctx.Err() != nil {
			return a, nil // cancelled: finish answers what there is
		}
		var perr *provider.Error
		// An error of another type is treated like a failure of the server, which may pass.
		if !errors.As(err, &perr) {
			perr = &provider.Error{Kind: provider.ErrServer, Message: err.Error(), Err: err}
		}
		if a.completeCalls() > 0 {
			t.s.Notice("warning", "The answer broke off ("+perr.Message+"). The calls that were complete are kept; the model continues from there.")
			return a, perr
		}
		// Once in a turn; see tooLongError.
		if perr.Kind == provider.ErrContextLength && !t.shrunk {
			t.drop(set, a, perr)
			return nil, &tooLongError{perr}
		}
		if perr.Kind == provider.ErrInvalid && a.isEmpty() {
			if names := t.s.hist.dropFiles(trimDot(perr.Message)); len(names) > 0 {
				t.drop(set, a, perr)
				t.s.Notice("warning", "The provider refused the request: "+trimDot(perr.Message)+". It is repeated without "+strings.Join(names, ", ")+".")
				converse()
				continue
			}
			t.s.hist.messages = withFiles // it was not about the files: they may be sent with another model
		}
		wait := t.s.rt.backoff(attempt, perr)
		if !perr.Retriable() || attempt == maxAttempts || wait > longestWait {
			return t.giveUp(set, a, perr, attempt, wait)
		}
		if a.isEmpty() {
			t.drop(set, a, perr)
		} else {
			// What the person has read stays, and the model is shown its own beginning.
			said = append(said, t.keepPartial(set, a, perr)...)
			converse()
		}
		t.s.emit(EventNotice, NoticeData{Level: "warning", Attempt: attempt + 1, Until: now().Add(wait),
			Text: fmt.Sprintf("%s. Trying again in %s (attempt %d of %d).", t.s.mask(trimDot(perr.Message)), wait.Round(100*time.Millisecond), attempt+1, maxAttempts)})
		if !pause(ctx, wait) {
			// cancelled while it waited: there is no answer that could be kept
			return nil, ctx.Err()
		}
	}
}

// tooLongError means that the conversation does not fit the model, and that this turn has not compacted it yet.
type tooLongError struct{ said *provider.Error }

func (e *tooLongError) Error() string { return e.said.Message }

// shrink compacts the conversation after a provider refused it as too long, once in a turn. The error says what a person can do.
func (t *turn) shrink(ctx context.Context, set *setup, refused *tooLongError) error {
	// set before the attempt, so that a failed compaction is not tried again
	t.shrunk = true
	_, err := t.compact(ctx, set, compaction{why: "the conversation is too long for the model", auto: true, hard: true})
	if err == nil {
		return nil
	}
	text := trimDot(refused.said.Message)
	if !errors.Is(err, ErrNothingToCompact) {
		text += "; compacting the conversation failed (" + trimDot(err.Error()) + ")"
	}
	text += tooLongAdvice
	// A copy: the provider's error stays as it was.
	shown := *refused.said
	shown.Message, shown.Err = text+".", refused.said
	return &shown
}

// drop closes an answer whose request is repeated: its text stays in the transcript, marked as dropped, and is not part of the
// history. Its tokens count, because they were paid for.
func (t *turn) drop(set *setup, a *answer, why error) {
	a.abandonCalls("The answer broke off before this call was complete; the request is repeated.")
	message, _ := a.messages(set.model.String(), false)
	step := StepData{Message: message, Usage: a.usage, Cost: provider.Cost(set.model, a.usage), Error: t.s.mask(why.Error()), Dropped: true}
	t.s.emit(EventStep, step)
	t.end.Usage = sum(t.end.Usage, step.Usage)
	t.end.Cost += step.Cost
}

// giveUp ends the turn with a message that a person can act on. Partial text stays in the
// history, because the person has read it.
func (t *turn) giveUp(set *setup, a *answer, err *provider.Error, attempt int, wait time.Duration) (*answer, error) {
	text := trimDot(err.Message)
	switch {
	case err.Kind == provider.ErrContextLength:
		text += tooLongAdvice
	case wait > longestWait && err.Retriable():
		text += fmt.Sprintf(". The provider asks to wait %s: prompt again then, or choose another model", wait.Round(time.Second))
	case attempt > 1:
		text += fmt.Sprintf(". It failed %d times in a row: try again later, or choose another model", attempt)
	}
	// a copy, as in shrink
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

// trimDot removes dots and white space from the end, so that a message can be continued with "; ".
// Providers end their messages with a dot or not.
func trimDot(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '.' || s[len(s)-1] == ' ' || s[len(s)-1] == '\n') {
		s = s[:len(s)-1]
	}
	return s
}
