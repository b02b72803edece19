package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

func TestRejectionWithoutAWordEndsTheTurn(t *testing.T) {
	h := newHarness(t, calls(`write {"text":"a"}`, `write {"text":"b"}`, `read {"text":"c"}`))
	h.person.answer = rejects("")
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 1 || end.Error != "" {
		t.Fatalf("end %+v", end)
	}
	var kinds []string
	for _, d := range final(h.events(s)) {
		kinds = append(kinds, d.ErrorKind)
	}
	if got := strings.Join(kinds, " "); got != "rejected not_run not_run" {
		t.Errorf("kinds %s", got)
	}
	if n := len(h.person.questions()); n != 1 {
		t.Errorf("asked %d times", n)
	}
	h.consistent(s)
}

func TestRejectionWithWordsIsAResult(t *testing.T) {
	h := newHarness(t, calls(`write {"text":"a"}`), says("All right."))
	h.person.answer = rejects("use b instead")
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 2 {
		t.Fatalf("end %+v", end)
	}
	if got := h.model.seen()[1].Messages[2].Parts[0]; !got.IsError || !strings.Contains(got.Text, "use b instead") {
		t.Errorf("the model reads %+v", got)
	}
	asks := ofType[AskData](h.events(s), EventAsk)
	if len(asks) != 2 || asks[0].Reply != "" || asks[1].Reply != "reject" || asks[1].Message != "use b instead" {
		t.Errorf("asks %+v", asks)
	}
	h.consistent(s)
}

func TestDeniedIsAResult(t *testing.T) {
	h := newHarness(t, calls(`write {"text":"a"}`), says("All right."))
	h.with.rules = func(string) permission.Ruleset {
		return permission.Ruleset{{Permission: "edit", Pattern: "a", Action: permission.Deny, Origin: "test"}}
	}
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd || end.Steps != 2 {
		t.Fatalf("end %+v", end)
	}
	if d := final(h.events(s))[0]; d.ErrorKind != "denied" {
		t.Errorf("got %+v", d)
	}
	if n := len(h.person.questions()); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestPlanAgentCannotEdit(t *testing.T) {
	h := newHarness(t, calls(`write {"text":"a.go"}`), says("All right."))
	h.with.rules = func(string) permission.Ruleset {
		return permission.Ruleset{{Permission: "*", Pattern: "*", Action: permission.Allow, Origin: "config"}}
	}
	s := h.session()
	if err := s.SetAgent("plan"); err != nil {
		t.Fatal(err)
	}
	h.prompt(s, "go")
	if d := final(h.events(s))[0]; d.ErrorKind != "denied" {
		t.Errorf("got %+v", d)
	}
	if err := s.SetAgent("nobody"); !errors.Is(err, ErrNoAgent) {
		t.Errorf("got %v", err)
	}
}

func TestAToolThatIsNotOfferedForWantOfRoomIsFoundByItsName(t *testing.T) {
	h := newHarness(t, calls(`far_away {"text":"a"}`, `far_denied {"text":"b"}`), says("Done."))
	h.with.find = func(s SessionInfo, name string) (tools.Tool, bool) {
		if s.Cwd != h.dir || !strings.HasPrefix(name, "far_") {
			return tools.Tool{}, false
		}
		far := tools.New(name, "Far away.", func(context.Context, textParams, *tools.Call) (tools.Result, error) {
			return tools.Result{Output: "here"}, nil
		})
		return far, true
	}
	h.with.rules = func(string) permission.Ruleset {
		return permission.Ruleset{{Permission: "far_denied", Pattern: "*", Action: permission.Deny, Origin: "test"}}
	}
	s := h.session()
	h.prompt(s, "go")
	got := final(h.events(s))
	if got[0].Output != "here" || got[1].ErrorKind != "unknown_tool" {
		t.Errorf("%+v", got)
	}
}
