package wiretest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

var paths = map[Format]string{
	Anthropic: "/v1/messages", Chat: "/v1/chat/completions", Responses: "/v1/responses",
	Gemini: "/v1beta/models/m:streamGenerateContent",
}

func post(t *testing.T, s *Server, f Format, body string) (*http.Response, string, error) {
	t.Helper()
	resp, err := http.Post(s.URL+paths[f], "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func TestEveryFormatStreamsValidJSONEvents(t *testing.T) {
	for f := range paths {
		t.Run(string(f), func(t *testing.T) {
			s := New(t, Step{Thinking: "hm", Text: "a longer text, in several deltas", Calls: []Call{{Name: "read", Input: json.RawMessage(`{"p":1}`)}, {Name: "x", RawInput: `{"broken`}}})
			_, body, err := post(t, s, f, `{"model":"m"}`)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for line := range strings.Lines(body) {
				data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
				if !ok || data == "[DONE]" {
					continue
				}
				n++
				if !json.Valid([]byte(data)) {
					t.Errorf("not JSON: %s", data)
				}
			}
			if n < 6 || !strings.HasSuffix(body, "\n\n") {
				t.Errorf("%d events in %q", n, body)
			}
		})
	}
}

func TestErrorComesInTheProvidersShapeWithRetryAfter(t *testing.T) {
	s := New(t, MustParse(`[{"error":{"status":429,"retryAfter":"7"}}]`)...)
	resp, body, _ := post(t, s, Anthropic, `{}`)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" || !strings.Contains(body, "rate_limit_error") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}

func TestCutAfterBytesAndBeforeTheEnd(t *testing.T) {
	s := New(t, Step{Text: "hello", Cut: 30}, Step{Text: "hello", Cut: -1}, Step{Text: "hello", Cut: -1, CutClean: true})
	_, body, err := post(t, s, Chat, `{}`)
	if len(body) != 30 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	_, body, err = post(t, s, Chat, `{}`)
	if !strings.Contains(body, "hello") || strings.Contains(body, "[DONE]") || err == nil {
		t.Errorf("%q, %v", body, err)
	}
	_, body, err = post(t, s, Chat, `{}`)
	if !strings.Contains(body, "hello") || strings.Contains(body, "[DONE]") || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

func TestWhenKeepsAStepForItsRequest(t *testing.T) {
	s := New(t, Step{When: "title", Text: "T"}, Step{Text: "A"})
	_, body, _ := post(t, s, Chat, `{"messages":[{"role":"user","content":"hi"}]}`)
	if !strings.Contains(body, `"content":"A"`) {
		t.Errorf("got %s", body)
	}
	_, body, _ = post(t, s, Chat, `{"messages":[{"role":"user","content":"make a title"}]}`)
	if !strings.Contains(body, `"content":"T"`) || s.Left() != 0 {
		t.Errorf("got %s", body)
	}
}

func TestARequestBeyondTheScriptIsAFailure(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	resp, _, _ := post(t, s, Chat, `{}`)
	if resp.StatusCode != 400 || len(s.Failures()) != 1 {
		t.Errorf("%d %v", resp.StatusCode, s.Failures())
	}
}

func TestAwaitReturnsAtArrivalAndWaitHoldsTheAnswer(t *testing.T) {
	gate := make(chan struct{})
	s := New(t, Step{Text: "late", Wait: gate})
	got := make(chan string)
	go func() {
		_, body, _ := post(t, s, Chat, `{"model":"m1"}`)
		got <- body
	}()
	req, err := s.Await(t.Context(), 1)
	if err != nil || req.Model() != "m1" {
		t.Fatalf("%v %v", req, err)
	}
	close(gate)
	if !strings.Contains(<-got, "late") {
		t.Error("no answer")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Await(ctx, 2); err == nil {
		t.Error("Await ignores its context")
	}
}

func TestMessagesReadsBackEveryFormat(t *testing.T) {
	bodies := map[Format]string{
		Anthropic: `{"system":[{"type":"text","text":"S"}],"tools":[{"name":"read"}],"messages":[{"role":"user","content":"U"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"R"}]}]}]}`,
		Chat:      `{"tools":[{"type":"function","function":{"name":"read"}}],"messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"U"}]},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"R"}]}`,
		Responses: `{"instructions":"S","tools":[{"type":"function","name":"read"}],"input":[{"role":"user","content":[{"type":"input_text","text":"U"}]},{"type":"function_call","call_id":"1","name":"read","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"R"}]}`,
		Gemini:    `{"systemInstruction":{"parts":[{"text":"S"}]},"tools":[{"functionDeclarations":[{"name":"read"}]}],"contents":[{"role":"user","parts":[{"text":"U"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"read","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"1","name":"read","response":{"output":"R"}}}]}]}`,
	}
	for f, body := range bodies {
		r := Request{Format: f, Body: []byte(body)}
		m := r.Messages()
		if len(m) != 4 || m[0].Role != "system" || m[0].Text != "S" || m[1].Text != "U" ||
			len(m[2].Calls) != 1 || string(m[2].Calls[0].Input) != "{}" || r.Results()["1"].Text != "R" || r.LastText() != "R" {
			t.Errorf("%s: %+v", f, m)
		}
		if n := r.ToolNames(); len(n) != 1 || n[0] != "read" {
			t.Errorf("%s: tools %v", f, n)
		}
	}
}

func TestAScriptWithATypoIsRefused(t *testing.T) {
	if _, err := ParseScript([]byte(`[{"txet":"a"}]`)); err == nil {
		t.Error("accepted")
	}
	if _, err := ParseScript([]byte(`[{"calls":[{}]}]`)); err == nil {
		t.Error("a call without a name was accepted")
	}
}
