package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unsafe"

	"github.com/pillion-dev/pillion/tools/permission"
)

// Hook runs around every call. A nil function is skipped. An error of Before refuses the call; After sees the
// error too and may replace it.
type Hook struct {
	Before func(ctx context.Context, call *Call, input json.RawMessage) (json.RawMessage, error)
	After  func(ctx context.Context, call *Call, input json.RawMessage, r Result, err error) (Result, error)
}

// Invoke makes one call: decode, hooks, run, hooks, cap. A panic of the tool is its error; an error's text is
// capped like an output. Input that a hook changed is checked again.
func Invoke(ctx context.Context, t Tool, raw json.RawMessage, call *Call, limit CapOptions) (Result, error) {
	call.Tool = t.ID
	if t.Keep != "" {
		limit.Keep = t.Keep
	}
	r, err := invoke(ctx, t, raw, call)
	if err != nil {
		return r, capError(ctx, err, limit)
	}
	// Commands print any bytes; a request to a model is JSON, which holds characters only.
	r.Output = strings.ToValidUTF8(r.Output, "\uFFFD")
	// The tool has cut its output itself, in a way that suits it (a page of a file): cutting again would drop its own hint.
	if _, own := r.Metadata["truncated"]; own {
		return r, nil
	}
	limit.Whole = r.Whole
	c := Cap(r.Output, limit)
	meta := make(map[string]any, len(r.Metadata)+2) // the tool's own map may be shared
	for k, v := range r.Metadata {
		meta[k] = v
	}
	meta["truncated"] = c.Truncated
	if c.Path != "" {
		meta["outputPath"] = c.Path
	}
	r.Output, r.Metadata = c.Text, meta
	return r, nil
}

// invoke is Invoke without the cap. Before hooks run in order and After hooks in reverse, as nested calls would.
func invoke(ctx context.Context, t Tool, raw json.RawMessage, call *Call) (Result, error) {
	input, tree, err := decode(t, raw)
	if err != nil {
		return Result{}, err
	}
	for _, h := range call.Hooks {
		if h.Before == nil {
			continue
		}
		if input, err = h.Before(ctx, call, input); err != nil {
			return Result{}, err
		}
		// A plugin's input is trusted no more than a model's.
		if input, tree, err = decode(t, input); err != nil {
			return Result{}, err
		}
	}
	// Hooks may have taken long; a turn that was cancelled meanwhile must not run the tool.
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	call.tree, call.treeOf = tree, unsafe.SliceData(input)
	r, err := run(ctx, t, input, call)
	if err == nil {
		r.Output += t.ignored(raw)
	}
	for i := len(call.Hooks) - 1; i >= 0; i-- {
		// All of them run, also after an error: a hook that measures or cleans up relies on its After.
		if after := call.Hooks[i].After; after != nil {
			r, err = after(ctx, call, input, r, err)
		}
	}
	return r, err
}

// PanicError is a tool that crashed; Stack is for the log.
type PanicError struct {
	Value any
	Stack []byte
}

// Error leaves the stack out: the text goes to the model.
func (e *PanicError) Error() string { return fmt.Sprint("panic: ", e.Value) }

// run turns a panic of one tool into an error of that call: a session with unsaved reviews must not end with it.
func run(ctx context.Context, t Tool, input json.RawMessage, call *Call) (r Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			cause := &PanicError{Value: v, Stack: debug.Stack()}
			r, err = Result{}, &Error{Kind: "internal", Message: fmt.Sprintf("The %s tool crashed (%v). This is a bug of the tool, not of the arguments; do it another way.", t.ID, v), Err: cause}
		}
	}()
	return t.Run(ctx, input, call)
}

// capError keeps an error's chain and shortens its text; after a cancel the chain always holds the cancel.
func capError(ctx context.Context, err error, limit CapOptions) error {
	cancelled := ctx.Err()
	if cancelled != nil && errors.Is(err, cancelled) {
		cancelled = nil
	}
	text := err.Error()
	c := Cap(text, limit)
	if !c.Truncated && cancelled == nil && c.Text == text {
		return err
	}
	out := &Error{Message: c.Text, Err: err}
	var known *Error
	if errors.As(err, &known) {
		out.Kind = known.Kind
	}
	if cancelled != nil {
		out.Err = errors.Join(cancelled, err)
	}
	return out
}

// Ask asks for permission in the name of this call. Without a gate the answer is no: a tool outside of a session must fail closed.
func (c *Call) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	if c.Host.Gate == nil {
		return permission.Reply{}, permission.NoUser(r.Permission, "this host asks no user")
	}
	r.SessionID, r.CallID, r.Tool = c.SessionID, c.CallID, c.Tool
	return c.Host.Gate.Ask(ctx, r)
}
