package provider

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// apiFailure is a failure as the provider reported it. classify gives it a kind and makes an *Error of it.
type apiFailure struct {
	status  int // 0: reported inside a stream
	header  http.Header
	kind    string // the provider's type or status word
	code    string
	message string
	delay   time.Duration // RetryInfo in the body
}

// Error is the provider's own text. It lets open return an apiFailure as an error, of which fail makes an *Error.
func (f *apiFailure) Error() string { return f.message }

// failureKind classifies a failure by its status and, where one status means several things, by the words that providers use. The order
// of the cases decides: messages about quota and about a prompt that is too long come with statuses 400, 402, 403, 413 and 429, and a
// retry helps against neither, so they are looked for before the status counts.
func failureKind(f *apiFailure) ErrorKind {
	// Inside a stream there is no HTTP status (f.status is 0). A number from 400 to 599 in code is then the status of a failure that a
	// gateway passes on.
	if code, err := strconv.Atoi(f.code); err == nil && f.status == 0 && code >= 400 && code < 600 {
		g := *f
		g.status, g.code = code, ""
		return failureKind(&g)
	}
	// Messages and codes are compared in lower case: providers differ in it, and have changed it.
	text := strings.ToLower(f.message)
	words := strings.ToLower(f.kind + " " + f.code)
	has := func(list ...string) bool {
		for _, w := range list {
			if strings.Contains(text, w) || strings.Contains(words, w) {
				return true
			}
		}
		return false
	}
	switch {
	case f.status == http.StatusUnauthorized:
		return ErrAuth
	case has("insufficient_quota", "credit balance", "insufficient credit", "insufficient balance", "exceeded your current quota, please check your plan", "billing_error", "billing hard limit") &&
		// Gemini says resource_exhausted with a RetryInfo where only the rate of requests is limited.
		!(strings.Contains(words, "resource_exhausted") && f.delay > 0):
		return ErrQuota
	case f.status == http.StatusPaymentRequired:
		return ErrQuota
	// A 403 or a 404 is about permissions or the model, also when its text quotes a long prompt.
	case f.status != http.StatusForbidden && f.status != http.StatusNotFound && tooLong(text, words):
		return ErrContextLength
	case has("api key not valid", "api_key_invalid", "invalid_api_key", "invalid api key", "incorrect api key", "authentication_error", "unauthenticated"):
		return ErrAuth
	case f.status == http.StatusForbidden, f.status == 0 && has("permission_error", "permission_denied"):
		return ErrAuth
	case f.status == http.StatusNotFound, has("model_not_found", "not_found_error"):
		return ErrNotFound
	// Too many bytes are nearly always too long a conversation, or its images.
	case f.status == http.StatusRequestEntityTooLarge: // a proxy counts bytes
		return ErrContextLength
	case f.status == http.StatusTooManyRequests, f.status == 0 && has("rate_limit", "resource_exhausted", "too many requests"):
		return ErrRateLimit
	// 529 is Anthropic's own status for overload; no RFC has it
	case f.status == http.StatusServiceUnavailable, f.status == 529, has("overloaded", "slow_down", "engine is currently overloaded", "unavailable") && f.status != http.StatusBadRequest:
		return ErrOverloaded
	// A proxy gave up waiting for the provider, which may have been about to answer: a retry may help.
	case f.status == http.StatusRequestTimeout, f.status == http.StatusGatewayTimeout:
		return ErrNetwork
	case f.status == http.StatusConflict, f.status == http.StatusTooEarly, f.status >= 500:
		return ErrServer
	case f.status == 0 && !has("invalid", "bad_request", "bad request", "not supported", "unsupported"):
		return ErrServer // a failure in the middle of an answer, with no word that blames the request
	}
	return ErrInvalid
}

