package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// ErrEmptyPrompt is the error of a prompt without parts.
var ErrEmptyPrompt = errors.New("the prompt is empty; say what to do")

// Session is a live session. Its methods are safe for concurrent use. Its state belongs to the parts that are embedded;
// what is left here is owned by the goroutine of Runner, which does one job after the other.
type Session struct {
	*EventLog       // the numbered events
	*Head           // agent, model, title and plan
	*Runner         // the queue and the running job
	*ChangeRecorder // change sets and their counts
	*masker
	briefing
	toolset
	*errands // requests beside the conversation

	rt    *Runtime
	gate  *permission.Gate
	of    child    // where a sub-agent's session comes from
	tasks taskSet  // its own sub-agents
	hist  *history // the conversation
	spans tracer
	namer *namer
}

// newSession wires up the parts of a session. last is the number of its newest stored event. A sub-agent's gate is a child of its
// parent's, so that it may do what both allow and no more. A sub-agent's session that a person opened by itself has no parent in
// memory: the gates of the sessions above it are made from their stored heads, the outermost first.
func (r *Runtime) newSession(info SessionInfo, last int64, of child) *Session {
	log := newEventLog(info.ID, r.st, last)
	// Plugins hear every event with the directory of the session that they belong to.
	log.heard = func(e Event) { r.heard(info.ID, info.Cwd, e) }
	mask := &masker{secrets: r.o.Secrets, cwd: info.Cwd}
	head := &Head{rt: r, log: log, info: info}
	root := paths.Worktree(info.Cwd)
	s := &Session{
		EventLog: log, Head: head, masker: mask,
		Runner:         &Runner{log: log, masker: mask},
		ChangeRecorder: &ChangeRecorder{log: log, keeper: r.o.Changes, task: of.task},
		briefing:       briefing{project: r.o.Project, head: head, masker: mask, root: root},
		toolset:        toolset{rt: r, head: head},
		rt:             r, of: of, hist: newHistory(),
	}
	s.Runner.work = s
	s.spans = tracer{r.o.Tracing, info.ID, mask}
	s.errands = &errands{rt: r, head: head, masker: mask, spans: s.spans}
	s.namer = &namer{errands: s.errands}
	if of.parent != nil {
		s.Runner.above, s.ChangeRecorder.above = of.parent.Runner, of.parent.ChangeRecorder
	}
	s.hist.info = info
	own := permission.GateOptions{
		Advise: s.advise,
		Rules:  s.rules, Asker: r.o.Asker, Grants: r.grants, Project: root, Notify: s.asked, Follow: s.follows,
	}
	// Each gate is a child of the one outside it, so that all of them must allow.
	for i, head := range slices.Backward(of.heads) { // from the outermost in
		o := own
		o.Rules = func() permission.Ruleset { return r.rulesOf(head) }
		if i == len(of.heads)-1 {
			s.gate = permission.NewGate(o)
		} else {
			s.gate = s.gate.Child(o, of.heads[i+1].ID)
		}
	}
	if len(of.heads) > 0 {
		s.gate = s.gate.Child(own, of.heads[0].ID)
	} else {
		s.gate = permission.NewGate(own)
	}
	if p := of.parent; p != nil {
		o := permission.GateOptions{Rules: s.rules, Notify: s.asked}
		if r.o.Asker != nil {
			o.Asker = childAsker{r.o.Asker, of.label}
		}
		s.gate = p.gate.Child(o, p.ID())
	}
	return s
}

// rules are read for each request, so that a changed agent or configuration applies
// immediately.
func (s *Session) rules() permission.Ruleset {
	info := s.acting()
	a, ok := s.rt.agent(info.Cwd, info.Agent)
	if !ok { // the agent was removed from the configuration: use the strictest default, which changes nothing
		a, _ = s.rt.agent(info.Cwd, "plan")
	}
	return s.rt.rules(info.Cwd, a)
}

