package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

type echoParams struct {
	Text string `json:"text"`
}

func echo() Tool {
	return New("echo", "", func(_ context.Context, p echoParams, _ *Call) (Result, error) {
		if p.Text == "panic" {
			panic("oh")
		}
		if p.Text == "fail" {
			return Result{}, &Error{Kind: "stale", Message: "failed"}
		}
		return Result{Output: p.Text}, nil
	})
}

func TestAPanicIsTheCallsError(t *testing.T) {
	_, err := Invoke(t.Context(), echo(), json.RawMessage(`{"text":"panic"}`), &Call{}, CapOptions{})
	var p *PanicError
	if !errors.As(err, &p) || p.Value != "oh" || !strings.Contains(string(p.Stack), "invoke_test.go") || !strings.Contains(err.Error(), "echo tool crashed (oh)") {
		t.Error(err)
	}
}

func TestAfterACancelTheErrorSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tool := New("x", "", func(context.Context, struct{}, *Call) (Result, error) {
		cancel()
		return Result{}, errors.New("signal: killed")
	})
	if _, err := Invoke(ctx, tool, nil, &Call{}, CapOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ran := false
	tool.Run = func(context.Context, json.RawMessage, *Call) (Result, error) { ran = true; return Result{}, nil }
	if _, err := Invoke(ctx, tool, nil, &Call{}, CapOptions{}); !errors.Is(err, context.Canceled) || ran {
		t.Error("ran after the cancel", err)
	}
}

func TestHooks(t *testing.T) {
	var order []string
	note := func(name string) Hook {
		return Hook{
			Before: func(_ context.Context, c *Call, in json.RawMessage) (json.RawMessage, error) {
				order = append(order, "before "+name+" "+c.Tool)
				return in, nil
			},
			After: func(_ context.Context, _ *Call, _ json.RawMessage, r Result, err error) (Result, error) {
				order = append(order, "after "+name)
				return r, err
			},
		}
	}
	change := func(to string) Hook {
		return Hook{Before: func(context.Context, *Call, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(to), nil
		}}
	}
	run := func(in string, hooks ...Hook) (string, error) {
		order = nil
		r, err := Invoke(t.Context(), echo(), json.RawMessage(in), &Call{Hooks: hooks}, CapOptions{})
		return r.Output, err
	}

	if out, err := run(`{"text":"a"}`, note("1"), note("2")); out != "a" || err != nil || strings.Join(order, ", ") != "before 1 echo, before 2 echo, after 2, after 1" {
		t.Error(out, err, order)
	}
	if out, _ := run(`{"text":"a"}`, change(`{"text":"b"}`)); out != "b" {
		t.Error("the changed input was not used:", out)
	}
	if _, err := run(`{"text":"a"}`, change(`{"text":5}`)); err == nil || !strings.Contains(err.Error(), "Expected string, got 5") {
		t.Error("changed input went unchecked:", err)
	}
	refuse := Hook{Before: func(context.Context, *Call, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("not today")
	}}
	if _, err := run(`{"text":"a"}`, note("1"), refuse); err == nil || err.Error() != "not today" || len(order) != 1 {
		t.Error(err, order)
	}
	rescue := Hook{After: func(_ context.Context, _ *Call, _ json.RawMessage, _ Result, err error) (Result, error) {
		return Result{Output: "instead of: " + err.Error()}, nil
	}}
	if out, err := run(`{"text":"fail"}`, rescue); out != "instead of: failed" || err != nil {
		t.Error(out, err)
	}
}

type gateFunc func(permission.Request) (permission.Reply, error)

func (f gateFunc) Ask(_ context.Context, r permission.Request) (permission.Reply, error) { return f(r) }

func TestAskSpeaksForTheCall(t *testing.T) {
	var got permission.Request
	call := &Call{SessionID: "s", CallID: "c", Tool: "grep", Host: Host{Gate: gateFunc(func(r permission.Request) (permission.Reply, error) {
		got = r
		return permission.Reply{Kind: permission.Once}, nil
	})}}
	if _, err := call.Ask(t.Context(), permission.Request{Permission: "grep", Patterns: []string{"x"}}); err != nil || got.SessionID != "s" || got.CallID != "c" || got.Tool != "grep" {
		t.Error(got, err)
	}
	if _, err := (&Call{}).Ask(t.Context(), permission.Request{Permission: "edit"}); !errors.Is(err, permission.ErrRejected) {
		t.Error("without a gate:", err)
	}
}
