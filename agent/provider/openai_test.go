package provider_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// chunks makes an SSE body of deltas; a string that begins with { and holds "choices" is a whole chunk.
func chunks(list ...string) string {
	var b strings.Builder
	for _, c := range list {
		if !strings.Contains(c, `"choices"`) && c != "[DONE]" && !strings.Contains(c, `"error"`) {
			c = `{"choices":[{"index":0,"delta":` + c + `}]}`
		}
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

const stopChunk = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
const callsChunk = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`

type call struct{ name, args string }

func TestChatQuirks(t *testing.T) {
	tests := map[string]struct {
		body     string
		text     string
		thinking string
		calls    []call
		stop     provider.StopReason
		kind     provider.ErrorKind
	}{
		"ids missing": {
			body:  chunks(`{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{}"}},{"index":1,"function":{"name":"b","arguments":"{}"}}]}`, callsChunk, "[DONE]"),
			calls: []call{{"a", "{}"}, {"b", "{}"}}, stop: provider.StopTools},
		"ids equal": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]}`, `{"tool_calls":[{"index":1,"id":"x","function":{"name":"b","arguments":"{}"}}]}`, callsChunk),
			calls: []call{{"a", "{}"}, {"b", "{}"}}, stop: provider.StopTools},
		"index missing, ids tell the calls apart": {
			body:  chunks(`{"tool_calls":[{"id":"x","function":{"name":"a","arguments":"{\"p\""}}]}`, `{"tool_calls":[{"id":"x","function":{"arguments":":1}"}}]}`, `{"tool_calls":[{"id":"y","function":{"name":"a","arguments":"{}"}}]}`, callsChunk, "[DONE]"),
			calls: []call{{"a", `{"p":1}`}, {"a", "{}"}}, stop: provider.StopTools},
		"index and id missing, name repeated in each piece": {
			body:  chunks(`{"tool_calls":[{"function":{"name":"a","arguments":"{\"p\""}}]}`, `{"tool_calls":[{"function":{"name":"a","arguments":":1}"}}]}`, `{"tool_calls":[{"function":{"name":"a","arguments":"{\"p\":2}"}}]}`, callsChunk, "[DONE]"),
			calls: []call{{"a", `{"p":1}`}, {"a", `{"p":2}`}}, stop: provider.StopTools},
		"every call has index 0": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"id":"y","function":{"name":"b","arguments":"{}"}}]}`, stopChunk, "[DONE]"),
			calls: []call{{"a", "{}"}, {"b", "{}"}}, stop: provider.StopTools},
		"every call has index 0 and no id": {
			body:  chunks(`{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{\"p\":1}"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{\"p\":2}"}}]}`, stopChunk, "[DONE]"),
			calls: []call{{"a", `{"p":1}`}, {"a", `{"p":2}`}}, stop: provider.StopTools},
		"id and name repeated in each piece": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":"{\"p\""}}]}`, `{"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":":1}"}}]}`, callsChunk),
			calls: []call{{"read", `{"p":1}`}}, stop: provider.StopTools},
		"name in pieces": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"re"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"ad"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`, callsChunk),
			calls: []call{{"read", "{}"}}, stop: provider.StopTools},
		"arguments repeated whole at the end": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{\"p\""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`, `{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{\"p\":1}"}}]}`, callsChunk),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"each piece repeats what was there and adds": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{\"p\""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":1"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":12}"}}]}`, callsChunk),
			calls: []call{{"a", `{"p":12}`}}, stop: provider.StopTools},
		"a nested object with the same key is no repetition": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{\"p\":"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":1}}"}}]}`, callsChunk),
			calls: []call{{"a", `{"p":{"p":1}}`}}, stop: provider.StopTools},
		"arguments as an object": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":{"p":1}}}]}`, callsChunk),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"no arguments at all": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a"}}]}`, callsChunk),
			calls: []call{{"a", `{}`}}, stop: provider.StopTools},
		"invalid arguments stay as written": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{\"p\": {}"}}]}`, callsChunk),
			calls: []call{{"a", `{"p": {}`}}, stop: provider.StopTools},
		"the API before tools": {
			body:  chunks(`{"function_call":{"name":"a","arguments":"{\"p\""}}`, `{"function_call":{"arguments":":1}"}}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}`),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"says stop although there are calls": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]}`, stopChunk),
			calls: []call{{"a", "{}"}}, stop: provider.StopTools},
		"says tool_calls although there are none": {body: chunks(`{"content":"hi"}`, callsChunk), text: "hi", stop: provider.StopEnd},
		"finish reason in the last delta":         {body: chunks(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"eos"}]}`), text: "hi", stop: provider.StopEnd},
		"no finish reason but [DONE]":             {body: chunks(`{"content":"hi"}`, "[DONE]"), text: "hi", stop: provider.StopEnd},
		"neither finish reason nor [DONE]":        {body: chunks(`{"content":"hi"}`), text: "hi", kind: provider.ErrCut},
		"text after [DONE] does not count":        {body: chunks(`{"content":"hi"}`, stopChunk, "[DONE]", `{"content":" there"}`), text: "hi", stop: provider.StopEnd},
		"content after the finish reason counts":  {body: chunks(`{"content":"hi"}`, stopChunk, `{"content":" there"}`, "[DONE]"), text: "hi there", stop: provider.StopEnd},
		"empty choices only":                      {body: chunks(`{"choices":[]}`, "[DONE]"), kind: provider.ErrServer},
		"choices null":                            {body: chunks(`{"choices":null}`, `{"content":"hi"}`, stopChunk), text: "hi", stop: provider.StopEnd},
		"other choices are ignored":               {body: chunks(`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}`, stopChunk), text: "yes", stop: provider.StopEnd},
		"length":                                  {body: chunks(`{"content":"hi"}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`), text: "hi", stop: provider.StopMaxTokens},
		"content filter":                          {body: chunks(`{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`), stop: provider.StopRefusal},
		"refusal":                                 {body: chunks(`{"refusal":"I can't"}`, stopChunk), text: "I can't", stop: provider.StopRefusal},
		"finish reason error":                     {body: chunks(`{"content":"hi"}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), text: "hi", kind: provider.ErrServer},
		"error in the stream":                     {body: chunks(`{"content":"hi"}`, `{"error":{"message":"rate limited","code":429}}`), text: "hi", kind: provider.ErrRateLimit},
		"error in the stream as a string":         {body: chunks(`{"error":"model crashed"}`), kind: provider.ErrServer},
		"reasoning_content":                       {body: chunks(`{"reasoning_content":"hm"}`, `{"content":"hi"}`, stopChunk), thinking: "hm", text: "hi", stop: provider.StopEnd},
		"reasoning":                               {body: chunks(`{"reasoning":"hm","content":""}`, `{"content":"hi"}`, stopChunk), thinking: "hm", text: "hi", stop: provider.StopEnd},
		"think tags, split":                       {body: chunks(`{"content":"\n<th"}`, `{"content":"ink>h"}`, `{"content":"m</thi"}`, `{"content":"nk>\n\nhi <think>"}`, stopChunk), thinking: "hm", text: "hi <think>", stop: provider.StopEnd},
		"text that begins like a think tag":       {body: chunks(`{"content":"<th"}`, `{"content":">x"}`, stopChunk), text: "<th>x", stop: provider.StopEnd},
		"a text that is only <":                   {body: chunks(`{"content":"<"}`, stopChunk), text: "<", stop: provider.StopEnd},
		"content in parts":                        {body: chunks(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}`, stopChunk), thinking: "hm", text: "hi", stop: provider.StopEnd},
		"a type nobody expects":                   {body: chunks(`{"content":17}`, `{"content":"hi","tool_calls":"none"}`, stopChunk), text: "hi", stop: provider.StopEnd},
		"comments, CRLF and event names":          {body: ": processing\r\n\r\nevent: x\r\nid: 1\r\ndata:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\r\n\r\n" + chunks(stopChunk), text: "hi", stop: provider.StopEnd},
		"one event over several data lines":       {body: "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"hi\"}}]}\n\n" + chunks(stopChunk), text: "hi", stop: provider.StopEnd},
		"not JSON in the middle":                  {body: "data: <html>\n\n" + chunks(stopChunk), kind: provider.ErrServer},
		"the last blank line is missing":          {body: strings.TrimSuffix(chunks(`{"content":"hi"}`, stopChunk), "\n\n"), text: "hi", stop: provider.StopEnd},
		"nothing":                                 {body: "", kind: provider.ErrCut},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := play(t, provider.KindCompatible, canned{body: []byte(tt.body)})
			if kindOf(err) != tt.kind {
				t.Fatalf("error %v", err)
			}
			var calls []call
			ids := map[string]bool{}
			for _, c := range r.Calls {
				calls = append(calls, call{c.Name, string(c.Input)})
				if c.CallID == "" || ids[c.CallID] {
					t.Errorf("call id %q", c.CallID)
				}
				ids[c.CallID] = true
			}
			if r.Text != tt.text || r.Thinking != tt.thinking || !reflect.DeepEqual(calls, tt.calls) || r.Stop != tt.stop {
				t.Errorf("text %q thinking %q calls %v stop %q", r.Text, r.Thinking, calls, r.Stop)
			}
		})
	}
}

func TestAServerThatDoesNotStreamIsUnderstood(t *testing.T) {
	r, err := play(t, provider.KindCompatible, canned{mime: "application/json", body: []byte(`{
  "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi", "tool_calls": [{"id": "x", "type": "function", "function": {"name": "a", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}],
  "usage": {"prompt_tokens": 3, "completion_tokens": 4}
}`)})
	if err != nil || r.Text != "hi" || len(r.Calls) != 1 || r.Usage.Input != 3 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestAnErrorWithStatus200IsAnError(t *testing.T) {
	_, err := play(t, provider.KindCompatible, canned{mime: "application/json", body: []byte(`{"error": {"message": "no such model", "code": "model_not_found"}}`)})
	if kindOf(err) != provider.ErrNotFound {
		t.Error(err)
	}
	_, err = play(t, provider.KindCompatible, canned{mime: "text/html; charset=utf-8", body: []byte(`<html>login</html>`)})
	if kindOf(err) != provider.ErrInvalid || !strings.Contains(err.Error(), "baseURL") {
		t.Error(err)
	}
}

func TestAParameterTheServerRefusesIsLeftOutFromThenOn(t *testing.T) {
	srv := wiretest.New(t,
		wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "Unrecognized request argument supplied: stream_options"}},
		wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}},
		wiretest.Step{Text: "one"}, wiretest.Step{Text: "two"})
	p := newProvider(t, provider.KindCompatible, srv)
	for _, want := range []string{"one", "two"} {
		r, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi"), MaxOutput: 99})
		if err != nil || r.Text != want {
			t.Fatalf("%v %v", r, err)
		}
	}
	reqs := srv.Requests()
	last := string(reqs[len(reqs)-1].Body)
	if len(reqs) != 4 || strings.Contains(last, "stream_options") || strings.Contains(last, `"max_tokens"`) || !strings.Contains(last, `"max_completion_tokens":99`) {
		t.Errorf("%d requests, the last %s", len(reqs), last)
	}
}

func TestAComplaintThatOnlyMentionsAParameterIsNotRepeated(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "Item 'rs_1' of type 'reasoning' was provided without its required following item."}})
	_, err := stream(t, newProvider(t, provider.KindResponses, srv), &provider.Request{Model: provider.Model{ID: "m"}, Effort: "low", Messages: user("hi")})
	if kindOf(err) != provider.ErrInvalid || len(srv.Requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(srv.Requests()))
	}
}

func TestAGeminiModelThatCannotThinkIsAskedWithout(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "Thinking is not supported for this model."}}, wiretest.Step{Text: "ok"})
	if _, err := stream(t, newProvider(t, provider.KindGemini, srv), &provider.Request{Model: provider.Model{ID: "m"}, Effort: "low", Messages: user("hi")}); err != nil {
		t.Fatal(err)
	}
}

func TestABaseURLWithoutAPathFindsV1(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 404, Body: "404 page not found"}}, wiretest.Step{Text: "one"}, wiretest.Step{Text: "two"})
	p, err := provider.New(provider.Config{Kind: provider.KindCompatible, BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	for _, r := range srv.Requests() {
		paths = append(paths, r.Path)
	}
	if want := []string{"/chat/completions", "/v1/chat/completions", "/v1/chat/completions"}; !reflect.DeepEqual(paths, want) {
		t.Error(paths)
	}
}

func TestTheEnvironmentsKeyStaysAtHome(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-env-secret")
	t.Setenv("OPENAI_ORG_ID", "org-env")
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-env")
	t.Setenv("GEMINI_API_KEY", "AIzaEnv")
	for _, kind := range kinds {
		srv := wiretest.New(t, wiretest.Step{Text: "x"})
		url := srv.OpenAIURL()
		if kind == provider.KindAnthropic || kind == provider.KindGemini {
			url = srv.URL
		}
		p, err := provider.New(provider.Config{Kind: kind, BaseURL: url})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}); err != nil {
			t.Fatal(kind, err)
		}
		h, _ := json.Marshal(srv.Requests()[0].Header)
		if s := strings.ToLower(string(h)); strings.Contains(s, "env") {
			t.Errorf("%s sent %s", kind, h)
		}
	}
}

func TestReasoningDetailsGoBackWithTheCall(t *testing.T) {
	body := chunks(`{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]}`, `{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","signature":"s1","index":0}]}`,
		`{"reasoning_details":[{"type":"reasoning.encrypted","data":"zzz","id":"call_1"}]}`, `{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"a","arguments":"{}"}}]}`, callsChunk, "[DONE]")
	srv := wiretest.New(t, wiretest.Step{Raw: body}, wiretest.Step{Text: "done"})
	p := newProvider(t, provider.KindCompatible, srv)
	model := provider.Model{Provider: "test", ID: "m"}
	r, err := stream(t, p, &provider.Request{Model: model, Messages: user("hi")})
	if err != nil {
		t.Fatal(err)
	}
	msgs := append(user("hi"),
		provider.Message{ID: "m2", Role: provider.RoleAssistant, Model: "test/m", Parts: []provider.Part{{Type: provider.PartThinking, Text: r.Thinking, Signature: r.Signature}, r.Calls[0]}},
		provider.Message{ID: "m3", Role: provider.RoleTool, Parts: []provider.Part{{Type: provider.PartToolResult, CallID: r.Calls[0].CallID, Text: "ok"}}})
	if _, err := stream(t, p, &provider.Request{Model: model, Messages: msgs}); err != nil {
		t.Fatal(err)
	}
	sent := string(srv.Requests()[1].Body)
	if !strings.Contains(sent, `"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s1","index":0},{"type":"reasoning.encrypted","data":"zzz","id":"call_1"}]`) {
		t.Error(sent)
	}
}
