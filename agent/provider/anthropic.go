package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// redactedThinking marks a signature that is the data of a redacted_thinking block. The API wants such a block back unchanged, and Part
// has one field for all opaque state.
const redactedThinking = "redacted:"

// anthropicProvider speaks the Messages API.
type anthropicProvider struct{ base }

// anthropicVersion is the version of the API whose format this package speaks.
const anthropicVersion = "2023-06-01"

// Stream implements Provider.
func (p *anthropicProvider) Stream(ctx context.Context, req *Request, emit func(Event) error) error {
	// resolveOptions gives the options the format's names; nameRefusedOption needs the same request to find them.
	req = resolveOptions(req, KindAnthropic)
	// Parameters that a server may refuse by name and the model can do without; attempt leaves out the one that a refusal names.
	optional := []string{"output_config", "effort", "display", "temperature", "top_p", "cache_control"}
	// The body is encoded within the attempt, because it depends on what was refused.
	try := func() error {
		return p.attempt(ctx, req.Model.ID, func(without []string) ([]string, error) {
			body := p.body(req, without)
			return optional, p.run(ctx, req.Model.ID, func(ctx context.Context) (*http.Response, error) {
				return p.open(ctx, req, body)
			}, &anthropicAnswer{out: emitter{emit: emit}})
		})
	}
	err := try()
	// Signed thinking is bound to its conversation; the API refuses it after a compaction or with another account.
	if e, ok := err.(*Error); ok && e.Kind == ErrInvalid && refusesThinking(e.Message) && p.dropThinking(req) {
		err = try()
	}
	return nameRefusedOption(err, req)
}

// refusesThinking reports that the API refused a thinking block or its signature, an invalid_request_error that differs from others in
// its words only. Each of the two known refusals has "signature" or "block"; any other mention of thinking is another error.
func refusesThinking(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "thinking") && (strings.Contains(m, "signature") || strings.Contains(m, "block"))
}

// dropThinking leaves the signed thinking of all messages so far out of this conversation from now on, and drops the encodings that
// contain it. It returns false when it did that before, so that the caller repeats a request only once.
func (p *anthropicProvider) dropThinking(req *Request) bool {
	conv := p.cache.acquire(req.SessionID, req.Model.String())
	defer p.cache.release(conv)
	// The thinking of all messages is left out already: the refusal has another reason.
	if conv.thinkFrom >= len(req.Messages) {
		return false
	}
	conv.thinkFrom = len(req.Messages)
	conv.entries = nil
	return true
}

// open sends the request and returns the response whose body is the stream. A failure that the API reported is an *apiFailure.
func (p *anthropicProvider) open(ctx context.Context, req *Request, body []byte) (*http.Response, error) {
	at, key, token := p.cfg.BaseURL, p.cfg.Key, p.cfg.Token
	if p.cfg.Cloud == CloudVertex {
		u, token, err := p.vertexAddress(ctx, "publishers/anthropic/models/"+pathSegment(req.Model.ID)+":streamRawPredict")
		if err != nil {
			return nil, err
		}
		return p.post(ctx, req, u, p.newHeader("Accept", "application/json", "Authorization", bearer(token)), body)
	}
	bedrock := p.cfg.Cloud == CloudBedrock
	if bedrock {
		var err error
		if at, token, err = p.bedrockAddress(); err != nil {
			return nil, err
		}
		key = ""
	} else if at == "" {
		at = "https://api.anthropic.com"
	}
	// People write the base URL with and without /v1.
	u, err := joinURL(strings.TrimSuffix(strings.TrimRight(at, "/"), "/v1"), "v1/messages")
	if err != nil {
		return nil, err
	}
	header := p.newHeader("Accept", "application/json", "anthropic-version", anthropicVersion, "X-Api-Key", key, "Authorization", bearer(token))
	// Models before 4.6 think between tool calls only with this beta header, which does not replace a configured one. Compatible servers
	// may refuse an unknown beta.
	if claudeVersion(req.Model.ID) < 460 && req.Effort != "" && len(req.Tools) > 0 && p.official() {
		header.Add("anthropic-beta", "interleaved-thinking-2025-05-14")
	}
	q, err := newPost(ctx, req, u, header, body)
	if err != nil {
		return nil, err
	}
	if bedrock && token == "" {
		if err := p.signForBedrock(q, body); err != nil {
			return nil, err
		}
	}
	return p.send(q)
}

