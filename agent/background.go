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

// taskSet are a session's sub-agents: how many run, and what those in the background have come to. The turn that
// started them waits for them before it ends, and ends them when it is cancelled.
type taskSet struct {
	mu      sync.Mutex
	slots   chan struct{}      // guarded by mu: made with the first task
	running int                // guarded by mu: in the background
	done    []finishedTask     // guarded by mu: not yet told to the model
	wake    chan struct{}      // guarded by mu: closed and replaced when one ends
	cancel  context.CancelFunc // guarded by mu: ends those in the background
	ctx     context.Context    // guarded by mu: theirs
	spent   TaskSpend          // guarded by mu: since the turn began
}

type finishedTask struct {
	id, description string
	result          tools.TaskResult
	err             error
}

// slot waits until one more task may run.
func (ts *taskSet) slot(ctx context.Context) (release func(), err error) {
	ts.mu.Lock()
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

// take returns what was spent, and starts anew.
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

// start runs a task in the background.
func (ts *taskSet) start(s *Session, kid *Session, t tools.Task, run func(context.Context) (tools.TaskResult, error)) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
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
		close(ts.wake)
		ts.wake = make(chan struct{})
	}()
}

// stop ends the background tasks; it does not wait for them.
func (ts *taskSet) stop() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.cancel != nil {
		ts.cancel()
		ts.ctx, ts.cancel = nil, nil
	}
}

// state says how many run, and what to wait on for the next one to end.
func (ts *taskSet) state() (running, done int, wake <-chan struct{}) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.running, len(ts.done), ts.wake
}

// tell puts what background tasks have come to into the conversation; any says whether there was something.
func (t *turn) tell() (any bool) {
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

// await waits, at the end of a turn, for a background task or for words of the person; false means that there is
// nothing to wait for, or that the turn was cancelled.
func (t *turn) await(ctx context.Context) bool {
	changed := make(chan struct{}, 1)
	stop := t.s.Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
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
		if !told {
			t.notice("info", fmt.Sprintf("Waiting for %s in the background.", textutil.Plural(running, "task")))
		}
		select {
		case <-wake:
		case <-changed:
		case <-ctx.Done():
		}
	}
}
