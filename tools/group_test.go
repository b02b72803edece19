package tools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// groupOf returns two tools of one group and one beside them.
func groupOf() []Tool {
	g := &Group{ID: "thing", Description: "Works on things."}
	type get struct {
		Name string `json:"name"`
	}
	type put struct {
		Name string `json:"name"`
		Text string `json:"text"`
		Line int    `json:"line,omitempty" minimum:"1"`
	}
	none := Result{}
	return []Tool{
		New("read", "Reads.", func(context.Context, get, *Call) (Result, error) { return none, nil }),
		New("thing_get", "Gets.", func(context.Context, get, *Call) (Result, error) { return none, nil }, WithGroup(g)),
		New("thing_put_after", "Puts.", func(context.Context, put, *Call) (Result, error) { return none, nil }, WithGroup(g)),
		New("write", "Writes.", func(context.Context, put, *Call) (Result, error) { return none, nil }),
	}
}

func TestAGroupIsShownAsOneTool(t *testing.T) {
	shown := Grouped(groupOf())
	if ids(shown) != "read thing write" {
		t.Fatal(ids(shown))
	}
	if d := shown[1].Description; d != "Works on things.\n\n- get(name): Gets.\n- put_after(name, text): Puts." {
		t.Errorf("%q", d)
	}
	want := `{"type":"object","properties":{"operation":{"type":"string","enum":["get","put_after"]},"name":{"type":"string"},"text":{"type":"string"},"line":{"type":"integer","minimum":1}},"required":["operation"]}`
	if got := string(shown[1].Parameters); got != want {
		t.Errorf("%s", got)
	}
}

// What the rules hide, the group does not show.
func TestAGroupShowsOnlyWhatIsOffered(t *testing.T) {
	shown := Grouped(Offer(groupOf(), OfferOptions{Switches: map[string]bool{"thing_put_after": false}}))
	if ids(shown) != "read thing write" || strings.Contains(shown[1].Description+string(shown[1].Parameters), "put") {
		t.Errorf("%+v", shown[1])
	}
}

// A tool of a plugin or a server that has the group's name keeps it.
func TestAToolWithTheNameOfAGroup(t *testing.T) {
	all := append(groupOf(), Tool{ID: "thing", Description: "Another."})
	if got := ids(Grouped(all)); got != "read thing_get thing_put_after write thing" {
		t.Error(got)
	}
	if id, _, ok := Ungroup("thing", json.RawMessage(`{"operation":"get"}`), all); ok {
		t.Error("a call of the other tool became", id)
	}
	if name, _ := GroupCallsOf(all).Regroup("thing_get", json.RawMessage(`{}`)); name != "thing_get" {
		t.Error(name)
	}
}

// A plugin that changes a member's schema changes the group's, with keywords that New does not write.
func TestAGroupShowsASchemaThatAPluginChanged(t *testing.T) {
	all := groupOf()
	all[1].Description, all[1].Parameters = "Gets, carefully.", json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","pattern":"^a"},"why":{"type":"string"}},"required":["why"]}`)
	got := Grouped(all)[1]
	if !strings.Contains(got.Description, "- get(why): Gets, carefully.") || !strings.Contains(string(got.Parameters), `"why"`) || !strings.Contains(string(got.Parameters), `"pattern":"^a"`) {
		t.Errorf("%s\n%s", got.Description, got.Parameters)
	}
}

func TestUngroup(t *testing.T) {
	for _, c := range []struct{ name, name2, input, id, rest string }{
		{"as it is shown", "thing", `{"operation":"get","name":"a"}`, "thing_get", `{"name":"a"}`},
		{"another case", "Thing", `{"operation":"putAfter","name":"a","text":"b"}`, "thing_put_after", `{"name":"a","text":"b"}`},
		{"the tool's own name", "thing", `{"operation":"thing_get"}`, "thing_get", `{}`},
		{"an object as a string", "thing", `"{\"operation\":\"get\"}"`, "thing_get", `{}`},
		{"a large number stays exact", "thing", `{"operation":"get","name":12345678901234567890}`, "thing_get", `{"name":12345678901234567890}`},
		{"no operation", "thing", `{"name":"a"}`, "", ""},
		{"an operation that is none", "thing", `{"operation":"drop"}`, "", ""},
		{"an operation that is no text", "thing", `{"operation":["get"]}`, "", ""},
		{"not whole", "thing", `{"operation":"get"`, "", ""},
		{"another tool", "read", `{"operation":"get"}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, rest, ok := Ungroup(c.name2, json.RawMessage(c.input), groupOf())
			if id != c.id || string(rest) != c.rest || ok != (c.id != "") {
				t.Errorf("%s %s %v", id, rest, ok)
			}
		})
	}
	if why := Unavailable("thing", groupOf()); why != "thing needs operation, one of: get, put_after." {
		t.Error(why)
	}
	if why := Unavailable("fly", groupOf()); !strings.Contains(why, "Available tools: read, thing, write.") {
		t.Error(why)
	}
}

// What a model reads of its past calls is what it wrote.
func TestRegroupUndoesUngroup(t *testing.T) {
	all := groupOf()
	for _, input := range []string{`{"name":"a","operation":"get"}`, `{"line":3,"name":"ä","operation":"put_after","text":"<b>"}`} {
		id, rest, ok := Ungroup("thing", json.RawMessage(input), all)
		name, again := GroupCallsOf(all).Regroup(id, rest)
		var a, b any
		if json.Unmarshal([]byte(input), &a) != nil || json.Unmarshal(again, &b) != nil || !ok || name != "thing" {
			t.Fatal(id, name, string(again))
		}
		x, _ := json.Marshal(a)
		if y, _ := json.Marshal(b); string(x) != string(y) {
			t.Errorf("%s became %s", input, again)
		}
	}
	if name, input := GroupCallsOf(all).Regroup("read", json.RawMessage(`{"a":1}`)); name != "read" || string(input) != `{"a":1}` {
		t.Error(name, string(input))
	}
}
