package provider_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

var seeing = provider.Model{Provider: "test", ID: "m", Images: true, PDF: true, Thinking: true}

// turn is an assistant's message with calls and their results.
func turn(n string, model string, calls ...provider.Part) []provider.Message {
	var results []provider.Part
	for _, c := range calls {
		if c.Type == provider.PartToolCall {
			results = append(results, provider.Part{Type: provider.PartToolResult, CallID: c.CallID, Name: c.Name, Text: "result of " + c.CallID})
		}
	}
	return []provider.Message{
		{ID: "a" + n, Role: provider.RoleAssistant, Model: model, Parts: calls},
		{ID: "t" + n, Role: provider.RoleTool, Parts: results},
	}
}

func toolCall(id, name, input string) provider.Part {
	return provider.Part{Type: provider.PartToolCall, CallID: id, Name: name, Input: json.RawMessage(input)}
}

func TestAHistoryReachesEveryKindWhole(t *testing.T) {
	msgs := append(user("look"), turn("1", "test/m", provider.Part{Type: provider.PartText, Text: "looking"},
		toolCall("c1", "read", `{"filePath":"a \"b\"\u0000"}`), toolCall("c2", "read", `"{broken"`))...)
	msgs[2].Parts[1].IsError = true
	msgs[2].Parts[0].Files = []provider.File{{Mime: "image/png", Data: []byte{1, 2, 3}}}
	msgs = append(msgs, provider.Message{ID: "u2", Role: provider.RoleUser, Parts: []provider.Part{
		{Type: provider.PartText, Text: "and \x00 this\xff"}, {Type: provider.PartFile, Files: []provider.File{{Mime: "application/pdf", Name: "d.pdf", Data: []byte("%PDF")}}},
		{Type: provider.PartFile, Files: []provider.File{{Mime: "text/plain", Name: "n.txt", Data: []byte("note")}}}}})
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := wiretest.New(t, wiretest.Step{Text: "ok"})
			if _, err := stream(t, newProvider(t, kind, srv), &provider.Request{Model: seeing, Messages: msgs, System: []string{"one", "two"}}); err != nil {
				t.Fatal(err)
			}
			req := srv.Requests()[0]
			if !json.Valid(req.Body) {
				t.Fatalf("%s", req.Body)
			}
			var calls []string
			var files []string
			texts := ""
			for _, m := range req.Messages() {
				for _, c := range m.Calls {
					calls = append(calls, c.Name+string(c.Input))
				}
				files = append(files, m.Files...)
				texts += m.Role + ":" + m.Text + "\n"
			}
			if want := []string{`read{"filePath":"a \"b\"\u0000"}`, `read{"invalid_arguments":"{broken"}`}; !reflect.DeepEqual(calls, want) {
				t.Errorf("calls %q", calls)
			}
			slices.Sort(files) // in Anthropic's format results and files share a message
			if want := []string{"application/pdf", "image/png"}; !reflect.DeepEqual(files, want) {
				t.Errorf("files %q", files)
			}
			res := req.Results()
			if res["c1"].Text != "result of c1" || res["c2"].Text != "result of c2" {
				t.Errorf("results %+v", res)
			}
			for _, want := range []string{"user:look", "looking", "one", "two", "and \x00 this\ufffd", "File n.txt:\nnote"} {
				if !strings.Contains(texts, want) {
					t.Errorf("%q is missing in %q", want, texts)
				}
			}
		})
	}
}

