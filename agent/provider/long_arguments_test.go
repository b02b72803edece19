package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Arguments of megabytes are said once, in the pieces; a server that sends everything once more at the end adds nothing.
func TestLongArgumentsAreSaidOnce(t *testing.T) {
	args := `{"content":"` + strings.Repeat("0123456789abcdef", longArguments/10) + `"}`
	for name, again := range map[string][]string{"once": nil, "again at the end": {args}, "another call": {`{"x":1}`}} {
		var said strings.Builder
		var ends []Event
		a := &chatAnswer{out: emitter{emit: func(e Event) error {
			switch {
			case e.Type == EventToolDelta && e.Index == 0:
				said.WriteString(e.Text)
			case e.Type == EventToolEnd:
				ends = append(ends, e)
			}
			return nil
		}}}
		send := func(piece, id string) {
			t.Helper()
			q, _ := json.Marshal(piece)
			call := fmt.Sprintf(`{"index":0,"id":%q,"function":{"arguments":%s}}`, id, q)
			if id != "" {
				call = fmt.Sprintf(`{"index":0,"id":%q,"function":{"name":"write","arguments":%s}}`, id, q)
			}
			if _, err := a.event([]byte(`{"choices":[{"index":0,"delta":{"tool_calls":[` + call + `]}}]}`)); err != nil {
				t.Fatal(err)
			}
		}
		for i := 0; i < len(args); i += 100_000 {
			id := ""
			if i == 0 {
				id = "c"
			}
			send(args[i:min(i+100_000, len(args))], id)
		}
		for _, piece := range again {
			id := ""
			if name == "another call" {
				id = "d"
			}
			send(piece, id)
		}
		a.finish = "tool_calls"
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		want := 1
		if name == "another call" {
			want = 2
		}
		if said.String() != args || len(ends) != want || ends[0].Text != "" {
			t.Errorf("%s: %d of %d bytes, %d ends, the first with %d bytes", name, said.Len(), len(args), len(ends), len(ends[0].Text))
		}
		if want == 2 && ends[1].Text != `{"x":1}` {
			t.Errorf("the other call: %.100q", ends[1].Text)
		}
	}
}

// A message that is kept encoded for the next step has its limit; beyond it the next step encodes it again, and sends the same.
func TestAVeryLongMessageIsNotKeptEncoded(t *testing.T) {
	p := &chatProvider{base: base{cfg: Config{Kind: KindCompatible}}}
	req := &Request{SessionID: "s", Model: Model{Provider: "p", ID: "m"}, Messages: []Message{
		{ID: "1", Role: RoleUser, Parts: []Part{{Type: PartText, Text: strings.Repeat("long ", maxEntry/4)}}},
		{ID: "2", Role: RoleUser, Parts: []Part{{Type: PartText, Text: "short"}}},
	}}
	join := func() string {
		body, _ := p.body(req, nil)
		var b strings.Builder
		for _, part := range body {
			b.Write(part)
		}
		return b.String()
	}
	first := join()
	conv := p.cache.acquire("s", req.Model.String())
	kept := 0
	for _, e := range conv.entries {
		kept += len(e.enc)
	}
	p.cache.release(conv)
	if kept > 1000 || kept == 0 {
		t.Errorf("%d bytes are kept", kept)
	}
	if again := join(); again != first || !json.Valid([]byte(first)) {
		t.Error("another request the second time")
	}
}