// official reports Anthropic's own API. Compatible servers do not know the newer headers, so they are not sent to them.
func (p *anthropicProvider) official() bool {
	// An empty base URL is Anthropic's own, and has no host.
	u, err := url.Parse(p.cfg.BaseURL)
	return err == nil && (u.Host == "" || strings.HasSuffix(u.Hostname(), "anthropic.com"))
}

// claudeVersion is 460 for claude-opus-4-6, 500 for claude-sonnet-5, 370 for claude-3-7-sonnet. A Claude without a number
// (mythos-preview) counts as 500; models of other makers are 0 and get no settings of newer versions.
func claudeVersion(id string) int {
	i := strings.Index(id, "claude-")
	if i < 0 {
		return 0
	}
	version, digits := 0, 0
	for _, part := range strings.FieldsFunc(id[i+len("claude-"):], func(r rune) bool { return r == '-' || r == '.' || r == '@' || r == ':' }) {
		n, err := strconv.Atoi(part)
		// A date (20251001) comes after the version and must not be read as its minor part.
		if err != nil || n > 99 {
			if digits > 0 {
				break
			}
			// A name before the number (opus-4-6) is passed over; behind the number (3-7-sonnet) it ends the version.
			continue
		}
		if digits == 0 {
			version = n * 100
		} else {
			version += n * 10
			digits++
			break
		}
		digits++
	}
	if digits == 0 {
		return 500
	}
	return version
}

// body builds the request from the encoded messages; without names the optional parameters that the server refused. Options that this
// package writes itself are taken out of x first, because a JSON object with a key twice is refused. The API caches prefixes (tools,
// system, messages), so everything that an earlier step has sent must come out as the same bytes.
func (p *anthropicProvider) body(req *Request, without []string) []byte {
	conv := p.cache.acquire(req.SessionID, req.Model.String())
	defer p.cache.release(conv)
	if conv.thinkFrom > len(req.Messages) {
		conv.thinkFrom = 0 // the history became shorter, so the messages are other ones
	}
	entries := conv.encode(req.Messages, func(i int, m *Message, e *entry) {
		encodeAnthropic(m, e, req.Model, i >= conv.thinkFrom)
	})
	caching := !p.cfg.Quirks.NoCache && !slices.Contains(without, "cache_control")
	system := conv.encodeSystem(req.System, func() []byte { return encodeAnthropicSystem(req.System, caching) })
	tools := conv.encodeTools(req.Tools, func() []byte { return encodeAnthropicTools(req.Tools) })

	// Room for the settings (1024 bytes) and each message's frame (96): the body is built in one allocation.
	size := len(system) + len(tools) + 1024
	for i := range entries {
		size += len(entries[i].enc) + 96
	}
	b := append(make([]byte, 0, size), '{')
	if p.cfg.Cloud == CloudVertex { // the model is in the address, and the version here
		b = appendStringField(b, "anthropic_version", "vertex-2023-10-16")
	} else {
		b = appendStringField(b, "model", req.Model.ID)
	}
	x := req.rest.clone()
	b = anthropicSettings(b, req, &x, entries, without)
	b = append(b, `,"stream":true`...)
	if len(system) > 0 {
		b = append(append(append(appendField(b, "system"), '['), system...), ']')
	}
	if len(tools) > 0 {
		b = append(append(append(appendField(b, "tools"), '['), tools...), ']')
	}
	// The API refuses a tool_choice without tools.
	if len(tools) == 0 {
		x.take("tool_choice")
	}
	// In OpenAI's formats parallel calls are a field of their own, here a part of tool_choice. A tool_choice that the person has
	// configured wins.
	if string(x.take("disableParallelToolUse")) == "true" && len(tools) > 0 && x.values["tool_choice"] == nil {
		b = append(appendField(b, "tool_choice"), `{"type":"auto","disable_parallel_tool_use":true}`...)
	}
	b = x.append(b)
	b = append(appendField(b, "messages"), '[')
	b = appendAnthropicMessages(b, entries, caching)
	return append(b, ']', '}')
}

