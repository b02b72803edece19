package provider_test

import (
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// named makes an SSE body of events that say their type in the data, as Anthropic's and OpenAI's Responses do.
func named(list ...string) string {
	var b strings.Builder
	for _, data := range list {
		b.WriteString("event: whatever\ndata: " + data + "\n\n")
	}
	return b.String()
}

const (
	messageStart = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`
	messageStop  = `{"type":"message_stop"}`
)

func messageEnd(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":9}}`
}

func textBlock(index, text string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"text","text":""}}` + "\n\ndata: " +
		`{"type":"content_block_delta","index":` + index + `,"delta":{"type":"text_delta","text":"` + text + `"}}` + "\n\ndata: " +
		`{"type":"content_block_stop","index":` + index + `}`
}

type variant struct {
	mime     string
	body     string
	text     string
	thinking string
	calls    []call
	stop     provider.StopReason
	kind     provider.ErrorKind
	says     string // in the error
}

func (v variant) check(t *testing.T, kind provider.Kind) {
	t.Helper()
	r, err := play(t, kind, canned{mime: v.mime, body: []byte(v.body)})
	if kindOf(err) != v.kind {
		t.Fatalf("error %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), v.says) {
		t.Errorf("error %v", err)
	}
	var calls []call
	for _, c := range r.Calls {
		calls = append(calls, call{c.Name, string(c.Input)})
	}
	if r.Text != v.text || r.Thinking != v.thinking || !reflect.DeepEqual(calls, v.calls) || r.Stop != v.stop {
		t.Errorf("text %q thinking %q calls %v stop %q", r.Text, r.Thinking, calls, r.Stop)
	}
}

func TestAnthropicVariants(t *testing.T) {
	toolA := `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"a","input":{}}}`
	for name, v := range map[string]variant{
		"pings and events nobody knows": {
			body: named(messageStart, `{"type":"ping"}`, `{"type":"vendor_progress","delta":"half","message":"soon","index":"x","usage":[]}`, textBlock("0", "hi"), `{"type":"ping"}`, messageEnd("end_turn"), messageStop),
			text: "hi", stop: provider.StopEnd},
		"a search on the server": {
			body: named(messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":1}"}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","title":"x","url":"u"}]}}`, `{"type":"content_block_stop","index":1}`,
				`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}`,
				`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","cited_text":"no"}}}`,
				`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"hi"}}`, `{"type":"content_block_stop","index":2}`, messageEnd("end_turn"), messageStop),
			text: "hi", stop: provider.StopEnd},
		"a block nobody knows, with odd fields": {
			body: named(messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"vendor","text":{"a":1},"data":[1],"id":7}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"vendor_delta","text":{"a":1},"signature":{}}}`, `{"type":"content_block_stop","index":0}`, textBlock("1", "hi"), messageEnd("end_turn"), messageStop),
			text: "hi", stop: provider.StopEnd},
		"pause_turn":             {body: named(messageStart, textBlock("0", "hi"), messageEnd("pause_turn"), messageStop), text: "hi", stop: provider.StopEnd},
		"refusal":                {body: named(messageStart, textBlock("0", "no"), messageEnd("refusal"), messageStop), text: "no", stop: provider.StopRefusal},
		"the window is full":     {body: named(messageStart, textBlock("0", "hi"), messageEnd("model_context_window_exceeded"), messageStop), text: "hi", stop: provider.StopMaxTokens},
		"a reason nobody knows":  {body: named(messageStart, textBlock("0", "hi"), messageEnd("vendor"), messageStop), text: "hi", stop: provider.StopEnd},
		"no usage at all":        {body: named(`{"type":"message_start","message":{"id":"m"}}`, textBlock("0", "hi"), `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, messageStop), text: "hi", stop: provider.StopEnd},
		"an error in the middle": {body: named(messageStart, textBlock("0", "hi"), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), text: "hi", kind: provider.ErrOverloaded, says: "Overloaded"},
		"an error as words":      {body: named(messageStart, `{"type":"error","message":"the engine is gone"}`), kind: provider.ErrServer, says: "the engine is gone"},
		"an error as a string":   {body: named(messageStart, `{"type":"error","error":"the engine is gone"}`), kind: provider.ErrServer, says: "the engine is gone"},
		"an error beside a null": {body: named(messageStart, `{"type":"error","error":null,"message":"the engine is gone"}`), kind: provider.ErrServer, says: "the engine is gone"},
		"the input whole in the block": {
			body:  named(messageStart, strings.Replace(toolA, `"input":{}`, `"input":{"p":1}`, 1), `{"type":"content_block_stop","index":1}`, messageEnd("tool_use"), messageStop),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"the input in the block and again in pieces": {
			body: named(messageStart, strings.Replace(toolA, `"input":{}`, `"input":{"p":1}`, 1), `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}`, `{"type":"content_block_stop","index":1}`, messageEnd("tool_use"), messageStop),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"nobody closes the block":                          {body: named(messageStart, toolA, messageEnd("tool_use"), messageStop), calls: []call{{"a", `{}`}}, stop: provider.StopTools},
		"two blocks under one index, the first not closed": {body: named(messageStart, toolA, strings.Replace(toolA, "t1", "t2", 1), `{"type":"content_block_stop","index":1}`, messageEnd("tool_use"), messageStop), calls: []call{{"a", `{}`}, {"a", `{}`}}, stop: provider.StopTools},
		"text without a block":                             {body: named(messageStart, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`, messageEnd("end_turn"), messageStop), text: "hi", stop: provider.StopEnd},
		"[DONE] behind it, from a gateway":                 {body: named(messageStart, textBlock("0", "hi"), messageEnd("end_turn"), "[DONE]"), text: "hi", stop: provider.StopEnd},
		"a server that does not stream": {mime: "application/json", body: `{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi"},{"type":"tool_use","id":"t1","name":"a","input":{"p":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`,
			text: "hi", thinking: "hm", calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
	} {
		t.Run(name, func(t *testing.T) { v.check(t, provider.KindAnthropic) })
	}
}

func TestResponsesVariants(t *testing.T) {
	done := func(rest string) string {
		return `{"type":"response.completed","response":{"status":"completed"` + rest + `}}`
	}
	for name, v := range map[string]variant{
		"a summary in parts and events nobody knows": {
			body: named(`{"type":"response.created","response":{"status":"in_progress"}}`, `{"type":"response.vendor","delta":{"x":1},"item":"y","output_index":"z"}`,
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}`,
				`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"one"}`,
				`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"two"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"encrypted_content":"e"}}`,
				`{"type":"response.output_text.delta","output_index":1,"delta":"hi"}`, done("")),
			thinking: "one\n\ntwo", text: "hi", stop: provider.StopEnd},
		"a summary only whole, nothing encrypted": {
			body:     named(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"one"}]}}`, `{"type":"response.output_text.delta","output_index":1,"delta":"hi"}`, done("")),
			thinking: "one", text: "hi", stop: provider.StopEnd},
		"arguments only done": {
			body:  named(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c1","name":"a","arguments":""}}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"p\":1}"}`, done("")),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"arguments done before the item": {
			body:  named(`{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc","name":"a","arguments":"{\"p\":1}"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c1","name":"a","arguments":""}}`, done("")),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"items out of order": {
			body: named(`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"f2","call_id":"c2","name":"b","arguments":""}}`, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"a","arguments":""}}`,
				`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"p\""}`, `{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}`, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":":1}"}`,
				`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"f2","call_id":"c2","name":"b","arguments":"{}"}}`, `{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"a","arguments":"{\"p\":1}"}}`, done("")),
			calls: []call{{"b", `{}`}, {"a", `{"p":1}`}}, stop: provider.StopTools},
		"refusal":                {body: named(`{"type":"response.refusal.delta","output_index":0,"delta":"no"}`, done("")), text: "no", stop: provider.StopRefusal},
		"too long an answer":     {body: named(`{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`), text: "hi", stop: provider.StopMaxTokens},
		"filtered":               {body: named(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), stop: provider.StopRefusal},
		"failed":                 {body: named(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}`), kind: provider.ErrServer, says: "boom"},
		"failed for the rate":    {body: named(`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 1.2s."}}}`), kind: provider.ErrRateLimit, says: "1.2s"},
		"completed as failed":    {body: named(`{"type":"response.done","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}`), kind: provider.ErrServer, says: "boom"},
		"an error beside a null": {body: named(`{"type":"error","error":null,"code":"server_error","message":"boom"}`), kind: provider.ErrServer, says: "boom"},
		"a custom tool's input is not a call of ours": {body: named(`{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","id":"x","call_id":"c","name":"code","input":""}}`, `{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"zzz"}`, `{"type":"response.output_text.delta","output_index":1,"delta":"hi"}`, done("")), text: "hi", stop: provider.StopEnd},
		"a server that does not stream": {mime: "application/json", body: `{"id":"r","object":"response","status":"completed","error":null,"output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e"},{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"c1","name":"a","arguments":"{\"p\":1}"}],"usage":{"input_tokens":3,"output_tokens":4}}`,
			text: "hi", thinking: "hm", calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
	} {
		t.Run(name, func(t *testing.T) { v.check(t, provider.KindResponses) })
	}
}

