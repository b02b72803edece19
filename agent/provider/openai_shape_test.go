package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

func text(id string, role provider.Role, s string) provider.Message {
	return provider.Message{ID: id, Role: role, Parts: []provider.Part{{Type: provider.PartText, Text: s}}}
}

// twoCalls is a history with parallel calls, and words that came while they ran.
func twoCalls() []provider.Message {
	return []provider.Message{
		text("m1", provider.RoleUser, "first"), text("m2", provider.RoleUser, "more"),
		{ID: "m3", Role: provider.RoleAssistant, Parts: []provider.Part{
			{Type: provider.PartText, Text: "Looking."},
			{Type: provider.PartToolCall, CallID: "c1", Name: "a", Input: json.RawMessage(`{}`)},
			{Type: provider.PartToolCall, CallID: "c2", Name: "b", Input: json.RawMessage(`{}`)}}},
		{ID: "m4", Role: provider.RoleTool, Parts: []provider.Part{
			{Type: provider.PartToolResult, CallID: "c2", Text: "two"}, {Type: provider.PartToolResult, CallID: "c1", Text: "one"}}},
		text("m5", provider.RoleUser, "go on"),
	}
}

// roles are a request's messages in short: role, calls, and the result's call.
func roles(t *testing.T, body []byte) string {
	t.Helper()
	var req struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
			Call    string `json:"tool_call_id"`
			Calls   []struct{ ID string }
		} `json:"messages"`
	}
	var calls struct {
		Messages []struct {
			Calls []struct{ ID string } `json:"tool_calls"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &req) != nil || json.Unmarshal(body, &calls) != nil {
		t.Fatalf("no JSON: %s", body)
	}
	var out []string
	for i, m := range req.Messages {
		s := m.Role
		if c, ok := m.Content.(string); ok && m.Role != "tool" {
			s += " " + strings.ReplaceAll(c, "\n\n", "|")
		}
		for _, c := range calls.Messages[i].Calls {
			s += " +" + c.ID
		}
		if m.Call != "" {
			s += " " + m.Call
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestAConversationTakesTheShapeThatAChatTemplateWants(t *testing.T) {
	plain := "system S; user first; user more; assistant Looking. +c1 +c2; tool c2; tool c1; user go on"
	tests := map[string]struct {
		quirks  provider.Quirks
		refusal string // the first answer, with status
		status  int
		want    string
	}{
		"as it is":                             {want: plain},
		"no system role, configured":           {quirks: provider.Quirks{SystemRole: "user"}, want: "user S|first; user more; assistant Looking. +c1 +c2; tool c2; tool c1; user go on"},
		"no system role, said by the template": {refusal: "System role not supported", status: 400, want: "user S|first; user more; assistant Looking. +c1 +c2; tool c2; tool c1; user go on"},
		"a developer role":                     {quirks: provider.Quirks{SystemRole: "developer"}, want: strings.Replace(plain, "system", "developer", 1)},
		"roles in turns, configured":           {quirks: provider.Quirks{AlternateRoles: true}, want: "system S; user first|more; assistant Looking. +c1 +c2; tool c2; tool c1; assistant (noted); user go on"},
		"roles in turns, said by llama.cpp": {refusal: strings.Repeat("{{ the template }} ", 40) + "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...", status: 500,
			want: "system S; user first|more; assistant Looking. +c1 +c2; tool c2; tool c1; assistant (noted); user go on"},
		"one call at a time, configured": {quirks: provider.Quirks{NoParallelCalls: true}, want: "system S; user first; user more; assistant Looking. +c1; tool c1; assistant +c2; tool c2; user go on"},
		"one call at a time, said by the template": {refusal: "This model only supports single tool-calls at once!", status: 400,
			want: "system S; user first; user more; assistant Looking. +c1; tool c1; assistant +c2; tool c2; user go on"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.New(t)
			if tt.refusal != "" {
				srv.Add(wiretest.Step{Error: &wiretest.Error{Status: tt.status, Message: tt.refusal}})
			}
			srv.Add(wiretest.Step{Text: "one"}, wiretest.Step{Text: "two"})
			p, err := provider.New(provider.Config{ID: "t", Kind: provider.KindCompatible, BaseURL: srv.OpenAIURL(), Quirks: tt.quirks})
			if err != nil {
				t.Fatal(err)
			}
			req := &provider.Request{Model: provider.Model{ID: "m"}, System: []string{"S"}, Messages: twoCalls(), SessionID: "s",
				Tools: []provider.ToolSpec{{Name: "a", Parameters: json.RawMessage(`{"type":"object"}`)}}}
			for _, want := range []string{"one", "two"} { // the second from what was encoded of the first
				r, err := stream(t, p, req)
				if err != nil || r.Text != want {
					t.Fatalf("%v %v", r, err)
				}
				reqs := srv.Requests()
				if got := roles(t, reqs[len(reqs)-1].Body); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			}
			reqs := srv.Requests()
			last := string(reqs[len(reqs)-1].Body)
			if one := strings.Contains(tt.want, "+c1;"); strings.Contains(last, `"parallel_tool_calls":false`) != one {
				t.Errorf("parallel_tool_calls in %s", last)
			}
		})
	}
}

func TestATemplateThatRefusesTheNewShapeTooIsNotAskedForEver(t *testing.T) {
	srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "roles must alternate"}})
	srv.Repeat = true
	if _, err := stream(t, newProvider(t, provider.KindCompatible, srv), &provider.Request{Model: provider.Model{ID: "m"}, Messages: twoCalls()}); kindOf(err) != provider.ErrInvalid || len(srv.Requests()) != 2 {
		t.Errorf("%v after %d requests", err, len(srv.Requests()))
	}
}

func TestRequestSwitches(t *testing.T) {
	tests := map[string]struct {
		quirks provider.Quirks
		has    string
		hasNot string
	}{
		"no stream usage":       {provider.Quirks{NoStreamUsage: true}, `"stream":true`, "stream_options"},
		"no stream":             {provider.Quirks{NoStream: true}, `"stream":false`, "stream_options"},
		"max_completion_tokens": {provider.Quirks{MaxTokensField: "max_completion_tokens"}, `"max_completion_tokens":99`, `"max_tokens"`},
		"short call ids":        {provider.Quirks{ShortCallIDs: true}, `"tool_call_id":"`, `"c1"`},
		"reasoning goes back":   {provider.Quirks{ReturnReasoning: true}, `"reasoning_content":""`, "no such"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.New(t, wiretest.Step{Text: "one"})
			p, err := provider.New(provider.Config{ID: "t", Kind: provider.KindCompatible, BaseURL: srv.OpenAIURL(), Quirks: tt.quirks})
			if err != nil {
				t.Fatal(err)
			}
			history := twoCalls()
			history[2].Model = "t/m"
			if _, err := stream(t, p, &provider.Request{Model: provider.Model{Provider: "t", ID: "m"}, Messages: history, MaxOutput: 99}); err != nil {
				t.Fatal(err)
			}
			if body := string(srv.Requests()[0].Body); !strings.Contains(body, tt.has) || strings.Contains(body, tt.hasNot) {
				t.Error(body)
			}
		})
	}
}
