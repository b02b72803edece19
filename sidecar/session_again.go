package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// liveSessions are the runtime's, as the registry of editors must know them.
type liveSessions struct {
	rt   *agent.Runtime
	pack func(*change.Set) *change.Set // makes a set small enough to be stored, its contents beside the sessions
}

// Parent implements Sessions.
func (l liveSessions) Parent(session string) string {
	s, ok := l.rt.Session(session)
	if !ok {
		return ""
	}
	return s.Info().Parent
}

// Remember implements Sessions: the contents of a change are stored beside the approval request about it.
func (l liveSessions) Remember(r permission.Request) {
	if r.Change == nil {
		return
	}
	if live, ok := l.rt.Session(r.SessionID); ok {
		go func() {
			live.RecordAsk(agent.AskData{ID: r.ID, CallID: r.CallID, Permission: r.Permission, Patterns: r.Patterns, Set: l.pack(r.Change)})
		}()
	}
}

// askAgain offers what waited for the person when the session was cut off, or says what of it is lost. Nothing else of
// the turn is taken up: the person goes on with a prompt, and the model then knows what was decided.
func (es *editorSession) askAgain(ctx context.Context) {
	all, err := es.unanswered(ctx)
	if err != nil || len(all) == 0 || es.State().Busy {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	es.mu.Lock()
	es.again = cancel
	es.mu.Unlock()
	for _, u := range all { // those that were dismissed unseen are recorded as well
		es.askOnceMore(ctx, u)
	}
}

func (es *editorSession) askOnceMore(ctx context.Context, u *unanswered) {
	s := es.server
	if u.set == nil {
		es.lost(ctx, u, fmt.Sprintf("A question%s was open when this session was cut off (%s: %s). It was not answered, and nothing was run.", u.from(), u.ask.Permission, strings.Join(u.ask.Patterns, ", ")))
		return
	}
	reviewer := s.reviewer(es)
	if reviewer.files == nil {
		return
	}
	set, err := reviewer.whole(u.set)
	if err == nil {
		set, err = rebased(set, reviewer.files)
	}
	if err != nil {
		es.lost(ctx, u, fmt.Sprintf("The change “%s”%s waited for your decision when this session was cut off, and no longer fits: %v. Nothing was written; ask for it anew.", u.set.Title, u.from(), err))
		return
	}
	es.RecordChange(u.ask.CallID, change.Proposed, set)
	done := es.Waiting(u.ask.CallID)
	defer done()
	title := set.Title
	if u.of != nil {
		title = "[" + u.of.Title + "] " + title
	}
	reply, err := s.o.Editors.AskPermission(ctx, permission.Request{ID: u.ask.ID, SessionID: es.ID(), CallID: u.ask.CallID, Tool: u.tool.Tool, Permission: u.ask.Permission,
		Patterns: u.ask.Patterns, Title: title, Why: "it waited for you when this session was cut off; the files were compared again", Change: set})
	if err != nil {
		if s.ctx.Err() == nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)) { // the person dismissed it; else it stays open
			es.decided(u, change.Rejected, set, "cancelled", "The user dismissed the question about this change. Nothing was written.")
		}
		return
	}
	es.carryOut(context.WithoutCancel(ctx), u, set, reply, reviewer)
}

// from names the sub-agent that asked.
func (u *unanswered) from() string {
	if u.of == nil {
		return ""
	}
	return " of the task “" + u.of.Title + "”"
}

// rebased is a proposal on the files as they are now; its hunks keep their ids.
func rebased(set *change.Set, files Reviewer) (*change.Set, error) {
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
func (es *editorSession) carryOut(ctx context.Context, u *unanswered, set *change.Set, reply permission.Reply, r *reviewer) {
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
		es.lost(ctx, u, "The decision could not be used: "+err.Error())
		return
	}
	report := d.Report(func(p string) string { return p })
	if len(d.Set.Files) == 0 {
		es.decided(u, change.Rejected, set, "reject", joinNotes("The user has now rejected this change; nothing was written.", report))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var written *change.Set
	err = es.Beside(ctx, func(ctx context.Context) error {
		es.RecordChange(u.ask.CallID, change.Writing, d.Set)
		var err error
		written, err = r.files.Apply(ctx, d.Set)
		return err
	})
	if err != nil {
		es.decided(u, change.Failed, set, "once", "The user accepted this change, but it could not be written: "+err.Error())
		return
	}
	es.decided(u, change.Applied, written, "once", joinNotes("The user has now accepted this change; it is written.", report))
}

// decided records what became of the question, for people, editors and the model.
func (es *editorSession) decided(u *unanswered, state change.State, set *change.Set, reply, words string) {
	ctx := context.WithoutCancel(es.server.ctx)
	es.RecordChange(u.ask.CallID, state, set)
	u.ask.Reply = reply
	es.RecordAsk(u.ask)
	if u.tool.CallID != "" {
		t := u.tool
		t.Status, t.Error, t.ErrorKind, t.Output, t.Metadata = agent.ToolCompleted, "", "", words, nil
		if state != change.Applied {
			t.Status, t.Error, t.ErrorKind, t.Output = agent.ToolError, words, "rejected", ""
		}
		es.RecordTool(t)
	}
	es.tellModel(ctx, u, words)
	es.view.notice("info", words+"\nSend a prompt, for example “continue”, to go on.")
}

// lost says what cannot be offered again, once.
func (es *editorSession) lost(ctx context.Context, u *unanswered, why string) {
	u.ask.Reply = "lost"
	es.RecordAsk(u.ask)
	es.tellModel(ctx, u, why)
	es.view.notice("warning", why)
}

// tellModel adds to the conversation what became of an interrupted call; no turn begins.
func (es *editorSession) tellModel(ctx context.Context, u *unanswered, words string) {
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
	_ = es.Tell(ctx, []provider.Part{{Type: provider.PartText, Synthetic: true, Text: text + ": " + words}})
}
