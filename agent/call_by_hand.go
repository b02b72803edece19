package agent

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// ToolBeside makes one call of a tool that is not offered to a model, such as an edit that a language server requests. It passes the same
// gate, hooks, output limit and events as any other call. It does not wait for the end of the turn, because the turn may be waiting for
// that server. A failed call is reported in ToolData; the error means that the call could not be made at all.
func (s *Session) ToolBeside(ctx context.Context, tool tools.Tool, input json.RawMessage) (data ToolData, err error) {
	err = s.Beside(ctx, func(ctx context.Context) error {
		c := &call{s: s, agent: s.Info().Agent, id: newID("call_"), offered: []tools.Tool{tool}, complete: true}
		c.data = ToolData{CallID: c.id}
		c.resolve(tool.ID)
		c.raw.set(input)
		rejected := rejectedWithoutMessage(c.run(ctx)) // any other error is in the data
		data = c.snapshot()
		data.Unexplained = rejected
		return nil
	})
	return data, err
}

// byHand implements Runner.Tool on the runner's goroutine. The call does not enter the history, because no model made it.
func (s *Session) byHand(ctx context.Context, name string, input json.RawMessage) (ToolData, error) {
	if err := s.makeTools(ctx); err != nil {
		return ToolData{}, err
	}
	c := &call{s: s, agent: s.Info().Agent, id: newID("call_"), offered: s.tools, complete: true}
	c.data = ToolData{CallID: c.id}
	c.find = func(name string) (tools.Tool, bool) { return s.rt.o.Toolbox.Find(s.Info(), name) }
	c.resolve(name)
	c.raw.set(input)
	_ = c.run(ctx) // it is in the data
	return c.snapshot(), nil
}

// FinishCall repeats, with tool, a call that was interrupted while its approval request was open. The call keeps its id, so its card shows
// the outcome, and it passes gate, hooks, output limit and events like any other. While it waits for the person it is not a job of the
// session, so that prompts can run; once a change is approved it becomes one, because only one job of a session may change files at a time.
func (s *Session) FinishCall(ctx context.Context, was ToolData, tool tools.Tool) ToolData {
	c := &call{s: s, agent: s.Info().Agent, id: was.CallID, message: was.MessageID, offered: []tools.Tool{tool}, complete: true}
	c.data = ToolData{CallID: was.CallID, MessageID: was.MessageID, Parent: was.Parent}
	c.resolve(tool.ID)
	if c.raw.set(was.Input); len(was.Input) == 0 {
		c.raw.add("{}")
	}
	g := &agreedGate{Gate: s.gate, s: s, over: make(chan struct{})}
	c.gate = g
	defer g.leave()
	_ = c.run(ctx) // it is in the data
	return c.snapshot()
}

// agreedGate turns the rest of a call into a job of the session as soon as a change is approved.
type agreedGate struct {
	*permission.Gate
	s    *Session
	over chan struct{} // closed at the end of the call

	mu   sync.Mutex
	done chan struct{} // guarded by mu: closed when the job has ended; nil: the job has not begun
}

// Ask asks the session's gate. When a change was approved, it returns only after the session's other jobs have ended.
func (g *agreedGate) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	reply, err := g.Gate.Ask(ctx, r)
	if err != nil || r.Change == nil {
		return reply, err
	}
	entered, done := make(chan struct{}), make(chan struct{})
	var failed error
	// The job lasts until the end of the call (over is closed). It must not end with ctx: the change is being written.
	go func() {
		defer close(done)
		failed = g.s.Beside(context.WithoutCancel(ctx), func(context.Context) error {
			close(entered)
			<-g.over
			return nil
		})
	}()
	g.mu.Lock()
	g.done = done // set before the wait, so that leave finds the job even if the call ends during it
	g.mu.Unlock()
	select {
	case <-entered:
		return reply, nil
	case <-done:
		return reply, failed // the session could not be written to
	}
}

// leave ends the job and waits until the session is free again, so that the next prompt sees the result of the call.
func (g *agreedGate) leave() {
	close(g.over)
	g.mu.Lock()
	done := g.done
	g.mu.Unlock()
	if done != nil {
		<-done
	}
}
