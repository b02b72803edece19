package agent

import (
	"context"
	"encoding/json"

	"github.com/pillion-dev/pillion/tools"
)

// ToolBeside makes one call of a tool that no model is offered, through the same gate, hooks, cap and events as every
// other: an edit that a language server asks for. It does not wait for the end of a turn, because what asks may be what
// the turn waits for. A failed call is in ToolData; the error says that it could not be made.
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

// Notice tells the session's person something.
func (s *Session) Notice(level, text string) {
	s.Notify(NoticeData{Level: level, Text: text})
}

// Notify tells the session's person something that has more to it than a text.
func (s *Session) Notify(d NoticeData) {
	d.Text = s.mask(d.Text)
	s.emit(EventNotice, d)
}
