package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/skill"
)

// answers is a person who answers questions.
type answers struct {
	says [][]string
	err  error
	seen []tools.Question
}

func (a *answers) AskQuestions(_ context.Context, _ *tools.Call, qs []tools.Question) ([][]string, error) {
	a.seen = append(a.seen, qs...)
	return a.says, a.err
}

type modes struct{ now, before string }

func (m *modes) Agent() string              { return m.now }
func (m *modes) Before() string             { return m.before }
func (m *modes) SetAgent(name string) error { m.now = name; return nil }

func invoke(t *testing.T, tool tools.Tool, input string, host tools.Host) (tools.Result, error) {
	t.Helper()
	if host.Gate == nil {
		host.Gate = permission.NewGate(permission.GateOptions{Rules: permission.Default})
	}
	return tools.Invoke(t.Context(), tool, json.RawMessage(input), &tools.Call{SessionID: "s", CallID: "c", Host: host}, tools.CapOptions{})
}

func TestQuestionTellsTheAnswers(t *testing.T) {
	p := &answers{says: [][]string{{"A"}, {"X", "my own"}, nil}}
	r, err := invoke(t, Question(Env{}), `{"questions":[
		{"question":"Q1","header":"a header that is far longer than thirty","options":[{"label":"A","description":"d"}]},
		{"question":"Q2","multiple":true,"options":[{"label":"X"},{"label":"Y"}]},{"question":"Q3","custom":false}]}`, tools.Host{Questions: p})
	want := `User has answered your questions: "Q1"="A", "Q2"="X, my own", "Q3"="Unanswered". You can now continue with the user's answers in mind.`
	if err != nil || r.Output != want || r.Title != "Asked 3 questions" {
		t.Errorf("%q %q %v", r.Title, r.Output, err)
	}
	if h := p.seen[0].Header; len([]rune(h)) != 30 || p.seen[2].Custom != nil {
		t.Errorf("header %q, a question without options takes words: %v", h, p.seen[2].Custom)
	}
	if _, err := invoke(t, Question(Env{}), `{"questions":[{"question":"Q"}]}`, tools.Host{Questions: &answers{err: tools.ErrDismissed}}); !errors.Is(err, tools.ErrDismissed) {
		t.Errorf("dismissed: %v", err)
	}
}

func TestPlanExitAsksAndSwitches(t *testing.T) {
	for _, c := range []struct {
		tool          tools.Tool
		before, said  string
		now, rejected string
	}{
		{PlanExit(Env{}), "mine", "Yes", "mine", ""},
		{PlanExit(Env{}), "plan", "Yes", "build", ""},
		{PlanExit(Env{}), "build", "No", "plan", "The user rejected"},
		{PlanExit(Env{}), "build", "first the tests", "plan", "first the tests"},
		{PlanEnter(Env{}), "build", "Yes", "plan", ""},
	} {
		m := &modes{now: "plan", before: c.before}
		if c.tool.ID == "plan_enter" {
			m.now = "build"
		}
		_, err := invoke(t, c.tool, `{}`, tools.Host{Agents: m, Questions: &answers{says: [][]string{{c.said}}}})
		if m.now != c.now || (err != nil) != (c.rejected != "") || err != nil && (!errors.Is(err, permission.ErrRejected) || !strings.Contains(err.Error(), c.rejected)) {
			t.Errorf("%s, %q: agent %s, %v", c.tool.ID, c.said, m.now, err)
		}
	}
}

// spawned is a Spawner that remembers.
type spawned struct {
	got tools.Task
	err error
}

func (s *spawned) SubAgents() []tools.SubAgent { return nil }
func (s *spawned) Spawn(_ context.Context, _ *tools.Call, t tools.Task) (tools.TaskResult, error) {
	s.got = t
	return tools.TaskResult{ID: "ses_1", Text: "found it\n", Running: t.Background}, s.err
}

func TestTaskAsksForTheAgentAndTellsTheResult(t *testing.T) {
	env := Env{SubAgents: func() []tools.SubAgent {
		return []tools.SubAgent{{Name: "explore", Description: "finds\nthings"}, {Name: "general"}}
	}}
	task := Task(env)
	sp := &spawned{}
	r, err := invoke(t, task, `{"description":"look","prompt":"find x","subagent_type":"explore","task_id":"ses_0"}`, tools.Host{Spawner: sp})
	want := "<task id=\"ses_1\" state=\"completed\">\n<task_result>\nfound it\n</task_result>\n</task>"
	if err != nil || r.Output != want || sp.got.ID != "ses_0" || sp.got.Agent != "explore" {
		t.Errorf("%q %+v %v", r.Output, sp.got, err)
	}
	r, _ = invoke(t, task, `{"description":"look","prompt":"find x","subagent_type":"explore","background":true}`, tools.Host{Spawner: sp})
	if !strings.Contains(r.Output, `state="running"`) {
		t.Error(r.Output)
	}
	denies := permission.Ruleset{{Permission: "task", Pattern: "explore", Action: permission.Deny}}
	gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return append(permission.Default(), denies...) }})
	if _, err = invoke(t, task, `{"description":"look","prompt":"p","subagent_type":"explore"}`, tools.Host{Spawner: sp, Gate: gate}); !errors.Is(err, permission.ErrDenied) {
		t.Errorf("denied: %v", err)
	}
	// Claude Code's names of the same agents reach them, and no rule is passed by.
	for name, want := range map[string]string{"general-purpose": "general", "Explore": "explore", "other": "other"} {
		if _, err = invoke(t, task, fmt.Sprintf(`{"description":"look","prompt":"p","subagent_type":%q}`, name), tools.Host{Spawner: sp}); err != nil || sp.got.Agent != want {
			t.Errorf("%s: %s, %v", name, sp.got.Agent, err)
		}
	}
	if _, err = invoke(t, task, `{"description":"look","prompt":"p","subagent_type":"Explore"}`, tools.Host{Spawner: sp, Gate: gate}); !errors.Is(err, permission.ErrDenied) {
		t.Errorf("denied: %v", err)
	}
	offered := tools.Offer([]tools.Tool{task}, tools.OfferOptions{HasSpawner: true, Rules: denies})
	if len(offered) != 1 || strings.Contains(offered[0].Description, "explore:") || !strings.Contains(offered[0].Description, "- general: no description") {
		t.Errorf("%+v", offered)
	}
	if all := tools.Offer([]tools.Tool{Task(Env{})}, tools.OfferOptions{HasSpawner: true}); len(all) != 0 {
		t.Error("a task tool without agents is offered")
	}
}

