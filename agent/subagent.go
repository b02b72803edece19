package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// DefaultDepth is how deep sub-agents nest when the configuration does not say: a session's sub-agents start none themselves.
const DefaultDepth = 1

// maxTasks is how many sub-agents of one session run at the same time; others wait. Each holds a conversation and tools in memory.
const maxTasks = 32

// lineage describes the sessions that a session works for, its parents. The zero value is a session that a person talks to.
type lineage struct {
	parent *Session
	task   string // the parent's call that started it
	label  string // the sub-agent's name for the person
	// heads are the stored heads of the parents, the nearest first, when a person has opened a sub-agent's session by itself. Their rules
	// still limit what it may do.
	heads []SessionInfo
}

// headsAbove returns the heads of a stored session's parents, the nearest first. A missing parent is replaced by a head with the plan
// agent: what that parent allowed is unknown, so its sub-agent may change nothing.
func (r *Runtime) headsAbove(ctx context.Context, parent string) (out []SessionInfo) {
	// A damaged store may hold a cycle; see maxAbove.
	for parent != "" && len(out) < maxAbove {
		head, err := r.st.Session(ctx, parent)
		if err != nil {
			return append(out, SessionInfo{ID: parent, Agent: PlanAgent})
		}
		out = append(out, infoOf(head))
		parent = head.Parent
	}
	return out
}

// maxAbove ends a chain of parents that may be a cycle.
const maxAbove = 64

// rulesOf returns the present rules of a parent: those of the live session, else those of its stored head.
func (r *Runtime) rulesOf(info SessionInfo) permission.Ruleset {
	if s, ok := r.Session(info.ID); ok {
		info = s.acting()
	}
	a, ok := r.agent(info.Cwd, info.Agent)
	if !ok {
		a, _ = r.agent(info.Cwd, PlanAgent)
	}
	return r.rules(info.Cwd, a)
}

// depth returns the number of parents; 0 for a session that a person talks to.
func (l lineage) depth() (n int) {
	n = len(l.heads)
	for p := l.parent; p != nil; p = p.of.parent {
		n++
	}
	return n
}

// rules returns the rules of all parents, the nearest first. A tool is offered only if all of them allow it; the gates check each call
// again.
func (l lineage) rules(rt *Runtime) (all []permission.Ruleset) {
	for p := l.parent; p != nil; p = p.of.parent {
		all = append(all, p.rules())
	}
	for _, info := range l.heads {
		all = append(all, rt.rulesOf(info))
	}
	return all
}

// spawner starts the sub-agents of one call.
type spawner struct {
	c *call
}

// SubAgents returns the agents that a task may name.
func (sp spawner) SubAgents() []tools.SubAgent { return sp.c.s.rt.SubAgents(sp.c.s.Info().Cwd) }

// Spawn runs a task in a session of its own and waits for its end, or lets it run in the background.
func (sp spawner) Spawn(ctx context.Context, call *tools.Call, t tools.Task) (tools.TaskResult, error) {
	s := sp.c.s
	// The depth counts from the session that a person talks to.
	if limit := s.rt.maxDepth(s.Info().Cwd); s.of.depth() >= limit {
		return tools.TaskResult{}, &tools.Error{Kind: "depth", Message: fmt.Sprintf("Sub-agents can nest at most %d levels deep (subagent_depth in the configuration); do this task yourself.", limit)}
	}
	kid, err := sp.session(ctx, t)
	if err != nil {
		return tools.TaskResult{}, err
	}
	w := &taskWatch{call: call, kid: kid, seen: map[string]bool{}}
	// Subscribe from here on: a resumed session has earlier events.
	last := kid.Last()
	stop := kid.Subscribe(last, w.event)
	w.started(t, last)
	// A call that is not in the background waits, and the session is closed when it returns.
	if !t.Background {
		defer dismiss(kid, stop)
		return sp.run(ctx, kid, t)
	}
	s.tasks.start(s, kid, t, func(ctx context.Context) (tools.TaskResult, error) {
		defer dismiss(kid, stop)
		return sp.run(ctx, kid, t)
	})
	return tools.TaskResult{ID: kid.ID(), Model: kid.Info().Model, Running: true}, nil
}

