package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// responsesProvider speaks OpenAI's Responses API. Responses are not stored there (store:false): the reasoning items come back encrypted
// and are sent again with the conversation.
type responsesProvider struct{ base }

// Stream implements Provider.
func (p *responsesProvider) Stream(ctx context.Context, req *Request, emit func(Event) error) error {
	req = resolveOptions(req, KindResponses)
	return nameRefusedOption(p.attempt(ctx, req.Model.ID, func(without []string) ([]string, error) {
		body, sent := p.body(req, without)
		return sent, p.run(ctx, req.Model.ID, func(ctx context.Context) (*http.Response, error) {
			return p.openChat(ctx, req, "responses", body)
		}, &responsesAnswer{out: emitter{emit: emit}})
	}), req)
}

// reasoningItem is the JSON in Part.Signature: what is needed to send a reasoning item again.
type reasoningItem struct {
	ID        string          `json:"id"`
	Summary   json.RawMessage `json:"summary,omitempty"`
	Encrypted string          `json:"encrypted_content"`
}

// body builds the request and names the optional parameters that it sent. store is false unless the configuration says otherwise: without
// the person's decision no code of a project stays on OpenAI's servers.
func (p *responsesProvider) body(req *Request, without []string) (body []byte, sent []string) {
	conv := p.cache.acquire(req.SessionID, req.Model.String())
	defer p.cache.release(conv)
	entries := conv.encode(req.Messages, func(_ int, m *Message, e *entry) { encodeResponses(m, e, req.Model) })
	system := conv.encodeSystem(req.System, func() []byte { return textutil.AppendJSON(nil, strings.Join(req.System, "\n\n")) })
	tools := conv.encodeTools(req.Tools, func() []byte { return encodeResponsesTools(req.Tools) })

	// Room for the settings (1024 bytes) and a comma for each message: the body is built in one allocation.
	size := len(system) + len(tools) + 1024
	for i := range entries {
		size += len(entries[i].enc) + 1
	}
	b := append(make([]byte, 0, size), '{')
	b = appendStringField(b, "model", req.Model.ID)
	b = append(b, `,"stream":true`...)
	x := req.rest.clone()
	if v := x.take("store"); v != nil {
		b = append(appendField(b, "store"), v...)
	} else {
		b = append(b, `,"store":false`...)
	}
	// optional writes the configured value of a parameter and returns false, or begins the field and returns true: then the caller writes
	// our value.
	optional := func(name string, add bool) bool {
		if v := x.take(name); v != nil {
			b = append(appendField(b, name), v...)
			return false
		}
		if !add || slices.Contains(without, name) {
			return false
		}
		sent = append(sent, name)
		b = appendField(b, name)
		return true
	}
	if req.MaxOutput > 0 && optional("max_output_tokens", true) {
		b = appendIntValue(b, req.MaxOutput)
	}
	if req.Temperature != nil && optional("temperature", true) {
		b = appendFloatValue(b, *req.Temperature)
	}
	if req.TopP != nil && optional("top_p", true) {
		b = appendFloatValue(b, *req.TopP)
	}
	// This API has verbosity inside "text". A "text" that the configuration writes itself wins, and goes out with the other extras.
	if v := x.take("verbosity"); v != nil && x.values["text"] == nil && optional("text", true) {
		b = append(append(append(b, `{"verbosity":`...), v...), '}')
	}
	// It is taken in any case: sent as an extra it would be an unknown parameter.
	words := x.take("reasoningSummary")
	// Models that do not reason refuse both include and reasoning.
	if thinks := req.Model.Thinking || req.Effort != ""; thinks {
		include := responsesInclude(x.take("include"))
		if optional("include", true) {
			b = append(b, include...)
		}
		// Summaries need a verified organisation; when the refusal names the summary, the request is repeated without it.
		summary := !slices.Contains(without, "summary") && !slices.Contains(without, "summaries") && string(words) != `"none"`
		if words == nil {
			words = json.RawMessage(`"auto"`)
		}
		if (summary || req.Effort != "") && optional("reasoning", true) {
			b = append(b, '{')
			if req.Effort != "" {
				b = appendStringField(b, "effort", req.Effort)
			}
			if summary {
				// In front: the refusal of a summary also contains the word "reasoning", and attempt leaves out the first name that it
				// finds.
				sent = append([]string{"summary", "summaries"}, sent...)
				b = append(appendField(b, "summary"), words...)
			}
			b = append(b, '}')
		}
	}
	if optional("prompt_cache_key", req.SessionID != "") {
		b = textutil.AppendJSON(b, req.SessionID)
	}
	if len(req.System) > 0 {
		b = append(appendField(b, "instructions"), system...)
	}
	if len(tools) > 0 {
		b = append(append(append(appendField(b, "tools"), '['), tools...), ']')
		if optional("parallel_tool_calls", p.cfg.Quirks.NoParallelCalls) {
			b = append(b, "false"...)
		}
	} else {
		// Without tools the API refuses both parameters.
		x.take("parallel_tool_calls")
		x.take("tool_choice")
	}
	b = x.append(b)
	b = append(appendField(b, "input"), '[')
	for i := range entries {
		if len(entries[i].enc) > 0 {
			b = append(appendComma(b), entries[i].enc...)
		}
	}
	return append(b, ']', '}'), sent
}

