package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// noSignature is the placeholder in Google's documentation. Gemini 3 refuses a history whose calls have no thought signature, and calls
// of other models have none.
const noSignature = "skip_thought_signature_validator"

// geminiProvider speaks generateContent.
type geminiProvider struct{ base }

// Stream implements Provider.
func (p *geminiProvider) Stream(ctx context.Context, req *Request, emit func(Event) error) error {
	req = resolveOptions(req, KindGemini)
	return nameRefusedOption(p.attempt(ctx, req.Model.ID, func(without []string) ([]string, error) {
		body, sent := p.body(req, without)
		return sent, p.run(ctx, req.Model.ID, func(ctx context.Context) (*http.Response, error) {
			return p.open(ctx, req, body)
		}, &geminiAnswer{out: emitter{emit: emit}})
	}), req)
}

// open sends the request and returns the response whose body is the stream.
func (p *geminiProvider) open(ctx context.Context, req *Request, body []byte) (*http.Response, error) {
	if p.cfg.Cloud == CloudVertex {
		u, token, err := p.vertexAddress(ctx, "publishers/google/models/"+pathSegment(req.Model.ID)+":streamGenerateContent")
		if err != nil {
			return nil, err
		}
		u.RawQuery = withSSE(u)
		return p.post(ctx, req, u, p.newHeader("Authorization", bearer(token)), body)
	}
	at := strings.TrimRight(p.cfg.BaseURL, "/")
	if at == "" {
		at = "https://generativelanguage.googleapis.com"
	}
	// A tuned model is named with its collection; a plain name is one of Google's.
	model := req.Model.ID
	collection, name, ok := strings.Cut(model, "/")
	if !ok || collection != "models" && collection != "tunedModels" {
		collection, name = "models", model
	}
	// People often copy the address with the version.
	u, err := joinURL(strings.TrimSuffix(at, "/v1beta"), "v1beta/"+collection+"/"+pathSegment(name)+":streamGenerateContent")
	if err != nil {
		return nil, err
	}
	u.RawQuery = withSSE(u)
	return p.post(ctx, req, u, p.newHeader("x-goog-api-key", p.cfg.Key, "Authorization", bearer(p.cfg.Token)), body)
}

// withSSE is the query of an address that asks for a stream: without alt=sse the answer is one JSON list.
func withSSE(u *url.URL) string {
	query := u.Query()
	query.Set("alt", "sse")
	return query.Encode()
}

// body builds the request and names its optional parameters. Neighbours of one role are joined, because the API wants the roles to take
// turns.
func (p *geminiProvider) body(req *Request, without []string) (body []byte, sent []string) {
	conv := p.cache.acquire(req.SessionID, req.Model.String())
	defer p.cache.release(conv)
	version := geminiVersion(req.Model.ID)
	entries := conv.encode(req.Messages, func(_ int, m *Message, e *entry) { encodeGemini(m, e, req.Model, version, p.cfg.Cloud != CloudVertex) })
	system := conv.encodeSystem(req.System, func() []byte { return encodeGeminiSystem(req.System) })
	tools := conv.encodeTools(req.Tools, func() []byte { return encodeGeminiTools(req.Tools) })

	// Room for the settings (1024 bytes) and each message's frame (40).
	size := len(system) + len(tools) + 1024
	for i := range entries {
		size += len(entries[i].enc) + 40
	}
	b := append(make([]byte, 0, size), '{')
	if len(system) > 0 {
		b = append(append(append(b, `"systemInstruction":{"parts":[`...), system...), ']', '}')
	}
	if len(tools) > 0 {
		b = append(append(append(appendField(b, "tools"), `[{"functionDeclarations":[`...), tools...), `]}]`...)
	}
	x := req.rest.clone()
	// The options that remain in x go into generationConfig.
	for _, name := range geminiTop {
		if v := x.take(name); v != nil {
			b = append(appendField(b, name), v...)
		}
	}
	thinking := x.take("thinkingConfig")
	b = append(appendField(b, "generationConfig"), '{')
	if limit := req.MaxOutput; limit > 0 {
		b = appendIntField(b, "maxOutputTokens", limit)
	}
	if req.Temperature != nil {
		b = appendFloatField(b, "temperature", *req.Temperature)
	}
	if req.TopP != nil {
		b = appendFloatField(b, "topP", *req.TopP)
	}
	// Models that do not think refuse the field. It is sent where thinking is known or wanted, and left out after a refusal.
	if (req.Model.Thinking || req.Effort != "" || thinking != nil) && !slices.ContainsFunc(without, isThinkingConfig) {
		sent = append(sent, "thinking_config", "thinkingConfig", "Thinking")
		b = append(appendField(b, "thinkingConfig"), geminiThinking(thinking, req.Effort, version)...)
	}
	b = x.append(b)
	b = append(b, '}')
	b = append(appendField(b, "contents"), '[')
	current := ""
	for i := range entries {
		e := &entries[i]
		if len(e.enc) == 0 {
			continue
		}
		role := "user"
		if e.role == RoleAssistant {
			role = "model"
		}
		if role == current {
			b = append(b, ',')
		} else {
			if current != "" {
				b = append(b, ']', '}')
			}
			b = append(append(append(appendComma(b), `{"role":"`...), role...), `","parts":[`...)
			current = role
		}
		b = append(b, e.enc...)
	}
	if current != "" {
		b = append(b, ']', '}')
	}
	return append(b, ']', '}'), sent
}

// geminiTop are the options that belong beside generationConfig, not in it.
var geminiTop = []string{"safetySettings", "cachedContent", "labels", "toolConfig", "serviceTier"}

