// Package wiretest is a scripted model: a local HTTP server that answers in the providers' own wire formats
// (Anthropic Messages, OpenAI Chat Completions, OpenAI Responses, Gemini), chosen by the path of the request. It is
// the loop's test partner, and small enough to take the place of a model in end-to-end tests. It knows nothing of Pillion.
//
//	srv := wiretest.New(t,
//		wiretest.Step{Calls: []wiretest.Call{{Name: "read", Input: json.RawMessage(`{"filePath":"a.go"}`)}}},
//		wiretest.Step{Text: "Done."})
//	p, err := provider.New(provider.Config{Kind: provider.KindOpenAI, BaseURL: srv.OpenAIURL(), Key: "test"})
//
// Each request takes the next step. Steps with When wait for a request that contains that text.
package wiretest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Step is one answer. The zero Step is an empty answer that ends well. The JSON names are those of ParseScript; a field without one can
// only be set in Go.
type Step struct {
	// When, if set, keeps the step for a request whose body contains this text.
	When string `json:"when,omitempty"`

	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"` // of the thinking; made up when empty
	Text      string `json:"text,omitempty"`
	Calls     []Call `json:"calls,omitempty"`

	// Stop is end_turn, tool_use, max_tokens or refusal; empty: tool_use with Calls, else end_turn.
	Stop  string `json:"stop,omitempty"`
	Usage *Usage `json:"usage,omitempty"` // made up when nil

	// Chunk is how many characters a delta carries; 0: 16. Negative: everything in one delta.
	Chunk int `json:"chunk,omitempty"`
	// Deltas are the text's pieces, instead of Text and Chunk.
	Deltas []string `json:"deltas,omitempty"`
	// Burst writes without a flush after each event.
	Burst bool `json:"burst,omitempty"`

	// Error answers with a failure: instead of a stream, or in the stream after Text when InStream is set.
	Error *Error `json:"error,omitempty"`
	// Cut ends the connection after that many bytes of the body; a negative Cut ends it before the closing events.
	Cut int `json:"cut,omitempty"`
	// CutClean makes the cut look like a regular end of the response.
	CutClean bool `json:"cutClean,omitempty"`
	// Raw is sent as the body, as it is, instead of everything above.
	Raw string `json:"raw,omitempty"`
	// Extra is appended to the body after its end, as it is.
	Extra string `json:"extra,omitempty"`

	// DelayMS waits that many milliseconds before the answer, for scripts in a file. Tests in Go use Wait, which needs no guess of a
	// duration.
	DelayMS int `json:"delayMs,omitempty"`
	// Hang keeps the stream open after its content, until the client goes away.
	Hang bool `json:"hang,omitempty"`
	// Wait is received from (or closed) before the answer's first byte.
	Wait <-chan struct{} `json:"-"`
	// Pause is received from (or closed) between the content and the closing events.
	Pause <-chan struct{} `json:"-"`
	// Do runs when the request has been read, before Wait.
	Do func(Request) `json:"-"`
}

// Call is a tool call.
type Call struct {
	ID    string          `json:"id,omitempty"` // made up when empty: call_1, call_2 … over the server's life
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input,omitempty"`
	// RawInput is sent as the arguments as it is, for arguments that are not JSON.
	RawInput  string `json:"rawInput,omitempty"`
	Signature string `json:"signature,omitempty"` // Gemini's thoughtSignature
}

// args are the arguments as they are sent: RawInput where a test needs broken JSON. Every format wants an empty object from a call
// without arguments.
func (c Call) args() string {
	if c.RawInput != "" {
		return c.RawInput
	}
	if len(c.Input) == 0 {
		return "{}"
	}
	return string(c.Input)
}

// Usage in tokens, with OpenAI's and Gemini's sums made from these.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	Reasoning  int `json:"reasoning,omitempty"`
	CacheRead  int `json:"cacheRead,omitempty"`
	CacheWrite int `json:"cacheWrite,omitempty"`
}

// Error is an HTTP failure in the provider's shape. Status 0 is none that a server can send, so it stands for 500.
type Error struct {
	Status     int               `json:"status,omitempty"` // 0: 500
	Type       string            `json:"type,omitempty"`   // made from the status when empty
	Code       string            `json:"code,omitempty"`   // OpenAI's error.code
	Message    string            `json:"message,omitempty"`
	RetryAfter string            `json:"retryAfter,omitempty"` // the header, as it is
	Headers    map[string]string `json:"headers,omitempty"`
	Body       string            `json:"body,omitempty"` // instead of the provider's shape
	InStream   bool              `json:"inStream,omitempty"`
}

// Server is a scripted model. Its methods may be called from any goroutine.
type Server struct {
	URL string // http://127.0.0.1:port, what Anthropic and Gemini clients take as base URL

	// Repeat answers with the last step again when the script has run out, instead of an error.
	Repeat bool
	// Models are the ids GET /v1/models and /api/tags list.
	Models []string

	// http, ln and done are set by Listen. ServeHTTP runs in many goroutines, which change only what is below mu.
	http *http.Server
	ln   net.Listener
	done chan struct{}

	mu       sync.Mutex // guards what follows
	steps    []Step
	requests []Request
	calls    int
	arrived  chan struct{} // closed and replaced at each request
	failures []string
}

// TB is what New needs of a testing.TB. It is an interface so that programs that use Start do not link package testing.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// New starts a server that lives as long as the test. A request beyond the script fails the test.
func New(t TB, steps ...Step) *Server {
	t.Helper()
	s, err := Start(steps...)
	if err != nil {
		t.Fatalf("wiretest: %v", err)
		return nil
	}
	// Failures are reported at the end, because requests are answered in other goroutines than the test's.
	t.Cleanup(func() {
		_ = s.Close()
		for _, f := range s.Failures() {
			t.Errorf("%s", f)
		}
	})
	return s
}