// asked emits a permission request (end is nil) and its answer, and marks the session as waiting for the person between the two.
func (s *Session) asked(r permission.Request, end *permission.Outcome) {
	d := AskData{ID: r.ID, CallID: r.CallID, Permission: r.Permission, Patterns: r.Patterns}
	if end != nil {
		var rejected *permission.RejectedError
		switch {
		case errors.As(end.Err, &rejected):
			d.Reply, d.Message = string(permission.Reject), rejected.Message
		// A rule's denial is shown like a person's.
		case errors.Is(end.Err, permission.ErrDenied), errors.Is(end.Err, permission.ErrRejected):
			d.Reply = string(permission.Reject)
		// Nobody has decided: a reopened session may ask again.
		case end.Err != nil && s.isClosing():
			d.Reply = AskInterrupted
		case end.Err != nil:
			d.Reply = "cancelled"
		default:
			d.Reply, d.Message = string(end.Reply.Kind), end.Reply.Message
		}
	}
	s.emit(EventAsk, d)
	if end == nil {
		s.waitsFor(r.CallID)
	} else {
		s.answered(r.CallID)
	}
}

// Close cancels what runs, waits for it, and takes the session out of memory; it stays in the store.
func (s *Session) Close(ctx context.Context) {
	running := s.Runner.close()
	// Sub-agents and the naming have contexts of their own, so each is ended by name.
	s.Cancel()
	s.tasks.stop()
	s.namer.end()
	// Bounded by the caller's ctx: a tool that does not end must not keep the program open.
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
		}
	}
	s.gate.EndSession(s.ID())
	s.flush()
	s.rt.o.Toolbox.Release(s.ID()) // before it can be opened anew
	s.rt.mu.Lock()
	// another Session may be live under this id by now
	if s.rt.live[s.ID()] == s {
		delete(s.rt.live, s.ID())
	}
	s.rt.mu.Unlock()
}

// adopt sets head and queue to what the history has read from the events.
func (s *Session) adopt() {
	s.Head.adopt(s.hist)
	s.Runner.adopt(s.hist.queue)
}

// own makes this process the only writer of the session until unlock. Another process may have run turns since this one last
// wrote, or crashed in one: its events are read and its open turn is repaired before the first job. *store.LockedError.
func (s *Session) own(ctx context.Context) (unlock func(), err error) {
	// The lock is among processes; within this one the runner has one job at a time.
	unlock, err = s.rt.st.Lock(ctx, s.ID())
	if err != nil {
		return nil, err
	}
	s.flush()
	s.hist.info, s.hist.todos = s.Info(), todoList{s.Head}.Get()
	s.hist.queue = s.storedItems()
	changed := false
	err = s.catchUp(ctx, func(e Event) {
		s.hist.apply(e)
		// only then is there anything to adopt
		changed = true
	})
	if err != nil {
		unlock()
		return nil, err
	}
	if changed {
		s.adopt()
	}
	// The turn's process has died, or it would hold the lock.
	if s.hist.open() {
		s.repair()
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

// listen adds a message to the conversation within a turn: the person's, or a synthetic one of Pillion's. The runner calls it
// between two steps only, because a provider refuses a message between a call and its result.
func (s *Session) listen(d PromptData) {
	info := s.Info()
	d.Agent, d.Model = info.Agent, info.Model
	s.emit(EventSteer, d)
	s.hist.messages = append(s.hist.messages, provider.Message{ID: d.MessageID, Role: provider.RoleUser, Parts: d.Parts})
}

// questions passes a tool's questions to the person and marks the session as waiting until they are answered.
type questions struct {
	s *Session
	q tools.Questioner
}

func (q questions) AskQuestions(ctx context.Context, call *tools.Call, qs []tools.Question) ([][]string, error) {
	q.s.waitsFor(call.CallID)
	defer q.s.answered(call.CallID)
	return q.q.AskQuestions(ctx, call, qs)
}

// questioner is nil when no editor can show questions; the question tool is not offered then.
func (s *Session) questioner() tools.Questioner {
	if s.rt.o.Questions == nil {
		return nil
	}
	if s.of.parent != nil {
		return questions{s, childQuestions{s.rt.o.Questions, s.of.label}}
	}
	return questions{s, s.rt.o.Questions}
}
