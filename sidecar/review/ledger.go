package review

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Ledger is what a session's events say about its changes: change sets with their states, checkpoints, and how far
// the conversation was taken back. Live and stored events give the same result. Safe for concurrent use. It keeps no
// texts beyond those in the events, so that it can stay in memory for as long as a session is open.
type Ledger struct {
	mu  sync.Mutex
	now *ledger // guarded by mu
}

// NewLedger is empty: it is given events in their order.
func NewLedger() *Ledger { return &Ledger{now: newLedger()} }

// Take updates the ledger by the session's next event. Events must come in their order, each once. It returns a copy of the change that the
// event is about, nil for other events. The copy can be used without the lock; its lists of hunks must not be changed.
func (l *Ledger) Take(e agent.Event) *Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.now.take(e)
	if c == nil {
		return nil
	}
	cp := *c
	return &cp
}

// read calls f with the state while the lock is held. f must not keep the state, or call a method of l.
func (l *Ledger) read(f func(*ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.now)
}

// Checkpoint is the place of a checkpoint among the session's events, and its title.
func (l *Ledger) Checkpoint(id string) (seq int64, title string, ok bool) {
	l.read(func(l *ledger) {
		if p := l.point(id); p != nil {
			seq, title, ok = p.seq, p.title, true
		}
	})
	return seq, title, ok
}

// Checkpoints are the states one can go back to, oldest first.
func (l *Ledger) Checkpoints() (out []protocol.Checkpoint) {
	out = []protocol.Checkpoint{}
	l.read(func(l *ledger) { out = append(out, l.checkpoints()...) })
	return out
}

// Changes are the change sets that a person can look at, in the order they were proposed.
func (l *Ledger) Changes() (out []protocol.ChangeInfo) {
	out = []protocol.ChangeInfo{}
	l.read(func(l *ledger) {
		for _, id := range l.order {
			// A set in the state Writing has no known outcome yet; the next event says whether it was applied.
			if c := l.changes[id]; c.State != change.Writing {
				out = append(out, Info(c))
			}
		}
	})
	return out
}

// Applied are the change sets that were written, in the order they were, as the store keeps them.
func (l *Ledger) Applied() (out []*change.Set) {
	l.read(func(l *ledger) {
		for _, c := range l.applied() {
			out = append(out, c.Set)
		}
	})
	return out
}

// ledger is the state of a Ledger.
type ledger struct {
	changes map[string]*Change // by id of the set
	order   []string           // ids of changes, as they were first mentioned
	// points are in the order of their events: checkpoints() and the undo commands rely on it.
	points   []*checkpointView
	turn     string // messageID of the last prompt
	reverted string // the conversation was restored to the state before this prompt; "": it is complete
	fresh    bool   // nothing was said since the conversation was taken back
}

// Change is a change set and its state.
type Change struct {
	Set *change.Set // packed when the store keeps its texts
	// Call is the tool call that proposed the set; the editor shows the set on its card.
	Call  string
	turn  string // messageID of the prompt it belongs to
	State change.State
	seq   int64 // number of the event that applied it; 0: not written
	// A hunk is in one of the two lists at most; a hunk in neither is open.
	kept   []string
	undone []string
}

// checkpointView is a state one can go back to: before a prompt, or before a restore.
type checkpointView struct {
	id      string
	seq     int64
	time    time.Time
	title   string
	prompt  *agent.PromptData  // of a prompt
	restore *agent.RestoreData // of a restore
	lost    bool               // its prompt is out of the conversation for good
}

// newLedger is empty.
func newLedger() *ledger { return &ledger{changes: map[string]*Change{}} }

// take updates the state by an event. It returns the change the event is about; nil for other events.
func (l *ledger) take(e agent.Event) *Change {
	switch e.Type {
	case agent.EventPrompt:
		if d, ok := agent.Value[agent.PromptData](e); ok {
			l.prompt(e, d)
		}
	case agent.EventRestore:
		if d, ok := agent.Value[agent.RestoreData](e); ok {
			l.restore(e, d)
		}
	case agent.EventReview:
		if d, ok := agent.Value[agent.ReviewData](e); ok {
			return l.review(d)
		}
	case agent.EventChange:
		return l.change(e)
	}
	return nil
}

// prompt adds a checkpoint. A prompt after a restore makes the prompts behind the restored state unreachable: the
// conversation has another past now.
func (l *ledger) prompt(e agent.Event, d agent.PromptData) {
	if l.reverted != "" { // the conversation went on: what it was taken back over is out for good
		// Every prompt from the restored one on is lost. Checkpoints of restores stay: their files can still be
		// restored.
		out := false
		for _, p := range l.points {
			out = out || p.id == l.reverted
			p.lost = p.lost || out && p.prompt != nil
		}
	}
	l.turn, l.reverted, l.fresh = d.MessageID, "", false
	l.points = append(l.points, &checkpointView{id: d.MessageID, seq: e.Seq, time: e.Time, title: promptTitle(d.Parts), prompt: &d})
}

// promptTitle is the first line of what the person wrote, at most 100 characters; "" for a prompt without text, such as an image alone.
func promptTitle(parts []provider.Part) string {
	for _, p := range parts {
		if p.Type != provider.PartText || p.Synthetic {
			continue
		}
		return textutil.Shorten(textutil.FirstLine(p.Text), 100)
	}
	return ""
}