// session makes the session for a task, or loads the one that the task resumes. It resumes only sessions whose parent is this one, so that
// a model cannot reach another session by guessing its id.
func (sp spawner) session(ctx context.Context, t tools.Task) (*Session, error) {
	s := sp.c.s
	info := s.acting()
	if t.ID == "" {
		a, ok := s.rt.agent(info.Cwd, t.Agent)
		if !ok || a.Hidden || a.Mode == ModePrimary {
			var names []string
			for _, x := range s.rt.SubAgents(info.Cwd) {
				names = append(names, x.Name)
			}
			return nil, &tools.Error{Kind: "unknown_agent", Message: fmt.Sprintf("There is no sub-agent %q; there are %s.", t.Agent, strings.Join(names, ", "))}
		}
		model := s.modelFor(ctx, a)
		if model == "" {
			model = info.Model
		}
		return s.rt.newSessionOf(ctx, SessionOptions{Cwd: info.Cwd, Extra: info.Extra, Title: fmt.Sprintf("%s (@%s)", t.Description, a.Name),
			Agent: a.Name, Model: model, Effort: info.Effort, Parent: s.ID()}, lineage{parent: s, task: sp.c.id, label: childLabel(a.Name, t.Description)})
	}
	// Two turns in one session would mix two tasks.
	if _, live := s.rt.Session(t.ID); live {
		return nil, &tools.Error{Kind: "busy", Message: fmt.Sprintf("The task %s is still running; wait for its result, or start a new task without task_id.", t.ID)}
	}
	head, err := s.rt.st.Session(ctx, t.ID)
	if err != nil || head.Parent != s.ID() {
		return nil, &tools.Error{Kind: "unknown_task", Message: fmt.Sprintf("There is no task %q of this session to resume; leave task_id out to start a new one.", t.ID)}
	}
	old := infoOf(head)
	return s.rt.loadChild(ctx, t.ID, lineage{parent: s, task: sp.c.id, label: childLabel(old.Agent, t.Description)})
}

// modelFor is the model of an agent that works in or for this session; "" means the session's own, also where the agent's cannot be used.
// A project's agents name the models that its authors use, and the person may have a key for another provider only.
func (s *Session) modelFor(ctx context.Context, a Agent) string {
	info := s.Info()
	model := s.rt.modelOf(info.Cwd, a.Model, info.Model)
	if model == "" || model == info.Model || s.rt.o.Models == nil {
		return model
	}
	if _, _, err := s.rt.o.Models.Resolve(ctx, info.Cwd, model); err != nil {
		s.Notice("warning", fmt.Sprintf("The agent %s works with the session's model, because its own cannot be used: %v", a.Name, err))
		return ""
	}
	return model
}

// childLabel names a sub-agent to the person, before what it asks.
func childLabel(agent, description string) string {
	if description == "" {
		return agent
	}
	return agent + ": " + description
}

// run runs the task as one turn of the sub-agent and returns its last text. The error is a *tools.Error with the id that resumes the task,
// a rejection that also ends the parent's step, or the error of ctx.
func (sp spawner) run(ctx context.Context, kid *Session, t tools.Task) (tools.TaskResult, error) {
	out := tools.TaskResult{ID: kid.ID(), Model: kid.Info().Model}
	release, err := sp.c.s.tasks.slot(ctx)
	if err != nil {
		return out, err
	}
	defer release()
	end, err := kid.Prompt(ctx, Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: t.Prompt}}})
	// The costs of all levels are added to the session that the person talks to.
	kid.Top().tasks.spend(end)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	out.Text, out.Steps = kid.hist.lastWords(), end.Steps
	failed := func(why string) error {
		return &tools.Error{Kind: "task_failed", Message: fmt.Sprintf("The sub-agent failed: %s It can be resumed with task_id %s.", why, kid.ID())}
	}
	switch {
	case err != nil:
		return out, failed(err.Error() + ".")
	// A rejection without a message ends the parent's step, as it would for a call of its own.
	case end.Rejected:
		return out, &permission.RejectedError{}
	case end.Stop == TurnError:
		return out, failed(end.Error)
	case end.Stop == TurnCancelled:
		return out, failed("it was cancelled.")
	case end.Stop == TurnRefusal:
		return out, failed("its model declined to answer.")
	case end.Stop == TurnMaxSteps:
		out.Text += "\n\n(It stopped at its limit of steps; resume it with its task_id if more is to be done.)"
	case end.Stop == TurnMaxTokens:
		out.Text += "\n\n(Its answer was cut at the model's output limit.)"
	}
	if strings.TrimSpace(out.Text) == "" {
		out.Text = "(The sub-agent ended without words.)"
	}
	return out, nil
}

