package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
)

// PluginMessage is a message in the shape of OpenCode's API, for plugins that read a session.
type PluginMessage struct {
	Info  map[string]any   `json:"info"`
	Parts []map[string]any `json:"parts"`
}

// PluginMessages returns a session's messages in OpenCode's shape, oldest first, without those that a restore removed from the
// conversation.
func (r *Runtime) PluginMessages(ctx context.Context, id string) ([]PluginMessage, error) {
	t := pluginMessages{session: id, all: []PluginMessage{}, at: map[string]int{}, calls: map[string][2]int{}, long: map[string]ToolData{}}
	hidden, err := hiddenOf(func(yield func(Event) error) error { return r.Stored(ctx, id, 0, yield) })
	if err != nil {
		return nil, err
	}
	err = r.Stored(ctx, id, 0, func(e Event) error {
		if !hidden.Has(e) {
			t.addEvent(e)
		}
		return nil
	})
	return t.all, err
}

// pluginMessages builds messages from a session's events, in one pass.
type pluginMessages struct {
	session string
	all     []PluginMessage
	began   []int64             // when each message began, by its index in all; milliseconds since 1970
	at      map[string]int      // message id → index in all
	calls   map[string][2]int   // call id → indexes of its message and of its part in that
	long    map[string]ToolData // call id → its input, where that is long and only its first event has it
}

// addEvent adds an event to its message. Types that OpenCode's messages do not have are ignored.
func (t *pluginMessages) addEvent(e Event) {
	switch e.Type {
	case EventPrompt, EventSteer:
		d := decode[PromptData](e)
		m := t.add(d.MessageID, e, map[string]any{"role": "user", "agent": d.Agent, "model": pluginModel(d.Model)})
		for _, p := range d.Parts {
			switch {
			case p.Type == provider.PartText:
				t.put(m, map[string]any{"type": "text", "text": p.Text, "synthetic": p.Synthetic})
			case len(p.Files) > 0:
				t.put(m, map[string]any{"type": "file", "mime": p.Files[0].Mime, "filename": p.Files[0].Name})
			}
		}
	case EventMessage:
		d := decode[MessageData](e)
		model := pluginModel(d.Model)
		t.add(d.MessageID, e, map[string]any{"role": "assistant", "providerID": model["providerID"], "modelID": model["modelID"]})
	// Streamed text makes up the parts; EventStep adds only the cost and the time.
	case EventText:
		t.appendText("text", decode[TextData](e))
	case EventThinking:
		t.appendText("reasoning", decode[TextData](e))
	case EventTool:
		t.call(decode[ToolData](e))
	case EventStep:
		d := decode[StepData](e)
		if m, ok := t.at[d.Message.ID]; ok {
			info := t.all[m].Info
			info["cost"] = d.Cost
			info["tokens"] = map[string]any{"input": d.Usage.Input, "output": d.Usage.Output, "reasoning": d.Usage.Reasoning, "cache": map[string]int{"read": d.Usage.CacheRead, "write": d.Usage.CacheWrite}}
			info["time"] = map[string]any{"created": t.began[m], "completed": e.Time.UnixMilli()}
		}
	}
}

// appendText appends to the last part of a message when that part is of the same kind, so that the pieces of one answer form one part.
func (t *pluginMessages) appendText(kind string, d TextData) {
	m, ok := t.at[d.MessageID]
	if !ok {
		return
	}
	parts := t.all[m].Parts
	// A call or thinking in between ends the part, which keeps the order of the message.
	if n := len(parts); n > 0 && parts[n-1]["type"] == kind {
		parts[n-1]["text"] = parts[n-1]["text"].(string) + d.Text
		return
	}
	t.put(m, map[string]any{"type": kind, "text": d.Text})
}

// call sets a call's part to its newest state.
func (t *pluginMessages) call(d ToolData) {
	if d = d.After(t.long[d.CallID]); len(d.Input) >= longText {
		t.long[d.CallID] = ToolData{Input: d.Input}
	}
	if at, ok := t.calls[d.CallID]; ok {
		t.all[at[0]].Parts[at[1]] = ToolPart(t.session, d)
	} else if m, ok := t.at[d.MessageID]; ok {
		t.calls[d.CallID] = [2]int{m, len(t.all[m].Parts)}
		t.all[m].Parts = append(t.all[m].Parts, ToolPart(t.session, d))
	}
}

// pluginModel splits "provider/model"; the model's name may itself contain slashes.
func pluginModel(id string) map[string]string {
	provider, model, _ := strings.Cut(id, "/")
	return map[string]string{"providerID": provider, "modelID": model}
}

// add begins a message and returns its index in all.
func (t *pluginMessages) add(id string, e Event, info map[string]any) int {
	m := len(t.all)
	info["id"], info["sessionID"], info["time"] = id, t.session, map[string]any{"created": e.Time.UnixMilli()}
	t.at[id] = m
	t.began = append(t.began, e.Time.UnixMilli())
	t.all = append(t.all, PluginMessage{Info: info, Parts: []map[string]any{}})
	return m
}

// put appends a part. The part gets the same id each time the session is read, because plugins compare ids.
func (t *pluginMessages) put(m int, part map[string]any) {
	message := t.all[m].Info["id"]
	part["id"], part["sessionID"], part["messageID"] = fmt.Sprintf("prt_%v_%d", message, len(t.all[m].Parts)), t.session, message
	t.all[m].Parts = append(t.all[m].Parts, part)
}
