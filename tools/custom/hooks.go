package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// The hooks that plugins may have; names and shapes are OpenCode's. Any other hook of a plugin is never called, and open gives a notice
// of it.
const (
	hookBefore     = "tool.execute.before"
	hookAfter      = "tool.execute.after"
	hookDefinition = "tool.definition"
	hookPermission = "permission.ask"
	hookShell      = "shell.env"
	hookParams     = "chat.params"
	hookSystem     = "experimental.chat.system.transform"
	hookMessage    = "chat.message"
	hookEvent      = "event"
	hookHeaders    = "chat.headers"
	hookMessages   = "experimental.chat.messages.transform"
	hookCompacting = "experimental.session.compacting"
	hookContinue   = "experimental.compaction.autocontinue"
	hookCommand    = "command.execute.before"
	hookText       = "experimental.text.complete"
)

// known are the hooks that cause no notice. The worker itself calls config when a plugin is loaded and dispose when it ends.
var known = []string{hookBefore, hookAfter, hookDefinition, hookPermission, hookShell, hookParams, hookSystem, hookMessage, hookEvent, hookHeaders, hookMessages, hookCompacting, hookContinue, hookCommand, hookText, "dispose", "config"}

// The limits of hooks. A turn waits for each hook, so a slow one must not hold it up again and again.
const (
	DefaultHookLimit = 10 * time.Second // for one run of a hook
	maxSlow          = 3                // timeouts after which a hook is left out; also ends of a plugin by itself, see canStay
	pingLimit        = time.Second      // for the code's answer to a ping after a timeout; without one it is in an endless loop
)

// HookError is the failure of a plugin's hook: it threw, took too long, or left an output that cannot be read. Its text is for people and
// models.
type HookError struct {
	File, Hook string
	Err        error
}

func (e *HookError) Error() string { return fmt.Sprintf("%v (plugin %s, %s)", e.Err, e.File, e.Hook) }
func (e *HookError) Unwrap() error { return e.Err }

// slowError is returned for a hook that did not answer in time.
type slowError struct{ limit time.Duration }

func (e *slowError) Error() string { return fmt.Sprintf("it did not answer within %s", e.limit) }

// with returns the plugins that have a hook, without those whose hook has timed out maxSlow times. They are in the order of
// Options.Plugins, then of the folders; each plugin gets the output of the one before it.
func (h *Host) with(name string) []*source {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*source
	for _, s := range h.hooked {
		if s.hooks[name] && s.slow(name) < maxSlow {
			out = append(out, s)
		}
	}
	return out
}

// Has reports whether any plugin has a hook, so that callers need not build an input that no plugin reads. It loads the plugins the first
// time; later changes of their files are noticed by Tools.
func (h *Host) Has(ctx context.Context, name string) bool {
	h.ready(ctx)
	return len(h.with(name)) > 0
}

// hook runs a hook of all plugins, one after the other; each gets the output of the one before. The first failure ends it, with a
// *HookError and the output so far. An output that does not decode into T is a failure as well: guessing would let a plugin's mistake
// change a call.
func hook[T any](ctx context.Context, h *Host, name string, input any, output T) (T, error) {
	for _, s := range h.with(name) {
		raw, err := s.hook(ctx, name, input, output)
		var slow *slowError
		if errors.As(err, &slow) {
			h.cutOff(s, name, slow)
		}
		if err != nil {
			return output, &HookError{File: s.file.path, Hook: name, Err: err}
		}
		var next T
		if err := json.Unmarshal(raw, &next); err != nil {
			return output, &HookError{File: s.file.path, Hook: name, Err: fmt.Errorf("its output cannot be read: %w", err)}
		}
		output = next
	}
	return output, nil
}

