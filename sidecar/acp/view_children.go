package acp

import (
	"errors"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// childOf says which task a sub-agent's view belongs to. It is set when the view is made and does not change.
type childOf struct {
	task    string // the call of the session that started it
	session string // the sub-agent's
	quiet   bool   // only calls that the person was asked about: the editor cannot nest cards
}

// followChild shows the calls of the sub-agent that a task has started. An editor that knows Pillion nests them;
// others get only the calls that need approval, since the task's own card describes the rest.
func (v *view) followChild(d agent.ToolData) {
	id, _ := d.Metadata["sessionId"].(string)
	if id == "" || d.Tool != "task" || v.child != nil {
		return
	}
	// A sub-agent may be called again and keeps its session; since is the number of its last event before this call.
	from := wholeNumber(d.Metadata["since"])
	v.mu.Lock()
	if v.children == nil {
		v.children = map[string]*view{}
	}
	had := v.children[d.CallID] != nil
	kid := newView(v.es)
	kid.child = &childOf{task: d.CallID, session: id, quiet: v.es.editor.Client().Pillion.Version == 0}
	kid.info, kid.replaying = v.info, v.replaying
	if !had {
		v.children[d.CallID] = kid
	}
	v.mu.Unlock()
	if had {
		return
	}
	live, ok := v.es.rt.Session(id)
	if v.replaying || !ok { // the task has ended
		if !kid.child.quiet {
			_ = v.es.rt.StoredOf(v.es.ctx, id, from, []agent.EventType{agent.EventTool, agent.EventText, agent.EventThinking, agent.EventTurn}, func(e agent.Event) error {
				kid.showChild(e)
				if e.Type == agent.EventTurn {
					return errTurnEnded
				}
				return nil
			})
		}
		return
	}
	// It ends with the sub-agent's session, which is closed when its task is over.
	_ = live.Subscribe(from, kid.showChild)
}

// errTurnEnded ends a scan of a sub-agent's events: what follows belongs to another call of it.
var errTurnEnded = errors.New("seen enough")

// wholeNumber is an integer in metadata: int64 in this process, float64 when it was stored as JSON.
func wholeNumber(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// showChild shows a sub-agent's event: its calls, and its text where the editor can nest it. Everything else that a
// sub-agent's log has, such as its plan and its title, is not shown.
func (v *view) showChild(e agent.Event) {
	switch e.Type {
	case agent.EventText, agent.EventThinking:
		if v.es.editor.Client().Pillion.Nested {
			v.showText(e)
		}
		return
	case agent.EventTool:
	default:
		return
	}
	d, ok := agent.Value[agent.ToolData](e)
	if !ok {
		return
	}
	if v.child.quiet {
		v.mu.Lock()
		c := v.calls[d.CallID]
		if c == nil {
			c = &callView{}
			v.calls[d.CallID] = c
		}
		// The state is kept, so that reveal can show the card as it is at that moment.
		if !c.shown {
			c.tool = d
			v.mu.Unlock()
			return
		}
		v.mu.Unlock()
	}
	v.showTool(d)
}

// reveal shows the card of a call before the person is asked about it.
func (v *view) reveal(call string) {
	v.mu.Lock()
	c := v.calls[call]
	if c == nil || !v.child.quiet || c.shown {
		v.mu.Unlock()
		return
	}
	d := c.tool
	// A fresh card: nothing of it was sent, so all of it must be.
	v.calls[call] = &callView{shown: true, unsent: true}
	v.mu.Unlock()
	v.showTool(d)
}

// childView is the view of a sub-agent's session; nil when it is not followed.
func (v *view) childView(session string) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, k := range v.children {
		if k.child.session == session && !k.taskEnded {
			return k
		}
	}
	return nil
}

// childEnded lets a sub-agent's view be dropped when its task has ended; one in the background has not.
// forgetFinished drops it at the end of the turn, because its last events may still be on their way.
func (v *view) childEnded(d agent.ToolData) {
	if d.Tool != "task" || d.Status != agent.ToolCompleted && d.Status != agent.ToolError {
		return
	}
	// The call has returned, and its sub-agent still works.
	if running, _ := d.Metadata["background"].(bool); running && d.Status == agent.ToolCompleted {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.children[d.CallID]; k != nil {
		k.taskEnded = true
	}
}

// childMeta is _meta.pillion of a sub-agent's update: it names the task and has no number of the parent's log.
func (v *view) childMeta(m protocol.UpdateMeta) protocol.UpdateMeta {
	m.Seq = nil
	m.ParentToolCallID, m.ChildSessionID = v.child.task, v.child.session
	return m
}

// showCompaction shows that older turns were replaced by a summary. In a replay it is shown where it happened.
func (v *view) showCompaction(d agent.CompactionData) {
	c := v.es.editor.Client()
	if c.Caps.Session == nil || c.Caps.Session.Compaction == nil {
		// In a replay the beginning is left out: the end follows at once.
		if d.State != agent.CompactionBegun || !v.replaying {
			level := "info"
			if d.State == agent.CompactionFailed {
				level = "warning"
			}
			v.notice(level, d.Words())
		}
		return
	}
	u := &protocol.CompactionUpdate{CompactionID: d.ID, Error: d.Error}
	switch d.State {
	case agent.CompactionBegun:
		u.Status = protocol.CompactionStatusInProgress
	case agent.CompactionDone:
		u.Status = protocol.CompactionStatusCompleted
		text := d.Summary
		if text == "" {
			text = d.Words()
		}
		u.Summary = []protocol.ContentBlock{protocol.TextBlock(text)}
	case agent.CompactionFailed:
		u.Status = protocol.CompactionStatusFailed
	case agent.CompactionCancelled:
		u.Status = protocol.CompactionStatusCancelled
	}
	v.send("compaction_update", u, protocol.UpdateMeta{})
}

// showSummary sends a piece of a summary while it is written.
func (v *view) showSummary(d agent.TextData) {
	c := v.es.editor.Client()
	if c.Caps.Session == nil || c.Caps.Session.Compaction == nil || v.replaying || d.Text == "" {
		return // its end sends the whole summary
	}
	v.send("compaction_summary_chunk", &protocol.CompactionSummaryChunk{CompactionID: d.MessageID, Content: protocol.TextBlock(d.Text)}, protocol.UpdateMeta{})
}
