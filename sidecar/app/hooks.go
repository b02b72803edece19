package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/hooks"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// endLimit limits the hooks at a session's end: editors kill a sidecar that exits slowly.
const endLimit = 1500 * time.Millisecond

// settingsHooks runs the commands of the setting hooks for the sessions of a directory. It reads the configuration at each event, so that a
// changed file, or withdrawn trust, takes effect at once.
type settingsHooks struct {
	app *App
	cwd string

	mu    sync.Mutex
	calls map[string]*hookedCall // guarded by mu; by session and call id, from before a call until after it
	shown map[string]bool        // guarded by mu; by session and command: the person was told that it runs
}

// hookedCall is the state of a running call.
type hookedCall struct {
	calls    []claudeCall // as hooks see it, with the input after PreToolUse
	decision string       // of PreToolUse: allow, ask or empty
	insisted bool         // guarded by settingsHooks.mu; insist has sent one approval request of the call to the person, and the others follow the rules
	context  []string     // texts of PreToolUse for the model; after adds them to the result, because there is no earlier place
}

// maxHookedCalls limits settingsHooks.calls: for an abandoned call after never runs, and its entry must not stay for ever. At the limit all
// entries are removed; a running call then gets no PostToolUse.
const maxHookedCalls = 512

// over adds the hooks of the settings to the extensions of plugins; base may be nil. Plugins change arguments first, and the hooks see the
// result.
func (h *settingsHooks) over(base *agent.Extensions) *agent.Extensions {
	var x agent.Extensions
	if base != nil {
		x = *base
	}
	// Plugins decide first: a denial is final, and after an allowance the hooks are not asked.
	advise := x.Permission
	x.Hooks = append(slices.Clone(x.Hooks), tools.Hook{Before: h.before, After: h.after})
	x.Insist = h.insist
	x.Permission = func(ctx context.Context, r permission.Request) permission.Action {
		// Ask means no decision; the gate then asks the person.
		action := permission.Ask
		if advise != nil {
			action = advise(ctx, r)
		}
		if action == permission.Deny {
			return action
		}
		if c := h.call(r); c != nil && c.decision == "allow" {
			action = permission.Allow
		}
		return h.permission(ctx, r, action)
	}
	x.Begin = h.begin
	x.Prompt = h.prompt
	x.Stop = h.stop
	compacting := x.Compacting
	x.Compacting = func(ctx context.Context, s agent.SessionInfo, auto bool, focus string) ([]string, string) {
		// Claude Code's values for trigger, which a matcher of PreCompact is compared with.
		trigger := "manual"
		if auto {
			trigger = "auto"
		}
		h.run(ctx, s.ID, hooks.PreCompact, []string{trigger}, hooks.Input{"trigger": trigger, "custom_instructions": focus})
		if compacting == nil {
			return nil, ""
		}
		return compacting(ctx, s, auto, focus)
	}
	x.End = func(s agent.SessionInfo) {
		// The session is closed and has no context, so only the time limit ends the commands.
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		h.run(ctx, s.ID, hooks.SessionEnd, []string{"other"}, hooks.Input{"reason": "other"})
	}
	return &x
}

// run runs the hooks of an event whose matcher fits one of names, and shows the person their messages. fields are the event's own fields.
func (h *settingsHooks) run(ctx context.Context, session, event string, names []string, fields hooks.Input) hooks.Output {
	conf := h.app.ConfigOf(h.cwd)
	commands := conf.HooksOf(event, names...)
	if len(commands) == 0 {
		return hooks.Output{}
	}
	// Scripts refer to the project by its root, even if a session was opened in a subfolder.
	root := paths.Worktree(h.cwd)
	// The fields of every event in Claude Code. Pillion does not store sessions as transcript files, so transcript_path is empty; it is
	// present for scripts that require the key.
	in := hooks.Input{"session_id": session, "transcript_path": "", "cwd": h.cwd, "permission_mode": h.mode(session), "hook_event_name": event}
	for k, v := range fields {
		in[k] = v
	}
	for i, c := range commands {
		commands[i].Dir = h.cwd
		commands[i].Env = append(conf.Environ(guard.Hook, c.Command), "CLAUDE_PROJECT_DIR="+root, "PILLION_PROJECT_DIR="+root)
		// The person should know what runs beside the agent, but a line for each call would be too many.
		if h.firstRun(session, c.Command) {
			h.notice(session, "info", fmt.Sprintf("Running the %s hook %s (%s)", event, shortened(c.Command), c.Reason.Place))
		}
	}
	began := time.Now()
	out := hooks.Run(ctx, h.app.background, commands, in)
	h.app.O.Log.Info("hooks", "event", event, "names", names, "commands", len(commands), "took", time.Since(began), "block", out.Block, "decision", out.Decision)
	for _, m := range out.Messages {
		h.notice(session, m.Level, m.Text)
	}
	return out
}

