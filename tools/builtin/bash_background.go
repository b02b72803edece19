package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

//go:embed bash_output.txt
var bashOutputText string

//go:embed bash_input.txt
var bashInputText string

//go:embed bash_kill.txt
var bashKillText string

// bashOutputParams name the command; without an ID all are listed. Wait is in milliseconds: with it one call sees the end of a build,
// where the model would otherwise poll.
type bashOutputParams struct {
	ID   string `json:"id,omitempty"`
	Wait int    `json:"wait,omitempty" minimum:"0" maximum:"30000"`
}

// bashInputParams is what to type. Text is typed unchanged; the model adds the line break itself, since some programs wait for a
// single key. EOF closes the input afterwards.
type bashInputParams struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	EOF  bool   `json:"eof,omitempty"`
}

// bashKillParams name the command. There is no signal to choose: everything that the command started is ended.
type bashKillParams struct {
	ID string `json:"id"`
}

const (
	// maxWait bounds one bash_output, so that a turn does not hang on it. It is the schema's maximum, checked again for callers
	// that do not go through the schema.
	maxWait    = 30 * time.Second
	firstLook  = 300 * time.Millisecond // how long a start or an input waits for the program's first output
	inputAsked = "bash_input"           // the permission for typing into a command
)

// startBackground starts a command that has been allowed. It fails when ctx was canceled meanwhile, since the approval request may
// have been open for long and the command would outlive the canceled turn. The error "too_many" lists the running commands, so that
// the model can choose one to end.
func (c commands) startBackground(ctx context.Context, all *run.Background, cmd run.Command) (*run.BackgroundJob, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j, err := all.Start(cmd)
	switch {
	case errors.Is(err, run.ErrBackgroundFull):
		return nil, &tools.Error{Kind: "too_many", Message: err.Error() + " with bash_kill. " + listBackground(all), Err: err}
	case err != nil:
		return nil, &tools.Error{Kind: "not_started", Message: err.Error(), Err: err}
	}
	return j, nil
}

// firstOutput is the result of a start: what the program printed within firstLook, often all that the model needs ("listening on …",
// or an error).
func (c commands) firstOutput(ctx context.Context, j *run.BackgroundJob, title, description string) (tools.Result, error) {
	l, err := j.Look(ctx, firstLook)
	if err != nil {
		j.Kill() // the model would never learn its id
		return tools.Result{}, err
	}
	// A command that ended may have written files, and the language servers must see them before the next question.
	if !l.Running {
		c.flush(ctx)
	}
	r := c.lookResult(title, j, l)
	r.Metadata["description"] = description
	return r, nil
}

// BashOutput shows the new output of a command in the background; without an id it lists the commands. It does not ask, because
// allowing the command allowed its output too.
func BashOutput(env Env) tools.Tool {
	e := env.commands()
	o := e.Shell
	return tools.New("bash_output", bashOutputText, func(ctx context.Context, p bashOutputParams, _ *tools.Call) (tools.Result, error) {
		if strings.TrimSpace(p.ID) == "" {
			list := o.Background.List()
			return tools.Result{Title: fmt.Sprintf("%d background commands", len(list)), Output: listBackground(o.Background), Metadata: map[string]any{"count": len(list)}}, nil
		}
		j, err := findBackground(o, p.ID)
		if err != nil {
			return tools.Result{}, err
		}
		l, err := j.Look(ctx, min(time.Duration(p.Wait)*time.Millisecond, maxWait))
		if err != nil {
			return tools.Result{}, err
		}
		if !l.Running {
			e.flush(ctx)
		}
		return e.lookResult(j.ID+": "+j.Line(), j, l), nil
	}, tools.WithKind(tools.KindExecute), tools.WithKeep(tools.HeadTail), tools.WithPermission("bash"), tools.WithReadOnly())
}

