package provider

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// reasoningDetails marks a signature that is OpenRouter's reasoning_details array.
const reasoningDetails = "details:"

// chatAnswer reads Chat Completions chunks, with the differences between the many servers that speak the format. It is used by one
// goroutine, that of run.
type chatAnswer struct {
	out     emitter
	calls   []*chatCall
	last    *chatCall // the call of the last piece
	ids     idSet
	tags    thinkTags
	details []chatDetail
	finish  string
	said    bool // anything came: text, thinking, a call
	pieces  bool // deltas came: a whole message after them repeats what they said
	// refused: text came in the field refusal.
	refused bool
	usage   Usage
	counted bool // usage is known and not emitted yet
	over    bool // [DONE] came
	like    template
}

// chatChunk is the union of all chunks and of the error bodies that servers send inside a stream.
type chatChunk struct {
	Choices []struct {
		// Index is that of the choice; answers have one, index 0.
		Index        int        `json:"index"`
		Delta        *chatDelta `json:"delta"`
		Message      *chatDelta `json:"message"` // a server that does not stream
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
	XGroq *struct {
		// Groq puts usage and errors beside the fields of the format.
		Usage *chatUsage      `json:"usage"`
		Error json.RawMessage `json:"error"`
	} `json:"x_groq"`
	Object  string          `json:"object"`
	Message json.RawMessage `json:"message"`
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
	Detail  json.RawMessage `json:"detail"`
}

// chatDelta has Raw for fields in which servers send null, a string or a list.
type chatDelta struct {
	Content          textutil.Raw    `json:"content"`
	ReasoningContent textutil.Raw    `json:"reasoning_content"`
	Reasoning        textutil.Raw    `json:"reasoning"`
	ReasoningDetails []chatDetail    `json:"reasoning_details"`
	Refusal          textutil.Raw    `json:"refusal"`
	ToolCalls        []chatToolDelta `json:"tool_calls"`
	FunctionCall     *chatFunction   `json:"function_call"`
}

// chatDetail is an element of OpenRouter's reasoning_details. Its pieces are joined and sent back unchanged with the next request.
type chatDetail struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Summary   string `json:"summary,omitempty"`
	Data      string `json:"data,omitempty"`
	Signature string `json:"signature,omitempty"`
	ID        string `json:"id,omitempty"`
	Format    string `json:"format,omitempty"`
	Index     *int   `json:"index,omitempty"`
}

// chatToolDelta is a piece of a call. Index and ID are missing or equal at some servers; see call.
type chatToolDelta struct {
	Index    *int         `json:"index"`
	ID       textutil.Raw `json:"id"`
	Function chatFunction `json:"function"`
}

// chatFunction is a function call or a piece of one. Arguments are a JSON string, or an object at small servers.
type chatFunction struct {
	Name      string       `json:"name"`
	Arguments textutil.Raw `json:"arguments"`
}

// chatUsage is the format's usage; the details are nil where a server has none.
type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	CacheHit   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptMore *struct {
		Cached int `json:"cached_tokens"`
		Write  int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionMore *struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usage separates what Chat Completions counts together: prompt tokens include the cached ones, completion tokens the reasoning.
func (u *chatUsage) usage() Usage {
	out := Usage{Input: u.Prompt, Output: u.Completion, CacheRead: u.CacheHit}
	if u.PromptMore != nil {
		out.CacheRead = max(out.CacheRead, u.PromptMore.Cached)
		out.CacheWrite = u.PromptMore.Write
	}
	if u.CompletionMore != nil {
		out.Reasoning = u.CompletionMore.Reasoning
	}
	// Servers disagree whether the parts are inside the sums; none is ever negative.
	out.Input = max(0, out.Input-out.CacheRead-out.CacheWrite)
	if out.Reasoning <= out.Output {
		out.Output -= out.Reasoning
	}
	return out
}

// event implements answer. Only the choice with index 0 is read; requests ask for no other.
func (a *chatAnswer) event(data []byte) (progress, error) {
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		a.over = true
		return done, nil
	}
	if ok, err := a.like.try(data); ok {
		return more, err
	}
	a.like.clear()
	var ch chatChunk
	if err := json.Unmarshal(data, &ch); err != nil {
		var typeErr *json.UnmarshalTypeError
		if !errors.As(err, &typeErr) { // a field of an unexpected type is left out, the rest counts
			return more, errBadEvent
		}
	}
	if len(ch.Error) > 0 && string(ch.Error) != "null" || ch.Object == "error" || a.failure(&ch) {
		return more, parseFailure(0, nil, data)
	}
	if ch.XGroq != nil {
		if ch.Usage == nil {
			ch.Usage = ch.XGroq.Usage
		}
		if len(ch.XGroq.Error) > 0 && string(ch.XGroq.Error) != "null" {
			return more, &apiFailure{message: rawText(ch.XGroq.Error)}
		}
	}
	if ch.Usage != nil {
		a.usage, a.counted = ch.Usage.usage(), true
	}
	if len(data) > longPiece {
		data = nil // it takes longer to emit a long text than to decode it
	}
	for i := range ch.Choices {
		c := &ch.Choices[i]
		if c.Index != 0 {
			continue
		}
		d := c.Delta
		if d == nil {
			if d = c.Message; d != nil && a.pieces {
				d = &chatDelta{ToolCalls: d.ToolCalls} // repeated calls are recognised by their ids, repeated text is not
			}
		} else {
			a.pieces = true
		}
		if d != nil {
			if err := a.delta(d); err != nil {
				return more, err
			}
		}
		// "null" is a string at some servers.
		if c.FinishReason != "" && c.FinishReason != "null" {
			a.finish = c.FinishReason
		}
	}
	if a.finish != "" {
		return finished, nil
	}
	// Only a chunk with one choice and nothing else is learned: in events like it everything but the text is skipped.
	if len(ch.Choices) == 1 && ch.Choices[0].Index == 0 && ch.Choices[0].Delta != nil && ch.Usage == nil && data != nil {
		a.learn(data, ch.Choices[0].Delta)
	}
	return more, nil
}

