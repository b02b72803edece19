package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// taskTool is a task tool that asks nothing; the real one is in tools/builtin.
func taskTool() tools.Tool {
	return tools.New("task", "Delegates.", func(ctx context.Context, p struct {
		Agent      string `json:"agent"`
		Prompt     string `json:"prompt"`
		ID         string `json:"task_id,omitempty"`
		Background bool   `json:"background,omitempty"`
	}, c *tools.Call) (tools.Result, error) {
		r, err := c.Host.Spawner.Spawn(ctx, c, tools.Task{Agent: p.Agent, Prompt: p.Prompt, Description: p.Prompt, ID: p.ID, Background: p.Background})
		return tools.Result{Output: r.ID + ": " + r.Text}, err
	}, tools.WithParallel())
}

// delegates is a harness whose sessions can delegate. answers are by the words of the newest prompt of the person or
// the parent: each prompt has its own script.
func delegates(t *testing.T, answers map[string][]answerFunc) *harness {
	h := newHarness(t)
	h.with.tools = func(ctx context.Context, s SessionInfo) ([]tools.Tool, error) {
		own, err := h.tools(ctx, s)
		return append(own, taskTool(), tools.New("show", "Shows a change.", func(ctx context.Context, p textParams, c *tools.Call) (tools.Result, error) {
			c.Report(tools.Update{Change: &change.Set{ID: p.Text}, ChangeState: change.Applied})
			return tools.Result{Output: "shown"}, nil
		})), err
	}
	var mu sync.Mutex
	h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		words := ""
		for _, m := range req.Messages {
			if m.Role == provider.RoleUser && !m.Parts[0].Synthetic {
				words = m.Parts[0].Text
			}
		}
		mu.Lock()
		script := answers[words]
		if len(script) == 0 {
			mu.Unlock()
			return &provider.Error{Kind: provider.ErrInvalid, Message: "no answer to " + words}
		}
		answers[words] = script[1:]
		mu.Unlock()
		return script[0](ctx, req, emit)
	}
	return h
}

func (h *harness) children(parent *Session) (out []SessionInfo) {
	h.t.Helper()
	all, err := h.rt.List(context.Background(), "")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, i := range all {
		if i.Parent == parent.ID() {
			out = append(out, i)
		}
	}
	return out
}

