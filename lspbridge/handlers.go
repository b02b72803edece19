package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"go.lsp.dev/protocol"
)

// failure returns what to show of a server's error message. A message that says that the server has loaded nothing of the project ends the
// waits for its diagnostics.
func (c *client) failure(message string) string {
	if c.spec.hooks.loadFailure == nil {
		return message
	}
	why := c.spec.hooks.loadFailure(message)
	if why == "" {
		return message
	}
	c.unloaded.Store(&why)
	c.changed.wake()
	return why
}

// handle answers the server's requests and notifications in the order in which they arrive: an edit must not be judged before the text to
// which it refers. Only applyEdit continues in the background, because it may wait for a person. Unknown requests get MethodNotFound, as
// the specification requires; unknown notifications are ignored.
func (c *client) handle(ctx context.Context, r *rpc.Request) (any, error) {
	switch r.Method {
	case protocol.MethodTextDocumentPublishDiagnostics:
		var p lsp.Publish
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		c.published(p)
		return nil, nil
	case protocol.MethodProgress:
		var p struct {
			Token json.RawMessage
			Value struct {
				Kind, Title, Message string
				Percentage           json.Number
			}
		}
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		// The percentage becomes part of the message, because only the message is shown.
		if v := p.Value; v.Percentage != "" {
			p.Value.Message = strings.TrimSpace(v.Message + " " + v.Percentage.String() + " %")
		}
		// Wake waiters only when work has begun or ended, not at each percent.
		if c.progress.update(string(p.Token), p.Value.Kind, p.Value.Title, p.Value.Message) {
			c.changed.wake()
		}
		return nil, nil
	case protocol.MethodWorkspaceConfiguration:
		var p struct{ Items []struct{ Section string } }
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, rpc.InvalidParams("%v", err)
		}
		out := make([]json.RawMessage, len(p.Items)) // LSP requires exactly one answer for each item
		for i, it := range p.Items {
			// noSettings is kept for the next run: a server may crash on the null that the specification requires; see slot.keepLessons.
			if out[i] = section(c.spec.Settings, it.Section); string(out[i]) == "null" {
				c.noSettings.Store(true)
				if c.objects {
					out[i] = json.RawMessage("{}")
				}
			}
		}
		b, err := json.Marshal(out)
		return json.RawMessage(b), err
	case protocol.MethodClientRegisterCapability, protocol.MethodClientUnregisterCapability:
		c.able.register(r.Params)
		c.changed.wake()
		return nil, nil
	case protocol.MethodWorkspaceWorkspaceFolders:
		// One run of a server has one folder, the one of initialize.
		b, err := json.Marshal([]map[string]any{{"uri": pathURI(c.root), "name": filepath.Base(c.root)}})
		return json.RawMessage(b), err
	case protocol.MethodWorkspaceApplyEdit:
		return c.applyEdit(ctx, r)
	case protocol.MethodWindowShowDocument:
		return json.RawMessage(`{"success":false}`), nil // only the editor opens windows
	case protocol.MethodWindowShowMessage, protocol.MethodWindowShowMessageRequest:
		var p struct {
			Type    lsp.Uint
			Message string
		}
		// A message that cannot be decoded is logged as empty.
		_ = json.Unmarshal(r.Params, &p)
		c.log.Info("server message", "server", c.spec.ID, "text", p.Message)
		// 1 is Error in LSP's MessageType; lesser messages are only logged.
		if p.Type == 1 && p.Message != "" {
			c.host.notice(c.spec.ID, c.failure(p.Message))
		}
		return nil, nil // null: the person chose no action
	case protocol.MethodWindowLogMessage:
		c.log.Debug("server log", "server", c.spec.ID, "params", string(r.Params))
		c.logFailure(r.Params)
		if c.spec.hooks.log != nil {
			var p struct{ Message string }
			_ = json.Unmarshal(r.Params, &p) // what cannot be decoded says nothing
			c.spec.hooks.log(c, p.Message)
		}
		return nil, nil
	case protocol.MethodLogTrace, "telemetry/event":
		c.log.Debug("server log", "server", c.spec.ID, "params", string(r.Params))
		return nil, nil
	// null accepts the token; after an error the server would report no progress.
	case protocol.MethodWindowWorkDoneProgressCreate:
		return nil, nil
	case protocol.MethodWorkspaceDiagnosticRefresh:
		// refreshed is true when the refresh is about something new, not an echo of what this client just sent.
		if c.ledger.refreshed(c.spec.Quirks.RefreshEcho) {
			c.background.plan()
		}
		c.changed.wake()
		return nil, nil
	case "vscode/content": // a schema from the network, which the person has not allowed; an empty schema accepts everything
		return "{}", nil
	case "_typescript.rename": // after an extraction: only an editor can ask the person for the new name
		return nil, nil
	}
	if c.spec.hooks.handle != nil {
		if answer, known := c.spec.hooks.handle(c, r.Method, r.Params); known {
			return answer, nil
		}
	}
	// Pillion shows no semantic tokens, code lenses or inlay hints, so there is nothing to request again.
	if strings.HasSuffix(r.Method, "/refresh") {
		return nil, nil
	}
	if r.IsCall {
		return nil, rpc.MethodNotFound(r.Method)
	}
	return nil, nil
}

// applyEdit answers workspace/applyEdit. During a command that Pillion runs, the edit goes to the command's caller, otherwise to the
// person.
func (c *client) applyEdit(ctx context.Context, r *rpc.Request) (any, error) {
	var p struct {
		Label string
		Edit  lsp.WorkspaceEdit
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, rpc.InvalidParams("%v", err)
	}
	// join must precede Async: after Async the answer to the command may be handled first, and the edit would no longer belong to the
	// command.
	run := c.commands.join()
	r.Async()
	var err error
	if run != nil {
		err = c.commands.applyFor(run, p.Label, p.Edit)
		run.leave()
	} else {
		err = c.host.apply(ctx, p.Label, p.Edit, c)
	}
	if err != nil {
		return map[string]any{"applied": false, "failureReason": err.Error()}, nil
	}
	return map[string]bool{"applied": true}, nil
}

// section returns a dotted section of the settings; null when there is none. "" returns all settings, always as an object: servers read
// members of it without checking.
func section(settings, name string) json.RawMessage {
	cur := json.RawMessage(settings)
	if name == "" {
		var whole map[string]json.RawMessage
		if json.Unmarshal(cur, &whole) == nil && whole[""] != nil {
			return whole[""] // eslint asks for a section without a name
		}
		if whole == nil {
			return json.RawMessage("{}")
		}
	} else {
		for part := range strings.SplitSeq(name, ".") {
			var m map[string]json.RawMessage
			if json.Unmarshal(cur, &m) != nil || m[part] == nil {
				return json.RawMessage("null")
			}
			cur = m[part]
		}
	}
	if len(cur) == 0 {
		return json.RawMessage("null")
	}
	return cur
}
