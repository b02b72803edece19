package review

import (
	"context"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
)

// unanswered is an approval request that was pending when the process or its last editor ended.
type unanswered struct {
	ask  agent.AskData
	tool agent.ToolData // the call that asked, as it is now
	// set is the latest proposal of the call, so that a person who answers late sees what would be written; nil for a question about no
	// change.
	set *change.Set
	of  *agent.SessionInfo // the sub-agent that asked; nil: the session itself
	at  time.Time          // when it was asked first
}

// openAsks collects the pending requests from a session's events, in their order, by take. A prompt or a restore makes earlier ones obsolete.
type openAsks struct {
	since agent.Event // where the last turn begins
	list  []*unanswered
	ended map[string]bool // questions that were answered, by id
}

// askTypes are the events that openAsks reads.
var askTypes = []agent.EventType{agent.EventPrompt, agent.EventRestore, agent.EventAsk}

// take reads the next event. An answer may be stored before its request, by another process, so the ids of answered
// questions are kept as well.
func (o *openAsks) take(e agent.Event) {
	// The answer to an earlier question would reach a conversation that has continued without it.
	if e.Type == agent.EventPrompt || e.Type == agent.EventRestore {
		o.since, o.list = agent.Event{Seq: e.Seq, Time: e.Time}, nil
	}
	d, ok := agent.Value[agent.AskData](e)
	if e.Type != agent.EventAsk || !ok {
		return
	}
	if o.ended == nil {
		o.ended = map[string]bool{}
	}
	is := func(u *unanswered) bool { return u.ask.ID == d.ID }
	// An interrupted question was closed by the end of the process and not by the person: it is still open.
	if d.Reply != "" && d.Reply != agent.AskInterrupted {
		o.ended[d.ID] = true
		o.list = slices.DeleteFunc(o.list, is)
		return
	}
	if o.ended[d.ID] {
		return
	}
	// A request may be stored twice, once without its change set: a set that was seen stays.
	set := d.Set
	d.Set = nil
	i := slices.IndexFunc(o.list, is)
	if i < 0 {
		i = len(o.list)
		o.list = append(o.list, &unanswered{at: e.Time})
	}
	o.list[i].ask = d
	if set != nil {
		o.list[i].set = set
	}
}

// unanswered are the requests at which the last turn was cut off, those of sub-agents included. The changes are read
// only if there is a request: most sessions have none, and tool calls are most of what is stored.
func (o *Reopener) unanswered(ctx context.Context) ([]*unanswered, error) {
	var own openAsks
	err := o.session.EventsOf(ctx, 0, askTypes, func(e agent.Event) error {
		own.take(e)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	children, err := o.unansweredBelow(ctx, own)
	all := append(own.list, children...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	latest := map[[2]string]*change.Set{} // by sub-agent and call: what is proposed; nil where that is over
	err = o.session.EventsOf(ctx, own.since.Seq, []agent.EventType{agent.EventChange, agent.EventTool}, func(e agent.Event) error {
		switch e.Type {
		case agent.EventChange:
			d, ok := agent.Value[agent.ChangeData](e)
			if !ok {
				return nil
			}
			at := [2]string{d.Session, d.CallID}
			// Only a proposal, or a set that could not be written, is still to be decided; any other state ends the
			// question.
			latest[at] = nil
			if d.State == change.Proposed || d.State == change.Failed {
				latest[at] = d.Whole()
			}
			// The event in the parent's log names the task, so that an editor can nest the card of the call under it.
			for _, u := range children {
				if u.of.ID == d.Session && u.ask.CallID == d.CallID {
					u.tool.Parent = d.Task
				}
			}
		case agent.EventTool:
			d, ok := agent.Value[agent.ToolData](e)
			for _, u := range own.list {
				if ok && u.ask.CallID == d.CallID {
					u.tool = d.After(u.tool)
				}
			}
		}
		return ctx.Err()
	})
	for _, u := range all {
		// The session's own changes have no sub-agent.
		at := [2]string{"", u.ask.CallID}
		if u.of != nil {
			at[0] = u.of.ID
		}
		switch set := latest[at]; {
		case set == nil:
			u.set = nil // the change was decided, or there was none
		case u.set == nil || u.set.ID != set.ID:
			u.set = set
		}
	}
	return all, err
}

// unansweredBelow are the pending requests of sub-agents at any depth, own being those of the session itself. A sub-agent that still works
// is left out: it asks for itself.
func (o *Reopener) unansweredBelow(ctx context.Context, own openAsks) ([]*unanswered, error) {
	rt := o.rt
	sessions, err := rt.List(ctx, o.session.Info().Cwd)
	if err != nil {
		return nil, err
	}
	below := map[string]bool{o.session.ID(): true}
	for more := true; more; { // sub-agents may have sub-agents
		more = false
		for _, i := range sessions {
			if below[i.Parent] && !below[i.ID] {
				below[i.ID], more = true, true
			}
		}
	}
	var out []*unanswered
	for _, info := range sessions {
		if _, live := rt.Session(info.ID); live || !below[info.ID] {
			continue
		}
		// Sessions number their events apart, so the time decides whether a sub-agent's question belongs to the last
		// turn.
		var its openAsks
		err := rt.StoredOf(ctx, info.ID, 0, askTypes, func(e agent.Event) error {
			its.take(e)
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		its.list = slices.DeleteFunc(its.list, func(u *unanswered) bool { return own.ended[u.ask.ID] || u.at.Before(own.since.Time) })
		if len(its.list) == 0 {
			continue
		}
		err = rt.StoredOf(ctx, info.ID, its.since.Seq, []agent.EventType{agent.EventTool}, func(e agent.Event) error {
			d, ok := agent.Value[agent.ToolData](e)
			for _, u := range its.list {
				// info is a variable of its own for each round of the loop (Go 1.22), so the pointer stays valid.
				if u.of = &info; ok && u.ask.CallID == d.CallID {
					u.tool = d.After(u.tool)
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		out = append(out, its.list...)
	}
	return out, nil
}
