package stats

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools/change"
)

// week fills a store with sessions of 100 events each, one every ten minutes: 5 projects, 2 models, in each session two prompts of
// ten steps, with text, tool calls and one change set of which a hunk is undone afterwards.
func week(t testing.TB, st *store.Store, end time.Time, sessions int) {
	t.Helper()
	for i := range sessions {
		id, at := fmt.Sprintf("ses_%04d", i), end.Add(-time.Duration(sessions-i)*10*time.Minute)
		head := store.Session{ID: id, Cwd: fmt.Sprintf("/p%d/sub", i%5), Title: "work", Created: at, Updated: at, Info: []byte("{}")}
		if i%10 == 9 {
			head.Parent = fmt.Sprintf("ses_%04d", i-1)
		}
		st.PutSession(head)
		seq := int64(0)
		add := func(typ agent.EventType, v any) {
			seq++
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			st.Append(id, store.Event{Seq: seq, Time: at, Type: string(typ), Data: data})
		}
		model := fmt.Sprintf("local/m%d", i%2)
		hunks := []change.Hunk{{ID: "1"}, {ID: "2"}, {ID: "3"}, {ID: "4"}}
		asked := &change.Set{ID: "set_" + id, Files: []change.File{{Path: "/x.go", Hunks: hunks}}}
		written := &change.Set{ID: asked.ID, Files: []change.File{{Path: "/x.go", Hunks: hunks[:3]}}}
		for range 2 {
			add(agent.EventPrompt, agent.PromptData{MessageID: "u"})
			for step := range 8 {
				add(agent.EventMessage, agent.MessageData{MessageID: "m", Model: model, Step: step + 1})
				add(agent.EventText, agent.TextData{MessageID: "m", Text: "some words of an answer that is read by a person"})
				add(agent.EventTool, agent.ToolData{CallID: "c", Tool: "read", Status: agent.ToolRunning, Started: at})
				status := agent.ToolCompleted
				if step == 0 {
					status = agent.ToolError
				}
				add(agent.EventTool, agent.ToolData{CallID: "c", Tool: "read", Status: status, Started: at, Ended: at.Add(10 * time.Millisecond), Output: "a line\n"})
				add(agent.EventStep, agent.StepData{Message: provider.Message{Model: model}, Usage: provider.Usage{Input: 100, Output: 10, CacheRead: 1000}, Cost: 0.01})
			}
			add(agent.EventText, agent.TextData{MessageID: "m", Text: "done"})
			add(agent.EventTurn, agent.TurnData{Stop: agent.TurnEnd})
		}
		add(agent.EventChange, agent.ChangeData{State: change.Proposed, Set: asked})
		add(agent.EventChange, agent.ChangeData{State: change.Writing, Set: written})
		add(agent.EventChange, agent.ChangeData{State: change.Applied, Set: written})
		add(agent.EventReview, agent.ReviewData{ChangeSet: asked.ID, Undone: []string{"1", "2"}})
		add(agent.EventReview, agent.ReviewData{ChangeSet: asked.ID, Again: []string{"2"}})
		for seq < 100 {
			add(agent.EventText, agent.TextData{MessageID: "m", Text: "more"})
		}
	}
	if err := st.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestStatsOfAWeek(t *testing.T) {
	st := store.New(filepath.Join(t.TempDir(), "p.db"))
	defer st.Close()
	end := time.Now()
	week(t, st, end, 200) // of the 1000 sessions that the benchmark counts
	root := func(cwd string) string { return filepath.Dir(cwd) }
	begun := time.Now()
	all, err := Count(t.Context(), st, time.Time{}, "", root)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("20,000 events in %v", time.Since(begun))
	if got := all.Total; got.Sessions != 180 || got.Prompts != 360 || got.Steps != 3200 || got.Tokens.Input != 320_000 ||
		got.Cost < 31.9 || got.Cost > 32.1 || got.Hunks.Proposed != 800 || got.Hunks.Applied != 600 || got.Hunks.Undone != 200 || *got.Hunks.Acceptance != 0.5 {
		t.Errorf("total %+v", got)
	}
	if len(all.Projects) != 5 || len(all.Models) != 2 || all.Projects["/p0"].Steps != 640 || all.Models["local/m1"].Steps != 1600 || all.Models["local/m0"].Hunks.Proposed != 400 {
		t.Errorf("projects %v, models %v", all.Projects, all.Models)
	}
	if got := all.Tools["read"]; got == nil || *got != (toolStats{Calls: 3200, Failed: 400, Millis: 32_000}) {
		t.Errorf("read %+v", got)
	}
	one, err := Count(t.Context(), st, end.Add(-24*time.Hour), "/p3", root)
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Projects) != 1 || one.Total.Steps != 29*16 { // 144 sessions a day, every fifth is the project's
		t.Errorf("a day of one project: %+v", one.Total)
	}
}

func BenchmarkStatsOfAWeek(b *testing.B) {
	st := store.New(filepath.Join(b.TempDir(), "p.db"))
	defer st.Close()
	week(b, st, time.Now(), 1000)
	for b.Loop() {
		if _, err := Count(b.Context(), st, time.Time{}, "", func(cwd string) string { return cwd }); err != nil {
			b.Fatal(err)
		}
	}
}
