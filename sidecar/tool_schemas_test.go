package main

import (
	"encoding/json"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// maxSchemas is what the tools of a request may take, in bytes of JSON; about four are a token. Every step of every turn sends them,
// and they took 25,300 bytes when they were first measured.
const maxSchemas = 13_700

func TestToolSchemasStaySmall(t *testing.T) {
	h := newHooked(t, false, `{}`, wiretest.Step{Text: "Done."})
	h.ask(t, "go")
	var sent struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(h.srv.Requests()[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	all, _ := json.Marshal(sent.Tools)
	t.Logf("%d tools, %d bytes", len(sent.Tools), len(all))
	if len(all) > maxSchemas || len(sent.Tools) < 20 {
		t.Errorf("%d tools take %d bytes; %d were expected at most", len(sent.Tools), len(all), maxSchemas)
	}
}