// cutOff gives a notice that a hook took too long, and pings the plugin's code. Code that waits for something answers and stays; code in an
// endless loop does not, so its worker is ended and the file loaded again. The ping runs on a goroutine of its own, as the turn has
// already waited for the whole limit.
func (h *Host) cutOff(s *source, name string, slow *slowError) {
	text := fmt.Sprintf("The plugin %s was interrupted: its hook %s did not answer within %s.", s.file.path, name, slow.limit)
	if s.wasSlow(name) == maxSlow {
		text += fmt.Sprintf(" This happened %d times; the hook is not called any more.", maxSlow)
	}
	h.notice("warning", text)
	h.closed.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, pingLimit)
		defer cancel()
		id, answers := s.child.begin()
		defer s.child.forget(id)
		if s.child.send(map[string]any{"op": "ping", "id": id, "unit": s.unit}) != nil {
			return
		}
		select {
		case <-answers:
		case <-s.gone:
		// ctx also ends with Close, which ends the child itself.
		case <-ctx.Done():
			if h.ctx.Err() == nil {
				s.unload("end")
			}
		}
	})
}

// hook runs one plugin's hook and returns its output. The error is the exception that it threw, a *slowError, or the reason why its code
// has ended. Unlike a tool call, a hook does not keep a stale worker alive (see enter): a reload of the file ends it.
func (s *source) hook(ctx context.Context, name string, input, output any) (json.RawMessage, error) {
	c := s.child
	id, answers := c.begin()
	defer c.forget(id)
	if err := c.send(map[string]any{"op": "hook", "id": id, "unit": s.unit, "name": name, "input": input, "output": output}); err != nil {
		return nil, err
	}
	timer := time.NewTimer(s.host.o.HookLimit)
	defer timer.Stop()
	select {
	case m := <-answers:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-s.gone:
		return nil, s.loss()
	case <-timer.C:
		return nil, &slowError{s.host.o.HookLimit}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Hook returns the hooks around every tool call. If a hook before a call throws or is too slow, the call is refused: refusing may be the
// hook's purpose. After a call there is nothing left to refuse, so a failure is only a notice. The hook before a call may change the
// arguments; validation and approval follow it and see the changed ones.
func (h *Host) Hook() tools.Hook {
	// who is the input of both hooks; args and after are the outputs that they may change.
	type who struct {
		Tool      string          `json:"tool"`
		SessionID string          `json:"sessionID"`
		CallID    string          `json:"callID"`
		Args      json.RawMessage `json:"args,omitempty"`
	}
	type args struct {
		Args json.RawMessage `json:"args"`
	}
	type after struct {
		Title    string         `json:"title"`
		Output   string         `json:"output"`
		Metadata map[string]any `json:"metadata"`
	}
	return tools.Hook{
		Before: func(ctx context.Context, call *tools.Call, input json.RawMessage) (json.RawMessage, error) {
			out, err := hook(ctx, h, hookBefore, who{Tool: call.Tool, SessionID: call.SessionID, CallID: call.CallID}, args{input})
			if err != nil {
				return nil, &tools.Error{Kind: "plugin", Message: "A plugin stopped this call: " + err.Error(), Err: err}
			}
			return out.Args, nil
		},
		After: func(ctx context.Context, call *tools.Call, input json.RawMessage, r tools.Result, err error) (tools.Result, error) {
			// A failed call has no result that a plugin could change.
			if err != nil || len(h.with(hookAfter)) == 0 {
				return r, err
			}
			out, hookErr := hook(ctx, h, hookAfter, who{call.Tool, call.SessionID, call.CallID, input}, after{r.Title, r.Output, r.Metadata})
			if hookErr != nil {
				h.notice("warning", hookErr.Error())
				return r, nil
			}
			r.Title, r.Output, r.Metadata = out.Title, out.Output, out.Metadata
			return r, nil
		},
	}
}

// Define lets plugins change a tool's description and parameters as the model sees them. A schema whose type is not object is ignored, as
// providers would refuse the whole request.
func (h *Host) Define(ctx context.Context, t tools.Tool) tools.Tool {
	type definition struct {
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	out, err := hook(ctx, h, hookDefinition, map[string]string{"toolID": t.ID}, definition{t.Description, t.Parameters})
	if err != nil {
		h.notice("warning", err.Error())
		return t
	}
	t.Description = out.Description
	var shape struct{ Type string }
	if json.Unmarshal(out.Parameters, &shape) == nil && shape.Type == "object" {
		t.Parameters = out.Parameters
	}
	return t
}

// Permission lets plugins decide an approval request before the person: allow, deny, or ask, which leaves it to the person. A failure and
// any other status are ask as well, so that a misspelt answer never allows anything.
func (h *Host) Permission(ctx context.Context, r permission.Request) permission.Action {
	type status struct {
		Status permission.Action `json:"status"`
	}
	// Two values are given under two names each, so that plugins written for either name find them.
	out, err := hook(ctx, h, hookPermission, map[string]any{"id": r.ID, "type": r.Permission, "permission": r.Permission, "pattern": r.Patterns, "patterns": r.Patterns, "sessionID": r.SessionID,
		"messageID": "", "callID": r.CallID, "title": r.Title, "metadata": r.Metadata}, status{permission.Ask})
	if err != nil {
		h.notice("warning", err.Error())
		return permission.Ask
	}
	if !slices.Contains([]permission.Action{permission.Allow, permission.Deny}, out.Status) {
		return permission.Ask
	}
	return out.Status
}

// ShellEnv returns the variables that plugins add to a command's environment. After a failure none is added, and the command still runs.
func (h *Host) ShellEnv(ctx context.Context, cwd, session, call string) map[string]string {
	type env struct {
		Env map[string]string `json:"env"`
	}
	out, err := hook(ctx, h, hookShell, map[string]string{"cwd": cwd, "sessionID": session, "callID": call}, env{map[string]string{}})
	if err != nil {
		h.notice("warning", err.Error())
		return nil
	}
	return out.Env
}

// Params are the parameters of a model request that plugins may change; nil means the model's default. They are pointers because 0 is a
// valid temperature.
type Params struct {
	Temperature     *float64       `json:"temperature,omitempty"`
	TopP            *float64       `json:"topP,omitempty"`
	MaxOutputTokens int            `json:"maxOutputTokens,omitempty"`
	Options         map[string]any `json:"options"`
}

// ChatParams lets plugins change the parameters of a model request; provider and model are the two parts of "provider/model". After a
// failure the parameters stay as they were.
func (h *Host) ChatParams(ctx context.Context, session, agent, provider, model string, p Params) Params {
	if p.Options == nil {
		p.Options = map[string]any{}
	}
	out, err := hook(ctx, h, hookParams, map[string]any{"sessionID": session, "agent": agent, "model": map[string]string{"id": model, "providerID": provider}, "provider": map[string]any{"info": map[string]string{"id": provider}}}, p)
	if err != nil {
		h.notice("warning", err.Error())
		return p
	}
	return out
}

// Headers are the headers that plugins add to a model request. After a failure none is added.
func (h *Host) Headers(ctx context.Context, session, agent, provider, model string) map[string]string {
	type headers struct {
		Headers map[string]string `json:"headers"`
	}
	if !h.Has(ctx, hookHeaders) {
		return nil
	}
	out, err := hook(ctx, h, hookHeaders, map[string]any{"sessionID": session, "agent": agent, "model": map[string]string{"id": model, "providerID": provider}, "provider": map[string]any{"info": map[string]string{"id": provider}}, "message": map[string]any{"sessionID": session, "role": "user"}}, headers{map[string]string{}})
	if err != nil {
		h.notice("warning", err.Error())
		return nil
	}
	return out.Headers
}

// Compacting lets plugins add to what is summarised when a conversation is compacted, or replace the prompt of the summary; "" keeps
// Pillion's own.
func (h *Host) Compacting(ctx context.Context, session string) (extra []string, prompt string) {
	type compacting struct {
		Context []string `json:"context"`
		Prompt  string   `json:"prompt,omitempty"`
	}
	if !h.Has(ctx, hookCompacting) {
		return nil, ""
	}
	out, err := hook(ctx, h, hookCompacting, map[string]string{"sessionID": session}, compacting{Context: []string{}})
	if err != nil {
		h.notice("warning", err.Error())
		return nil, ""
	}
	return out.Context, out.Prompt
}

// Continue asks plugins whether a turn goes on after its conversation was compacted. After a failure it does.
func (h *Host) Continue(ctx context.Context, session, agent, provider, model string, overflow bool) bool {
	type enabled struct {
		Enabled bool `json:"enabled"`
	}
	if !h.Has(ctx, hookContinue) {
		return true
	}
	out, err := hook(ctx, h, hookContinue, map[string]any{"sessionID": session, "agent": agent, "overflow": overflow, "model": map[string]string{"id": model, "providerID": provider},
		"provider": map[string]any{"info": map[string]string{"id": provider}}, "message": map[string]any{"sessionID": session, "role": "user"}}, enabled{true})
	if err != nil {
		h.notice("warning", err.Error())
		return true
	}
	return out.Enabled
}

// TextComplete lets plugins change a text of the model's answer once it is complete. part identifies the text within its message. After a
// failure the text stays as it was.
func (h *Host) TextComplete(ctx context.Context, session, message, part, text string) string {
	type complete struct {
		Text string `json:"text"`
	}
	if !h.Has(ctx, hookText) {
		return text
	}
	out, err := hook(ctx, h, hookText, map[string]string{"sessionID": session, "messageID": message, "partID": part}, complete{text})
	if err != nil {
		h.notice("warning", err.Error())
		return text
	}
	return out.Text
}

// TransformedMessage is a message of a request in OpenCode's shape; the keys of info and of the parts are OpenCode's.
type TransformedMessage struct {
	Info  map[string]any   `json:"info"`
	Parts []map[string]any `json:"parts"`
}

// Transform lets plugins change the conversation of a request. ok is false when none did, because there is no such plugin or it failed.
func (h *Host) Transform(ctx context.Context, all []TransformedMessage) (out []TransformedMessage, ok bool) {
	type conversation struct {
		Messages []TransformedMessage `json:"messages"`
	}
	if !h.Has(ctx, hookMessages) {
		return nil, false
	}
	changed, err := hook(ctx, h, hookMessages, map[string]any{}, conversation{all})
	if err != nil {
		h.notice("warning", err.Error())
		return nil, false
	}
	return changed.Messages, true
}

// System lets plugins change the blocks of a request's system prompt. A failure, or a prompt without any block, leaves them as they were.
func (h *Host) System(ctx context.Context, session, provider, model string, system []string) []string {
	type prompt struct {
		System []string `json:"system"`
	}
	out, err := hook(ctx, h, hookSystem, map[string]any{"sessionID": session, "model": map[string]string{"id": model, "providerID": provider}}, prompt{system})
	if err != nil {
		h.notice("warning", err.Error())
		return system
	}
	if len(out.System) == 0 { // an empty system prompt is a plugin's mistake
		return system
	}
	return out.System
}

// Event tells plugins about an event. It loads the plugins if needed, and does not wait for their hooks. Id 0 marks a message without an
// answer; if the hook fails, child.take gives a notice.
func (h *Host) Event(kind string, properties map[string]any) {
	if h.ctx.Err() != nil || !h.Has(h.ctx, hookEvent) {
		return
	}
	for _, s := range h.with(hookEvent) {
		_ = s.child.send(map[string]any{"op": "hook", "id": 0, "unit": s.unit, "name": hookEvent, "input": map[string]any{"event": map[string]any{"type": kind, "properties": properties}}, "output": nil})
	}
}

// slow is the number of a hook's timeouts.
func (s *source) slow(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slowed[name]
}

// wasSlow adds a timeout of a hook and returns their number.
func (s *source) wasSlow(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slowed == nil {
		s.slowed = map[string]int{}
	}
	s.slowed[name]++
	return s.slowed[name]
}
