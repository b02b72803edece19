package wiretest

import "strconv"

// writeAnthropic writes the events of the Messages API in the real order: message_start with the input's counts, one block after the
// other, message_delta with the output's counts.
func writeAnthropic(s *stream) {
	u := s.usage()
	s.event("message_start", obj{"type": "message_start", "message": obj{
		"id": "msg_" + strconv.Itoa(s.n), "type": "message", "role": "assistant", "model": s.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": obj{"input_tokens": u.Input, "output_tokens": 1, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite},
	}})
	// The API sends pings at any time; clients must pass over them.
	s.event("ping", obj{"type": "ping"})
	// index is that of the content block, which its deltas repeat.
	index := 0
	delta := func(kind, key string, texts ...string) {
		s.deltas("content_block_delta", texts, func(t string) any {
			return obj{"type": "content_block_delta", "index": index, "delta": obj{"type": kind, key: t}}
		})
	}
	block := func(start obj, deltas func()) {
		s.event("content_block_start", obj{"type": "content_block_start", "index": index, "content_block": start})
		deltas()
		s.event("content_block_stop", obj{"type": "content_block_stop", "index": index})
		index++
	}
	// A signature alone is a thinking block without words.
	if s.step.Thinking != "" || s.step.Signature != "" {
		block(obj{"type": "thinking", "thinking": "", "signature": ""}, func() {
			delta("thinking_delta", "thinking", s.pieces(s.step.Thinking)...)
			delta("signature_delta", "signature", s.signature())
		})
	}
	if texts := s.texts(); len(texts) > 0 {
		block(obj{"type": "text", "text": ""}, func() { delta("text_delta", "text", texts...) })
	}
	for _, c := range s.step.Calls {
		block(obj{"type": "tool_use", "id": c.ID, "name": c.Name, "input": obj{}}, func() {
			// The real API begins the arguments with an empty piece.
			delta("input_json_delta", "partial_json", "")
			delta("input_json_delta", "partial_json", s.pieces(c.args())...)
		})
	}
	// A failure in the stream comes after the content and nothing closes the message, as with the real API.
	if s.step.Error != nil {
		s.event("error", s.step.Error.shape(Anthropic))
		return
	}
	s.end()
	s.event("message_delta", obj{"type": "message_delta",
		"delta": obj{"stop_reason": s.stop(), "stop_sequence": nil},
		// These are the final counts; those of message_start are preliminary.
		"usage": obj{"output_tokens": u.Output + u.Reasoning}})
	s.event("message_stop", obj{"type": "message_stop"})
}
