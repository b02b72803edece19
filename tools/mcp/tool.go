package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// maxName is the limit of the strictest providers. maxDescription bounds what a server can make every request cost, and
// maxSchema keeps one tool from filling the context; a model calls a tool without a schema by its description.
const (
	maxName        = 64       // characters; what every provider takes
	maxDescription = 4 << 10  // bytes of a tool's own words
	maxSchema      = 64 << 10 // bytes; a tool with more is offered without its schema
)

// toolName is server_tool in the characters that providers take, unique among those taken. The suffix of a long or doubled
// name depends on the names alone, so that permission rules and stored conversations find the tool again after a restart.
// The hash is of the original names, so that two tools whose names become equal ("a.b" and "a b") differ.
func toolName(server, tool string, taken map[string]bool) string {
	name := tools.Name(server) + "_" + tools.Name(tool)
	if len(name) <= maxName && !taken[name] {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	mark := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(mark))] + mark
}

// noParameters accepts any object. It stands in for a schema that cannot be used; the server checks the arguments anyway.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// schema is the tool's input schema; one that is no object schema, or too long, becomes "any object". The schema is the
// server's and goes to the provider unchecked otherwise; one that a provider refuses fails the whole request.
func schema(t *sdk.Tool) json.RawMessage {
	raw, err := json.Marshal(t.InputSchema)
	var m map[string]any // a struct would take "TYPE" for "type"
	if err != nil || len(raw) > maxSchema || json.Unmarshal(raw, &m) != nil || m == nil || m["type"] != nil && m["type"] != "object" {
		return noParameters
	}
	if m["type"] == nil || m["properties"] == nil { // both are needed by some providers
		m["type"] = "object"
		if m["properties"] == nil {
			m["properties"] = map[string]any{}
		}
		if raw, err = json.Marshal(m); err != nil {
			return noParameters
		}
	}
	return raw
}

// tool makes a server's tool one of ours. It asks for permission whatever the server says of it: annotations such as
// readOnlyHint are the server's claims.
func (v *server) tool(t *sdk.Tool, taken map[string]bool) tools.Tool {
	id := toolName(v.Name, t.Name, taken)
	title := t.Title
	if a := t.Annotations; a != nil {
		title = cmp.Or(title, a.Title)
	}
	title = v.Name + ": " + cmp.Or(tools.Cut(title, 100), t.Name)
	return tools.Tool{
		ID: id, Permission: id, Kind: tools.KindOther, Parameters: schema(t),
		Description: tools.Cut(cmp.Or(strings.TrimSpace(t.Description), title), maxDescription),
		Run: func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
			err := ask(ctx, call, permission.Request{
				Permission: id, Patterns: []string{"*"}, Always: []string{"*"}, Added: true, Title: title + brief(input),
				Why:      fmt.Sprintf("%s is a tool of the MCP server %s; it may do whatever that server can.", t.Name, v.Name),
				Metadata: map[string]any{"server": v.Name, "tool": t.Name, "input": input},
			})
			if err != nil {
				return tools.Result{}, err
			}
			r, err := v.call(ctx, t.Name, input, call)
			if r.Title == "" {
				r.Title = title
			}
			return r, err
		},
	}
}

// ask asks the gate in the name of a call; nil is permission.
func ask(ctx context.Context, call *tools.Call, r permission.Request) error {
	r.SessionID, r.CallID, r.Tool = call.SessionID, call.CallID, call.Tool
	_, err := call.Host.Gate.Ask(ctx, r)
	return err
}

// brief is a call's arguments for a title. 120 bytes keep the title on a line or two; the whole input is in the request's
// metadata.
func brief(input json.RawMessage) string {
	s := strings.TrimSpace(string(input))
	if s == "" || s == "{}" {
		return ""
	}
	return " " + tools.Cut(s, 120)
}

// call runs a tool on the server. Only silence ends it: progress notifications start the time anew, and questions to a
// person stop it. It is repeated only when the server cannot have done anything yet (it forgot the session, or wanted a page
// visited first); after a crash in the middle the model is told that the outcome is unknown. Errors are *tools.Error,
// apart from the context's.
func (v *server) call(ctx context.Context, name string, input json.RawMessage, call *tools.Call) (tools.Result, error) {
	session, err := v.connected(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(v.Timeout, func() {
		cancel(&tools.Error{Kind: "timeout", Message: fmt.Sprintf("The MCP server %s did not answer %s within %s. It may still be at work; don't repeat the call blindly.", v.Name, name, v.Timeout)})
	})
	defer silence.Stop()
	r := &running{call: call, token: call.CallID, silence: silence, limit: v.Timeout}
	defer v.calls.enter(r)()
	p := &sdk.CallToolParams{Name: name, Arguments: input}
	p.SetProgressToken(r.token)
	answer, err := session.CallTool(ctx, p)
	if errors.Is(err, sdk.ErrSessionMissing) && ctx.Err() == nil { // a remote server forgot us, and has done nothing
		// Only this session is given up: another call may have brought a later one already.
		v.dropSession(session)
		if session, err = v.connected(ctx); err != nil {
			return tools.Result{}, err
		}
		answer, err = session.CallTool(ctx, p)
	}
	if pages := wantedPages(err); len(pages) > 0 && ctx.Err() == nil && v.visit(ctx, r, pages) {
		answer, err = session.CallTool(ctx, p)
	}
	if err != nil {
		var ours *tools.Error
		switch {
		// The silence timer cancels with an error of its own, which says more than "context canceled".
		case errors.As(context.Cause(ctx), &ours):
			return tools.Result{}, ours
		case ctx.Err() != nil:
			return tools.Result{}, ctx.Err()
		case errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			v.dropSession(session)
			return tools.Result{}, &tools.Error{Kind: "unavailable", Message: fmt.Sprintf("The MCP server %s ended during the call; whether %s was done is not known. It is being started again.", v.Name, name), Err: err}
		}
		return tools.Result{}, &tools.Error{Kind: "mcp", Message: fmt.Sprintf("%s: %v", v.Name, err), Err: err}
	}
	out := convert(answer.Content, answer.StructuredContent)
	// An error of the tool (MCP, "Error Handling") is its answer, not a failure of the connection; the model can mend its
	// call.
	if answer.IsError {
		return tools.Result{}, &tools.Error{Kind: "mcp", Message: cmp.Or(out.Output, "The MCP server "+v.Name+" reports an error without words.")}
	}
	return out, nil
}

// progressed shows a progress note in the call's card. A note for a call that has ended is dropped.
func (v *server) progressed(p *sdk.ProgressNotificationParams) {
	r := v.calls.byToken(p.ProgressToken)
	if r == nil {
		return
	}
	r.active()
	data := map[string]any{"progress": p.Progress}
	if p.Total > 0 {
		data["total"] = p.Total
	}
	if p.Message != "" {
		data["message"] = tools.Cut(p.Message, 500)
	}
	r.call.Report(tools.Update{Metadata: data})
}
