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

// Model describes the built-in model. Its context is large, so that the agent has no reason to compact a conversation for it.
var Model = provider.Model{Provider: "builtin", ID: "quickfix", Name: "Built-in quick fixes (no network)", Context: 1 << 20, Output: 1 << 16}

// Provider streams the built-in model's answers.
type Provider struct{}

// Stream replays the script up to the first call without an answer and emits what comes next. Its only error of its own is that of a
// cancelled ctx; emit's error is returned unchanged.
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
	// The ids contain the number of calls that were answered before, so they are unique since the prompt.
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
	// Nothing is counted, but every stream has this event.
	if err := emit(provider.Event{Type: provider.EventUsage}); err != nil {
		return err
	}
	return emit(provider.Event{Type: provider.EventStop, Stop: stop})
}

// result is the answer of a tool. Decisions depend on kind and metadata; text is only repeated to the user.
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

// walk is one replay of a script over the conversation since the person's last message. It keeps no state between steps, so a session
// that is reopened continues where it was.
type walk struct {
	// prompt is the last message that the person wrote.
	prompt   string
	offered  map[string]bool
	answered []result // the results so far, in the order of their calls
	next     int      // how many of answered the script has used
	text     []string // said since the last answered call
	pending  []call
	undone   bool   // nothing of what was asked could be done
	cwd      string // the session's directory, as the tools' metadata has it
	// soFar reports what is done when the turn's last step cuts a script short; nil: there is nothing to report.
	soFar func()
}

// frontier ends a script at its first call without an answer. It is a panic, so that a script can be written as a plain sequence of
// calls.
type frontier struct{}

// newWalk reads the conversation: the last message of the person, and the results of the calls made since.
func newWalk(req *provider.Request) *walk {
	w := &walk{offered: map[string]bool{}}
	for _, t := range req.Tools {
		// A tool that rules or settings have switched off is not among them; scripts then tell the user.
		w.offered[t.Name] = true
	}
	from := 0
	for i, m := range req.Messages {
		if m.Role != provider.RoleUser {
			continue
		}
		var words []string
		// Only what a person wrote is a request, and not what Pillion adds.
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
	// A call without a result gets the zero result, a success without metadata.
	for _, id := range order {
		w.answered = append(w.answered, byID[id])
	}
	return w
}

// play runs the script until it ends or reaches a call without an answer. Other panics pass.
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

// sayUndone is say for the case that nothing of the request can be done; the turn then ends with StopUndone.
func (w *walk) sayUndone(format string, a ...any) {
	w.undone = true
	w.say(format, a...)
}

// call returns the answer of a tool, or ends this step with the call.
func (w *walk) call(name string, input any) result {
	c := call{name, encode(input)}
	r := w.calls(c)[0]
	// A change that introduces errors is sent back to the model once. This model cannot think again: it chose the change because it
	// removes more errors than it introduces, or because the prompt says so. So it repeats the call, and the user decides.
	if r.failed && r.kind == "introduces_errors" {
		r = w.calls(c)[0]
	}
	return r
}

// calls makes several calls in one step, so that the tools may run in parallel. All are answered together.
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
		// The text before these calls was emitted with the step that made them.
		w.text = nil
		return out
	}
	// The first call without an answer ends the replay: what follows depends on the answer.
	if w.atLimit() {
		if w.soFar != nil {
			w.soFar()
		}
		w.say("I have used all the steps of this turn and stop here. Ask again to continue.")
	} else {
		w.pending = cs
	}
	panic(frontier{})
}

// atLimit reports that this is the last step of the turn: the agent then offers no tools, although it has run calls of this script.
func (w *walk) atLimit() bool { return len(w.offered) == 0 && len(w.answered) > 0 }

// canAsk reports that the language servers can be asked; if not, it tells the user. At the limit of steps the script goes on, because its
// calls so far are answered and calls reports the limit.
func (w *walk) canAsk() bool {
	if w.offered["lsp"] || w.atLimit() {
		return true
	}
	w.sayUndone("I work through language servers, and the `lsp` tool is switched off here. Switch it on, or choose another model (`pillion models`).")
	return false
}

// show is a path for the user: relative to the session's directory where it is below that.
func (w *walk) show(path string) string {
	if rest, ok := strings.CutPrefix(path, w.cwd+"/"); ok && w.cwd != "" {
		return rest
	}
	return path
}

// encode is a call's arguments as JSON. Keys are sorted, so every replay makes the same bytes.
func encode(v any) json.RawMessage {
	b, _ := json.Marshal(v) // maps of strings and numbers always encode
	return b
}
