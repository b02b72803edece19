package provider

import (
	"slices"
	"strings"
)

// shape is what a server's chat template demands of a conversation beyond the format.
type shape struct {
	noSystem  bool // no message of role system: its words go before the first request
	alternate bool // user and assistant take turns; calls and their results do not count
	oneCall   bool // one call in an assistant message
}

// The shapes as keys for base.noteRefused. They begin with NUL, so that no parameter's name can be equal.
const (
	shapeNoSystem  = "\x00system"
	shapeAlternate = "\x00alternate"
	shapeOneCall   = "\x00one call"
)

// shape is what the configuration sets, together with what the server has complained about before.
func (p *chatProvider) shape(without []string) shape {
	q := p.cfg.Quirks
	return shape{
		noSystem:  q.SystemRole == "user" || slices.Contains(without, shapeNoSystem),
		alternate: q.AlternateRoles || slices.Contains(without, shapeAlternate),
		oneCall:   q.NoParallelCalls || slices.Contains(without, shapeOneCall),
	}
}

// complaint finds in a failure's text the shape that a chat template demands. vLLM, llama.cpp and LM Studio return the template's own
// exception, so the words are those of templates.
func complaint(message string) string {
	m := strings.ToLower(message)
	for _, c := range [...]struct{ words, shape string }{
		{"system role not supported", shapeNoSystem}, // Gemma
		{"system role is not supported", shapeNoSystem},
		{"system message is not supported", shapeNoSystem},
		{"does not support 'system'", shapeNoSystem}, // o1-mini
		{"developer instruction is not enabled", shapeNoSystem},
		{"roles must alternate", shapeAlternate}, // Gemma, Mistral, Llama 2
		{"single tool-call", shapeOneCall},       // Llama 3
		{"single tool call", shapeOneCall},
	} {
		if strings.Contains(m, c.words) {
			return c.shape
		}
	}
	return ""
}

// apply gives a conversation its shape. Messages that need no change keep their parts, so that the cache finds their encodings. The order
// matters: calls are split before messages are joined, and the preface must exist before roles are compared.
func (s shape) apply(messages []Message, system []string) ([]Message, []string) {
	if s == (shape{}) {
		return messages, system
	}
	if s.oneCall {
		messages = splitCalls(messages)
	}
	if s.noSystem {
		messages, system = preface(messages, system), nil
	}
	if s.alternate {
		messages = alternateRoles(messages)
	}
	return messages, system
}

// splitCalls splits an answer with several calls into one answer for each call, followed by its result. The new parts are slices of the
// old ones, so that the cache recognises them by their addresses.
func splitCalls(all []Message) []Message {
	out := make([]Message, 0, len(all))
	for i := 0; i < len(all); i++ {
		m := all[i]
		if m.Role != RoleAssistant || i+1 == len(all) || all[i+1].Role != RoleTool {
			out = append(out, m)
			continue
		}
		var ends []int // behind each call
		for k, p := range m.Parts {
			if p.Type == PartToolCall {
				ends = append(ends, k+1)
			}
		}
		if len(ends) < 2 {
			out = append(out, m)
			continue
		}
		i++
		results, from := all[i], 0
		for n, end := range ends {
			// What follows the last call, such as a text, stays with it.
			if n == len(ends)-1 {
				end = len(m.Parts)
			}
			one, its := m, results
			one.Parts = m.Parts[from:end]
			id := m.Parts[ends[n]-1].CallID
			k := slices.IndexFunc(results.Parts, func(p Part) bool { return p.CallID == id })
			// A call without a result gets an empty message, which the encoder leaves out.
			if its.Parts = nil; k >= 0 {
				its.Parts = results.Parts[k : k+1]
			}
			out = append(out, one, its)
			from = end
		}
	}
	return out
}

// preface puts the system prompt before the text of the first request, for templates without a system role.
func preface(all []Message, system []string) []Message {
	text := joinSystem(system)
	if text == "" {
		return all
	}
	words := Part{Type: PartText, Text: text}
	// Without a first request the prompt becomes a message of its own.
	if len(all) == 0 || all[0].Role != RoleUser {
		return append([]Message{{ID: "system", Role: RoleUser, Parts: []Part{words}}}, all...)
	}
	out := slices.Clone(all)
	out[0].Parts = append([]Part{words}, all[0].Parts...)
	return out
}

// filler is the assistant's text where a template requires an answer between two requests and there is none.
const filler = "(noted)"

// alternateRoles joins consecutive messages of one role and puts filler between a tool's result and the next request. Templates do not
// count tool messages, so they would see two requests in a row.
func alternateRoles(all []Message) []Message {
	var out []Message
	for _, m := range all {
		var before *Message
		if len(out) > 0 {
			before = &out[len(out)-1]
		}
		switch {
		case before == nil:
		// Answers with calls are not joined, because their results would follow the wrong calls.
		case m.Role == before.Role && m.Role != RoleTool && (m.Role == RoleUser || !calls(*before)):
			before.Parts = slices.Concat(before.Parts, m.Parts)
			continue
		case m.Role == RoleUser && before.Role == RoleTool:
			out = append(out, Message{ID: "filler", Role: RoleAssistant, Parts: fillerParts})
		}
		out = append(out, m)
	}
	return out
}

var fillerParts = []Part{{Type: PartText, Text: filler}} // one slice for all, so that the cache finds its encoding

func calls(m Message) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Type == PartToolCall })
}
