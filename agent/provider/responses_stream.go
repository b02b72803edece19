package provider

import (
	"encoding/json"
	"errors"
)

// responsesAnswer reads the events of one response. It is used by one goroutine, that of run.
type responsesAnswer struct {
	out     emitter
	calls   map[int]*responsesCall // by output index; indexes below 0 are ours, see told
	count   int                    // calls so far; the next call's Index in our events
	ids     idSet
	said    map[int]bool   // output indexes whose text or summary was streamed
	spoke   bool           // any text came, so that the closing event's messages are known
	items   bool           // items came one by one, so that the closing event's reasoning is known
	early   map[int]string // by output index: arguments that came before their call
	thought bool           // a summary was streamed: the next part of it begins a paragraph
	// refused: the text is a refusal, which the API reports as a kind of content and not as a reason to stop.
	refused  bool
	stop     StopReason
	over     bool
	usage    Usage
	hasUsage bool
	like     template
}

// responsesCall is a function call between its first event and its end.
type responsesCall struct {
	// at is the call's Index in our events.
	at       int
	id, name string
	key      string // the server's id
	args     []byte
	replaced bool // args are others than the pieces said
	// ended: EventToolEnd was emitted, and nothing may be added any more.
	ended bool
}

// responsesEvent is an event of the stream, or the response itself where a server does not stream.
type responsesEvent struct {
	Type        string          `json:"type"`
	OutputIndex int             `json:"output_index"`
	Delta       json.RawMessage `json:"delta"`
	Arguments   string          `json:"arguments"`
	Item        *responsesItem  `json:"item"`
	Response    *responsesBody  `json:"response"`
	Object      string          `json:"object"`
}

