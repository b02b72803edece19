package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/custom"
	"github.com/pillion-dev/pillion/tools/paths"
)

// transform lets plugins change the conversation of a request (hook experimental.chat.messages.transform). In OpenCode's shape a tool call
// and its result are one part, while here results follow in a message of their own. So removing that part removes both, and no call is left
// without its result. Messages that come back unchanged are the same values as before, so that adapters reuse their encoding and prompt
// caches stay valid.
func (h *customHost) transform(ctx context.Context, s agent.SessionInfo, messages []provider.Message) []provider.Message {
	if !h.Has(ctx, "experimental.chat.messages.transform") {
		return messages
	}
	t := newTransformed(s, messages)
	changed, ok := h.Transform(ctx, t.shown)
	if !ok {
		return messages
	}
	return t.rebuild(changed)
}

// transformed is a conversation in both shapes. turns[i] are the messages that shown[i] represents: one of the user, or one of the model
// with the results of its calls.
type transformed struct {
	shown   []custom.TransformedMessage
	plain   []any // shown as JSON values, for a comparison
	turns   [][]provider.Message
	byID    map[string]int // message id → index in shown and turns
	session string
}

// newTransformed converts a conversation to OpenCode's shape. Files are shown without their bytes, as in chat.message.
func newTransformed(s agent.SessionInfo, messages []provider.Message) *transformed {
	t := &transformed{byID: map[string]int{}, session: s.ID}
	asked := "" // id of the user's message that the next answer belongs to
	results := map[string]provider.Part{}
	for _, m := range messages {
		if m.Role == provider.RoleTool {
			for _, p := range m.Parts {
				results[p.CallID] = p
			}
		}
	}
	for i, m := range messages {
		if n := len(t.turns); m.Role == provider.RoleTool && n > 0 {
			t.turns[n-1] = append(t.turns[n-1], m)
			continue
		}
		id := m.ID
		if _, twice := t.byID[id]; id == "" || twice {
			id = fmt.Sprintf("msg_%d", i)
		}
		t.byID[id] = len(t.turns)
		shown := custom.TransformedMessage{Info: shownInfo(s, m, id, asked, i), Parts: []map[string]any{}}
		if m.Role == provider.RoleUser {
			asked = id
		}
		for j, p := range m.Parts {
			part := map[string]any{"id": fmt.Sprintf("prt_%s_%d", id, j), "sessionID": s.ID, "messageID": id}
			switch p.Type {
			case provider.PartText:
				part["type"], part["text"] = "text", p.Text
				if p.Synthetic {
					part["synthetic"] = true
				}
			case provider.PartThinking:
				part["type"], part["text"] = "reasoning", p.Text
			case provider.PartToolCall:
				state := map[string]any{"status": "completed", "title": "", "metadata": map[string]any{}, "time": map[string]any{"start": 0, "end": 0}}
				var input any
				_ = json.Unmarshal(p.Input, &input)
				state["input"] = input
				switch r, done := results[p.CallID]; {
				case !done:
					state["status"] = "pending"
				case r.IsError:
					state["status"], state["error"] = "error", r.Text
				default:
					state["output"] = r.Text
				}
				part["type"], part["callID"], part["tool"], part["state"] = "tool", p.CallID, p.Name, state
			default:
				part["type"] = "file"
				if len(p.Files) > 0 {
					part["mime"], part["filename"] = p.Files[0].Mime, p.Files[0].Name
				}
			}
			shown.Parts = append(shown.Parts, part)
		}
		t.shown, t.turns = append(t.shown, shown), append(t.turns, []provider.Message{m})
		t.plain = append(t.plain, asJSON(shown))
	}
	return t
}

