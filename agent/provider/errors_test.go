package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFailuresAreSortedByStatusAndWords(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   ErrorKind
	}{
		"anthropic key":          {401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, ErrAuth},
		"gemini key":             {400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, ErrAuth},
		"region":                 {403, `{"error":{"message":"Country, region, or territory not supported","code":"unsupported_country_region_territory"}}`, ErrAuth},
		"model":                  {404, `{"error":{"message":"The model 'x' does not exist","code":"model_not_found"}}`, ErrNotFound},
		"model with 400":         {400, `{"error":{"message":"no","code":"model_not_found"}}`, ErrNotFound},
		"rate":                   {429, `{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}`, ErrRateLimit},
		"openai credit":          {429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, ErrQuota},
		"gemini minute limit":    {429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`, ErrRateLimit},
		"anthropic credit":       {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, ErrQuota},
		"deepseek credit":        {402, `{"error":{"message":"Insufficient Balance"}}`, ErrQuota},
		"anthropic overloaded":   {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ErrOverloaded},
		"overloaded in a stream": {0, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ErrOverloaded},
		"503 without a body":     {503, ``, ErrOverloaded},
		"500":                    {500, `{"error":{"message":"The server had an error"}}`, ErrServer},
		"cloudflare":             {520, `<html>…`, ErrServer},
		"gateway time-out":       {504, `<html>…`, ErrNetwork},
		"time-out":               {408, ``, ErrNetwork},
		"plain refusal":          {400, `{"error":{"message":"messages: at least one message is required"}}`, ErrInvalid},
		"422":                    {422, `{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`, ErrInvalid},

		"anthropic length":           {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, ErrContextLength},
		"anthropic sum":              {400, `{"error":{"message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 20000 > 200000"}}`, ErrContextLength},
		"anthropic bytes":            {413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum allowed number of bytes."}}`, ErrContextLength},
		"openai length":              {400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","code":"context_length_exceeded"}}`, ErrContextLength},
		"responses length":           {0, `{"type":"error","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}`, ErrContextLength},
		"gemini length":              {400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, ErrContextLength},
		"llama.cpp length":           {400, `{"error":{"code":400,"message":"the request exceeds the available context size (4096 tokens)","type":"exceed_context_size_error"}}`, ErrContextLength},
		"vllm length":                {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}`, ErrContextLength},
		"lm studio length":           {400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096"}`, ErrContextLength},
		"kimi length":                {400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072","type":"invalid_request_error"}}`, ErrContextLength},
		"glm length":                 {400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, ErrContextLength},
		"qwen length":                {400, `{"error":{"message":"Range of input length should be [1, 129024]","code":"invalid_parameter_error"}}`, ErrContextLength},
		"minimax length":             {400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)"}}`, ErrContextLength},
		"copilot length":             {400, `{"error":{"message":"prompt token count of 130000 exceeds the limit of 128000"}}`, ErrContextLength},
		"ollama length":              {400, `{"error":"the input length exceeds the context length"}`, ErrContextLength},
		"together length":            {422, "{\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000\"}}", ErrContextLength},
		"a proxy's length":           {413, `<html><h1>413 Request Entity Too Large</h1></html>`, ErrContextLength},
		"groq length":                {413, `{"error":{"message":"Request too large for model. Please reduce the length of the messages or completion.","type":"tokens","code":"rate_limit_exceeded"}}`, ErrContextLength},
		"gateway's code in a stream": {0, `{"error":{"message":"upstream","code":502}}`, ErrServer},
		"unknown in a stream":        {0, `{"error":{"message":"something broke"}}`, ErrServer},
	}
	b := &base{cfg: Config{ID: "prov", Kind: KindCompatible, Key: "k-123456"}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := b.classify("m-1", parseFailure(tt.status, http.Header{}, []byte(tt.body)))
			if e.Kind != tt.want {
				t.Errorf("%s: %s", e.Kind, e.Message)
			}
			if !strings.Contains(e.Message, "prov") && !strings.Contains(e.Message, "m-1") || strings.Contains(e.Message, "<html") {
				t.Errorf("message %q", e.Message)
			}
			if e.Kind == ErrContextLength && strings.Contains(e.Message, "new session") {
				t.Errorf("%q gives advice before the agent has compacted", e.Message)
			}
			if name == "gemini minute limit" && e.RetryAfter != 34500*time.Millisecond {
				t.Errorf("wait %s", e.RetryAfter)
			}
		})
	}
}

