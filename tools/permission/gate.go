package permission

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"
)

// GateOptions are what a Gate is made of.
type GateOptions struct {
	Rules   func() Ruleset // called for each request, so a changed configuration applies to the next one; nil: Default
	Asker   Asker          // nil: no person is connected; what would ask is rejected with that reason
	Grants  Grants         // where "always" for a project is stored; nil: it lasts for the session only
	Project string         // the worktree root, absolute: project grants are stored under it
	// Follow, when set and true, says that changes inside the project are made at once and reviewed afterwards: a request that
	// the rules would ask is then allowed if it is Followable. A deny stays a deny.
	Follow func() bool
	// Advise, when set, is called before the person is asked (plugins): Allow and Deny decide, anything else asks the
	// person. It cannot allow a request with MustAsk: a plugin is not the person.
	Advise func(context.Context, Request) Action
	// Insist, when set, is called first (the person's hooks): true turns a request into one with MustAsk, and an error refuses it.
	Insist func(context.Context, Request) (bool, error)
	// Notify, when set, is called with a nil Outcome when a question opens and with its Outcome when it ends, for events and logs.
	// It runs in the goroutine that called Ask and must not block.
	Notify func(Request, *Outcome)
}

// Outcome is how a question ended.
type Outcome struct {
	Reply Reply
	Err   error // ErrRejected, ErrDenied, the context's error, or nil
}

// Gate lets calls through, stops them, or asks. It is safe for concurrent use: several questions may be open at
// once, each with its own id.
type Gate struct {
	o       GateOptions
	state   *gateState       // shared with the gates made by Child
	inherit []string         // sessions whose grants count here too: those this one was started from
	within  []func() Ruleset // their rules, which must allow as well
}

// gateState is what a gate shares with its children. No call out (Asker, Grants, Notify) is made under mu.
type gateState struct {
	mu      sync.Mutex
	grants  map[string]Ruleset // by session; guarded by mu
	pending map[*question]bool // guarded by mu
}

// question is an approval request without a decision. It may be answered by the person, by "always" on another request, by a canceled
// turn or by the end of the session. The one who deletes it from pending answers it; for all others it is closed.
type question struct {
	gate     *Gate
	request  Request
	answered chan Outcome // buffered: the one answer
}

// NewGate makes a gate without session grants; EndSession drops those that a session has collected.
func NewGate(o GateOptions) *Gate {
	return &Gate{o: o, state: &gateState{grants: map[string]Ruleset{}, pending: map[*question]bool{}}}
}

// Child is a gate for a sub-agent of a session. A call must be allowed by its own rules and by those of the parent session, so a
// sub-agent can never do what the session may not. Open questions are shared. What the person allowed for the parent session counts
// for the sub-agent too, but not the other way round. An Asker or a Notify of o replaces the parent's; other options but Rules are
// the parent's.
func (g *Gate) Child(o GateOptions, parentSession string) *Gate {
	child := &Gate{o: g.o, state: g.state, inherit: append(slices.Clone(g.inherit), parentSession), within: append(slices.Clone(g.within), g.o.Rules)}
	child.o.Rules = o.Rules
	if o.Asker != nil {
		child.o.Asker = o.Asker
	}
	if o.Notify != nil {
		child.o.Notify = o.Notify
	}
	return child
}

// Ask returns when the call may continue, or with an error: *DeniedError, *RejectedError, or the context's error as
// soon as it ends, even while the person is thinking.
func (g *Gate) Ask(ctx context.Context, r Request) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	if r.ID == "" {
		r.ID = "per_" + rand.Text()
	}
	if g.o.Insist != nil {
		insists, err := g.o.Insist(ctx, r)
		if err != nil {
			return Reply{}, err
		}
		r.MustAsk = r.MustAsk || insists
	}
	v := g.Judge(ctx, r)
	if v.Action != Ask {
		return v.Reply(r)
	}
	if v.managed() { // "always" would have no effect
		r.MustAsk, r.Managed, r.Always = true, v.Rule.Origin, nil
	}
	if g.o.Advise != nil {
		switch a := g.o.Advise(ctx, r); {
		case a == Deny:
			return Reply{}, &RejectedError{Message: "a plugin of the user's does not allow this; do it another way"}
		case a == Allow && !r.MustAsk:
			return Reply{Kind: Once}, nil
		}
	}
	if g.o.Asker == nil {
		return Reply{}, NoUser(r.Permission, "this session has no editor or terminal; a rule in the configuration can allow it")
	}
	q := &question{gate: g, request: r, answered: make(chan Outcome, 1)}
	g.state.mu.Lock()
	g.state.pending[q] = true
	g.state.mu.Unlock()
	if g.o.Notify != nil {
		g.o.Notify(r, nil)
	}
	// An "always" that was given between the first Judge and the insertion into pending missed this question: Judge ran before the
	// grant, and JudgeAgain before the insertion. Judging again now closes that gap.
	if v := g.Judge(ctx, r); v.Action != Ask {
		reply, err := v.Reply(r)
		q.answer(Outcome{reply, err})
	} else {
		askCtx, cancel := context.WithCancel(ctx)
		defer cancel() // closes the prompt when the answer came from elsewhere
		go func() {
			reply, err := g.o.Asker.AskPermission(askCtx, r)
			g.replied(ctx, q, reply, err)
		}()
	}
	var end Outcome
	select {
	case end = <-q.answered:
	case <-ctx.Done():
		// The channel is read even after a cancel: if an answer came at the same moment, that is the outcome.
		q.answer(Outcome{Err: ctx.Err()})
		end = <-q.answered
	}
	if g.o.Notify != nil {
		g.o.Notify(r, &end)
	}
	return end.Reply, end.Err
}