// BashInput types into a command in the background. The text is judged like a command, see askInput.
func BashInput(env Env) tools.Tool {
	e := env.commands()
	o := e.Shell
	return tools.New("bash_input", bashInputText, func(ctx context.Context, p bashInputParams, call *tools.Call) (tools.Result, error) {
		j, err := findBackground(o, p.ID)
		if err != nil {
			return tools.Result{}, err
		}
		if p.Text == "" && !p.EOF {
			return tools.Result{}, &tools.Error{Kind: "empty", Message: "There is nothing to type: set text, or eof to close the input."}
		}
		if !j.Running() {
			return tools.Result{}, &tools.Error{Kind: "ended", Message: j.ID + " has ended, so nothing was typed; bash_output shows how it ended", Err: run.ErrBackgroundEnded}
		}
		// Closing the input types nothing, so it needs no approval.
		if p.Text != "" {
			if err := e.askInput(ctx, call, j, p.Text); err != nil {
				return tools.Result{}, err
			}
		}
		if err := j.Input(ctx, p.Text, p.EOF); err != nil {
			if ctx.Err() != nil {
				return tools.Result{}, err
			}
			return tools.Result{}, &tools.Error{Kind: "not_typed", Message: j.ID + ": " + err.Error() + ". Look with bash_output.", Err: err}
		}
		l, err := j.Look(ctx, firstLook)
		if err != nil {
			return tools.Result{}, err
		}
		return e.lookResult("Type into "+j.ID+": "+visible.Text(p.Text), j, l), nil
	}, tools.WithKind(tools.KindExecute), tools.WithKeep(tools.HeadTail), tools.WithPermission("bash"))
}

// BashKill ends a command in the background without asking: the agent may end what it was allowed to start. A command that had ended
// before is not an error, since the model has what it wanted.
func BashKill(env Env) tools.Tool {
	e := env.commands()
	o := e.Shell
	return tools.New("bash_kill", bashKillText, func(ctx context.Context, p bashKillParams, _ *tools.Call) (tools.Result, error) {
		j, err := findBackground(o, p.ID)
		if err != nil {
			return tools.Result{}, err
		}
		killed := j.Kill()
		l, err := j.Look(ctx, 0)
		if err != nil {
			return tools.Result{}, err
		}
		e.flush(ctx)
		r := e.lookResult("End "+j.ID+": "+j.Line(), j, l)
		if killed {
			return addNotes(r, []string{"It was killed with all processes that it had started."}), nil
		}
		return addNotes(r, []string{"It had ended before."}), nil
	}, tools.WithKind(tools.KindExecute), tools.WithKeep(tools.HeadTail), tools.WithPermission("bash"))
}

// findBackground returns the job with this id. The error lists the existing ids, because models guess "bg_0" and "1".
func findBackground(o BashOptions, id string) (*run.BackgroundJob, error) {
	id = strings.TrimSpace(id)
	if j := o.Background.Get(id); j != nil {
		return j, nil
	}
	why := ""
	if o.UntilTurn {
		why = "Commands of an earlier turn ended with it. "
	}
	return nil, &tools.Error{Kind: "not_found", Message: fmt.Sprintf("There is no background command %q in this session. %s%s", id, why, listBackground(o.Background))}
}

// listBackground lists the commands for the model, one in a line, with id and running time. A command that has ended stays in the list
// until its last output was shown.
func listBackground(all *run.Background) string {
	list := all.List()
	if len(list) == 0 {
		return "No command runs in the background; bash with background starts one."
	}
	var b strings.Builder
	b.WriteString("In the background:")
	for _, j := range list {
		state := "runs for " + since(j.Started)
		if !j.Running() {
			state = "ended, its last output was not looked at"
		}
		fmt.Fprintf(&b, "\n%s (%s): %s", j.ID, state, lastRunes(j.Line(), 200))
	}
	return b.String()
}

// since is a duration as people read it, to a tenth of a second.
func since(t time.Time) string { return time.Since(t).Round(100 * time.Millisecond).String() }

