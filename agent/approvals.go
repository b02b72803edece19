package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// approvals handles what one session asks the person: permission requests, which its gate decides or forwards, and questions of the
// question tool. While one is open, the session and its parents are marked as waiting.
type approvals struct {
	rt     *Runtime
	log    *EventLog
	head   *Head
	runner *Runner
	of     lineage
	gate   *permission.Gate
}

// newApprovals makes the session's gate. A sub-agent's gate is a child of its parent's, so it may do only what both allow. When a person
// opens a sub-agent's session by itself, its parents are not in memory; then their gates are made from the stored heads, the outermost
// first. root is the Git worktree for which grants are stored.
func newApprovals(rt *Runtime, log *EventLog, head *Head, runner *Runner, of lineage, root string) *approvals {
	a := &approvals{rt: rt, log: log, head: head, runner: runner, of: of}
	own := permission.GateOptions{
		Advise: a.advise, Insist: a.insist,
		Rules: a.rules, Asker: a.asker(), Grants: rt.grants, Project: root, Notify: a.asked, Follow: a.follows,
	}
	// Each gate is a child of the one outside it, so that every one of them must allow.
	for i, head := range slices.Backward(of.heads) { // from the outermost in
		o := own
		o.Rules = func() permission.Ruleset { return rt.rulesOf(head) }
		if i == len(of.heads)-1 {
			a.gate = permission.NewGate(o)
		} else {
			a.gate = a.gate.Child(o, of.heads[i+1].ID)
		}
	}
	if len(of.heads) > 0 {
		a.gate = a.gate.Child(own, of.heads[0].ID)
	} else {
		a.gate = permission.NewGate(own)
	}
	if p := of.parent; p != nil {
		o := permission.GateOptions{Rules: a.rules, Notify: a.asked}
		if rt.o.Asker != nil {
			o.Asker = childAsker{a.asker(), of.label}
		}
		a.gate = p.gate.Child(o, p.ID())
	}
	return a
}

// asker is the person, who is asked when every front end has what was said before; nil when no person can be asked.
func (a *approvals) asker() permission.Asker {
	if a.rt.o.Asker == nil {
		return nil
	}
	return orderedAsker{a.rt.o.Asker, a.log}
}

// orderedAsker asks after everything that was emitted before has reached the subscribers: a request would otherwise appear above the words
// of the model that explain it.
type orderedAsker struct {
	permission.Asker
	log *EventLog
}

// AskPermission implements permission.Asker.
func (a orderedAsker) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	a.log.flush()
	return a.Asker.AskPermission(ctx, r)
}

// rules returns the current rules. The gate calls it for each request, so that a changed agent or configuration takes effect at once.
func (a *approvals) rules() permission.Ruleset {
	info := a.head.acting()
	acting, ok := a.rt.agent(info.Cwd, info.Agent)
	if !ok { // the agent was removed from the configuration: "plan" is the strictest default and changes nothing
		acting, _ = a.rt.agent(info.Cwd, "plan")
	}
	return a.rt.rules(info.Cwd, acting)
}

// advise asks the extensions for their opinion on a request; permission.Ask means that they have none. The gate decides how far an opinion
// counts.
func (a *approvals) advise(ctx context.Context, r permission.Request) permission.Action {
	e := a.rt.extensions(a.head.Info().Cwd)
	if e.Permission == nil {
		return permission.Ask
	}
	return e.Permission(ctx, r)
}

// insist reports whether the extensions want the person to be asked although a rule allows the request; an error refuses the request.
func (a *approvals) insist(ctx context.Context, r permission.Request) (bool, error) {
	e := a.rt.extensions(a.head.Info().Cwd)
	if e.Insist == nil {
		return false, nil
	}
	return e.Insist(ctx, r)
}

// asked emits a permission request (end is nil) and later its outcome (end is set), and marks the session as waiting in between.
func (a *approvals) asked(r permission.Request, end *permission.Outcome) {
	d := AskData{ID: r.ID, CallID: r.CallID, Permission: r.Permission, Patterns: r.Patterns}
	if end != nil {
		var rejected *permission.RejectedError
		switch {
		case errors.As(end.Err, &rejected):
			d.Reply, d.Message = string(permission.Reject), rejected.Message
		// The denial of a rule is shown like a rejection by the person.
		case errors.Is(end.Err, permission.ErrDenied), errors.Is(end.Err, permission.ErrRejected):
			d.Reply = string(permission.Reject)
		// The session is being closed and the request was not decided, so a reopened session may ask again.
		case end.Err != nil && a.runner.isClosing():
			d.Reply = AskInterrupted
		case end.Err != nil:
			d.Reply = "cancelled"
		default:
			d.Reply, d.Message = string(end.Reply.Kind), end.Reply.Message
		}
	}
	a.log.emit(EventAsk, d)
	if end == nil {
		a.runner.waitingCalls.add(r.CallID)
	} else {
		a.runner.waitingCalls.remove(r.CallID)
	}
}

// SetReview changes the review style. When it becomes follow, changes that wait for approval are judged again and accepted.
func (a *approvals) SetReview(style string) error {
	if !slices.Contains(ReviewStyles, style) {
		return fmt.Errorf("the review style must be %s, not %q", strings.Join(ReviewStyles, ", "), style)
	}
	if p := a.rt.o.Configuration.Preferences(a.head.Info().Cwd); p.ReviewFixed != "" && style != p.Review {
		return fmt.Errorf("the review style stays %s: the settings of this machine decide it (%s)", a.head.Review(), p.ReviewFixed)
	}
	a.head.change(func(i *SessionInfo) { i.Review = style })
	// Open requests were asked under the old style.
	if style == ReviewFollow {
		a.gate.JudgeAgain(context.Background())
	}
	return nil
}

// follows reports whether changes are written at once and reviewed afterwards. A sub-agent has no style of its own: the style of the top
// session, with which the person talks, counts.
func (a *approvals) follows() bool {
	head := a.head
	if a.of.parent != nil {
		head = a.of.parent.Top().Head
	}
	return head.Review() == ReviewFollow
}

// questions forwards a tool's questions to the person, in the order of the session's events (see orderedAsker), and marks the session as
// waiting until they are answered.
type questions struct {
	log   *EventLog
	waits *waitingCalls
	q     tools.Questioner
}

// AskQuestions implements tools.Questioner.
func (q questions) AskQuestions(ctx context.Context, call *tools.Call, qs []tools.Question) ([][]string, error) {
	q.waits.add(call.CallID)
	defer q.waits.remove(call.CallID)
	q.log.flush()
	return q.q.AskQuestions(ctx, call, qs)
}

// questioner is nil when no editor can show questions; then the question tool is not offered.
func (a *approvals) questioner() tools.Questioner {
	if a.rt.o.Questions == nil {
		return nil
	}
	if a.of.parent != nil {
		return questions{a.log, a.runner.waitingCalls, childQuestions{a.rt.o.Questions, a.of.label}}
	}
	return questions{a.log, a.runner.waitingCalls, a.rt.o.Questions}
}