// made makes calls by looking into a table.
type made map[string]error

func (m made) Callable() []string { return nil }
func (m made) CallTool(_ context.Context, name string, input json.RawMessage) (tools.Result, error) {
	return tools.Result{Output: name + string(input)}, m[name]
}

func TestBatchFailsInParts(t *testing.T) {
	r, err := invoke(t, Batch(Env{}), `{"tool_calls":[{"tool":"read","parameters":{"a":1}},{"tool":"grep"}]}`, tools.Host{Calls: made{"grep": errors.New("no")}})
	if err != nil || !strings.HasPrefix(r.Output, "Executed 1/2 tools successfully. 1 failed.") || !strings.Contains(r.Output, `read{"a":1}`) || !strings.Contains(r.Output, "state=\"error\">\nno\n") {
		t.Errorf("%q %v", r.Output, err)
	}
	var calls []string
	for range 27 {
		calls = append(calls, `{"tool":"read"}`)
	}
	r, err = invoke(t, Batch(Env{}), `{"tool_calls":[`+strings.Join(calls, ",")+`]}`, tools.Host{Calls: made{}})
	if err != nil || r.Title != "Batch execution (25/27 successful)" || strings.Count(r.Output, "Maximum of 25") != 2 {
		t.Errorf("%q %v", r.Title, err)
	}
	if _, err = invoke(t, Batch(Env{}), `{"tool_calls":[{"tool":"bash"}]}`, tools.Host{Calls: made{"bash": &permission.RejectedError{}}}); !errors.Is(err, permission.ErrRejected) {
		t.Errorf("a wordless no: %v", err)
	}
	if o := tools.Offer([]tools.Tool{Batch(Env{})}, tools.OfferOptions{}); len(o) != 0 {
		t.Error("batch is offered without its switch")
	}
	if o := tools.Offer([]tools.Tool{Batch(Env{})}, tools.OfferOptions{Switches: map[string]bool{"batch": true}}); len(o) != 1 {
		t.Error("batch is not offered with its switch")
	}
}

func TestSkillLoadsWhatTheRulesAllow(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"good/SKILL.md":     "---\nname: good\ndescription: does good\n---\nRead notes.md first.",
		"good/notes.md":     "the notes",
		"secret/SKILL.md":   "---\nname: secret\ndescription: hidden\n---\nx",
		"../../outside.txt": "no skill",
	} {
		path := filepath.Join(home, ".claude/skills", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := Env{Cwd: root, Root: root, Skills: skill.New(skill.Places{Cwd: root, Root: root, Home: home})}
	rules := append(permission.Default(), permission.Rule{Permission: "skill", Pattern: "secret", Action: permission.Deny})
	gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rules }})
	offered := tools.Offer([]tools.Tool{Skill(env)}, tools.OfferOptions{Rules: rules})
	if len(offered) != 1 || !strings.Contains(offered[0].Description, "\n- good: does good") || strings.Contains(offered[0].Description, "secret") {
		t.Fatalf("%+v", offered)
	}
	r, err := invoke(t, Skill(env), `{"name":"good"}`, tools.Host{Gate: gate})
	dir := filepath.Join(home, ".claude/skills/good")
	want := fmt.Sprintf("<skill_content name=\"good\">\n# Skill: good\n\nRead notes.md first.\n\nBase directory for this skill: %s\nRelative paths in this skill (e.g., scripts/, reference/) are relative to this base directory.\n\n<skill_files>\n<file>%s/notes.md</file>\n</skill_files>\n</skill_content>", dir, dir)
	if err != nil || r.Output != want {
		t.Errorf("%s %v", r.Output, err)
	}
	if _, err := invoke(t, Skill(env), `{"name":"secret"}`, tools.Host{Gate: gate}); !errors.Is(err, permission.ErrDenied) {
		t.Errorf("denied: %v", err)
	}
	if _, err := invoke(t, Skill(env), `{"name":"none"}`, tools.Host{Gate: gate}); err == nil || !strings.Contains(err.Error(), `Available skills: good, secret`) {
		t.Errorf("unknown: %v", err)
	}
	// Its files can be read although they are outside the project; their neighbours are asked for.
	if r, err := invoke(t, Read(env), fmt.Sprintf(`{"filePath":%q}`, filepath.Join(dir, "notes.md")), tools.Host{Gate: gate}); err != nil || !strings.Contains(r.Output, "the notes") {
		t.Errorf("%q %v", r.Output, err)
	}
	if _, err := invoke(t, Read(env), fmt.Sprintf(`{"filePath":%q}`, filepath.Join(home, "outside.txt")), tools.Host{Gate: gate}); !errors.Is(err, permission.ErrRejected) {
		t.Errorf("outside: %v", err)
	}
}
