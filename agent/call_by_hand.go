package agent

import (
	"context"
	"encoding/json"

	"github.com/pillion-dev/pillion/tools"
)

// ToolBeside makes one call of a tool that no model is offered, through the same gate,
// hooks, output limit and events as every other: an edit that a language server asks for.
// It does not wait for the end of the turn, because the turn may be waiting for that
// server. A failed call is in ToolData; the error says that the call could not be made at
// all.
func (s *Session) ToolBeside(ctx context.Context, tool tools.Tool, input json.RawMessage) (data ToolData, err error) {
	err = s.Beside(ctx, func(ctx context.Context) error {
		c := &call{s: s, agent: s.Info().Agent, id: newID("call_"), offered: []tools.Tool{tool}, complete: true}
		c.data = ToolData{CallID: c.id}
		c.resolve(tool.ID)
		c.raw.Write(input)
		_ = c.run(ctx) // it is in the data
		data = c.snapshot()
		return nil
	})
	return data, err
}

// Notice shows the session's user one line; level is "info", "warning" or "error".
func (s *Session) Notice(level, text string) {
	s.Notify(NoticeData{Level: level, Text: text})
}

// Notify is Notice for a line with more data, such as a server that can be installed.
func (s *Session) Notify(d NoticeData) {
	d.Text = s.mask(d.Text)
	s.emit(EventNotice, d)
}