// dismiss closes a sub-agent's session. The store keeps it, so that a later task can resume it.
func dismiss(kid *Session, stop func()) {
	// Its turn has ended, so two seconds are enough for the rest.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	kid.Close(ctx)
	stop()
}

// loadChild is LoadSession for a sub-agent's session. A session that is already live is an error, because its turn still runs.
func (r *Runtime) loadChild(ctx context.Context, id string, of lineage) (*Session, error) {
	s, err := r.loadOf(ctx, id, of, nil)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if r.live[id] != nil {
		return nil, &tools.Error{Kind: "busy", Message: fmt.Sprintf("The task %s is still running; wait for its result.", id)}
	}
	r.live[id] = s
	return s, nil
}

// childAsker puts the sub-agent's name before the title of a permission request.
type childAsker struct {
	permission.Asker
	label string
}

// AskPermission implements permission.Asker.
func (a childAsker) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	if r.Title == "" {
		r.Title = strings.TrimSpace(r.Permission + " " + strings.Join(r.Patterns, ", "))
	}
	r.Title = "[" + a.label + "] " + r.Title
	return a.Asker.AskPermission(ctx, r)
}

// childQuestions puts the sub-agent's name before each question.
type childQuestions struct {
	tools.Questioner
	label string
}

// AskQuestions implements tools.Questioner.
func (q childQuestions) AskQuestions(ctx context.Context, call *tools.Call, qs []tools.Question) ([][]string, error) {
	qs = slices.Clone(qs)
	for i := range qs {
		qs[i].Question = "[" + q.label + "] " + qs[i].Question
	}
	return q.Questioner.AskQuestions(ctx, call, qs)
}

// taskWatch shows the sub-agent's progress on the task's card: one line for each finished call, the newest maxProgress of them.
type taskWatch struct {
	call *tools.Call
	kid  *Session

	mu    sync.Mutex // guards what follows
	lines []string
	seen  map[string]bool // ids of finished calls
	count int
}

// maxProgress is how many lines of progress a card shows.
const maxProgress = 12

// started links the card to the sub-agent's session; since is the number of its last event before this task.
func (w *taskWatch) started(t tools.Task, since int64) {
	info := w.kid.Info()
	w.call.Report(tools.Update{Title: info.Title, Metadata: map[string]any{"sessionId": info.ID, "agent": info.Agent, "model": info.Model, "background": t.Background, "since": since}})
}

// event is the sink of the sub-agent's events.
func (w *taskWatch) event(e Event) {
	if e.Type != EventTool {
		return
	}
	d := decode[ToolData](e)
	w.mu.Lock()
	var line string
	switch {
	// Calls by hand, such as those inside another call, have no message and do not count.
	case w.seen[d.CallID] || d.MessageID == "":
	case d.Status == ToolCompleted || d.Status == ToolError:
		w.seen[d.CallID] = true
		w.count++
		mark := "✓ "
		if d.Status == ToolError {
			mark = "✗ "
		}
		line = mark + strings.TrimSpace(d.Tool+" "+textutil.FirstLine(d.Title))
		w.lines = append(w.lines, line)
	}
	if line == "" {
		w.mu.Unlock()
		return
	}
	text := strings.Join(w.lines[max(0, len(w.lines)-maxProgress):], "\n")
	if more := len(w.lines) - maxProgress; more > 0 {
		text = fmt.Sprintf("… %d calls before\n%s", more, text)
	}
	count := w.count
	w.mu.Unlock()
	// After unlocking, because Report emits an event of the parent session.
	w.call.Report(tools.Update{Metadata: map[string]any{"output": text, "calls": count}})
}
