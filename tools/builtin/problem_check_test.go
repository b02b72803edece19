package builtin

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// A missing server is worth a word to the model; that prose has none is not.
func TestProblemTextOfUncheckedFiles(t *testing.T) {
	set := change.New("c", []change.File{{Path: "/p/a.txt", Kind: change.Edit, Old: "a", New: "b"}})
	for _, c := range []struct {
		delta lspbridge.Delta
		want  string
	}{
		{lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Unavailable, Unserved: true, Reason: "no language server for .txt"}}, ""},
		{lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Unavailable, Reason: "pyright-langserver not found"}}, "\n\nNot checked by a language server (pyright-langserver not found)."},
		{lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}, ""},
	} {
		if got := problemText(&c.delta, set); got != c.want {
			t.Errorf("%+v: %q, want %q", c.delta, got, c.want)
		}
	}
}

// startingBridge has no answer the first times it is asked.
type startingBridge struct {
	fakeBridge
	asked *int
}

func (b startingBridge) Check(context.Context, []lspbridge.Proposal) lspbridge.Delta {
	if *b.asked++; *b.asked < 4 {
		return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Pending, Reason: fmt.Sprintf("it has stopped %d times and is being started again", (*b.asked+1)/2)}}
	}
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh, Fixed: make([]change.Problem, 1)}}
}

// "Not yet" is not the last word while the question stands: the servers are asked again, and the card says what has
// changed, each thing once.
func TestNotYetIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked int
		b := newBench(t, func(r permission.Request) (permission.Reply, error) {
			if d := r.Change.Verdict; d == nil || d.Certainty != change.Pending || d.Reason == "" {
				t.Errorf("asked with %+v", d)
			}
			time.Sleep(time.Minute)
			return yes(r)
		})
		b.env.Bridge = startingBridge{asked: &asked}
		if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, u := range b.updates {
			if d := u.Change.Verdict; d != nil && u.ChangeState == "proposed" {
				said = append(said, fmt.Sprint(d.Certainty, " ", d.Reason, len(d.Fixed)))
			}
		}
		want := "[pending it has stopped 1 times and is being started again0 pending it has stopped 2 times and is being started again0 fresh 1]"
		if got := fmt.Sprint(said); got != want || asked != 4 {
			t.Errorf("asked %d times, said\n%s, want\n%s", asked, got, want)
		}
	})
}
