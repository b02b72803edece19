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

// Notifier tells the person who has a session open something; level is info or warning.
type Notifier interface {
	Notice(level, text string)
}

// Reopener offers again what waited for the person when a session was cut off.
type Reopener struct {
	rt       *agent.Runtime
	session  *agent.Session
	reviewer *Reviewer
	person   Notifier

	mu      sync.Mutex
	dismiss context.CancelFunc // ends what is asked now; guarded by mu
}

// NewReopener makes the reopener of a session as one editor has it open.
func NewReopener(rt *agent.Runtime, r *Reviewer, person Notifier) *Reopener {
	return &Reopener{rt: rt, session: r.session, reviewer: r, person: person}
}

// Ask offers again what waited, or says what of it is lost. Nothing else of the turn is taken up: the person goes on
// with a prompt, and the model then knows what was decided. conn ends with the editor's connection: what has not been
// answered by then stays open.
func (o *Reopener) Ask(conn context.Context) {
	all, err := o.unanswered(conn)
	if err != nil || len(all) == 0 || o.session.State().Busy {
		return
	}
	ctx, cancel := context.WithCancel(conn)
	defer cancel()
	o.mu.Lock()
	o.dismiss = cancel
	o.mu.Unlock()
	for _, u := range all { // those that were dismissed unseen are recorded as well
		o.askOnceMore(conn, ctx, u)
	}
}

// Dismiss takes what is asked now, and what would be asked after it, as not wanted.
func (o *Reopener) Dismiss() {
	o.mu.Lock()
	dismiss := o.dismiss
	o.dismiss = nil
	o.mu.Unlock()
	if dismiss != nil {
		dismiss()
	}
}

// askOnceMore offers one change again: a call of the session, by the same gate and the same road of changes as when it
// was first proposed.
func (o *Reopener) askOnceMore(conn, ctx context.Context, u *unanswered) {
	if u.set == nil {
		o.lost(ctx, u, fmt.Sprintf("A question%s was open when this session was cut off (%s: %s). It was not answered, and nothing was run.", u.from(), u.ask.Permission, strings.Join(u.ask.Patterns, ", ")))
		return
	}
	set, err := o.reviewer.whole(u.set)
	if err != nil {
		o.outdated(ctx, u, err.Error())
		return
	}
	if u.of != nil {
		in := *set
		in.Title = "[" + u.of.Title + "] " + in.Title
		set = &in
	}
	tool, ok := o.reviewer.desk.reopen(o.session.ID(), set, u.ask.ID)
	if !ok {
		return
	}
	call := u.tool
	call.CallID = u.ask.CallID
	d := o.session.FinishCall(ctx, call, tool)
	if d.Status == agent.ToolCompleted {
		o.told(conn, u, withReport("The user has now accepted this change; it is written.", d.Output))
		return
	}
	switch d.ErrorKind {
	case "cancelled":
		if conn.Err() == nil { // the person dismissed it; else it stays open
			o.told(conn, u, "The user dismissed the question about this change. Nothing was written.")
		}
	case "rejected":
		o.told(conn, u, withReport("The user has now rejected this change; nothing was written.", d.Error))
	case tools.KindOutdated:
		o.outdated(conn, u, d.Error)
	case "denied":
		o.lost(conn, u, fmt.Sprintf("The change “%s”%s waited for your decision when this session was cut off, and is not allowed any more: %s", u.set.Title, u.from(), d.Error))
	default:
		o.told(conn, u, "The user accepted this change, but it could not be written: "+d.Error)
	}
}

// from names the sub-agent that asked.
func (u *unanswered) from() string {
	if u.of == nil {
		return ""
	}
	return " of the task “" + u.of.Title + "”"
}

// told passes on what became of the question, to the model and to the person.
func (o *Reopener) told(ctx context.Context, u *unanswered, words string) {
	o.tellModel(context.WithoutCancel(ctx), u, words)
	o.person.Notice("info", words+"\nSend a prompt, for example “continue”, to go on.")
}

// outdated says that a change does not fit any more.
func (o *Reopener) outdated(ctx context.Context, u *unanswered, why string) {
	o.lost(ctx, u, fmt.Sprintf("The change “%s”%s waited for your decision when this session was cut off, and no longer fits: %s. Nothing was written; ask for it anew.", u.set.Title, u.from(), why))
}

// lost says what cannot be offered again, once.
func (o *Reopener) lost(ctx context.Context, u *unanswered, why string) {
	u.ask.Reply = "lost"
	o.session.RecordAsk(u.ask)
	o.tellModel(ctx, u, why)
	o.person.Notice("warning", why)
}

// tellModel adds to the conversation what became of an interrupted call; no turn begins.
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

// withReport adds what became of single hunks.
func withReport(words, report string) string {
	if report == "" {
		return words
	}
	return words + "\n" + report
}
