package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/textutil"
	"google.golang.org/genai"
)

// noSignature is the placeholder in Google's documentation. Gemini 3 refuses a history whose calls have no thought signature, and calls
// of other models have none.
const noSignature = "skip_thought_signature_validator"

// geminiProvider speaks generateContent. The SDK makes URL, headers and authentication, but it takes no encoded body and decodes every
// event into maps. So geminiTransport replaces the body and takes the response out before the SDK reads it. The SDK's own retries are off
// by default. client and err are written once, in once, and only read afterwards.
type geminiProvider struct {
	base
	once   sync.Once
	client *genai.Client
	err    error
}

// Stream implements Provider.
func (p *geminiProvider) Stream(ctx context.Context, req *Request, emit func(Event) error) error {
	ctx = withHeaders(ctx, req.Headers)
	req = resolveOptions(req, KindGemini)
	return nameRefusedOption(p.attempt(ctx, req.Model.ID, func(without []string) ([]string, error) {
		body, sent := p.body(req, without)
		return sent, p.run(ctx, req.Model.ID, func(ctx context.Context) (*http.Response, error) {
			return p.open(ctx, req.Model, body)
		}, &geminiAnswer{out: emitter{emit: emit}})
	}), req)
}

// geminiCall travels to the transport in the request's context, the only thing that the SDK passes through. Without it the SDK would
// encode the conversation a second time from its own types.
type geminiCall struct {
	body    []byte
	headers map[string]string
	resp    *http.Response
	err     error
}

type geminiCallKey struct{}

// geminiTransport sends the call's body instead of the SDK's, and keeps a good response: the SDK sees an empty one. A failure is noted in
// the call with its status and headers, and passes through the SDK unchanged.
type geminiTransport struct {
	next  http.RoundTripper
	keyed bool
}

func (t geminiTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	// Requests that open did not make pass unchanged.
	call, ok := req.Context().Value(geminiCallKey{}).(*geminiCall)
	if !ok {
		return t.next.RoundTrip(req)
	}
	// RoundTrip must not change the request that it is given (contract of http.RoundTripper).
	req = req.Clone(req.Context())
	if !t.keyed {
		// The SDK insists on a key (see open). Without a configured one only the gateway's token or header counts.
		req.Header.Del("x-goog-api-key")
	}
	for k, v := range call.headers {
		req.Header.Set(k, v)
	}
	req.Body = io.NopCloser(bytes.NewReader(call.body))
	// net/http asks for the body again after a redirect or a retry.
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(call.body)), nil }
	req.ContentLength = int64(len(call.body))
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		call.err = err
		return nil, err
	}
	if resp.StatusCode < 300 {
		// With an empty body the SDK ends its loop; run reads the real one.
		call.resp = resp
		empty := *resp
		empty.Body = http.NoBody
		return &empty, nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	call.err = parseFailure(resp.StatusCode, resp.Header, body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// open makes the request through the SDK and returns the response that the transport kept.
func (p *geminiProvider) open(ctx context.Context, model Model, body []byte) (*http.Response, error) {
	p.once.Do(func() {
		client := *p.httpClient()
		// A client from the configuration may have no transport of its own.
		next := client.Transport
		if next == nil {
			next = sharedTransport()
		}
		client.Transport = geminiTransport{next: next, keyed: p.cfg.Key != ""}
		cc := &genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: p.cfg.Key, HTTPClient: &client}
		if cc.APIKey == "" {
			cc.APIKey = "none" // without one the SDK takes the environment's; the transport removes this one
		}
		// The SDK adds v1beta, and people often copy the address with it.
		cc.HTTPOptions.BaseURL = strings.TrimSuffix(strings.TrimRight(p.cfg.BaseURL, "/"), "/v1beta")
		if cc.HTTPOptions.BaseURL == "" {
			cc.HTTPOptions.BaseURL = "https://generativelanguage.googleapis.com/"
		}
		cc.HTTPOptions.Headers = http.Header{}
		for k, v := range p.cfg.Headers {
			cc.HTTPOptions.Headers.Set(k, v)
		}
		if p.cfg.Token != "" {
			cc.HTTPOptions.Headers.Set("Authorization", "Bearer "+p.cfg.Token)
		}
		p.client, p.err = genai.NewClient(context.Background(), cc)
	})
	if p.err != nil {
		return nil, &Error{Kind: ErrInvalid, Message: "the Gemini client could not be created; check the provider's settings"}
	}
	call := &geminiCall{body: body, headers: model.Headers}
	var err error
	// Iterating makes the request. With an empty response the sequence yields at most an error.
	for _, e := range p.client.Models.GenerateContentStream(context.WithValue(ctx, geminiCallKey{}, call), model.ID, nil, nil) {
		err = e
	}
	switch {
	case call.resp != nil:
		return call.resp, nil
	case call.err != nil:
		return nil, call.err
	// The transport was not reached: the SDK itself has refused the request.
	case err == nil:
		err = errors.New("no request was made")
	}
	return nil, err
}

// body builds the request and names its optional parameters. Neighbours of one role are joined, because the API wants the roles to take
// turns.
func (p *geminiProvider) body(req *Request, without []string) (body []byte, sent []string) {
	conv := p.cache.acquire(req.SessionID, req.Model.String())
	defer p.cache.release(conv)
	version := geminiVersion(req.Model.ID)
	entries := conv.encode(req.Messages, func(_ int, m *Message, e *entry) { encodeGemini(m, e, req.Model, version) })
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

// encodeGemini encodes the parts of a message without the brackets, so that neighbours of one role can be joined.
func encodeGemini(m *Message, e *entry, model Model, version int) {
	var b []byte
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
			b = append(appendComma(b), `{"functionCall":{`...)
			b = appendStringField(b, "id", callID(p.CallID, 64))
			b = appendStringField(b, "name", p.Name)
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
			b = append(appendComma(b), `{"functionResponse":{`...)
			b = appendStringField(b, "id", callID(p.CallID, 64))
			b = appendStringField(b, "name", p.Name)
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
