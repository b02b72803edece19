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
	// The waits between attempts are 1, 2, 4 and 8 seconds; see provider.Backoff.
	maxAttempts = 5                // attempts of one request, the first included
	longestWait = 10 * time.Minute // the longest wait that a provider may ask for; for a longer one the turn ends and the person decides
)

// tooLongAdvice is appended to the message of a provider.ErrContextLength that ends a turn. It is not part of the provider's message,
// because the loop compacts first and a person must act only if that did not help.
const tooLongAdvice = "; start a new session or choose a model with a larger context"

// answer sends the step's request until the model has answered, and retries temporary failures. An answer together with an error means that
// the stream broke after calls were complete: they may have run, so they are kept and the conversation continues after them. An error alone
// means that there is no answer. last marks the extra step after the step limit, in which the model is asked to sum up.
func (t *turn) answer(ctx context.Context, set *setup, last bool) (*answer, error) {
	req := &provider.Request{
		Model: set.model, System: t.system, Tools: set.specs,
		Temperature: set.agent.Temperature, TopP: set.agent.TopP, Effort: cmp.Or(set.info.Effort, set.agent.Variant), SessionID: set.info.ID,
		Options: set.agent.Options,
	}
	if e := t.s.rt.extensions(set.info.Cwd); e.Params != nil {
		// A plugin changes the request once; retries send the same request.
		e.Params(ctx, set.info, req)
	}
	converse := func() {
		req.Messages = t.s.hist.messages
		if x := t.s.rt.extensions(set.info.Cwd); x.Messages != nil {
			req.Messages = x.Messages(ctx, set.info, req.Messages)
		}
		req.Messages = t.s.regroup(set.offered, req.Messages)
		if last {
			// This message is for one request only and not part of the conversation. The slice is clipped, so that append copies it instead
			// of writing into the session's history.
			req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], provider.Message{
				ID: newID("msg_"), Role: provider.RoleUser,
				Parts: []provider.Part{{Type: provider.PartText, Synthetic: true, Text: fmt.Sprintf(stepsPrompt(), t.steps(set.agent))}},
			})
		}
	}
	converse()
	// The files are put back when the refusal turns out not to be about them.
	withFiles := t.s.hist.messages // the messages with their files
	var refused *RefusalData       // the files that were left out after a refusal
	var said []byte                // text of the answers that broke off, which the next answer may repeat
	for attempt := 1; ; attempt++ {
		a := t.newAnswer(set)
		// Many models begin their answer again; echo removes what they repeat.
		if len(said) > 0 {
			a.echo = &echo{want: said}
		}
		err := a.stream(ctx, t.s.spans.traced(a.conduct(set.via)), req)
		if err == nil {
			if refused != nil {
				t.s.emit(EventRefusal, *refused) // it was about the files, so another process does not send them again
			}
			// The provider has accepted all messages so far, so a later refusal is about a later one.
			t.s.hist.accepted = len(t.s.hist.messages)
		}
		if err == nil || ctx.Err() != nil {
			return a, nil // after a cancel finish keeps what has arrived
		}
		var perr *provider.Error
		// An error of another type counts as a failure of the server, which is retried.
		if !errors.As(err, &perr) {
			perr = &provider.Error{Kind: provider.ErrServer, Message: err.Error(), Err: err}
		}
		// An external agent's calls have ended and it remembers them, so a retry would repeat them; the person decides how to continue.
		if isExternal(set.via) && len(a.calls) > 0 {
			return a, perr
		}
		if a.completeCalls() > 0 {
			t.s.Notice("warning", "The answer broke off ("+perr.Message+"). The calls that were complete are kept; the model continues from there.")
			return a, perr
		}
		// Once in a turn: run compacts the conversation and repeats the step.
		if perr.Kind == provider.ErrContextLength && !t.shrunk {
			t.drop(set, a, perr)
			return nil, &tooLongError{perr}
		}
		if perr.Kind == provider.ErrInvalid && a.isEmpty() {
			if refused == nil {
				if refused = t.s.hist.refused(t.s.mask(trimDot(perr.Message))); refused != nil {
					t.s.hist.leaveOut(*refused)
					t.drop(set, a, perr)
					t.s.Notice("warning", "The provider refused the request: "+refused.Why+". It is repeated without "+strings.Join(refused.Files, ", ")+".")
					converse()
					continue
				}
			}
			t.s.hist.messages = withFiles // the refusal was not about the files; another model may accept them
		}
		wait := t.s.rt.backoff(attempt, perr)
		if !perr.Retriable() || attempt == maxAttempts || wait > longestWait {
			return t.giveUp(set, a, perr, attempt, wait)
		}
		if a.isEmpty() {
			t.drop(set, a, perr)
		} else {
			// The person has read the text, so it is kept; the model sees its own beginning and is asked to continue.
			said = append(said, t.keepPartial(set, a, perr)...)
			converse()
		}
		t.s.emit(EventNotice, NoticeData{Level: "warning", Attempt: attempt + 1, Until: now().Add(wait),
			Text: fmt.Sprintf("%s. Trying again in %s (attempt %d of %d).", t.s.mask(trimDot(perr.Message)), wait.Round(100*time.Millisecond), attempt+1, maxAttempts)})
		if !pause(ctx, wait) {
			// Cancelled during the wait: there is no answer to keep.
			return nil, ctx.Err()
		}
	}
}

// tooLongError means that the conversation does not fit the model, and that this turn has not yet compacted it for that reason.
type tooLongError struct{ said *provider.Error }

func (e *tooLongError) Error() string { return e.said.Message }

// shrink compacts the conversation after a provider refused it as too long, once in a turn. Its error tells the person what to do.
func (t *turn) shrink(ctx context.Context, set *setup, refused *tooLongError) error {
	// Set before the attempt, so that a failed compaction is not repeated.
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
	// A copy, because the provider's error must stay as it was.
	shown := *refused.said
	shown.Message, shown.Err = text+".", refused.said
	return &shown
}

// drop closes an answer whose request is repeated. The transcript keeps its text, marked as dropped; the history does not. Its tokens
// count, because they were paid for.
func (t *turn) drop(set *setup, a *answer, why error) {
	a.abandonCalls("The answer broke off before this call was complete; the request is repeated.")
	message, _ := a.messages(set.model.String(), false)
	step := StepData{Message: message, Usage: a.usage, Cost: provider.Cost(set.model, a.usage), Error: t.s.mask(why.Error()), Dropped: true}
	t.s.emit(EventStep, step)
	t.end.Usage = sum(t.end.Usage, step.Usage)
	t.end.Cost += step.Cost
}

// giveUp ends the turn with a message that tells the person what to do. The history keeps partial text, because the person has read it.
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
	// A copy: the provider's error must not change, as in shrink.
	shown := *err
	shown.Message, shown.Err = text+".", err
	a.abandonCalls("The answer broke off before this call was complete.")
	if a.isEmpty() {
		t.drop(set, a, &shown)
		return nil, &shown
	}
	a.calls = nil // none was complete, and abandonCalls has given each its final state
	return a, &shown
}

// trimDot removes dots and white space from the end of a provider's message, so that "; " and more text can follow.
func trimDot(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '.' || s[len(s)-1] == ' ' || s[len(s)-1] == '\n') {
		s = s[:len(s)-1]
	}
	return s
}
