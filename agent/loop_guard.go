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
	// loopLength is how often a call is made with the same result before the person is asked; OpenCode's figure.
	loopLength = 3
	// longestLoop is how many different calls a circle may have to be recognised.
	longestLoop = 3
	// failingCalls is how many calls may fail in a row, however they differ, before the person is asked.
	failingCalls = 12
)

// seed differs between processes. That is harmless, because hashes are compared within one turn only.
var seed = maphash.MakeSeed()

// loopStep is a call and its result as hashes: outputs are long, and only their equality matters.
type loopStep struct{ call, result uint64 }

// loopWatch watches the calls of one turn, across its steps.
type loopWatch struct {
	last    []loopStep // the newest calls, at most twice the longest circle
	failing int        // calls in a row that failed
	stuck   string     // why the turn ends: it repeats itself and no user could approve that; empty: it does not
}

// checkForLoops counts the calls of a step and asks the person when they repeat: one call three times with one result, two or three calls
// in turn (A B A B, A B C A B C) with the same results, or one failed call after another. A rejection without a message ends the turn. So
// does a question that no user can answer: a run without a terminal would otherwise spend money without end.
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
		t.loop.last, t.loop.failing = nil, 0 // the next question comes after as many calls again
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

// LoopPermission is the permission to continue with calls that repeat; OpenCode's name.
const LoopPermission = "doom_loop"

// add notes a finished call. why is empty, or tells a person what repeats. A different result makes a different call: polling a build
// that makes progress is not a loop. A rejection is not a failure, because the person decided it.
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

// broughtNothing reports that a call had no use: it ended in an error that no person decided, or it is a command with an exit code other
// than 0, which is not an error to the tool.
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

// repeats reports that the newest steps are the same period calls, times times in a row.
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

// hash is equal for equal tools and arguments, whatever their white space and the order of their keys.
func (c *call) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(c.name)
	h.WriteByte(0)
	raw := []byte(c.raw.String())
	var v any
	if json.Unmarshal(raw, &v) == nil {
		raw, _ = json.Marshal(v)
	}
	h.Write(raw)
	return h.Sum64()
}
