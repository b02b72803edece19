// Package hooks runs the commands that a person's settings attach to prompts and tool calls, by the contract of Claude Code's hooks:
// the event is JSON on standard input; exit code 2 blocks, with the reason on standard error; standard output may hold JSON that
// decides, adds context for the model or shows a message to the person.
//
//	out := hooks.Run(ctx, commands, hooks.Input{"hook_event_name": "PreToolUse", "tool_name": "Bash", …})
//	if out.Block { … out.Reason … }
//
// The caller decides which commands there are and whether their folder is trusted. Each command carries its guard.Reason, which is
// checked again when the command starts.
package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// The supported events. The names and the answers that each accepts are Claude Code's, so that its settings files work unchanged.
const (
	SessionStart      = "SessionStart"
	UserPromptSubmit  = "UserPromptSubmit"
	PreToolUse        = "PreToolUse"
	PermissionRequest = "PermissionRequest"
	PostToolUse       = "PostToolUse"
	PostToolFailure   = "PostToolUseFailure"
	Notification      = "Notification"
	Stop              = "Stop"
	SubagentStop      = "SubagentStop"
	PreCompact        = "PreCompact"
	SessionEnd        = "SessionEnd"
)

// Events are all supported events. The settings are checked against it, so an event that is missing here cannot be configured.
var Events = []string{SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, PostToolFailure, Notification, Stop, SubagentStop, PreCompact, SessionEnd}

// DefaultTimeout is the time limit of a command without one of its own. It is Claude Code's, and long because hooks run tests.
const DefaultTimeout = 10 * time.Minute

// maxOutput is how much of a command's standard output, and of its standard error, is kept, in bytes. The rest is read and dropped while
// the command runs. The limit exists because output is stored with the conversation and sent to models.
const maxOutput = 64 << 10

// killDelay is how long Wait waits for a command's pipes after the command has ended: a process that it started may still hold them
// open.
const killDelay = 2 * time.Second

// Command is one configured hook.
type Command struct {
	Command string
	Args    []string      // not nil: Command is a program, started without a shell; nil: Command is a line for the shell
	Timeout time.Duration // 0: DefaultTimeout
	Async   bool          // Run does not wait for it, and its answer has no effect
	Strict  bool          // a failure of the command blocks as well ("onFailure": "block")
	Dir     string        // the working directory
	Env     []string      // NAME=value, added to the environment that package guard makes, which has no API keys
	Reason  guard.Reason  // which setting the command comes from; guard refuses it if that setting's folder is not trusted
}

// Input is the event's JSON object, with Claude Code's field names.
type Input map[string]any

// Output is the combined decision of all hooks of an event. The strictest decides: deny, then ask, then allow.
type Output struct {
	Block    bool
	Reason   string // why a hook blocks, or the reason of its Decision; several reasons for blocking are on separate lines
	Decision string // for PreToolUse and PermissionRequest: allow, ask, deny or empty
	// End is set when a hook ends the turn ("continue": false); EndReason is shown to the person.
	End       bool
	EndReason string
	Context   []string        // text for the model
	Messages  []Message       // lines for the person
	Updated   json.RawMessage // for PreToolUse: the tool's input as the last of the hooks changed it; nil: unchanged
}

// Message is a line for the person; Level is info or warning.
type Message struct{ Level, Text string }

// Matches reports whether a matcher applies to one of names: the names of a tool, or what started a session. An empty matcher and "*"
// apply to everything. A matcher of letters, digits, _, -, spaces, commas and | is a list of exact names; any other is a regular
// expression, not anchored. An invalid expression matches everything: a hook that guards something must not be skipped over a typo.
func Matches(matcher string, names ...string) bool {
	matcher = strings.TrimSpace(matcher)
	if matcher == "" || matcher == "*" {
		return true
	}
	if plain().MatchString(matcher) {
		return slices.ContainsFunc(strings.FieldsFunc(matcher, func(r rune) bool { return r == '|' || r == ',' || r == ' ' }), func(m string) bool { return slices.Contains(names, m) })
	}
	re, err := regexp.Compile(matcher)
	return err != nil || slices.ContainsFunc(names, re.MatchString)
}

