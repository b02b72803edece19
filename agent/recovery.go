package agent

import (
	"context"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/change"
)

// recovery closes what a crash has left open in a session: its turn, calls, writes and restore.
type recovery struct {
	log    *EventLog
	head   *Head
	hist   *history
	keeper ChangeKeeper
}

// run closes everything that is open: calls get an "interrupted" result, partial text becomes a message, the turn ends as cancelled.
// Without this a provider would refuse the conversation, because calls lack results. It runs before the session is live, or on its runner;
// the caller holds the session's lock, so no other process is running that turn.
func (r recovery) run() {
	r.changes()
	h := r.hist
	var results []provider.Part
	var parts []provider.Part
	if text := h.text.String(); text != "" {
		parts = append(parts, provider.Part{Type: provider.PartText, Text: text})
	}
	closeCall := func(id string) ToolData {
		t := h.last[id].tool()
		if t.Status != ToolCompleted && t.Status != ToolError {
			t.Status, t.Error, t.ErrorKind, t.Ended = ToolError, interrupted, "interrupted", now()
			r.log.emit(EventTool, t)
		}
		return t
	}
	for _, id := range h.calls {
		t := closeCall(id)
		parts = append(parts, provider.Part{Type: provider.PartToolCall, CallID: t.CallID, Name: safeName(t.Tool), Input: inputJSON(t.Input)})
		results = append(results, resultPart(t))
		delete(h.last, id)
	}
	// The remaining calls were made by hand.
	for id := range h.last {
		closeCall(id)
		delete(h.last, id)
	}
	// Only a call by hand was open.
	if h.turn == nil {
		return
	}
	if h.msg != nil {
		step := StepData{Message: provider.Message{ID: h.msg.MessageID, Role: provider.RoleAssistant, Parts: parts, Model: h.msg.Model},
			Error: "interrupted: Pillion ended in the middle of this answer"}
		if len(results) > 0 {
			step.Results = &provider.Message{ID: h.msg.MessageID + "r", Role: provider.RoleTool, Parts: results}
		}
		r.log.emit(EventStep, step)
		h.step(step)
	}
	end := *h.turn
	end.Stop, end.Error = TurnCancelled, "Pillion ended in the middle of this turn. What was done until then is kept; prompt again to continue."
	r.log.emit(EventTurn, end)
	h.turn, h.cutOff = nil, end.Error
	r.head.adopt(h)
	h.clear()
}

// interrupted is the result, for the model, of a call that a crash cut off.
const interrupted = "This call was interrupted: Pillion ended before the call did. Changes that it had made are still there; look before you repeat it."

// changes closes change sets whose write was interrupted, and the restore that they belong to: ChangeKeeper.Recover compares the files with
// each set and returns whether it was applied or has failed. A restore without such a set has failed before it wrote anything.
func (r recovery) changes() {
	h := r.hist
	for id, d := range h.writing {
		delete(h.writing, id)
		ctx, cancel := context.WithTimeout(context.Background(), recoverLimit)
		d.State = r.keeper.Recover(ctx, r.head.Info(), d.Set)
		cancel()
		r.log.emitNow(EventChange, d)
		if h.restoring != nil && h.restoring.ChangeSet == id {
			end := *h.restoring
			if end.State = RestoreDone; d.State != change.Applied {
				end.State = RestoreFailed
			}
			r.log.emit(EventRestore, end)
			h.apply(Event{Type: EventRestore, Value: end})
		}
	}
	if h.restoring != nil { // the process crashed before it wrote anything
		end := *h.restoring
		end.State = RestoreFailed
		r.log.emit(EventRestore, end)
		h.restoring = nil
	}
}

// recoverLimit bounds the comparison of files, so that a network file system that hangs does not prevent the session from being opened.
const recoverLimit = 10 * time.Second
