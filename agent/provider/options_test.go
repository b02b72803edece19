package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

func options(t *testing.T, text string) provider.Options {
	t.Helper()
	var o provider.Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// asked is the body of a request with these options; tools add one tool.
func asked(t *testing.T, kind provider.Kind, req *provider.Request) map[string]any {
	t.Helper()
	srv := wiretest.New(t, wiretest.Step{Text: "ok"})
	req.Messages = user("hi")
	if _, err := stream(t, newProvider(t, kind, srv), req); err != nil {
		t.Fatal(err)
	}
	body := srv.Requests()[0].Body
	keys := json.NewDecoder(strings.NewReader(string(body)))
	if twice := duplicate(keys); twice != "" {
		t.Errorf("%s stands twice in %s", twice, body)
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return got
}

// duplicate is a name that an object, however deep, has twice.
func duplicate(d *json.Decoder) string {
	tok, err := d.Token()
	if err != nil {
		return ""
	}
	delim, _ := tok.(json.Delim)
	if delim != '{' && delim != '[' {
		return ""
	}
	seen := map[string]bool{}
	for d.More() {
		if delim == '{' {
			k, _ := d.Token()
			if name := k.(string); seen[name] {
				return name
			} else {
				seen[name] = true
			}
		}
		if twice := duplicate(d); twice != "" {
			return twice
		}
	}
	_, _ = d.Token()
	return ""
}

func TestOptionsReachTheWire(t *testing.T) {
	tool := []provider.ToolSpec{{Name: "t", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}
	for _, c := range []struct {
		name    string
		kind    provider.Kind
		model   string // options of the model
		req     provider.Request
		want    string // a JSON object that the body must hold
		without []string
	}{
		{"responses", provider.KindResponses, `{"reasoningEffort":"high","textVerbosity":"low","reasoningSummary":"detailed","include":["web_search_call.action.sources"],"store":true,"serviceTier":"flex","metadata":{"a":"b"}}`, provider.Request{},
			`{"reasoning":{"effort":"high","summary":"detailed"},"text":{"verbosity":"low"},"include":["reasoning.encrypted_content","web_search_call.action.sources"],"store":true,"service_tier":"flex","metadata":{"a":"b"}}`, []string{"reasoningEffort", "textVerbosity", "verbosity"}},
		{"no summary", provider.KindResponses, `{"reasoningEffort":"low","reasoningSummary":"none"}`, provider.Request{}, `{"reasoning":{"effort":"low"},"store":false}`, nil},
		{"the session's effort is nearer", provider.KindResponses, `{"reasoningEffort":"high"}`, provider.Request{Effort: "low"}, `{"reasoning":{"effort":"low","summary":"auto"}}`, nil},
		{"chat", provider.KindOpenAI, `{"reasoningEffort":"minimal","textVerbosity":"high","maxTokens":77,"parallelToolCalls":false,"temperature":0.5,"promptCacheKey":"k"}`, provider.Request{Tools: tool, SessionID: "s"},
			`{"reasoning_effort":"minimal","verbosity":"high","max_completion_tokens":77,"parallel_tool_calls":false,"temperature":0.5,"prompt_cache_key":"k"}`, nil},
		{"no tools, nothing parallel", provider.KindOpenAI, `{"parallelToolCalls":true,"tool_choice":"auto"}`, provider.Request{}, `{}`, []string{"parallel_tool_calls", "parallelToolCalls", "tool_choice"}},
		{"compatible", provider.KindCompatible, `{"chat_template_kwargs":{"enable_thinking":false},"top_k":20,"topP":0.8,"provider":{"order":["a"]},"reasoning":{"max_tokens":9},"extraBody":{"min_p":0.1,"messages":[]},"stream_options":{"include_usage":false}}`, provider.Request{},
			`{"chat_template_kwargs":{"enable_thinking":false},"top_k":20,"top_p":0.8,"provider":{"order":["a"]},"reasoning":{"max_tokens":9},"min_p":0.1,"stream_options":{"include_usage":false}}`, nil},
		{"what the conversation decides", provider.KindCompatible, `{"model":"other","messages":[],"tools":[],"stream":false,"system":"x"}`, provider.Request{}, `{"model":"m","stream":true}`, []string{"tools", "system"}},
		{"anthropic", provider.KindAnthropic, `{"thinking":{"type":"enabled","budgetTokens":16000},"topK":5,"disableParallelToolUse":true}`, provider.Request{Tools: tool},
			`{"thinking":{"type":"enabled","budget_tokens":16000},"max_tokens":20096,"top_k":5,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`, nil},
		{"anthropic without thinking", provider.KindAnthropic, `{"thinking":{"type":"disabled"},"temperature":0.2}`, provider.Request{}, `{"thinking":{"type":"disabled"},"temperature":0.2}`, nil},
		{"anthropic, the configuration's own words once", provider.KindAnthropic, `{"output_config":{"effort":"max"},"thinking":{"type":"enabled","budget_tokens":2048},"tool_choice":{"type":"any"},"disableParallelToolUse":true,"effort":"low"}`, provider.Request{Tools: tool},
			`{"output_config":{"effort":"max"},"tool_choice":{"type":"any"}}`, []string{"disableParallelToolUse"}},
		{"gemini", provider.KindGemini, `{"thinkingConfig":{"thinkingBudget":1024},"safetySettings":[{"category":"c","threshold":"BLOCK_NONE"}],"topK":3,"seed":7}`, provider.Request{},
			`{"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1024},"topK":3,"seed":7},"safetySettings":[{"category":"c","threshold":"BLOCK_NONE"}]}`, nil},
		{"gemini, the session's effort", provider.KindGemini, `{"thinkingConfig":{"thinkingBudget":1024,"includeThoughts":false}}`, provider.Request{Effort: "low"},
			`{"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingBudget":2048}}}`, nil},
		{"the agent's over the model's", provider.KindOpenAI, `{"reasoningEffort":"high","verbosity":"low","seed":1}`, provider.Request{Options: options(t, `{"reasoningEffort":"low","seed":null}`)},
			`{"reasoning_effort":"low","verbosity":"low"}`, []string{"seed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := c.req
			req.Model = provider.Model{ID: "m", Options: options(t, c.model)}
			if c.kind == provider.KindAnthropic && strings.Contains(c.name, "once") {
				req.Model.ID = "claude-opus-4-6"
			}
			got := asked(t, c.kind, &req)
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			for k, v := range want {
				a, _ := json.Marshal(got[k])
				b, _ := json.Marshal(v)
				if string(a) != string(b) {
					t.Errorf("%s: %s, want %s", k, a, b)
				}
			}
			for _, k := range c.without {
				if v, ok := got[k]; ok {
					t.Errorf("%s was sent: %v", k, v)
				}
			}
		})
	}
}

func TestAVariantIsAnEffortOrANameOfTheirOwn(t *testing.T) {
	variants := map[string]provider.Options{"high": options(t, `{"reasoningEffort":"xhigh"}`), "fast": options(t, `{"verbosity":"low","seed":1}`)}
	for effort, want := range map[string][2]string{"high": {`"xhigh"`, "null"}, "fast": {"null", `"low"`}, "low": {`"low"`, "null"}} {
		got := asked(t, provider.KindOpenAI, &provider.Request{Effort: effort, Model: provider.Model{ID: "m", Variants: variants}})
		a, _ := json.Marshal(got["reasoning_effort"])
		b, _ := json.Marshal(got["verbosity"])
		if [2]string{string(a), string(b)} != want {
			t.Errorf("%s: %s %s, want %v", effort, a, b, want)
		}
	}
}

func TestARefusedOptionIsNamedWithItsPlace(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "Unknown parameter: 'tier'."}})
	_, err := stream(t, newProvider(t, provider.KindOpenAI, srv), &provider.Request{Model: provider.Model{ID: "m", Options: options(t, `{"tier":"x"}`)}, Messages: user("hi")})
	if kindOf(err) != provider.ErrInvalid || !strings.Contains(err.Error(), "tier comes from the options") || len(srv.Requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(srv.Requests()))
	}
}

func TestHeadersOfAModel(t *testing.T) {
	for _, kind := range provider.Kinds() {
		srv := wiretest.New(t, wiretest.Step{Text: "ok"})
		if _, err := stream(t, newProvider(t, kind, srv), &provider.Request{Model: provider.Model{ID: "m", Headers: map[string]string{"X-Own": "1"}}, Messages: user("hi")}); err != nil {
			t.Fatal(err)
		}
		if got := srv.Requests()[0].Header.Get("X-Own"); got != "1" {
			t.Errorf("%s: %q", kind, got)
		}
	}
}
