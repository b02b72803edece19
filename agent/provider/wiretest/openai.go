package wiretest

import "strconv"

// writeChat writes Chat Completions chunks.
// reasoning_content is what compatible servers call a thought; OpenAI sends none in this format.
func writeChat(s *stream) {
	chunk := func(delta obj, finish any) {
		s.event("", s.chatChunk([]any{obj{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}))
	}
	deltas := func(texts []string, build func(t string) obj) {
		s.deltas("", texts, func(t string) any {
			return s.chatChunk([]any{obj{"index": 0, "delta": build(t), "logprobs": nil, "finish_reason": nil}})
		})
	}
	// the role comes first and alone
	chunk(obj{"role": "assistant", "content": ""}, nil)
	deltas(s.pieces(s.step.Thinking), func(t string) obj { return obj{"reasoning_content": t} })
	deltas(s.texts(), func(t string) obj { return obj{"content": t} })
	for i, c := range s.step.Calls {
		// the id and the name come with the first piece of a call only
		chunk(obj{"tool_calls": []any{obj{"index": i, "id": c.ID, "type": "function",
			"function": obj{"name": c.Name, "arguments": ""}}}}, nil)
		deltas(s.pieces(c.args()), func(t string) obj {
			return obj{"tool_calls": []any{obj{"index": i, "function": obj{"arguments": t}}}}
		})
	}
	if s.step.Error != nil {
		s.event("", s.step.Error.shape(Chat))
		return
	}
	s.end()
	finish := map[string]string{"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}[s.stop()]
	// any other stop reason is sent as it is
	if finish == "" {
		finish = s.stop()
	}
	chunk(obj{}, finish)
	u := s.usage()
	// Usage comes in a chunk without choices, as with stream_options.include_usage.
	last := s.chatChunk([]any{})
	last["usage"] = obj{
		"prompt_tokens": u.Input + u.CacheRead + u.CacheWrite, "completion_tokens": u.Output + u.Reasoning,
		"total_tokens":              u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Reasoning,
		"prompt_tokens_details":     obj{"cached_tokens": u.CacheRead},
		"completion_tokens_details": obj{"reasoning_tokens": u.Reasoning},
	}
	s.event("", last)
	// Some clients wait for [DONE] and not for the end of the connection.
	s.write("data: [DONE]\n\n")
}

// chatChunk has a constant time of creation, so that an answer is the same in each run.
func (s *stream) chatChunk(choices []any) obj {
	return obj{"id": "chatcmpl-" + strconv.Itoa(s.n), "object": "chat.completion.chunk", "created": 1700000000,
		"model": s.model, "choices": choices}
}