func TestRetryAfterIsReadAndBounded(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"none":              {nil, 0},
		"seconds":           {map[string]string{"Retry-After": "7"}, 7 * time.Second},
		"fraction":          {map[string]string{"Retry-After": " 0.5 "}, 500 * time.Millisecond},
		"milliseconds":      {map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, 1500 * time.Millisecond},
		"date":              {map[string]string{"Retry-After": date(20 * time.Second)}, 20 * time.Second},
		"our clock is slow": {map[string]string{"Retry-After": date(time.Hour + 20*time.Second), "Date": date(time.Hour)}, 20 * time.Second},
		"our clock is fast": {map[string]string{"Retry-After": date(-time.Hour + 20*time.Second), "Date": date(-time.Hour)}, 20 * time.Second},
		"past":              {map[string]string{"Retry-After": date(-time.Minute)}, 0},
		"negative":          {map[string]string{"Retry-After": "-3"}, 0},
		"two hours":         {map[string]string{"Retry-After": "7200"}, maxRetryAfter},
		"overflow":          {map[string]string{"Retry-After": "1e300"}, 0},
		"next century":      {map[string]string{"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT", "Date": date(0)}, 0},
		"no Date, far":      {map[string]string{"Retry-After": date(time.Hour)}, 0},
		"not a number":      {map[string]string{"Retry-After": "NaN"}, 0},
		"words":             {map[string]string{"Retry-After": "soon"}, 0},
	}
	for name, tt := range tests {
		h := http.Header{}
		for k, v := range tt.header {
			h.Set(k, v)
		}
		if got := retryAfter(h, now); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestBackoffGrowsJittersAndHonoursTheProvider(t *testing.T) {
	for attempt := -1; attempt < 80; attempt++ {
		most := maxBackoff
		if attempt < 6 {
			most = time.Second << max(0, attempt-1)
		}
		for range 50 {
			if d := Backoff(attempt, nil); d > most || d < most*3/4-time.Millisecond {
				t.Fatalf("attempt %d: %s", attempt, d)
			}
		}
	}
	if d := Backoff(1, &Error{RetryAfter: 50 * time.Second}); d < 50*time.Second || d > 51*time.Second {
		t.Errorf("%s", d)
	}
	if d := Backoff(1, &Error{RetryAfter: 48 * time.Hour}); d > maxRetryAfter+time.Second {
		t.Errorf("%s", d)
	}
	if d := Backoff(5, &Error{RetryAfter: time.Millisecond}); d < 10*time.Second {
		t.Errorf("%s", d)
	}
}

func TestConnectionFailuresSayWhatToDoWithoutTheURLsSecrets(t *testing.T) {
	b := &base{cfg: Config{ID: "prov", BaseURL: "http://joe:hunter22@localhost:1234/v1?key=hunter22", Key: "hunter22"}}
	wrap := func(err error) error { return &url.Error{Op: "Post", URL: b.cfg.BaseURL, Err: err} }
	for want, err := range map[string]error{
		"start the model server": wrap(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
		"was not found":          wrap(&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nohost"}}),
		"did not answer in time": wrap(context.DeadlineExceeded),
		"closed the connection":  wrap(io.EOF),
		"no connection":          wrap(errors.New("weird hunter22")),
	} {
		e := b.fail(context.Background(), "m", err).(*Error)
		if e.Kind != ErrNetwork || !strings.Contains(e.Message, want) || strings.Contains(fmt.Sprintf("%+v", e), "hunter22") && e.Err != nil || strings.Contains(e.Message, "hunter22") {
			t.Errorf("%s: %s", want, e.Message)
		}
	}
}

func TestARefusedKeyIsNamedByItsPlace(t *testing.T) {
	for from, want := range map[string]string{"MY_KEY": "correct MY_KEY", "/p/pillion.jsonc:3:9": "correct the key at /p/pillion.jsonc:3:9", "": "correct provider.prov.key in pillion.jsonc"} {
		b := &base{cfg: Config{ID: "prov", Kind: KindCompatible, Key: "k-123456", KeyFrom: from}}
		if got := b.classify("m", &apiFailure{status: 401}).Message; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", from, got)
		}
	}
}

func TestWhatLooksLikeAKeyIsRemoved(t *testing.T) {
	b := &base{cfg: Config{Headers: map[string]string{"X-Key": "topsecretvalue"}, Token: "tok-abcdef"}}
	in := "wrong sk-proj-abc123def and AIzaSyD1234567 and sk-ab****yz or topsecretvalue, tok-abcdef; task-force and skeleton stay"
	got := b.redact(in)
	if want := "wrong [key] and [key] and [key] or [key], [key]; task-force and skeleton stay"; got != want {
		t.Error(got)
	}
}

func TestRetriableKinds(t *testing.T) {
	for kind, want := range map[ErrorKind]bool{ErrAuth: false, ErrNotFound: false, ErrInvalid: false, ErrRateLimit: true, ErrOverloaded: true, ErrServer: true, ErrNetwork: true, ErrCut: true, ErrContextLength: false, ErrQuota: false, ErrCanceled: false} {
		if (&Error{Kind: kind}).Retriable() != want {
			t.Error(kind)
		}
	}
}