// failure reports an error body without an "error" key: no choices, and a message about what went wrong. After the answer has begun, a
// message counts only with a type or a code beside it.
func (a *chatAnswer) failure(ch *chatChunk) bool {
	if ch.Choices != nil || ch.Usage != nil || a.finish != "" {
		return false
	}
	return jsonText(ch.Message) != "" && (!a.said || len(ch.Type)+len(ch.Code) > 0) || len(ch.Detail) > 0 && string(ch.Detail) != "null"
}

// learn makes an event with one piece of text and nothing else the template for the events after it. Where a server repeats a thought in
// both of its fields, none is learned: a template has one string that varies.
func (a *chatAnswer) learn(data []byte, d *chatDelta) {
	if len(d.ReasoningDetails) > 0 || d.FunctionCall != nil || jsonText(d.Refusal) != "" {
		return
	}
	content, calls := jsonText(d.Content) != "", len(d.ToolCalls)
	thought := jsonText(d.ReasoningContent) != "" || jsonText(d.Reasoning) != ""
	switch {
	case content && !thought && calls == 0:
		a.like.learn(data, d.Content, a.text)
	case thought && !content && calls == 0 && jsonText(d.ReasoningContent) == "":
		a.like.learn(data, d.Reasoning, a.think)
	case thought && !content && calls == 0 && jsonText(d.Reasoning) == "":
		a.like.learn(data, d.ReasoningContent, a.think)
	// A piece of the last call, without an id and a name: first pieces have those, and no event is like them.
	case calls == 1 && !content && !thought && d.ToolCalls[0].Function.Name == "" && len(jsonText(d.ToolCalls[0].ID)) == 0 && a.last != nil:
		c := a.last
		a.like.learn(data, d.ToolCalls[0].Function.Arguments, func(piece string) error { return a.piece(c, piece) })
	}
}

// think emits a piece of thought.
func (a *chatAnswer) think(t string) error {
	a.said = true
	return a.out.send(Event{Type: EventThinking, Text: t})
}

// text emits a piece of the answer, with a leading <think> block taken out as thought.
func (a *chatAnswer) text(t string) error {
	a.said = true
	return a.tags.split(t, a.out.send)
}