func toolsOf(req provider.Request) string {
	var names []string
	for _, s := range req.Tools {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func TestATaskRunsInASessionOfItsOwnAndCanBeResumed(t *testing.T) {
	h := delegates(t, map[string][]answerFunc{
		"go":    {calls(`task {"agent":"general","prompt":"look"}`), says("Thanks.")},
		"look":  {calls(`read {"text":"x"}`, `show {"text":"set1"}`), says("It is there.")},
		"again": {nil, says("Thanks again.")},
		"more":  {says("And there.")},
	})
	h.with.agents = func(string) []Agent { return []Agent{{Name: "general", Model: "fake/small"}} }
	s := h.session()
	end := h.prompt(s, "go")
	kids := h.children(s)
	if end.Stop != TurnEnd || len(kids) != 1 || kids[0].Model != "fake/small" || kids[0].Title != "look (@general)" {
		t.Fatalf("%+v %+v", end, kids)
	}
	if end.Tasks == nil || end.Tasks.Tasks != 1 || end.Tasks.Usage.Input == 0 || end.Cost+end.Tasks.Cost <= end.Cost {
		t.Errorf("spent %+v", end.Tasks)
	}
	task := final(h.events(s))[0]
	if want := kids[0].ID + ": It is there."; task.Output != want || task.Metadata["sessionId"] != kids[0].ID || !strings.Contains(fmt.Sprint(task.Metadata["output"]), "✓ read") {
		t.Errorf("%q %v", task.Output, task.Metadata)
	}
	// Its changes belong to the session that the person talks to, and only there.
	changes := ofType[ChangeData](h.events(s), EventChange)
	if len(changes) != 1 || changes[0].Session != kids[0].ID || changes[0].Task != task.CallID || changes[0].Set == nil || changes[0].Set.ID != "set1" {
		t.Errorf("%+v", changes)
	}
	var kid []Event
	for e := range h.stored(kids[0].ID) {
		kid = append(kid, e)
	}
	if n := len(ofType[ChangeData](kid, EventChange)); n != 0 {
		t.Errorf("%d changes in the sub-agent's session", n)
	}
	for _, d := range final(kid) {
		if d.CallID == "id0" || d.CallID == task.CallID {
			t.Errorf("the sub-agent's call has its parent's kind of id %s", d.CallID)
		}
	}
	for _, r := range h.model.seen() {
		if strings.Contains(string(encode(r.Messages)), `"look"`) && r.SessionID == kids[0].ID && (strings.Contains(toolsOf(r), "todo") || strings.Contains(toolsOf(r), "task")) {
			t.Errorf("a sub-agent is offered %s", toolsOf(r))
		}
	}
	if _, live := h.rt.Session(kids[0].ID); live {
		t.Error("the sub-agent's session is still in memory")
	}
	h.consistent(s)

	// It continues with what it knew.
	answers := calls(fmt.Sprintf(`task {"agent":"general","prompt":"more","task_id":%q}`, kids[0].ID))
	h.model.script = []answerFunc{answers}
	h.model.mu.Lock()
	old := h.model.def
	h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		if last := req.Messages[len(req.Messages)-1]; last.Parts[0].Text == "more" && len(req.Messages) != 5 {
			t.Errorf("resumed with %d messages", len(req.Messages))
		}
		if last := req.Messages[len(req.Messages)-1]; last.Role == provider.RoleTool && req.SessionID == s.ID() {
			return says("Thanks again.")(ctx, req, emit)
		}
		return old(ctx, req, emit)
	}
	h.model.mu.Unlock()
	h.prompt(s, "again")
	if got := final(h.events(s))[1]; !strings.HasSuffix(got.Output, "And there.") || len(h.children(s)) != 1 {
		t.Errorf("%+v", got)
	}
	h.consistent(s)
}

// stored yields a session's events from the store.
func (h *harness) stored(id string) func(func(Event) bool) {
	s := h.load(id)
	defer s.Close(context.Background())
	events := h.events(s)
	return func(yield func(Event) bool) {
		for _, e := range events {
			if !yield(e) {
				return
			}
		}
	}
}

func TestASubAgentMayNoMoreThanItsParent(t *testing.T) {
	h := delegates(t, map[string][]answerFunc{
		"go":      {calls(`task {"agent":"free","prompt":"edit"}`), says("ok")},
		"edit":    {calls(`write {"text":"f"}`), says("I could not.")},
		"ask":     {calls(`task {"agent":"free","prompt":"allowed"}`), says("ok")},
		"allowed": {calls(`write {"text":"g"}`), says("I did.")},
	})
	h.with.agents = func(string) []Agent {
		return []Agent{
			{Name: "free", Rules: permission.Ruleset{{Permission: "*", Pattern: "*", Action: permission.Allow}}},
			{Name: "strict", Mode: ModePrimary, Rules: permission.Ruleset{{Permission: "edit", Pattern: "f", Action: permission.Deny}}},
		}
	}
	s := h.session()
	if err := s.SetAgent("strict"); err != nil {
		t.Fatal(err)
	}
	h.prompt(s, "go")
	if h.order() != "" {
		t.Errorf("the sub-agent did %s", h.order())
	}
	h.prompt(s, "ask")
	asked := h.person.questions()
	if len(asked) != 1 || !strings.HasPrefix(asked[0].Title, "[free: allowed] ") || asked[0].SessionID == s.ID() || h.order() != "write g" {
		t.Errorf("asked %+v, did %s", asked, h.order())
	}
}

func TestASubAgentsSessionOpenedByItselfStaysWithinItsParents(t *testing.T) {
	h := delegates(t, map[string][]answerFunc{
		"go":    {calls(`task {"agent":"free","prompt":"first"}`), says("ok")},
		"first": {says("done")},
		"more":  {calls(`write {"text":"f"}`, `write {"text":"g"}`), says("one of them")},
		"late":  {calls(`write {"text":"f"}`), says("no")},
	})
	h.with.agents = func(string) []Agent {
		return []Agent{
			{Name: "free", Rules: permission.Ruleset{{Permission: "*", Pattern: "*", Action: permission.Allow}}},
			{Name: "strict", Mode: ModePrimary, Rules: permission.Ruleset{{Permission: "*", Pattern: "*", Action: permission.Allow}, {Permission: "edit", Pattern: "f", Action: permission.Deny}}},
		}
	}
	s := h.session()
	if err := s.SetAgent("strict"); err != nil {
		t.Fatal(err)
	}
	h.prompt(s, "go")
	kid := h.children(s)[0].ID
	open := func(prompt string) {
		live, err := h.rt.LoadSession(t.Context(), kid)
		if err != nil {
			t.Fatal(err)
		}
		defer live.Close(t.Context())
		h.prompt(live, prompt)
		reqs := h.model.seen()
		if offered := toolsOf(reqs[len(reqs)-1]); strings.Contains(offered, "task") || strings.Contains(offered, "plan_exit") {
			t.Errorf("%s is offered %s", prompt, offered)
		}
	}
	open("more") // its parent is open
	if h.order() != "write g" {
		t.Errorf("did %s", h.order())
	}
	s.Close(t.Context())
	open("late") // and now only stored
	if h.order() != "write g" {
		t.Errorf("did %s", h.order())
	}
}

func TestTasksRunBesideEachOtherAndEndWithTheTurn(t *testing.T) {
	const n = 20
	answers := map[string][]answerFunc{}
	var list []string
	var mu sync.Mutex
	running := 0
	all := make(chan struct{})
	for i := range n {
		words := fmt.Sprint("job ", i)
		list = append(list, fmt.Sprintf(`task {"agent":"general","prompt":%q}`, words))
		answers[words] = []answerFunc{func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
			mu.Lock()
			if running++; running == n {
				close(all)
			}
			mu.Unlock()
			<-ctx.Done()
			return ctx.Err()
		}}
	}
	answers["go"] = []answerFunc{calls(list...)}
	h := delegates(t, answers)
	s := h.session()
	go func() {
		<-all
		s.Cancel()
	}()
	if end := h.prompt(s, "go"); end.Stop != TurnCancelled {
		t.Errorf("%+v", end)
	}
	for _, d := range final(h.events(s)) {
		if d.ErrorKind != "cancelled" {
			t.Errorf("%+v", d)
		}
	}
	h.consistent(s)
	_ = h.rt.Close(context.Background()) // every sub-agent is over, too
	for _, i := range h.children(s) {
		for e := range h.stored2(i.ID) {
			if e.Type == EventTurn && decode[TurnData](e).Stop != TurnCancelled {
				t.Errorf("%+v", decode[TurnData](e))
			}
		}
	}
}

