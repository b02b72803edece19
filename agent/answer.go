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

// cancelGrace is how long a stream or a tool may take to return after a cancel. After that the turn ends without it: a person who cancels
// must not wait for a provider or a tool that ignores its context.
const cancelGrace = 50 * time.Millisecond

// answer is one model answer while it streams and until its step is stored.
type answer struct {
	t   *turn
	set *setup
	id  string // message id

	mu     sync.Mutex
	closed bool // guarded by mu; the stream ended or was abandoned, and later events are dropped

	// The stream's goroutine writes these under mu. After it has ended or was abandoned (closed), only the runner's goroutine uses them.
	parts   []part
	calls   []*call
	byIndex map[int]*call // by the provider's index; a provider may reuse an index after its call is complete
	echo    *echo         // drops text that repeats the answer which this one continues; nil: it continues none
	usage   provider.Usage
	stop    provider.StopReason

	batch *batch // the calls that run or ran
}

// part is a piece of the message: text, thinking, or a call. Text of one type is appended to the last part until a signature closes it;
// each call is a part of its own.
type part struct {
	typ       provider.PartType
	text      gathered
	signature string // an opaque value of the provider for this part; sent back unchanged
	ended     bool   // a signature closed the part; it covers exactly this text, so more text begins another part
	call      *call
}

// words returns the text of the answer so far, without thinking.
func (a *answer) words() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	for _, p := range a.parts {
		if p.typ == provider.PartText {
			b.WriteString(p.text.String())
		}
	}
	return b.String()
}

// errLeft is what emit returns to an abandoned stream, so that the provider stops reading.
var errLeft = errors.New("the turn is over")

// newAnswer begins an answer. It emits EventMessage before the request is sent, so that an editor shows the step at once and recovery after
// a crash finds a message to close.
func (t *turn) newAnswer(set *setup) *answer {
	a := &answer{t: t, set: set, id: newID("msg_"), byIndex: map[int]*call{}}
	a.batch = newBatch(a)
	t.s.emit(EventMessage, MessageData{MessageID: a.id, Model: set.model.String(), Step: t.step})
	return a
}

// stream runs the request in a goroutine of its own, so that a provider that ignores its context cannot block the turn. After it has
// returned, the answer is closed and a provider that still sends gets errLeft. An answer without a stop reason counts as complete when it
// has parts; without parts the error is ErrCut, which is retried.
func (a *answer) stream(ctx context.Context, via provider.Provider, req *provider.Request) error {
	done := make(chan error, 1)
	go func() {
		done <- via.Stream(ctx, req, func(e provider.Event) error {
			// room blocks while subscribers are too far behind. It is called before a.mu is locked: else an editor that reads slowly would
			// block a cancel.
			if err := a.t.s.room(ctx); err != nil {
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
	// done is buffered, so the provider's goroutine can end even when nothing reads its result any more.
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
	// The stream has ended, so the text that echo holds back is not the beginning of a repetition but the whole answer.
	if a.echo != nil && err == nil && len(a.echo.got) > 0 {
		held := string(a.echo.got)
		a.echo = nil
		a.text(provider.PartText, EventText, provider.Event{Type: provider.EventText, Text: held})
	}
	if err == nil && a.stop == "" {
		// Providers promise a stop event. Without one, an answer with parts is taken as whole.
		if a.stop = provider.StopEnd; len(a.parts) == 0 {
			return &provider.Error{Kind: provider.ErrCut, Message: "The model's answer ended before it began"}
		}
	}
	return err
}

// addEvent adds one event of the stream. The caller holds a.mu. A provider may repeat or omit events (a start without an end, an end
// without a start), so every case must be safe to run twice.
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
			delete(a.byIndex, e.Index) // the provider reuses the index for another call
		}
		a.callAt(e)
	case provider.EventToolDelta:
		if c := a.callAt(e); !c.complete {
			c.raw.add(e.Text)
		}
	case provider.EventToolEnd:
		c := a.callAt(e)
		if c.complete {
			return // some servers repeat the end of a call
		}
		// The end event carries the complete arguments; they replace the pieces. Long ones it leaves out when the pieces are all of them.
		if e.Text != "" {
			c.raw.set([]byte(e.Text))
		}
		c.signature, c.complete = e.Signature, true
		c.ungroup()
		a.batch.ready(ctx, c)
	case provider.EventUsage:
		a.usage = e.Usage
	case provider.EventStop:
		a.stop = e.Stop
	}
}

// text adds a piece of text or thinking and emits it. The caller holds a.mu. Consecutive pieces of one type become one part, the form in
// which providers want them back. An empty piece with a signature closes the part and emits nothing.
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
	n := len(a.parts)
	if n == 0 || a.parts[n-1].typ != typ || a.parts[n-1].ended {
		a.parts = append(a.parts, part{})
		n++
		a.parts[n-1].typ = typ
	}
	p := &a.parts[n-1]
	if e.Text != "" {
		p.text.add(e.Text)
		a.t.s.text(as, a.id, e.Text)
	}
	if e.Signature != "" {
		p.signature, p.ended = e.Signature, true
	}
}

