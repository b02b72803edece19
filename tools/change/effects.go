package change

import (
	"maps"
	"slices"
)

// Effect is what one undecided hunk of a proposal does to the problems, while the other hunks stay as they were decided.
type Effect struct {
	Fixes      []Problem `json:"fixes,omitempty"`      // come back when the hunk is rejected
	Introduces []Problem `json:"introduces,omitempty"` // go away when the hunk is rejected
	IfRejected []Problem `json:"ifRejected,omitempty"` // introduced when the hunk is rejected
	// Needs are the ids of hunks that this one only makes sense with: accepted without one of them, it introduces
	// problems that neither the proposal nor the rejection of both has. In the order of the proposal.
	Needs []string `json:"needs,omitempty"`
}

// maxEffects is how many hunks Effects looks at. Each costs the language servers one check, and each pair may cost another: 8
// hunks are at most 8 + 28 checks. A larger proposal is judged as a whole.
const maxEffects = 8

// Effects finds out what each of the open hunks does, by checks of the proposal without it. whole is the verdict on the
// proposal as it was decided so far, and check gives the verdict on a part of it, nil when there is none.
//
// Needs is found by rejecting two hunks together. Rejecting hunk B alone introduces a problem P. If P is gone when hunk A is
// rejected as well, then it is A that breaks without B: A needs B. Dependencies are a property of the proposal: once a hunk is
// rejected, its partners' problems are in every verdict, and Needs stays empty.
//
// The result, by hunk id, holds only hunks that have an effect. It is nil for less than two open hunks, for more than
// maxEffects, and when a verdict is missing: half an answer would present hunks as independent that were not checked.
func (s *Set) Effects(d Decisions, open []string, whole *Verdict, check func(*Set) *Verdict) map[string]Effect {
	if !whole.Known() || len(open) < 2 || len(open) > maxEffects {
		return nil
	}
	without := func(ids ...string) *Verdict {
		// An error means ids of another set; no verdict, and so no effects at all.
		decided, err := s.Decide(d.Rejecting(ids...))
		if err != nil {
			return nil
		}
		if len(decided.Set.Files) == 0 { // nothing is left to check, and nothing is changed
			return &Verdict{Certainty: Fresh}
		}
		return check(decided.Set)
	}
	return effects(whole, open, !d.rejects(), without)
}

// effects is Effects on verdicts alone: check gives the verdict on the proposal without some hunks. pairs says whether to look
// for dependencies.
func effects(whole *Verdict, open []string, pairs bool, check func(rejected ...string) *Verdict) map[string]Effect {
	out := map[string]Effect{}
	for _, id := range open {
		v := check(id)
		if !v.Known() {
			return nil
		}
		out[id] = Effect{Fixes: missing(whole.Fixed, v.Fixed), Introduces: missing(whole.Introduced, v.Introduced), IfRejected: missing(v.Introduced, whole.Introduced)}
	}
	// Pairs are checked only where a rejection breaks something: where it breaks nothing, no hunk can need it.
	if pairs {
		both := map[[2]int]*Verdict{} // by the two hunks' places, the smaller first: a pair is the same either way round
		for b, partner := range open {
			broken := out[partner].IfRejected
			if len(broken) == 0 {
				continue
			}
			for a, id := range open {
				if a == b {
					continue
				}
				pair := [2]int{min(a, b), max(a, b)}
				if both[pair] == nil {
					if both[pair] = check(open[pair[0]], open[pair[1]]); !both[pair].Known() {
						return nil
					}
				}
				if len(missing(broken, both[pair].Introduced)) > 0 {
					e := out[id]
					e.Needs = append(e.Needs, partner)
					out[id] = e
				}
			}
		}
	}
	for id, e := range out {
		if len(e.Fixes)+len(e.Introduces)+len(e.IfRejected)+len(e.Needs) == 0 {
			delete(out, id)
		}
	}
	return out
}

// Rejecting is a copy of the decisions in which these hunks are rejected.
func (d Decisions) Rejecting(ids ...string) Decisions {
	d.Hunks = maps.Clone(d.Hunks)
	if d.Hunks == nil {
		d.Hunks = map[string]Decision{}
	}
	for _, id := range ids {
		d.Hunks[id] = Decision{Kind: Reject}
	}
	return d
}

// rejects reports whether any hunk is rejected, by itself or by the default.
func (d Decisions) rejects() bool {
	for _, h := range d.Hunks {
		if h.Kind == Reject {
			return true
		}
	}
	return d.Default == Reject
}

// missing gives the problems of one list that the other does not have. Two problems are the same when their file, message
// and code are: lines move when a hunk is left out. A problem that occurs twice is missing once when the other has it once.
func missing(from, among []Problem) []Problem {
	type key struct{ path, message, code string }
	of := func(p Problem) key { return key{p.Path, p.Message, p.Code} }
	left := map[key]int{}
	for _, p := range among {
		left[of(p)]++
	}
	return slices.DeleteFunc(slices.Clone(from), func(p Problem) bool {
		left[of(p)]--
		return left[of(p)] >= 0
	})
}
