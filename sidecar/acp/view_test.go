package acp

import (
	"encoding/json"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools"
)

func TestARunningCallSaysWhatItIsAbout(t *testing.T) {
	for input, want := range map[string]hint{
		`{"filePath":"src/a.go","offset":3}`:         {"src/a.go", "/p/src/a.go"},
		`{"filePath":"/x/a.go"}`:                     {"/x/a.go", "/x/a.go"},
		`{"command":"make\ntest","description":"b"}`: {"make", ""},
		`{"operation":"hover","filePath":"a.go"}`:    {"a.go", "/p/a.go"},
		`{"pattern":"x","path":"sub"}`:               {"x", ""},
		`{"todos":[]}`:                               {},
		`{"filePath":5}`:                             {},
		`{"filePath":"cut of`:                        {},
		`["a"]`:                                      {},
	} {
		if got := inputHint(agent.ToolData{Tool: "x", Input: json.RawMessage(input)}, "/p"); got != want {
			t.Errorf("%s: %+v, want %+v", input, got, want)
		}
	}
	own := agent.ToolData{Title: "a.go", Locations: []tools.Location{{Path: "/p/a.go"}}, Input: json.RawMessage(`{"filePath":"b"}`)}
	if got := inputHint(own, "/p"); got != (hint{}) {
		t.Errorf("the tool's own words count: %+v", got)
	}
}
