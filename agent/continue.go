package agent

import (
	"bytes"

	"github.com/pillion-dev/pillion/agent/provider"
)

// continueText asks for the rest of an answer that broke off. Without "do not repeat" many models begin again.
const continueText = "The connection broke off in the middle of your answer above. Go on exactly where it stops; do not repeat what is there. A call that was not complete was not made: make it again."

// limitText asks for the rest of an answer that was cut at the output limit.
const limitText = "Your answer above was cut at the output limit. Go on exactly where it stops; do not repeat what is there."

// maxContinued is how many times in a row the loop continues an answer that was cut at the output limit.
const maxContinued = 4

// keepPartial closes an answer that broke off in its text. The person has read that text, so the transcript keeps it and the model is asked
// for the rest. It returns the text, with which echo compares the next answer.
func (t *turn) keepPartial(set *setup, a *answer, why error) []byte {
	a.abandonCalls("The answer broke off before this call was complete; the model continues from there.")
	a.calls = nil
	var said []byte
	for i := range a.parts {
		if a.parts[i].typ == provider.PartText {
			said = append(said, a.parts[i].text.String()...)
		}
	}
	message, _ := a.messages(set.model.String(), false)
	step := StepData{Message: message, Usage: a.usage, Cost: provider.Cost(set.model, a.usage), Error: t.s.mask(why.Error()), Cut: true}
	t.s.emit(EventStep, step)
	t.s.hist.add(step.Message, nil)
	t.end.Usage = sum(t.end.Usage, step.Usage)
	t.end.Cost += step.Cost
	t.s.listen(PromptData{MessageID: newID("msg_"), Parts: []provider.Part{{Type: provider.PartText, Text: continueText, Synthetic: true}}})
	return said
}

// echo drops from an answer what repeats the answer that broke off: many models begin again although they are told to continue, and the
// person would read everything twice. It holds text back only while that may still be a repetition.
type echo struct{ want, got []byte }

// next returns the text of a piece that is not a repetition. over means that nothing is held back any more, so the caller can drop the
// echo.
func (e *echo) next(piece string) (fresh string, over bool) {
	e.got = append(e.got, piece...)
	switch {
	case bytes.HasPrefix(e.got, e.want):
		return string(e.got[len(e.want):]), true
	case bytes.HasPrefix(e.want, e.got):
		return "", false
	}
	return string(e.got), true
}
