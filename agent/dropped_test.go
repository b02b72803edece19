package agent

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// A request that was refused and is repeated in another form is a step of the transcript all the same, marked as dropped, with the reason.
func TestARepeatedRequestIsInTheTranscript(t *testing.T) {
	file := Prompt{Parts: []provider.Part{{Type: provider.PartFile, Files: []provider.File{{Mime: "image/x-own", Name: "bad.x", Data: []byte("x")}}}}}
	text := Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: "second"}}}
	for _, c := range []struct {
		name   string
		script []answerFunc
		second Prompt
		why    string
	}{
		{"without the file that was refused", []answerFunc{fails(provider.ErrInvalid, "Could not process image."), says("Done.")}, file, "Could not process image"},
		{"with a summary", []answerFunc{fails(provider.ErrContextLength, "prompt is too long."), says("the summary"), says("Done.")}, text, "prompt is too long"},
	} {
		h := newHarness(t, append([]answerFunc{says(strings.Repeat("an answer ", 2000))}, c.script...)...)
		h.model.info = provider.Model{Provider: "fake", ID: "m"}
		s := h.session()
		h.prompt(s, "first")
		if end, err := s.Prompt(t.Context(), c.second); err != nil || end.Stop != TurnEnd {
			t.Errorf("%s: %+v, %v", c.name, end, err)
		}
		var dropped []string
		for _, step := range ofType[StepData](h.events(s), EventStep) {
			if step.Dropped {
				dropped = append(dropped, step.Error)
			}
		}
		if len(dropped) != 1 || !strings.Contains(dropped[0], c.why) {
			t.Errorf("%s: dropped %q, want one for %q", c.name, dropped, c.why)
		}
		h.consistent(s)
	}
}
