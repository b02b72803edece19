package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

func TestAddressesAreKeptAsTheyAreWritten(t *testing.T) {
	tests := map[string]struct {
		cfg         provider.Config
		at, model   string // at is what follows the server's address in the base URL
		path, query string // as they are sent
	}{
		"an address in the path":  {provider.Config{Kind: provider.KindCompatible}, "/https://api.x/v1/", "m", "/https://api.x/v1/chat/completions", ""},
		"an escaped path":         {provider.Config{Kind: provider.KindCompatible}, "/a%2Fb", "m", "/a%2Fb/chat/completions", ""},
		"a query":                 {provider.Config{Kind: provider.KindResponses, Query: map[string]string{"a": "2"}}, "/v1?a=1&tenant=x", "m", "/v1/responses", "a=2&tenant=x"},
		"anthropic with /v1":      {provider.Config{Kind: provider.KindAnthropic}, "/gw/v1/", "m", "/gw/v1/messages", ""},
		"anthropic with a query":  {provider.Config{Kind: provider.KindAnthropic}, "/gw?tenant=x", "m", "/gw/v1/messages", "tenant=x"},
		"gemini with its version": {provider.Config{Kind: provider.KindGemini}, "/gw/v1beta/", "m", "/gw/v1beta/models/m:streamGenerateContent", "alt=sse"},
		"gemini, a tuned model":   {provider.Config{Kind: provider.KindGemini}, "", "tunedModels/m", "/v1beta/tunedModels/m:streamGenerateContent", "alt=sse"},
		"gemini, an odd model":    {provider.Config{Kind: provider.KindGemini}, "", "a/../b?c", "/v1beta/models/a%2F..%2Fb%3Fc:streamGenerateContent", "alt=sse"},
		"azure, an odd name":      {provider.Config{Kind: provider.KindOpenAI, Cloud: provider.CloudAzure, Version: "1"}, "/gw", "..", "/gw/openai/deployments/%2E%2E/chat/completions", "api-version=1"},
		"azure, responses":        {provider.Config{Kind: provider.KindResponses, Cloud: provider.CloudAzure, Version: "1", Query: map[string]string{"api-version": "2"}}, "", "m", "/openai/responses", "api-version=2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			asked := ""
			srv := wiretest.New(t, wiretest.Step{Text: "hi"})
			tt.cfg.BaseURL = srv.URL + tt.at
			tt.cfg.HTTPClient = &http.Client{Transport: tripper(func(q *http.Request) (*http.Response, error) {
				asked = q.URL.EscapedPath() + " " + q.URL.RawQuery
				return http.DefaultTransport.RoundTrip(q)
			})}
			p, err := provider.New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			r, err := stream(t, p, &provider.Request{Model: provider.Model{ID: tt.model}, Messages: user("hi")})
			if err != nil || r.Text != "hi" || asked != tt.path+" "+tt.query {
				t.Errorf("%v %v: %s, want %s %s", r, err, asked, tt.path, tt.query)
			}
		})
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// What is nearer to the person wins: the request's headers (a plugin's) over the model's over the configuration's over ours.
func TestNearerHeadersWin(t *testing.T) {
	for kind, key := range map[provider.Kind]string{provider.KindAnthropic: "X-Api-Key", provider.KindOpenAI: "Authorization", provider.KindGemini: "X-Goog-Api-Key"} {
		srv := wiretest.New(t, wiretest.Step{Text: "hi"})
		p, err := provider.New(provider.Config{Kind: kind, BaseURL: srv.URL + "/v1", Key: secret, Headers: map[string]string{key: "own", "User-Agent": "me", "X-A": "1", "X-B": "1", "Anthropic-Beta": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream(t, p, &provider.Request{
			Model: provider.Model{ID: "claude-3-7", Headers: map[string]string{"x-a": "2", "x-b": "2"}}, Headers: map[string]string{"x-b": "3"},
			Messages: user("hi"), Effort: "low", Tools: []provider.ToolSpec{{Name: "read", Parameters: []byte(`{"type":"object"}`)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		h := srv.Requests()[0].Header
		if got := strings.Join([]string{h.Get(key), h.Get("User-Agent"), h.Get("X-A"), h.Get("X-B"), h.Get("Anthropic-Beta")}, " "); got != "own me 2 3 a" {
			t.Errorf("%s: %s", kind, got)
		}
		for name := range h {
			if strings.HasPrefix(name, "X-Stainless") || strings.Contains(h.Get(name), secret) {
				t.Errorf("%s sends %s: %s", kind, name, h.Get(name))
			}
		}
	}
}

func TestAKeyForAzureIsNotSentInTheClear(t *testing.T) {
	sent := false
	p, err := provider.New(provider.Config{Kind: provider.KindOpenAI, Cloud: provider.CloudAzure, Version: "1", Key: secret, BaseURL: "http://x.openai.azure.com", HTTPClient: &http.Client{Transport: tripper(func(*http.Request) (*http.Response, error) {
		sent = true
		return nil, http.ErrServerClosed
	})}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")})
	if kindOf(err) != provider.ErrInvalid || !strings.Contains(err.Error(), "https") || sent {
		t.Errorf("%v, sent: %v", err, sent)
	}
}

// A redirect without a target is a failure of the server and not an answer.
func TestARedirectToNowhereIsAFailure(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: http.StatusFound, Message: "moved"}})
	p, err := provider.New(provider.Config{Kind: provider.KindOpenAI, BaseURL: srv.OpenAIURL(), Key: secret})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")})
	if kindOf(err) != provider.ErrInvalid || !strings.Contains(err.Error(), "302") {
		t.Errorf("%v", err)
	}
}
