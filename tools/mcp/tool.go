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

// Limits of a tool. Each model request includes every offered tool, so these limit what one server can make each request cost.
const (
	maxName        = 64       // characters; a length that every provider accepts
	maxDescription = 4 << 10  // bytes of a tool's description
	maxSchema      = 64 << 10 // bytes; a tool with a longer schema is offered without it, and the model must use the description
)

// toolName returns server_tool in the characters that providers accept, different from the names in taken. A name that is too long or taken
// gets a hash of the original names as a suffix, so that "a.b" and "a b" differ. The suffix depends on nothing else, so that permission
// rules and stored conversations find the tool again after a restart.
func toolName(server, tool string, taken map[string]bool) string {
	name := tools.Name(server) + "_" + tools.Name(tool)
	if len(name) <= maxName && !taken[name] {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	mark := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(mark))] + mark
}

// noParameters accepts any object. It replaces a schema that cannot be used; the server checks the arguments anyway.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// schema returns the tool's input schema, or noParameters where that is too long or not for an object. It does not check the schema
// further, so one that a provider refuses makes the whole request fail.
func schema(t *sdk.Tool) json.RawMessage {
	raw, err := json.Marshal(t.InputSchema)
	// A map instead of a struct, which would accept "TYPE" for "type": encoding/json ignores the case of field names.
	var m map[string]any
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

// tool returns a server's tool as a tools.Tool. It always asks for permission: annotations such as readOnlyHint are only claims of the
// server, which is not trusted (MCP, "Tool Annotations").
func (v *server) tool(t *sdk.Tool, taken map[string]bool) tools.Tool {
	id := toolName(v.Name, t.Name, taken)
	title := t.Title
	if a := t.Annotations; a != nil {
		title = cmp.Or(title, a.Title)
	}
	title = v.Name + ": " + cmp.Or(ownWords(title, 100), t.Name)
	return tools.Tool{
		ID: id, Permission: id, Kind: tools.KindOther, Parameters: schema(t),
		Description: cmp.Or(ownWords(t.Description, maxDescription), title),
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

// ask asks the gate on behalf of a call; nil means that the call is allowed.
func ask(ctx context.Context, call *tools.Call, r permission.Request) error {
	r.SessionID, r.CallID, r.Tool = call.SessionID, call.CallID, call.Tool
	_, err := call.Host.Gate.Ask(ctx, r)
	return err
}

// brief returns a call's arguments for a title. 120 bytes keep the title on a line or two; the whole input is in the request's metadata.
func brief(input json.RawMessage) string {
	s := strings.TrimSpace(string(input))
	if s == "" || s == "{}" {
		return ""
	}
	return " " + tools.Cut(s, 120)
}

// call runs a tool on the server. Its only time limit is for the server's silence: a progress notification restarts that timer, and a
// question to the person stops it. A call is repeated only when the server cannot have done anything yet: it does not know the session, or
// first wants a page visited. After a crash during the call the model is told that the outcome is unknown. Errors are *tools.Error, except
// the context's.
func (v *server) call(ctx context.Context, name string, input json.RawMessage, call *tools.Call) (tools.Result, error) {
	session, err := v.connected(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(v.Timeout, func() {
		cancel(&tools.Error{Kind: "timeout", Message: fmt.Sprintf("The MCP server %s did not answer %s within %s. It may still be working; check before you repeat the call.", v.Name, name, v.Timeout)})
	})
	defer silence.Stop()
	r := &running{call: call, token: call.CallID, silence: silence, limit: v.Timeout}
	defer v.calls.enter(r)()
	p := &sdk.CallToolParams{Name: name, Arguments: input}
	// With a token the server may report progress, which restarts the silence timer.
	p.SetProgressToken(r.token)
	answer, err := session.CallTool(ctx, p)
	if errors.Is(err, sdk.ErrSessionMissing) && ctx.Err() == nil { // a remote server has forgotten the session and done nothing
		// Drop only this session: after another call's failure there may already be a newer one.
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
			return tools.Result{}, &tools.Error{Kind: "unavailable", Message: fmt.Sprintf("The MCP server %s ended during the call; it is unknown whether %s was done. Pillion starts it again.", v.Name, name), Err: err}
		}
		return tools.Result{}, &tools.Error{Kind: "mcp", Message: fmt.Sprintf("%s: %v", v.Name, err), Err: err}
	}
	out := convert(answer.Content, answer.StructuredContent, v.long)
	// isError marks an error of the tool itself (MCP, "Error Handling"), not of the connection; the model reads it and can correct its
	// call.
	if answer.IsError {
		return tools.Result{}, &tools.Error{Kind: "mcp", Message: cmp.Or(out.Output, "The MCP server "+v.Name+" reports an error without words.")}
	}
	return out, nil
}

// progressed adds a progress notification to the metadata of its call and restarts the call's silence timer. A notification for a call that
// has ended is dropped.
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
