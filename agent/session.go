package agent

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
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

// loan is what one prompt asks for instead of the session's own agent and model.
type loan struct{ agent, model string }

// job is a turn or a call by hand.
type job struct {
	ctx    context.Context
	cancel context.CancelFunc
	item   *QueueItem // a prompt's; guarded by the session's mu until it begins; nil for a call by hand
	run    func(ctx context.Context)
	failed func(error)     // it cannot be begun: the error, or context.Canceled
	end    TurnData        // a prompt's; set before done is closed
	heard  <-chan struct{} // closed when who waits has passed the end on; nil: nobody to wait for
	done   chan struct{}
}

func (r *Runtime) newSession(info SessionInfo, last int64, of child) *Session {
	s := &Session{rt: r, info: info, hist: newHistory(), root: worktree(info.Cwd), of: of}
	s.hist.info = info
	s.log = newEventLog(info.ID, r.st, last)
	s.log.heard = func(e Event) { r.heard(info.ID, info.Cwd, e) }
	s.gate = permission.NewGate(permission.GateOptions{
		Advise: s.advise,
		Rules:  s.rules, Asker: r.o.Asker, Grants: r.grants, Project: s.root, Notify: s.asked, Follow: s.follows,
	})
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

// Info is the session's head as it is now.
func (s *Session) Info() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// acting is Info with what the running turn uses instead.
func (s *Session) acting() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	if s.lent.agent != "" {
		info.Agent = s.lent.agent
	}
	if s.lent.model != "" {
		info.Model = s.lent.model
	}
	return info
}

func (s *Session) lend(l loan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent = l
}

// Prompt runs a turn and returns when it is over and every subscriber has seen its end. The end of ctx cancels the
// turn. While another turn runs the prompt waits in the queue; one that follows a cancelled or failed turn goes before
// what is held there, and lets it go on. The error says that no turn could begin; what went wrong in a turn is in
// TurnData.
func (s *Session) Prompt(ctx context.Context, p Prompt) (TurnData, error) {
	wait, err := s.Submit(ctx, p)
	if err != nil {
		return TurnData{}, err
	}
	return wait()
}

// Submit is the first half of Prompt: when it returns the prompt has its place in the queue.
func (s *Session) Submit(ctx context.Context, p Prompt) (wait func() (TurnData, error), err error) {
	if len(p.Parts) == 0 {
		return nil, ErrEmptyPrompt
	}
	j := s.newPrompt(ctx, p, true)
	j.heard = p.Answered
	var failed error
	j.failed = func(err error) { failed = err }
	if err := ctx.Err(); err != nil {
		return func() (TurnData, error) { return TurnData{Stop: TurnCancelled}, nil }, nil
	}
	if err := s.submit(j); err != nil {
		return nil, err
	}
	return func() (TurnData, error) {
		err := s.wait(ctx, j)
		if err == nil {
			err = failed
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return TurnData{Stop: TurnCancelled}, nil
		}
		return j.end, err
	}, nil
}

// Tool makes one tool call by hand, through the same gate, hooks, cap and events as a model's. It waits for a turn
// that runs. A failed call is in ToolData; the error says that it could not be made.
func (s *Session) Tool(ctx context.Context, name string, input json.RawMessage) (ToolData, error) {
	var data ToolData
	var failed error
	err := s.do(ctx, func(ctx context.Context) { data, failed = s.byHand(ctx, name, input) }, func(err error) { failed = err })
	if err == nil {
		err = failed
	}
	return data, err
}

// Cancel ends what runs and drops what somebody waits for; each is answered as cancelled. Prompts of Enqueue stay in
// the queue, held.
func (s *Session) Cancel() {
	s.mu.Lock()
	var dropped, kept []*job
	for _, j := range s.queue {
		if j.item != nil && !j.item.Request {
			kept = append(kept, j)
		} else {
			dropped = append(dropped, j)
		}
	}
	s.queue = kept
	for _, j := range slices.Clone(s.steers) {
		if j.item.Request {
			s.take(j)
			dropped = append(dropped, j)
		}
	}
	if s.now != nil {
		s.now.cancel()
	}
	if s.owning != nil {
		s.owning()
	}
	s.hold()
	s.mu.Unlock()
	for _, j := range dropped {
		j.fail(context.Canceled)
	}
	s.changed()
}

func (j *job) fail(err error) {
	j.failed(err)
	j.cancel()
	close(j.done)
}

