package hooks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

func run(t *testing.T, event, script string, more ...func(*Command)) Output {
	t.Helper()
	c := Command{Command: script, Dir: t.TempDir(), Reason: guard.Reason{Who: "hook"}}
	for _, f := range more {
		f(&c)
	}
	return Run(t.Context(), t.Context(), []Command{c}, Input{"hook_event_name": event, "tool_name": "Bash", "tool_input": map[string]string{"command": "rm -rf build"}})
}

// Every way to answer that the contract knows, each through a real shell.
func TestAnswers(t *testing.T) {
	json := func(s string) string { return "cat <<'E'\n" + s + "\nE" }
	for name, x := range map[string]struct {
		event, script string
		want          func(Output) bool
	}{
		"stdin is the event": {PreToolUse, `grep -q '"command":"rm -rf build"' && { echo no rm >&2; exit 2; }`, func(o Output) bool { return o.Block && o.Decision == "deny" && o.Reason == "no rm" }},
		"exit 1 does not block": {PreToolUse, `echo broken >&2; exit 1`, func(o Output) bool {
			return !o.Block && len(o.Messages) == 1 && strings.Contains(o.Messages[0].Text, "broken")
		}},
		"a missing program does not":      {PreToolUse, `no-such-program-here`, func(o Output) bool { return !o.Block && len(o.Messages) == 1 }},
		"silence":                         {PreToolUse, `true`, func(o Output) bool { return !o.Block && o.Decision == "" && len(o.Messages)+len(o.Context) == 0 }},
		"permissionDecision deny":         {PreToolUse, json(`{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not here"}}`), func(o Output) bool { return o.Block && o.Reason == "not here" }},
		"permissionDecision ask":          {PreToolUse, json(`{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}}`), func(o Output) bool { return !o.Block && o.Decision == "ask" && o.Reason == "sure?" }},
		"permissionDecision allow":        {PreToolUse, json(`{"hookSpecificOutput": {"permissionDecision": "allow"}}`), func(o Output) bool { return o.Decision == "allow" }},
		"updatedInput":                    {PreToolUse, json(`{"hookSpecificOutput": {"updatedInput": {"command": "ls"}}}`), func(o Output) bool { return string(o.Updated) == `{"command": "ls"}` }},
		"the older approve":               {PreToolUse, json(`{"decision": "approve"}`), func(o Output) bool { return o.Decision == "allow" }},
		"the older block":                 {PreToolUse, json(`{"decision": "block", "reason": "old"}`), func(o Output) bool { return o.Block && o.Reason == "old" }},
		"PostToolUse block":               {PostToolUse, json(`{"decision": "block", "reason": "lint failed"}`), func(o Output) bool { return o.Block && o.Reason == "lint failed" }},
		"additionalContext":               {PostToolUse, json(`{"hookSpecificOutput": {"additionalContext": "see x"}}`), func(o Output) bool { return len(o.Context) == 1 && o.Context[0] == "see x" }},
		"systemMessage":                   {Stop, json(`{"systemMessage": "hello"}`), func(o Output) bool { return len(o.Messages) == 1 && o.Messages[0].Text == "hello" }},
		"continue false":                  {PostToolUse, json(`{"continue": false, "stopReason": "enough"}`), func(o Output) bool { return o.End && o.EndReason == "enough" }},
		"plain text of a prompt hook":     {UserPromptSubmit, `echo the branch is main`, func(o Output) bool { return len(o.Context) == 1 && o.Context[0] == "the branch is main" }},
		"plain text of another":           {PreToolUse, `echo chatter`, func(o Output) bool { return len(o.Context) == 0 }},
		"what only looks like JSON":       {SessionStart, `echo '{not json'`, func(o Output) bool { return len(o.Context) == 1 }},
		"PermissionRequest":               {PermissionRequest, json(`{"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "ask first"}}}`), func(o Output) bool { return o.Block && o.Reason == "ask first" }},
		"a wrong type decides nothing":    {PreToolUse, json(`{"hookSpecificOutput": {"permissionDecision": 7}}`), func(o Output) bool { return !o.Block && o.Decision == "" }},
		"much output is read and dropped": {SessionStart, `yes | head -c 3000000`, func(o Output) bool { return len(o.Context) == 1 && len(o.Context[0]) <= maxOutput }},
	} {
		t.Run(name, func(t *testing.T) {
			if o := run(t, x.event, x.script); !x.want(o) {
				t.Errorf("%+v", o)
			}
		})
	}
}

