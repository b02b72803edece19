package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// TaskSpend counts the sub-agents that a turn ran, and what they cost.
type TaskSpend struct {
	Tasks int            `json:"tasks"`
	Usage provider.Usage `json:"usage"`
	Cost  float64        `json:"cost,omitempty"` // USD
}

// taskSet tracks a session's sub-agents: how many run, and the results of those in the background. A turn waits for its background tasks
// before it ends, and cancels them when it is cancelled, so no sub-agent works for a turn that is over.
type taskSet struct {
	mu      sync.Mutex
	slots   chan struct{}      // guarded by mu; has an element for each running task, at most maxTasks; made with the first task
	running int                // guarded by mu; tasks in the background
	done    []finishedTask     // guarded by mu; results that the model has not read
	wake    chan struct{}      // guarded by mu; closed and replaced when a task ends
	cancel  context.CancelFunc // guarded by mu; cancels the background tasks
	ctx     context.Context    // guarded by mu; of the background tasks, which outlive the call that started them
	spent   TaskSpend          // guarded by mu: since the turn began
}

// finishedTask is the result of a background task until the model reads it. Results are reported between two steps, in the order in which
// tasks ended.
type finishedTask struct {
	id, description string
	result          tools.TaskResult
	err             error
}

// slot blocks until one more task may run, or returns the error of ctx. The caller must call release exactly once.
func (ts *taskSet) slot(ctx context.Context) (release func(), err error) {
	ts.mu.Lock()
	// The channel is made with the first task, because most sessions have none.
	if ts.slots == nil {
		ts.slots = make(chan struct{}, maxTasks)
	}
	slots := ts.slots
	ts.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// spend adds the cost of a sub-agent's turn.
func (ts *taskSet) spend(end TurnData) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.spent.Tasks++
	ts.spent.Usage = sum(ts.spent.Usage, end.Usage)
	ts.spent.Cost += end.Cost
}

// take returns what was spent since the last call and resets it; nil when no task ran.
func (ts *taskSet) take() *TaskSpend {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	spent := ts.spent
	ts.spent = TaskSpend{}
	if spent.Tasks == 0 {
		return nil
	}
	return &spent
}

// cost is what was spent since the turn began, in USD.
func (ts *taskSet) cost() float64 {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.spent.Cost
}

// start runs a task in the background. Its result is kept until the turn calls reportTasks.
func (ts *taskSet) start(s *Session, kid *Session, t tools.Task, run func(context.Context) (tools.TaskResult, error)) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	// Not the context of the call, which ends while the task still runs.
	if ts.ctx == nil {
		ts.ctx, ts.cancel = context.WithCancel(context.Background())
	}
	if ts.wake == nil {
		ts.wake = make(chan struct{})
	}
	ctx := ts.ctx
	ts.running++
	go func() {
		r, err := run(ctx)
		ts.mu.Lock()
		defer ts.mu.Unlock()
		ts.running--
		ts.done = append(ts.done, finishedTask{kid.ID(), t.Description, r, err})
		// wake is replaced under mu, so that state never returns a closed channel while tasks run.
		close(ts.wake) // wakes every waiter, which calls state again
		ts.wake = make(chan struct{})
	}()
}

// stop cancels the background tasks without waiting for them, because a cancelled turn must end at once. The next start makes another
// context.
func (ts *taskSet) stop() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.cancel != nil {
		ts.cancel()
		ts.ctx, ts.cancel = nil, nil
	}
}

// state returns how many tasks run, how many results are unread, and a channel that is closed when the next task ends. All three are read
// under one lock, or a task that ends in between would be missed.
func (ts *taskSet) state() (running, done int, wake <-chan struct{}) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.running, len(ts.done), ts.wake
}

// reportTasks adds the unread results of background tasks to the conversation, and reports whether there were any.
func (t *turn) reportTasks() (any bool) {
	ts := &t.s.tasks
	ts.mu.Lock()
	done := ts.done
	ts.done = nil
	ts.mu.Unlock()
	for _, d := range done {
		t.s.listen(PromptData{MessageID: newID("msg_"), Parts: []provider.Part{{Type: provider.PartText, Synthetic: true, Text: d.words()}}})
	}
	return len(done) > 0
}

// words returns the result as the model reads it, in the tags of the task tool, with the id that resumes the task.
func (d finishedTask) words() string {
	state, tag, text := "completed", "task_result", d.result.Text
	if d.err != nil {
		state, tag, text = "error", "task_error", d.err.Error()
		if errors.Is(d.err, context.Canceled) {
			state, text = "cancelled", "The task was cancelled."
		} else if errors.Is(d.err, permission.ErrRejected) {
			text = "The user rejected a call of this task, so it ended."
		}
	}
	return fmt.Sprintf("The background task %q is over.\n<task id=%q state=%q>\n<%s>\n%s\n</%s>\n</task>", d.description, d.id, state, tag, strings.TrimSpace(text), tag)
}

// await blocks at the end of a turn until a background task has ended or the person has sent a message for this turn, and returns true: the
// turn takes another step. It returns false when no task runs or the turn was cancelled.
func (t *turn) await(ctx context.Context) bool {
	changed := make(chan struct{}, 1)
	stop := t.s.Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	// Watch also reports other changes, so each wake-up reads the state again.
	for told := false; ; told = true {
		running, done, wake := t.s.tasks.state()
		switch {
		case done > 0:
			return true
		case running == 0 || ctx.Err() != nil:
			return false
		case t.s.steered():
			return true
		}
		// The notice is shown once, not at each wake-up.
		if !told {
			t.s.Notice("info", fmt.Sprintf("Waiting for %s in the background.", textutil.Plural(running, "task")))
		}
		select {
		case <-wake:
		case <-changed:
		case <-ctx.Done():
		}
	}
}
