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

// endLimit is how long hooks of a session's end may take: editors kill a sidecar that ends slowly.
const endLimit = 1500 * time.Millisecond

// settingsHooks run the commands of the setting hooks around the sessions of a directory. The configuration is asked at each
// event, so a changed file, or a folder that is no longer trusted, counts at once.
type settingsHooks struct {
	app *App
	cwd string

	mu    sync.Mutex
	calls map[string]*hookedCall // guarded by mu; by session and call id, from before a call until after it
	shown map[string]bool        // guarded by mu; by session and command: the person was told that it runs
}

// hookedCall is what is known of a call that runs.
type hookedCall struct {
	calls    []claudeCall // as hooks see it, after PreToolUse may have changed its input
	decision string       // of PreToolUse: allow, ask or empty
	insisted bool         // guarded by settingsHooks.mu; insist has claimed a question, and the call's other questions follow the rules
	context  []string     // from PreToolUse for the model; after adds it to the result, as a call has no other place for it
}

// maxHookedCalls bounds settingsHooks.calls: a call that was abandoned has no after, and must not stay for good. All are dropped at once
// when it is reached; a running call then gets no PostToolUse.
const maxHookedCalls = 512

// over adds the hooks of the settings to what plugins add; base may be nil. The hooks run inside the plugins': they judge the
// arguments that plugins have left.
func (h *settingsHooks) over(base *agent.Extensions) *agent.Extensions {
	var x agent.Extensions
	if base != nil {
		x = *base
	}
	// Plugins are heard first: a Deny of theirs ends it, and an Allow is not asked about by hooks.
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
		// Both are Claude Code's words for trigger, which a matcher of PreCompact is compared with.
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
		// The session is closed by now and has no context to give; the limit is what ends the commands.
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		h.run(ctx, s.ID, hooks.SessionEnd, []string{"other"}, hooks.Input{"reason": "other"})
	}
	return &x
}

// run runs the hooks of an event about one of names, and shows the person what they say to them. Fields are the event's own.
func (h *settingsHooks) run(ctx context.Context, session, event string, names []string, fields hooks.Input) hooks.Output {
	conf := h.app.ConfigOf(h.cwd)
	commands := conf.HooksOf(event, names...)
	if len(commands) == 0 {
		return hooks.Output{}
	}
	// Scripts are in the project and are named by its root, also in a session that was opened in a subfolder.
	root := paths.Worktree(h.cwd)
	// The fields that every event of Claude Code's has. Sessions are not stored as transcript files, so that path is empty; the key is
	// there for scripts that require it.
	in := hooks.Input{"session_id": session, "transcript_path": "", "cwd": h.cwd, "permission_mode": h.mode(session), "hook_event_name": event}
	for k, v := range fields {
		in[k] = v
	}
	for i, c := range commands {
		commands[i].Dir = h.cwd
		commands[i].Env = append(conf.Environ(guard.Hook, c.Command), "CLAUDE_PROJECT_DIR="+root, "PILLION_PROJECT_DIR="+root)
		// The person should know what runs beside the agent; a line for each call would hide everything else.
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

// firstRun reports whether the person was not told yet that this command runs in this session, and notes that they are told.
func (h *settingsHooks) firstRun(session, command string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := session + "\x00" + command
	first := !h.shown[key]
	h.shown[key] = true
	return first
}

// notice shows the person a line. In a session that was closed meanwhile there is nobody to show it to.
func (h *settingsHooks) notice(session, level, text string) {
	if s, ok := h.app.Runtime.Session(session); ok {
		s.Notice(level, text)
	}
}

// mode is permission_mode, Claude Code's word for how a session asks. Of its words only default, plan
// and acceptEdits are used.
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

// before implements tools.Hook: it runs PreToolUse and returns the input, perhaps changed. A hook that blocks fails the call, and the model
// reads why; one that ends the turn does so as a person's rejection does.
func (h *settingsHooks) before(ctx context.Context, call *tools.Call, input json.RawMessage) (json.RawMessage, error) {
	as := claudeCalls(call.Tool, input, h.cwd, h.app.ConfigOf(h.cwd))
	state := &hookedCall{calls: as}
	for _, c := range as {
		out := h.run(ctx, call.SessionID, hooks.PreToolUse, c.names(), hooks.Input{"tool_name": c.Name, "tool_input": c.Input, "tool_use_id": call.CallID})
		// A cancelled turn has ended the commands: that they did not block says nothing.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if out.End {
			h.notice(call.SessionID, "warning", "A hook ended the turn: "+out.EndReason)
			return nil, &permission.RejectedError{}
		}
		if out.Block {
			h.notice(call.SessionID, "warning", fmt.Sprintf("A hook blocked %s: %s", c.Name, out.Reason))
			return nil, &tools.Error{Kind: "hook", Message: "A hook of the user's settings blocked this call: " + out.Reason}
		}
		// An allow is about one file: it must not let the other files of a patch through. An ask about any of them asks about all.
		if out.Decision == "ask" || out.Decision == "allow" && len(as) == 1 {
			if out.Decision == "ask" && out.Reason != "" {
				h.notice(call.SessionID, "info", "A hook wants you to be asked: "+out.Reason)
			}
			// Ask is stricter than an allow that another file's hook has given, and stays.
			state.decision = cmp.Or(strings.Replace(state.decision, "allow", out.Decision, 1), out.Decision)
		}
		state.context = append(state.context, out.Context...)
		// A changed input of one file of a patch cannot be put back into the patch, so it is ignored there.
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

// call is what is known of the call that a question belongs to; nil: nothing. Only insisted changes after before has returned, so the
// other fields may be read without mu.
func (h *settingsHooks) call(r permission.Request) *hookedCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[r.SessionID+r.CallID]
}

// insist implements agent.Extensions.Insist: true for the first question of a call that a hook wants to be asked about. A call may ask more
// than once (a folder outside, then the command); the person is made to answer one question that the rules would have allowed, not each.
func (h *settingsHooks) insist(r permission.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.calls[r.SessionID+r.CallID]
	if c == nil || c.decision != "ask" || c.insisted {
		return false
	}
	c.insisted = true
	return true
}

// permission runs the PermissionRequest hooks when the person would be asked, then those of Notification. The gate lets no Allow pass a
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
			// As in before: an allow of one file does not count for the other files of a patch.
			case out.Decision == "allow" && len(state.calls) == 1:
				return permission.Allow
			}
		}
	}
	h.run(ctx, r.SessionID, hooks.Notification, []string{"permission_prompt"}, hooks.Input{"message": "Pillion needs your permission to use " + name, "title": "Permission needed", "notification_type": "permission_prompt"})
	return permission.Ask
}

