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

// The limits of tools with a manifest. The sizes bound the memory that a mistake can take: a log file named .json, a program that never
// stops printing.
const (
	maxManifest  = 256 << 10       // bytes of a manifest
	maxAnswer    = 16 << 20        // bytes kept of a program's answer
	defaultLimit = 2 * time.Minute // for one run of the program, without "timeout" in the manifest
)

// manifest describes a tool in any language: a program that reads one JSON object on standard input (input and
// context) and writes its answer to standard output, as text or as {"output", "title", "metadata"}. Unknown fields are
// ignored, so that a manifest of another agent with more in it works.
type manifest struct {
	Name        string          `json:"name"` // empty: the file's name without .json
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema of the arguments
	Parameters  json.RawMessage `json:"parameters"`  // another name of inputSchema, which takes precedence
	Command     []string        `json:"command"`     // program and arguments; a program with ./ or ../ is relative to the manifest's folder
	Timeout     int             `json:"timeout"`     // seconds; 0: defaultLimit
	ReadOnly    bool            `json:"readOnly"`
}

// openManifest makes a tool from a manifest. A mistake in it causes one notice and a unit without tools. It does not check that the program
// exists: it may be built later, and a call reports a missing one.
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
			return h.program(ctx, f.path, m, input, call)
		},
	}}
	return u
}

// readManifest reads a manifest and fills in defaults. Its errors continue a sentence in which the caller names the file.
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
			// encoding/json gives a byte offset, which does not help a person in an editor.
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
	// Providers refuse a tool without a schema; this one accepts any object.
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

// program runs the tool's program for one call, in a process group of its own. An exit code other than 0 is an error with the last line of
// standard error. The time limit begins after the approval, at the start of the program.
func (h *Host) program(ctx context.Context, path string, m *manifest, input json.RawMessage, call *tools.Call) (tools.Result, error) {
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
	cmd := guard.CommandFor(context.Background(), h.o.reason(path), m.Command...)
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
	// The whole group is killed: children of the program would otherwise run on and hold its pipes open.
	stop := context.AfterFunc(timed, func() { guard.KillGroup(cmd) })
	err = cmd.Wait()
	stop()
	// Processes that the program left in its group must not outlive the call, or a later call could collide with them.
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

// bounded is a writer that keeps the first max bytes and drops the rest.
type bounded struct {
	buf bytes.Buffer
	max int  // bytes
	cut bool // something was dropped
}

// Write implements io.Writer. It never fails: otherwise exec would stop reading, and the program would die of a broken pipe instead of
// reporting its own error.
func (b *bounded) Write(p []byte) (int, error) {
	if left := b.max - b.buf.Len(); len(p) > left {
		b.cut = true
		b.buf.Write(p[:left])
	} else {
		b.buf.Write(p)
	}
	return len(p), nil
}
