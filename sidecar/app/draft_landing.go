package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Finish implements agent.Drafts. round counts from 0 how often the draft was returned to the model in this turn, may says
// whether it may be returned again. The result is the model's next message; "" ends the turn.
func (d *Drafts) Finish(ctx context.Context, s *agent.Session, round int, may bool) (again string) {
	again, _, _ = d.Land(ctx, s, round, may, true)
	return again
}

// Land proposes a session's draft and waits for the decision. turn is true if a model worked in it, false for tool calls from a
// script. again is the model's next message, see Finish. made is false if there was nothing to propose. data is the tool call of
// the proposal; it is empty if the draft was returned to the model.
func (d *Drafts) Land(ctx context.Context, s *agent.Session, round int, may, turn bool) (again string, data agent.ToolData, made bool) {
	d.awaitBegin(s.ID())
	d.mu.Lock()
	o := d.open[s.ID()]
	unused := o != nil && !o.used
	if unused {
		delete(d.open, s.ID())
	}
	d.mu.Unlock()
	if o == nil {
		return "", data, false
	}
	// No call of the turn needed the draft that Begin has created. Unsaved texts of the editor may be in it, which are no proposal.
	if unused {
		o.stop()
		_ = o.Drop()
		o.release()
		return "", data, false
	}
	again, data, made = d.land(ctx, s, o, round, may, turn)
	// Returned to the model before the person was asked: there is no tool call, and the turn continues in the same draft. again may also be
	// set after a decision, but then the draft is finished.
	if again != "" && data.CallID == "" {
		return again, data, made
	}
	d.mu.Lock()
	delete(d.open, s.ID())
	d.mu.Unlock()
	o.release()
	return again, data, made
}

// LandStored proposes a stored draft in a session of its project, for pillion drafts land and /drafts land. There is no model to which it
// could be returned, so it is proposed with its errors. The evidence is what the draft's turn has stored. It fails with draft.ErrBusy while a
// session works in the draft. made is false if the draft has no changes; it is then removed.
func (d *Drafts) LandStored(ctx context.Context, s *agent.Session, x *draft.Draft) (data agent.ToolData, made bool, err error) {
	release, err := x.Acquire()
	if err != nil {
		return data, false, err
	}
	defer release()
	// A landing before a crash may have left half-written files. A session's tools would recover them, but there may be none yet.
	d.app.Changes.RecoverOnce(ctx)
	_, data, made = d.land(ctx, s, &openDraft{Draft: x, app: d.app, root: x.Head().Project}, 0, false, false)
	return data, made, nil
}

