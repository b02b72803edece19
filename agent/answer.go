package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
)

// cancelGrace is how long a stream or a tool may take to end after a cancel. Then the turn
// ends without waiting for it: a person who cancels must not wait for a provider or a tool
// that ignores its context.
const cancelGrace = 50 * time.Millisecond

// answer is one model answer while it streams and until its step is stored.
type answer struct {
	t   *turn
	set *setup
	id  string // message id

	mu     sync.Mutex
	closed bool // guarded by mu: the stream was left behind; what it still says is dropped

	// The stream's goroutine writes these under mu; when it has ended or was left behind, they are the runner's.
	parts   []part
	calls   []*call
	byIndex map[int]*call // by the provider's index; an index may be used again after its call is complete
	echo    *echo         // takes out what an answer repeats of one that broke off; nil: nothing to take out
	usage   provider.Usage
	stop    provider.StopReason

	batch *batch // the calls that run or ran
}

// part is a piece of the message: text, thought, or a call.
// The last part grows while text of its type comes, until a signature closes it; a call is always a part of its
// own.
type part struct {
	typ       provider.PartType
	text      []byte
	signature string
	ended     bool // a signature closed it: more text of this type begins a new part, because the signature covers this one
	call      *call
}

// words is the text of the answer so far, without thoughts.
func (a *answer) words() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	for _, p := range a.parts {
		if p.typ == provider.PartText {
			b.Write(p.text)
		}
	}
	return b.String()
}

// errLeft is what emit returns to a stream that was abandoned: its text has no place to go.
var errLeft = errors.New("the turn is over")

// newAnswer begins an answer and emits its EventMessage before the request is sent, so that an editor shows the step at once and
// a crash leaves a message that repair can close.
func (t *turn) newAnswer(set *setup) *answer {
	a := &answer{t: t, set: set, id: newID("msg_"), byIndex: map[int]*call{}}
	a.batch = newBatch(a)
	t.s.emit(EventMessage, MessageData{MessageID: a.id, Model: set.model.String(), Step: t.step})
	return a
}

