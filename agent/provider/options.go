package provider

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// Options are further settings of requests, as a configuration writes them: by the names of the format, or by those
// that OpenCode's users know (reasoningEffort, textVerbosity, thinking.budgetTokens). What an adapter does not know
// is sent as it is written: the provider says when it does not know it either.
type Options map[string]json.RawMessage

// With returns o with the settings of more laid over it, key by key; null in more removes a setting. o is not changed: requests that run
// at once share the map.
func (o Options) With(more Options) Options {
	if len(more) == 0 {
		return o
	}
	out := maps.Clone(o)
	if out == nil {
		out = Options{}
	}
	for k, v := range more {
		if string(v) == "null" {
			delete(out, k)
			continue
		}
		out[k] = v
	}
	return out
}

// OptionNames are the options that only shape an answer, in both spellings. A folder that is not trusted may set these and no others;
// options that name places, keys or extra bodies are therefore not among them. In OpenCode's agent files they also tell an option from
// the agent's other settings.
var OptionNames = []string{
	"reasoningEffort", "reasoning_effort", "effort", "reasoningSummary", "textVerbosity", "verbosity", "thinking", "thinkingConfig",
	"temperature", "topP", "top_p", "topK", "top_k", "minP", "min_p", "frequencyPenalty", "frequency_penalty", "presencePenalty",
	"presence_penalty", "repetitionPenalty", "repetition_penalty", "seed", "maxTokens", "max_tokens", "maxOutputTokens",
	"max_output_tokens", "parallelToolCalls", "parallel_tool_calls", "enable_thinking", "chat_template_kwargs",
}

// wireNames are the formats' names of options that people know by OpenCode's camel-case names.
var wireNames = map[string]string{
	"textVerbosity": "verbosity", "serviceTier": "service_tier", "parallelToolCalls": "parallel_tool_calls", "topK": "top_k", "minP": "min_p",
	"promptCacheKey": "prompt_cache_key", "promptCacheRetention": "prompt_cache_retention", "safetyIdentifier": "safety_identifier",
	"logitBias": "logit_bias", "frequencyPenalty": "frequency_penalty", "presencePenalty": "presence_penalty",
	"repetitionPenalty": "repetition_penalty", "maxToolCalls": "max_tool_calls", "contextManagement": "context_management",
	"cacheControl": "cache_control",
}

// Reserved reports an option that the conversation itself decides. A configuration that sets one would send another conversation than the
// person sees. n is among them because a second answer would be paid for and never read.
func Reserved(name string) bool {
	return slices.Contains([]string{"model", "messages", "input", "contents", "tools", "stream", "system", "instructions", "systemInstruction", "n"}, name)
}

// efforts are the values that the formats know. Any other name of an effort is that of a variant in the configuration.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// extras are the options of a request that have no field of their own, by the format's names.
// They are sorted, so that equal requests are equal bytes.
type extras struct {
	names  []string // of the format, sorted
	values map[string]json.RawMessage
}

// take removes an option by the format's name and returns it; nil where there is none. Adapters take what they write themselves, because
// a JSON object with a key twice is refused.
func (x *extras) take(name string) json.RawMessage {
	v, ok := x.values[name]
	if !ok {
		return nil
	}
	delete(x.values, name)
	x.names = slices.DeleteFunc(x.names, func(n string) bool { return n == name })
	return v
}

// clone makes the options of one body. attempt may build several bodies of one request, and each takes options out.
func (x extras) clone() extras { return extras{slices.Clone(x.names), maps.Clone(x.values)} }

// append writes the options that were not taken, as further fields of the object that b ends in.
func (x *extras) append(b []byte) []byte {
	for _, n := range x.names {
		b = append(append(textutil.AppendJSON(appendComma(b), n), ':'), x.values[n]...)
	}
	return b
}

// resolveOptions returns the request with its options moved into its fields where there is a field for them; the rest become extras, sent
// as written. What is nearer to the person wins: the chosen variant over the agent's options over the model's. req is not changed.
func resolveOptions(req *Request, kind Kind) *Request {
	all := req.Model.Options
	variant, chosen := req.Model.Variants[req.Effort]
	all = all.With(req.Options)
	if chosen && req.Effort != "" { // the person chose this variant for the prompt
		all = all.With(variant)
	}
	if len(all) == 0 {
		return req
	}
	out := *req
	// An effort that is only the name of a variant is not sent: no provider knows it, and the variant's options replace it.
	if chosen && !slices.Contains(efforts, req.Effort) {
		out.Effort = ""
	}
	x := extras{values: map[string]json.RawMessage{}}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		v := all[k]
		switch k {
		case "reasoningEffort", "reasoning_effort", "effort":
			var s string
			if json.Unmarshal(v, &s) == nil {
				// An effort that the person chose for this prompt wins over one of the agent. One inside the chosen variant is that
				// choice, and wins too.
				if _, own := variant[k]; out.Effort == "" || own {
					out.Effort = s
				}
				continue
			}
		case "temperature":
			fill(&out.Temperature, v)
			continue
		case "topP", "top_p":
			fill(&out.TopP, v)
			continue
		case "maxTokens", "max_tokens", "maxOutputTokens", "max_output_tokens", "maxCompletionTokens", "max_completion_tokens":
			if n := 0; out.MaxOutput == 0 && json.Unmarshal(v, &n) == nil {
				out.MaxOutput = n
			}
			continue
		case "extraBody", "extra_body":
			var more map[string]json.RawMessage
			if json.Unmarshal(v, &more) == nil {
				// extraBody can name any field of the request, so the fields that the conversation decides are left out of it as well.
				for k, v := range more {
					if !Reserved(k) {
						x.values[k] = v
					}
				}
				continue
			}
		}
		// Gemini's own names are in camel case.
		if name := wireNames[k]; name != "" && kind != KindGemini {
			k = name
		}
		if !Reserved(k) {
			x.values[k] = v
		}
	}
	x.names = slices.Sorted(maps.Keys(x.values))
	out.rest = x
	return &out
}

// fill sets a number that is not set yet. A value that is not a number is dropped silently: the server would refuse the whole request and
// name the wrong reason.
func fill(to **float64, v json.RawMessage) {
	var f float64
	if *to == nil && json.Unmarshal(v, &f) == nil {
		*to = &f
	}
}

// snake turns the names of an object, at every depth, from budgetTokens into budget_tokens.
func snake(v json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) != nil {
		return v
	}
	b := []byte{'{'}
	for _, k := range slices.Sorted(maps.Keys(object)) {
		b = append(appendField(b, snakeName(k)), snake(object[k])...)
	}
	return append(b, '}')
}

// snakeName is budget_tokens for budgetTokens.
func snakeName(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// nameRefusedOption adds to a refusal that the option comes from the person's configuration. The provider's message alone reads as if
// Pillion had made a mistake.
func nameRefusedOption(err error, req *Request) error {
	e, ok := err.(*Error)
	if !ok || e.Kind != ErrInvalid {
		return err
	}
	for _, n := range req.rest.names {
		if containsWord(e.Message, n) {
			// A copy, because the error may be kept and shown elsewhere.
			said := *e
			said.Message += "; " + n + " comes from the options of the model or agent in your configuration"
			return &said
		}
	}
	return err
}
