package provider

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// chatProvider speaks Chat Completions, OpenAI's and that of compatible servers.
type chatProvider struct{ base }

// openChat sends the request of Chat Completions or Responses and returns the response whose body is the stream. A failure is an
// *apiFailure, or an error of the network.
func (b *base) openChat(ctx context.Context, req *Request, path string, body ...[]byte) (*http.Response, error) {
	u, header, err := b.openaiAddress(ctx, req.Model.ID, path)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	for k, v := range b.cfg.Query {
		query.Set(k, v)
	}
	u.RawQuery = query.Encode()
	q, err := newPost(ctx, req, u, header, body...)
	if err != nil {
		return nil, err
	}
	if b.cfg.Cloud == CloudBedrock && q.Header.Get("Authorization") == "" {
		if err := b.signForBedrock(q, bytes.Join(body, nil)); err != nil {
			return nil, err
		}
	}
	resp, err := b.send(q)
	var f *apiFailure
	// A base URL without a path is tried as it is written and then with the usual /v1. noteRefused comes first, so a second 404 is
	// returned and no third request is made.
	if errors.As(err, &f) && f.status == http.StatusNotFound && b.cfg.Cloud == "" && b.bareURL() && b.noteRefused(baseURLQuirk, "/v1") {
		return b.openChat(ctx, req, path, body...)
	}
	return resp, err
}

// baseURLQuirk is the key under which noteRefused remembers that the base URL needs "/v1". Models are the other keys; none has a NUL in
// its name.
const baseURLQuirk = "\x00url"

// bareURL reports a configured base URL without a path.
func (b *base) bareURL() bool {
	u, err := url.Parse(b.cfg.BaseURL)
	return err == nil && b.cfg.BaseURL != "" && strings.Trim(u.Path, "/") == ""
}

// Stream implements Provider.
func (p *chatProvider) Stream(ctx context.Context, req *Request, emit func(Event) error) error {
	req = resolveOptions(req, p.cfg.Kind)
	return nameRefusedOption(p.attempt(ctx, req.Model.ID, func(without []string) ([]string, error) {
		body, sent := p.body(req, without)
		return sent, p.run(ctx, req.Model.ID, func(ctx context.Context) (*http.Response, error) {
			return p.openChat(ctx, req, "chat/completions", body...)
		}, &chatAnswer{out: emitter{emit: emit}})
	}), req)
}

// body builds the request, in parts, and names the optional parameters that it sent: attempt looks for them in a refusal.
func (p *chatProvider) body(req *Request, without []string) (body [][]byte, sent []string) {
	conv := p.cache.acquire(req.SessionID, req.Model.String())
	defer p.cache.release(conv)
	enc := chatEncoder{model: req.Model, short: p.shortIDs(req.Model.ID), reasoning: p.returnsReasoning(req.Model.ID)}
	// The shape comes before the encoding, because it decides which messages there are.
	shape := p.shape(without)
	messages, words := shape.apply(req.Messages, req.System)
	// Shapes always count as sent: a template complains about the conversation, and not about a parameter.
	sent = append(sent, shapeNoSystem, shapeAlternate, shapeOneCall)
	entries := conv.encode(messages, func(_ int, m *Message, e *entry) { enc.message(m, e) })
	system := conv.encodeSystem(words, func() []byte { return encodeChatSystem(words, p.cfg.Quirks.SystemRole) })
	tools := conv.encodeTools(req.Tools, func() []byte { return encodeChatTools(p.cfg.Kind, req.Tools) })

	b := append(make([]byte, 0, 1024), '{')
	b = appendStringField(b, "model", req.Model.ID)
	if p.cfg.Quirks.NoStream {
		b = append(b, `,"stream":false`...)
	} else {
		b = append(b, `,"stream":true`...)
	}
	x := req.rest.clone()
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
	// Without stream_options a stream has no usage, and the cost is unknown.
	if optional("stream_options", !p.cfg.Quirks.NoStreamUsage && !p.cfg.Quirks.NoStream) {
		b = append(b, `{"include_usage":true}`...)
	}
	if name := p.maxTokensField(without); optional(name, req.MaxOutput > 0) {
		b = appendIntValue(b, req.MaxOutput)
	}
	if req.Temperature != nil && optional("temperature", true) {
		b = appendFloatValue(b, *req.Temperature)
	}
	if req.TopP != nil && optional("top_p", true) {
		b = appendFloatValue(b, *req.TopP)
	}
	if optional("reasoning_effort", req.Effort != "") {
		b = textutil.AppendJSON(b, req.Effort)
	}
	// OpenAI routes requests with the same key to the machine that has their prefix cached.
	if optional("prompt_cache_key", p.cfg.Kind == KindOpenAI && req.SessionID != "") {
		b = textutil.AppendJSON(b, req.SessionID)
	}
	if len(tools) > 0 {
		b = append(appendField(b, "tools"), '[')
		body, b = append(body, b, tools), []byte{']'}
		// false is sent only where the server's template cannot express several calls.
		if optional("parallel_tool_calls", shape.oneCall) {
			b = append(b, "false"...)
		}
	} else {
		// Without tools the API refuses both parameters.
		x.take("parallel_tool_calls")
		x.take("tool_choice")
	}
	b = x.append(b)
	b = append(appendField(b, "messages"), '[')
	body = append(body, append(b, system...))
	comma := len(system) > 0
	for i := range entries {
		if len(entries[i].enc) == 0 {
			continue
		}
		if comma {
			body = append(body, commaBytes)
		}
		body, comma = append(body, entries[i].enc), true
	}
	return append(body, []byte("]}")), sent
}

// commaBytes stands between the messages of a body.
var commaBytes = []byte(",")

// maxTokensField is the name of the output limit. OpenAI's newer models take only the long one, most other servers only the short one;
// after a refusal the other one is used.
func (p *chatProvider) maxTokensField(without []string) string {
	long, short := "max_completion_tokens", "max_tokens"
	if f := p.cfg.Quirks.MaxTokensField; f != "" {
		return f
	}
	if p.cfg.Kind != KindOpenAI {
		long, short = short, long
	}
	if slices.Contains(without, long) {
		return short
	}
	return long
}

// shortIDs reports a model that takes call ids of exactly nine letters and digits: Mistral's API refuses all others.
func (p *chatProvider) shortIDs(model string) bool {
	m := strings.ToLower(model)
	// By the server's address, or by the model's name where a gateway serves it.
	return p.cfg.Quirks.ShortCallIDs || strings.Contains(p.cfg.BaseURL, "mistral.ai") ||
		strings.Contains(m, "mistral") || strings.Contains(m, "devstral") || strings.Contains(m, "codestral")
}

// returnsReasoning reports a model that wants its reasoning back with its calls: without it DeepSeek and Kimi refuse the request or
// repeat themselves.
func (p *chatProvider) returnsReasoning(model string) bool {
	m := strings.ToLower(model)
	return p.cfg.Quirks.ReturnReasoning || strings.Contains(m, "deepseek") || strings.Contains(m, "kimi")
}
