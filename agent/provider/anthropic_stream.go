package provider

import (
	"encoding/json"
	"errors"
	"strconv"
)

// anthropicAnswer reads the events of one answer. It is used by one goroutine, that of run.
type anthropicAnswer struct {
	out emitter
	// blocks are the open content blocks, by the API's index.
	blocks map[int]*anthropicBlock
	// calls counts the tool calls so far; the next call's Index in our events.
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
	whole     int // bytes of args that came with the block's start, in place of or besides pieces
	signature string
}

// anthropicContent is the union of all content blocks, with the fields that are read.
type anthropicContent struct {
	// Other blocks (citations, server tools) have more fields; they pass without an event.
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

// event implements answer. Unknown types are ignored, as the API's versioning policy asks of clients.
func (a *anthropicAnswer) event(data []byte) (progress, error) {
	if ok, err := a.like.try(data); ok {
		return more, err
	}
	a.like.clear()
	// Some gateways end every format with [DONE].
	if strayDone(data) {
		return more, nil
	}
	var ev anthropicEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		var typeErr *json.UnmarshalTypeError
		// encoding/json fills the other fields in spite of a type error, so what was understood counts: new events and blocks may have
		// fields of other types.
		if !errors.As(err, &typeErr) {
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
	// With a stop reason the answer is complete, also where message_stop does not follow.
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
		// An event without a type may be an error: some proxies send {"error": …} alone.
		f := parseFailure(0, nil, data)
		if ev.Type == "" && f.message == string(data) {
			return more, nil // an object that says nothing
		}
		return more, f
	}
	return more, nil
}

// whole reads a message that came at once. Its blocks pass through start and close, so that a call in it gets the same events as a
// streamed one.
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
	// The context window is full: as with max_tokens, the answer was cut.
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
	// A count of zero differs from a missing one, hence the pointers.
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

// start opens a content block. Text that comes with it is emitted; a call is announced.
func (a *anthropicAnswer) start(ev *anthropicEvent) error {
	c := ev.ContentBlock
	if c == nil {
		return nil
	}
	if a.blocks == nil {
		a.blocks = map[int]*anthropicBlock{}
	}
	if err := a.close(ev.Index); err != nil { // some compatible servers leave out content_block_stop
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
			// Editors show arguments while they arrive, so the whole input is one piece.
			return a.out.send(Event{Type: EventToolDelta, Index: bl.index, Text: in})
		}
	}
	return nil
}

// delta emits a piece of a block. It makes the event the template for those after it, so that most events of a long answer are not parsed
// as JSON.
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
		// A signature may be cut into pieces.
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
	a.like.learn(data, raw, apply)
	return apply(text)
}

// arguments adds a piece of a call's input; the pieces are JSON only when joined.
func (a *anthropicAnswer) arguments(index int, piece string) error {
	// Arguments for a block that was not opened, or is not a call, are dropped.
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
		// A server that sends the input with the start and once more in pieces would double it, which is not JSON.
		text := ""
		if again := bl.args[bl.whole:]; bl.whole > 0 && json.Valid(again) { // the pieces alone are the arguments
			text = wrapArguments(string(again))
		} else {
			text = endArguments(bl.args)
		}
		bl.args = nil
		return a.out.send(Event{Type: EventToolEnd, Index: bl.index, CallID: bl.id, Name: bl.name, Text: text})
	case "thinking", "redacted_thinking":
		if bl.signature != "" {
			return a.out.send(Event{Type: EventThinking, Signature: bl.signature})
		}
	}
	return nil
}

// end closes the blocks that the stream left open, and emits the stop. Without a stop reason the answer was cut: a call with half of its
// arguments must not run.
func (a *anthropicAnswer) end() error {
	if !a.over {
		return errCut
	}
	// The bound ends the search for indexes that a broken server made huge.
	for i := 0; len(a.blocks) > 0 && i <= 1<<16; i++ { // in order, because the history keeps the order of calls
		if err := a.close(i); err != nil {
			return err
		}
	}
	switch {
	// Some compatible servers say end_turn after calls, and tool_use without any.
	case a.calls > 0 && (a.stop == StopEnd || a.stop == ""):
		a.stop = StopTools
	case a.calls == 0 && a.stop == StopTools, a.stop == "":
		a.stop = StopEnd
	}
	return a.out.send(Event{Type: EventStop, Stop: a.stop})
}

// idSet makes the call ids of one answer unique, and makes one where there is none: calls and results are matched by id.
type idSet struct{ seen map[string]bool }

// unique returns the id, or another one when it is empty or taken.
func (s *idSet) unique(id string) string {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if id == "" {
		id = newCallID()
	}
	// The made-up ids are tried as well, because a server may use the same form.
	base := id
	for n := 2; s.seen[id]; n++ {
		id = base + "_" + strconv.Itoa(n)
	}
	s.seen[id] = true
	return id
}