// answer ends the question and reports whether this call did so. The send cannot block: the channel has room for one answer, and only
// the caller that removed the question from pending sends one.
func (q *question) answer(o Outcome) bool {
	s := q.gate.state
	s.mu.Lock()
	open := s.pending[q]
	delete(s.pending, q)
	s.mu.Unlock()
	if open {
		q.answered <- o
	}
	return open
}

// replied acts on the person's answer. An "always" is remembered and may answer other open questions; a rejection rejects
// the session's other open questions too, because calls of one step were proposed together.
func (g *Gate) replied(ctx context.Context, q *question, reply Reply, err error) {
	reply.Asked = true
	switch {
	case err != nil:
		q.answer(Outcome{Err: err})
	case reply.Kind == Reject:
		// The list is made before the answer, because the answer lets the agent continue, and this rejection is not about
		// anything that it asks then.
		others := g.open(q.request.SessionID)
		no := &RejectedError{Message: reply.Message, Unanswered: reply.Unanswered}
		if !q.answer(Outcome{Reply: reply, Err: no}) {
			return
		}
		for _, other := range others {
			other.answer(Outcome{Reply: Reply{Kind: Reject, Message: reply.Message}, Err: no})
		}
	case reply.Kind == Always: // without an offer there is nothing to store
		// The grant is stored before the answer: the call that the answer releases may ask again immediately, and must
		// find the grant. A question that was closed meanwhile (cancelled turn) leaves no grant behind.
		if !g.isOpen(q) {
			return
		}
		g.remember(ctx, q.request, reply.Scope)
		q.answer(Outcome{Reply: reply})
		g.JudgeAgain(ctx)
	case reply.Kind == Once:
		q.answer(Outcome{Reply: reply})
	default:
		q.answer(Outcome{Err: &RejectedError{Message: "the answer " + string(reply.Kind) + " is not known; counted as no"}})
	}
}

// JudgeAgain judges the open questions again and answers those that are allowed now, by an "always" or by following. It never
// answers with a deny: the person sees the prompt already and may decide.
func (g *Gate) JudgeAgain(ctx context.Context) {
	for _, other := range g.open("") {
		if v := other.gate.Judge(ctx, other.request); v.Action == Allow {
			r, err := v.Reply(other.request)
			other.answer(Outcome{r, err})
		}
	}
}

// isOpen reports whether the question has no answer yet. It may get one as soon as isOpen returns.
func (g *Gate) isOpen(q *question) bool {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	return g.state.pending[q]
}

// open lists the open questions of a session, of all sessions when it is empty.
func (g *Gate) open(session string) []*question {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	var out []*question
	for q := range g.state.pending {
		if session == "" || q.request.SessionID == session {
			out = append(out, q)
		}
	}
	return out
}

// remember stores the request's Always patterns. A grant that cannot be stored for the project (a read-only database, a full disk)
// still counts for the session, since a person who said "always" must not be asked again at once. The store runs without the turn's
// cancellation, because a cancel at that moment must not lose the grant.
func (g *Gate) remember(ctx context.Context, r Request, scope Scope) {
	var session Ruleset
	for _, pattern := range r.Always {
		project := g.o.Project
		if scope == ScopeEverywhere {
			project = Everywhere
		}
		if scope != ScopeSession && scope != "" && g.o.Grants != nil {
			_, err := g.o.Grants.Add(context.WithoutCancel(ctx), Grant{Project: project, Permission: r.Permission, Pattern: pattern, Created: time.Now()})
			if err == nil {
				continue
			}
		}
		session = append(session, Rule{Permission: r.Permission, Pattern: pattern, Action: Allow, Origin: "session"})
	}
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	for _, rule := range session {
		if !slices.Contains(g.state.grants[r.SessionID], rule) {
			g.state.grants[r.SessionID] = append(g.state.grants[r.SessionID], rule)
		}
	}
}

// EndSession drops the session's grants and ends its open questions with context.Canceled. With an empty session id it ends none,
// because open would list the questions of all sessions.
func (g *Gate) EndSession(session string) {
	for _, q := range g.open(session) {
		if session != "" {
			q.answer(Outcome{Err: context.Canceled})
		}
	}
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	delete(g.state.grants, session)
}

// SessionGrants lists what "always" has allowed in a session so far, as rules.
func (g *Gate) SessionGrants(session string) Ruleset {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	return slices.Clone(g.state.grants[session])
}
