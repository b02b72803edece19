// Package stats adds up what sessions used and what became of it: tokens, cost, tools, hunks proposed, applied and undone.
// It reads the event log of the store and keeps nothing; printing is left to the command line.
package stats

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools/change"
)

// Spent is what was used, and what came of it. Its JSON is the output of "pillion stats --json", which scripts
// read.
type Spent struct {
	Sessions int            `json:"sessions"` // sub-agents' not counted
	Prompts  int            `json:"prompts"`
	Steps    int            `json:"steps"`
	Tokens   provider.Usage `json:"tokens"`
	Cost     float64        `json:"cost"` // USD
	Hunks    hunkStats      `json:"hunks"`
}

// hunkStats are the hunks that the agent proposed: how many were written, and how many of those were undone. What
// the person changed without the agent is not in them.
type hunkStats struct {
	Proposed int `json:"proposed"`
	Applied  int `json:"applied"`
	Undone   int `json:"undone"`
	// Acceptance is the share of the proposed hunks that were written and not undone; nil without proposals.
	Acceptance *float64 `json:"acceptance,omitempty"`
}

// rate computes Acceptance.
func (h *hunkStats) rate() {
	if h.Proposed > 0 {
		r := float64(h.Applied-h.Undone) / float64(h.Proposed)
		h.Acceptance = &r
	}
}

// toolStats are the calls of one tool. Only calls that completed or failed are counted.
type toolStats struct {
	Calls  int   `json:"calls"`
	Failed int   `json:"failed"`
	Millis int64 `json:"ms"` // of all calls together
}

// Report is what pillion stats prints.
// Projects, Models and Tools are keyed by folder, by provider/model and by the name of the tool.
type Report struct {
	Since    *time.Time            `json:"since,omitempty"`
	Total    Spent                 `json:"total"`
	Projects map[string]*Spent     `json:"projects"`
	Models   map[string]*Spent     `json:"models"`
	Tools    map[string]*toolStats `json:"tools"`
}

// counter reads events in the order of the log and keeps only sums.
// The store hands events over page by page, so the log itself is never in memory as a whole.
type counter struct {
	out      Report
	root     func(cwd string) string // a session's directory → its project
	only     string                  // a project; empty: all
	roots    map[string]string       // by cwd
	sets     map[string]*setStats    // by change set; an undo may come long after
	seen     string                  // id of the present session
	model    string                  // its model
	project  string
	inModels map[string]bool // its models that were counted
}

// setStats is a change set as far as its events have been read. It is kept to the end, since an undo may come much
// later.
type setStats struct {
	project, model    string
	proposed, applied int
	undone            map[string]bool
}

// Count adds up the events since a time (all for the zero time), of one project or of all (""). root maps a
// session's directory to its project. It streams over the store, so its memory grows with the change sets and not
// with the log. It relies on Scan, which yields the events of a session together and in order.
func Count(ctx context.Context, st *store.Store, since time.Time, project string, root func(string) string) (*Report, error) {
	c := &counter{root: root, only: project, roots: map[string]string{}, sets: map[string]*setStats{},
		out: Report{Projects: map[string]*Spent{}, Models: map[string]*Spent{}, Tools: map[string]*toolStats{}}}
	if !since.IsZero() {
		c.out.Since = &since
	}
	// Only the types that event knows: the texts of answers, which are most of a log, are not even read.
	types := []string{string(agent.EventPrompt), string(agent.EventSteer), string(agent.EventMessage), string(agent.EventStep), string(agent.EventCompaction),
		string(agent.EventTool), string(agent.EventChange), string(agent.EventReview)}
	if err := st.Scan(ctx, since, types, c.event); err != nil {
		return nil, err
	}
	c.finish()
	return &c.out, nil
}

// event adds one event. It decodes only the members that count: most of an event is text.
func (c *counter) event(s store.Session, e store.Event) error {
	if s.ID != c.seen {
		c.startSession(s)
	}
	// Scan cannot select a project, so the events of others are read and dropped here.
	if c.only != "" && c.project != c.only {
		return nil
	}
	switch agent.EventType(e.Type) {
	case agent.EventPrompt, agent.EventSteer:
		var d struct{ Model string } // a prompt comes before its first message
		if json.Unmarshal(e.Data, &d) == nil {
			c.setModel(s, d.Model)
		}
		// A sub-agent's prompt was written by an agent.
		if s.Parent == "" {
			c.add(func(x *Spent) { x.Prompts++ })
		}
	case agent.EventMessage:
		var d struct{ Model string }
		if json.Unmarshal(e.Data, &d) == nil && d.Model != "" {
			c.setModel(s, d.Model)
		}
	case agent.EventStep:
		var d struct {
			Usage   provider.Usage
			Cost    float64
			Message struct{ Model string }
		}
		if json.Unmarshal(e.Data, &d) == nil {
			c.setModel(s, d.Message.Model)
			c.add(func(x *Spent) { x.Steps++; x.Cost += d.Cost; addUsage(&x.Tokens, d.Usage) })
		}
	case agent.EventCompaction: // there are several events of one; only the last one has the cost
		var d struct {
			Model string
			Usage provider.Usage
			Cost  float64
		}
		if json.Unmarshal(e.Data, &d) == nil && d.Usage != (provider.Usage{}) {
			c.setModel(s, d.Model)
			c.add(func(x *Spent) { x.Cost += d.Cost; addUsage(&x.Tokens, d.Usage) })
		}
	case agent.EventTool:
		c.tool(e.Data)
	case agent.EventChange:
		c.change(e.Data)
	case agent.EventReview:
		var d agent.ReviewData
		// The set may have been proposed before since; then nothing is known of it and its undo does not count.
		if json.Unmarshal(e.Data, &d) == nil && c.sets[d.ChangeSet] != nil {
			for _, id := range d.Undone {
				c.sets[d.ChangeSet].undone[id] = true
			}
			// Again lists hunks whose undo was undone.
			for _, id := range d.Again {
				delete(c.sets[d.ChangeSet].undone, id)
			}
		}
	}
	return nil
}