func (s *Session) newJob(ctx context.Context) *job {
	j := &job{failed: func(error) {}, done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(ctx)
	return j
}

// do queues a job that is no prompt and waits for its end.
func (s *Session) do(ctx context.Context, run func(context.Context), failed func(error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := s.newJob(ctx)
	j.run, j.failed = run, failed
	if err := s.submit(j); err != nil {
		return err
	}
	return s.wait(ctx, j)
}

// newPrompt makes the job of a turn; request says that somebody waits for its end.
func (s *Session) newPrompt(ctx context.Context, p Prompt, request bool) *job {
	j := s.newJob(ctx)
	if p.MessageID == "" {
		p.MessageID = newID("msg_")
	}
	j.item = &QueueItem{ID: p.MessageID, Parts: s.maskParts(p.Parts), Time: now(), Request: request}
	j.run = func(ctx context.Context) {
		p.MessageID, p.Parts = j.item.ID, j.item.Parts
		j.end = s.turn(ctx, p)
	}
	return j
}

// submit gives a job its place: last, or before what is held.
func (s *Session) submit(j *job) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		j.cancel()
		return ErrClosed
	}
	if s.held && j.item != nil {
		s.held = false
		s.queue = append([]*job{j}, s.queue...)
		s.storeQueue()
	} else {
		s.queue = append(s.queue, j)
	}
	s.wake()
	s.mu.Unlock()
	s.changed()
	return nil
}

// wake starts the runner when it does not run. mu is held.
func (s *Session) wake() {
	if s.running == nil {
		s.running = make(chan struct{})
		go s.runner(s.running)
	}
}

// wait returns when a job has ended, or with ctx's error when it never began or was read by another turn.
func (s *Session) wait(ctx context.Context, j *job) error {
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
	}
	is := func(x *job) bool { return x == j }
	s.mu.Lock()
	if slices.ContainsFunc(s.queue, is) || slices.ContainsFunc(s.steers, is) || slices.ContainsFunc(s.joined, is) {
		s.take(j)
		s.joined = slices.DeleteFunc(slices.Clone(s.joined), is)
		s.mu.Unlock()
		j.cancel()
		s.changed()
		return ctx.Err()
	}
	s.mu.Unlock()
	<-j.done
	return nil
}

// runner does the queued jobs and ends. It holds the session's lock among processes from its first job to the end
// of its last, and takes over first what another process has added.
func (s *Session) runner(ended chan struct{}) {
	var unlock func()
	for {
		s.mu.Lock()
		i := slices.IndexFunc(s.queue, s.runnable)
		if i < 0 {
			if unlock != nil {
				s.mu.Unlock()
				// What the next owner must see is on disk before it can get the lock.
				s.syncBriefly()
				unlock()
				unlock = nil
				continue // a job may have come meanwhile
			}
			s.running = nil
			s.mu.Unlock()
			close(ended)
			return
		}
		j := s.queue[i]
		if unlock == nil {
			ctx, cancel := context.WithCancel(j.ctx)
			s.owning = cancel
			s.mu.Unlock()
			var err error
			unlock, err = s.own(ctx)
			cancel()
			s.mu.Lock()
			s.owning = nil
			if err != nil {
				s.cannot(j, err)
			} else {
				s.mu.Unlock()
			}
			continue // what another process has done may have changed the queue
		}
		s.queue = slices.Delete(slices.Clone(s.queue), i, i+1)
		s.now = j
		s.mu.Unlock()
		s.changed()

		err := j.ctx.Err()
		if err == nil {
			j.run(j.ctx)
			if j.item != nil {
				s.mu.Lock()
				s.last = j.end
				s.mu.Unlock()
				s.endSteering(j.end)
			}
			s.log.flush()
		}
		s.mu.Lock()
		s.now = nil
		s.mu.Unlock()
		if err != nil {
			j.fail(err)
		} else {
			j.cancel()
			close(j.done)
		}
		s.changed()
		if j.heard != nil {
			select {
			case <-j.heard:
			case <-time.After(heardLimit):
			}
		}
	}
}

// heardLimit is how long the next turn waits for the end of the last one to be passed on.
const heardLimit = 200 * time.Millisecond

// runnable says that a job may begin; what is held may not. mu is held.
func (s *Session) runnable(j *job) bool { return !s.held || j.item == nil || j.item.Request }

// cannot deals with a job whose session this process cannot have: who waits for it is told, what is stored is held.
// mu is held, and given up.
func (s *Session) cannot(j *job, err error) {
	waits := slices.Contains(s.queue, j)
	if j.item != nil && !j.item.Request {
		s.hold()
		waits = false
	} else {
		s.take(j)
	}
	s.mu.Unlock()
	if waits {
		j.fail(err)
	}
	s.changed()
}

// syncBriefly waits for the store, unless it is in trouble: that is reported through OnProblem.
func (s *Session) syncBriefly() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.rt.st.Sync(ctx)
}

// own makes this process the only writer of the session.
func (s *Session) own(ctx context.Context) (unlock func(), err error) {
	unlock, err = s.rt.st.Lock(ctx, s.ID())
	if err != nil {
		return nil, err
	}
	s.log.flush()
	s.hist.info, s.hist.todos = s.Info(), todoList{s}.Get()
	s.mu.Lock()
	s.hist.queue = s.stored()
	s.mu.Unlock()
	changed := false
	err = s.log.catchUp(ctx, func(e Event) {
		s.hist.apply(e)
		changed = true
	})
	if err != nil {
		unlock()
		return nil, err
	}
	if changed {
		s.adopt()
	}
	if s.hist.open() {
		s.repair()
	}
	if s.hist.stale {
		s.log.flush()
		if err := s.rebuild(ctx); err != nil {
			unlock()
			return nil, err
		}
	}
	return unlock, nil
}

