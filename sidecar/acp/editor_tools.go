package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// editorToolName is what model providers accept as the name of a function; another name would make them refuse every
// request of the session.
var editorToolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// Limits of the tools that an editor registers. Their descriptions are sent with every model request.
const (
	maxEditorTools = 64
	maxToolText    = 64 << 10 // bytes of a tool's description and schema
)

// editorTools answer _pillion/tool/register: tools that the editor runs for the model.
type editorTools struct {
	*conn
	registry *editors.Registry
}

// registerTools replaces the tools that this editor has registered before. It refuses the whole list when one of them
// is invalid.
func (m *editorTools) registerTools(p *protocol.ToolRegisterRequest) (*protocol.ToolRegisterResponse, error) {
	// An editor that did not announce tool/execute may fail in the middle of a turn.
	if !m.editor.Client().Does(protocol.MethodPillionToolExecute) {
		return nil, rpc.InvalidParams("announce %s in initialize first: nothing is called that was not announced", protocol.MethodPillionToolExecute)
	}
	if len(p.Tools) > maxEditorTools {
		return nil, rpc.InvalidParams("tools: %d tools were sent; the limit is %d", len(p.Tools), maxEditorTools)
	}
	var made []tools.Tool
	names := []string{}
	for i, t := range p.Tools {
		// The arguments of a function are an object.
		var shape struct{ Type string }
		switch {
		case !editorToolName().MatchString(t.Name):
			return nil, rpc.InvalidParams("tools[%d].name: %q is not 1 to 64 letters, digits, _ and -", i, t.Name)
		case slices.Contains(names, t.Name):
			return nil, rpc.InvalidParams("tools[%d].name: %q occurs twice", i, t.Name)
		case strings.TrimSpace(t.Description) == "":
			return nil, rpc.InvalidParams("tools[%d].description: is empty; describe %s for the model", i, t.Name)
		case json.Unmarshal(t.InputSchema, &shape) != nil || shape.Type != "object":
			return nil, rpc.InvalidParams("tools[%d].inputSchema: want a JSON Schema of type object", i)
		case len(t.InputSchema)+len(t.Description) > maxToolText:
			return nil, rpc.InvalidParams("tools[%d]: description and schema are longer than %d bytes", i, maxToolText)
		}
		kind := tools.Kind(t.Kind)
		if kind == "" {
			kind = tools.KindOther
		}
		names = append(names, t.Name)
		made = append(made, tools.Tool{ID: t.Name, Permission: t.Name, Kind: kind, ReadOnly: t.ReadOnly, Description: t.Description, Parameters: t.InputSchema, Run: m.tool(t.Name)})
	}
	m.editor.OfferTools(made)
	return &protocol.ToolRegisterResponse{Registered: names}, nil
}

// tool makes the function that runs a tool in the editor, after approval. It has no time limit; cancelling the turn
// cancels the request.
func (m *editorTools) tool(name string) func(context.Context, json.RawMessage, *tools.Call) (tools.Result, error) {
	return func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
		_, err := call.Ask(ctx, permission.Request{
			Permission: name, Patterns: []string{"*"}, Always: []string{"*"}, Added: true, Title: strings.TrimSpace(name + " " + inputSummary(input)),
			Why: "It is a tool of the editor (" + m.editor.Client().Name + "), not of Pillion.", Metadata: map[string]any{"input": input},
		})
		if err != nil {
			return tools.Result{}, err
		}
		// A sub-agent may call the tool: the editor knows the session of the person, from which the sub-agent was
		// started.
		_, session, ok := m.registry.First(call.SessionID)
		if !ok {
			return tools.Result{}, &tools.Error{Kind: "unavailable", Message: "The editor that has the tool " + name + " has closed this session."}
		}
		var r protocol.ToolExecuteResponse
		if err := m.editor.Call(ctx, protocol.MethodPillionToolExecute, &protocol.ToolExecuteRequest{SessionID: session, CallID: call.CallID, Name: name, Input: input}, &r); err != nil {
			if ctx.Err() != nil {
				return tools.Result{}, ctx.Err()
			}
			return tools.Result{}, &tools.Error{Kind: "editor", Message: fmt.Sprintf("The editor could not run %s: %v", name, err), Err: err}
		}
		// The editor's own words: it knows what went wrong.
		if r.IsError {
			return tools.Result{}, &tools.Error{Kind: "editor", Message: r.Output}
		}
		return tools.Result{Title: r.Title, Output: r.Output}, nil
	}
}

// inputSummary is a call's input for a title, at most 120 characters.
func inputSummary(input json.RawMessage) string {
	s := strings.TrimSpace(string(input))
	if s == "{}" {
		return ""
	}
	return textutil.Shorten(s, 120)
}
