package review

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
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
	asker    permission.Asker
	person   Notifier

	mu      sync.Mutex
	dismiss context.CancelFunc // ends what is asked now; guarded by mu
}

// NewReopener makes the reopener of a session as one editor has it open.
func NewReopener(rt *agent.Runtime, r *Reviewer, asker permission.Asker, person Notifier) *Reopener {
	return &Reopener{rt: rt, session: r.session, reviewer: r, asker: asker, person: person}
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

func (o *Reopener) askOnceMore(conn, ctx context.Context, u *unanswered) {
	if u.set == nil {
		o.lost(ctx, u, fmt.Sprintf("A question%s was open when this session was cut off (%s: %s). It was not answered, and nothing was run.", u.from(), u.ask.Permission, strings.Join(u.ask.Patterns, ", ")))
		return
	}
	if o.reviewer.files == nil {
		return
	}
	set, err := o.reviewer.whole(u.set)
	if err == nil {
		set, err = rebased(set, o.reviewer.files)
	}
	if err != nil {
		o.lost(ctx, u, fmt.Sprintf("The change “%s”%s waited for your decision when this session was cut off, and no longer fits: %v. Nothing was written; ask for it anew.", u.set.Title, u.from(), err))
		return
	}
	o.session.RecordChange(u.ask.CallID, change.Proposed, set)
	done := o.session.Waiting(u.ask.CallID)
	defer done()
	title := set.Title
	if u.of != nil {
		title = "[" + u.of.Title + "] " + title
	}
	reply, err := o.asker.AskPermission(ctx, permission.Request{ID: u.ask.ID, SessionID: o.session.ID(), CallID: u.ask.CallID, Tool: u.tool.Tool, Permission: u.ask.Permission,
		Patterns: u.ask.Patterns, Title: title, Why: "it waited for you when this session was cut off; the files were compared again", Change: set})
	if err != nil {
		if conn.Err() == nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)) { // the person dismissed it; else it stays open
			o.decided(ctx, u, change.Rejected, set, "cancelled", "The user dismissed the question about this change. Nothing was written.")
		}
		return
	}
	o.carryOut(context.WithoutCancel(ctx), u, set, reply)
}

// from names the sub-agent that asked.
func (u *unanswered) from() string {
	if u.of == nil {
		return ""
	}
	return " of the task “" + u.of.Title + "”"
}

// rebased is a proposal on the files as they are now; its hunks keep their ids.
func rebased(set *change.Set, files Files) (*change.Set, error) {
	out := *set
	out.Files, out.Verdict = nil, nil // what was known of its problems was about another text
	for _, f := range set.Files {
		now, exists := files.Present(f.Path)
		switch {
		case f.Kind == change.Create && !exists:
			out.Files = append(out.Files, f)
			continue
		case f.Kind != change.Create && !exists:
			return nil, fmt.Errorf("%s is gone", f.Path)
		}
		moved, err := f.Rebase(now)
		if err != nil {
			return nil, err
		}
		out.Files = append(out.Files, moved)
	}
	return &out, nil
}

// carryOut does what the person decided about a change that was offered again.
func (o *Reopener) carryOut(ctx context.Context, u *unanswered, set *change.Set, reply permission.Reply) {
	var decisions change.Decisions
	if reply.Decisions != nil {
		decisions = *reply.Decisions
	}
	if decisions.Default == "" {
		decisions.Default = change.Accept
		if reply.Kind == permission.Reject {
			decisions.Default = change.Reject
		}
	}
	if reply.Message != "" && decisions.Comment == "" {
		decisions.Comment = reply.Message
	}
	d, err := set.Decide(decisions)
	if err != nil {
		o.lost(ctx, u, "The decision could not be used: "+err.Error())
		return
	}
	report := d.Report(func(p string) string { return p })
	if len(d.Set.Files) == 0 {
		o.decided(ctx, u, change.Rejected, set, "reject", withReport("The user has now rejected this change; nothing was written.", report))
		return
	}
	o.reviewer.mu.Lock()
	defer o.reviewer.mu.Unlock()
	var written *change.Set
	err = o.session.Beside(ctx, func(ctx context.Context) error {
		o.session.RecordChange(u.ask.CallID, change.Writing, d.Set)
		var err error
		written, err = o.reviewer.files.Apply(ctx, d.Set)
		return err
	})
	if err != nil {
		o.decided(ctx, u, change.Failed, set, "once", "The user accepted this change, but it could not be written: "+err.Error())
		return
	}
	o.decided(ctx, u, change.Applied, written, "once", withReport("The user has now accepted this change; it is written.", report))
}

// decided records what became of the question, for people, editors and the model.
func (o *Reopener) decided(ctx context.Context, u *unanswered, state change.State, set *change.Set, reply, words string) {
	ctx = context.WithoutCancel(ctx)
	o.session.RecordChange(u.ask.CallID, state, set)
	u.ask.Reply = reply
	o.session.RecordAsk(u.ask)
	if u.tool.CallID != "" {
		t := u.tool
		t.Status, t.Error, t.ErrorKind, t.Output, t.Metadata = agent.ToolCompleted, "", "", words, nil
		if state != change.Applied {
			t.Status, t.Error, t.ErrorKind, t.Output = agent.ToolError, words, "rejected", ""
		}
		o.session.RecordTool(t)
	}
	o.tellModel(ctx, u, words)
	o.person.Notice("info", words+"\nSend a prompt, for example “continue”, to go on.")
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
