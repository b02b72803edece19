package wiretest

import "strconv"

// writeChat writes Chat Completions chunks.
func writeChat(s *stream) {
	chunk := func(delta obj, finish any) {
		s.event("", s.chatChunk([]any{obj{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}))
	}
	deltas := func(texts []string, build func(t string) obj) {
		s.deltas("", texts, func(t string) any {
			return s.chatChunk([]any{obj{"index": 0, "delta": build(t), "logprobs": nil, "finish_reason": nil}})
		})
	}
	chunk(obj{"role": "assistant", "content": ""}, nil)
	deltas(s.pieces(s.step.Thinking), func(t string) obj { return obj{"reasoning_content": t} })
	deltas(s.texts(), func(t string) obj { return obj{"content": t} })
	for i, c := range s.step.Calls {
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
	if finish == "" {
		finish = s.stop()
	}
	chunk(obj{}, finish)
	u := s.usage()
	last := s.chatChunk([]any{})
	last["usage"] = obj{
		"prompt_tokens": u.Input + u.CacheRead + u.CacheWrite, "completion_tokens": u.Output + u.Reasoning,
		"total_tokens":              u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Reasoning,
		"prompt_tokens_details":     obj{"cached_tokens": u.CacheRead},
		"completion_tokens_details": obj{"reasoning_tokens": u.Reasoning},
	}
	s.event("", last)
	s.write("data: [DONE]\n\n")
}

func (s *stream) chatChunk(choices []any) obj {
	return obj{"id": "chatcmpl-" + strconv.Itoa(s.n), "object": "chat.completion.chunk", "created": 1700000000,
		"model": s.model, "choices": choices}
}
