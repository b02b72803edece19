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

// Apply asks for a decision on an edit that a server requests. nil means that all of it was
// applied; an error is reported to the server.
type Apply func(ctx context.Context, label string, edits []FileEdit) error

// commandBudget is how long a command may take, without the time that a person needs for its edits.
const commandBudget = 60 * time.Second

// errOnlyRuns refuses to preview an action that is a command: its changes are known only when it runs.
var errOnlyRuns = errors.New("its changes are known only when its command runs")

// RunAction carries an action out. apply gets its edit, or one after the other the edits that its command
// requests; the server learns the result of each. It fails when the server that offered the action no
// longer serves the file.
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
		release() // applying an edit checks it first, which needs the documents
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

// askedLate is how long after a command's answer the server may still request its edit: some answer first.
const askedLate = 500 * time.Millisecond

// fileTick is how far the time of a file on disk may lag behind the clock, because the kernel stamps files
// with a coarser one.
const fileTick = 20 * time.Millisecond

// command is a command that a server runs for us. Edits that the server requests meanwhile belong to it.
type command struct {
	apply   Apply
	ctx     context.Context // of the caller; that of a request from the server lives as long as the connection
	title   string
	began   time.Time
	asked   chan struct{} // closed when the server has requested an edit
	once    sync.Once
	pending sync.WaitGroup // edits that are being decided
	clock   *time.Timer    // cancels the command when the server takes too long

	mu  sync.Mutex
	err error // guarded by mu; of an edit that could not even be shown; final when pending is done
}

// fail notes an edit that could not be resolved: the person never saw it, so the command has failed.
func (r *command) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

// commandRun is the command that a server runs for us. Only one runs at a time: nothing in
// workspace/applyEdit says which command it belongs to.
type commandRun struct {
	conn    *connection
	able    *abilities
	resolve func(lsp.WorkspaceEdit) ([]FileEdit, error) // an edit of the server as edits of files
	token   chan struct{}                               // full while a command runs

	mu  sync.Mutex
	now *command // guarded by mu; nil when none runs
}

// newCommandRun makes the channel with room for one token: a caller puts it in, runs its command and takes it out; the next one waits.
func newCommandRun(conn *connection, able *abilities, resolve func(lsp.WorkspaceEdit) ([]FileEdit, error)) *commandRun {
	return &commandRun{conn: conn, able: able, resolve: resolve, token: make(chan struct{}, 1)}
}

// set changes the running command; nil ends it.
func (r *commandRun) set(run *command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = run
}

// busy reports that the server runs a command for us. Most servers handle one request at a time: until the edit of the
// command is decided they answer nothing else, and a check would wait in vain.
func (r *commandRun) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now != nil
}

// join returns the command to which an edit belongs that the server requests now; nil when none runs. It
// stops the command's clock while a person decides; the caller must call leave.
func (r *commandRun) join() *command {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		r.now.pending.Add(1)
		// Once, because a server may request several edits for one command.
		r.now.once.Do(func() { close(r.now.asked) })
		r.now.clock.Stop()
	}
	return r.now
}

// leave ends what join began and restarts the clock.
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
	// The cause names the time limit; the context alone would only say that it was cancelled.
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
	if err == nil { // some servers answer first and ask then
		select {
		case <-run.asked:
		case <-time.After(askedLate):
		case <-ctx.Done():
		case <-r.conn.gone:
		}
	}
	// From here on an edit that the server requests goes to the person, not to this command.
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

// applyFor resolves an edit of a command and lets the command's caller decide on it.
func (r *commandRun) applyFor(run *command, label string, edit lsp.WorkspaceEdit) error {
	edits, err := r.resolve(edit)
	if err != nil || len(edits) == 0 {
		run.fail(err)
		return err
	}
	if label == "" {
		label = run.title
	}
	for i := range edits { // typescript-language-server makes new files before it asks
		e := &edits[i]
		if fi, err := os.Lstat(e.Path); e.Kind == "edit" && e.Old == "" && err == nil && fi.Mode().IsRegular() && fi.Size() == 0 && fi.ModTime().After(run.began.Add(-fileTick)) {
			e.Kind, e.Made = "create", true
		}
	}
	return run.apply(run.ctx, label, edits)
}
