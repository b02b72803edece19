package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/sidecar/slash"
)

// notification handles a notification at once, in the order of the wire: an edit of a buffer must not overtake the
// one before. Its error is never sent, since a notification has no answer.
func notification[P any](f func(P)) method {
	return func(_ context.Context, r *rpc.Request) (any, error) {
		p, err := decode[P](r)
		if err != nil {
			return nil, err
		}
		f(*p)
		return nil, nil
	}
}

// inSession answers a request about an open session in the background. id reads the session's id from the parameters.
// The session is looked up in the order of the wire, so a close that follows does not matter. The error for an
// unknown session comes after Async, as from any other request.
func inSession[P, R any](t *sessionTable, id func(*P) string, f func(context.Context, *editorSession, *P) (R, error)) method {
	return func(ctx context.Context, r *rpc.Request) (any, error) {
		p, err := decode[P](r)
		if err != nil {
			return nil, err
		}
		_, found := t.lookupWaiting(id(p))
		r.Async()
		es, err := found(ctx)
		if err != nil {
			return nil, err
		}
		return result(f(ctx, es, p))
	}
}

// sessionTools are the methods that use a session outside a turn.
type sessionTools struct{}

// toolCall runs a tool as the model would, with the same gate: changes need approval here as well.
func (m *sessionTools) toolCall(ctx context.Context, es *editorSession, p *protocol.ToolCallRequest) (*protocol.ToolCallResponse, error) {
	input := p.Input
	// Tools decode an object; one without parameters may be called without input.
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage("{}")
	}
	d, err := es.Session.Tool(ctx, p.Tool, input)
	if err != nil {
		return nil, err
	}
	out := &protocol.ToolCallResponse{Title: d.Title, Output: d.Output}
	if len(d.Metadata) > 0 {
		out.Metadata = rawJSON(d.Metadata)
	}
	// A failed tool is a result and no error of the request: the editor shows it like the model would read it.
	if d.Status == agent.ToolError {
		out.Error = &protocol.ToolCallError{Kind: d.ErrorKind, Message: d.Error}
	}
	return out, nil
}

// rename sets the title; the next prompt does not replace it.
func (m *sessionTools) rename(_ context.Context, es *editorSession, p *protocol.SessionRenameRequest) (*protocol.SessionRenameResponse, error) {
	if err := es.SetTitle(p.Title); err != nil {
		return nil, rpc.InvalidParams("title: %v", err)
	}
	return &protocol.SessionRenameResponse{}, nil
}

// export returns a session as Markdown, or as JSON lines of its events. It fails when the result would not fit into
// one message.
func (m *sessionTools) export(ctx context.Context, es *editorSession, p *protocol.SessionExportRequest) (*protocol.SessionExportResponse, error) {
	var b strings.Builder
	var add func(agent.Event) error
	hidden, err := es.Hidden(ctx)
	if err != nil {
		return nil, err
	}
	read := slash.Markdown(&b)
	switch p.Format {
	case "", "markdown":
		p.Format = "markdown"
		fmt.Fprintf(&b, "# %s\n\n%s, in %s\n", es.Info().Title, es.Info().Created.Format("2006-01-02 15:04"), es.Info().Cwd)
		add = func(e agent.Event) error {
			if hidden.Has(e) {
				return nil
			}
			return read(review.Hydrated(e, es.desk.Whole))
		}
	// The events that a restore has hidden are part of this format: it is the log, and not the conversation.
	case "json":
		add = func(e agent.Event) error {
			line, err := rpc.JSON.Marshal(review.Hydrated(e, es.desk.Whole))
			b.Write(line)
			b.WriteByte('\n')
			return err
		}
	default:
		return nil, rpc.InvalidParams("format: unknown format %q; known are markdown and json", p.Format)
	}
	err = es.Events(ctx, 0, func(e agent.Event) error {
		// The size is looked at before each event, so the last one may exceed the limit.
		if b.Len() > maxUpdate {
			return fmt.Errorf("the session is larger than %d bytes; export it with `pillion sessions export`", maxUpdate)
		}
		return add(e)
	})
	if err != nil {
		return nil, err
	}
	return &protocol.SessionExportResponse{Format: p.Format, Content: b.String()}, nil
}
