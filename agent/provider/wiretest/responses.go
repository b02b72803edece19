package wiretest

import (
	"strconv"
	"strings"
)

// writeResponses writes the events of the Responses API. Each event has a type and a number. Items are opened, filled and closed, and the
// closing event repeats all of them.
func writeResponses(s *stream) {
	seq := 0
	event := func(kind string, fields obj) {
		fields["type"] = kind
		fields["sequence_number"] = seq
		seq++
		s.event(kind, fields)
	}
	// The deltas of one text all have the number of the first: they are marshalled once; see stream.deltas.
	deltas := func(kind string, texts []string, fields obj) {
		fields["type"], fields["sequence_number"] = kind, seq
		// The numbers of all deltas count as used, so that later ones are unique.
		seq += len(texts)
		s.deltas(kind, texts, func(t string) any {
			fields["delta"] = t
			return fields
		})
	}
	id := "resp_" + strconv.Itoa(s.n)
	response := obj{"id": id, "object": "response", "status": "in_progress", "model": s.model, "output": []any{}, "error": nil, "incomplete_details": nil}
	event("response.created", obj{"response": response})
	event("response.in_progress", obj{"response": response})
	var output []any
	// item writes one output item: added, then its deltas, then done, which is also repeated at the end.
	item := func(id string, added, done obj, deltas func(index int)) {
		index := len(output)
		// Both states of an item have the same id.
		added["id"], done["id"] = id, id
		event("response.output_item.added", obj{"output_index": index, "item": added})
		deltas(index)
		event("response.output_item.done", obj{"output_index": index, "item": done})
		output = append(output, done)
	}
	n := strconv.Itoa(s.n)
	if s.step.Thinking != "" || s.step.Signature != "" {
		item("rs_"+n, obj{"type": "reasoning", "summary": []any{}},
			obj{"type": "reasoning", "summary": []any{obj{"type": "summary_text", "text": s.step.Thinking}}, "encrypted_content": s.signature()},
			func(index int) {
				event("response.reasoning_summary_part.added", obj{"item_id": "rs_" + n, "output_index": index, "summary_index": 0, "part": obj{"type": "summary_text", "text": ""}})
				deltas("response.reasoning_summary_text.delta", s.pieces(s.step.Thinking), obj{"item_id": "rs_" + n, "output_index": index, "summary_index": 0})
				event("response.reasoning_summary_text.done", obj{"item_id": "rs_" + n, "output_index": index, "summary_index": 0, "text": s.step.Thinking})
			})
	}
	if texts := s.texts(); len(texts) > 0 {
		whole := strings.Join(texts, "")
		part := obj{"type": "output_text", "text": whole, "annotations": []any{}}
		item("msg_"+n, obj{"type": "message", "role": "assistant", "status": "in_progress", "content": []any{}},
			obj{"type": "message", "role": "assistant", "status": "completed", "content": []any{part}},
			func(index int) {
				event("response.content_part.added", obj{"item_id": "msg_" + n, "output_index": index, "content_index": 0, "part": obj{"type": "output_text", "text": "", "annotations": []any{}}})
				deltas("response.output_text.delta", texts, obj{"item_id": "msg_" + n, "output_index": index, "content_index": 0})
				event("response.output_text.done", obj{"item_id": "msg_" + n, "output_index": index, "content_index": 0, "text": whole})
				event("response.content_part.done", obj{"item_id": "msg_" + n, "output_index": index, "content_index": 0, "part": part})
			})
	}
	for i, c := range s.step.Calls {
		fid := "fc_" + n + "_" + strconv.Itoa(i)
		item(fid, obj{"type": "function_call", "status": "in_progress", "call_id": c.ID, "name": c.Name, "arguments": ""},
			obj{"type": "function_call", "status": "completed", "call_id": c.ID, "name": c.Name, "arguments": c.args()},
			func(index int) {
				deltas("response.function_call_arguments.delta", s.pieces(c.args()), obj{"item_id": fid, "output_index": index})
				event("response.function_call_arguments.done", obj{"item_id": fid, "output_index": index, "arguments": c.args()})
			})
	}
	if s.step.Error != nil {
		// In this format a failure has no type: the code says what it is.
		shape := s.step.Error.shape(Responses)["error"].(obj)
		code := shape["code"]
		if code == nil {
			code = shape["type"]
		}
		failed := obj{"id": id, "object": "response", "status": "failed", "model": s.model, "output": output, "error": obj{"code": code, "message": shape["message"]}}
		event("response.failed", obj{"response": failed})
		return
	}
	s.end()
	u := s.usage()
	final := obj{"id": id, "object": "response", "status": "completed", "model": s.model, "output": output, "error": nil, "incomplete_details": nil,
		"usage": obj{
			"input_tokens": u.Input + u.CacheRead + u.CacheWrite, "output_tokens": u.Output + u.Reasoning,
			"total_tokens":          u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Reasoning,
			"input_tokens_details":  obj{"cached_tokens": u.CacheRead},
			"output_tokens_details": obj{"reasoning_tokens": u.Reasoning},
		}}
	kind := "response.completed"
	// These are the two reasons for which a response may be incomplete.
	switch s.stop() {
	case "max_tokens":
		kind, final["status"], final["incomplete_details"] = "response.incomplete", "incomplete", obj{"reason": "max_output_tokens"}
	case "refusal":
		kind, final["status"], final["incomplete_details"] = "response.incomplete", "incomplete", obj{"reason": "content_filter"}
	}
	event(kind, obj{"response": final})
}
