package wiretest

import "strconv"

// writeGemini writes the chunks of streamGenerateContent (alt=sse). Calls are not streamed: each comes whole in one chunk. Each chunk
// repeats the usage.
func writeGemini(s *stream) {
	u := s.usage()
	usage := obj{
		"promptTokenCount": u.Input + u.CacheRead + u.CacheWrite, "candidatesTokenCount": u.Output,
		"totalTokenCount": u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Reasoning,
	}
	if u.Reasoning > 0 {
		usage["thoughtsTokenCount"] = u.Reasoning
	}
	if u.CacheRead > 0 {
		usage["cachedContentTokenCount"] = u.CacheRead
	}
	chunk := func(finish string, parts ...obj) {
		if parts == nil {
			parts = []obj{}
		}
		cand := obj{"index": 0, "content": obj{"role": "model", "parts": parts}}
		if finish != "" {
			cand["finishReason"] = finish
		}
		s.event("", obj{"candidates": []any{cand}, "usageMetadata": usage, "modelVersion": s.model, "responseId": "r" + strconv.Itoa(s.n)})
	}
	// The events of one text differ in it alone, as adapters rely on; see stream.deltas.
	deltas := func(texts []string, build func(t string) obj) {
		s.deltas("", texts, func(t string) any {
			cand := obj{"index": 0, "content": obj{"role": "model", "parts": []obj{build(t)}}}
			return obj{"candidates": []any{cand}, "usageMetadata": usage, "modelVersion": s.model, "responseId": "r" + strconv.Itoa(s.n)}
		})
	}
	deltas(s.pieces(s.step.Thinking), func(t string) obj { return obj{"text": t, "thought": true} })
	deltas(s.texts(), func(t string) obj { return obj{"text": t} })
	for i, c := range s.step.Calls {
		part := obj{"functionCall": obj{"name": c.Name, "args": jsonArgs(c)}}
		if c.Signature != "" {
			part["thoughtSignature"] = c.Signature
		} else if i == 0 && (s.step.Signature != "" || s.step.Thinking != "") {
			// The signature of a thought is at the first call of the answer.
			part["thoughtSignature"] = s.signature()
		}
		chunk("", part)
	}
	if s.step.Error != nil {
		s.event("", s.step.Error.shape(Gemini))
		return
	}
	s.end()
	// The API has no stop reason for calls: STOP stands for both.
	finish := map[string]string{"end_turn": "STOP", "tool_use": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}[s.stop()]
	// A name that is not ours is sent as it is, so that a test can try any finishReason.
	if finish == "" {
		finish = s.stop()
	}
	last := []obj{}
	// Without calls the signature comes in a part of its own, with an empty text.
	if len(s.step.Calls) == 0 && s.step.Signature != "" {
		last = append(last, obj{"text": "", "thoughtSignature": s.step.Signature})
	}
	chunk(finish, last...)
}
