package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/pillion-dev/pillion/tools/permission"
)

const (
	// loopLength is how often the same calls repeat with the same results before the person is asked; OpenCode's figure.
	loopLength = 3
	// longestLoop is the largest number of different calls that are recognised as a cycle.
	longestLoop = 3
	// failingCalls is how many calls in a row, whatever they are, may fail before the person is asked.
	failingCalls = 12
)

// seed differs between processes, which is harmless: hashes are compared within one turn only.
var seed = maphash.MakeSeed()

// loopStep holds hashes of a call and its result: outputs are long, and only their equality matters.
type loopStep struct{ call, result uint64 }

// loopWatch looks for repeated calls in one turn, across its steps.
type loopWatch struct {
	last    []loopStep // the newest calls, at most twice the longest cycle
	failing int        // calls in a row that failed
	stuck   string     // why the turn must end: it repeats itself and no user is connected to allow that; empty: it may continue
}

// checkForLoops counts the calls of a step and asks the person when they repeat: one call three times with the same result, a cycle of two
// or three calls (A B A B, A B C A B C) with the same results, or only failed calls. The turn ends after a rejection without a message. It
// also ends when no user can answer: a run without a terminal would otherwise spend money without end.
func (t *turn) checkForLoops(ctx context.Context, calls []*call) {
	for _, c := range calls {
		d := c.snapshot()
		if c.seen || d.ErrorKind == "cancelled" || d.ErrorKind == "not_run" || d.ErrorKind == "cut" {
			continue
		}
		c.seen = true
		why := t.loop.add(c, d)
		if why == "" || ctx.Err() != nil || t.rejected.Load() || t.loop.stuck != "" {
			continue
		}
		_, err := t.s.gate.Ask(ctx, permission.Request{
			SessionID: t.s.ID(), CallID: c.id, Tool: c.name, Permission: LoopPermission, Patterns: []string{c.name}, Always: []string{c.name},
			Title: "Let the agent repeat itself?", Why: why, Metadata: map[string]any{"tool": c.name, "input": d.Input},
		})
		t.loop.last, t.loop.failing = nil, 0 // counting starts again for the next question
		var rejected *permission.RejectedError
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, permission.ErrDenied), errors.As(err, &rejected) && rejected.Unanswered:
			t.loop.stuck = why
		case rejectedWithoutMessage(err):
			t.rejected.Store(true)
		default:
			c.note = why + " " + err.Error()
		}
	}
}

// LoopPermission is the permission to continue with repeated calls; OpenCode's name.
const LoopPermission = "doom_loop"

// add records a finished call. why is empty, or tells a person what repeats. A different result makes a different step: polling a build
// that makes progress is not a loop. A rejection does not count as a failure, because the person decided it.
func (w *loopWatch) add(c *call, d ToolData) (why string) {
	s := loopStep{call: c.hash(), result: maphash.String(seed, string(d.Status)+d.Output+"\x00"+d.Error)}
	if w.last = append(w.last, s); len(w.last) > 2*longestLoop {
		w.last = w.last[1:]
	}
	if w.failing++; !broughtNothing(d) {
		w.failing = 0
	}
	for period := 1; period <= longestLoop; period++ {
		times := 2
		if period == 1 {
			times = loopLength
		}
		if !repeats(w.last, period, times) {
			continue
		}
		if period == 1 {
			return fmt.Sprintf("The agent called %s %d times in a row with the same arguments and got the same result.", c.name, loopLength)
		}
		return fmt.Sprintf("The agent repeats itself: it made the same %d calls twice in the same order (the last is %s) and got the same results.", period, c.name)
	}
	if w.failing >= failingCalls {
		return fmt.Sprintf("The last %d calls of the agent all failed (the last is %s).", w.failing, c.name)
	}
	return ""
}

// broughtNothing reports whether a call failed: it ended in an error other than a person's rejection, or it was a command with an exit code
// other than 0, which is no error of the tool.
func broughtNothing(d ToolData) bool {
	switch exit := d.Metadata["exit"].(type) {
	case int:
		if exit != 0 {
			return true
		}
	case float64: // decoded from JSON, such as the result of a draft's worker
		if exit != 0 {
			return true
		}
	}
	return d.Status == ToolError && d.ErrorKind != "rejected"
}

// repeats reports whether the newest steps are the same period calls, times times in a row.
func repeats(steps []loopStep, period, times int) bool {
	n := period * times
	if len(steps) < n {
		return false
	}
	end := steps[len(steps)-n:]
	for i := period; i < n; i++ {
		if end[i] != end[i-period] {
			return false
		}
	}
	return true
}

// hash is equal for the same tool and arguments, whatever their white space and order of keys.
func (c *call) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(c.name)
	h.WriteByte(0)
	raw := c.raw.bytes()
	var v any
	if len(raw) < longText && json.Unmarshal(raw, &v) == nil { // a longer text is not written twice in two ways
		raw, _ = json.Marshal(v)
	}
	h.Write(raw)
	return h.Sum64()
}
