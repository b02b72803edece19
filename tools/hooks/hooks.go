// Package hooks runs the commands that a person's settings put around prompts and tool calls, by the contract of Claude Code's hooks:
// the event is JSON on standard input; exit code 2 blocks, with the reason on standard error; standard output may hold JSON that
// decides, adds context for the model or says something to the person.
//
//	out := hooks.Run(ctx, commands, hooks.Input{"hook_event_name": "PreToolUse", "tool_name": "Bash", …})
//	if out.Block { … out.Reason … }
//
// Which commands there are, and whether their folder is trusted, is the caller's: each command carries its guard.Reason, which is
// checked again when it starts.
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

// The events that are run. The names, and what may be answered to each, are Claude Code's.
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

// Events are all of them.
var Events = []string{SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, PostToolFailure, Notification, Stop, SubagentStop, PreCompact, SessionEnd}

// DefaultTimeout is how long a command may take that has no timeout of its own. It is Claude Code's figure: hooks run tests.
const DefaultTimeout = 10 * time.Minute

// maxOutput is how much of each of its outputs is read, in bytes; what follows is dropped while the command goes on. Output is
// stored with the conversation and sent to models.
const maxOutput = 64 << 10

// killDelay is how long a command's pipes may stay open after it was ended: a child of its own may hold them.
const killDelay = 2 * time.Second

// Command is one hook as it is run.
type Command struct {
	Command string
	Args    []string      // given: Command is a program, started without a shell
	Timeout time.Duration // 0: DefaultTimeout
	Async   bool          // it is not waited for, and what it answers has no effect
	Strict  bool          // a failure of it blocks as well ("onFailure": "block")
	Dir     string
	Env     []string // besides the scrubbed environment, NAME=value
	Reason  guard.Reason
}

// Input is the event's JSON.
type Input map[string]any

// Output is what all hooks of an event together decided. Of several the strictest counts: deny, then ask, then allow.
type Output struct {
	Block    bool
	Reason   string // why it blocks, denies or asks
	Decision string // of PreToolUse and PermissionRequest: allow, ask, deny or empty
	// End is set where a hook ends the turn ("continue": false); the reason is for the person.
	End       bool
	EndReason string
	Context   []string        // for the model
	Messages  []Message       // for the person
	Updated   json.RawMessage // of PreToolUse: the tool's input as a hook changed it; nil: unchanged
}

// Message is a line for the person; Level is info or warning.
type Message struct{ Level, Text string }

// Matches reports whether a matcher is about one of names: the names of a tool, or what began a session. An empty one and * are
// about everything; one of letters, digits, _, -, commas and | is a list of names; everything else is a regular expression that may
// match anywhere. An invalid expression matches everything, because a guard with a slip in it must not be silent.
func Matches(matcher string, names ...string) bool {
	matcher = strings.TrimSpace(matcher)
	if matcher == "" || matcher == "*" {
		return true
	}
	if plain.MatchString(matcher) {
		return slices.ContainsFunc(strings.FieldsFunc(matcher, func(r rune) bool { return r == '|' || r == ',' || r == ' ' }), func(m string) bool { return slices.Contains(names, m) })
	}
	re, err := regexp.Compile(matcher)
	return err != nil || slices.ContainsFunc(names, re.MatchString)
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_\-|, ]+$`)

// Run runs the commands of one event beside each other and waits for all but the asynchronous ones, which end with background.
// The end of ctx ends the commands; what they decided until then is returned.
func Run(ctx, background context.Context, commands []Command, in Input) Output {
	raw, err := json.Marshal(in)
	if err != nil { // a tool's input that is no JSON
		return Output{Messages: []Message{{"warning", "Hooks were not run: " + err.Error()}}}
	}
	event, _ := in["hook_event_name"].(string)
	answers := make([]answer, len(commands))
	var wait sync.WaitGroup
	for i, c := range commands {
		if c.Async {
			go c.run(background, raw) // its output has no effect
			continue
		}
		wait.Go(func() { answers[i] = c.run(ctx, raw) })
	}
	wait.Wait()
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
	code           int // -1: it did not run to its end
	stdout, stderr string
	err            error
}

// run runs one command to its end.
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
		a.err = nil // it ended well, and a child of it holds its output
	case err != nil:
		a.code = -1
	}
	return a
}

// shell is how a line is run: by bash where there is one, which is what such lines are written for.
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

// limited keeps the first maxOutput bytes and takes the rest, so that the command does not block.
type limited struct{ kept bytes.Buffer } // not embedded: io.Copy would use its ReadFrom, which has no limit

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	if room := maxOutput - l.kept.Len(); room > 0 {
		l.kept.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// reply is the JSON that a command may print.
type reply struct {
	Continue *bool           `json:"continue"`
	Stop     string          `json:"stopReason"`
	Message  string          `json:"systemMessage"`
	Decision string          `json:"decision"`
	Reason   string          `json:"reason"`
	Specific json.RawMessage `json:"hookSpecificOutput"`
}

// specific is the part of it that belongs to the event.
type specific struct {
	Decision any             `json:"decision"` // of PermissionRequest: {"behavior", "message"}
	Allow    string          `json:"permissionDecision"`
	Why      string          `json:"permissionDecisionReason"`
	Context  string          `json:"additionalContext"`
	Updated  json.RawMessage `json:"updatedInput"`
}

// add reads what one command answered.
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
		// Of these two events plain text is for the model; of the others it is nobody's.
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
	case "approve", "allow": // the older form of PreToolUse
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
	case "defer": // a later answer of another program: here the person is who decides later
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

// block notes a refusal.
func (o *Output) block(event, decision, why string) {
	if o.Block {
		o.Reason += "\n" + why
		return
	}
	o.Block, o.Reason, o.Decision = true, why, decision
}

// decide notes a decision unless a stricter one stands.
func (o *Output) decide(decision, why string) {
	rank := []string{"", "allow", "ask", "deny"}
	if slices.Index(rank, decision) > slices.Index(rank, o.Decision) {
		o.Decision, o.Reason = decision, why
	}
}