// shownInfo returns what plugins read of a message besides its parts. Usage is known only for the whole session, so its figures are 0; the
// times only express the order of the messages.
func shownInfo(s agent.SessionInfo, m provider.Message, id, asked string, place int) map[string]any {
	vendor, model, _ := strings.Cut(cmp.Or(m.Model, s.Model), "/")
	at := s.Created.UnixMilli() + int64(place)
	info := map[string]any{"id": id, "sessionID": s.ID, "role": string(m.Role), "agent": s.Agent, "time": map[string]any{"created": at}}
	if m.Role == provider.RoleUser {
		info["model"] = map[string]any{"providerID": vendor, "modelID": model}
		return info
	}
	info["parentID"], info["providerID"], info["modelID"], info["mode"] = asked, vendor, model, s.Agent
	info["time"] = map[string]any{"created": at, "completed": at}
	info["path"] = map[string]any{"cwd": s.Cwd, "root": paths.Worktree(s.Cwd)}
	info["cost"], info["tokens"] = 0, map[string]any{"input": 0, "output": 0, "reasoning": 0, "cache": map[string]any{"read": 0, "write": 0}}
	return info
}

// asJSON returns a value as JSON decodes it, the form in which it is compared with what comes back from a plugin.
func asJSON(v any) (out any) {
	text, err := json.Marshal(v)
	if err == nil {
		_ = json.Unmarshal(text, &out)
	}
	return out
}

// rebuild makes a conversation from what plugins returned. Parts are identified by their ids. Texts that a plugin has added become text
// parts; anything else that it has added is left out, because no provider could be sent it.
func (t *transformed) rebuild(changed []custom.TransformedMessage) (out []provider.Message) {
	for n, m := range changed {
		id, _ := m.Info["id"].(string)
		at, known := t.byID[id]
		if known && reflect.DeepEqual(asJSON(m), t.plain[at]) {
			out = append(out, t.turns[at]...)
			continue
		}
		role := provider.RoleUser
		if r, _ := m.Info["role"].(string); r == string(provider.RoleAssistant) {
			role = provider.RoleAssistant
		}
		made := provider.Message{ID: fmt.Sprintf("%s_%d", id, n), Role: role}
		var was []provider.Part
		results := map[string]provider.Part{}
		if known {
			made = t.turns[at][0]
			was, made.Parts = made.Parts, nil
			for _, answer := range t.turns[at][1:] {
				for _, p := range answer.Parts {
					results[p.CallID] = p
				}
			}
		}
		var answers []provider.Part
		for _, part := range m.Parts {
			p, old := t.part(part, id, was)
			text, _ := part["text"].(string)
			switch {
			case !old:
				if part["type"] == "text" && text != "" {
					made.Parts = append(made.Parts, provider.Part{Type: provider.PartText, Text: text, Synthetic: true})
				}
			case p.Type == provider.PartToolCall:
				made.Parts = append(made.Parts, p)
				if r, done := results[p.CallID]; done {
					answers = append(answers, withOutput(r, part))
				}
			case p.Type == provider.PartText:
				if p.Text = text; text != "" { // providers refuse an empty text
					made.Parts = append(made.Parts, p)
				}
			// A signature covers the text of its thinking, so thinking is either unchanged or removed.
			default:
				made.Parts = append(made.Parts, p)
			}
		}
		if len(made.Parts) == 0 {
			continue
		}
		out = append(out, made)
		if len(answers) > 0 {
			answer := t.turns[at][1]
			answer.Parts = answers
			out = append(out, answer)
		}
	}
	return out
}

// part returns the original of a plugin's part; the id names its index in the message.
func (t *transformed) part(shown map[string]any, message string, was []provider.Part) (provider.Part, bool) {
	id, _ := shown["id"].(string)
	for i, p := range was {
		if id == fmt.Sprintf("prt_%s_%d", message, i) {
			return p, true
		}
	}
	return provider.Part{}, false
}

// withOutput returns a result with the text that plugins returned for it.
func withOutput(r provider.Part, shown map[string]any) provider.Part {
	state, _ := shown["state"].(map[string]any)
	for _, key := range []string{"output", "error"} {
		if text, ok := state[key].(string); ok && r.IsError == (key == "error") {
			r.Text = text
		}
	}
	return r
}
