package acp

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools/change"
)

// showChange adds a change's diff to the card of its call, and sends the state of the change to an editor that knows
// changes.
func (v *view) showChange(e agent.Event, replay bool) {
	if d, ok := agent.Value[agent.ChangeData](e); ok {
		e.Value = d // a stored one is decoded once; its set can be long
	}
	c := v.ledger.Take(e)
	// A change in the state Writing becomes applied or failed with the next event; both are shown.
	if c == nil || c.State == change.Writing {
		return
	}
	// The person's own changes, undo and restore, belong to no call. A proposal in a replay has been decided since.
	if e.Type == agent.EventChange && c.Set.Source != change.ByPerson && !(replay && c.State == change.Proposed) {
		v.showDiff(e, c)
	}
	if !replay {
		v.sendChange(review.Info(c))
	}
}

// showDiff adds a diff to a card: that of the call, or of the task when a sub-agent's call has no card of its own.
func (v *view) showDiff(e agent.Event, c *review.Change) {
	d, _ := agent.Value[agent.ChangeData](e)
	call, task := c.Call, ""
	if d.Session != "" { // a sub-agent's: on its own card, or on the task's where that has none
		if kid := v.childView(d.Session); kid != nil && kid.has(call) {
			kid.putDiff(e, c, call, "")
			return
		}
		call, task = d.Task, d.Session
	}
	if v.has(call) {
		v.putDiff(e, c, call, task)
	}
}

// has reports whether a call has a card, or will have one.
func (v *view) has(call string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.calls[call]
	if v.child == nil {
		return c != nil
	}
	// A sub-agent's call gets its card with its first event, which may come after the change.
	return !v.child.quiet || c != nil && c.shown
}

// putDiff adds the diff of a change to the card id. task is the sub-agent's session when the card is that of its
// task; the card then has the diffs of several changes.
func (v *view) putDiff(e agent.Event, c *review.Change, id, task string) {
	set := c.Set
	if d, ok := agent.Value[agent.ChangeData](e); ok {
		// A live event has the texts with it; a stored one has to be loaded, and is shown without them where they are
		// gone.
		if d.Full != nil {
			set = d.Full
		} else if whole, err := v.es.desk.Whole(set); err == nil {
			set = whole
		}
	}
	if c.State == change.Proposed && setSize(set) > maxCardDiff {
		return // the approval request shows it; sending it twice would only take longer
	}
	diffs := review.Diffs(set)
	if client := v.es.editor.Client(); c.State == change.Proposed && !client.ShowsHunks() {
		v.mu.Lock()
		cwd := v.info.Cwd
		v.mu.Unlock()
		diffs = changeContent(set, "", cwd, client.Profile)
		v.sayLateVerdict(id, set, client.Profile)
	} else if text := review.VerdictText(set); text != "" && c.State == change.Proposed {
		diffs = append(diffs, protocol.TextOfCall(text)) // a verdict may arrive after the approval request; the card then shows it
	}
	v.mu.Lock()
	call := v.calls[id]
	if call == nil { // a sub-agent's events have an order of their own: its card is still to come
		call = &callView{unsent: true}
		v.calls[id] = call
	}
	if task == "" {
		call.diffs = diffs
	} else {
		if call.by == nil {
			call.by = map[string][]protocol.ToolCallContent{}
		}
		if call.by[c.Set.ID] == nil {
			call.order = append(call.order, c.Set.ID)
		}
		// A change that is reported again replaces its own diffs and not those of the others.
		call.by[c.Set.ID] = diffs
	}
	content := v.toolContent(call)
	unsent := call.unsent
	v.mu.Unlock()
	if len(content) > 0 && !unsent {
		v.send("tool_call_update", &protocol.ToolCallUpdate{ToolCallID: id, Content: content}, protocol.UpdateMeta{ChangeSet: c.Set.ID})
	}
}