// plain recognizes a matcher that is a list of names and not a regular expression.
var plain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_\-|, ]+$`) })

// Run runs the commands of one event concurrently and waits for all but the asynchronous ones. Cancelling ctx ends the commands, and Run
// returns what the finished ones decided. Asynchronous commands run on under background.
func Run(ctx, background context.Context, commands []Command, in Input) Output {
	raw, err := json.Marshal(in)
	if err != nil { // a raw value in it is not JSON
		return Output{Messages: []Message{{"warning", "Hooks were not run: " + err.Error()}}}
	}
	event, _ := in["hook_event_name"].(string)
	answers := make([]answer, len(commands))
	var wait sync.WaitGroup
	for i, c := range commands {
		if c.Async {
			go c.run(background, raw)
			continue
		}
		wait.Go(func() { answers[i] = c.run(ctx, raw) })
	}
	wait.Wait()
	// In the order of the settings, not of completion, so that equal answers give equal results.
	var out Output
	for i, a := range answers {
		if !commands[i].Async {
			out.add(event, commands[i], a)
		}
	}
	return out
}

// answer is how one command ended.
type answer struct {
	code           int // the exit code; -1: the command was not started, or was killed
	stdout, stderr string
	err            error
}

// run runs one command in its own process group, so that a timeout or a cancellation also kills the processes that it has started.
func (c Command) run(ctx context.Context, stdin []byte) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	argv := append([]string{c.Command}, c.Args...)
	if c.Args == nil {
		argv = shell(c.Command)
	}
	cmd := guard.CommandFor(ctx, c.Reason, argv...)
	cmd.Dir, cmd.Env = c.Dir, append(cmd.Env, c.Env...)
	var stdout, stderr limited
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	guard.OwnGroup(cmd)
	cmd.Cancel = func() error { guard.KillGroup(cmd); return nil }
	cmd.WaitDelay = killDelay
	err := guard.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	a = answer{stdout: stdout.kept.String(), stderr: strings.TrimSpace(stderr.kept.String()), err: err}
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.code, a.err = -1, fmt.Errorf("it did not end within %s", cmp.Or(c.Timeout, DefaultTimeout))
	case ctx.Err() != nil:
		a.code, a.err = -1, ctx.Err()
	case errors.As(err, &exit):
		a.code, a.err = exit.ExitCode(), nil
	case errors.Is(err, exec.ErrWaitDelay):
		a.err = nil // the command succeeded; a process that it left behind holds the pipes
	case err != nil:
		a.code = -1
	}
	return a
}

// shell is the command that runs a line: bash if there is one, as Claude Code's hooks are written for it, else sh, else cmd on Windows.
func shell(line string) []string {
	for _, name := range []string{"bash", "sh"} {
		if _, err := exec.LookPath(name); err == nil {
			return []string{name, "-c", line}
		}
	}
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", line}
	}
	return []string{"/bin/sh", "-c", line}
}

// limited keeps the first maxOutput bytes and drops the rest, so that the command never blocks on a full pipe.
type limited struct{ kept bytes.Buffer } // not embedded: io.Copy would use its ReadFrom, which has no limit

// Write implements io.Writer. It never fails: an error would make exec stop reading and kill the command with SIGPIPE.
func (l *limited) Write(b []byte) (int, error) {
	if room := maxOutput - l.kept.Len(); room > 0 {
		l.kept.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// reply is the JSON that a command may print on standard output with exit code 0. Decision is "block" or, in the older form of
// PreToolUse, "approve".
type reply struct {
	Continue *bool           `json:"continue"`
	Stop     string          `json:"stopReason"`
	Message  string          `json:"systemMessage"`
	Decision string          `json:"decision"`
	Reason   string          `json:"reason"`
	Specific json.RawMessage `json:"hookSpecificOutput"`
}

// specific is the hookSpecificOutput of a reply, with the fields of all events.
type specific struct {
	Decision any             `json:"decision"`           // for PermissionRequest: {"behavior", "message"}
	Allow    string          `json:"permissionDecision"` // for PreToolUse: allow, deny, ask or defer
	Why      string          `json:"permissionDecisionReason"`
	Context  string          `json:"additionalContext"`
	Updated  json.RawMessage `json:"updatedInput"`
}

// add merges the answer of one command into o. A cancelled command has no effect; exit code 2 blocks; any other failure is a
// warning, or blocks if the command is Strict.
func (o *Output) add(event string, c Command, a answer) {
	name := event + " hook (" + c.Command + ")"
	switch {
	case a.err != nil && errors.Is(a.err, context.Canceled):
		return
	case a.code == 2:
		o.block(event, "deny", cmp.Or(a.stderr, "the "+name+" blocked this without a reason"))
		return
	case a.code != 0:
		why := cmp.Or(a.stderr, fmt.Sprintf("exit code %d", a.code))
		if a.err != nil {
			why = a.err.Error()
		}
		if c.Strict {
			o.block(event, "deny", "the "+name+" failed: "+why)
			return
		}
		o.Messages = append(o.Messages, Message{"warning", "The " + name + " failed: " + why})
		return
	}
	text := strings.TrimSpace(a.stdout)
	var r reply
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &r) != nil {
		// In these two events output that is not a JSON object is context for the model; in the others it is ignored.
		if text != "" && (event == UserPromptSubmit || event == SessionStart) {
			o.Context = append(o.Context, text)
		}
		return
	}
	if r.Message != "" {
		o.Messages = append(o.Messages, Message{"info", r.Message})
	}
	if r.Continue != nil && !*r.Continue {
		o.End, o.EndReason = true, cmp.Or(r.Stop, o.EndReason, "the "+name+" ended the turn")
	}
	switch r.Decision {
	case "block", "deny":
		o.block(event, "deny", cmp.Or(r.Reason, "the "+name+" blocked this without a reason"))
	case "approve", "allow": // the older form of the answer to PreToolUse
		o.decide("allow", r.Reason)
	}
	var s specific
	if json.Unmarshal(r.Specific, &s) != nil {
		return
	}
	if s.Context != "" {
		o.Context = append(o.Context, s.Context)
	}
	if event == PreToolUse && len(s.Updated) > 0 && string(s.Updated) != "null" {
		o.Updated = s.Updated
	}
	switch s.Allow {
	case "deny":
		o.block(event, "deny", cmp.Or(s.Why, "the "+name+" denied this without a reason"))
	case "ask", "allow":
		o.decide(s.Allow, s.Why)
	case "defer": // in Claude Code another program decides later; Pillion asks the person instead
		o.decide("ask", s.Why)
	}
	if d, ok := s.Decision.(map[string]any); ok {
		why, _ := d["message"].(string)
		switch d["behavior"] {
		case "allow":
			o.decide("allow", why)
		case "deny":
			o.block(event, "deny", cmp.Or(why, "the "+name+" denied this without a reason"))
		}
	}
}

// block records that a hook blocks. The reasons of several hooks are kept, one on each line.
func (o *Output) block(event, decision, why string) {
	if o.Block {
		o.Reason += "\n" + why
		return
	}
	o.Block, o.Reason, o.Decision = true, why, decision
}

// decide records a decision unless there is one that is equally strict or stricter.
func (o *Output) decide(decision, why string) {
	rank := []string{"", "allow", "ask", "deny"}
	if slices.Index(rank, decision) > slices.Index(rank, o.Decision) {
		o.Decision, o.Reason = decision, why
	}
}
