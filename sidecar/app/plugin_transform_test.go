package app

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/custom"
)

// sampleConversation is one with everything in it: a file, a thought, two calls of which one failed, and an answer.
func sampleConversation() []provider.Message {
	return []provider.Message{
		{ID: "u1", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "Look."}, {Type: provider.PartFile, Files: []provider.File{{Mime: "image/png", Name: "a.png", Data: []byte("x")}}}}},
		{ID: "a1", Role: provider.RoleAssistant, Parts: []provider.Part{{Type: provider.PartThinking, Text: "hm", Signature: "s"}, {Type: provider.PartText, Text: "I read."},
			{Type: provider.PartToolCall, CallID: "c1", Name: "read", Input: json.RawMessage(`{"filePath":"a"}`)}, {Type: provider.PartToolCall, CallID: "c2", Name: "bash", Input: json.RawMessage(`{}`)}}},
		{ID: "t1", Role: provider.RoleTool, Parts: []provider.Part{{Type: provider.PartToolResult, CallID: "c1", Text: "long output"}, {Type: provider.PartToolResult, CallID: "c2", Text: "no", IsError: true}}},
		{ID: "a2", Role: provider.RoleAssistant, Parts: []provider.Part{{Type: provider.PartText, Text: "Done."}}},
	}
}

// throughJSON is what a plugin gets and gives back: every value has passed through JSON.
func throughJSON(t *testing.T, in []custom.TransformedMessage) (out []custom.TransformedMessage) {
	t.Helper()
	text, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestATransformedConversation(t *testing.T) {
	find := func(m custom.TransformedMessage, call string) int {
		return slices.IndexFunc(m.Parts, func(p map[string]any) bool { return p["callID"] == call })
	}
	for name, c := range map[string]struct {
		change func(m []custom.TransformedMessage) []custom.TransformedMessage
		want   func(m []provider.Message) []provider.Message
	}{
		"nothing": {
			func(m []custom.TransformedMessage) []custom.TransformedMessage { return m },
			func(m []provider.Message) []provider.Message { return m },
		},
		"an output is pruned": {
			func(m []custom.TransformedMessage) []custom.TransformedMessage {
				m[1].Parts[find(m[1], "c1")]["state"].(map[string]any)["output"] = "[pruned]"
				return m
			},
			func(m []provider.Message) []provider.Message { m[2].Parts[0].Text = "[pruned]"; return m },
		},
		"an error is shortened": {
			func(m []custom.TransformedMessage) []custom.TransformedMessage {
				m[1].Parts[find(m[1], "c2")]["state"].(map[string]any)["error"] = "n"
				return m
			},
			func(m []provider.Message) []provider.Message { m[2].Parts[1].Text = "n"; return m },
		},
		"a call goes with its result": {
			func(m []custom.TransformedMessage) []custom.TransformedMessage {
				i := find(m[1], "c1")
				m[1].Parts = slices.Delete(m[1].Parts, i, i+1)
				return m
			},
			func(m []provider.Message) []provider.Message {
				m[1].Parts, m[2].Parts = slices.Delete(m[1].Parts, 2, 3), m[2].Parts[1:]
				return m
			},
		},
		"a message goes with its results": {
			func(m []custom.TransformedMessage) []custom.TransformedMessage { return slices.Delete(m, 1, 2) },
			func(m []provider.Message) []provider.Message { return []provider.Message{m[0], m[3]} },
		},
		"a text is changed, emptied and added": {
			func(m []custom.TransformedMessage) []custom.TransformedMessage {
				m[0].Parts[0]["text"] = "Look!"
				m[1].Parts[1]["text"] = ""
				m[2].Parts = append(m[2].Parts, map[string]any{"type": "text", "text": "More."})
				return m
			},
			func(m []provider.Message) []provider.Message {
				m[0].Parts[0].Text = "Look!"
				m[1].Parts = slices.Delete(m[1].Parts, 1, 2)
				m[3].Parts = append(m[3].Parts, provider.Part{Type: provider.PartText, Text: "More.", Synthetic: true})
				return m
			},
		},
		"a message is added": {
			func(m []custom.TransformedMessage) []custom.TransformedMessage {
				return append(m, custom.TransformedMessage{Info: map[string]any{"id": "new", "role": "user"}, Parts: []map[string]any{{"type": "text", "text": "Remember."}}})
			},
			func(m []provider.Message) []provider.Message {
				return append(m, provider.Message{ID: "new_3", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "Remember.", Synthetic: true}}})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := sampleConversation()
			tr := newTransformed(agent.SessionInfo{ID: "s"}, before)
			got := tr.rebuild(c.change(throughJSON(t, tr.shown)))
			if want := c.want(sampleConversation()); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			// The session's history is what is stored: a plugin changes requests only.
			if !reflect.DeepEqual(before, sampleConversation()) {
				t.Errorf("the history was changed: %+v", before)
			}
			if name == "nothing" && &got[1].Parts[0] != &before[1].Parts[0] {
				t.Error("an unchanged message was copied: adapters encode it again")
			}
		})
	}
}
