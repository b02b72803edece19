package custom

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Message is a prompt of the person, before the session stores it.
type Message struct {
	ID, SessionID, Agent, Provider, Model string
	Parts                                 []MessagePart
}

// MessagePart is a part of a message in OpenCode's shape. Files are passed to plugins without their bytes; a file that a plugin adds has
// them in a data: URL.
type MessagePart struct {
	ID        string `json:"id"`
	SessionID string `json:"sessionID"`
	MessageID string `json:"messageID"`
	Type      string `json:"type"` // text or file
	Text      string `json:"text,omitempty"`
	Synthetic bool   `json:"synthetic,omitempty"`
	Ignored   bool   `json:"ignored,omitempty"` // shown to people, not sent to the model
	Mime      string `json:"mime,omitempty"`
	Filename  string `json:"filename,omitempty"`
	URL       string `json:"url,omitempty"`
}

// ChatMessage lets plugins change the parts of a message and returns them. If a plugin fails, or leaves parts that cannot be read, the
// parts are returned unchanged. Anything else that plugins leave is used, even an empty list.
func (h *Host) ChatMessage(ctx context.Context, m Message) []MessagePart {
	type output struct {
		Message map[string]any  `json:"message"`
		Parts   json.RawMessage `json:"parts"`
	}
	parts, err := json.Marshal(m.Parts)
	if err != nil {
		return m.Parts
	}
	model := map[string]string{"providerID": m.Provider, "modelID": m.Model}
	out, err := hook(ctx, h, hookMessage, map[string]any{"sessionID": m.SessionID, "messageID": m.ID, "agent": m.Agent, "model": model},
		output{map[string]any{"id": m.ID, "sessionID": m.SessionID, "role": "user", "agent": m.Agent, "model": model, "time": map[string]int64{"created": time.Now().UnixMilli()}}, parts})
	if err != nil {
		h.notice("warning", err.Error())
		return m.Parts
	}
	var changed []MessagePart
	if err := json.Unmarshal(out.Parts, &changed); err != nil {
		h.notice("warning", fmt.Sprintf("A plugin returned parts of a message that cannot be read (%s): %v", hookMessage, err))
		return m.Parts
	}
	return changed
}

// CommandBefore lets plugins change the parts of a slash command's prompt before it is sent; arguments is what the person typed behind the
// command's name. The error is a *HookError: a plugin that throws stops the command, as in OpenCode.
func (h *Host) CommandBefore(ctx context.Context, session, command, arguments string, parts []MessagePart) ([]MessagePart, error) {
	type output struct {
		Parts []MessagePart `json:"parts"`
	}
	out, err := hook(ctx, h, hookCommand, map[string]string{"command": command, "sessionID": session, "arguments": arguments}, output{parts})
	return out.Parts, err
}
