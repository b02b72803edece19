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
// whether it may be returned again. again is the model's next message; "" ends the turn, and so does over.
func (d *Drafts) Finish(ctx context.Context, s *agent.Session, round int, may bool) (again string, over bool) {
	again, data, _ := d.Land(ctx, s, round, may, true)
	return again, data.Unexplained
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
	rounds := repairRounds
	if n := d.app.ConfigOf(s.Info().Cwd).RepairRounds; n != nil {
		rounds = *n
	}
	l := &landing{d: d, s: s, o: o, env: d.app.Sessions.Env(s.Info()), turn: turn, ledger: o.ledger()}
	again, data, made, err := l.run(ctx, may && round < rounds)
	if err == nil {
		return again, data, made
	}
	why := "The draft " + o.Head().ID + " could not be proposed: " + err.Error() + ". It is kept; see pillion drafts."
	if ctx.Err() != nil {
		why = "The draft " + o.Head().ID + " was not decided about, because the run was stopped. It is kept; see pillion drafts."
	}
	s.Notice("error", why)
	// A caller that shows no notices has to fail as well.
	return "", agent.ToolData{Status: agent.ToolError, ErrorKind: "draft", Error: why}, true
}

// landing is one attempt to finish a draft.
type landing struct {
	d      *Drafts
	s      *agent.Session
	o      *openDraft
	env    builtin.Env
	turn   bool   // a model has worked in the draft just now; false for tool calls from a script and for a stored draft
	ledger ledger // stored by sendBack and by seal
}

// run is the whole attempt. back says whether the draft may be returned to the model. The other results are those of Land.
func (l *landing) run(ctx context.Context, back bool) (again string, data agent.ToolData, made bool, err error) {
	p, err := l.o.proposal()
	if err != nil {
		l.o.stop()
		return "", data, false, err
	}
	version := change.Version(p.Files)
	// The draft was returned and the agent has changed nothing: it insists, so the draft is not returned again.
	insists := l.ledger.Back != "" && l.ledger.Back == version
	if text := l.check(ctx, p, version, back && !insists); text != "" {
		l.sendBack(text)
		return text, data, true, nil
	}
	var remade map[string]string
	if l.turn {
		l.noteReason(ctx)
		if p, err = l.o.proposal(); err == nil { // the checks may have written
			remade = l.d.regenerated(ctx, l.s, l.o, p)
		}
	}
	if p, err = l.seal(); err != nil {
		return "", data, false, err
	}
	if p.Empty() {
		l.dropEmpty(p)
		return "", data, false, nil
	}
	if err := l.o.Set(func(h *draft.Head) {
		h.State = draft.Proposed
		if h.Title == "" {
			h.Title = l.s.Info().Title
		}
	}); err != nil {
		return "", data, false, err
	}
	// With pillion run --hold no user is connected, so the draft keeps the state Proposed.
	if l.d.app.O.Hold {
		l.o.keep(context.WithoutCancel(ctx))
		l.s.Notice("info", fmt.Sprintf("The draft %s with %s is ready: pillion drafts show %[1]s, then pillion drafts land %[1]s.", l.o.Head().ID, textutil.Plural(len(p.Files), "changed file")))
		return "", data, true, nil
	}
	if data, err = l.propose(ctx, p, remade); err != nil {
		return "", data, false, err
	}
	return l.decided(ctx, data), data, true, nil
}

// check asks the language servers and runs the commands of verify, whose results are in the ledger afterwards. If back is true, it returns the
// message with which the draft goes back to the model; "" if nothing is wrong. version is that of p's texts.
func (l *landing) check(ctx context.Context, p *draft.Proposal, version string, back bool) (again string) {
	// Must come before o.stop, because servers in the view need the worker.
	l.o.checkInView(ctx, l.env, l.s.Info(), p)
	known := true
	if back {
		// A server that still loads the project does so while the tests run.
		first, cancel := context.WithTimeout(ctx, verdictFirst)
		again, known = l.repair(first)
		cancel()
		if again != "" {
			return again
		}
	}
	if !l.ledger.settled(version) {
		if checks := l.d.verify(ctx, l.s, l.o, p); l.turn || len(checks) > 0 {
			l.ledger.Checks = checks
		}
	}
	if !back {
		return ""
	}
	if failed := failures(l.ledger.Checks); failed != "" {
		return failed
	}
	if !known {
		again, _ = l.repair(ctx)
	}
	return again
}

// sendBack stores what must be known when the model has answered text, the message with which the draft goes back to it.
func (l *landing) sendBack(text string) {
	_ = l.o.Set(func(h *draft.Head) { h.Attempt++ })
	l.ledger.Back = l.o.version() // computed again, as tests may have written files
	// What the agent says it has checked stays beside the proposal, also when its next text is only "Done.".
	l.ledger.Earlier = strings.TrimSpace(l.s.LastWords() + "\n" + l.ledger.Earlier)
	_ = l.o.setLedger(l.ledger) // if this fails, the same errors are returned to the agent once more
}

// noteReason stores the agent's last text. If the draft was returned to it and there are still errors, that text has its reason.
func (l *landing) noteReason(ctx context.Context) {
	l.ledger.Words, l.ledger.Insists = l.s.LastWords(), ""
	if l.o.Head().Attempt == 0 {
		return
	}
	wrong := failures(l.ledger.Checks)
	if wrong == "" {
		wrong, _ = l.repair(ctx)
	}
	if wrong != "" {
		l.ledger.Insists = builtin.Reason(l.ledger.Words)
	}
}

