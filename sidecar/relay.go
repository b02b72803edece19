package main

import (
	"context"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// An editor without our additions that has terminals of its own (ACP's terminal capability) shows a running command
// in one of them. The command stays ours, with its sandbox and its end: what the editor runs is `pillion __terminal`,
// which prints what we send it through a named pipe that only this user can open. Whoever ends that ends the command.

// relayArg is the first argument of the program that prints in the editor's terminal.
const relayArg = "__terminal"

const (
	relayAfter  = 150 * time.Millisecond // commands that end sooner are shown as text alone
	relayAttach = 15 * time.Second       // how long the editor's program may take to come
	relayStuck  = 5 * time.Second        // how long it may read nothing
)

// relays are the commands that an editor's own terminals show.
type relays struct {
	mu    sync.Mutex
	known map[*run.Terminal]string // guarded by mu; the editor's terminal, "" while there is none
	off   bool                     // guarded by mu; the editor could not do it
}

// relay shows a running command in a terminal of the editor's, where that can be done. It does not wait.
func (s *Server) relay(es *editorSession, d agent.ToolData) {
	c := s.editor.Client()
	id, _ := d.Metadata["terminalId"].(string)
	if id == "" || s.o.Terminals == nil || !c.Caps.Terminal || c.Does(protocol.MethodPillionTerminalOutput) {
		return
	}
	ts := s.o.Terminals(es.ID())
	if ts == nil {
		return
	}
	t := ts.Get(id)
	s.relays.mu.Lock()
	defer s.relays.mu.Unlock()
	if _, have := s.relays.known[t]; have || t == nil || s.relays.off {
		return
	}
	if s.relays.known == nil {
		s.relays.known = map[*run.Terminal]string{}
	}
	s.relays.known[t] = ""
	go func() {
		defer func() {
			s.relays.mu.Lock()
			delete(s.relays.known, t)
			s.relays.mu.Unlock()
		}()
		select {
		case <-time.After(relayAfter):
		case <-t.Done():
			return
		case <-s.ctx.Done():
			return
		}
		s.relayTo(es, t, d)
	}()
}

// relayTo has the editor start a terminal for a command, and prints in it until the command ends.
func (s *Server) relayTo(es *editorSession, t *run.Terminal, d agent.ToolData) {
	pipe, err := newRelayPipe()
	if err != nil {
		return // the text shows what it says
	}
	defer pipe.remove()
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	defer context.AfterFunc(ctx, pipe.abandon)()
	go func() {
		select {
		case <-t.Done(): // the person may not have answered yet whether it may be opened
			stop()
		case <-ctx.Done():
		}
	}()
	program, args := pipe.command()
	var made protocol.CreateTerminalResponse
	err = s.editor.Call(ctx, protocol.MethodTerminalCreate, protocol.CreateTerminalRequest{SessionID: es.ID(), Command: program, Args: args, Cwd: t.Info().Dir}, &made)
	if err != nil {
		if ctx.Err() == nil {
			s.relays.mu.Lock()
			s.relays.off = true // it said no, or cannot: it is not asked at every command
			s.relays.mu.Unlock()
			s.log.Info("the editor opens no terminal", "err", err)
		}
		return
	}
	defer func() {
		pipe.remove() // nobody opens it any more, and the editor may take its time
		ctx, cancel := context.WithTimeout(s.ctx, editors.DataTimeout)
		defer cancel()
		_ = s.editor.Call(ctx, protocol.MethodTerminalRelease, protocol.ReleaseTerminalRequest{SessionID: es.ID(), TerminalID: made.TerminalID}, nil)
	}()
	out, err := pipe.attached(ctx, relayAttach)
	if err != nil {
		return
	}
	defer out.Close()
	s.relays.mu.Lock()
	s.relays.known[t] = made.TerminalID
	s.relays.mu.Unlock()
	if !t.Ended() {
		es.send("tool_call_update", &protocol.ToolCallUpdate{ToolCallID: d.CallID, Content: []protocol.ToolCallContent{terminalContent(made.TerminalID)}})
	}
	if printRelay(s.ctx, t, out) != nil && !t.Ended() && s.ctx.Err() == nil {
		t.Kill() // whoever closed the terminal meant the command
	}
}

// shownIn is the editor's terminal that shows a call's command.
func (s *Server) shownIn(es *editorSession, d agent.ToolData) (string, bool) {
	id, _ := d.Metadata["terminalId"].(string)
	if id == "" || s.o.Terminals == nil || !s.editor.Client().Caps.Terminal {
		return "", false
	}
	ts := s.o.Terminals(es.ID())
	if ts == nil {
		return "", false
	}
	s.relays.mu.Lock()
	defer s.relays.mu.Unlock()
	in := s.relays.known[ts.Get(id)]
	return in, in != ""
}

func terminalContent(id string) protocol.ToolCallContent {
	return protocol.ToolCallContent{Type: "terminal", Value: &protocol.Terminal{TerminalID: id}}
}
