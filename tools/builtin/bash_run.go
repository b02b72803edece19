package builtin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// commandRun is a command that was allowed, together with the terminal view in which a person can watch
// it. It lives for one tool call.
type commandRun struct {
	commands
	command run.Command
	title   string
	params  bashParams
	call    *tools.Call
	ended   bool // the person ended it in the terminal view
}

// errEnded is the cause of the cancellation when the person ends a command in its terminal view. It distinguishes that from a canceled
// turn.
var errEnded = errors.New("the user ended the command")

// watched attaches a terminal view and reports its id on the call's card. It returns nil where nobody
// can watch; the methods of a nil view do nothing.
func (r *commandRun) watched(h run.Handles) *run.Terminal {
	c := r.command
	view := r.Shell.Terminals.Attach(run.TerminalInfo{Title: r.title, Command: c.Text, Dir: c.Dir, Call: r.call.CallID, PTY: c.PTY}, h)
	if view != nil {
		r.call.Report(tools.Update{Metadata: map[string]any{"terminalId": view.ID()}})
	}
	return view
}

// runOnce runs the command to its end. A person who ends it in the view cancels this context only: the
// turn continues and the model is told.
func (r *commandRun) runOnce(ctx context.Context) (run.Outcome, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	view := r.watched(run.Handles{Kill: func() { end(errEnded) }})
	c := r.command
	if view != nil {
		// Errors are the view's own: a command must not end because nobody watches it any more.
		c.Raw = func(p []byte) { _, _ = view.Write(p) }
	}
	out, err := r.Shell.Runner.Run(ctx, c)
	r.ended = out.Canceled && context.Cause(ctx) == errEnded
	switch {
	case err != nil:
		view.End(-1, "not started")
	case out.TimedOut:
		view.End(-1, "timed out")
	case out.Canceled:
		view.End(-1, "cancelled")
	default:
		view.End(out.Exit, out.Signal)
	}
	return out, err
}

// result is what the model reads of a run. A command that did not end by itself is an error, but its
// output until then is kept: it often says what it was waiting for.
func (r *commandRun) result(out run.Outcome, limit time.Duration, notes []string) (tools.Result, error) {
	x := addNotes(r.bashResult(r.title, r.params.Description, out, limit), notes)
	if out.TimedOut {
		return x, &tools.Error{Kind: "timeout", Message: fmt.Sprintf("The command did not end within %d ms and was killed with all processes that it had started.", limit.Milliseconds())}
	}
	if r.ended {
		return x, &tools.Error{Kind: "cancelled", Message: "The user ended this command while it ran."}
	}
	return x, nil
}

// background starts the command and shows its first output.
func (r *commandRun) background(ctx context.Context, a *scan.Analysis) (tools.Result, error) {
	c := &r.command
	c.PTY = r.params.PTY
	var job *run.BackgroundJob
	// The view exists before the job, so that it sees the first output; its handles wait until there is a job to act on.
	started := make(chan struct{})
	view := r.watched(run.Handles{
		Input: func(ctx context.Context, data []byte) error {
			<-started
			return job.Input(ctx, string(data), false)
		},
		Kill: func() { <-started; job.Kill() },
	})
	if view != nil {
		c.Raw = func(p []byte) { _, _ = view.Write(p) }
	}
	after := r.beforeCommand(ctx, r.call, a, *c, true)
	job, err := r.startBackground(ctx, r.Shell.Background, *c)
	if err != nil {
		view.End(-1, "not started")
		return tools.Result{}, err
	}
	close(started)
	go func() { // ends with the job, which the session ends
		<-job.Done()
		how := job.Ending()
		view.End(how.Exit, how.Signal)
		// The next question to the language servers, and the next checkpoint, see what it left.
		_ = after(context.WithoutCancel(ctx))
	}()
	return r.firstOutput(ctx, job, r.title, r.params.Description)
}