// tooLong recognises in the words of providers and model servers that a prompt exceeds the context. The comments name the sources. When a
// message is not recognised, the person sees an error that compacting could have avoided.
func tooLong(text, words string) bool {
	for _, w := range []string{"context_length_exceeded", "request_too_large", "exceed_context_size", "context_window_exceeded", "model_max_prompt_tokens_exceeded"} {
		if strings.Contains(words, w) || strings.Contains(text, w) {
			return true
		}
	}
	// Parts of sentences, because whole ones change between versions of a server.
	for _, w := range []string{
		"prompt is too long", "input is too long", "prompt too long", // Anthropic, Bedrock
		"exceed context limit", "exceeds the context window", "exceeds the context limit", // Anthropic, OpenAI Responses
		"maximum context length", "reduce the length of", // OpenAI, vLLM, Groq, Mistral
		"exceeds the maximum number of tokens", "input token count", // Gemini
		"maximum prompt length", "maximum model length", "max_model_len", // xAI, vLLM
		"exceeds the available context size", "context size has been exceeded", // llama.cpp
		"when context the overflows", "context overflow", "greater than the context length", // LM Studio
		"exceeded model token limit", "prompt exceeds max length", "range of input length", "context window exceeds limit", // Kimi, GLM, Qwen, MiniMax
		"prompt token count", "exceeds the context length", "exceeds the model's context", "exceeds model's maximum context", // Copilot, Ollama, vLLM
		"`inputs` tokens + `max_new_tokens`", "`inputs` must have less than", "too many input tokens", "input tokens exceed", // Together, TGI, Nova
		"too many tokens", "request too large for", "longer than the model's context", "exceeds context length", "context length exceeded",
	} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// parseFailure reads a failure's body in any provider's shape:
// {"error":{…}} (all), {"error":"…"} and {"message":"…"}, {"detail":…} (model servers), [{"error":{…}}] (Gemini).
// header may be nil, for a failure inside a stream.
func parseFailure(status int, header http.Header, body []byte) *apiFailure {
	f := &apiFailure{status: status, header: header}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(body, &top) != nil {
		// A proxy's page or plain text: classify shortens it.
		f.message = string(body)
		return f
	}
	var inner struct {
		Message  string          `json:"message"`
		Type     string          `json:"type"`
		Status   string          `json:"status"`
		Code     json.RawMessage `json:"code"`
		Metadata struct {
			Raw json.RawMessage `json:"raw"`
		} `json:"metadata"`
		Details []struct {
			Reason     string `json:"reason"`
			RetryDelay string `json:"retryDelay"`
		} `json:"details"`
	}
	// some servers send "error": null beside an answer
	if string(top.Error) == "null" {
		top.Error = nil
	}
	switch {
	case len(top.Error) > 0 && json.Unmarshal(top.Error, &inner) == nil:
		f.message, f.kind, f.code = inner.Message, inner.Type, rawText(inner.Code)
		if f.kind == "" {
			f.kind = inner.Status
		}
		for _, d := range inner.Details {
			if d.Reason != "" {
				// google.rpc.ErrorInfo: API_KEY_INVALID comes here and not in the code
				f.kind += " " + d.Reason
			}
			// google.rpc.RetryInfo, for example "34s"
			if wait, err := time.ParseDuration(d.RetryDelay); err == nil {
				f.delay = seconds(wait.Seconds())
			}
		}
		// OpenRouter passes the upstream provider's own words here.
		if raw := rawText(inner.Metadata.Raw); raw != "" {
			f.message += ": " + raw
		}
	case len(top.Error) > 0:
		f.message, f.kind, f.code = rawText(top.Error), top.Type, rawText(top.Code)
	case len(top.Message) > 0:
		f.message, f.kind, f.code = rawText(top.Message), top.Type, rawText(top.Code)
	case len(top.Detail) > 0:
		f.message = rawText(top.Detail)
	default:
		f.message = string(body)
	}
	return f
}

// rawText is the value of a JSON string, or the JSON as it is written: a code is a string at some providers and a number at others.
func rawText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}