// land finishes a draft in this order: the verdict of the language servers, the commands of verify, the approval request, the
// writing. The first two may return the draft to the model, which does not cost the person's attention. If anything fails, the
// draft is kept, with a notice that names it. The results are those of Land.
func (d *Drafts) land(ctx context.Context, s *agent.Session, o *openDraft, round int, may, turn bool) (again string, data agent.ToolData, made bool) {
	fail := func(err error) (string, agent.ToolData, bool) {
		why := "The draft " + o.Head().ID + " could not be proposed: " + err.Error() + ". It is kept; see pillion drafts."
		if ctx.Err() != nil {
			why = "The draft " + o.Head().ID + " was not decided about, because the run was stopped. It is kept; see pillion drafts."
		}
		s.Notice("error", why)
		// A caller that shows no notices has to fail as well.
		return "", agent.ToolData{Status: agent.ToolError, ErrorKind: "draft", Error: why}, true
	}
	env := d.app.Sessions.Env(s.Info())
	rounds := repairRounds
	if n := d.app.ConfigOf(s.Info().Cwd).RepairRounds; n != nil {
		rounds = *n
	}
	l := o.ledger()
	// The draft was returned and the agent has changed nothing: it insists, so the draft is not returned again.
	p, err := o.proposal()
	if err != nil {
		o.stop()
		return fail(err)
	}
	version := change.Version(p.Files)
	insists := l.Back != "" && l.Back == version
	back := may && round < rounds && !insists
	sendBack := func(text string) (string, agent.ToolData, bool) {
		_ = o.Set(func(h *draft.Head) { h.Attempt++ })
		l.Back = o.version() // computed again, as tests may have written files
		// What the agent says it has checked stays beside the proposal, also when its next text is only "Done.".
		l.Earlier = strings.TrimSpace(s.LastWords() + "\n" + l.Earlier)
		_ = o.setLedger(l) // if this fails, the same errors are returned to the agent once more
		return text, data, true
	}
	// Must come before o.stop, because servers in the view need the worker.
	o.checkInView(ctx, env, s.Info(), p)
	known := true
	if back {
		// A server that still loads the project does so while the tests run.
		first, cancel := context.WithTimeout(ctx, verdictFirst)
		var text string
		text, known = d.repair(first, env, o, s.Info())
		cancel()
		if text != "" {
			return sendBack(text)
		}
	}
	if !l.settled(version) {
		if checks := d.verify(ctx, s, o, p); turn || len(checks) > 0 {
			l.Checks = checks
		}
	}
	failed := failures(l.Checks)
	if back && failed != "" {
		return sendBack(failed)
	}
	if back && !known {
		if text, _ := d.repair(ctx, env, o, s.Info()); text != "" {
			return sendBack(text)
		}
	}
	if turn {
		l.Words, l.Insists = s.LastWords(), ""
		// It was returned, and there are still errors: the agent's last text has its reason.
		if o.Head().Attempt > 0 {
			wrong := failed
			if wrong == "" {
				wrong, _ = d.repair(ctx, env, o, s.Info())
			}
			if wrong != "" {
				l.Insists = builtin.Reason(l.Words)
			}
		}
	}
	var remade map[string]string
	if turn {
		if p, err = o.proposal(); err == nil { // the checks may have written
			remade = d.regenerated(ctx, s, o, p)
		}
	}
	// Nothing may write to the draft while the person reads the proposal: commands in the background end here.
	o.stop()
	for path, state := range o.read { // the session's tools may then edit files that were read in the draft
		if h := o.Head(); h.View != draft.Copy {
			env.Tracker.Note(path, state)
		}
	}
	if p, err = o.proposal(); err != nil {
		return fail(err)
	}
	// Changes that cannot be landed (a socket, a device) are named in the proposal.
	for _, why := range p.Left {
		p.Notes = append(p.Notes, why+".")
	}
	if err := o.setLedger(l); err != nil {
		d.app.O.Log.Warn("keeping a draft's evidence", "draft", o.Dir, "err", err)
	}
	if p.Empty() && p.Unread {
		return fail(p.Err())
	}
	if p.Empty() {
		// If tests ran but nothing was changed, their results are the only result of the turn.
		for i := range l.Checks {
			p.Notes = append(p.Notes, l.Checks[i].String())
		}
		if len(p.Notes) > 0 {
			s.Notice("info", strings.Join(p.Notes, " "))
		}
		_ = o.Drop()
		return "", data, false
	}
	if err := o.Set(func(h *draft.Head) {
		h.State = draft.Proposed
		if h.Title == "" {
			h.Title = s.Info().Title
		}
	}); err != nil {
		return fail(err)
	}
	// With pillion run --hold no user is connected, so the draft keeps the state Proposed.
	if d.app.O.Hold {
		o.keep(context.WithoutCancel(ctx))
		s.Notice("info", fmt.Sprintf("The draft %s with %s is ready: pillion drafts show %[1]s, then pillion drafts land %[1]s.", o.Head().ID, textutil.Plural(len(p.Files), "changed file")))
		return "", data, true
	}
	landing := builtin.Landing{Title: draftTitle(o.Head().Title), Files: p.Files, Notes: p.Notes, Evidence: d.evidenceOf(s, o, l, change.Version(p.Files), remade)}
	for i := range p.Bulk {
		landing.Bulk = append(landing.Bulk, p.Bulk[i].Summary())
	}
	// Folders alone need a decision of their own; with files they are landed together with those.
	if len(p.Files) == 0 {
		for _, f := range p.Folders {
			landing.Bulk = append(landing.Bulk, f.Summary())
		}
	}
	// Called after the files were written. If only some hunks were accepted (partly), folders are left out, as they may belong to the others.
	landing.Take = func(_ context.Context, bulk, partly bool) error {
		var errs []error
		if !partly && (bulk || len(p.Files) > 0) {
			errs = append(errs, o.LandFolders(p.Folders))
		}
		if bulk {
			// After a crash during the copy, this state shows that the project may have a part of the bulk changes.
			_ = o.Set(func(h *draft.Head) { h.State = draft.Landing })
			errs = append(errs, o.LandBulk(p.Bulk))
		}
		return errors.Join(errs...)
	}
	env.Bridge = o.inView(env.Bridge, s.Info(), p)
	// A draft that waits for its decision for days must be on the disk. One that is decided about at once need not wait for the disk.
	keeping, decided := context.WithCancel(ctx)
	waits := time.AfterFunc(keepAfter, func() { o.keep(keeping) })
	data, err = s.ToolBeside(ctx, builtin.Land(env, landing), json.RawMessage(`{}`))
	waits.Stop()
	decided()
	if err != nil {
		return fail(err)
	}
	switch {
	case data.Status == agent.ToolCompleted:
		// What could not be landed is nowhere else.
		if data.Metadata[builtin.Left] == true {
			_ = o.Set(func(h *draft.Head) { h.State = draft.Rejected })
			o.keep(context.WithoutCancel(ctx))
			s.Notice("warning", "Not all of the draft could be landed. It is kept for 14 days: pillion drafts show "+o.Head().ID)
		} else if err := o.Drop(); err != nil {
			d.app.O.Log.Warn("removing a draft", "draft", o.Dir, "err", err)
		}
		if data.Metadata["partly"] == true {
			// The model must know which hunks are not in the project, or its next edits would build on them.
			again = "About your proposal: " + data.Output
		}
	// A draft that the person has rejected is kept but not continued. After any other failure the next turn continues it.
	case data.ErrorKind == "rejected":
		_ = o.Set(func(h *draft.Head) { h.State = draft.Rejected })
		o.keep(context.WithoutCancel(ctx))
		s.Notice("info", "The project did not change. The draft is kept for 14 days: pillion drafts show "+o.Head().ID)
		again = "The user rejected your proposal; nothing of it was written, and the next draft begins from the project as it is. " + data.Error
	default:
		_ = o.Set(func(h *draft.Head) { h.State = draft.Open })
		o.keep(context.WithoutCancel(ctx))
		s.Notice("warning", "The draft "+o.Head().ID+" was not landed and is kept: "+data.Error)
	}
	return again, data, true
}

