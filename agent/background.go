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

// TaskSpend is what a turn's sub-agents used.
type TaskSpend struct {
	Tasks int            `json:"tasks"`
	Usage provider.Usage `json:"usage"`
	Cost  float64        `json:"cost,omitempty"`
}

// taskSet are a session's sub-agents: how many run, and the results of those in the
// background. The turn that started them waits for them before it ends, and ends them when
// it is cancelled, so no sub-agent works for a turn that is over.
type taskSet struct {
	mu      sync.Mutex
	slots   chan struct{}      // guarded by mu: made with the first task
	running int                // guarded by mu: in the background
	done    []finishedTask     // guarded by mu: not yet told to the model
	wake    chan struct{}      // guarded by mu: closed and replaced when one ends
	cancel  context.CancelFunc // guarded by mu: ends those in the background
	ctx     context.Context    // guarded by mu: theirs; not the call's, which ends before they do
	spent   TaskSpend          // guarded by mu: since the turn began
}

// finishedTask is the result of a background task until the model reads it.
// It is read between two steps, in the order in which the tasks ended.
type finishedTask struct {
	id, description string
	result          tools.TaskResult
	err             error
}

// slot waits until one more task may run, or returns the context's error. release must be called once.
func (ts *taskSet) slot(ctx context.Context) (release func(), err error) {
	ts.mu.Lock()
	// A session without tasks has no channel.
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

// spend adds a sub-agent's turn.
func (ts *taskSet) spend(end TurnData) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.spent.Tasks++
	ts.spent.Usage = sum(ts.spent.Usage, end.Usage)
	ts.spent.Cost += end.Cost
}

// take returns what was spent since the last call and sets it to zero; nil when no task ran.
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

// start runs a task in the background. Its result waits in done until the turn reads it in reportTasks.
func (ts *taskSet) start(s *Session, kid *Session, t tools.Task, run func(context.Context) (tools.TaskResult, error)) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	// Their context is not that of a call, since they outlive the call that started them.
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
		// wake is replaced under mu, so that state never gives a closed one for a task that still runs.
		close(ts.wake) // every waiter wakes, then looks at state again
		ts.wake = make(chan struct{})
	}()
}

// stop cancels the background tasks and does not wait: a cancelled turn answers at once. The next start makes a new context.
func (ts *taskSet) stop() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.cancel != nil {
		ts.cancel()
		ts.ctx, ts.cancel = nil, nil
	}
}

// state says how many tasks run, how many results wait to be read, and gives a channel that is closed when the next one ends.
// All three are read under one lock, so that a task that ends between two reads is not missed.
func (ts *taskSet) state() (running, done int, wake <-chan struct{}) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.running, len(ts.done), ts.wake
}

// reportTasks adds the results of the background tasks that have ended to the conversation; any says whether there were any.
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

// words is the result as the model reads it, in the tags that the task tool uses, so that it can refer to the id to resume it.
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

// await waits, at the end of a turn, until a background task has ended or the person has sent a message for this turn, and
// returns true: the turn takes another step. False means that no task runs, or that the turn was cancelled.
func (t *turn) await(ctx context.Context) bool {
	changed := make(chan struct{}, 1)
	stop := t.s.Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	// A change that wakes the turn may not be one that it waits for, so the state is looked at again.
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
		// said once, not at each wake-up
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
