package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/pillion-dev/pillion/tools/permission"
)

// loopLength is how often a call is made with the same result before the person is asked; OpenCode's figure.
const loopLength = 3

var seed = maphash.MakeSeed()

// step of a loop: what was called, and what came of it.
type loopStep struct{ call, result uint64 }

// loopWatch sees all calls of a turn, across its steps.
type loopWatch struct {
	last    []loopStep      // at most four
	blocked map[uint64]bool // calls a rule forbids to repeat
}

// watch counts the step's calls and asks when they go in circles: one call three times with one result, or two by
// turns (A B A B) with theirs.
func (t *turn) watch(ctx context.Context, calls []*call) {
	for _, c := range calls {
		d := c.snapshot()
		if c.seen || d.ErrorKind == "cancelled" || d.ErrorKind == "not_run" || d.ErrorKind == "cut" || d.ErrorKind == "doom_loop" {
			continue
		}
		c.seen = true
		why := t.loop.add(c, d)
		if why == "" || ctx.Err() != nil || t.rejected.Load() {
			continue
		}
		_, err := t.s.gate.Ask(ctx, permission.Request{
			SessionID: t.s.ID(), CallID: c.id, Tool: c.name, Permission: "doom_loop", Patterns: []string{c.name}, Always: []string{c.name},
			Title: "Let the agent repeat itself?", Why: why, Metadata: map[string]any{"tool": c.name, "input": d.Input},
		})
		t.loop.last = nil // asked; it takes as many again to ask again
		switch {
		case err == nil || ctx.Err() != nil:
		case wordless(err):
			t.rejected.Store(true)
		default:
			c.note = why + " " + err.Error()
			if errors.Is(err, permission.ErrDenied) || t.s.rt.o.Asker == nil {
				t.loop.block(c)
			}
		}
	}
}

// add takes a call in; why is set when it closes a circle.
func (w *loopWatch) add(c *call, d ToolData) (why string) {
	s := loopStep{call: c.hash(), result: maphash.String(seed, string(d.Status)+d.Output+"\x00"+d.Error)}
	if w.last = append(w.last, s); len(w.last) > 4 {
		w.last = w.last[1:]
	}
	n := len(w.last)
	if n >= loopLength && w.last[n-2] == s && w.last[n-3] == s {
		return fmt.Sprintf("The agent called %s %d times in a row with the same arguments and got the same result.", c.name, loopLength)
	}
	if n == 4 && w.last[0] == w.last[2] && w.last[1] == w.last[3] && w.last[0] != w.last[1] {
		return fmt.Sprintf("The agent goes in circles: it made the same two calls twice by turns (the last is %s) and got the same results.", c.name)
	}
	return ""
}

func (w *loopWatch) block(c *call) {
	if w.blocked == nil {
		w.blocked = map[uint64]bool{}
	}
	w.blocked[c.hash()] = true
}

// isBlocked only reads: calls that run beside each other ask.
func (w *loopWatch) isBlocked(c *call) bool { return len(w.blocked) > 0 && w.blocked[c.hash()] }

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