// after implements tools.Hook: it runs PostToolUse or PostToolUseFailure and adds to the result what hooks say to the model. The call has
// happened, so a hook that blocks takes nothing back: its objection is read by the model.
func (h *settingsHooks) after(ctx context.Context, call *tools.Call, _ json.RawMessage, r tools.Result, err error) (tools.Result, error) {
	h.mu.Lock()
	state := h.calls[call.SessionID+call.CallID]
	delete(h.calls, call.SessionID+call.CallID)
	h.mu.Unlock()
	// What a person or a rule refused has not run, and a cancelled turn waits for nothing.
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
		// The kind stays: the loop and the editors act by it. The hooks' words come after the message.
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

// begin implements agent.Extensions.Begin with SessionStart. source is startup, resume or compact; a matcher is compared with it.
func (h *settingsHooks) begin(ctx context.Context, s agent.SessionInfo, source string) []string {
	if s.Parent != "" { // a sub-agent's session is not one that the person began
		return nil
	}
	out := h.run(ctx, s.ID, hooks.SessionStart, []string{source}, hooks.Input{"source": source, "model": s.Model})
	if out.Block { // it cannot stop a session; its words are for the person
		h.notice(s.ID, "warning", out.Reason)
	}
	return out.Context
}

// prompt implements agent.Extensions.Prompt with UserPromptSubmit. Only what the person wrote is shown to the hooks, without the parts that
// Pillion adds. An error refuses the prompt. The prompt of a sub-agent is the model's, so it has no such event.
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

// stop implements agent.Extensions.Stop with Stop, or SubagentStop. A hook that blocks the end keeps the turn going with its reason; one
// that says "continue": false ends it whatever the others want. The loop bounds how often (maxKeptGoing); again becomes stop_hook_active,
// by which a script can avoid blocking for ever.
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

// hooked are the extensions of a directory with the hooks of its settings; base is what plugins add. The result is kept until base is
// another one, because it is asked for often. settingsHooks is kept longer: it has the calls that run, and what the person was told.
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

// hookedExtensions are extensions and what they were made of.
type hookedExtensions struct {
	hooks     *settingsHooks
	base, ext *agent.Extensions
}
