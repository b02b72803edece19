package provider

import (
	"encoding/json"
	"errors"
	"strconv"
)

// anthropicAnswer reads the events of one answer. It is used by one goroutine, run's.
type anthropicAnswer struct {
	out emitter
	// by the API's content index
	blocks map[int]*anthropicBlock
	// tool calls so far; the index that our events carry
	calls int
	ids   idSet
	usage Usage
	stop  StopReason
	over  bool // message_stop or a stop reason came: the answer is complete
	like  template
}

// anthropicBlock is a content block between its start and its stop event.
type anthropicBlock struct {
	kind      string
	id, name  string
	index     int // of the call
	args      []byte
	whole     int // bytes of args that came with the block's start
	signature string
}

// anthropicContent is the union of all content blocks, with the fields that are read.
type anthropicContent struct {
	// Fields of other blocks (citations, server tools) are not read: the blocks pass without an event.
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Input     json.RawMessage `json:"input"`
}

// anthropicEvent is the union of all events of the stream, with the fields that are read.
type anthropicEvent struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Delta struct {
		Type        string          `json:"type"`
		Text        json.RawMessage `json:"text"`
		Thinking    json.RawMessage `json:"thinking"`
		Signature   string          `json:"signature"`
		PartialJSON json.RawMessage `json:"partial_json"`
		StopReason  string          `json:"stop_reason"`
	} `json:"delta"`
	ContentBlock *anthropicContent `json:"content_block"`
	Message      *struct {
		Usage *anthropicUsage `json:"usage"`
	} `json:"message"`
	Usage *anthropicUsage `json:"usage"`
}

