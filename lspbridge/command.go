package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// Apply asks for a decision on an edit that a server requests. nil means that all of it was applied; the server is told an error.
type Apply func(ctx context.Context, label string, edits []FileEdit) error

// commandBudget is how long a command may take, not counting the time in which a person decides on its edits.
const commandBudget = 60 * time.Second

// errOnlyRuns is the error for previewing an action that is a command.
var errOnlyRuns = errors.New("its changes are known only when its command runs")

// RunAction executes an action. apply is called with its edit, or with one edit after the other that its command requests, and the server
// learns each result. It fails when the server that offered the action no longer serves the file.
func (q questions) RunAction(ctx context.Context, a Action, apply Apply) error {
	if a.Disabled != "" {
		return fmt.Errorf("%s: %s", a.Title, a.Disabled)
	}
	for _, s := range q.serversOf(a.Path) {
		if s.spec.ID != a.Server {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, queryBudget)
		defer cancel()
		c, err := s.get(asking)
		if err != nil {
			return err
		}
		release, err := c.exclusive.acquire(asking)
		if err != nil {
			return err
		}
		c.sync(c.withBuffers([]string{a.Path}))
		edits, cmd, err := c.resolveAction(asking, a)
		release() // apply checks the edit first, which needs the documents
		switch {
		case err != nil:
			return err
		case cmd != nil:
			return c.commands.execute(ctx, cmd, apply)
		case len(edits) == 0:
			return nil
		}
		return apply(ctx, a.Title, edits)
	}
	return fmt.Errorf("%s does not run for %s any more", a.Server, a.Path)
}

// askedLate is how long after answering a command the server may still request its edit: some servers answer first.
const askedLate = 500 * time.Millisecond

// fileTick is how far a file's time may lag behind the clock: the kernel stamps files with a coarser clock.
const fileTick = 20 * time.Millisecond

// command is a running workspace/executeCommand. Edits that the server requests meanwhile belong to it.
type command struct {
	apply   Apply
	ctx     context.Context // the caller's; the context of a server's request lasts as long as the connection
	title   string
	began   time.Time
	asked   chan struct{} // closed when the server has requested an edit
	once    sync.Once
	pending sync.WaitGroup // edits that are being decided
	clock   *time.Timer    // cancels the command when the server takes too long

	mu  sync.Mutex
	err error // guarded by mu; errors of edits that could not be shown; complete when pending is done
}

// fail records an edit that could not be resolved: the person never saw it, so the command has failed.
func (r *command) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

// commandRun runs commands on one server, one at a time: nothing in workspace/applyEdit tells which command an edit belongs to.
type commandRun struct {
	conn    *connection
	able    *abilities
	resolve func(lsp.WorkspaceEdit) ([]FileEdit, error) // turns a workspace edit into edits of files
	token   chan struct{}                               // full while a command runs

	mu  sync.Mutex
	now *command // guarded by mu; nil when none runs
}

// newCommandRun makes the token channel with room for one: a caller puts a token in, runs its command and takes it out; others wait.
func newCommandRun(conn *connection, able *abilities, resolve func(lsp.WorkspaceEdit) ([]FileEdit, error)) *commandRun {
	return &commandRun{conn: conn, able: able, resolve: resolve, token: make(chan struct{}, 1)}
}

// set sets the running command; nil means that none runs.
func (r *commandRun) set(run *command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = run
}

// busy reports whether a command runs on the server. Most servers handle one request at a time: until the command's edit is decided they
// answer nothing else, and a check would wait in vain.
func (r *commandRun) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now != nil
}

// join returns the command to which an edit belongs that the server requests at this moment; nil when none runs. It stops the command's
// clock while a person decides; the caller must then call leave.
func (r *commandRun) join() *command {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		r.now.pending.Add(1)
		// Only once: a server may request several edits for one command.
		r.now.once.Do(func() { close(r.now.asked) })
		r.now.clock.Stop()
	}
	return r.now
}

// leave restarts the clock that join stopped.
func (r *command) leave() {
	r.clock.Reset(commandBudget)
	r.pending.Done()
}

// execute runs a command on the server and waits until all edits that it requests are decided.
func (r *commandRun) execute(ctx context.Context, cmd *lsp.Command, apply Apply) error {
	if !r.able.runs(cmd.Command) {
		return fmt.Errorf("%q is a command of an editor, not of %s", cmd.Command, r.conn.id)
	}
	select {
	case r.token <- struct{}{}:
		defer func() { <-r.token }()
	case <-ctx.Done():
		return fmt.Errorf("%s is running another command", r.conn.id)
	}
	// The cause names the time limit; the context's error would only say "cancelled".
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := &command{apply: apply, ctx: ctx, title: cmd.Title, began: time.Now(), asked: make(chan struct{})}
	run.clock = time.AfterFunc(commandBudget, func() {
		cancel(fmt.Errorf("%s did not finish %s within %v", r.conn.id, cmd.Command, commandBudget))
	})
	defer run.clock.Stop()
	r.set(run)
	params := map[string]any{"command": cmd.Command}
	if len(cmd.Arguments) > 0 {
		params["arguments"] = cmd.Arguments
	}
	err := r.conn.call(ctx, protocol.MethodWorkspaceExecuteCommand, params, nil)
	if err == nil { // some servers answer before they request the edit
		select {
		case <-run.asked:
		case <-time.After(askedLate):
		case <-ctx.Done():
		case <-r.conn.gone:
		}
	}
	// From here on, an edit that the server requests does not belong to this command and is decided like any other.
	r.set(nil)
	run.pending.Wait()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s: %w", cmd.Command, err)
	}
	return run.err
}

// applyFor resolves an edit of a command and passes it to the command's caller for a decision.
func (r *commandRun) applyFor(run *command, label string, edit lsp.WorkspaceEdit) error {
	edits, err := r.resolve(edit)
	if err != nil || len(edits) == 0 {
		run.fail(err)
		return err
	}
	if label == "" {
		label = run.title
	}
	for i := range edits { // typescript-language-server creates new files before it requests the edit
		e := &edits[i]
		if fi, err := os.Lstat(e.Path); e.Kind == "edit" && e.Old == "" && err == nil && fi.Mode().IsRegular() && fi.Size() == 0 && fi.ModTime().After(run.began.Add(-fileTick)) {
			e.Kind, e.Made = "create", true
		}
	}
	return run.apply(run.ctx, label, edits)
}
