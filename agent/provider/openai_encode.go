package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// encodeChatSystem makes one system message of all blocks, because many chat templates allow only one. role is that of Quirks.SystemRole;
// "" is "system".
func encodeChatSystem(system []string, role string) []byte {
	text := joinSystem(system)
	if text == "" {
		return []byte{}
	}
	if role == "" {
		role = "system"
	}
	b := appendStringField([]byte{'{'}, "role", role)
	return append(appendStringField(b, "content", text), '}')
}

// joinSystem is the system prompt as one text, without empty blocks. It clones the slice, which DeleteFunc would change.
func joinSystem(system []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(system), func(s string) bool { return strings.TrimSpace(s) == "" }), "\n\n")
}

// encodeChatTools encodes the functions, without the brackets.
func encodeChatTools(kind Kind, tools []ToolSpec) []byte {
	b := []byte{}
	for _, t := range tools {
		b = append(appendComma(b), `{"type":"function","function":{`...)
		b = appendStringField(b, "name", t.Name)
		b = appendStringField(b, "description", t.Description)
		b = append(appendField(b, "parameters"), TransformSchema(kind, t.Parameters)...)
		b = append(b, '}', '}')
	}
	return b
}

// chatEncoder encodes messages for one model. A message of RoleTool becomes one message for each result, as the format requires.
type chatEncoder struct {
	// short asks for call ids of nine letters and digits, reasoning for thoughts to be sent back; see shortIDs and returnsReasoning.
	model     Model
	short     bool
	reasoning bool
}

// id is a call's id in a form that the server takes. It depends on the id alone, so that a call and its result agree.
func (c chatEncoder) id(id string) string {
	if c.short && (len(id) != 9 || strings.ContainsAny(id, "_-")) {
		return hashID(id, 9)
	}
	return callID(id, 40) // OpenAI's limit
}

// message encodes one message of Pillion, which may become several of the format's. A message of which nothing can be sent gets no encoding,
// and body leaves it out.
func (c chatEncoder) message(m *Message, e *entry) {
	switch m.Role {
	case RoleAssistant:
		e.enc = c.assistant(m)
	case RoleTool:
		var b []byte
		var files []File
		for _, p := range m.Parts {
			if p.Type != PartToolResult {
				continue
			}
			text := p.Text
			for _, f := range p.Files {
				if sendable(c.model, f) {
					files = append(files, f)
					continue
				}
				text += "\n" + fileText(c.model, f)
			}
			b = append(appendComma(b), `{"role":"tool"`...)
			b = appendStringField(b, "tool_call_id", c.id(p.CallID))
			b = append(appendStringField(b, "content", text), '}')
		}
		// The format's tool messages have only text. The files come in a user message behind all results, because results must directly
		// follow their calls.
		if len(files) > 0 {
			parts := []Part{{Type: PartText, Text: "The tool's result contains:"}}
			for _, f := range files {
				parts = append(parts, Part{Type: PartFile, Files: []File{f}})
			}
			b = append(appendComma(b), c.user(parts)...)
		}
		e.enc = b
	default:
		e.enc = c.user(m.Parts)
	}
}

// user encodes a message of the user. Text alone is a plain string, because many servers take nothing else.
func (c chatEncoder) user(parts []Part) []byte {
	var text []string
	var files []File
	for _, p := range parts {
		switch p.Type {
		case PartText:
			if p.Text != "" {
				text = append(text, p.Text)
			}
		case PartFile:
			for _, f := range p.Files {
				if sendable(c.model, f) {
					files = append(files, f)
				} else {
					text = append(text, fileText(c.model, f))
				}
			}
		}
	}
	// The texts become one, because a list of several would not be a plain string.
	joined := strings.Join(text, "\n\n")
	b := []byte(`{"role":"user"`)
	if len(files) == 0 {
		if joined == "" {
			return nil
		}
		return append(appendStringField(b, "content", joined), '}')
	}
	b = append(appendField(b, "content"), '[')
	if joined != "" {
		b = append(appendStringField(append(b, `{"type":"text"`...), "text", joined), '}')
	}
	for _, f := range files {
		if isPDF(f.Mime) {
			name := f.Name
			if name == "" {
				// The API requires a name, and pasted files have none.
				name = "document.pdf"
			}
			b = append(appendComma(b), `{"type":"file","file":{`...)
			b = appendStringField(b, "filename", name)
			b = append(appendDataURL(appendField(b, "file_data"), f), '}', '}')
			continue
		}
		b = append(appendComma(b), `{"type":"image_url","image_url":{"url":`...)
		b = append(appendDataURL(b, f), '}', '}')
	}
	return append(b, ']', '}')
}

// assistant encodes an answer. Reasoning is sent back only to the provider that made it, and only where that wants it. It returns nil for
// an answer with neither text nor calls, which servers refuse.
func (c chatEncoder) assistant(m *Message) []byte {
	var texts []string // joined below, which costs nothing for the usual one
	var reasoning strings.Builder
	// The last part with details counts, because end emits the whole array at once.
	var details string
	calls := 0
	for _, p := range m.Parts {
		switch p.Type {
		case PartText:
			texts = append(texts, p.Text)
		case PartThinking:
			reasoning.WriteString(p.Text)
			if d, ok := strings.CutPrefix(p.Signature, reasoningDetails); ok && sameProvider(*m, c.model) && json.Valid([]byte(d)) {
				details = d
			}
		case PartToolCall:
			calls++
		}
	}
	text := strings.Join(texts, "")
	// This is an answer that broke off while the model was thinking, for example.
	if text == "" && calls == 0 {
		return nil
	}
	b := []byte(`{"role":"assistant"`)
	if text != "" {
		b = appendStringField(b, "content", text)
	} else {
		// Servers refuse a message without content; with calls null means "none".
		b = append(b, `,"content":null`...)
	}
	if details != "" {
		b = append(appendField(b, "reasoning_details"), details...)
	} else if c.reasoning && calls > 0 && sameProvider(*m, c.model) {
		b = appendStringField(b, "reasoning_content", reasoning.String())
	}
	if calls > 0 {
		// Into the message itself: the arguments of a call may be a whole file.
		b = append(appendField(b, "tool_calls"), '[')
		for _, p := range m.Parts {
			if p.Type == PartToolCall {
				b = append(appendComma(b), `{"type":"function"`...)
				b = appendStringField(b, "id", c.id(p.CallID))
				b = append(appendStringField(append(appendField(b, "function"), '{'), "name", p.Name), `,"arguments":`...)
				// In this format the arguments are a JSON string that contains the object.
				b = append(textutil.AppendJSON(b, objectInput(p.Input)), '}', '}')
			}
		}
		b = append(b, ']')
	}
	return append(b, '}')
}