// anthropicUsage has pointers because an event repeats only some of the counts: a missing one keeps its last value.
type anthropicUsage struct {
	Input      *int `json:"input_tokens"`
	Output     *int `json:"output_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
}

// event takes one event. Unknown types are ignored, as the API's versioning policy asks of clients.
// It may not keep data: the reader uses the buffer again.
func (a *anthropicAnswer) event(data []byte) (progress, error) {
	if ok, err := a.like.try(data); ok {
		return more, err
	}
	a.like.clear()
	// a gateway ends every format with [DONE]
	if strayDone(data) {
		return more, nil
	}
	var ev anthropicEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		var typeErr *json.UnmarshalTypeError
		// Go fills the other fields in spite of a type error, so what was understood counts.
		if !errors.As(err, &typeErr) { // events and blocks that are new may have fields of other types
			return more, errBadEvent
		}
	}
	switch ev.Type {
	case "content_block_delta":
		return more, a.delta(&ev, data)
	case "content_block_start":
		return more, a.start(&ev)
	case "content_block_stop":
		return more, a.close(ev.Index)
	case "message_start":
		if ev.Message != nil {
			return more, a.count(ev.Message.Usage)
		}
	// With a stop reason the answer is complete, whether or not message_stop follows.
	case "message_delta":
		if r := ev.Delta.StopReason; r != "" {
			a.stop, a.over = anthropicStop(r), true
		}
		if err := a.count(ev.Usage); err != nil {
			return more, err
		}
		if a.over {
			return finished, nil
		}
	case "message": // a server that does not stream
		return done, a.whole(data)
	case "message_stop":
		a.over = true
		return done, nil
	case "error", "":
		// An event without a type may still be an error: proxies send {"error": …} alone.
		f := parseFailure(0, nil, data)
		if ev.Type == "" && f.message == string(data) {
			return more, nil // an object that says nothing
		}
		return more, f
	}
	return more, nil
}

// whole reads a message that came at once.
// Its blocks go through start and close, so that a call in it gets the same events as a streamed one.
func (a *anthropicAnswer) whole(data []byte) error {
	var m struct {
		Content []anthropicContent `json:"content"`
		Stop    string             `json:"stop_reason"`
		Usage   *anthropicUsage    `json:"usage"`
	}
	_ = json.Unmarshal(data, &m) // fields of other types are left out
	for i := range m.Content {
		if err := a.start(&anthropicEvent{Index: i, ContentBlock: &m.Content[i]}); err != nil {
			return err
		}
		if err := a.close(i); err != nil {
			return err
		}
	}
	a.stop, a.over = anthropicStop(m.Stop), true
	return a.count(m.Usage)
}

// anthropicStop is a stop_reason as ours.
func anthropicStop(reason string) StopReason {
	switch reason {
	case "tool_use":
		return StopTools
	// the window of the model is full: as with max_tokens, the answer breaks off
	case "max_tokens", "model_context_window_exceeded":
		return StopMaxTokens
	case "refusal":
		return StopRefusal
	}
	return StopEnd
}

// count emits the usage so far; each event is a running total, not an addition.
func (a *anthropicAnswer) count(u *anthropicUsage) error {
	if u == nil {
		return nil
	}
	// Zero is a count too, so pointers tell a zero from a field that is not there.
	for _, f := range []struct {
		to   *int
		from *int
	}{{&a.usage.Input, u.Input}, {&a.usage.Output, u.Output}, {&a.usage.CacheRead, u.CacheRead}, {&a.usage.CacheWrite, u.CacheWrite}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return a.out.send(Event{Type: EventUsage, Usage: a.usage})
}

// start opens a content block.
func (a *anthropicAnswer) start(ev *anthropicEvent) error {
	c := ev.ContentBlock
	if c == nil {
		return nil
	}
	if a.blocks == nil {
		a.blocks = map[int]*anthropicBlock{}
	}
	if err := a.close(ev.Index); err != nil { // compatible servers forget content_block_stop
		return err
	}
	bl := &anthropicBlock{kind: c.Type, signature: c.Signature}
	a.blocks[ev.Index] = bl
	switch c.Type {
	case "text":
		if c.Text != "" {
			return a.out.send(Event{Type: EventText, Text: c.Text})
		}
	case "thinking":
		if c.Thinking != "" {
			return a.out.send(Event{Type: EventThinking, Text: c.Thinking})
		}
	case "redacted_thinking":
		bl.signature = redactedThinking + c.Data
	case "tool_use":
		bl.index, bl.id, bl.name = a.calls, a.ids.unique(c.ID), c.Name
		a.calls++
		if err := a.out.send(Event{Type: EventToolStart, Index: bl.index, CallID: bl.id, Name: bl.name}); err != nil {
			return err
		}
		// Some compatible servers put the whole input here instead of streaming it.
		if in := string(c.Input); in != "" && in != "{}" && in != "null" {
			bl.args, bl.whole = append(bl.args, in...), len(in)
			// the editor shows arguments as they come, also when they come at once
			return a.out.send(Event{Type: EventToolDelta, Index: bl.index, Text: in})
		}
	}
	return nil
}

// delta emits a piece of a block. Pieces whose surroundings never change are learned as a template, so
// that most events of a long answer are not parsed as JSON at all.
func (a *anthropicAnswer) delta(ev *anthropicEvent, data []byte) error {
	d := &ev.Delta
	var raw json.RawMessage
	var apply func(string) error
	switch d.Type {
	case "text_delta":
		raw, apply = d.Text, func(t string) error { return a.out.send(Event{Type: EventText, Text: t}) }
	case "thinking_delta":
		raw, apply = d.Thinking, func(t string) error { return a.out.send(Event{Type: EventThinking, Text: t}) }
	case "input_json_delta":
		index := ev.Index
		raw, apply = d.PartialJSON, func(t string) error { return a.arguments(index, t) }
	case "signature_delta":
		// a signature may be cut into pieces
		if bl := a.blocks[ev.Index]; bl != nil {
			bl.signature += d.Signature
		}
		return nil
	default:
		return nil
	}
	text := jsonText(raw)
	if text == "" {
		return nil
	}
	// From here on, events that differ only in this text are applied without a decode.
	a.like.learn(data, raw, apply)
	return apply(text)
}

// arguments adds a piece of a call's input; the pieces are JSON only when joined.
func (a *anthropicAnswer) arguments(index int, piece string) error {
	// Text in a block that was not opened, or is no call, has nowhere to go.
	bl := a.blocks[index]
	if bl == nil || bl.kind != "tool_use" {
		return nil
	}
	bl.args = append(bl.args, piece...)
	return a.out.send(Event{Type: EventToolDelta, Index: bl.index, Text: piece})
}

// close ends a block: a call is complete, thinking gets its signature.
func (a *anthropicAnswer) close(index int) error {
	bl := a.blocks[index]
	if bl == nil {
		return nil
	}
	delete(a.blocks, index)
	switch bl.kind {
	case "tool_use":
		// A server that gives the input at once and in pieces would otherwise double it, which is not JSON.
		args := bl.args
		if again := args[bl.whole:]; json.Valid(again) { // the input came with the start, and in pieces once more
			args = again
		}
		return a.out.send(Event{Type: EventToolEnd, Index: bl.index, CallID: bl.id, Name: bl.name, Text: wrapArguments(string(args))})
	case "thinking", "redacted_thinking":
		if bl.signature != "" {
			return a.out.send(Event{Type: EventThinking, Signature: bl.signature})
		}
	}
	return nil
}

// end closes the blocks that the stream left open, in order, and emits usage and stop. Without a stop reason the answer was cut.
// A stream that ends in the middle of a call must not run the call with half of its arguments.
func (a *anthropicAnswer) end() error {
	if !a.over {
		return errCut
	}
	// the bound ends a walk over indexes that a broken server made huge
	for i := 0; len(a.blocks) > 0 && i <= 1<<16; i++ { // in order, because the history keeps the order of calls
		if err := a.close(i); err != nil {
			return err
		}
	}
	switch {
	// Compatible servers say end_turn after calls, and tool_use without any.
	case a.calls > 0 && (a.stop == StopEnd || a.stop == ""):
		a.stop = StopTools
	case a.calls == 0 && a.stop == StopTools, a.stop == "":
		a.stop = StopEnd
	}
	return a.out.send(Event{Type: EventStop, Stop: a.stop})
}

// idSet makes the call ids of one answer unique, and makes one up where there is none.
type idSet struct{ seen map[string]bool }

// unique is the id, or a new one when it is empty or was used already: two calls with one id could not be told apart.
func (s *idSet) unique(id string) string {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if id == "" {
		id = newCallID()
	}
	// both the server's id and the made-up ones are tried, so _2 cannot collide either
	base := id
	for n := 2; s.seen[id]; n++ {
		id = base + "_" + strconv.Itoa(n)
	}
	s.seen[id] = true
	return id
}