// Of several hooks the strictest counts, whatever their order.
func TestTheStrictestCounts(t *testing.T) {
	allow := Command{Command: `echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'`}
	deny := Command{Command: `echo no >&2; exit 2`}
	ask := Command{Command: `echo '{"hookSpecificOutput": {"permissionDecision": "ask"}}'`}
	for _, x := range []struct {
		commands []Command
		want     string
	}{{[]Command{allow, deny}, "deny"}, {[]Command{deny, allow}, "deny"}, {[]Command{allow, ask}, "ask"}, {[]Command{ask, allow}, "ask"}, {[]Command{ask, deny, allow}, "deny"}} {
		if o := Run(t.Context(), t.Context(), x.commands, Input{"hook_event_name": PreToolUse}); o.Decision != x.want {
			t.Errorf("%s, want %s", o.Decision, x.want)
		}
	}
}

// A hook that hangs is ended at its limit, with what it started; so is one of a turn that is cancelled.
func TestHooksAreEnded(t *testing.T) {
	o := run(t, PreToolUse, `sleep 1000 & sleep 1000`, func(c *Command) { c.Timeout = 50 * time.Millisecond })
	if o.Block || len(o.Messages) != 1 || !strings.Contains(o.Messages[0].Text, "did not end within 50ms") {
		t.Errorf("%+v", o)
	}
	if o := run(t, PreToolUse, `sleep 1000`, func(c *Command) { c.Timeout, c.Strict = 50*time.Millisecond, true }); !o.Block {
		t.Errorf("a guard that must not fail let the call through: %+v", o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fifo := filepath.Join(t.TempDir(), "started")
	if err := guard.Command(guard.Helper, "mkfifo", fifo).Run(); err != nil {
		t.Skip("mkfifo: ", err)
	}
	go func() {
		if f, err := os.Open(fifo); err == nil { // returns when the command opens the other end
			_ = f.Close()
			cancel()
		}
	}()
	Run(ctx, ctx, []Command{{Command: "echo > " + fifo + "; sleep 1000"}}, Input{"hook_event_name": Stop})
}

// A hook of a folder that is not trusted never starts, and has no keys when it does.
func TestTrustAndKeys(t *testing.T) {
	t.Setenv("SOME_API_KEY", "hunter2")
	mark := filepath.Join(t.TempDir(), "ran")
	o := run(t, PreToolUse, "touch "+mark, func(c *Command) { c.Reason = guard.Reason{Who: "hook", Setting: "hooks", Folder: "/x"} })
	if _, err := os.Stat(mark); err == nil || o.Block || len(o.Messages) != 1 {
		t.Errorf("it ran, or nothing was said: %+v", o)
	}
	if o := run(t, SessionStart, "env", func(c *Command) { c.Env = []string{"CLAUDE_PROJECT_DIR=/p"} }); strings.Contains(o.Context[0], "hunter2") || !strings.Contains(o.Context[0], "CLAUDE_PROJECT_DIR=/p") {
		t.Errorf("%s", o.Context[0])
	}
}

func TestMatchers(t *testing.T) {
	for _, x := range []struct {
		matcher, name string
		want          bool
	}{
		{"", "Bash", true}, {"*", "Bash", true}, {"Bash", "Bash", true}, {"Bash", "BashOutput", false}, {"Edit|Write", "Write", true}, {"Edit, Write", "Write", true}, {"Edit|Write", "MultiEdit", false},
		{"mcp__.*", "mcp__db__query", true}, {"^Notebook", "NotebookEdit", true}, {"mcp__db__.*write.*", "mcp__db__query", false}, {"bash", "Bash", false}, {"[", "Bash", true},
	} {
		if got := Matches(x.matcher, x.name); got != x.want {
			t.Errorf("%q %s: %v", x.matcher, x.name, got)
		}
	}
}

// Whatever a hook prints is read without a panic, and nothing but a clear word decides.
func FuzzAnswers(f *testing.F) {
	f.Add(PreToolUse, `{"decision":"block"}`, 0)
	f.Add(PreToolUse, `{"hookSpecificOutput":{"decision":{"behavior":1}}}`, 0)
	f.Add(Stop, `{"continue":"x"}`, 2)
	f.Fuzz(func(t *testing.T, event, stdout string, code int) {
		var o Output
		o.add(event, Command{Command: "x"}, answer{code: code, stdout: stdout})
		if code == 2 && !o.Block {
			t.Error("exit code 2 did not block")
		}
		if o.Decision == "allow" && !strings.Contains(strings.ToLower(stdout), "\\u") && !strings.Contains(stdout, "allow") && !strings.Contains(stdout, "approve") {
			t.Errorf("allowed by %q", stdout)
		}
		if len(o.Updated) > 0 && !json.Valid(o.Updated) {
			t.Error("an input that is no JSON")
		}
	})
}