func TestGeminiVariants(t *testing.T) {
	for name, v := range map[string]variant{
		"calls without ids, several, with signatures": {
			body:  named(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{"p":1}},"thoughtSignature":"s"},{"functionCall":{"name":"a","args":{"p":2}}},{"functionCall":{"name":"b"}}],"role":"model"},"finishReason":"STOP"}]}`),
			calls: []call{{"a", `{"p":1}`}, {"a", `{"p":2}`}, {"b", `{}`}}, stop: provider.StopTools},
		"malformed call":                {body: named(`{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(x)"}]}`), kind: provider.ErrServer, says: "print(x)"},
		"safety":                        {body: named(`{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"SAFETY","safetyRatings":[{}]}]}`), text: "hi", stop: provider.StopRefusal},
		"max tokens without content":    {body: named(`{"candidates":[{"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":100}}`), stop: provider.StopMaxTokens},
		"prompt blocked":                {body: named(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`), stop: provider.StopRefusal},
		"no candidates":                 {body: named(`{"candidates":[],"usageMetadata":{"promptTokenCount":3}}`), kind: provider.ErrCut},
		"parts of other kinds":          {body: named(`{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"output":"1"}},{"text":"hm","thought":true},{"text":"hi"}]},"finishReason":"STOP","groundingMetadata":{"x":[1]}}]}`), thinking: "hm", text: "hi", stop: provider.StopEnd},
		"an error in the stream":        {body: named(`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), kind: provider.ErrOverloaded, says: "overloaded"},
		"a server that does not stream": {mime: "application/json", body: `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`, text: "hi", stop: provider.StopEnd},
		"a list instead of a stream": {mime: "application/json", body: `[{"candidates":[{"content":{"parts":[{"text":"h"}]}}]}
,
{"candidates":[{"content":{"parts":[{"text":"i"}]},"finishReason":"STOP"}]}]`, text: "hi", stop: provider.StopEnd},
	} {
		t.Run(name, func(t *testing.T) { v.check(t, provider.KindGemini) })
	}
}