func TestAModelWithoutEyesIsToldWhatItMisses(t *testing.T) {
	msgs := []provider.Message{{ID: "u", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartFile, Files: []provider.File{{Mime: "image/png", Name: "shot.png", Data: []byte{1}}}}}}}
	for _, kind := range kinds {
		srv := wiretest.New(t, wiretest.Step{Text: "ok"})
		if _, err := stream(t, newProvider(t, kind, srv), &provider.Request{Model: provider.Model{ID: "m"}, Messages: msgs}); err != nil {
			t.Fatal(err)
		}
		if got := srv.Requests()[0].LastText(); !strings.Contains(got, "shot.png left out") {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

func TestSignedThinkingGoesBackToItsProviderOnly(t *testing.T) {
	for _, kind := range []provider.Kind{provider.KindAnthropic, provider.KindResponses, provider.KindGemini} {
		t.Run(string(kind), func(t *testing.T) {
			srv := wiretest.New(t, wiretest.Step{Thinking: "hm", Signature: "S1GN", Text: "so", Calls: []wiretest.Call{{ID: "c1", Name: "read"}}},
				wiretest.Step{Text: "ok"}, wiretest.Step{Text: "ok"})
			p := newProvider(t, kind, srv)
			model := provider.Model{Provider: "test", ID: "m", Thinking: true}
			r, err := stream(t, p, &provider.Request{Model: model, Messages: user("hi"), SessionID: "s"})
			if err != nil {
				t.Fatal(err)
			}
			assistant := []provider.Part{{Type: provider.PartThinking, Text: r.Thinking, Signature: r.Signature}, {Type: provider.PartText, Text: r.Text}}
			msgs := append(user("hi"), turn("1", "test/m", append(assistant, r.Calls...)...)...)
			if _, err := stream(t, p, &provider.Request{Model: model, Messages: msgs, SessionID: "s"}); err != nil {
				t.Fatal(err)
			}
			other := append(user("hi"), turn("1", "other/m", append(assistant, r.Calls...)...)...)
			if _, err := stream(t, p, &provider.Request{Model: model, Messages: other, SessionID: "s"}); err != nil {
				t.Fatal(err)
			}
			reqs := srv.Requests()
			if !strings.Contains(string(reqs[1].Body), "S1GN") {
				t.Errorf("the signature is missing: %s", reqs[1].Body)
			}
			if strings.Contains(string(reqs[2].Body), "S1GN") {
				t.Errorf("another provider's signature was sent: %s", reqs[2].Body)
			}
		})
	}
}

func TestAnthropicMarksTheSystemPromptAndTheLastTwoTurnsForTheCache(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Text: "ok"})
	msgs := append(append(user("one"), turn("1", "test/m", toolCall("c1", "read", "{}"), toolCall("c2", "read", "{}"))...), turn("2", "test/m", toolCall("c3", "read", "{}"))...)
	msgs = append(msgs, provider.Message{ID: "steer", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "and also"}}})
	p := newProvider(t, provider.KindAnthropic, srv)
	if _, err := stream(t, p, &provider.Request{Model: seeing, System: []string{"base", "env"}, Tools: []provider.ToolSpec{readTool}, Messages: msgs}); err != nil {
		t.Fatal(err)
	}
	var body struct {
		System   []map[string]any
		Messages []struct {
			Role    string
			Content []map[string]any
		}
	}
	if err := srv.Requests()[0].JSON(&body); err != nil {
		t.Fatal(err)
	}
	var marked []string
	for i, m := range body.Messages {
		if i > 0 && m.Role == body.Messages[i-1].Role {
			t.Errorf("messages %d and %d are both the %s's", i-1, i, m.Role)
		}
		for _, b := range m.Content {
			if b["cache_control"] != nil {
				id, _ := b["tool_use_id"].(string)
				text, _ := b["text"].(string)
				marked = append(marked, id+text)
			}
		}
	}
	if want := []string{"c2", "and also"}; !reflect.DeepEqual(marked, want) || body.System[0]["cache_control"] == nil || body.System[1]["cache_control"] == nil {
		t.Errorf("marked %q", marked)
	}
}

