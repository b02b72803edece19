package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/awsauth"
	"github.com/pillion-dev/pillion/agent/provider/gcpauth"
	"github.com/pillion-dev/pillion/tools/guard"
)

// Kind is a wire format.
type Kind string

// The wire formats. Compatible is Chat Completions as servers other than OpenAI's speak it.
const (
	KindAnthropic  Kind = "anthropic"
	KindOpenAI     Kind = "openai"    // Chat Completions at OpenAI
	KindResponses  Kind = "responses" // OpenAI's Responses API
	KindGemini     Kind = "gemini"
	KindCompatible Kind = "openai-compatible"
)

// Kinds are all wire formats, in the order in which a person would list them.
func Kinds() []Kind {
	return []Kind{KindAnthropic, KindOpenAI, KindResponses, KindGemini, KindCompatible}
}

// Config describes one provider. New keeps it; nothing in it is read from the environment.
type Config struct {
	ID      string // the configuration's provider id, for messages; empty: the Kind
	Kind    Kind
	BaseURL string            // empty: the provider's own; required for KindCompatible
	Key     string            // may be empty for a local server or with Token or Headers
	KeyFrom string            // where the key comes from or was looked for (a variable, file:line:column), for messages
	Token   string            // bearer token instead of a key (ANTHROPIC_AUTH_TOKEN, gateways)
	Account string            // tells settings apart that differ in HTTPClient only: whose account it uses
	Headers map[string]string // sent with every request; they replace our own, such as a key's
	Query   map[string]string // added to the address of every request (KindOpenAI, KindResponses, KindCompatible)
	Cloud   Cloud             // whose way of signing in and of addressing models it takes; empty: the format's own
	Version string            // with CloudAzure: the api-version of deployments; empty: the v1 API, which has none
	Region  string            // with CloudBedrock; with CloudVertex the location, global when empty
	Project string            // with CloudVertex
	Quirks  Quirks

	// Reason says which setting gave the address, key or headers; requests pass the gate with it.
	// The gate refuses a connection whose setting comes from a folder that is not trusted.
	Reason guard.Reason

	HTTPClient *http.Client // nil: connections are shared by all providers
	// Idle is how long a stream may say nothing before it is closed; 0: 5 minutes. First is how long its first byte may take; 0: twice
	// Idle, since a local model may read a long prompt before it answers.
	Idle, First time.Duration
}

// Cloud is a place that serves a maker's models under its own terms.
type Cloud string

// The clouds: Azure OpenAI (KindOpenAI, KindResponses), Amazon Bedrock (all kinds but KindGemini) and Google Vertex (KindAnthropic,
// KindGemini, KindCompatible), whose formats depend on the model: see KindOf.
const (
	CloudAzure   Cloud = "azure"
	CloudBedrock Cloud = "bedrock"
	CloudVertex  Cloud = "google-vertex"
)

// Quirks are what an OpenAI-compatible server does differently. With the zero value the adapter finds out by itself: a parameter that the
// server refuses by name is left out from then on, and a conversation that its chat template refuses is sent in another shape. Setting a
// quirk in the configuration saves the one refused request by which the adapter learns it.
type Quirks struct {
	NoStreamUsage   bool   // refuses stream_options
	NoStream        bool   // the answer is asked for in one piece
	NoParallelCalls bool   // one tool call an answer: parallel_tool_calls:false is sent, and a history is told so
	AlternateRoles  bool   // user and assistant must take turns
	SystemRole      string // "system" when empty; "developer", or "user": the words go before the first request
	MaxTokensField  string // max_tokens or max_completion_tokens; empty: by kind
	ReturnReasoning bool   // wants reasoning_content back with an assistant's tool calls (DeepSeek, Kimi: known by name)
	ShortCallIDs    bool   // call ids of nine letters and digits (Mistral: known by name)
	NoCache         bool   // Anthropic format without cache_control
}

// New makes a provider. It builds nothing and connects to nothing before the first Stream, and is cheap enough to
// call for every configured provider. The result may be used from several goroutines.
func New(cfg Config) (Provider, error) {
	if cfg.ID == "" {
		cfg.ID = string(cfg.Kind)
	}
	if cfg.BaseURL != "" {
		// Parse accepts almost any text; a host and a scheme are what a request needs.
		u, err := url.Parse(cfg.BaseURL)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("provider %s: baseURL %q is not an http(s) URL; write it as https://host/v1", cfg.ID, redactURL(cfg.BaseURL))
		}
	}
	if cfg.Idle <= 0 {
		// Thinking models may be silent for minutes.
		cfg.Idle = 5 * time.Minute
	}
	if cfg.First <= 0 {
		cfg.First = 2 * cfg.Idle
	}
	aws := sync.OnceValue(func() *awsauth.Chain {
		return &awsauth.Chain{Client: (&base{cfg: cfg}).httpClient(), Reason: cfg.Reason}
	})
	gcp := sync.OnceValue(func() *gcpauth.Source {
		return &gcpauth.Source{Client: (&base{cfg: cfg}).httpClient(), Reason: cfg.Reason}
	})
	// The same for each kind: a section of the configuration may name any kind for any cloud.
	common := func() base { return base{cfg: cfg, aws: aws, gcp: gcp} }
	switch cfg.Kind {
	case KindAnthropic:
		return &anthropicProvider{common()}, nil
	case KindOpenAI:
		return &chatProvider{common()}, nil
	case KindCompatible:
		if cfg.BaseURL == "" && cfg.Cloud == "" {
			return nil, fmt.Errorf("provider %s: an OpenAI-compatible provider needs a baseURL, for example http://localhost:11434/v1", cfg.ID)
		}
		return &chatProvider{common()}, nil
	case KindResponses:
		return &responsesProvider{common()}, nil
	case KindGemini:
		return &geminiProvider{common()}, nil
	}
	names := make([]string, 0, 5)
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return nil, fmt.Errorf("provider %s: unknown kind %q; use one of %s", cfg.ID, cfg.Kind, strings.Join(names, ", "))
}

