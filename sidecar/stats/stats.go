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

// Spent is what was used, and what came of it.
type Spent struct {
	Sessions int            `json:"sessions"` // sub-agents' not counted
	Prompts  int            `json:"prompts"`
	Steps    int            `json:"steps"`
	Tokens   provider.Usage `json:"tokens"`
	Cost     float64        `json:"cost"` // USD
	Hunks    hunkStats      `json:"hunks"`
}

// hunkStats are the changes that the agent proposed: what was written, and what of it the person took back.
type hunkStats struct {
	Proposed int `json:"proposed"`
	Applied  int `json:"applied"`
	Undone   int `json:"undone"`
	// Acceptance is what stayed of what was proposed and decided; nil when nothing was.
	Acceptance *float64 `json:"acceptance,omitempty"`
}

func (h *hunkStats) rate() {
	if h.Proposed > 0 {
		r := float64(h.Applied-h.Undone) / float64(h.Proposed)
		h.Acceptance = &r
	}
}

type toolStats struct {
	Calls  int   `json:"calls"`
	Failed int   `json:"failed"`
	Millis int64 `json:"ms"` // of all calls together
}

// Report is what pillion stats prints.
type Report struct {
	Since    *time.Time            `json:"since,omitempty"`
	Total    Spent                 `json:"total"`
	Projects map[string]*Spent     `json:"projects"`
	Models   map[string]*Spent     `json:"models"`
	Tools    map[string]*toolStats `json:"tools"`
}

// counting reads events in their order, and forgets them.
type counting struct {
	out      Report
	root     func(cwd string) string // a session's directory → its project
	only     string                  // a project; empty: all
	roots    map[string]string       // by cwd
	sets     map[string]*setStats    // by change set; an undo may come long after
	seen     string                  // the session at hand
	model    string                  // its model
	project  string
	inModels map[string]bool // its models that were counted
}

// setStats is a change set as far as it is known.
type setStats struct {
	project, model    string
	proposed, applied int
	undone            map[string]bool
}

// Count streams over the store. project "" is all.
func Count(ctx context.Context, st *store.Store, since time.Time, project string, root func(string) string) (*Report, error) {
	c := &counting{root: root, only: project, roots: map[string]string{}, sets: map[string]*setStats{},
		out: Report{Projects: map[string]*Spent{}, Models: map[string]*Spent{}, Tools: map[string]*toolStats{}}}
	if !since.IsZero() {
		c.out.Since = &since
	}
	types := []string{string(agent.EventPrompt), string(agent.EventSteer), string(agent.EventMessage), string(agent.EventStep), string(agent.EventCompaction),
		string(agent.EventTool), string(agent.EventChange), string(agent.EventReview)}
	if err := st.Scan(ctx, since, types, c.see); err != nil {
		return nil, err
	}
	c.finish()
	return &c.out, nil
}

func (c *counting) see(s store.Session, e store.Event) error {
	if s.ID != c.seen {
		c.begin(s)
	}
	if c.only != "" && c.project != c.only {
		return nil
	}
	switch agent.EventType(e.Type) {
	case agent.EventPrompt, agent.EventSteer:
		var d struct{ Model string } // a prompt comes before its first message
		if json.Unmarshal(e.Data, &d) == nil {
			c.use(s, d.Model)
		}
		if s.Parent == "" {
			c.each(func(x *Spent) { x.Prompts++ })
		}
	case agent.EventMessage:
		var d struct{ Model string }
		if json.Unmarshal(e.Data, &d) == nil && d.Model != "" {
			c.use(s, d.Model)
		}
	case agent.EventStep:
		var d struct {
			Usage   provider.Usage
			Cost    float64
			Message struct{ Model string }
		}
		if json.Unmarshal(e.Data, &d) == nil {
			c.use(s, d.Message.Model)
			c.each(func(x *Spent) { x.Steps++; x.Cost += d.Cost; addUsage(&x.Tokens, d.Usage) })
		}
	case agent.EventCompaction: // told again as it grows: what it cost is told once, at its end
		var d struct {
			Model string
			Usage provider.Usage
			Cost  float64
		}
		if json.Unmarshal(e.Data, &d) == nil && d.Usage != (provider.Usage{}) {
			c.use(s, d.Model)
			c.each(func(x *Spent) { x.Cost += d.Cost; addUsage(&x.Tokens, d.Usage) })
		}
	case agent.EventTool:
		c.tool(e.Data)
	case agent.EventChange:
		c.change(e.Data)
	case agent.EventReview:
		var d agent.ReviewData
		if json.Unmarshal(e.Data, &d) == nil && c.sets[d.ChangeSet] != nil {
			for _, id := range d.Undone {
				c.sets[d.ChangeSet].undone[id] = true
			}
			for _, id := range d.Again {
				delete(c.sets[d.ChangeSet].undone, id)
			}
		}
	}
	return nil
}

