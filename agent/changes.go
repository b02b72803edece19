package agent

import "github.com/pillion-dev/pillion/tools/change"

// ChangeRecorder writes change sets into the event log and counts what a turn has changed. The changes of a sub-agent are events of the
// session that the person talks to, because that is where they are reviewed.
type ChangeRecorder struct {
	log    *EventLog
	keeper ChangeKeeper
	above  *ChangeRecorder // the parent session's, when this is a sub-agent's
	task   string          // the parent's call that started this session
	diffs  diffStats
}

// RecordChange stores a change set that no tool call made: an undo or a restore. The caller runs inside Beside or Restore. With
// change.Writing it returns when the store has the set, so that a crash during the write leaves a trace.
func (c *ChangeRecorder) RecordChange(callID string, state change.State, set *change.Set) {
	c.showChange(callID, state, set)
	c.log.flush()
}

// showChange emits a change set in its present state, in the session that the person talks to. With change.Writing it waits, at most a
// second, until the set is on disk: after a crash the next start finds it and compares the files.
func (c *ChangeRecorder) showChange(callID string, state change.State, set *change.Set) {
	d := ChangeData{CallID: callID, State: state, Full: set}
	// From here on c is the recorder of the outermost session.
	for session := c.log.session; c.above != nil; c = c.above {
		d.Session, d.Task = session, c.task
	}
	c.diffs.note(state, set)
	if c.log.st.KeepsEvents() {
		d.Set = c.keeper.Pack(state, set)
	}
	// Encoded at once: the tool may still change the set.
	c.log.emitNow(EventChange, d)
	if state == change.Writing {
		c.log.flush()
		c.log.syncBriefly()
	}
}