func TestMoreChatVariants(t *testing.T) {
	for name, v := range map[string]variant{
		"an empty object, then the arguments in pieces": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`, callsChunk),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"arguments null, then in pieces": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"a","arguments":null}}]}`, `{"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{\"p\":1}"}}]}`, callsChunk),
			calls: []call{{"a", `{"p":1}`}}, stop: provider.StopTools},
		"index as a string": {
			body:  chunks(`{"tool_calls":[{"index":"0","id":"x","function":{"name":"a","arguments":"{}"}},{"index":"1","id":"y","function":{"name":"b","arguments":"{}"}}]}`, callsChunk),
			calls: []call{{"a", `{}`}, {"b", `{}`}}, stop: provider.StopTools},
		"interleaved": {
			body:  chunks(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{\"p\""}},{"index":1,"id":"y","function":{"name":"b","arguments":"{\"q\""}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}]}`, callsChunk),
			calls: []call{{"a", `{"p":1}`}, {"b", `{"q":2}`}}, stop: provider.StopTools},
		"finish, then usage with empty choices":        {body: chunks(`{"content":"hi"}`, stopChunk, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, "[DONE]"), text: "hi", stop: provider.StopEnd},
		"CR alone ends a line":                         {body: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\r\rdata: " + stopChunk + "\r\r", text: "hi", stop: provider.StopEnd},
		"a byte order mark":                            {body: "\ufeff" + chunks(`{"content":"hi"}`, stopChunk), text: "hi", stop: provider.StopEnd},
		"a list of chunks with a wrong type":           {mime: "text/plain", body: chunks(`{"content":"hi"}`, stopChunk), text: "hi", stop: provider.StopEnd},
		"streams as application/json":                  {mime: "application/json", body: chunks(`{"content":"hi"}`, stopChunk, "[DONE]"), text: "hi", stop: provider.StopEnd},
		"an answer whole and indented, without a type": {mime: "text/plain", body: "{\n  \"choices\": [{\"index\": 0,\n \"message\": {\"content\": \"hi\"}, \"finish_reason\": \"stop\"}]\n}\n", text: "hi", stop: provider.StopEnd},
		"a web page that calls itself a stream":        {mime: "text/event-stream", body: "<!DOCTYPE html><html><body>login</body></html>", kind: provider.ErrInvalid, says: "baseURL"},
		"the delta and then all of it as a message":    {body: chunks(`{"content":"hi"}`, `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`, "[DONE]"), text: "hi", stop: provider.StopEnd},
		"an error with a null":                         {body: chunks(`{"content":"hi"}`, `{"error":null,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), text: "hi", stop: provider.StopEnd},
		"an error as an event":                         {body: "event: error\ndata: {\"message\":\"the engine is gone\",\"type\":\"server_error\"}\n\n", kind: provider.ErrServer, says: "the engine is gone"},
	} {
		t.Run(name, func(t *testing.T) { v.check(t, provider.KindCompatible) })
	}
}

func TestAStreamThatAProxyPackedIsUnpacked(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(chunks(`{"content":"hi"}`, stopChunk)))
		_ = z.Close()
	}))
	defer srv.Close()
	p, err := provider.New(provider.Config{ID: "test", Kind: provider.KindCompatible, BaseURL: srv.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}); err != nil || r.Text != "hi" {
		t.Errorf("%+v %v", r, err)
	}
}