// responsesInclude adds what the configuration wants included to the one thing that is needed: the encrypted reasoning, to send it back.
func responsesInclude(more json.RawMessage) []byte {
	names := []string{"reasoning.encrypted_content"}
	var own []string
	_ = json.Unmarshal(more, &own)
	for _, n := range own {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	b, _ := json.Marshal(names)
	return b
}

// encodeResponsesTools encodes the functions with strict:false. Strict is the API's default and would make every parameter required.
func encodeResponsesTools(tools []ToolSpec) []byte {
	b := []byte{}
	for _, t := range tools {
		b = append(appendComma(b), `{"type":"function"`...)
		b = appendStringField(b, "name", t.Name)
		b = appendStringField(b, "description", t.Description)
		b = append(appendField(b, "parameters"), TransformSchema(KindResponses, t.Parameters)...)
		b = append(b, `,"strict":false}`...)
	}
	return b
}

// encodeResponses encodes a message as input items: one for each assistant text, call and result, and one for all parts of a message of
// the user. Items need no joining, since the API has no rule about turns.
func encodeResponses(m *Message, e *entry, model Model) {
	var b []byte
	content := func(f File) {
		if isPDF(f.Mime) {
			name := f.Name
			if name == "" {
				// The API requires a name, and pasted files have none.
				name = "document.pdf"
			}
			b = appendStringField(append(appendComma(b), `{"type":"input_file"`...), "filename", name)
			b = append(appendDataURL(appendField(b, "file_data"), f), '}')
			return
		}
		b = append(appendComma(b), `{"type":"input_image","detail":"auto","image_url":`...)
		b = append(appendDataURL(b, f), '}')
	}
	inputText := func(s string) {
		b = append(appendComma(b), `{"type":"input_text","text":`...)
		b = append(textutil.AppendJSON(b, s), '}')
	}
	switch m.Role {
	case RoleTool:
		for _, p := range m.Parts {
			if p.Type != PartToolResult {
				continue
			}
			text := p.Text
			var files []File
			for _, f := range p.Files {
				if sendable(model, f) {
					files = append(files, f)
				} else {
					text += "\n" + fileText(model, f)
				}
			}
			// 64 characters are the API's limit for a call id.
			b = appendStringField(append(appendComma(b), `{"type":"function_call_output"`...), "call_id", callID(p.CallID, 64))
			b = appendField(b, "output")
			// A plain string where there are no files: servers that imitate the API take nothing else.
			if len(files) == 0 {
				b = append(textutil.AppendJSON(b, text), '}')
				continue
			}
			b = append(b, '[')
			if text != "" {
				inputText(text)
			}
			for _, f := range files {
				content(f)
			}
			b = append(b, ']', '}')
		}
	case RoleAssistant:
		for i, p := range m.Parts {
			switch p.Type {
			case PartThinking:
				// The API refuses a reasoning item without the item that followed it, so one at the end of a message, from an answer that
				// broke off, is left out.
				if i+1 < len(m.Parts) && sameProvider(*m, model) {
					b = appendReasoning(b, p.Signature)
				}
			case PartText:
				if p.Text == "" {
					continue
				}
				b = append(appendComma(b), `{"type":"message","role":"assistant","content":[{"type":"output_text","text":`...)
				b = append(textutil.AppendJSON(b, p.Text), `,"annotations":[]}]}`...)
			case PartToolCall:
				b = appendStringField(append(appendComma(b), `{"type":"function_call"`...), "call_id", callID(p.CallID, 64))
				b = appendStringField(b, "name", p.Name)
				b = append(textutil.AppendJSON(appendField(b, "arguments"), objectInput(p.Input)), '}')
			}
		}
	default:
		start := len(b)
		b = append(b, `{"type":"message","role":"user","content":[`...)
		empty := len(b)
		for _, p := range m.Parts {
			switch p.Type {
			case PartText:
				if p.Text != "" {
					inputText(p.Text)
				}
			case PartFile:
				for _, f := range p.Files {
					if sendable(model, f) {
						content(f)
					} else {
						inputText(fileText(model, f))
					}
				}
			}
		}
		// A message of which nothing can be sent leaves no item behind.
		if len(b) == empty {
			b = b[:start]
		} else {
			b = append(b, ']', '}')
		}
	}
	e.enc = b
}

// appendReasoning writes a reasoning item from a signature. Without encrypted content the API would look the item up by its id, and
// nothing was stored.
func appendReasoning(b []byte, signature string) []byte {
	var item reasoningItem
	if !strings.HasPrefix(signature, "{") || json.Unmarshal([]byte(signature), &item) != nil || item.Encrypted == "" {
		return b // another provider's, or none
	}
	b = append(appendComma(b), `{"type":"reasoning"`...)
	if item.ID != "" {
		b = appendStringField(b, "id", item.ID)
	}
	b = appendField(b, "summary")
	if len(item.Summary) > 0 {
		b = append(b, item.Summary...)
	} else {
		b = append(b, '[', ']')
	}
	return append(appendStringField(b, "encrypted_content", item.Encrypted), '}')
}