// askInput asks about text that is to be typed into a running program. The program may be a shell, so text that is a command which
// the rules deny is denied too. Otherwise only a rule for bash_input itself lets text through without a question, because the
// analysis cannot know what a program does with its input.
func (c commands) askInput(ctx context.Context, call *tools.Call, j *run.BackgroundJob, text string) error {
	a := c.Shell.Programs.Analyze(c.shellRequest(text, j.Command.Dir, j.Command.Env, nil))
	if a.Refused {
		return &tools.Error{Kind: "refused", Message: "This is not typed: " + a.Why + "."}
	}
	typed := c.callsRequest(a)
	// Only a deny counts in this request; the second one decides whether to ask.
	typed.MustAsk, typed.AskIf = false, permission.AskIfNone
	if len(typed.Patterns) > 0 {
		if _, err := askReply(ctx, call, typed); err != nil {
			return err
		}
	}
	// The pattern reads like a redirection, so a rule can name the program and the input.
	pattern := strings.TrimSpace(j.Command.Text) + " < " + strings.TrimRight(text, "\r\n")
	r := permission.Request{
		Permission: inputAsked, Patterns: []string{pattern}, Named: true, MustAsk: len(a.Protected) > 0,
		Title: "Type into " + j.ID + " (" + j.Line() + "): " + visible.Text(text),
		Why:   "a running program may do anything with what is typed into it",
		Metadata: map[string]any{
			"id": j.ID, "command": visible.Text(pattern), "input": text, "workdir": j.Command.Dir,
		},
	}
	for _, p := range a.Protected {
		r.Why += "; " + p.Path + ": " + p.Reason
	}
	_, err := askReply(ctx, call, r)
	return err
}

// lookResult is the model's view of a command in the background: the output since the last look, then its state in a tag of its own,
// since a command could print "exit code: 0" itself.
func (c commands) lookResult(title string, j *run.BackgroundJob, l run.Look) tools.Result {
	o := l.Output
	text := o.Head
	if o.Truncated {
		text += fmt.Sprintf("\n\n... %d bytes cut out here ...\n\n%s", o.Cut, o.Tail)
	}
	text = strings.TrimRight(text, "\n")
	if strings.TrimSpace(text) == "" {
		text = "(no new output)"
	}
	// exit is null while it runs and where a signal ended it, as in bashResult.
	meta := map[string]any{"id": j.ID, "background": true, "running": l.Running, "truncated": o.Truncated, "output": lastRunes(text, run.LiveOutput), "exit": nil}
	notes := []string{"id: " + j.ID}
	end := l.Ending
	switch {
	case l.Running:
		notes = append(notes, fmt.Sprintf("It has been running in the background for %s. bash_output shows its output, bash_input types into it, bash_kill ends it, and so does the end of the %s.", since(j.Started), c.Shell.life()))
	case end.TimedOut:
		notes = append(notes, fmt.Sprintf("ended after its timeout of %d ms", j.Command.Timeout.Milliseconds()))
	case end.Signal != "":
		notes = append(notes, "ended by signal: "+end.Signal)
		meta["signal"] = end.Signal
	default:
		notes = append(notes, fmt.Sprintf("exit code: %d", end.Exit))
		meta["exit"] = end.Exit
	}
	if o.Path != "" {
		meta["outputPath"] = o.Path
	}
	switch {
	case o.Truncated && o.Path != "":
		notes = append(notes, fmt.Sprintf("%d of %d new bytes are shown. The whole output is in %s; use grep on it, or read with offset and limit.", o.Bytes-o.Cut, o.Bytes, o.Path))
		if o.SpillErr != "" {
			notes = append(notes, "That file is not complete: "+o.SpillErr)
		}
	case o.Truncated:
		notes = append(notes, fmt.Sprintf("%d of %d new bytes are shown; the rest was not saved: %s.", o.Bytes-o.Cut, o.Bytes, o.SpillErr))
	}
	if !l.Running {
		if end.Left > 0 {
			notes = append(notes, fmt.Sprintf("%d process(es) it started still run; bash_kill ends them, and so does the end of the %s.", end.Left, c.Shell.life()))
		}
		notes = append(notes, end.Notes...)
		if end.Stopped != "" {
			notes = append(notes, stoppedNote(end.Stopped))
			meta["sandboxStopped"] = end.Stopped
		}
	}
	if j.Command.Sandbox != nil {
		meta["sandbox"] = true
	}
	return tools.Result{Title: title, Output: text + "\n\n<bash_metadata>\n" + strings.Join(notes, "\n") + "\n</bash_metadata>", Metadata: meta}
}
