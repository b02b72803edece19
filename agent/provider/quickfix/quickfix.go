// Package quickfix is the built-in model: it needs no key and no network, and is honest about what it is. It reads
// the request with a small grammar and works through the same loop, tools, permissions and previews as any model:
// it emits text and tool calls, reads the metadata of the results, tries the next quick fix, and says what is left.
//
// It keeps no state. Every step replays its script over the conversation so far: a call that has been answered
// returns its recorded result, the first one that has not is what the step emits.
//
//	p := quickfix.Provider{}
//	err := p.Stream(ctx, req, emit) // req.Messages ends with the person's "fix all errors"
package quickfix

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
)

// Model is what people see of it.
// The context is large, so that the agent has no reason to compact a conversation that no model reads.
var Model = provider.Model{Provider: "builtin", ID: "quickfix", Name: "Built-in quick fixes (no network)", Context: 1 << 20, Output: 1 << 16}

// Provider streams the built-in model's answers.
type Provider struct{}

// Stream plays the script to its frontier and emits what comes next. It fails only when ctx ends.
// A cancelled ctx is the only error of its own; emit's error is returned as it is.
func (Provider) Stream(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
	if err := ctx.Err(); err != nil {
		return &provider.Error{Kind: provider.ErrNetwork, Message: "cancelled", Err: err}
	}
	w := newWalk(req)
	w.play(func() { run(w) })
	stop := provider.StopEnd
	if w.undone {
		stop = provider.StopUndone
	}
	for _, line := range w.text {
		// Word by word, so that the text appears as other models' text does.
		for _, word := range strings.SplitAfter(line, " ") {
			if err := emit(provider.Event{Type: provider.EventText, Text: word}); err != nil {
				return err
			}
		}
	}
	// The ids are made of the calls answered so far, so they are unique in the conversation since the prompt.
	for i, c := range w.pending {
		stop = provider.StopTools
		id := fmt.Sprintf("qf_%d_%d", len(w.answered), i)
		for _, e := range []provider.Event{
			{Type: provider.EventToolStart, Index: i, CallID: id, Name: c.name},
			{Type: provider.EventToolDelta, Index: i, Text: string(c.input)},
			{Type: provider.EventToolEnd, Index: i, CallID: id, Name: c.name, Text: string(c.input)},
		} {
			if err := emit(e); err != nil {
				return err
			}
		}
	}
	// nothing is counted, and yet the event is sent, as every stream has one
	if err := emit(provider.Event{Type: provider.EventUsage}); err != nil {
		return err
	}
	return emit(provider.Event{Type: provider.EventStop, Stop: stop})
}

// result is what a tool answered. Decisions are taken on kind and metadata; text is only repeated to the user.
type result struct {
	text     string
	failed   bool
	kind     string // of a failure, as in tools.Error
	metadata json.RawMessage
}

// call is a tool call that a script makes.
type call struct {
	name  string
	input json.RawMessage
}

// walk is one replay of a script over the conversation since the person's last message. Keeping no
// state between steps means that a restarted session continues where it was.
type walk struct {
	prompt   string
	offered  map[string]bool
	answered []result // in call order
	next     int
	text     []string // said since the last answered call
	pending  []call
	undone   bool   // nothing of what was asked could be done
	cwd      string // the session's directory, as the tools' metadata has it
}

// frontier unwinds a script at its first unanswered call.
// It is thrown as a panic, so that a script reads as a plain sequence of calls.
type frontier struct{}

// newWalk reads the conversation: the last message of the person, and the results of the calls made since.
func newWalk(req *provider.Request) *walk {
	w := &walk{offered: map[string]bool{}}
	for _, t := range req.Tools {
		w.offered[t.Name] = true
	}
	from := 0
	for i, m := range req.Messages {
		if m.Role != provider.RoleUser {
			continue
		}
		var words []string
		// The prompt is the last message that a person wrote; what Pillion adds by itself is no request.
		for _, p := range m.Parts {
			if p.Type == provider.PartText && !p.Synthetic {
				words = append(words, p.Text)
			}
		}
		if len(words) > 0 {
			w.prompt, from = strings.Join(words, "\n"), i
		}
	}
	byID := map[string]result{}
	var order []string
	for _, m := range req.Messages[min(from, len(req.Messages)):] {
		for _, p := range m.Parts {
			switch p.Type {
			case provider.PartToolCall:
				order = append(order, p.CallID)
			case provider.PartToolResult:
				byID[p.CallID] = result{text: p.Text, failed: p.IsError, kind: p.ErrorKind, metadata: p.Metadata}
			}
		}
	}
	// A call without a result has the zero result, which counts as a success without metadata.
	for _, id := range order {
		w.answered = append(w.answered, byID[id])
	}
	return w
}

// play runs the script until it ends or reaches a call without an answer.
func (w *walk) play(script func()) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(frontier); !ok {
				panic(r)
			}
		}
	}()
	script()
}

// say adds a line of the answer.
func (w *walk) say(format string, a ...any) {
	w.text = append(w.text, fmt.Sprintf(format, a...))
}

// sayUndone is say where nothing of what was asked can be done.
func (w *walk) sayUndone(format string, a ...any) {
	w.undone = true
	w.say(format, a...)
}

// call returns the answer of a tool, or ends this step with the call.
func (w *walk) call(name string, input any) result {
	c := call{name, encode(input)}
	r := w.calls(c)[0]
	// What brings errors goes back to the model once. This one cannot think again; it chose the change because it takes
	// more errors away than it brings, or because the words of the prompt say so. The user decides.
	if r.failed && r.kind == "introduces_errors" {
		r = w.calls(c)[0]
	}
	return r
}

// calls makes several calls of one step, to run side by side where the tools allow it.
// They are answered together: a step is emitted with all of its calls.
func (w *walk) calls(cs ...call) []result {
	if w.next+len(cs) <= len(w.answered) {
		out := w.answered[w.next : w.next+len(cs)]
		for _, r := range out {
			var said struct{ Cwd string }
			if r.read(&said); said.Cwd != "" {
				w.cwd = said.Cwd
			}
		}
		w.next += len(cs)
		// What was said before an answered call belongs to an earlier step.
		w.text = nil // it was emitted with the step that made these calls
		return out
	}
	w.pending = cs
	panic(frontier{})
}

// show is a path for the user: relative to the session's directory where it lies below it.
func (w *walk) show(path string) string {
	if rest, ok := strings.CutPrefix(path, w.cwd+"/"); ok && w.cwd != "" {
		return rest
	}
	return path
}

func encode(v any) json.RawMessage {
	b, _ := json.Marshal(v) // maps of strings and numbers always encode
	return b
}
