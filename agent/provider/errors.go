package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	maxBackoff = 30 * time.Second
	// maxRetryAfter bounds what a provider may ask for. A wait this long is for the person to decide about.
	maxRetryAfter = time.Hour
	// absurdRetryAfter is a wrong clock or a typo, and is ignored.
	absurdRetryAfter = 24 * time.Hour
	// maxErrorBody is how much of a failure's body is read, in bytes.
	maxErrorBody = 64 << 10
)

// Backoff is how long to wait before attempt number attempt (1: the first repetition): 1 s doubled each time up to
// 30 s, of which up to a quarter is taken off at random, but never shorter than the provider asked for.
func Backoff(attempt int, err *Error) time.Duration {
	d := maxBackoff
	if attempt < 1 {
		attempt = 1
	}
	if attempt < 6 {
		d = time.Second << (attempt - 1)
	}
	d -= rand.N(d/4 + 1)
	if err != nil && err.RetryAfter > 0 {
		// Everybody who was told the same second comes back a little later.
		d = max(d, min(err.RetryAfter, maxRetryAfter)+rand.N(250*time.Millisecond))
	}
	return d
}

// apiFailure is a failure as a provider reported it.
type apiFailure struct {
	status  int // 0: reported inside a stream
	header  http.Header
	kind    string // the provider's type or status word
	code    string
	message string
	delay   time.Duration // RetryInfo in the body
}

func (f *apiFailure) Error() string { return f.message }

// errNoAPI is a web page where an API was expected.
var errNoAPI = errors.New("the server answered with a web page")

// cutBy is a cut with its cause.
func cutBy(cause error) error {
	if errors.Is(cause, errEventTooLong) {
		return cause
	}
	return errCut
}

// fail makes the *Error a caller gets; nil stays nil and what emit returned stays what it was.
func (b *base) fail(ctx context.Context, model string, err error) error {
	if err == nil {
		return nil
	}
	var fromEmit emitError
	if errors.As(err, &fromEmit) {
		return fromEmit.err
	}
	var e *Error
	if !errors.As(err, &e) {
		e = b.explain(ctx, model, err)
	}
	e.Message = b.redact(e.Message)
	return e
}

func (b *base) explain(ctx context.Context, model string, err error) *Error {
	id := b.cfg.ID
	if ctx.Err() != nil {
		if context.Cause(ctx) == errIdle {
			return &Error{Kind: ErrNetwork, Message: fmt.Sprintf("%s sent nothing for %s; the connection was closed", id, b.cfg.Idle)}
		}
		return &Error{Kind: ErrCanceled, Message: "cancelled", Err: ctx.Err()}
	}
	var api *apiFailure
	if errors.As(err, &api) {
		return b.classify(model, api)
	}
	switch {
	case errors.Is(err, errNoAPI):
		return &Error{Kind: ErrInvalid, Message: fmt.Sprintf("%s answered with a web page, not with a model's answer; check the provider's baseURL (%s)", id, b.where())}
	case errors.Is(err, errRedirect):
		return &Error{Kind: ErrInvalid, Message: fmt.Sprintf("%s: %v (%s)", id, errRedirect, b.where())}
	case errors.Is(err, errEventTooLong):
		return &Error{Kind: ErrServer, Message: fmt.Sprintf("%s: %v", id, errEventTooLong)}
	case errors.Is(err, errCut), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Kind: ErrCut, Message: fmt.Sprintf("the answer of %s was cut off before its end", id)}
	case errors.Is(err, errBadEvent):
		return &Error{Kind: ErrServer, Message: fmt.Sprintf("%s sent something that is not JSON in its answer", id)}
	}
	return &Error{Kind: ErrNetwork, Message: b.network(err)}
}

// network says what is wrong with a connection.
func (b *base) network(err error) string {
	id, where := b.cfg.ID, b.where()
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var cert *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("%s: the host %s was not found; check the network and the provider's baseURL", id, dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s: nothing listens at %s; start the model server or correct the provider's baseURL", id, where)
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &cert):
		return fmt.Sprintf("%s: the certificate of %s is not trusted; a proxy may be in between (SSL_CERT_FILE names its CA)", id, where)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("%s: %s did not answer in time", id, where)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return fmt.Sprintf("%s: %s closed the connection without an answer", id, where)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the URL, which may hold a key
	}
	return fmt.Sprintf("%s: no connection to %s: %v", id, where, err)
}

// where names the server without what may be secret in its URL.
func (b *base) where() string {
	if b.cfg.BaseURL == "" {
		return "the provider's server"
	}
	return redactURL(b.cfg.BaseURL)
}

