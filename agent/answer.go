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

// cancelGrace is what a stream or a tool gets to end by itself after a cancel, before it is left behind.
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
	byIndex map[int]*call
	echo    *echo // takes out what an answer repeats of one that broke off; nil: nothing to take out
	usage   provider.Usage
	stop    provider.StopReason

	batch *batch // the calls that run or ran
}

// part is a piece of the message: text, thought, or a call.
type part struct {
	typ       provider.PartType
	text      []byte
	signature string
	ended     bool // a signature closed it
	call      *call
}

// errLeft is what a stream that was left behind gets from emit.
var errLeft = errors.New("the turn is over")

func (t *turn) newAnswer(set *setup) *answer {
	a := &answer{t: t, set: set, id: newID("msg_"), byIndex: map[int]*call{}}
	a.batch = newBatch(a)
	t.s.emit(EventMessage, MessageData{MessageID: a.id, Model: set.model.String(), Step: t.step})
	return a
}

// stream runs the request in a goroutine of its own, so that a provider that is deaf to its context cannot hold
// the turn.
func (a *answer) stream(ctx context.Context, via provider.Provider, req *provider.Request) error {
	done := make(chan error, 1)
	go func() {
		done <- via.Stream(ctx, req, func(e provider.Event) error {
			if err := a.t.s.room(ctx); err != nil {
				return err
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.closed {
				return errLeft
			}
			a.take(ctx, e)
			return nil
		})
	}()
	var err error
	select {
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
	if a.echo != nil && err == nil && len(a.echo.got) > 0 { // a whole answer that is a part of what was there
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

// take adds an event. mu is held.
func (a *answer) take(ctx context.Context, e provider.Event) {
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
			return // said twice
		}
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
		c.show(ToolPending)
	} else if c.name == "" && e.Name != "" {
		c.resolve(e.Name)
	}
	return c
}

func (a *answer) completeCalls() (n int) {
	for _, c := range a.calls {
		if c.complete {
			n++
		}
	}
	return n
}

// cutCalls reports calls that the end of the answer cut.
func (a *answer) cutCalls() bool {
	for _, c := range a.calls {
		if c.cut {
			return true
		}
	}
	return false
}

func (a *answer) isEmpty() bool {
	for i := range a.parts {
		if a.parts[i].typ == provider.PartText && strings.TrimSpace(string(a.parts[i].text)) != "" {
			return false
		}
	}
	return true
}

func (a *answer) onlyThought() bool { return len(a.calls) == 0 && a.isEmpty() }

// abandonCalls answers the incomplete calls in the transcript; they never reach the history.
func (a *answer) abandonCalls(why string) {
	for _, c := range a.calls {
		c.fail("cut", why)
	}
}

// messages are the answer and its results as the history keeps them. Calls come in the model's order and every one
// has a result. Thought that is not whole is left out: providers refuse it without its signature.
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
			if a.set.model.Provider == builtinProvider {
				result.Metadata, _ = json.Marshal(data.Metadata) // without it the model says that it could not read the answer
			}
			if p.call.note != "" {
				result.Text += "\n\n" + p.call.note
			}
			results.Parts = append(results.Parts, result)
		case provider.PartThinking:
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

func onlyThinking(parts []provider.Part) bool {
	for _, p := range parts {
		if p.Type != provider.PartThinking {
			return false
		}
	}
	return true
}