// callAt returns the call that an event belongs to, and creates it when the provider has sent no start event.
func (a *answer) callAt(e provider.Event) *call {
	c := a.byIndex[e.Index]
	if c == nil {
		c = a.newCall(e.CallID, e.Name)
		a.byIndex[e.Index] = c
		a.calls = append(a.calls, c)
		a.parts = append(a.parts, part{typ: provider.PartToolCall, call: c})
		c.show(ToolPending) // at once: long arguments stream for many seconds, and the person sees which tool is coming
	} else if c.name == "" && e.Name != "" {
		c.resolve(e.Name)
	}
	return c
}

// completeCalls counts the calls whose arguments arrived completely. When there is at least one, a broken answer is kept and the request is
// not repeated: the call may already have run.
func (a *answer) completeCalls() (n int) {
	for _, c := range a.calls {
		if c.complete {
			n++
		}
	}
	return n
}

// cutCalls reports whether the output limit cut the arguments of a call.
func (a *answer) cutCalls() bool {
	for _, c := range a.calls {
		if c.cut {
			return true
		}
	}
	return false
}

// isEmpty reports whether the answer has no visible text. Calls and thinking do not count: the person has read none of it, so it may be
// requested again.
func (a *answer) isEmpty() bool {
	for i := range a.parts {
		if a.parts[i].typ == provider.PartText && !a.parts[i].text.isBlank() {
			return false
		}
	}
	return true
}

// onlyThought reports whether the model only thought, and neither wrote text nor called a tool. A turn must not end with such an answer.
func (a *answer) onlyThought() bool { return len(a.calls) == 0 && a.isEmpty() }

// abandonCalls gives incomplete calls a final state in the transcript, so that no editor shows them as running. They do not enter the
// history.
func (a *answer) abandonCalls(why string) {
	for _, c := range a.calls {
		c.fail("cut", why)
	}
}

// messages returns the answer and its results as the history keeps them. Calls are in the model's order and each has a result, because
// providers refuse a conversation in which a result is missing; for the same reason thinking without its signature is left out. whole means
// that the answer ended regularly. The second message is nil when there are no calls.
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
			m.Parts = append(m.Parts, provider.Part{Type: p.typ, CallID: p.call.id, Name: safeName(p.call.name), Input: inputJSON(p.call.raw.bytes()), Signature: p.call.signature})
			result := resultPart(data)
			result.Name = safeName(p.call.name)
			if p.call.alone {
				result.ErrorKind = "unanswered"
			}
			// The built-in model reads results from their metadata; see provider.Part.
			if a.set.model.Provider == builtinProvider {
				result.Metadata, _ = json.Marshal(data.Metadata) // without metadata it tells the person that it could not read the result
			}
			if p.call.note != "" {
				result.Text += "\n\n" + p.call.note
			}
			results.Parts = append(results.Parts, result)
		case provider.PartThinking:
			// Thinking that broke off has no signature, and its provider would refuse it.
			if whole || p.signature != "" {
				m.Parts = append(m.Parts, provider.Part{Type: p.typ, Text: p.text.String(), Signature: p.signature})
			}
		default:
			if !p.text.isBlank() || p.signature != "" {
				m.Parts = append(m.Parts, provider.Part{Type: p.typ, Text: p.text.String(), Signature: p.signature})
			}
		}
	}
	if onlyThinking(m.Parts) {
		m.Parts = nil // providers refuse a message that has only thinking
	}
	if len(results.Parts) == 0 {
		return m, nil
	}
	return m, results
}

// onlyThinking reports whether all parts are thinking; also true for no parts.
func onlyThinking(parts []provider.Part) bool {
	for _, p := range parts {
		if p.Type != provider.PartThinking {
			return false
		}
	}
	return true
}