// geminiThinking is a thinkingConfig: the configuration's fields, without those that the chosen effort replaces.
func geminiThinking(own json.RawMessage, effort string, version int) []byte {
	var set map[string]json.RawMessage
	_ = json.Unmarshal(own, &set)
	b := []byte{'{'}
	// People see the thoughts unless the configuration says no.
	if set["includeThoughts"] == nil {
		b = append(b, `"includeThoughts":true`...)
	}
	for _, k := range slices.Sorted(maps.Keys(set)) {
		// The API refuses budget and level together, so the chosen effort replaces both.
		if effort == "" || k != "thinkingBudget" && k != "thinkingLevel" {
			b = append(append(textutil.AppendJSON(appendComma(b), k), ':'), set[k]...)
		}
	}
	return append(appendGeminiEffort(b, effort, version), '}')
}

// isThinkingConfig reports the parameter under each of the names that refusals use.
func isThinkingConfig(param string) bool {
	return param == "thinking_config" || param == "thinkingConfig" || param == "Thinking"
}

// geminiVersion is 25 for gemini-2.5-pro, 30 for gemini-3-…; 0 when the id has no number.
func geminiVersion(id string) int {
	_, rest, ok := strings.Cut(id, "gemini-")
	if !ok {
		return 0
	}
	number, _, _ := strings.Cut(rest, "-")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		// An id without a version, such as gemini-flash-latest, means the newest model.
		return 30
	}
	return int(v*10 + 0.5)
}

// appendGeminiEffort says how much to think: by thinkingLevel from Gemini 3 on, by a budget in tokens before. The budgets are ours, up to
// 24576 tokens, the maximum of Gemini 2.5 Flash, which is the smallest of that generation.
func appendGeminiEffort(b []byte, effort string, version int) []byte {
	if effort == "" {
		return b
	}
	if version >= 30 {
		level := map[string]string{"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM"}[effort]
		if level == "" {
			level = "HIGH"
		}
		return appendStringField(b, "thinkingLevel", level)
	}
	budget := map[string]int{"minimal": 512, "low": 2048, "medium": 8192}[effort]
	if budget == 0 {
		budget = 24576
	}
	return appendIntField(b, "thinkingBudget", budget)
}

// encodeGeminiSystem encodes the blocks as parts, without the brackets. The result is never nil, because nil would mean "not encoded yet"
// to the cache.
func encodeGeminiSystem(system []string) []byte {
	b := []byte{}
	for _, s := range system {
		if s != "" {
			b = append(textutil.AppendJSON(append(appendComma(b), `{"text":`...), s), '}')
		}
	}
	return b
}

// encodeGeminiTools encodes the function declarations, without the brackets.
func encodeGeminiTools(tools []ToolSpec) []byte {
	b := []byte{}
	for _, t := range tools {
		b = append(appendComma(b), '{')
		b = appendStringField(b, "name", t.Name)
		b = appendStringField(b, "description", t.Description)
		// The API refuses an empty object as the parameters of a function; without parameters the field is left out.
		if s := TransformSchema(KindGemini, t.Parameters); !bytes.Contains(s, []byte(`"properties":{}`)) || bytes.Count(s, []byte(`"properties"`)) > 1 {
			b = append(appendField(b, "parameters"), s...)
		}
		b = append(b, '}')
	}
	return b
}

// encodeGemini encodes the parts of a message without the brackets, so that neighbours of one role can be joined. Without ids calls and
// results are matched by their order: the API of Vertex does not know the field.
func encodeGemini(m *Message, e *entry, model Model, version int, ids bool) {
	var b []byte
	call := func(field string, p Part) {
		b = append(append(append(append(appendComma(b), '{', '"'), field...), '"', ':'), '{')
		if ids {
			b = appendStringField(b, "id", callID(p.CallID, 64))
		}
		b = appendStringField(b, "name", p.Name)
	}
	text := func(s string) {
		b = append(textutil.AppendJSON(append(appendComma(b), `{"text":`...), s), '}')
	}
	file := func(f File) {
		if !sendable(model, f) {
			text(fileText(model, f))
			return
		}
		b = append(textutil.AppendJSON(append(appendComma(b), `{"inlineData":{"mimeType":`...), f.Mime), `,"data":`...)
		b = append(appendBase64(b, f.Data), '}', '}')
	}
	own := sameProvider(*m, model)
	calls := 0
	for _, p := range m.Parts {
		switch p.Type {
		case PartText:
			if p.Text != "" {
				text(p.Text)
			}
		case PartFile:
			for _, f := range p.Files {
				file(f)
			}
		case PartThinking:
			// Summaries of thoughts are not sent back; a signature that came with text is, in the same place.
			if sig, ok := strings.CutPrefix(p.Signature, textSignature); ok && own {
				b = append(textutil.AppendJSON(append(appendComma(b), `{"text":"","thoughtSignature":`...), sig), '}')
			}
		case PartToolCall:
			call("functionCall", p)
			b = append(append(appendField(b, "args"), objectInput(p.Input)...), '}')
			switch {
			case own && p.Signature != "":
				b = appendStringField(b, "thoughtSignature", p.Signature)
			// The first call of a message must have a signature; the others have none.
			case calls == 0 && version >= 30:
				b = appendStringField(b, "thoughtSignature", noSignature)
			}
			b = append(b, '}')
			calls++
		case PartToolResult:
			call("functionResponse", p)
			// The API has no flag for a failed call; its documentation names these two keys.
			key := "output"
			if p.IsError {
				key = "error"
			}
			b = append(appendStringField(append(appendField(b, "response"), '{'), key, p.Text), '}', '}', '}')
		}
	}
	for _, p := range m.Parts { // all responses of a message must come together, so files follow them
		if p.Type == PartToolResult {
			for _, f := range p.Files {
				file(f)
			}
		}
	}
	e.enc = b
}