// firstRun reports whether this command runs for the first time in this session, and records that it has run.
func (h *settingsHooks) firstRun(session, command string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := session + "\x00" + command
	first := !h.shown[key]
	h.shown[key] = true
	return first
}

// notice shows the person a line; nothing is shown if the session is closed.
func (h *settingsHooks) notice(session, level, text string) {
	if s, ok := h.app.Runtime.Session(session); ok {
		s.Notice(level, text)
	}
}

// mode returns permission_mode, which in Claude Code says how a session asks for approval. Of its values only default, plan and acceptEdits
// are used.
func (h *settingsHooks) mode(session string) string {
	s, ok := h.app.Runtime.Session(session)
	if !ok {
		return "default"
	}
	info := s.Info()
	switch {
	case info.Agent == agent.PlanAgent:
		return "plan"
	case info.Review == agent.ReviewFollow:
		return "acceptEdits"
	}
	return "default"
}

// before implements tools.Hook: it runs PreToolUse and returns the input, possibly changed. If a hook blocks, the call fails and the model
// gets the reason; if a hook ends the turn, the turn ends as after a rejection by the person.
func (h *settingsHooks) before(ctx context.Context, call *tools.Call, input json.RawMessage) (json.RawMessage, error) {
	as := claudeCalls(call.Tool, input, h.cwd, h.app.ConfigOf(h.cwd))
	state := &hookedCall{calls: as}
	for _, c := range as {
		out, err := h.preToolUse(ctx, call.SessionID, call.CallID, c)
		if err != nil {
			return nil, err
		}
		// An allow covers one file only and must not allow the other files of a patch. An ask for any of them asks about all.
		if out.Decision == "ask" || out.Decision == "allow" && len(as) == 1 {
			if out.Decision == "ask" && out.Reason != "" {
				h.notice(call.SessionID, "info", "A hook wants you to be asked: "+out.Reason)
			}
			// An ask is stricter than an allow for another file, so it stays.
			state.decision = cmp.Or(strings.Replace(state.decision, "allow", out.Decision, 1), out.Decision)
		}
		state.context = append(state.context, out.Context...)
		// For a patch a changed input is ignored, because it cannot be put back into the patch.
		if out.Updated != nil && len(as) == 1 {
			input = ourInput(call.Tool, out.Updated)
			state.calls = claudeCalls(call.Tool, input, h.cwd, h.app.ConfigOf(h.cwd))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls) >= maxHookedCalls {
		clear(h.calls)
	}
	h.calls[call.SessionID+call.CallID] = state
	return input, nil
}

// preToolUse runs the PreToolUse hooks for one call. An error refuses the call.
func (h *settingsHooks) preToolUse(ctx context.Context, session, id string, c claudeCall) (hooks.Output, error) {
	out := h.run(ctx, session, hooks.PreToolUse, c.names(), hooks.Input{"tool_name": c.Name, "tool_input": c.Input, "tool_use_id": id})
	// The cancel of the turn has ended the commands, so it means nothing that they did not block.
	if err := ctx.Err(); err != nil {
		return out, err
	}
	if out.End {
		h.notice(session, "warning", "A hook ended the turn: "+out.EndReason)
		return out, &permission.RejectedError{}
	}
	if out.Block {
		h.notice(session, "warning", fmt.Sprintf("A hook blocked %s: %s", c.Name, out.Reason))
		return out, &tools.Error{Kind: "hook", Message: "A hook of the user's settings blocked this call: " + out.Reason}
	}
	return out, nil
}

// call returns the state of the call to which an approval request belongs; nil if there is none. Only insisted changes in it, and others
// replaces the whole value, so the other fields may be read without mu.
func (h *settingsHooks) call(r permission.Request) *hookedCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[r.SessionID+r.CallID]
}

