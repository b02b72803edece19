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
	// loopLength is how often a call is made with the same result before the user is asked; OpenCode's figure.
	loopLength = 3
	// longestLoop is how many different calls a circle may have.
	longestLoop = 3
	// failingCalls is how many calls may fail in a row, however they differ, before the user is asked.
	failingCalls = 12
)

// seed differs between processes, which is harmless: hashes are compared within one turn
// only.
var seed = maphash.MakeSeed()

// loopStep is a call and its result, as hashes: outputs are long and only equality matters.
type loopStep struct{ call, result uint64 }

// loopWatch looks at all calls of a turn, across its steps.
type loopWatch struct {
	last    []loopStep // at most as many as the longest circle twice
	failing int        // calls in a row that failed
	stuck   string     // why the turn ends: it repeats itself, and no user could approve that; empty: it does not
}

// checkForLoops counts the step's calls and asks the user when they repeat: one call three
// times with one result, two or three calls in turn (A B A B, A B C A B C) with theirs, or
// one failing call after another. A rejection without words ends the turn. So does a
// question that no user can answer: a run without a terminal would otherwise spend money
// for ever.
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

// add notes a finished call. why is empty, or says for a person what repeats. A different result makes a call different: polling
// a build that makes progress is no loop. A rejection does not count as a failure, since the person has decided it.
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
		return fmt.Sprintf("The agent goes in circles: it made the same %d calls twice in the same order (the last is %s) and got the same results.", period, c.name)
	}
	if w.failing >= failingCalls {
		return fmt.Sprintf("The last %d calls of the agent all failed (the last is %s).", w.failing, c.name)
	}
	return ""
}

// broughtNothing says that a call brought nothing: it ended in an error that no person decided, or it is a command that did (an exit code other
// than 0, which is a result like others to the tool).
func broughtNothing(d ToolData) bool {
	switch exit := d.Metadata["exit"].(type) {
	case int:
		if exit != 0 {
			return true
		}
	case float64: // after a way through JSON, from a draft's worker
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

// hash is the same for the same tool and arguments, however they are spaced and ordered.
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