// stored2 reads events without a session.
func (h *harness) stored2(id string) func(func(Event) bool) {
	rt := New(Options{Store: h.st})
	return func(yield func(Event) bool) {
		s := rt.newSession(SessionInfo{ID: id, Cwd: h.dir}, 0, lineage{})
		_ = s.Events(context.Background(), 0, func(e Event) error { yield(e); return nil })
	}
}

func TestABackgroundTaskIsToldWhenItIsDone(t *testing.T) {
	release := make(chan struct{})
	h := delegates(t, map[string][]answerFunc{
		"go": {calls(`task {"agent":"general","prompt":"slow","background":true}`), func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
			defer close(release) // the parent's words come first
			return says("Meanwhile I wait.")(ctx, req, emit)
		}, says("So it is 42.")},
		"slow": {func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
			<-release
			return says("The answer is 42.")(ctx, req, emit)
		}},
	})
	s := h.session()
	end := h.prompt(s, "go")
	if end.Stop != TurnEnd || end.Steps != 3 {
		t.Fatalf("%+v", end)
	}
	last := h.model.seen()
	text := string(encode(last[len(last)-1].Messages))
	if !strings.Contains(text, "The background task \\\"slow\\\" is over.") || !strings.Contains(text, "The answer is 42.") {
		t.Error(text)
	}
	h.consistent(s)
}

func TestABackgroundTaskEndsWithACancelledTurn(t *testing.T) {
	at := make(chan struct{})
	h := delegates(t, map[string][]answerFunc{
		"go": {calls(`task {"agent":"general","prompt":"slow","background":true}`), says("I wait.")},
		"slow": {func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
			close(at)
			<-ctx.Done()
			return ctx.Err()
		}},
	})
	s := h.session()
	defer s.Subscribe(0, func(e Event) {
		if d, ok := e.Value.(NoticeData); ok && strings.HasPrefix(d.Text, "Waiting for 1 task") {
			go func() { <-at; s.Cancel() }()
		}
	})()
	if end := h.prompt(s, "go"); end.Stop != TurnCancelled {
		t.Errorf("%+v", end)
	}
	h.consistent(s)
}

func TestANoWithoutWordsToASubAgentEndsTheTurn(t *testing.T) {
	h := delegates(t, map[string][]answerFunc{
		"go":   {calls(`task {"agent":"general","prompt":"edit"}`)},
		"edit": {calls(`write {"text":"f"}`)},
	})
	h.person.answer = rejects("")
	s := h.session()
	end := h.prompt(s, "go")
	if end.Stop != TurnEnd || !end.Rejected || len(h.model.seen()) != 2 {
		t.Errorf("%+v after %d requests", end, len(h.model.seen()))
	}
	h.consistent(s)
}