// adopt takes over what the events say of the session's head and plan.
func (s *Session) adopt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hist.info; h.ID == s.info.ID && h.Cwd != "" {
		h.Updated = s.info.Updated
		s.info = h
	}
	s.todos = s.hist.todos
	s.adoptQueue(s.hist.queue)
}

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

// SetAgent changes the agent, for what comes next. ErrNoAgent. An agent with a model of its own brings it along.
func (s *Session) SetAgent(name string) error {
	cwd := s.Info().Cwd
	a, ok := s.rt.agent(cwd, name)
	if !ok {
		return s.rt.noAgent(cwd, name)
	}
	s.change(func(i *SessionInfo) {
		if i.Agent != name {
			s.before = i.Agent
		}
		s.lent.agent = ""
		i.Agent = name
		if a.Model != "" {
			i.Model = a.Model
		}
	})
	return nil
}

// Agents is the session's agent as tools see it.
type sessionAgents struct{ s *Session }

func (a sessionAgents) Agent() string { return a.s.acting().Agent }

func (a sessionAgents) SetAgent(name string) error { return a.s.SetAgent(name) }

func (a sessionAgents) Before() string {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.s.before == "" {
		return DefaultAgent
	}
	return a.s.before
}

// SetModel changes the model, from the next step on. The error is the one of Models.
func (s *Session) SetModel(id string) error {
	if s.rt.o.Models != nil {
		_, m, err := s.rt.o.Models.Resolve(context.Background(), s.Info().Cwd, id)
		if err != nil {
			return err
		}
		id = m.String()
	}
	s.change(func(i *SessionInfo) { i.Model = id })
	return nil
}

// SetEffort changes the thinking effort, from the next step on; empty is the model's own.
func (s *Session) SetEffort(effort string) error {
	switch effort {
	case "", "low", "medium", "high":
	default:
		return errors.New("effort is low, medium, high, or empty for the model's own; not " + effort)
	}
	s.change(func(i *SessionInfo) { i.Effort = effort })
	return nil
}

// SetTitle renames the session.
func (s *Session) SetTitle(title string) error {
	title = strings.TrimSpace(title)
	if title == "" {
		return errors.New("the title is empty")
	}
	s.change(func(i *SessionInfo) { i.Title = title })
	return nil
}

// change makes a new head and tells it, when it differs.
func (s *Session) change(f func(*SessionInfo)) {
	s.mu.Lock()
	before := s.info
	f(&s.info)
	after := s.info
	same := after.Agent == before.Agent && after.Model == before.Model && after.Effort == before.Effort && after.Title == before.Title && after.Review == before.Review
	if !same {
		s.info.Updated = now()
		after = s.info
		s.saveHead(after) // under the lock, so that the last change is the last stored
		s.log.emit(EventSession, after)
	}
	s.mu.Unlock()
}

// touch says that the session was used.
func (s *Session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info.Updated = now()
	s.saveHead(s.info)
}

func (s *Session) saveHead(info SessionInfo) {
	s.rt.st.PutSession(store.Session{ID: info.ID, Cwd: info.Cwd, Title: info.Title, Parent: info.Parent,
		Created: info.Created, Updated: info.Updated, Info: encode(info)})
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
	if s.rt.o.Ended != nil {
		s.rt.o.Ended(s.ID()) // before it can be opened anew
	}
	s.rt.mu.Lock()
	if s.rt.live[s.ID()] == s {
		delete(s.rt.live, s.ID())
	}
	s.rt.mu.Unlock()
}

// todoList is the session's plan as tools see it.
type todoList struct{ s *Session }

func (t todoList) Get() []tools.Todo {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return append([]tools.Todo(nil), t.s.todos...)
}

func (t todoList) Set(ctx context.Context, todos []tools.Todo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	todos = append([]tools.Todo(nil), todos...)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.todos = todos
	t.s.log.emit(EventPlan, PlanData{Todos: todos})
	return nil
}

// worktree is the folder above dir that holds .git, or dir.
func worktree(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if exists(filepath.Join(d, ".git")) {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// titleOf makes a title of a prompt: its first line of text, cut at a word.
func titleOf(parts []provider.Part) string {
	const most = 72 // characters
	for _, p := range parts {
		if p.Type != provider.PartText || p.Synthetic {
			continue
		}
		for _, line := range strings.Split(p.Text, "\n") {
			line = strings.Join(strings.Fields(strings.ToValidUTF8(line, "")), " ")
			if line == "" {
				continue
			}
			if utf8.RuneCountInString(line) <= most {
				return line
			}
			cut := string([]rune(line)[:most])
			if i := strings.LastIndexByte(cut, ' '); i > most/2 {
				cut = cut[:i]
			}
			return cut + "…"
		}
	}
	return ""
}
