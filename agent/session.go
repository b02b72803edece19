package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// ErrEmptyPrompt: a prompt without parts.
var ErrEmptyPrompt = errors.New("the prompt is empty; say what to do")

// Session is a live session. Its methods are safe for concurrent use. While it has something to do one goroutine,
// the runner, owns its history and does one job after the other.
type Session struct {
	rt    *Runtime
	log   *eventLog
	gate  *permission.Gate
	cwd   string // the session's directory, which never changes
	root  string // worktree root, or the directory without git
	of    child  // where a sub-agent's session comes from
	diffs diffStats
	tasks taskSet // its own sub-agents

	sketched bool   // owned by the runner: tree has been made
	tree     string // owned by the runner: the directory, as it was at the first turn

	hist   *history    // owned by the runner
	hidden atomic.Bool // a key was masked in something that was read

	made  []tools.Tool // owned by the runner: made at the first turn
	tools []tools.Tool // owned by the runner: made and those that come and go, as of this step

	mu      sync.Mutex
	info    SessionInfo   // guarded by mu
	todos   []tools.Todo  // guarded by mu
	queue   []*job        // guarded by mu: what the runner has not begun
	now     *job          // guarded by mu: what it is doing
	running chan struct{} // guarded by mu: closed when the runner ends; nil without one
	closed  bool          // guarded by mu

	held        bool       // guarded by mu: stored prompts wait until the person goes on
	queueStored bool       // guarded by mu: there are events of the queue
	steerable   *turn      // guarded by mu: the running turn while it takes words
	steers      []*job     // guarded by mu: words for it that it has not read
	joined      []*job     // guarded by mu: requests whose words it has read; they end with it
	owning      func()     // guarded by mu: ends the wait for the session's lock; nil when there is none
	asking      []string   // guarded by mu: calls that wait for the person
	last        TurnData   // guarded by mu: the last turn's end
	watchers    []*watcher // guarded by mu; replaced, never changed in place

	lent   loan   // guarded by mu: what the running turn uses instead of the session's own
	naming func() // guarded by mu: ends the naming of the session
	before string // guarded by mu: the agent before the present one
}

func (r *Runtime) newSession(info SessionInfo, last int64, of child) *Session {
	s := &Session{rt: r, info: info, hist: newHistory(), cwd: info.Cwd, root: paths.Worktree(info.Cwd), of: of}
	s.hist.info = info
	s.log = newEventLog(info.ID, r.st, last)
	s.log.heard = func(e Event) { r.heard(info.ID, info.Cwd, e) }
	own := permission.GateOptions{
		Advise: s.advise,
		Rules:  s.rules, Asker: r.o.Asker, Grants: r.grants, Project: s.root, Notify: s.asked, Follow: s.follows,
	}
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

// rules are asked for each request, so that a changed agent or configuration counts at once.
func (s *Session) rules() permission.Ruleset {
	info := s.acting()
	a, ok := s.rt.agent(info.Cwd, info.Agent)
	if !ok { // the configuration lost it: the strictest of ours
		a, _ = s.rt.agent(info.Cwd, "plan")
	}
	return s.rt.rules(info.Cwd, a)
}

// asked makes events of permission questions.
func (s *Session) asked(r permission.Request, end *permission.Outcome) {
	d := AskData{ID: r.ID, CallID: r.CallID, Permission: r.Permission, Patterns: r.Patterns}
	if end != nil {
		var rejected *permission.RejectedError
		switch {
		case errors.As(end.Err, &rejected):
			d.Reply, d.Message = string(permission.Reject), rejected.Message
		case errors.Is(end.Err, permission.ErrDenied), errors.Is(end.Err, permission.ErrRejected):
			d.Reply = string(permission.Reject)
		case end.Err != nil && s.isClosing():
			d.Reply = AskInterrupted
		case end.Err != nil:
			d.Reply = "cancelled"
		default:
			d.Reply, d.Message = string(end.Reply.Kind), end.Reply.Message
		}
	}
	s.log.emit(EventAsk, d)
	if end == nil {
		s.waitsFor(r.CallID)
	} else {
		s.answered(r.CallID)
	}
}

// ID names the session.
func (s *Session) ID() string { return s.log.session }

// Subscribe replays the stored events after from to sink, and then hands on new ones as they come, in order and
// without a hole. When it returns, what was stored before has been replayed. sink is called by one goroutine at a
// time, must not block long, and must not call what waits for events (Prompt, Tool, Events, Subscribe, Close). After
// stop no call begins.
func (s *Session) Subscribe(from int64, sink func(Event)) (stop func()) {
	return s.log.subscribe(from, sink)
}

// Events yields the stored events after from.
func (s *Session) Events(ctx context.Context, from int64, yield func(Event) error) error {
	s.log.flush()
	return s.rt.st.Events(ctx, s.ID(), from, func(e store.Event) error { return yield(fromStore(e)) })
}

// Last is the number of the newest event.
func (s *Session) Last() int64 { return s.log.last() }

// EventsOf is Events for some types only.
func (s *Session) EventsOf(ctx context.Context, from int64, types []EventType, yield func(Event) error) error {
	s.log.flush()
	return s.rt.st.EventsOf(ctx, s.ID(), from, names(types), func(e store.Event) error { return yield(fromStore(e)) })
}

// Close cancels what runs, waits for it, and takes the session out of memory; it stays in the store.
func (s *Session) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	running := s.running
	s.mu.Unlock()
	s.Cancel()
	s.tasks.stop()
	s.mu.Lock()
	naming := s.naming
	s.mu.Unlock()
	if naming != nil {
		naming()
	}
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
		}
	}
	s.gate.EndSession(s.ID())
	s.log.flush()
	s.rt.o.Toolbox.Release(s.ID()) // before it can be opened anew
	s.rt.mu.Lock()
	if s.rt.live[s.ID()] == s {
		delete(s.rt.live, s.ID())
	}
	s.rt.mu.Unlock()
}