// anthropicSettings appends max_tokens, thinking and sampling as this version of the model takes them: adaptive thinking from 4.6 on, a
// budget in tokens before; sampling parameters only before 4.7 and without thinking.
func anthropicSettings(b []byte, req *Request, x *extras, entries []entry, without []string) []byte {
	limit := req.MaxOutput
	if limit <= 0 {
		limit = req.Model.Output
	}
	if limit <= 0 {
		// In tokens. The API requires a limit, and neither the caller nor the catalogue has one.
		limit = 8192
	}
	leave := func(param string) bool { return slices.Contains(without, param) }
	version := claudeVersion(req.Model.ID)
	effort := req.Effort != "" && req.Effort != "none"
	thinks := false
	switch {
	case leave("thinking"):
		x.take("thinking")
	case x.values["thinking"] != nil:
		var own json.RawMessage
		if own, limit, thinks = anthropicThinking(x.take("thinking"), limit, thinkingMayStart(entries)); own != nil {
			b = append(appendField(b, "thinking"), own...)
		}
		// Models before 4.5 have no effort.
		if effort && !leave("effort") && !leave("output_config") && x.values["output_config"] == nil && version >= 450 {
			b = append(textutil.AppendJSON(append(appendField(b, "output_config"), `{"effort":`...), anthropicEffort(req.Effort)), '}')
		}
	// Thinking is always requested from 5 on, and from 4.6 on where an effort was chosen. The model decides how much.
	case version >= 500 || version >= 460 && effort:
		thinks = true
		b = append(appendField(b, "thinking"), `{"type":"adaptive"`...)
		if !leave("display") {
			b = append(b, `,"display":"summarized"`...)
		}
		b = append(b, '}')
		if effort && !leave("effort") && !leave("output_config") && x.values["output_config"] == nil {
			b = append(appendField(b, "output_config"), `{"effort":`...)
			b = append(textutil.AppendJSON(b, anthropicEffort(req.Effort)), '}')
		}
	case effort && limit >= 4096 && thinkingMayStart(entries):
		// The budget of thinking in tokens; "high" and above get the most.
		budget := map[string]int{"minimal": 1024, "low": 4096, "medium": 12000}[req.Effort]
		if budget == 0 {
			budget = 31999
		}
		// 1024 is the API's minimum; 2048 tokens are left for the answer.
		budget = max(1024, min(budget, limit-2048))
		thinks = true
		b = append(appendField(b, "thinking"), `{"type":"enabled","budget_tokens":`...)
		b = append(strconv.AppendInt(b, int64(budget), 10), '}')
	}
	b = appendIntField(b, "max_tokens", limit)
	if sampling := version < 470 && !thinks; sampling { // newer models refuse sampling parameters, and thinking excludes them
		if req.Temperature != nil && !leave("temperature") {
			b = appendFloatField(b, "temperature", *req.Temperature)
		} else if req.TopP != nil && !leave("top_p") { // one of the two at most
			b = appendFloatField(b, "top_p", *req.TopP)
		}
	}
	return b
}

// anthropicEffort is an effort in the format's words, which have no "minimal".
func anthropicEffort(effort string) string {
	if effort == "minimal" {
		return "low"
	}
	return effort
}

// anthropicThinking is the thinking that the configuration asks for, in the format's names. Where its budget leaves no room for an
// answer, the limit of the answer is raised: the API refuses a budget that is not below max_tokens. own is nil when thinking may not
// start now.
func anthropicThinking(v json.RawMessage, limit int, mayStart bool) (own json.RawMessage, newLimit int, thinks bool) {
	own = snake(v)
	var t struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	}
	// An object of another shape is sent as it is. It counts as thinking, so that no sampling parameter is sent beside it.
	if json.Unmarshal(own, &t) != nil {
		return own, limit, true
	}
	if t.Type != "enabled" {
		return own, limit, t.Type != "disabled"
	}
	if !mayStart {
		return nil, limit, false
	}
	if t.Budget >= limit {
		// 4096 tokens are left for the answer.
		limit = t.Budget + 4096
	}
	return own, limit, true
}

// thinkingMayStart reports whether thinking with a budget may be switched on now. While tool results are answered, the assistant message
// with the calls must begin with signed thinking. A message of another model, or one made without thinking, does not, and the API would
// refuse the request.
func thinkingMayStart(entries []entry) bool {
	for i := len(entries) - 1; i >= 0; i-- {
		// Messages of RoleTool are passed over: they come between the calls and this question.
		switch e := &entries[i]; e.role {
		case RoleUser:
			return true
		case RoleAssistant:
			if e.calls > 0 {
				return e.thinking
			}
		}
	}
	return true
}
