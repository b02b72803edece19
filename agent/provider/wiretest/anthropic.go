package wiretest

import "strconv"

// writeAnthropic writes the Messages API's events.
func writeAnthropic(s *stream) {
	u := s.usage()
	s.event("message_start", obj{"type": "message_start", "message": obj{
		"id": "msg_" + strconv.Itoa(s.n), "type": "message", "role": "assistant", "model": s.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": obj{"input_tokens": u.Input, "output_tokens": 1, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite},
	}})
	s.event("ping", obj{"type": "ping"})
	index := 0
	block := func(start obj, deltas ...obj) {
		s.event("content_block_start", obj{"type": "content_block_start", "index": index, "content_block": start})
		for _, d := range deltas {
			s.event("content_block_delta", obj{"type": "content_block_delta", "index": index, "delta": d})
		}
		s.event("content_block_stop", obj{"type": "content_block_stop", "index": index})
		index++
	}
	if s.step.Thinking != "" || s.step.Signature != "" {
		var deltas []obj
		for _, t := range s.pieces(s.step.Thinking) {
			deltas = append(deltas, obj{"type": "thinking_delta", "thinking": t})
		}
		deltas = append(deltas, obj{"type": "signature_delta", "signature": s.signature()})
		block(obj{"type": "thinking", "thinking": "", "signature": ""}, deltas...)
	}
	if texts := s.texts(); len(texts) > 0 {
		var deltas []obj
		for _, t := range texts {
			deltas = append(deltas, obj{"type": "text_delta", "text": t})
		}
		block(obj{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range s.step.Calls {
		deltas := []obj{{"type": "input_json_delta", "partial_json": ""}}
		for _, t := range s.pieces(c.args()) {
			deltas = append(deltas, obj{"type": "input_json_delta", "partial_json": t})
		}
		block(obj{"type": "tool_use", "id": c.ID, "name": c.Name, "input": obj{}}, deltas...)
	}
	if s.step.Error != nil {
		s.event("error", s.step.Error.shape(Anthropic))
		return
	}
	s.end()
	s.event("message_delta", obj{"type": "message_delta",
		"delta": obj{"stop_reason": s.stop(), "stop_sequence": nil},
		"usage": obj{"output_tokens": u.Output + u.Reasoning}})
	s.event("message_stop", obj{"type": "message_stop"})
}