// classify decides the kind and finds the words.
func (b *base) classify(model string, f *apiFailure) *Error {
	e := &Error{Status: f.status, RetryAfter: max(f.delay, retryAfter(f.header, time.Now()))}
	e.RetryAfter = min(e.RetryAfter, maxRetryAfter)
	e.Kind = failureKind(f)
	id, said := b.cfg.ID, shorten(f.message)
	if said != "" {
		said = ": " + said
	}
	name := model
	if name == "" {
		name = "the model"
	}
	switch e.Kind {
	case ErrAuth:
		if b.cfg.Key == "" && b.cfg.Token == "" {
			e.Message = fmt.Sprintf("%s wants an API key%s; run \"pillion auth login %s\"%s", id, said, id, b.keyVariable("or set "))
		} else {
			e.Message = fmt.Sprintf("%s refused the API key%s; run \"pillion auth login %s\"%s", id, said, id, b.keyVariable("or correct "))
		}
		if f.status == http.StatusForbidden {
			e.Message = fmt.Sprintf("%s does not allow this key to use %s%s; check the key's rights and region, or choose another model", id, name, said)
		}
	case ErrNotFound:
		e.Message = fmt.Sprintf("%s does not know the model %s%s; \"pillion models %s\" lists what there is; if the model is right, check the provider's baseURL", id, name, said, id)
	case ErrRateLimit:
		e.Message = fmt.Sprintf("%s limits the rate of requests%s", id, said)
		if e.RetryAfter > 0 {
			e.Message += fmt.Sprintf("; it asks to wait %s", e.RetryAfter.Round(time.Second))
		}
	case ErrOverloaded:
		e.Message = fmt.Sprintf("%s is overloaded%s", id, said)
	case ErrServer:
		e.Message = fmt.Sprintf("%s failed%s%s", id, statusText(f.status), said)
	case ErrNetwork:
		e.Message = fmt.Sprintf("%s timed out%s", id, said)
	case ErrQuota:
		e.Message = fmt.Sprintf("%s: no credit left%s; add credit or choose another model", id, said)
	case ErrContextLength:
		e.Message = fmt.Sprintf("the conversation is too long for %s%s; compact it (/compact) or choose a model with a larger context", name, said)
	default:
		e.Message = fmt.Sprintf("%s refused the request%s%s", id, statusText(f.status), said)
		if containsWord(strings.ToLower(f.message), "tools") && strings.Contains(f.message, "support") {
			e.Message += "; the model cannot use tools, choose one that can"
		}
	}
	return e
}

func statusText(status int) string {
	if status == 0 {
		return ""
	}
	return fmt.Sprintf(" (HTTP %d)", status)
}

// keyVariable names the environment variable of the well-known providers.
func (b *base) keyVariable(before string) string {
	switch b.cfg.Kind {
	case KindAnthropic:
		return " " + before + "ANTHROPIC_API_KEY"
	case KindOpenAI, KindResponses:
		return " " + before + "OPENAI_API_KEY"
	case KindGemini:
		return " " + before + "GEMINI_API_KEY"
	}
	return " " + before + "the provider's key in pillion.jsonc"
}

func failureKind(f *apiFailure) ErrorKind {
	if code, err := strconv.Atoi(f.code); err == nil && f.status == 0 && code >= 400 && code < 600 {
		g := *f // a gateway's failure in the stream carries its status as the code
		g.status, g.code = code, ""
		return failureKind(&g)
	}
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
		!(strings.Contains(words, "resource_exhausted") && f.delay > 0):
		return ErrQuota
	case f.status == http.StatusPaymentRequired:
		return ErrQuota
	case f.status != http.StatusForbidden && f.status != http.StatusNotFound && tooLong(text, words):
		return ErrContextLength
	case has("api key not valid", "api_key_invalid", "invalid_api_key", "invalid api key", "incorrect api key", "authentication_error", "unauthenticated"):
		return ErrAuth
	case f.status == http.StatusForbidden, f.status == 0 && has("permission_error", "permission_denied"):
		return ErrAuth
	case f.status == http.StatusNotFound, has("model_not_found", "not_found_error"):
		return ErrNotFound
	case f.status == http.StatusTooManyRequests, f.status == 0 && has("rate_limit", "resource_exhausted", "too many requests"):
		return ErrRateLimit
	case f.status == http.StatusServiceUnavailable, f.status == 529, has("overloaded", "slow_down", "engine is currently overloaded", "unavailable") && f.status != http.StatusBadRequest:
		return ErrOverloaded
	case f.status == http.StatusRequestTimeout, f.status == http.StatusGatewayTimeout:
		return ErrNetwork
	case f.status == http.StatusConflict, f.status == http.StatusTooEarly, f.status >= 500:
		return ErrServer
	case f.status == 0 && !has("invalid", "bad_request", "bad request", "not supported", "unsupported"):
		return ErrServer // a failure in the middle of an answer that nobody blames on the request
	}
	return ErrInvalid
}