// stream runs the request in a goroutine of its own, so that a provider that ignores its context cannot block the turn. When
// it returns the answer is closed: a provider that still sends gets errLeft, and nothing of it is added. An answer that ended
// without a stop reason counts as whole when it has parts; without parts the error is ErrCut, which is retried.
func (a *answer) stream(ctx context.Context, via provider.Provider, req *provider.Request) error {
	done := make(chan error, 1)
	go func() {
		done <- via.Stream(ctx, req, func(e provider.Event) error {
			// room waits while subscribers are too far behind.
			if err := a.t.s.room(ctx); err != nil { // before a.mu: an editor that reads slowly must not block a cancel
				return err
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.closed {
				return errLeft
			}
			a.addEvent(ctx, e)
			return nil
		})
	}()
	var err error
	select {
	// The buffer of done lets the provider's goroutine end when nobody reads its result any more.
	case err = <-done:
	case <-ctx.Done():
		timer := time.NewTimer(cancelGrace)
		defer timer.Stop()
		select {
		case err = <-done:
		case <-timer.C:
			err = ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	// Only now it is known that the held text is all there is.
	if a.echo != nil && err == nil && len(a.echo.got) > 0 {
		held := string(a.echo.got)
		a.echo = nil
		a.text(provider.PartText, EventText, provider.Event{Type: provider.EventText, Text: held})
	}
	if err == nil && a.stop == "" {
		// The providers promise a stop; without one this is either a whole answer or none.
		if a.stop = provider.StopEnd; len(a.parts) == 0 {
			return &provider.Error{Kind: provider.ErrCut, Message: "The model's answer ended before it began"}
		}
	}
	return err
}

// addEvent adds one event of the stream to the answer. a.mu is held. A provider may repeat or omit events (a start without
// an end, an end without a start), so every case must be safe to run twice.
func (a *answer) addEvent(ctx context.Context, e provider.Event) {
	switch e.Type {
	case provider.EventText:
		if e.Text != "" || e.Signature != "" {
			a.text(provider.PartText, EventText, e)
		}
	case provider.EventThinking:
		a.text(provider.PartThinking, EventThinking, e)
	case provider.EventToolStart:
		if c := a.byIndex[e.Index]; c != nil && c.complete {
			delete(a.byIndex, e.Index) // another call under the same number
		}
		a.callAt(e)
	case provider.EventToolDelta:
		if c := a.callAt(e); !c.complete {
			c.raw.WriteString(e.Text)
		}
	case provider.EventToolEnd:
		c := a.callAt(e)
		if c.complete {
			return // some servers repeat the end of a call
		}
		// the end has the whole arguments, which count more than the pieces
		if e.Text != "" {
			c.raw.Reset()
			c.raw.WriteString(e.Text)
		}
		c.signature, c.complete = e.Signature, true
		a.batch.ready(ctx, c)
	case provider.EventUsage:
		a.usage = e.Usage
	case provider.EventStop:
		a.stop = e.Stop
	}
}

// text adds a piece of text or thought and emits it. Pieces of the same type are one part, as providers want them sent back.
// An empty piece with a signature closes the part without showing anything.
func (a *answer) text(typ provider.PartType, as EventType, e provider.Event) {
	if a.echo != nil && typ == provider.PartText {
		fresh, over := a.echo.next(e.Text)
		if e.Text = fresh; over {
			a.echo = nil
		}
		if e.Text == "" && e.Signature == "" {
			return
		}
	}
	// a.mu is held
	n := len(a.parts)
	if n == 0 || a.parts[n-1].typ != typ || a.parts[n-1].ended {
		a.parts = append(a.parts, part{})
		n++
		a.parts[n-1].typ = typ
	}
	p := &a.parts[n-1]
	if e.Text != "" {
		p.text = append(p.text, e.Text...)
		a.t.s.text(as, a.id, e.Text)
	}
	if e.Signature != "" {
		p.signature, p.ended = e.Signature, true
	}
}

// callAt finds the call an event is about, or begins it.
func (a *answer) callAt(e provider.Event) *call {
	c := a.byIndex[e.Index]
	if c == nil {
		c = a.newCall(e.CallID, e.Name)
		a.byIndex[e.Index] = c
		a.calls = append(a.calls, c)
		a.parts = append(a.parts, part{typ: provider.PartToolCall, call: c})
		c.show(ToolPending) // at once: long arguments take many seconds to arrive, and the person sees what is coming
	} else if c.name == "" && e.Name != "" {
		c.resolve(e.Name)
	}
	return c
}

// completeCalls counts the calls whose arguments arrived whole. With one or more, a broken answer is kept and not requested
// again: the call may have run already.
func (a *answer) completeCalls() (n int) {
	for _, c := range a.calls {
		if c.complete {
			n++
		}
	}
	return n
}

// cutCalls reports whether the output limit cut a call in its arguments.
func (a *answer) cutCalls() bool {
	for _, c := range a.calls {
		if c.cut {
			return true
		}
	}
	return false
}

// isEmpty reports that the answer has no visible text. Calls and thought do not count: what the person has not read can be
// requested again.
func (a *answer) isEmpty() bool {
	for i := range a.parts {
		if a.parts[i].typ == provider.PartText && strings.TrimSpace(string(a.parts[i].text)) != "" {
			return false
		}
	}
	return true
}

// onlyThought reports an answer that a turn cannot end with: the model thought, and neither said nor called anything.
func (a *answer) onlyThought() bool { return len(a.calls) == 0 && a.isEmpty() }

// abandonCalls gives the incomplete calls a final state in the transcript, so that no card
// stays open. They do not reach the history.
func (a *answer) abandonCalls(why string) {
	for _, c := range a.calls {
		c.fail("cut", why)
	}
}

// messages are the answer and its results as the history keeps them. Calls are in the
// model's order and each has a result, because providers refuse a conversation where one is
// missing. Thinking without its signature is left out for the same reason; whole says that
// the answer ended regularly.
func (a *answer) messages(model string, whole bool) (provider.Message, *provider.Message) {
	m := provider.Message{ID: a.id, Role: provider.RoleAssistant, Model: model}
	results := &provider.Message{ID: a.id + "r", Role: provider.RoleTool}
	kept := map[*call]bool{}
	for _, c := range a.calls {
		kept[c] = true
	}
	for i := range a.parts {
		p := &a.parts[i]
		switch p.typ {
		case provider.PartToolCall:
			if !kept[p.call] {
				continue
			}
			data := p.call.snapshot()
			m.Parts = append(m.Parts, provider.Part{Type: p.typ, CallID: p.call.id, Name: safeName(p.call.name), Input: inputJSON([]byte(p.call.raw.String())), Signature: p.call.signature})
			result := resultPart(data)
			result.Name = safeName(p.call.name)
			if p.call.alone {
				result.ErrorKind = "unanswered"
			}
			// The metadata is for machines in this process; see provider.Part.
			if a.set.model.Provider == builtinProvider {
				result.Metadata, _ = json.Marshal(data.Metadata) // without it the model says that it could not read the answer
			}
			if p.call.note != "" {
				result.Text += "\n\n" + p.call.note
			}
			results.Parts = append(results.Parts, result)
		case provider.PartThinking:
			// A thought that broke off has no signature, and its provider would refuse it.
			if whole || p.signature != "" {
				m.Parts = append(m.Parts, provider.Part{Type: p.typ, Text: string(p.text), Signature: p.signature})
			}
		default:
			if text := string(p.text); strings.TrimSpace(text) != "" || p.signature != "" {
				m.Parts = append(m.Parts, provider.Part{Type: p.typ, Text: text, Signature: p.signature})
			}
		}
	}
	if onlyThinking(m.Parts) {
		m.Parts = nil // an answer without words or calls: nothing to build on
	}
	if len(results.Parts) == 0 {
		return m, nil
	}
	return m, results
}

// onlyThinking reports that there is nothing but thought, or nothing at all.
func onlyThinking(parts []provider.Part) bool {
	for _, p := range parts {
		if p.Type != provider.PartThinking {
			return false
		}
	}
	return true
}