// others runs PreToolUse for the files of a proposed change that no hook has seen yet. The model's arguments do not name them all: a rename
// changes every file with a use, a code action changes what its server decides, and a draft lands what commands wrote.
func (h *settingsHooks) others(ctx context.Context, r permission.Request) error {
	if r.Change == nil || r.Permission != "edit" || len(h.app.ConfigOf(h.cwd).HooksOf(hooks.PreToolUse, "Edit", "Write", r.Tool)) == 0 {
		return nil
	}
	next := &hookedCall{}
	if was := h.call(r); was != nil {
		h.mu.Lock()
		*next = *was
		h.mu.Unlock()
	}
	seen := map[string]bool{}
	for _, c := range next.calls {
		if p, ok := c.Input["file_path"].(string); ok {
			seen[p] = true
		}
	}
	calls := slices.Clone(next.calls)
	for _, c := range changedCalls(r.Tool, r.Change) {
		if p := c.Input["file_path"].(string); seen[p] {
			continue
		}
		out, err := h.preToolUse(ctx, r.SessionID, r.CallID, c)
		if err != nil {
			return err
		}
		calls = append(calls, c)
		if out.Decision == "ask" {
			next.decision = "ask"
		}
		next.context = append(slices.Clip(next.context), out.Context...)
	}
	if len(calls) == len(next.calls) {
		return nil
	}
	// As in before: an allow covered one file and does not allow the others.
	if next.decision == "allow" {
		next.decision = ""
	}
	next.calls = calls
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[r.SessionID+r.CallID] = next
	return nil
}

// insist implements agent.Extensions.Insist: it is true for the first approval request of a call about which a hook wants the person to be
// asked. A call may have several requests (a folder outside the project, then the command); the person must answer only one that the rules
// would have allowed.
func (h *settingsHooks) insist(ctx context.Context, r permission.Request) (bool, error) {
	if err := h.others(ctx, r); err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.calls[r.SessionID+r.CallID]
	if c == nil || c.decision != "ask" || c.insisted {
		return false, nil
	}
	c.insisted = true
	return true, nil
}

// permission runs the PermissionRequest hooks before the person is asked, then those of Notification. The gate ignores an Allow for a
// protected path or an opaque command; see permission.GateOptions.Advise.
func (h *settingsHooks) permission(ctx context.Context, r permission.Request, action permission.Action) permission.Action {
	if action != permission.Ask {
		return action
	}
	state := h.call(r)
	name := r.Tool
	if state != nil {
		for _, c := range state.calls {
			out := h.run(ctx, r.SessionID, hooks.PermissionRequest, c.names(), hooks.Input{"tool_name": c.Name, "tool_input": c.Input})
			name = c.Name
			switch {
			case out.Block:
				h.notice(r.SessionID, "warning", fmt.Sprintf("A hook denied %s: %s", c.Name, out.Reason))
				return permission.Deny
			// As in before: an allow for one file does not allow the other files of a patch.
			case out.Decision == "allow" && len(state.calls) == 1:
				return permission.Allow
			}
		}
	}
	h.run(ctx, r.SessionID, hooks.Notification, []string{"permission_prompt"}, hooks.Input{"message": "Pillion needs your permission to use " + name, "title": "Permission needed", "notification_type": "permission_prompt"})
	return permission.Ask
}

// after implements tools.Hook: it runs PostToolUse or PostToolUseFailure, and adds the hooks' texts for the model to the result. The call
// has been made, so a hook that blocks undoes nothing; the model reads its objection.
func (h *settingsHooks) after(ctx context.Context, call *tools.Call, _ json.RawMessage, r tools.Result, err error) (tools.Result, error) {
	h.mu.Lock()
	state := h.calls[call.SessionID+call.CallID]
	delete(h.calls, call.SessionID+call.CallID)
	h.mu.Unlock()
	// A call that a person or a rule refused was not made, and a cancelled turn must not wait.
	if state == nil || ctx.Err() != nil || errors.Is(err, permission.ErrRejected) || errors.Is(err, permission.ErrDenied) {
		return r, err
	}
	add := state.context
	for _, c := range state.calls {
		in := hooks.Input{"tool_name": c.Name, "tool_input": c.Input, "tool_use_id": call.CallID}
		event := hooks.PostToolUse
		if err != nil {
			event = hooks.PostToolFailure
			in["error"], in["is_interrupt"] = err.Error(), false
		} else {
			in["tool_response"] = c.response(r)
		}
		out := h.run(ctx, call.SessionID, event, c.names(), in)
		if out.Block {
			add = append(add, fmt.Sprintf("A hook of the user's settings objects to this call: %s", out.Reason))
		}
		add = append(add, out.Context...)
		if out.End {
			h.notice(call.SessionID, "warning", "A hook ended the turn: "+out.EndReason)
			return r, &permission.RejectedError{}
		}
	}
	if len(add) == 0 {
		return r, err
	}
	text := "\n\n<system-reminder>\n" + strings.Join(add, "\n\n") + "\n</system-reminder>"
	if err != nil {
		// Keep the error kind, which the loop and the editors use; the hooks' texts follow the message.
		kind := "error"
		var known *tools.Error
		if errors.As(err, &known) && known.Kind != "" {
			kind = known.Kind
		}
		return r, &tools.Error{Kind: kind, Message: err.Error() + text, Err: err}
	}
	r.Output += text
	return r, nil
}