// tooLong recognises a context overflow in the words of the providers and of the usual model servers.
func tooLong(text, words string) bool {
	for _, w := range []string{"context_length_exceeded", "request_too_large", "exceed_context_size", "context_window_exceeded", "model_max_prompt_tokens_exceeded"} {
		if strings.Contains(words, w) || strings.Contains(text, w) {
			return true
		}
	}
	for _, w := range []string{
		"prompt is too long", "input is too long", "prompt too long", // Anthropic, Bedrock
		"exceed context limit", "exceeds the context window", "exceeds the context limit", // Anthropic, OpenAI Responses
		"maximum context length", "reduce the length of", // OpenAI, vLLM, Groq, Mistral
		"exceeds the maximum number of tokens", "input token count", // Gemini
		"maximum prompt length", "maximum model length", "max_model_len", // xAI, vLLM
		"exceeds the available context size", "context size has been exceeded", // llama.cpp
		"when context the overflows", "context overflow", "greater than the context length", // LM Studio
		"too many tokens", "request too large for", "longer than the model's context", "exceeds context length", "context length exceeded",
	} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// retryAfter reads Retry-After-Ms and Retry-After in seconds or as a date. A date is measured against the
// response's own Date, so a wrong clock on either side does not matter; without one it must be near to be believed.
// The result is at most an hour; 0 stands for nothing asked and for nonsense.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if h == nil {
		return 0
	}
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(s)
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		if sent = now; t.Sub(now) > 10*time.Minute {
			return 0
		}
	}
	return seconds(t.Sub(sent).Seconds())
}

// seconds is a wait of s seconds, bounded.
func seconds(s float64) time.Duration {
	if !(s > 0 && s <= absurdRetryAfter.Seconds()) { // also NaN
		return 0
	}
	return min(time.Duration(s*float64(time.Second)), maxRetryAfter)
}

// shorten makes a provider's message one line of at most 400 characters, and drops web pages.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if strings.HasPrefix(s, "<") {
		return ""
	}
	if r := []rune(s); len(r) > 400 {
		s = string(r[:400]) + "…"
	}
	return strings.TrimRight(s, ". ")
}

// redact removes the configured secrets, and what looks like one, from a text.
func (b *base) redact(s string) string {
	secrets := []string{b.cfg.Key, b.cfg.Token}
	for _, v := range b.cfg.Headers {
		secrets = append(secrets, v, strings.TrimPrefix(v, "Bearer "))
	}
	for _, v := range secrets {
		if len(v) >= 6 {
			s = strings.ReplaceAll(s, v, "[key]")
		}
	}
	return redactTokens(s)
}

// redactTokens removes words that look like keys: providers quote parts of a wrong key back.
func redactTokens(s string) string {
	fields := strings.FieldsFunc(s, func(r rune) bool {
		return !(r == '-' || r == '_' || r == '*' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	for _, f := range fields {
		for _, prefix := range []string{"sk-", "sk_", "gsk_", "xai-", "AIza", "ya29.", "hf_", "r8_", "eyJ", "AQ."} {
			if strings.HasPrefix(f, prefix) && len(f) >= len(prefix)+6 {
				s = strings.ReplaceAll(s, f, "[key]")
			}
		}
		if strings.Contains(f, "****") {
			s = strings.ReplaceAll(s, f, "[key]")
		}
	}
	return s
}

// redactURL is scheme, host and path: user information and the query may be secret.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "an unreadable URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// parseFailure reads a failure's body in any provider's shape:
// {"error":{…}} (all), {"error":"…"} and {"message":"…"}, {"detail":…} (model servers), [{"error":{…}}] (Gemini).
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
	switch {
	case len(top.Error) > 0 && json.Unmarshal(top.Error, &inner) == nil:
		f.message, f.kind, f.code = inner.Message, inner.Type, rawText(inner.Code)
		if f.kind == "" {
			f.kind = inner.Status
		}
		for _, d := range inner.Details {
			if d.Reason != "" {
				f.kind += " " + d.Reason
			}
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

// rawText is a JSON string's value, or the JSON as it is.
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

// failedResponse reads a failure that an SDK left in its response; the SDK has read and replaced the body.
func failedResponse(resp *http.Response) *apiFailure {
	var body []byte
	if resp.Body != nil {
		body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	}
	return parseFailure(resp.StatusCode, resp.Header, body)
}

// boundErrorBody keeps an SDK, which reads a failure's body whole, from reading without end.
func boundErrorBody(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	resp, err := next(req)
	if err == nil && resp.StatusCode >= 400 {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
	}
	return resp, err
}