// keepAfter is how long a proposal waits for its decision before its draft is written to the disk.
const keepAfter = time.Second

// draftTitle is the title of a proposal. Front ends add how many files and hunks it has.
func draftTitle(of string) string {
	if of = textutil.FirstLine(of); of == "" {
		return "draft"
	}
	return "draft: " + textutil.Shorten(of, 60)
}

// repairRounds is how often a draft with errors or failed checks is returned to the model before the person is asked, unless the setting
// repair_rounds has another number. Without a limit, a model that cannot fix an error would continue at the person's cost.
const repairRounds = 3

// verdictFirst is how long the verdict is waited for before the tests begin. Servers that know the project answer within it.
const verdictFirst = 500 * time.Millisecond

// repair asks the language servers for a verdict on the whole draft and returns a message for the model about introduced
// errors, "" if there are none. Only a fresh verdict counts: from a server that has not finished the errors may be wrong. known is
// false if asking again may give another answer.
func (d *Drafts) repair(ctx context.Context, env builtin.Env, o *openDraft, info agent.SessionInfo) (text string, known bool) {
	v, err := o.verdict(ctx, env, info)
	if err != nil || v == nil || v.Certainty != change.Fresh { // land calls proposal again and reports the error
		return "", err == nil && (v == nil || v.Certainty != change.Pending)
	}
	introduced, _ := v.Errors()
	if introduced == 0 {
		return "", true
	}
	return fmt.Sprintf("Before the user is asked: the language servers have checked all that you did in this draft, and it introduces %s:\n%s", textutil.Plural(introduced, "error"), builtin.ErrorList(v, func(p string) string { return p })) +
		"Mend them. If they are meant to be there, say why in one sentence and change nothing; the user will see the errors and your sentence with your proposal.", true
}