// responsesBody is a response: empty when it is created, complete in the closing event.
type responsesBody struct {
	Status     string `json:"status"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error  json.RawMessage `json:"error"`
	Output []responsesItem `json:"output"`
	Usage  *struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		InMore struct {
			Cached int `json:"cached_tokens"`
			Write  int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutMore struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// responsesItem is an item of the output, with the fields of all types that are read: message, function_call, reasoning.
type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// event takes one event. Gateways that imitate the API leave events out, repeat them, or number all
// items 0; what each branch tolerates was seen with one of them.
// event implements answer. Fields of other types are tolerated, since the API adds events and fields without a new version.
func (a *responsesAnswer) event(data []byte) (progress, error) {
	if strayDone(data) {
		return more, nil
	}
	if ok, err := a.like.try(data); ok {
		return more, err
	}
	a.like.clear()
	var ev responsesEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		var typeErr *json.UnmarshalTypeError
		if !errors.As(err, &typeErr) {
			return more, errBadEvent
		}
	}
	// A server that does not stream answers with the response object. It is read as the closing event, which has everything.
	if ev.Type == "" && ev.Object == "response" {
		ev.Type, ev.Response = "response.completed", &responsesBody{}
		_ = json.Unmarshal(data, ev.Response)
	}
	switch ev.Type {
	case "response.output_text.delta":
		index := ev.OutputIndex
		a.like.learn(data, ev.Delta, func(t string) error { return a.text(index, t) })
		return more, a.text(index, jsonText(ev.Delta))
	case "response.refusal.delta":
		a.refused = true
		return more, a.text(ev.OutputIndex, jsonText(ev.Delta))
	// reasoning_text is the thought itself, which servers of open models send; OpenAI sends summaries only.
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.mark(ev.OutputIndex)
		a.thought = true
		if t := jsonText(ev.Delta); t != "" {
			return more, a.out.send(Event{Type: EventThinking, Text: t})
		}
	case "response.reasoning_summary_part.added":
		// The parts of a summary are paragraphs; the first needs no blank line before it.
		if a.thought {
			return more, a.out.send(Event{Type: EventThinking, Text: "\n\n"})
		}
	case "response.function_call_arguments.delta":
		// Pieces that come after the call has ended would be emitted after its EventToolEnd, so they are dropped.
		if c := a.calls[ev.OutputIndex]; c != nil && !c.ended {
			add := func(t string) error {
				c.args = append(c.args, t...)
				return a.out.send(Event{Type: EventToolDelta, Index: c.at, Text: t})
			}
			if t := jsonText(ev.Delta); t != "" {
				a.like.learn(data, ev.Delta, add)
				return more, add(t)
			}
		}
	case "response.function_call_arguments.done":
		switch c := a.calls[ev.OutputIndex]; {
		case ev.Arguments == "":
		// The whole arguments replace the pieces: a gateway may have left one out.
		case c != nil && !c.ended:
			c.replace(ev.Arguments)
		// The arguments came before their item: begin finds them under the same output index.
		default:
			if a.early == nil {
				a.early = map[int]string{}
			}
			a.early[ev.OutputIndex] = ev.Arguments
		}
	case "response.output_item.added":
		a.items = true
		if it := ev.Item; it != nil && it.Type == "function_call" {
			_, err := a.begin(ev.OutputIndex, it)
			return more, err
		}
		// Another item begins, so the next summary starts without a blank line.
		a.thought = false
	case "response.output_item.done":
		a.items = true
		return more, a.item(ev.OutputIndex, ev.Item)
	case "response.completed", "response.incomplete", "response.done":
		// Some gateways close a failed response with response.completed; the status is what counts.
		if r := ev.Response; r != nil && (r.Status == "failed" || r.Status == "cancelled") {
			return more, responsesFailure(&ev, data)
		}
		return done, a.close(&ev)
	case "response.failed", "response.cancelled", "error", "":
		return more, responsesFailure(&ev, data)
	}
	return more, nil
}

// responsesFailure finds the error in any of the three places where servers put it: in the response, in the event, or at the top of the
// event.
func responsesFailure(ev *responsesEvent, data []byte) error {
	if ev.Response != nil && len(ev.Response.Error) > 0 && string(ev.Response.Error) != "null" {
		return parseFailure(0, nil, append(append([]byte(`{"error":`), ev.Response.Error...), '}'))
	}
	f := parseFailure(0, nil, data)
	// parseFailure found none of the known fields and took the whole event for the message.
	if f.message == string(data) {
		f.message = "the response ended as " + ev.Type
	}
	return f
}

// mark notes that an output item was streamed, so that the closing event does not emit its text again.
func (a *responsesAnswer) mark(index int) {
	if a.said == nil {
		a.said = map[int]bool{}
	}
	a.said[index] = true
}

// text emits a piece of the answer's text and notes that its item was streamed.
func (a *responsesAnswer) text(index int, t string) error {
	if t == "" {
		return nil
	}
	if !a.said[index] {
		a.mark(index)
	}
	a.spoke = true
	return a.out.send(Event{Type: EventText, Text: t})
}

// begin returns the call at an output index. It makes a new one where there is none, or where a gateway that numbers all items 0 begins
// another call: the old one has ended and the id differs.
func (a *responsesAnswer) begin(index int, it *responsesItem) (*responsesCall, error) {
	id := it.key()
	if c := a.calls[index]; c != nil && (!c.ended || id == "" || id == c.key) {
		return c, nil // the same call
	}
	c := &responsesCall{at: a.count, id: a.ids.unique(id), key: id, name: it.Name, args: []byte(a.early[index])}
	delete(a.early, index)
	a.count++
	if a.calls == nil {
		a.calls = map[int]*responsesCall{}
	}
	a.calls[index] = c
	return c, a.out.send(Event{Type: EventToolStart, Index: c.at, CallID: c.id, Name: c.name})
}

// item ends an output item. An item that was not streamed in pieces is emitted whole.
func (a *responsesAnswer) item(index int, it *responsesItem) error {
	if it == nil {
		return nil
	}
	switch it.Type {
	case "function_call":
		c, err := a.begin(index, it)
		if err != nil || c.ended {
			return err
		}
		// The item has the complete arguments, whatever the pieces were.
		if it.Arguments != "" {
			c.replace(it.Arguments)
		}
		if it.Name != "" {
			c.name = it.Name
		}
		return a.endCall(c)
	case "reasoning":
		a.thought = false
		if !a.said[index] {
			a.mark(index)
			for _, s := range summaryTexts(it.Summary) {
				if err := a.out.send(Event{Type: EventThinking, Text: s}); err != nil {
					return err
				}
			}
		}
		// Without the encrypted content the item cannot be sent back, so no signature is kept; see appendReasoning.
		sig, err := json.Marshal(reasoningItem{ID: it.ID, Summary: it.Summary, Encrypted: it.Encrypted})
		if it.Encrypted == "" || err != nil {
			return nil
		}
		return a.out.send(Event{Type: EventThinking, Signature: string(sig)})
	case "message":
		if a.said[index] {
			return nil
		}
		for _, c := range it.Content {
			if c.Refusal != "" {
				a.refused = true
			}
			if err := a.text(index, c.Text+c.Refusal); err != nil {
				return err
			}
		}
	}
	return nil
}

// summaryTexts are the paragraphs of a reasoning summary; none where it has another shape.
func summaryTexts(raw json.RawMessage) []string {
	var list []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &list)
	var out []string
	for _, s := range list {
		if s.Text != "" {
			out = append(out, s.Text)
		}
	}
	return out
}

// replace sets the arguments to what an event says at once. Most often the pieces have said the same before.
func (c *responsesCall) replace(args string) {
	if string(c.args) != args {
		c.args, c.replaced = []byte(args), true
	}
}

// endCall emits the end of a call, once.
func (a *responsesAnswer) endCall(c *responsesCall) error {
	c.ended = true
	text := endArguments(c.args)
	if c.replaced {
		text = wrapArguments(string(c.args))
	}
	c.args = nil
	return a.out.send(Event{Type: EventToolEnd, Index: c.at, CallID: c.id, Name: c.name, Text: text})
}

// close reads the closing event: why the response is incomplete, its usage, and items that no event has told of.
func (a *responsesAnswer) close(ev *responsesEvent) error {
	a.over = true
	r := ev.Response
	if r == nil {
		return nil
	}
	if r.Incomplete != nil {
		switch r.Incomplete.Reason {
		case "max_output_tokens":
			a.stop = StopMaxTokens
		case "content_filter":
			a.stop = StopRefusal
		}
	}
	if u := r.Usage; u != nil {
		// The API's sums include the cached and the reasoning tokens. A gateway may count them beside the sums, hence max.
		a.hasUsage = true
		a.usage = Usage{
			Input:  max(0, u.Input-u.InMore.Cached-u.InMore.Write),
			Output: max(0, u.Output-u.OutMore.Reasoning), Reasoning: u.OutMore.Reasoning,
			CacheRead: u.InMore.Cached, CacheWrite: u.InMore.Write,
		}
	}
	// A gateway may leave out item events; the closing event has everything, though not always at the same index.
	// A copy: item sets a.spoke with the first message, and the others must not be skipped for that.
	spoke := a.spoke
	for i := range r.Output {
		it := &r.Output[i]
		at, known := i, false
		switch it.Type {
		case "function_call":
			if at, known = a.told(i, it); known {
				continue
			}
		case "message":
			// Messages have no id to compare: once any text was streamed, all of it is taken as streamed.
			known = spoke
		case "reasoning":
			known = a.items
		}
		if known {
			continue
		}
		if err := a.item(at, it); err != nil {
			return err
		}
	}
	return nil
}

// told looks up a call of the closing event among the streamed ones: its output index, and whether it has ended. A call that was never
// streamed gets a free index: -1-i where a streamed call has its own.
func (a *responsesAnswer) told(i int, it *responsesItem) (index int, whole bool) {
	if id := it.key(); id != "" {
		for at, c := range a.calls {
			if c.key == id {
				return at, c.ended
			}
		}
		if a.calls[i] != nil {
			return -1 - i, false
		}
		return i, false
	}
	c := a.calls[i]
	return i, c != nil && c.ended
}

// key identifies a call: its call_id, or the item's id from servers that send only that.
func (it *responsesItem) key() string {
	if it.CallID != "" {
		return it.CallID
	}
	return it.ID
}

// end closes the calls that the server left open and emits usage and stop. Without a closing event the answer was cut.
func (a *responsesAnswer) end() error {
	if !a.over {
		return errCut
	}
	// In the order of the calls, which a map does not have: the history keeps that order.
	for i := 0; i < a.count; i++ {
		for _, c := range a.calls {
			if c.at == i && !c.ended {
				if err := a.endCall(c); err != nil {
					return err
				}
			}
		}
	}
	if a.hasUsage {
		if err := a.out.send(Event{Type: EventUsage, Usage: a.usage}); err != nil {
			return err
		}
	}
	// The API has no reason for an end with calls: status is "completed" with and without them.
	stop := a.stop
	switch {
	case stop != "":
	case a.refused:
		stop = StopRefusal
	case a.count > 0:
		stop = StopTools
	default:
		stop = StopEnd
	}
	return a.out.send(Event{Type: EventStop, Stop: stop})
}
