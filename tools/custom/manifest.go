package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
)

// maxManifest and maxAnswer keep a mistake (a manifest that is a log file, a program that prints for ever) from taking
// the memory. defaultLimit is what a manifest without "timeout" gets.
const (
	maxManifest  = 256 << 10 // bytes
	maxAnswer    = 16 << 20  // bytes of a program's answer
	defaultLimit = 2 * time.Minute
)

// manifest describes a tool in any language: a program that reads one JSON object on standard input (input and
// context) and writes its answer to standard output, as text or as {"output", "title", "metadata"}. Unknown fields are
// ignored, so that a manifest of another agent with more in it works.
type manifest struct {
	Name        string          `json:"name"` // empty: the file's
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Parameters  json.RawMessage `json:"parameters"` // the same
	Command     []string        `json:"command"`    // relative to the manifest's folder where it starts with ./
	Timeout     int             `json:"timeout"`    // seconds; 0: 120
	ReadOnly    bool            `json:"readOnly"`
}

// openManifest makes a tool of a manifest. A mistake in it is told once and leaves the unit without tools. The program is
// not looked for: it may be built later, and a call tells when it is missing.
func (h *Host) openManifest(f file) unit {
	u := unit{inputs: []string{f.path}}
	u.stamp = stampAll(u.inputs)
	m, err := readManifest(f.path)
	if err != nil {
		h.notice("error", fmt.Sprintf("%s was not loaded: %v", f.path, err))
		return u
	}
	id := toolID(m.Name)
	u.tools = []tools.Tool{{
		ID: id, Permission: id, Kind: tools.KindOther, Parameters: m.InputSchema, Description: m.Description, ReadOnly: m.ReadOnly,
		Run: func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
			if err := allow(ctx, call, id, f.path, input); err != nil {
				return tools.Result{}, err
			}
			return h.program(ctx, m, input, call)
		},
	}}
	return u
}

// readManifest reads and completes a manifest. Its errors begin in the middle of a sentence: the caller names the file.
func readManifest(path string) (*manifest, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxManifest {
		return nil, fmt.Errorf("it is longer than %d bytes", maxManifest)
	}
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + bytes.Count(raw[:syntax.Offset], []byte("\n"))
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		return nil, err
	}
	if m.Name == "" {
		m.Name = strings.TrimSuffix(filepath.Base(path), ".json")
	}
	if len(m.InputSchema) == 0 {
		m.InputSchema = m.Parameters
	}
	// Providers refuse a tool without a schema, so one without arguments takes an empty object.
	if len(m.InputSchema) == 0 {
		m.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if len(m.Command) == 0 || m.Command[0] == "" {
		return nil, errors.New(`it has no "command": ["program", "argument", …]`)
	}
	if m.Description == "" {
		return nil, errors.New(`it has no "description", so a model would not know what it is for`)
	}
	// The program runs in the session's directory, so a relative name must be resolved here. A bare name is looked up in
	// PATH.
	if strings.HasPrefix(m.Command[0], "./") || strings.HasPrefix(m.Command[0], "../") {
		m.Command[0] = filepath.Join(filepath.Dir(path), m.Command[0])
	}
	return &m, nil
}

// program runs the tool's program for one call, in a process group that is killed at the end of the call, whatever it left
// running. An exit code other than 0 is an error with the program's last line on standard error. The limit counts from
// the start of the program, after the person's answer.
func (h *Host) program(ctx context.Context, m *manifest, input json.RawMessage, call *tools.Call) (tools.Result, error) {
	limit := defaultLimit
	if m.Timeout > 0 {
		limit = time.Duration(m.Timeout) * time.Second
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	in, err := json.Marshal(map[string]any{"input": input, "context": map[string]any{"sessionID": call.SessionID, "messageID": call.MessageID, "callID": call.CallID, "agent": call.Agent,
		"directory": h.o.Directory, "worktree": h.o.Worktree}})
	if err != nil {
		return tools.Result{}, err
	}
	cmd := guard.Command(guard.Tool, m.Command...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = h.o.Directory, bytes.NewReader(in), endGrace
	out, errs := &bounded{max: maxAnswer}, &guard.Tail{}
	cmd.Stdout, cmd.Stderr = out, errs
	guard.OwnGroup(cmd)
	start := h.o.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := start(cmd); err != nil {
		return tools.Result{}, &tools.Error{Kind: "custom", Message: fmt.Sprintf("%s cannot be started: %v", m.Command[0], err)}
	}
	stop := context.AfterFunc(timed, func() { guard.KillGroup(cmd) })
	err = cmd.Wait()
	stop()
	// What the program left running in its group must not outlive the call: the next call could meet it.
	guard.KillGroup(cmd)
	switch {
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	case timed.Err() != nil:
		return tools.Result{}, &tools.Error{Kind: "timeout", Message: fmt.Sprintf("%s did not end within %s and was killed.", m.Command[0], limit)}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		text := err.Error()
		if last := errs.Last(); last != "" {
			text += ": " + last
		}
		return tools.Result{}, &tools.Error{Kind: "custom", Message: text}
	}
	// Only an object with "output" or "error" is read as a structured answer; any other JSON is the tool's text. A cut
	// answer cannot be parsed and is text, too.
	if text := bytes.TrimSpace(out.buf.Bytes()); len(text) > 0 && text[0] == '{' && !out.cut {
		var shape struct {
			Output *string `json:"output"`
			Error  string  `json:"error"`
		}
		if json.Unmarshal(text, &shape) == nil && shape.Error != "" {
			return tools.Result{}, &tools.Error{Kind: "custom", Message: shape.Error}
		}
		if json.Unmarshal(text, &shape) == nil && shape.Output != nil {
			return result(text)
		}
	}
	return tools.Result{Output: out.buf.String()}, nil
}

// bounded keeps the beginning of what is written and takes the rest in silence, so that a flood ends by itself. max is in
// bytes. cut tells that something was left out.
type bounded struct {
	buf bytes.Buffer
	max int
	cut bool
}

// Write never fails: a program that gets an error for its output ends with a message that
// hides its own.
func (b *bounded) Write(p []byte) (int, error) {
	if left := b.max - b.buf.Len(); len(p) > left {
		b.cut = true
		b.buf.Write(p[:left])
	} else {
		b.buf.Write(p)
	}
	return len(p), nil
}
