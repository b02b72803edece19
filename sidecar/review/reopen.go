package review

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// Notifier shows a notice to the person who has the session open; level is info or warning.
type Notifier interface {
	Notice(level, text string)
	// Resumable says that a turn was cut off and can continue with a prompt. accepted: the person accepted what it waited for, so
	// an editor may send that prompt itself; after a rejection the person says what to do instead.
	Resumable(accepted bool)
}

// Reopener asks again for approvals that were pending when a session was cut off, by a crash or by closing the last
// editor.
type Reopener struct {
	rt       *agent.Runtime
	session  *agent.Session
	reviewer *Reviewer
	// person is one editor and not all of them: the first editor that opens the session is asked.
	person Notifier

	mu      sync.Mutex
	dismiss context.CancelFunc // ends what is asked now; guarded by mu
}

// NewReopener makes the reopener of a session as one editor has it open.
func NewReopener(rt *agent.Runtime, r *Reviewer, person Notifier) *Reopener {
	return &Reopener{rt: rt, session: r.session, reviewer: r, person: person}
}

// Ask asks again, one request after the other, or reports what can no longer be asked. Nothing else of the turn is
// resumed: the next prompt continues, and the model then knows the decisions. conn ends with the editor's connection;
// requests that are open then stay pending.
func (o *Reopener) Ask(conn context.Context) {
	all, err := o.unanswered(conn)
	// A session in which a turn runs has continued without these answers.
	if err != nil || len(all) == 0 || o.session.State().Busy {
		return
	}
	ctx, cancel := context.WithCancel(conn)
	defer cancel()
	o.mu.Lock()
	o.dismiss = cancel
	o.mu.Unlock()
	decided, accepted := false, false
	for _, u := range all { // those that were dismissed unseen are recorded as well
		d, a := o.askAgain(conn, ctx, u)
		decided, accepted = decided || d, accepted || a
	}
	// Only after the last one: a prompt would run beside the requests that are still to be asked.
	if decided && ctx.Err() == nil {
		o.person.Resumable(accepted)
	}
}

// Dismiss ends the present request and those after it as not wanted.
func (o *Reopener) Dismiss() {
	o.mu.Lock()
	dismiss := o.dismiss
	o.dismiss = nil
	o.mu.Unlock()
	if dismiss != nil {
		dismiss()
	}
}

// askAgain asks for one change again, as a tool call of the session: through the same gate and the same writer as the
// first time. It reports whether the person decided, and whether the change was written.
func (o *Reopener) askAgain(conn, ctx context.Context, u *unanswered) (decided, accepted bool) {
	if u.set == nil {
		o.reportLost(ctx, u, fmt.Sprintf("An approval request%s was pending when this session was interrupted (%s: %s). It was not answered, and nothing was run.", u.ofTask(), u.ask.Permission, strings.Join(u.ask.Patterns, ", ")))
		return false, false
	}
	set, err := o.reviewer.whole(u.set)
	if err != nil {
		o.outdated(ctx, u, err.Error())
		return false, false
	}
	if u.of != nil {
		in := *set
		in.Title = "[" + u.of.Title + "] " + in.Title
		set = &in
	}
	tool, ok := o.reviewer.desk.reopen(o.session.ID(), set, u.ask.ID)
	if !ok {
		return false, false
	}
	// The call keeps its id, so that the editor updates the card that it has, and the answer is stored under the call
	// that the model knows.
	call := u.tool
	call.CallID = u.ask.CallID
	d := o.session.FinishCall(ctx, call, tool)
	if d.Status == agent.ToolCompleted {
		o.reportOutcome(conn, u, withReport("The user has now accepted this change; it is written.", d.Output), "You accepted this change; it is written.")
		return true, true
	}
	switch d.ErrorKind {
	case "cancelled":
		if conn.Err() == nil { // the person dismissed it; else it stays open
			o.reportOutcome(conn, u, "The user dismissed the approval request for this change. Nothing was written.", "You dismissed the approval request for this change. Nothing was written.")
		}
	case "rejected":
		o.reportOutcome(conn, u, withReport("The user has now rejected this change; nothing was written.", d.Error), "You rejected this change; nothing was written.")
		return true, false
	case tools.KindOutdated:
		o.outdated(conn, u, d.Error)
	case "denied":
		o.reportLost(conn, u, fmt.Sprintf("The change “%s”%s was pending when this session was interrupted, and a rule now denies it: %s", u.set.Title, u.ofTask(), d.Error))
	default:
		o.reportOutcome(conn, u, "The user accepted this change, but it could not be written: "+d.Error, "You accepted this change, but it could not be written: "+d.Error)
		return true, false
	}
	return false, false
}

// ofTask names the task of the sub-agent that asked; "" for the session itself.
func (u *unanswered) ofTask() string {
	if u.of == nil {
		return ""
	}
	return " of the task “" + u.of.Title + "”"
}

// reportOutcome tells the model and the person what became of the request, each in their own words.
func (o *Reopener) reportOutcome(ctx context.Context, u *unanswered, words, person string) {
	// The file may be written already: the model must learn of it even if the editor has left in the meantime.
	o.tellModel(context.WithoutCancel(ctx), u, words)
	o.person.Notice("info", person)
}

// outdated reports a change that no longer fits the files, or whose texts are gone.
func (o *Reopener) outdated(ctx context.Context, u *unanswered, why string) {
	o.reportLost(ctx, u, fmt.Sprintf("The change “%s”%s was pending when this session was interrupted, and no longer fits the files: %s. Nothing was written; ask for it again.", u.set.Title, u.ofTask(), why))
}

// reportLost closes a request that cannot be asked again, and reports it once, to the model and to the person. why is for both.
func (o *Reopener) reportLost(ctx context.Context, u *unanswered, why string) {
	// The reply closes the request in the log; without it every start would report it again.
	u.ask.Reply = "lost"
	o.session.RecordAsk(u.ask)
	o.tellModel(ctx, u, why)
	o.person.Notice("warning", why)
}

// tellModel adds the outcome of an interrupted call to the conversation; it starts no turn.
func (o *Reopener) tellModel(ctx context.Context, u *unanswered, words string) {
	text := "About the interrupted call"
	if u.tool.Tool != "" {
		text += " of " + u.tool.Tool
	}
	if u.of != nil {
		text += " in the task " + u.of.ID + " (" + u.of.Title + ")"
	}
	if u.set != nil {
		text += " (" + u.set.Title + ")"
	}
	_ = o.session.Tell(ctx, []provider.Part{{Type: provider.PartText, Synthetic: true, Text: text + ": " + words}})
}

// withReport adds to words what the tool reported of single hunks, if anything.
func withReport(words, report string) string {
	if report == "" {
		return words
	}
	return words + "\n" + report
}