// sayLateVerdict tells a person whose client draws a request once, and no card that is updated, what the language servers
// said after it was asked.
func (v *view) sayLateVerdict(id string, set *change.Set, p editors.Profile) {
	if p.Diffs != editors.FirstDiff && !p.TitleOnly || set.Verdict == nil || set.Verdict.Certainty == change.Pending {
		return
	}
	v.mu.Lock()
	// Said once: the entry is removed with it.
	late := v.askedPending[id] == set.ID
	delete(v.askedPending, id)
	v.mu.Unlock()
	if late {
		v.ask("The change that waits for your decision has been checked now. " + review.VerdictText(set))
	}
}

// noteAsked remembers that a call's change is asked about while its verdict is pending.
func (v *view) noteAsked(id string, set *change.Set) {
	if set == nil || set.Verdict == nil || set.Verdict.Certainty != change.Pending {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.askedPending == nil {
		v.askedPending = map[string]string{}
	}
	v.askedPending[id] = set.ID
}

// maxCardDiff is how large a proposal may be, in bytes of both texts, to be shown on its card before the approval
// request shows it too. Both show the whole texts, so a larger proposal would be sent twice before the person can see
// it.
const maxCardDiff = 256 << 10

// setSize is the size of a change set, in bytes of both texts.
func setSize(s *change.Set) (n int) {
	for _, f := range s.Files {
		n += len(f.Old) + len(f.New)
	}
	return n
}

// sendChange sends _pillion/change/updated, if the editor has announced it.
func (v *view) sendChange(info protocol.ChangeInfo) {
	s := v.es
	if s.editor.Client().Does(protocol.MethodPillionChangeUpdated) {
		s.notify(protocol.MethodPillionChangeUpdated, protocol.ChangeUpdated{SessionID: v.es.ID(), Change: info})
	}
}

// showRestore tells the editor that the conversation was taken back or forward. What belongs to it again follows as
// updates. An editor without the method gets a notice.
func (v *view) showRestore(e agent.Event, replay bool) {
	v.ledger.Take(e)
	d, ok := agent.Value[agent.RestoreData](e)
	if !ok || replay || d.State != agent.RestoreDone || !d.Conversation || d.MessageID == d.Was {
		return
	}
	s := v.es
	if !s.editor.Client().Does(protocol.MethodPillionSessionReverted) {
		text := "The conversation was restored to what it was before the undo."
		if d.MessageID != "" {
			title := d.MessageID
			if _, text, ok := v.ledger.Checkpoint(d.MessageID); ok {
				title = "“" + text + "”"
			}
			text = fmt.Sprintf("The conversation was restored to before %s. The agent no longer sees the messages after it.", title)
		}
		v.notice("info", text)
		return
	}
	tell := func(message string) {
		s.notify(protocol.MethodPillionSessionReverted, protocol.SessionReverted{SessionID: v.es.ID(), MessageID: message})
	}
	from, to := int64(0), e.Seq
	// Was is the prompt that the conversation ended before, MessageID the one that it ends before after the restore; "" is its end.
	if seq, _, ok := v.ledger.Checkpoint(d.Was); ok {
		from = seq
	}
	if seq, _, ok := v.ledger.Checkpoint(d.MessageID); ok {
		to = seq
	}
	v.mu.Lock()
	info := v.info
	v.mu.Unlock()
	// Forward: the part that belongs to the conversation again is replayed.
	if from > 0 && to > from {
		tell("")
		v.replayRange(s.ctx, info, from, to)
	}
	if d.MessageID != "" {
		tell(d.MessageID)
	}
}

// replayRange shows the events from one number up to, not including, another. It is called by the event sink and so
// must not wait for events.
func (v *view) replayRange(ctx context.Context, info agent.SessionInfo, from, to int64) {
	hidden, err := v.es.Hidden(ctx)
	if err != nil {
		v.notice("warning", "The restored part of the conversation could not be read: "+err.Error()+". Load the session again to see it.")
		return
	}
	// A view of its own: the cards of the replayed part are not those of the running session.
	replay := newView(v.es)
	replay.info = info
	err = v.es.Past(ctx, from-1, func(e agent.Event) error {
		if e.Seq < to && !hidden.Has(e) && e.Type != agent.EventSession && e.Type != agent.EventRestore {
			replay.show(e, true)
		}
		return ctx.Err()
	})
	if err != nil {
		v.notice("warning", "The restored part of the conversation could not be shown in full: "+err.Error()+". Load the session again to see it.")
	}
}