func TestDepthAndNames(t *testing.T) {
	h := delegates(t, map[string][]answerFunc{
		"go":   {calls(`task {"agent":"nobody","prompt":"x"}`, `task {"agent":"build","prompt":"x"}`, `task {"agent":"general","prompt":"x","task_id":"ses_none"}`, `task {"agent":"general","prompt":"deep"}`), says("ok")},
		"deep": {calls(`task {"agent":"general","prompt":"deeper"}`), says("ok")},
	})
	s := h.session()
	h.prompt(s, "go")
	got := final(h.events(s))
	for i, kind := range []string{"unknown_agent", "unknown_agent", "unknown_task", ""} {
		if got[i].ErrorKind != kind {
			t.Errorf("%d: %s %s", i, got[i].ErrorKind, got[i].Error)
		}
	}
	if !strings.Contains(got[0].Error, "there are general, explore") {
		t.Error(got[0].Error)
	}
	var kid []ToolData
	for e := range h.stored(h.children(s)[0].ID) {
		if e.Type == EventTool {
			kid = append(kid, decode[ToolData](e))
		}
	}
	if last := kid[len(kid)-1]; last.ErrorKind != "unknown_tool" {
		t.Errorf("a sub-agent's task: %+v", last)
	}
}

// Agents that come with a project name models of their authors. Without a key for those they work with the session's model, and the person
// is told.
func TestAnAgentWhoseModelCannotBeUsed(t *testing.T) {
	h := delegates(t, map[string][]answerFunc{
		"go":     {calls(`task {"agent":"reviewer","prompt":"review"}`), says("ok")},
		"review": {says("reviewed")},
		"again":  {says("lent")},
	})
	h.with.agents = func(string) []Agent { return []Agent{{Name: "reviewer", Mode: ModeAll, Model: "fake/missing"}} }
	s := h.session()
	h.prompt(s, "go")
	if _, err := s.Prompt(t.Context(), Prompt{Parts: words("again").Parts, Agent: "reviewer"}); err != nil {
		t.Fatal(err)
	}
	if kids := h.children(s); len(kids) != 1 || kids[0].Model != s.Info().Model {
		t.Fatalf("%+v", kids)
	}
	for _, r := range h.model.seen() {
		if r.Model.ID != "m" {
			t.Errorf("asked %s", r.Model)
		}
	}
	told := 0
	for _, e := range h.events(s) {
		if d, ok := Value[NoticeData](e); ok && e.Type == EventNotice && strings.Contains(d.Text, "The agent reviewer works with the session's model") && strings.Contains(d.Text, "no model fake/missing") {
			told++
		}
	}
	if told != 2 {
		t.Errorf("told %d times", told)
	}
}

func TestPromptsCanHaveTheirOwnAgentAndModel(t *testing.T) {
	h := newHarness(t, says("one"), says("two"))
	s := h.session()
	if _, err := s.Prompt(t.Context(), Prompt{Parts: words("x").Parts, Agent: "plan", Model: "fake/other"}); err != nil {
		t.Fatal(err)
	}
	h.prompt(s, "y")
	seen := h.model.seen()
	if seen[0].Model.ID != "other" || !strings.Contains(seen[0].System[0], promptText("plan")) || strings.Contains(toolsOf(seen[0]), "plan_enter") {
		t.Errorf("%s", seen[0].Model)
	}
	if seen[1].Model.ID != "m" || !strings.Contains(seen[1].System[0], promptText("build")) || s.Info().Agent != "build" {
		t.Errorf("%s", seen[1].Model)
	}
}

func TestCallsInsideACallHaveCardsAndNoPlaceInTheHistory(t *testing.T) {
	h := newHarness(t, calls(`inside {"list":["read","write","todowrite","inside"]}`), says("ok"))
	h.with.tools = func(ctx context.Context, s SessionInfo) ([]tools.Tool, error) {
		own, err := h.tools(ctx, s)
		return append(own, tools.New("inside", "Calls.", func(ctx context.Context, p struct {
			List []string `json:"list"`
		}, c *tools.Call) (tools.Result, error) {
			var out []string
			for _, name := range p.List {
				r, err := c.Host.Calls.CallTool(ctx, name, json.RawMessage(`{"text":"x"}`))
				out = append(out, fmt.Sprint(r.Output, "|", err))
			}
			return tools.Result{Output: strings.Join(out, "\n")}, nil
		})), err
	}
	s := h.session()
	h.prompt(s, "go")
	got := final(h.events(s))
	if len(got) != 3 || got[1].Parent != got[0].CallID || got[1].MessageID != "" || got[2].Tool != "write" {
		t.Fatalf("%+v", got)
	}
	if !strings.HasPrefix(got[0].Output, "read says x|<nil>\nwrite says x|<nil>\n|Tool 'todowrite' is not allowed here") {
		t.Error(got[0].Output)
	}
	if len(h.person.questions()) != 1 {
		t.Error("the write was not asked")
	}
	h.consistent(s)
}