// Start starts a server on a free local port. Close ends it.
func Start(steps ...Step) (*Server, error) { return Listen("127.0.0.1:0", steps...) }

// Listen is Start on a given address.
func Listen(addr string, steps ...Step) (*Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + ln.Addr().String(), Models: []string{"scripted"},
		ln: ln, done: make(chan struct{}), steps: steps, arrived: make(chan struct{}),
	}
	// A client that never finishes its headers is dropped.
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(ln)
	}()
	return s, nil
}

// Close ends the server and every open stream. Streams that hang end too, because their contexts do.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

// OpenAIURL is the base URL for Chat Completions and Responses.
func (s *Server) OpenAIURL() string { return s.URL + "/v1" }

// AnthropicURL is the base URL for Anthropic's SDKs.
func (s *Server) AnthropicURL() string { return s.URL }

// GeminiURL is the base URL for Google's SDKs.
func (s *Server) GeminiURL() string { return s.URL }

// Add appends to the script.
func (s *Server) Add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
}

// Drop forgets the remaining steps: a turn that was ended early never asks for them.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = nil
}

// Left is how many steps were not used. A test that ends with steps left has a turn that ended early.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps)
}

// Requests are the model requests received so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Await returns the n-th model request, counted from 1, as soon as it has arrived. It does not poll: each request closes and replaces
// arrived.
func (s *Server) Await(ctx context.Context, n int) (Request, error) {
	for {
		s.mu.Lock()
		have, next := len(s.requests), s.arrived
		if have >= n {
			defer s.mu.Unlock()
			return s.requests[n-1], nil
		}
		s.mu.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("wiretest: %d of %d requests arrived: %w", have, n, ctx.Err())
		}
	}
}

// Failures are the requests the script had no step for.
func (s *Server) Failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.failures...)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		s.serveModels(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	format := formatOf(r.URL.Path)
	if format == "" {
		http.Error(w, `{"error":{"message":"wiretest: no such path"}}`, http.StatusNotFound)
		return
	}
	// A copy of the headers, because a test reads the request after the handler has ended.
	req := Request{Format: format, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body, Time: time.Now()}
	step, n, ok := s.take(req)
	// A test sees this text as the model's failure; New also fails the test.
	if !ok {
		writeError(w, format, Error{Status: 400, Message: fmt.Sprintf("wiretest: the script has no step for request %d", n)})
		return
	}
	if step.Do != nil {
		step.Do(req)
	}
	if step.DelayMS > 0 {
		select {
		case <-time.After(time.Duration(step.DelayMS) * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
	if step.Wait != nil {
		select {
		case <-step.Wait:
		case <-r.Context().Done():
			return
		}
	}
	if step.Error != nil && !step.Error.InStream {
		writeError(w, format, *step.Error)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	out := &stream{w: w, ctx: r.Context(), step: step, model: req.Model(), n: n, limit: -1}
	if step.Cut > 0 {
		out.limit = step.Cut
	}
	defer func() {
		// After cleanEnd the response ends as usual.
		if v := recover(); v != nil && v != (cleanEnd{}) {
			panic(v) // http.ErrAbortHandler: net/http drops the connection
		}
	}()
	if step.Raw != "" {
		out.write(step.Raw)
		out.end()
	} else {
		writers[format](out)
	}
	// After the regular end, as from a server that keeps sending.
	out.write(step.Extra)
	out.flush()
}

// take returns the first step that fits the request, and the request's number, counted from 1. A request without a step is a failure of
// the test, which New reports.
func (s *Server) take(req Request) (step Step, n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	n = len(s.requests)
	close(s.arrived)
	s.arrived = make(chan struct{})
	for i, st := range s.steps {
		if st.When != "" && !strings.Contains(string(req.Body), st.When) {
			continue
		}
		if !s.Repeat || i < len(s.steps)-1 {
			// The slice is copied, because the caller may use its script for another server.
			s.steps = append(s.steps[:i:i], s.steps[i+1:]...)
		}
		// The ids are set in a copy, so that a repeated step gets other ids.
		calls := append([]Call(nil), st.Calls...)
		for j := range calls {
			s.calls++
			if calls[j].ID == "" {
				calls[j].ID = fmt.Sprintf("call_%d", s.calls)
			}
		}
		st.Calls = calls
		return st, n, true
	}
	s.failures = append(s.failures, fmt.Sprintf("wiretest: no step for request %d (%s %s)", n, req.Format, req.LastText()))
	return Step{}, n, false
}

// serveModels answers a request for the list of models, in the shape of the format that is asked.
func (s *Server) serveModels(w http.ResponseWriter, r *http.Request) {
	type entry struct {
		ID     string `json:"id,omitempty"`
		Object string `json:"object,omitempty"`
		Name   string `json:"name,omitempty"`
	}
	list := []entry{}
	key := "data"
	switch {
	case strings.HasSuffix(r.URL.Path, "/v1/models"):
		for _, m := range s.Models {
			list = append(list, entry{ID: m, Object: "model"})
		}
	case r.URL.Path == "/api/tags":
		key = "models"
		for _, m := range s.Models {
			list = append(list, entry{Name: m})
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", key: list})
}

// formatOf is the wire format of a request's path; empty for an unknown one. Only the end of the path counts, because a base URL may have
// a path of its own.
func formatOf(path string) Format {
	switch {
	case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, ":streamRawPredict"): // the second: Claude on Vertex
		return Anthropic
	case strings.HasSuffix(path, "/chat/completions"):
		return Chat
	case strings.HasSuffix(path, "/responses"):
		return Responses
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return Gemini
	}
	return ""
}