// begin turns to another session.
func (c *counting) begin(s store.Session) {
	c.seen, c.model, c.inModels = s.ID, "", map[string]bool{}
	project, ok := c.roots[s.Cwd]
	if !ok {
		project = c.root(s.Cwd)
		c.roots[s.Cwd] = project
	}
	c.project = project
	if s.Parent == "" && (c.only == "" || project == c.only) {
		c.out.Total.Sessions++
		of(c.out.Projects, project).Sessions++
	}
}

// use says which model speaks.
func (c *counting) use(s store.Session, model string) {
	if model == "" {
		return
	}
	c.model = model
	if s.Parent == "" && !c.inModels[model] {
		c.inModels[model] = true
		of(c.out.Models, model).Sessions++
	}
}

// each reaches everything that the event at hand counts for.
func (c *counting) each(f func(*Spent)) {
	f(&c.out.Total)
	f(of(c.out.Projects, c.project))
	if c.model != "" {
		f(of(c.out.Models, c.model))
	}
}

func of[T any](all map[string]*T, key string) *T {
	if all[key] == nil {
		all[key] = new(T)
	}
	return all[key]
}

func addUsage(to *provider.Usage, u provider.Usage) {
	to.Input += u.Input
	to.Output += u.Output
	to.Reasoning += u.Reasoning
	to.CacheRead += u.CacheRead
	to.CacheWrite += u.CacheWrite
}

// tool counts a call once: at its end.
func (c *counting) tool(data []byte) {
	var d struct {
		Tool           string
		Status         agent.ToolStatus
		Started, Ended time.Time
	}
	if json.Unmarshal(data, &d) != nil || d.Status != agent.ToolCompleted && d.Status != agent.ToolError {
		return
	}
	t := of(c.out.Tools, d.Tool)
	t.Calls++
	if d.Status == agent.ToolError {
		t.Failed++
	}
	if ms := d.Ended.Sub(d.Started).Milliseconds(); ms > 0 && !d.Started.IsZero() {
		t.Millis += ms
	}
}

// change follows a set through its states. A sub-agent's is told in two sessions and counts where it is met first.
func (c *counting) change(data []byte) {
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
		s.proposed = max(s.proposed, n)
	case change.Applied:
		s.applied = n
		s.proposed = max(s.proposed, n) // it may have been written without a question
	}
}

func (c *counting) finish() {
	for _, s := range c.sets {
		to := []*Spent{&c.out.Total, of(c.out.Projects, s.project)}
		if s.model != "" {
			to = append(to, of(c.out.Models, s.model))
		}
		for _, x := range to {
			x.Hunks.Proposed += s.proposed
			x.Hunks.Applied += s.applied
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

// ByCost orders names by what they cost, then by their tokens.
func ByCost(all map[string]*Spent) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := all[a], all[b]
		switch {
		case x.Cost != y.Cost:
			return cmpDown(x.Cost, y.Cost)
		case x.Tokens.Output != y.Tokens.Output:
			return y.Tokens.Output - x.Tokens.Output
		}
		return strings.Compare(a, b)
	})
	return names
}

func cmpDown(a, b float64) int {
	if a > b {
		return -1
	}
	return 1
}