// delta emits one piece. Reasoning comes before text, in whichever of its three fields the server uses.
func (a *chatAnswer) delta(d *chatDelta) error {
	// reasoning_content is what DeepSeek and most servers send, reasoning is OpenRouter's field.
	thought := jsonText(d.ReasoningContent)
	if thought == "" {
		thought = jsonText(d.Reasoning)
	}
	for _, more := range d.ReasoningDetails {
		a.detail(more)
	}
	if thought != "" {
		if err := a.think(thought); err != nil {
			return err
		}
	}
	text := jsonText(d.Content)
	if len(text) > longPiece {
		d.Content = nil // a part of the event, which can now be collected
	}
	if text == "" && len(d.Content) > 0 && d.Content[0] == '[' {
		var err error
		if text, err = a.contentList(d.Content); err != nil {
			return err
		}
	}
	if r := jsonText(d.Refusal); r != "" {
		a.refused = true
		text += r
	}
	if text != "" {
		if err := a.text(text); err != nil {
			return err
		}
	}
	for i := range d.ToolCalls {
		if err := a.call(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	// The API before tools had one call in an answer; the zero index keeps its pieces together.
	if f := d.FunctionCall; f != nil {
		zero := 0
		return a.call(&chatToolDelta{Index: &zero, Function: *f})
	}
	return nil
}

// contentList emits the thoughts of content that is a list, as Mistral's thinking models send it, and returns its text.
func (a *chatAnswer) contentList(raw []byte) (string, error) {
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	_ = json.Unmarshal(raw, &parts)
	text := ""
	for _, p := range parts {
		if p.Type == "thinking" {
			var inner []struct {
				Text string `json:"text"`
			}
			thought := jsonText(p.Thinking)
			if json.Unmarshal(p.Thinking, &inner) == nil {
				for _, t := range inner {
					thought += t.Text
				}
			}
			if thought != "" {
				if err := a.think(thought); err != nil {
					return "", err
				}
			}
			continue
		}
		text += p.Text
	}
	return text, nil
}

// detail adds a piece of reasoning_details. Pieces of one text are joined; other elements are kept as they came.
func (a *chatAnswer) detail(d chatDetail) {
	if n := len(a.details); n > 0 {
		last := &a.details[n-1]
		// Joined only up to a signature: each block is sent back with its own.
		if last.Type == d.Type && last.Signature == "" && last.Data == "" && d.Data == "" && sameInt(last.Index, d.Index) &&
			(d.Type == "reasoning.text" || d.Type == "reasoning.summary") {
			last.Text += d.Text
			last.Summary += d.Summary
			last.Signature = d.Signature
			return
		}
	}
	a.details = append(a.details, d)
}

func sameInt(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }

// errEmptyAnswer ends a stream that was closed properly without any content. Overloaded servers do that; with the kind server_error the
// agent retries.
var errEmptyAnswer = &apiFailure{message: "the answer was empty", kind: "server_error"}

// end emits what is known only at the end: the calls, reasoning to send back, usage, the stop reason. The order of calls is that of their
// first pieces.
func (a *chatAnswer) end() error {
	// Without a finish reason and without [DONE] the stream was cut, whatever it said.
	if a.finish == "" && !a.over {
		return errCut
	}
	if a.finish == "" && !a.said {
		return errEmptyAnswer
	}
	switch a.finish {
	case "error":
		return &apiFailure{message: "the model's server reported an error and gave no reason", kind: "server_error"}
	case "insufficient_system_resource":
		return &apiFailure{message: a.finish, kind: "overloaded"}
	// vLLM sends this for a request that it has dropped.
	case "abort":
		return errCut
	}
	if err := a.tags.flush(a.out.send); err != nil {
		return err
	}
	if len(a.details) > 0 {
		if b, err := json.Marshal(a.details); err == nil {
			if err := a.out.send(Event{Type: EventThinking, Signature: reasoningDetails + string(b)}); err != nil {
				return err
			}
		}
	}
	for _, c := range a.calls {
		if err := a.out.send(Event{Type: EventToolEnd, Index: c.at, CallID: c.id, Name: c.name, Text: c.arguments()}); err != nil {
			return err
		}
	}
	if a.counted {
		if err := a.out.send(Event{Type: EventUsage, Usage: a.usage}); err != nil {
			return err
		}
	}
	return a.out.send(Event{Type: EventStop, Stop: a.stopReason()})
}

// stopReason translates finish_reason. Several servers say "stop" after an answer with calls, so calls decide.
func (a *chatAnswer) stopReason() StopReason {
	switch a.finish {
	case "length", "max_tokens", "model_length":
		return StopMaxTokens
	case "content_filter", "refusal", "safety":
		return StopRefusal
	}
	switch {
	case a.refused:
		return StopRefusal
	case len(a.calls) > 0: // also where the server says stop
		return StopTools
	}
	return StopEnd
}

// jsonText is the value of a JSON string; "" for anything else.
func jsonText[T ~[]byte](raw T) string {
	n := len(raw)
	if n < 2 || raw[0] != '"' {
		return ""
	}
	// The usual string is ASCII without escapes: its bytes are its value, and decoding is not needed.
	if bytes.IndexByte(raw, '\\') < 0 && asciiOnly(raw) {
		return string(raw[1 : n-1])
	}
	return textutil.Text(raw)
}

func asciiOnly(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
