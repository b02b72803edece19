package terminal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// maxEffectWait is how long the first question about a change waits for what its hunks do. A slow language server costs
// the person these words, never more than a moment. The limit holds for each round of checks, of which every rejected
// or edited hunk costs another one.
const maxEffectWait = 2 * time.Second

// hunkEffects are the words about the hunks of one change: what each does to the problems, given the decisions so far.
type hunkEffects struct {
	t       *approvals
	request permission.Request
	ids     []string // of all hunks, in the order of the proposal
	effects map[string]change.Effect
	needs   map[string][]string // by hunk; known from the first check, before anything was rejected
	verdict *change.Verdict     // on what was decided so far; nil: not known
}

// effects checks a proposal of several hunks before its first question. It is nil without a language server to ask, or when
// the change has no verdict that could change.
func (t *approvals) effects(ctx context.Context, r permission.Request) *hunkEffects {
	e := &hunkEffects{t: t, request: r, needs: map[string][]string{}, verdict: r.Change.Verdict}
	for _, f := range r.Change.Files {
		for _, h := range f.Hunks {
			e.ids = append(e.ids, h.ID)
		}
	}
	// One hunk is the whole change, whose verdict is in the head already.
	if t.check == nil || len(e.ids) < 2 || !e.verdict.Known() {
		return nil
	}
	e.look(ctx, change.Decisions{}, e.ids)
	// needs is kept apart, because later rounds leave it empty; see change.Set.Effects.
	for id, x := range e.effects {
		e.needs[id] = x.Needs
	}
	return e
}

// look asks the language servers again: for the verdict on the decisions, and for what the hunks do that are left.
func (e *hunkEffects) look(ctx context.Context, d change.Decisions, left []string) {
	ctx, cancel := context.WithTimeout(ctx, maxEffectWait)
	defer cancel()
	check := func(part *change.Set) *change.Verdict {
		// Once the time is up the remaining checks would only fail one by one.
		if ctx.Err() != nil {
			return nil
		}
		return e.t.check(ctx, e.request.SessionID, part)
	}
	if len(d.Hunks) > 0 {
		// A verdict from before these decisions must not be shown for them.
		e.verdict = nil
		if decided, err := e.request.Change.Decide(d); err == nil {
			e.verdict = check(decided.Set)
		}
	}
	e.effects = e.request.Change.Effects(d, left, e.verdict, check)
}

// decided checks again after a hunk was rejected or edited, and prints the verdict on the decisions so far. It prints nothing when the
// headline stays the same: the person would look for a difference.
func (e *hunkEffects) decided(ctx context.Context, d change.Decisions) {
	if e == nil {
		return
	}
	// Groups are decided out of the order of the proposal.
	left := slices.DeleteFunc(slices.Clone(e.ids), func(id string) bool { _, done := d.Hunks[id]; return done })
	if len(left) == 0 {
		return
	}
	before := e.verdict
	e.look(ctx, d, left)
	if e.verdict.Known() && (before == nil || e.verdict.Headline() != before.Headline()) {
		e.t.say("", "  with your decisions so far: "+e.t.verdict(e.verdict))
	}
}

// line is what one hunk does in words, "" where it makes no difference. Of each list the number and the first problem
// are named, which is what fits into a line.
func (e *hunkEffects) line(id string) string {
	if e == nil {
		return ""
	}
	var parts []string
	if len(e.needs[id]) > 0 {
		var names []string
		for _, n := range e.needs[id] {
			names = append(names, fmt.Sprintf("hunk %d", e.number(n)))
		}
		parts = append(parts, "needs "+strings.Join(names, ", "))
	}
	x := e.effects[id]
	for _, w := range []struct {
		words string
		list  []change.Problem
	}{{"fixes", x.Fixes}, {"introduces", x.Introduces}, {"if you reject it: introduces", x.IfRejected}} {
		if len(w.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s %d (%s)", w.words, len(w.list), e.t.plainProblem(w.list[0])))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("  hunk %d: ", e.number(id)) + strings.Join(parts, " · ")
}

// number is a hunk's place among all hunks of the proposal, from 1.
func (e *hunkEffects) number(id string) int {
	for i, x := range e.ids {
		if x == id {
			return i + 1
		}
	}
	return 0
}
