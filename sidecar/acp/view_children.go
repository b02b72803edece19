package acp

import (
	"errors"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// childOf says whose calls a sub-agent's view shows.
type childOf struct {
	task    string // the call of the session that started it
	session string // the sub-agent's
	quiet   bool   // only calls that the person was asked about: the editor cannot nest cards
}

// follow shows the calls of the sub-agent that a task has started: nested in an editor that knows Pillion; in others
// only those that the person is asked about, since the task's own card tells the rest.
func (v *view) follow(d agent.ToolData) {
	id, _ := d.Metadata["sessionId"].(string)
	if id == "" || d.Tool != "task" || v.child != nil {
		return
	}
	from := number(d.Metadata["since"])
	v.mu.Lock()
	if v.children == nil {
		v.children = map[string]*view{}
	}
	had := v.children[d.CallID] != nil
	kid := newView(v.es)
	kid.child = &childOf{task: d.CallID, session: id, quiet: v.es.editor.Client().Pillion.Version == 0}
	kid.info, kid.past = v.info, v.past
	if !had {
		v.children[d.CallID] = kid
	}
	v.mu.Unlock()
	if had {
		return
	}
	live, ok := v.es.rt.Session(id)
	if v.past || !ok { // it is over, or was before the task's card came
		if !kid.child.quiet {
			_ = v.es.rt.StoredOf(v.es.ctx, id, from, []agent.EventType{agent.EventTool, agent.EventText, agent.EventThinking, agent.EventTurn}, func(e agent.Event) error {
				kid.showChild(e)
				if e.Type == agent.EventTurn {
					return errSeen // what comes later belongs to another call
				}
				return nil
			})
		}
		return
	}
	// It ends with the sub-agent's session, which is closed when its task is over.
	_ = live.Subscribe(from, kid.showChild)
}

var errSeen = errors.New("seen enough")

// number is a whole number out of metadata, fresh or stored.
func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// showChild shows what of a sub-agent's events is shown: its calls, and its words where the editor can nest them.
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
		if !c.shown {
			c.tool = d
			v.mu.Unlock()
			return
		}
		v.mu.Unlock()
	}
	v.showTool(d)
}

// reveal shows a call's card before the person is asked about it.
func (v *view) reveal(call string) {
	v.mu.Lock()
	c := v.calls[call]
	if c == nil || !v.child.quiet || c.shown {
		v.mu.Unlock()
		return
	}
	d := c.tool
	v.calls[call] = &callView{shown: true, unsent: true}
	v.mu.Unlock()
	v.showTool(d)
}

// kidOf is the view of a sub-agent's session; nil when it is not followed.
func (v *view) kidOf(session string) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, k := range v.children {
		if k.child.session == session && !k.over {
			return k
		}
	}
	return nil
}

// ended lets a sub-agent's view go when its task is over.
func (v *view) ended(d agent.ToolData) {
	if d.Tool != "task" || d.Status != agent.ToolCompleted && d.Status != agent.ToolError {
		return
	}
	if running, _ := d.Metadata["background"].(bool); running && d.Status == agent.ToolCompleted {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.children[d.CallID]; k != nil {
		k.over = true
	}
}

// childMeta names the task a call belongs to.
func (v *view) childMeta(m protocol.UpdateMeta) protocol.UpdateMeta {
	m.Seq = nil
	m.ParentToolCallID, m.ChildSessionID = v.child.task, v.child.session
	return m
}

// showCompaction tells that older turns became a summary. The transcript keeps all; replayed, the mark stands where it
// happened.
func (v *view) showCompaction(d agent.CompactionData) {
	c := v.es.editor.Client()
	if c.Caps.Session == nil || c.Caps.Session.Compaction == nil {
		if d.State != agent.CompactionBegun || !v.past {
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

// showSummary is a piece of a summary that is being written.
func (v *view) showSummary(d agent.TextData) {
	c := v.es.editor.Client()
	if c.Caps.Session == nil || c.Caps.Session.Compaction == nil || v.past || d.Text == "" {
		return // the end brings the whole
	}
	v.send("compaction_summary_chunk", &protocol.CompactionSummaryChunk{CompactionID: d.MessageID, Content: protocol.TextBlock(d.Text)}, protocol.UpdateMeta{})
}