// startSession begins with the events of another session. A session counts where any event of it is in the time
// asked for.
func (c *counter) startSession(s store.Session) {
	c.seen, c.model, c.inModels = s.ID, "", map[string]bool{}
	project, ok := c.roots[s.Cwd]
	if !ok {
		project = c.root(s.Cwd)
		c.roots[s.Cwd] = project
	}
	c.project = project
	if s.Parent == "" && (c.only == "" || project == c.only) {
		c.out.Total.Sessions++
		entry(c.out.Projects, project).Sessions++
	}
}

// setModel notes the model that the next events belong to. A session that changed its model counts once for each.
func (c *counter) setModel(s store.Session, model string) {
	if model == "" {
		return
	}
	c.model = model
	if s.Parent == "" && !c.inModels[model] {
		c.inModels[model] = true
		entry(c.out.Models, model).Sessions++
	}
}

// add applies f to all sums that the present event belongs to: all, its project, and its model if that is known.
func (c *counter) add(f func(*Spent)) {
	f(&c.out.Total)
	f(entry(c.out.Projects, c.project))
	if c.model != "" {
		f(entry(c.out.Models, c.model))
	}
}

// entry is the entry of a map, made if missing.
func entry[T any](all map[string]*T, key string) *T {
	if all[key] == nil {
		all[key] = new(T)
	}
	return all[key]
}

// addUsage adds tokens.
// They are added kind by kind, since each kind has a price of its own.
func addUsage(to *provider.Usage, u provider.Usage) {
	to.Input += u.Input
	to.Output += u.Output
	to.Reasoning += u.Reasoning
	to.CacheRead += u.CacheRead
	to.CacheWrite += u.CacheWrite
}

// tool counts a call once, at its end.
func (c *counter) tool(data []byte) {
	var d struct {
		Tool           string
		Status         agent.ToolStatus
		Started, Ended time.Time
	}
	if json.Unmarshal(data, &d) != nil || d.Status != agent.ToolCompleted && d.Status != agent.ToolError {
		return
	}
	t := entry(c.out.Tools, d.Tool)
	t.Calls++
	if d.Status == agent.ToolError {
		t.Failed++
	}
	// A clock that was set back would make it negative.
	if ms := d.Ended.Sub(d.Started).Milliseconds(); ms > 0 && !d.Started.IsZero() {
		t.Millis += ms
	}
}

// change follows a change set through its states. A sub-agent's set is in the logs of two sessions, and counts in the
// first one that is read.
func (c *counter) change(data []byte) {
	var d struct {
		State change.State
		Set   struct {
			ID     string
			Source change.Source
			Files  []struct{ Hunks []struct{ ID string } }
		}
	}
	if json.Unmarshal(data, &d) != nil || d.Set.ID == "" || d.Set.Source != change.ByAgent {
		return
	}
	n := 0
	for _, f := range d.Set.Files {
		n += max(1, len(f.Hunks)) // a rename or a binary is one decision
	}
	s := c.sets[d.Set.ID]
	if s == nil {
		s = &setStats{project: c.project, model: c.model, undone: map[string]bool{}}
		c.sets[d.Set.ID] = s
	}
	switch d.State {
	case change.Proposed, change.Rejected:
		// The largest number counts: a later state of the set may hold fewer hunks.
		s.proposed = max(s.proposed, n)
	case change.Applied:
		s.applied = n
		s.proposed = max(s.proposed, n) // it may have been written without approval
	}
}

// finish adds the hunks, which are known only after the last event.
func (c *counter) finish() {
	for _, s := range c.sets {
		to := []*Spent{&c.out.Total, entry(c.out.Projects, s.project)}
		if s.model != "" {
			to = append(to, entry(c.out.Models, s.model))
		}
		for _, x := range to {
			x.Hunks.Proposed += s.proposed
			x.Hunks.Applied += s.applied
			// More undone than applied hunks would make the rate negative.
			x.Hunks.Undone += min(len(s.undone), s.applied)
		}
	}
	c.out.Total.Hunks.rate()
	for _, all := range []map[string]*Spent{c.out.Projects, c.out.Models} {
		for _, x := range all {
			x.Hunks.rate()
		}
	}
}

// ByCost sorts names by cost, then by output tokens, highest first.
func ByCost(all map[string]*Spent) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := all[a], all[b]
		switch {
		case x.Cost != y.Cost:
			return descending(x.Cost, y.Cost)
		case x.Tokens.Output != y.Tokens.Output:
			return y.Tokens.Output - x.Tokens.Output
		}
		return strings.Compare(a, b)
	})
	return names
}

// descending compares for a descending order.
func descending(a, b float64) int {
	if a > b {
		return -1
	}
	return 1
}