func TestAnthropicThinkingFitsTheModel(t *testing.T) {
	warm := 0.5
	tests := map[string]struct {
		model, effort string
		history       []provider.Message
		want, without string
	}{
		"budget":                                {model: "claude-haiku-4-5", effort: "medium", want: `"thinking":{"type":"enabled","budget_tokens":12000}`, without: "temperature"},
		"none asked":                            {model: "claude-haiku-4-5", want: `"temperature":0.5`, without: "thinking"},
		"adaptive when asked":                   {model: "claude-opus-4-6", effort: "high", want: `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}`, without: "temperature"},
		"always on":                             {model: "claude-opus-5-5", want: `"thinking":{"type":"adaptive","display":"summarized"}`, without: "output_config"},
		"no sampling":                           {model: "claude-opus-4-7", want: `"max_tokens"`, without: "temperature"},
		"dated id":                              {model: "claude-sonnet-4-5-20250929", effort: "low", want: `"budget_tokens":4096`},
		"calls made without thinking":           {model: "claude-haiku-4-5", effort: "low", history: append(user("x"), turn("1", "test/m", toolCall("c", "read", "{}"))...), want: `"temperature":0.5`, without: "thinking"},
		"not after the person has spoken again": {model: "claude-haiku-4-5", effort: "low", history: append(append(user("x"), turn("1", "test/m", toolCall("c", "read", "{}"))...), user("y")...), want: `"thinking"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.New(t, wiretest.Step{Text: "ok"})
			if tt.history == nil {
				tt.history = user("x")
			}
			model := provider.Model{Provider: "test", ID: tt.model, Output: 64000}
			if _, err := stream(t, newProvider(t, provider.KindAnthropic, srv), &provider.Request{Model: model, Effort: tt.effort, Temperature: &warm, Messages: tt.history}); err != nil {
				t.Fatal(err)
			}
			body := string(srv.Requests()[0].Body)
			if !strings.Contains(body, tt.want) || tt.without != "" && strings.Contains(body, tt.without) {
				t.Error(body)
			}
		})
	}
}

func TestRefusedThinkingIsLeftOutAndTheRequestRepeated(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "messages.1.content.0: Invalid `signature` in `thinking` block"}}, wiretest.Step{Text: "ok"}, wiretest.Step{Text: "ok"})
	p := newProvider(t, provider.KindAnthropic, srv)
	model := provider.Model{Provider: "test", ID: "claude-opus-5-5", Output: 64000}
	msgs := append(user("hi"), turn("1", "test/x", provider.Part{Type: provider.PartThinking, Text: "old", Signature: "OLD"}, toolCall("c", "read", "{}"))...)
	if _, err := stream(t, p, &provider.Request{Model: model, Messages: msgs, SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	msgs = append(msgs, turn("2", "test/x", provider.Part{Type: provider.PartThinking, Text: "new", Signature: "NEW"}, toolCall("d", "read", "{}"))...)
	if _, err := stream(t, p, &provider.Request{Model: model, Messages: msgs, SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	reqs := srv.Requests()
	if len(reqs) != 3 || strings.Contains(string(reqs[1].Body), "OLD") || strings.Contains(string(reqs[2].Body), "OLD") || !strings.Contains(string(reqs[2].Body), "NEW") {
		t.Errorf("%d requests, the last %s", len(reqs), reqs[len(reqs)-1].Body)
	}
}

func TestResponsesStoresNothingAndSendsReasoningOnlyBeforeWhatFollowed(t *testing.T) {
	sig := `{"id":"rs_1","summary":[],"encrypted_content":"ENC"}`
	srv := wiretest.New(t, wiretest.Step{Text: "ok"})
	msgs := append(user("hi"), turn("1", "test/m", provider.Part{Type: provider.PartThinking, Signature: sig}, toolCall("c", "read", "{}"))...)
	msgs = append(msgs, provider.Message{ID: "cut", Role: provider.RoleAssistant, Model: "test/m", Parts: []provider.Part{{Type: provider.PartThinking, Signature: strings.Replace(sig, "ENC", "ALONE", 1)}}})
	msgs = append(msgs, provider.Message{ID: "u9", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "go on"}}})
	if _, err := stream(t, newProvider(t, provider.KindResponses, srv), &provider.Request{Model: seeing, Effort: "high", Messages: msgs, Tools: []provider.ToolSpec{readTool}, SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	body := string(srv.Requests()[0].Body)
	for _, want := range []string{`"store":false`, `"include":["reasoning.encrypted_content"]`, `"reasoning":{"effort":"high","summary":"auto"}`, `"strict":false`, `"prompt_cache_key":"s1"`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ENC"},{"type":"function_call"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
	if strings.Contains(body, "ALONE") {
		t.Error("reasoning without what followed it was sent")
	}
}

func TestASummaryRefusedToAnUnverifiedOrganisationIsLeftOut(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "Your organization must be verified to generate reasoning summaries."}}, wiretest.Step{Text: "ok"})
	if _, err := stream(t, newProvider(t, provider.KindResponses, srv), &provider.Request{Model: seeing, Effort: "low", Messages: user("hi")}); err != nil {
		t.Fatal(err)
	}
	if body := string(srv.Requests()[1].Body); strings.Contains(body, "summary") || !strings.Contains(body, `"reasoning":{"effort":"low"}`) {
		t.Error(body)
	}
}

func TestGeminiCallsCarryTheirSignatureOrTheWordThatReplacesIt(t *testing.T) {
	own := toolCall("c1", "read", "{}")
	own.Signature = "OWN"
	srv := wiretest.New(t, wiretest.Step{Text: "ok"}, wiretest.Step{Text: "ok"}, wiretest.Step{Text: "ok"})
	p := newProvider(t, provider.KindGemini, srv)
	for i, tt := range []struct{ id, author, want, without string }{
		{"gemini-3.8-flash", "test/m", `"thoughtSignature":"OWN"`, "skip_thought"},
		{"gemini-3.8-flash", "other/m", `"thoughtSignature":"skip_thought_signature_validator"`, "OWN"},
		{"gemini-2.5-pro", "other/m", `"functionCall"`, "thoughtSignature"},
	} {
		msgs := append(user("x"), turn("1", tt.author, own, toolCall("c2", "read", "{}"))...)
		model := provider.Model{Provider: "test", ID: tt.id, Thinking: true}
		if _, err := stream(t, p, &provider.Request{Model: model, Effort: "low", Messages: msgs}); err != nil {
			t.Fatal(err)
		}
		body := string(srv.Requests()[i].Body)
		if !strings.Contains(body, tt.want) || strings.Contains(body, tt.without) || strings.Count(body, "thoughtSignature") > 1 {
			t.Errorf("%s by %s: %s", tt.id, tt.author, body)
		}
		if level := strings.Contains(body, `"thinkingLevel":"LOW"`); level != strings.Contains(tt.id, "-3") {
			t.Errorf("%s: %s", tt.id, body)
		}
	}
}

func TestStrangeCallIDsBecomeAcceptableAndStayPairs(t *testing.T) {
	ids := []string{"functions.read:0", strings.Repeat("x", 100), "ok_1"}
	for _, kind := range kinds {
		srv := wiretest.New(t, wiretest.Step{Text: "ok"})
		var parts []provider.Part
		for _, id := range ids {
			parts = append(parts, toolCall(id, "read", "{}"))
		}
		if _, err := stream(t, newProvider(t, kind, srv), &provider.Request{Model: seeing, Messages: append(user("x"), turn("1", "test/m", parts...)...)}); err != nil {
			t.Fatal(err)
		}
		req := srv.Requests()[0]
		res := req.Results()
		n := 0
		for _, m := range req.Messages() {
			for _, c := range m.Calls {
				if strings.Trim(c.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || len(c.ID) > 64 || res[c.ID].Text != "result of "+ids[n] {
					t.Errorf("%s: %q became %q with %+v", kind, ids[n], c.ID, res[c.ID])
				}
				n++
			}
		}
		if n != 3 {
			t.Errorf("%s: %d calls", kind, n)
		}
	}
}
