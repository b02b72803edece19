package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// TestRegroupRemembers: whatever became of a conversation since the last request, what is remembered gives the same as a look at all of it,
// and changes neither the history nor what an earlier request still reads.
func TestRegroupRemembers(t *testing.T) {
	type none struct{}
	group := &tools.Group{ID: "thing", Description: "Works on things."}
	newTool := func(id string, o ...tools.ToolOption) tools.Tool {
		return tools.New(id, "Does it.", func(context.Context, none, *tools.Call) (tools.Result, error) { return tools.Result{}, nil }, o...)
	}
	grouped := []tools.Tool{newTool("read"), newTool("thing_get", tools.WithGroup(group)), newTool("thing_put", tools.WithGroup(group))}
	lists := [][]tools.Tool{grouped, grouped[:2], append([]tools.Tool{newTool("thing")}, grouped...), nil}
	names := []string{"read", "read", "thing_get", "thing_put"}

	r := rand.New(rand.NewPCG(26, 4))
	n := 0
	message := func() provider.Message {
		n++
		m := provider.Message{ID: fmt.Sprint("msg_", n), Role: provider.RoleAssistant}
		for range r.IntN(4) {
			name := names[r.IntN(len(names))]
			m.Parts = append(m.Parts, provider.Part{Type: provider.PartText, Text: "words"},
				provider.Part{Type: provider.PartToolCall, CallID: "c", Name: name, Input: json.RawMessage(`{"a":1}`)},
				provider.Part{Type: provider.PartToolResult, CallID: "c", Name: name, Text: "done"})
		}
		return m
	}
	copyOf := func(all []provider.Message) []provider.Message {
		out := slices.Clone(all)
		for i := range out {
			out[i].Parts = slices.Clone(out[i].Parts)
		}
		return out
	}
	type request struct{ sent, then []provider.Message }
	var remembering toolset
	var history []provider.Message
	var before []request
	offered := lists[0]
	for range 500 {
		switch k := r.IntN(20); {
		case k == 0 && len(history) > 0: // a compaction
			history = append([]provider.Message{message()}, history[r.IntN(len(history)):]...)
		case k == 1 && len(history) > 0: // outputs are pruned: the message is the same with other parts
			history = slices.Clone(history)
			i := r.IntN(len(history))
			history[i].Parts = slices.Clone(history[i].Parts)
			for k := range history[i].Parts {
				history[i].Parts[k].Text = "pruned"
			}
		case k == 2:
			history = slices.Clone(history[:r.IntN(len(history)+1)]) // a restore
		case k == 3:
			offered = lists[r.IntN(len(lists))]
		default:
			history = append(history, message())
		}
		was := copyOf(history)
		got := remembering.regroup(offered, history)
		var forgetful toolset
		if want := forgetful.regroup(offered, history); !slices.EqualFunc(got, want, func(a, b provider.Message) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("of\n%v\ncame\n%v\nnot\n%v", history, got, want)
		}
		if !reflect.DeepEqual(was, copyOf(history)) {
			t.Fatal("the history was changed")
		}
		// A request adds words of its own behind the conversation.
		_ = append(got, message())
		again := remembering.regroup(offered, history)
		for i := range got {
			if !isSameMessage(&got[i], &again[i]) {
				t.Fatalf("message %d was renamed again, so it would be encoded again", i)
			}
		}
		if before = append(before, request{got, copyOf(got)}); len(before) > 5 {
			before = before[1:]
		}
		for _, b := range before {
			if !reflect.DeepEqual(copyOf(b.sent), b.then) {
				t.Fatal("an earlier request was changed")
			}
		}
	}
}
