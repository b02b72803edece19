package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// result is a stream put together the way the loop does it.
type result struct {
	Text, Thinking, Signature string
	Calls                     []provider.Part
	Deltas                    map[int]string
	Usage                     provider.Usage
	Stop                      provider.StopReason
	Events                    []provider.Event
}

func (r *result) add(e provider.Event) error {
	r.Events = append(r.Events, e)
	switch e.Type {
	case provider.EventText:
		r.Text += e.Text
	case provider.EventThinking:
		r.Thinking += e.Text
		if e.Signature != "" {
			r.Signature = e.Signature
		}
	case provider.EventToolDelta:
		if r.Deltas == nil {
			r.Deltas = map[int]string{}
		}
		r.Deltas[e.Index] += e.Text
	case provider.EventToolEnd:
		r.Calls = append(r.Calls, provider.Part{Type: provider.PartToolCall, CallID: e.CallID, Name: e.Name, Input: json.RawMessage(e.Text), Signature: e.Signature})
	case provider.EventUsage:
		r.Usage = e.Usage
	case provider.EventStop:
		r.Stop = e.Stop
	}
	return nil
}

// kinds with the wiretest URL that serves them.
var kinds = []provider.Kind{provider.KindAnthropic, provider.KindOpenAI, provider.KindCompatible, provider.KindResponses, provider.KindGemini}

const secret = "sk-test-0123456789abcdef"

func newProvider(t testing.TB, kind provider.Kind, srv *wiretest.Server) provider.Provider {
	t.Helper()
	url := srv.OpenAIURL()
	switch kind {
	case provider.KindAnthropic:
		url = srv.AnthropicURL()
	case provider.KindGemini:
		url = srv.GeminiURL()
	}
	p, err := provider.New(provider.Config{ID: "test", Kind: kind, BaseURL: url, Key: secret})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func user(text string) []provider.Message {
	return []provider.Message{{ID: "m1", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: text}}}}
}

func stream(t testing.TB, p provider.Provider, req *provider.Request) (*result, error) {
	t.Helper()
	r := &result{}
	err := p.Stream(t.Context(), req, r.add)
	return r, err
}

func kindOf(err error) provider.ErrorKind {
	var e *provider.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

var readTool = provider.ToolSpec{Name: "read", Description: "reads", Parameters: json.RawMessage(`{"type":"object","properties":{"filePath":{"type":"string"}},"required":["filePath"]}`)}

func TestEveryKindStreamsTextThinkingParallelCallsAndUsage(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := wiretest.New(t, wiretest.Step{
				Thinking: "let me see what there is", Text: "Grüße, \"quoted\"\n\tand more\u2028.", Chunk: 3,
				Calls: []wiretest.Call{
					{ID: "a1", Name: "read", Input: json.RawMessage(`{"filePath":"a.go"}`)},
					{ID: "b2", Name: "read", Input: json.RawMessage(`{"filePath":"b.go"}`)}},
				Usage: &wiretest.Usage{Input: 100, Output: 20, CacheRead: 7},
			})
			p := newProvider(t, kind, srv)
			r, err := stream(t, p, &provider.Request{Model: provider.Model{Provider: "test", ID: "m-1"}, System: []string{"sys"}, Messages: user("hi"), Tools: []provider.ToolSpec{readTool}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Text != "Grüße, \"quoted\"\n\tand more\u2028." || r.Thinking != "let me see what there is" {
				t.Errorf("text %q thinking %q", r.Text, r.Thinking)
			}
			if len(r.Calls) != 2 || r.Calls[0].CallID != "a1" && kind != provider.KindGemini || string(r.Calls[1].Input) != `{"filePath":"b.go"}` || r.Calls[0].CallID == r.Calls[1].CallID {
				t.Errorf("calls %+v", r.Calls)
			}
			for i, c := range r.Calls {
				if r.Deltas[i] != string(c.Input) {
					t.Errorf("the deltas of call %d are %q, the whole is %q", i, r.Deltas[i], c.Input)
				}
			}
			if want := (provider.Usage{Input: 100, Output: 20, CacheRead: 7}); r.Usage != want {
				t.Errorf("usage %+v", r.Usage)
			}
			if r.Stop != provider.StopTools || r.Events[len(r.Events)-1].Type != provider.EventStop {
				t.Errorf("stop %q", r.Stop)
			}
			req := srv.Requests()[0]
			if got := req.ToolNames(); !reflect.DeepEqual(got, []string{"read"}) {
				t.Errorf("tools %v", got)
			}
			m := req.Messages()
			if len(m) != 2 || m[0].Text != "sys" || m[1].Text != "hi" || req.Model() != "m-1" {
				t.Errorf("messages %+v", m)
			}
		})
	}
}

func TestCancelEndsAStreamAtOnce(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := wiretest.New(t, wiretest.Step{Text: "begin", Hang: true})
			p := newProvider(t, kind, srv)
			ctx, cancel := context.WithCancel(t.Context())
			err := p.Stream(ctx, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}, func(e provider.Event) error {
				if e.Type == provider.EventText {
					cancel()
				}
				return nil
			})
			if kindOf(err) != provider.ErrCanceled || !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestEmitsErrorComesBackAsItIs(t *testing.T) {
	mine := errors.New("mine")
	for _, kind := range kinds {
		srv := wiretest.New(t, wiretest.Step{Text: "hello"})
		p := newProvider(t, kind, srv)
		err := p.Stream(t.Context(), &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}, func(provider.Event) error { return mine })
		if err != mine {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestAWrongKeyIsNamedNeitherInTheTextNorBelowIt(t *testing.T) {
	for _, kind := range kinds {
		srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 401, Message: "Incorrect API key provided: " + secret + " (sk-te***cdef)"}})
		p := newProvider(t, kind, srv)
		_, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")})
		if kindOf(err) != provider.ErrAuth {
			t.Errorf("%s: %v", kind, err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), secret) || strings.Contains(e.Error(), "cdef") {
				t.Errorf("%s: the key is in %q", kind, e)
			}
		}
		if !regexp.MustCompile(`correct (\w+_API_KEY|provider\.test\.key in pillion\.jsonc)`).MatchString(err.Error()) {
			t.Errorf("%s: no next step in %q", kind, err)
		}
	}
}