// base is the part that all adapters share: the configuration, the encodings and what a server has refused.
type base struct {
	// cfg is never changed after New, so it is read without a lock.
	cfg   Config
	cache cache
	// aws finds the credentials for requests to Bedrock that have no key.
	aws func() *awsauth.Chain
	// gcp finds the token for requests to Vertex that have none.
	gcp func() *gcpauth.Source

	mu sync.Mutex
	// dropped are the parameters that servers refused, by model. They are kept for the life of the process only, so that an updated
	// server is asked again after the next start.
	dropped map[string][]string // guarded by mu
}

// Forget implements Forgetter.
func (b *base) Forget(session string) { b.cache.forget(session) }

// refused returns the parameters that this model's server has refused so far. It is a copy: another request may add one meanwhile.
func (b *base) refused(model string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.dropped[model])
}

// noteRefused notes a refused parameter. It reports false when the parameter was known already, which ends the retries of attempt. model
// is part of the key because two models behind one gateway accept different parameters.
func (b *base) noteRefused(model, param string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.dropped[model], param) {
		return false
	}
	if b.dropped == nil {
		b.dropped = map[string][]string{}
	}
	b.dropped[model] = append(b.dropped[model], param)
	return true
}

// httpClient is the configured client, or one over the connections that all providers share. It has no time-out of its own, because a
// stream may take long; run closes a stream that stays silent.
func (b *base) httpClient() *http.Client {
	r := b.cfg.Reason
	r.Who = guard.Model
	if b.cfg.HTTPClient != nil {
		own := *b.cfg.HTTPClient
		if own.Transport == nil {
			own.Transport = guard.Gate(r, sharedTransport())
		}
		return &own
	}
	return &http.Client{
		Transport: guard.Gate(r, sharedTransport()),
		// A key must not follow a redirect to another host: net/http drops only the headers that it knows as secret, such as
		// Authorization, and keys travel in x-api-key, api-key and x-goog-api-key as well. Five redirects within one host are enough for
		// a path that moved.
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme || len(via) > 5 {
				return errRedirect
			}
			return nil
		},
	}
}

// sharedTransport keeps the connections of all providers, so that a step does not pay for a TLS handshake. One host gets up to 16 idle
// connections, for sessions that run side by side.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	return unpacking{guard.Transport(guard.Reason{Who: guard.Model}, guard.Network{Timeout: 15 * time.Second, Tune: func(t *http.Transport) {
		// ExpectContinueTimeout 0: the body is sent at once, without waiting for "100 Continue".
		t.MaxIdleConns, t.MaxIdleConnsPerHost, t.ExpectContinueTimeout = 64, 16, 0
		t.TLSHandshakeTimeout = 15 * time.Second
		t.WriteBufferSize, t.ReadBufferSize = 64<<10, 32<<10
		t.DisableCompression = true // a proxy that compresses collects events before it sends them
	}})}
})

var errRedirect = errors.New("the server redirects to another address; if that address is right, set the provider's baseURL to it")

// attempt calls stream, and calls it again without a parameter that the server refused by name and the request can do without. stream is
// told what to leave out and returns the optional parameters that it sent. A refused request has emitted nothing, so the caller sees one
// stream.
func (b *base) attempt(ctx context.Context, model string, stream func(without []string) (sent []string, err error)) error {
	// The loop ends: each round notes a parameter that was not known yet, and sent is finite.
	for {
		sent, err := stream(b.refused(model))
		e, ok := err.(*Error)
		// Some servers answer with 500 when their chat template fails, so those are looked at too: shape is set by the words of a
		// template.
		if !ok || e.Kind != ErrInvalid && e.Status != http.StatusInternalServerError || ctx.Err() != nil {
			return err
		}
		// A shape is listed in sent only by an adapter that can send another one.
		param := e.shape
		if !slices.Contains(sent, param) {
			param = ""
		}
		// Whole words are compared: "max_tokens" must not be found in "max_completion_tokens". The first match wins, so adapters list a
		// narrower parameter first.
		for _, p := range sent {
			if param == "" && e.Kind == ErrInvalid && refusesParameter(e.Message) && containsWord(e.Message, p) {
				param = p
			}
		}
		if param == "" || !b.noteRefused(model, param) {
			return err
		}
		// What was encoded may contain the parameter or have the old shape.
		b.cache.reset()
	}
}

// refusesParameter tells a refusal of a parameter from a complaint that only mentions one ("temperature must be below 2"). No format has
// a code for it, so the words are those that providers use.
func refusesParameter(message string) bool {
	m := strings.ToLower(message)
	for _, w := range []string{"support", "recognized", "unknown", "unexpected", "not permitted", "not allowed", "cannot", "deprecated", "invalid", "must be verified", "extra", "additional propert"} {
		if strings.Contains(m, w) {
			return true
		}
	}
	return false
}

// containsWord reports whether s has w with no letter, digit or underscore on either side.
func containsWord(s, w string) bool {
	for i := 0; ; {
		j := strings.Index(s[i:], w)
		if j < 0 {
			return false
		}
		i += j
		before := i == 0 || !wordByte(s[i-1])
		after := i+len(w) == len(s) || !wordByte(s[i+len(w)])
		if before && after {
			return true
		}
		i += len(w)
	}
}

// wordByte reports a letter, a digit or an underscore of ASCII.
func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