// seal ends everything that may write to the draft, and returns what is proposed: nothing changes while the person reads it.
func (l *landing) seal() (*draft.Proposal, error) {
	l.o.stop()                          // ends commands in the background, too
	for path, state := range l.o.read { // the session's tools may then edit files that were read in the draft
		if h := l.o.Head(); h.View != draft.Copy {
			l.env.Tracker.Note(path, state)
		}
	}
	p, err := l.o.proposal()
	if err != nil {
		return nil, err
	}
	// Changes that cannot be landed (a socket, a device) are named in the proposal.
	for _, why := range p.Left {
		p.Notes = append(p.Notes, why+".")
	}
	if err := l.o.setLedger(l.ledger); err != nil {
		l.d.app.O.Log.Warn("keeping a draft's evidence", "draft", l.o.Dir, "err", err)
	}
	if p.Empty() && p.Unread {
		return nil, p.Err()
	}
	return p, nil
}

// dropEmpty removes a draft without changes. If tests ran, their results are the only result of the turn.
func (l *landing) dropEmpty(p *draft.Proposal) {
	for i := range l.ledger.Checks {
		p.Notes = append(p.Notes, l.ledger.Checks[i].String())
	}
	if len(p.Notes) > 0 {
		l.s.Notice("info", strings.Join(p.Notes, " "))
	}
	_ = l.o.Drop()
}

// propose asks the person and writes what is accepted. remade are generated files, see Drafts.regenerated. The error says that the
// person was not asked; everything else is in the tool call.
func (l *landing) propose(ctx context.Context, p *draft.Proposal, remade map[string]string) (agent.ToolData, error) {
	o := l.o
	proposed := builtin.Landing{Title: draftTitle(o.Head().Title), Files: p.Files, Notes: p.Notes, Evidence: l.d.evidenceOf(l.s, o, l.ledger, change.Version(p.Files), remade)}
	for i := range p.Bulk {
		proposed.Bulk = append(proposed.Bulk, p.Bulk[i].Summary())
	}
	// Folders alone need a decision of their own; with files they are landed together with those.
	if len(p.Files) == 0 {
		for _, f := range p.Folders {
			proposed.Bulk = append(proposed.Bulk, f.Summary())
		}
	}
	// Called after the files were written. If only some hunks were accepted (partly), folders are left out, as they may belong to the others.
	proposed.Take = func(_ context.Context, bulk, partly bool) error {
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
	env := l.env
	env.Bridge = o.inView(env.Bridge, l.s.Info(), p)
	// A draft that waits for its decision for days must be on the disk. One that is decided about at once need not wait for the disk.
	keeping, decided := context.WithCancel(ctx)
	defer decided()
	waits := time.AfterFunc(keepAfter, func() { o.keep(keeping) })
	defer waits.Stop()
	return l.s.ToolBeside(ctx, builtin.Land(env, proposed), json.RawMessage(`{}`))
}

// decided gives the draft the state that follows from its tool call, or removes it. again is the model's next message, see Drafts.Land.
func (l *landing) decided(ctx context.Context, data agent.ToolData) (again string) {
	keep := func(state draft.State) {
		_ = l.o.Set(func(h *draft.Head) { h.State = state })
		l.o.keep(context.WithoutCancel(ctx))
	}
	switch {
	case data.Status == agent.ToolCompleted:
		// What could not be landed is nowhere else.
		if data.Metadata[builtin.Left] == true {
			keep(draft.Rejected)
			l.s.Notice("warning", "Not all of the draft could be landed. It is kept for 14 days: pillion drafts show "+l.o.Head().ID)
		} else if err := l.o.Drop(); err != nil {
			l.d.app.O.Log.Warn("removing a draft", "draft", l.o.Dir, "err", err)
		}
		if data.Metadata["partly"] == true {
			// The model must know which hunks are not in the project, or its next edits would build on them.
			again = "About your proposal: " + data.Output
		}
	// A draft that the person has rejected is kept but not continued. After any other failure the next turn continues it.
	case data.ErrorKind == "rejected":
		keep(draft.Rejected)
		l.s.Notice("info", "The project did not change. The draft is kept for 14 days: pillion drafts show "+l.o.Head().ID)
		again = "The user rejected your proposal; nothing of it was written, and the next draft begins from the project as it is. " + data.Error
	default:
		keep(draft.Open)
		l.s.Notice("warning", "The draft "+l.o.Head().ID+" was not landed and is kept: "+data.Error)
	}
	return again
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
func (l *landing) repair(ctx context.Context) (text string, known bool) {
	v, err := l.o.verdict(ctx, l.env, l.s.Info())
	if err != nil || v == nil || v.Certainty != change.Fresh { // run calls proposal again and reports the error
		return "", err == nil && (v == nil || v.Certainty != change.Pending)
	}
	introduced, _ := v.Errors()
	if introduced == 0 {
		return "", true
	}
	return fmt.Sprintf("Before the user is asked: the language servers have checked all that you did in this draft, and it introduces %s:\n%s", textutil.Plural(introduced, "error"), builtin.ErrorList(v, func(p string) string { return p })) +
		"Mend them. If they are meant to be there, say why in one sentence and change nothing; the user will see the errors and your sentence with your proposal.", true
}
