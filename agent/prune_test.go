package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

func TestOldOutputsArePruned(t *testing.T) {
	var script []answerFunc
	for i := range 12 {
		script = append(script, calls(fmt.Sprintf(`read {"text":"%d"}`, i)), says("ok"))
	}
	h := newHarness(t, append(script, says("after the restart"))...)
	big := strings.Repeat("x", 40_000) // about 10,000 tokens
	for i := range 12 {
		h.special[fmt.Sprint(i)] = func(context.Context, *tools.Call, string) error {
			return &tools.Error{Kind: "test", Message: big}
		}
	}
	h.model.info = provider.Model{Provider: "fake", ID: "m", Context: 1_000_000}
	s := h.session()
	for i := range 12 {
		h.prompt(s, fmt.Sprint("turn ", i))
	}
	reqs := h.model.seen()
	var dropped, kept int
	for _, m := range reqs[len(reqs)-1].Messages {
		for _, p := range m.Parts {
			switch {
			case p.Text == prunedText:
				dropped++
				if kept > 0 {
					t.Error("a newer output was dropped before an older one")
				}
			case len(p.Text) > 10_000:
				kept++
			}
		}
	}
	if dropped < 4 || kept < 4 || dropped+kept != 12 {
		t.Errorf("dropped %d, kept %d", dropped, kept)
	}
	if n := len(ofType[PruneData](h.events(s), EventPrune)); n == 0 || n > 4 {
		t.Errorf("%d prunings; each costs a cold cache", n)
	}
	h.consistent(s)
	before := string(encode(s.hist.messages))
	h.restart()
	s = h.load(s.ID())
	if string(encode(s.hist.messages)) != before {
		t.Error("the pruned history is another after a restart")
	}
	h.prompt(s, "go on")
	h.consistent(s)
}
