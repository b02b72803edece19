package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools/paths"
)

// ErrEmptyPrompt is returned for a prompt without parts.
var ErrEmptyPrompt = errors.New("the prompt is empty; say what to do")

// Session is a live session. Its methods are safe for concurrent use. The embedded parts guard their own state; the other fields belong to
// the goroutine of Runner, which runs one job after the other.
type Session struct {
	*EventLog       // the numbered events
	*Head           // agent, model, title and plan
	*Runner         // the queue and the running job
	*ChangeRecorder // change sets and their counts
	*masker
	briefing
	toolset
	*errands   // requests beside the conversation
	*approvals // the questions to the person

	rt    *Runtime
	of    lineage  // the sessions that this one works for
	tasks taskSet  // its sub-agents
	hist  *history // the conversation
	spans tracer
	namer *namer
	began beginning
}

// newSession connects the parts of a session. last is the number of the newest event that was read. Nothing is started or stored.
func (r *Runtime) newSession(info SessionInfo, last int64, of lineage) *Session {
	log := newEventLog(info.ID, r.st, last)
	// Plugins receive every event, with the directory of its session.
	log.heard = func(e Event) { r.heard(info.ID, info.Cwd, e) }
	mask := &masker{secrets: r.o.Secrets, cwd: info.Cwd}
	head := &Head{rt: r, log: log, info: info}
	root := paths.Worktree(info.Cwd)
	s := &Session{
		EventLog: log, Head: head, masker: mask,
		Runner:         newRunner(log, mask),
		ChangeRecorder: &ChangeRecorder{log: log, keeper: r.o.Changes, task: of.task},
		briefing:       briefing{project: r.o.Project, head: head, masker: mask, root: root},
		toolset:        toolset{rt: r, head: head, of: of},
		rt:             r, of: of, hist: newHistory(),
	}
	s.Runner.work = s
	s.spans = tracer{r.o.Tracing, info.ID, mask}
	s.errands = &errands{rt: r, head: head, masker: mask, spans: s.spans}
	s.namer = &namer{errands: s.errands}
	if of.parent != nil {
		s.Runner.above, s.ChangeRecorder.above = of.parent.Runner, of.parent.ChangeRecorder
		s.Runner.waitingCalls.above = of.parent.Runner.waitingCalls
	}
	s.hist.info = info
	s.approvals = newApprovals(r, log, head, s.Runner, of, root)
	return s
}

// Close cancels the running job, waits for its end, and removes the session from memory; the store keeps it.
func (s *Session) Close(ctx context.Context) {
	running := s.Runner.close()
	// Background tasks and the title request have contexts of their own, which Cancel does not end.
	s.Cancel()
	s.tasks.stop()
	s.namer.end()
	// ctx bounds the wait: a tool that ignores its context must not keep the program from exiting.
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
		}
	}
	if x := s.rt.extensions(s.Info().Cwd); x.End != nil {
		x.End(s.Info())
	}
	s.gate.EndSession(s.ID())
	s.flush()
	s.rt.o.Toolbox.Release(s.ID()) // before the session can be opened again
	s.rt.mu.Lock()
	// Another Session may already be live under this id.
	if s.rt.live[s.ID()] == s {
		delete(s.rt.live, s.ID())
	}
	s.rt.mu.Unlock()
}

// adopt sets the head and the queue from the history.
func (s *Session) adopt() {
	s.Head.adopt(s.hist)
	s.Runner.adopt(s.hist.queue)
}

// own makes this process the only writer of the session until unlock. Another process may have run turns since this one wrote last, or
// crashed in one: own reads its events and repairs an open turn before the first job. It fails with *store.LockedError while another
// process runs a turn.
func (s *Session) own(ctx context.Context) (unlock func(), err error) {
	// The lock is between processes; within this one the runner runs one job at a time.
	unlock, err = s.rt.st.Lock(ctx, s.ID())
	if err != nil {
		return nil, err
	}
	s.flush()
	s.hist.info, s.hist.todos = s.Info(), todoList{s.Head}.Get()
	s.hist.queue = s.storedItems()
	changed := false
	err = s.catchUp(ctx, func(e Event) error {
		s.hist.apply(e)
		changed = true
		return nil
	})
	if err != nil {
		unlock()
		return nil, err
	}
	if changed {
		s.adopt()
	}
	// The lock was free, so the process of that turn has crashed.
	if s.hist.open() {
		s.recovery().run()
	}
	if s.hist.stale {
		s.flush()
		if err := s.rebuild(ctx); err != nil {
			unlock()
			return nil, err
		}
	}
	return unlock, nil
}

// rebuild reads the history again from the stored events, without those that a restore hides. Only the runner calls it, or the code that
// loads the session.
func (s *Session) rebuild(ctx context.Context) error {
	hidden, err := s.Hidden(ctx)
	if err != nil {
		return err
	}
	old := s.hist
	h := newHistory()
	err = s.rt.st.Events(ctx, s.ID(), 0, func(e store.Event) error {
		event := fromStore(e)
		if !hidden.Has(event) {
			h.apply(event)
			return nil
		}
		switch event.Type {
		case EventStep: // ids of hidden calls must not be reused: the transcript still shows their cards
			for _, p := range decode[StepData](event).Message.Parts {
				if p.Type == provider.PartToolCall {
					h.callIDs[p.CallID] = true
				}
			}
		case EventPrompt, EventSteer: // it has run: an undo does not send it again
			h.unqueue(decode[PromptData](event).MessageID)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the conversation could not be read back: %w", err)
	}
	h.info, h.stale = old.info, false
	s.hist = h
	s.adopt()
	return nil
}

// recovery closes what a crash has left open in this session.
func (s *Session) recovery() recovery {
	return recovery{s.EventLog, s.Head, s.hist, s.rt.o.Changes}
}

// listen adds a message of the person, or a synthetic one, to the conversation of the turn. The runner calls it only between two steps,
// because a provider refuses a message between a call and its result.
func (s *Session) listen(d PromptData) {
	info := s.Info()
	d.Agent, d.Model = info.Agent, info.Model
	s.emit(EventSteer, d)
	s.hist.messages = append(s.hist.messages, provider.Message{ID: d.MessageID, Role: provider.RoleUser, Parts: d.Parts})
}

// Notice shows the session's user one line. level is "info", "warning" or "error".
func (s *Session) Notice(level, text string) {
	s.Notify(NoticeData{Level: level, Text: text})
}

// Notify is Notice for a line with more data, such as a server that can be installed. It masks the text, because providers' messages quote
// what was sent.
func (s *Session) Notify(d NoticeData) {
	d.Text = s.mask(d.Text)
	s.emit(EventNotice, d)
}

// Top returns the session that a person talks to: the one for which this sub-agent works, or this session itself.
func (s *Session) Top() *Session {
	top := s
	for top.of.parent != nil {
		top = top.of.parent
	}
	return top
}
