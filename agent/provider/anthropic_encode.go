package provider

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// cacheMark ends a prefix that the API caches for five minutes, which begin again at each use. A request may have four marks: two are in
// the system prompt, two in the messages.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// encodeAnthropicSystem marks the first and the last block as ends of cached prefixes. The first is the most stable one and the same in
// all sessions; the last adds what belongs to this session. In the API's prefix the tools come before the system prompt, so the marks
// cover them too.
func encodeAnthropicSystem(system []string, caching bool) []byte {
	var b []byte
	var blocks []string
	// The API refuses an empty text block.
	for _, s := range system {
		if strings.TrimSpace(s) != "" {
			blocks = append(blocks, s)
		}
	}
	for i, s := range blocks {
		b = append(appendComma(b), `{"type":"text","text":`...)
		b = textutil.AppendJSON(b, s)
		if caching && (i == 0 || i == len(blocks)-1) {
			b = append(b, cacheMark...)
		}
		b = append(b, '}')
	}
	return b
}

// encodeAnthropicTools encodes the tools, without the brackets.
func encodeAnthropicTools(tools []ToolSpec) []byte {
	var b []byte
	for _, t := range tools {
		b = append(appendComma(b), '{')
		b = appendStringField(b, "name", t.Name)
		b = appendStringField(b, "description", t.Description)
		// Schemas are transformed for each format and not at registration: every format refuses other keywords.
		b = append(appendField(b, "input_schema"), TransformSchema(KindAnthropic, t.Parameters)...)
		b = append(b, '}')
	}
	return b
}

// encodeAnthropic encodes the blocks of a message without the brackets, so that neighbours of one role can be joined. It notes in e what
// thinkingMayStart asks: the number of calls, and whether there is signed thinking.
func encodeAnthropic(m *Message, e *entry, model Model, keepThinking bool) {
	var b []byte
	open := func(kind string) {
		b = append(appendComma(b), `{"type":"`...)
		b = append(b, kind...)
		b = append(b, '"')
	}
	text := func(s string) {
		if strings.TrimSpace(s) != "" { // empty text is refused
			open("text")
			b = append(appendStringField(b, "text", s), '}')
		}
	}
	file := func(f File) {
		if !sendable(model, f) {
			text(fileText(model, f))
			return
		}
		if isPDF(f.Mime) {
			open("document")
		} else {
			open("image")
		}
		b = append(appendField(b, "source"), `{"type":"base64","media_type":`...)
		b = textutil.AppendJSON(b, f.Mime)
		b = append(appendBase64(appendField(b, "data"), f.Data), '}', '}')
	}
	for _, p := range m.Parts {
		switch p.Type {
		case PartText:
			text(p.Text)
		case PartFile:
			for _, f := range p.Files {
				file(f)
			}
		case PartThinking:
			// Thinking without a signature, or of another provider, is refused. A model can do without its earlier thoughts.
			if p.Signature == "" || !keepThinking || m.Role != RoleAssistant || !sameProvider(*m, model) {
				continue
			}
			e.thinking = true
			// Redacted thinking has no text, and goes back as it came.
			if data, ok := strings.CutPrefix(p.Signature, redactedThinking); ok {
				open("redacted_thinking")
				b = append(appendStringField(b, "data", data), '}')
				continue
			}
			open("thinking")
			b = appendStringField(b, "thinking", p.Text)
			b = append(appendStringField(b, "signature", p.Signature), '}')
		case PartToolCall:
			e.calls++
			open("tool_use")
			// The API takes ids of letters, digits, _ and - only.
			b = appendStringField(b, "id", callID(p.CallID, 64))
			b = appendStringField(b, "name", p.Name)
			b = append(append(appendField(b, "input"), objectInput(p.Input)...), '}')
		case PartToolResult:
			open("tool_result")
			b = appendStringField(b, "tool_use_id", callID(p.CallID, 64))
			if p.IsError {
				b = append(b, `,"is_error":true`...)
			}
			b = append(appendField(b, "content"), '[')
			text(p.Text)
			for _, f := range p.Files {
				file(f)
			}
			b = append(b, ']', '}')
		}
	}
	e.enc = b
}

// appendAnthropicMessages joins neighbours of one role and marks the ends of the last two turns of the user as ends of cached prefixes:
// the one before the last is what the previous request has cached, the last one is what the next request will read.
func appendAnthropicMessages(b []byte, entries []entry, caching bool) []byte {
	marks := map[int]bool{}
	if caching {
		// Only the last message of a run of user messages is marked: the run becomes one message, and its end is the end of the prefix.
		for i, last := len(entries)-1, ""; i >= 0 && len(marks) < 2; i-- {
			if len(entries[i].enc) == 0 {
				continue
			}
			role := anthropicRole(entries[i].role)
			if role == "user" && last != "user" {
				marks[i] = true
			}
			last = role
		}
	}
	current := ""
	// A message of which nothing could be sent has no encoding; an empty one would be refused.
	for i := range entries {
		e := &entries[i]
		if len(e.enc) == 0 {
			continue
		}
		if role := anthropicRole(e.role); role != current {
			if current != "" {
				b = append(b, ']', '}')
			}
			b = append(appendComma(b), `{"role":"`...)
			b = append(b, role...)
			b = append(b, `","content":[`...)
			current = role
		} else {
			b = append(b, ',')
		}
		if marks[i] {
			b = append(b, e.enc[:len(e.enc)-1]...) // into the last block's braces
			b = append(b, cacheMark...)
			b = append(b, '}')
		} else {
			b = append(b, e.enc...)
		}
	}
	if current != "" {
		b = append(b, ']', '}')
	}
	return b
}

// anthropicRole is the format's role: tool results travel in messages of the user.
func anthropicRole(r Role) string {
	if r == RoleAssistant {
		return "assistant"
	}
	return "user"
}