// begin implements agent.Extensions.Begin with SessionStart. source is startup, resume or compact; matchers are compared with it.
func (h *settingsHooks) begin(ctx context.Context, s agent.SessionInfo, source string) []string {
	if s.Parent != "" { // SessionStart is for sessions that a person starts
		return nil
	}
	out := h.run(ctx, s.ID, hooks.SessionStart, []string{source}, hooks.Input{"source": source, "model": s.Model})
	if out.Block { // a hook cannot block a session's start, so its reason is shown to the person
		h.notice(s.ID, "warning", out.Reason)
	}
	return out.Context
}

// prompt implements agent.Extensions.Prompt with UserPromptSubmit. The hooks get only what the person wrote, without the parts that Pillion
// adds. An error refuses the prompt. The event is not for sub-agents, whose prompts a model writes.
func (h *settingsHooks) prompt(ctx context.Context, e agent.Entering) ([]string, error) {
	if e.Session.Parent != "" {
		return nil, nil
	}
	var text []string
	for _, p := range e.Parts {
		if p.Type == provider.PartText && !p.Synthetic {
			text = append(text, p.Text)
		}
	}
	out := h.run(ctx, e.Session.ID, hooks.UserPromptSubmit, nil, hooks.Input{"prompt": strings.Join(text, "\n")})
	switch {
	case out.Block:
		return nil, errors.New("A hook blocked the prompt: " + out.Reason)
	case out.End:
		return nil, errors.New("A hook ended the turn: " + out.EndReason)
	}
	return out.Context, nil
}

// stop implements agent.Extensions.Stop with Stop, or SubagentStop for a sub-agent. A hook that blocks the end makes the turn continue with
// the hook's reason. A hook that answers "continue": false ends the turn, whatever other hooks want. The loop limits how often a turn
// continues (maxKeptGoing); again becomes stop_hook_active, by which a script can avoid blocking for ever.
func (h *settingsHooks) stop(ctx context.Context, s agent.SessionInfo, last string, again bool) string {
	event := hooks.Stop
	if s.Parent != "" {
		event = hooks.SubagentStop
	}
	out := h.run(ctx, s.ID, event, nil, hooks.Input{"stop_hook_active": again, "last_assistant_message": last})
	if !out.Block || out.End {
		return ""
	}
	h.notice(s.ID, "info", "A hook keeps the turn going: "+out.Reason)
	return "A hook of the user's settings says that the work is not finished: " + out.Reason
}

// hooked returns the extensions of a directory with the hooks of its settings added; base are the extensions of plugins. The result is
// cached until base changes, because it is requested often. settingsHooks is kept longer, because it has the running calls and what the
// person was told.
func (c *Plugins) hooked(cwd string, conf *config.Config, base *agent.Extensions) *agent.Extensions {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.settings[cwd]
	if was == nil {
		was = &hookedExtensions{hooks: &settingsHooks{app: c.app, cwd: cwd, calls: map[string]*hookedCall{}, shown: map[string]bool{}}}
		c.settings[cwd] = was
	}
	if was.ext == nil || was.base != base {
		was.base, was.ext = base, was.hooks.over(base)
	}
	return was.ext
}

// hookedExtensions are extensions with hooks, and the base from which they were made.
type hookedExtensions struct {
	hooks     *settingsHooks
	base, ext *agent.Extensions
}