// restore adds a checkpoint when a restore begins, and removes it when it fails.
func (l *ledger) restore(e agent.Event, d agent.RestoreData) {
	switch d.State {
	case agent.RestoreBegun:
		l.points = append(l.points, &checkpointView{id: d.ID, seq: e.Seq, time: e.Time, title: d.Title, restore: &d})
	// A restore that failed is not a state to go back to.
	case agent.RestoreFailed:
		l.points = slices.DeleteFunc(l.points, func(p *checkpointView) bool { return p.id == d.ID })
	case agent.RestoreDone:
		if p := l.point(d.ID); p != nil {
			p.restore = &d
		}
		if d.Conversation {
			l.reverted = d.MessageID
		}
		l.fresh = true
	}
}

// review marks hunks as kept, undone, or no longer undone.
func (l *ledger) review(d agent.ReviewData) *Change {
	c := l.changes[d.ChangeSet]
	if c == nil {
		return nil
	}
	// Again comes first and undone beats kept: what the file lacks cannot be kept.
	c.undone = slices.DeleteFunc(c.undone, func(h string) bool { return slices.Contains(d.Again, h) })
	for _, h := range d.Undone {
		if !slices.Contains(c.undone, h) {
			c.undone = append(c.undone, h)
		}
		c.kept = slices.DeleteFunc(c.kept, func(k string) bool { return k == h })
	}
	for _, h := range d.Kept {
		if !slices.Contains(c.kept, h) && !slices.Contains(c.undone, h) {
			c.kept = append(c.kept, h)
		}
	}
	return c
}

// change notes a new state of a change set.
func (l *ledger) change(e agent.Event) *Change {
	d, ok := agent.Value[agent.ChangeData](e)
	if !ok {
		return nil
	}
	set := d.Set // smaller than the whole one, and kept for as long as the session is open
	if set == nil {
		set = d.Full
	}
	if set == nil {
		return nil
	}
	// One set has several events: proposed, writing, applied, and applied again when its verdict is known. The first
	// one that mentions it fixes the call and the turn, the first applied one its place among the written sets.
	c := l.changes[set.ID]
	if c == nil {
		c = &Change{Call: d.CallID, turn: l.turn}
		l.changes[set.ID] = c
		l.order = append(l.order, set.ID)
	}
	if d.State == change.Applied && c.State != change.Applied {
		c.seq = e.Seq
	}
	c.Set, c.State = set, d.State
	return c
}

// point finds a checkpoint; nil without one.
func (l *ledger) point(id string) *checkpointView {
	for _, p := range l.points {
		if p.id == id {
			return p
		}
	}
	return nil
}

// applied are the written change sets, in the order of writing. Plans that go back depend on this order, which may
// differ from that of the proposals.
func (l *ledger) applied() []*Change {
	var out []*Change
	for _, id := range l.order {
		if c := l.changes[id]; c.State == change.Applied {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *Change) int { return int(a.seq - b.seq) })
	return out
}

// steps are the written change sets, for a plan that goes back to an event. Sets from before the event are part of
// the list too: the plan needs them to know what the file was then.
func (l *ledger) steps(after int64) []checkpoint.Step {
	var out []checkpoint.Step
	for _, c := range l.applied() {
		out = append(out, checkpoint.Step{Set: c.Set, After: c.seq > after})
	}
	return out
}

// hunks are the ids of a set's hunks, of all files.
func (c *Change) hunks() []string {
	var all []string
	for _, f := range c.Set.Files {
		for _, h := range f.Hunks {
			all = append(all, h.ID)
		}
	}
	return all
}

// marks are the reviews that follow from a set that undoes others: for each set the hunks that are undone now and,
// where an undo was undone, those that no longer are.
func (l *ledger) marks(set *change.Set) []agent.ReviewData {
	by := map[string]*agent.ReviewData{}
	var order []string
	note := func(id string, undone bool, hunks []string) {
		d := by[id]
		if d == nil {
			d = &agent.ReviewData{ChangeSet: id, By: set.ID}
			by[id] = d
			order = append(order, id)
		}
		if undone {
			d.Undone = append(d.Undone, hunks...)
		} else {
			d.Again = append(d.Again, hunks...)
		}
	}
	var follow func(refs []change.Ref, undone bool, depth int)
	follow = func(refs []change.Ref, undone bool, depth int) {
		for _, r := range refs {
			c := l.changes[r.Set]
			// An undo of an undo of an undo is followed to its end. The limit keeps a damaged log, in which sets
			// refer to each other in a circle, from recursing for ever.
			if c == nil || depth > 50 {
				continue
			}
			for _, f := range c.Set.Files {
				if f.Path != r.Path {
					continue
				}
				hunks := r.Hunks
				for _, h := range f.Hunks {
					if len(r.Hunks) == 0 {
						hunks = append(hunks, h.ID)
					}
				}
				note(r.Set, undone, hunks)
				if len(r.Hunks) == 0 {
					// Undoing a member that was an undo itself brings back what that had undone. A part of a member
					// has no references of its own, so only whole members are followed.
					follow(f.Takes, !undone, depth+1)
				}
			}
		}
	}
	for _, f := range set.Files {
		follow(f.Takes, true, 0)
	}
	out := make([]agent.ReviewData, len(order))
	for i, id := range order {
		out[i] = *by[id]
	}
	return out
}

// Hydrated is an event with the texts of its change set. An event of another type, and one whose texts are no longer
// stored, is returned as it is.
func Hydrated(e agent.Event, whole func(*change.Set) (*change.Set, error)) agent.Event {
	if e.Type != agent.EventChange {
		return e
	}
	d, ok := agent.Value[agent.ChangeData](e)
	if !ok || d.Set == nil {
		return e
	}
	full, err := whole(d.Set)
	if err != nil {
		return e
	}
	d.Set, d.Full = full, full
	if data, err := json.Marshal(d); err == nil {
		e.Data, e.Value = data, d
	}
	return e
}
