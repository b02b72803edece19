package acp

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
// which prints what we send it through a named pipe that only this user can open. Closing the editor's terminal ends the
// command.

// RelayArg is the first argument of the program that prints in the editor's terminal.
const RelayArg = "__terminal"

// Times of a relay.
const (
	relayDelay         = 150 * time.Millisecond // commands that end sooner are shown as text only: a terminal would flash up
	relayAttachTimeout = 15 * time.Second       // how long the editor's program may take to open the pipe
	relayWriteTimeout  = 5 * time.Second        // how long it may stop reading before it is given up
)

// relays are the commands that the editor's own terminals show. After one refusal no further command of this
// connection is offered to the editor.
type relays struct {
	*conn
	source Terminals

	mu    sync.Mutex
	known map[*run.Terminal]string // guarded by mu; the editor's terminal, "" while there is none
	off   bool                     // guarded by mu; the editor could not do it
}

// show shows a running command in a terminal of the editor. It does not wait. It does nothing if the editor has no terminals, or if it
// supports Pillion's own terminals and so needs no relay.
func (x *relays) show(es *editorSession, d agent.ToolData) {
	c := x.editor.Client()
	id, _ := d.Metadata["terminalId"].(string)
	if id == "" || !c.Caps.Terminal || c.Does(protocol.MethodPillionTerminalOutput) {
		return
	}
	ts := x.source.Terminals(es.ID())
	if ts == nil {
		return
	}
	t := ts.Get(id)
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, have := x.known[t]; have || t == nil || x.off {
		return
	}
	if x.known == nil {
		x.known = map[*run.Terminal]string{}
	}
	// Noted before the goroutine starts, since the next event of the call comes at once.
	x.known[t] = ""
	go func() {
		defer func() {
			x.mu.Lock()
			delete(x.known, t)
			x.mu.Unlock()
		}()
		select {
		case <-time.After(relayDelay):
		case <-t.Done():
			return
		case <-x.ctx.Done():
			return
		}
		x.showIn(es, t, d)
	}()
}

// showIn has the editor start a terminal for a command, and prints the output in it until the command ends.
func (x *relays) showIn(es *editorSession, t *run.Terminal, d agent.ToolData) {
	pipe, err := newRelayPipe()
	if err != nil {
		return // the output is still shown as text
	}
	defer pipe.remove()
	ctx, stop := context.WithCancel(x.ctx)
	defer stop()
	defer context.AfterFunc(ctx, pipe.releaseWaiter)()
	go func() {
		select {
		case <-t.Done(): // the command may end before the editor has asked its user whether the terminal may be opened
			stop()
		case <-ctx.Done():
		}
	}()
	program, args := pipe.command()
	var made protocol.CreateTerminalResponse
	err = x.editor.Call(ctx, protocol.MethodTerminalCreate, protocol.CreateTerminalRequest{SessionID: es.ID(), Command: program, Args: args, Cwd: t.Info().Dir}, &made)
	if err != nil {
		if ctx.Err() == nil {
			x.mu.Lock()
			x.off = true // refused or impossible: do not ask again for every command
			x.mu.Unlock()
			x.log.Info("the editor opens no terminal", "err", err)
		}
		return
	}
	defer func() {
		pipe.remove() // before the request, which the editor may answer late
		ctx, cancel := context.WithTimeout(x.ctx, editors.DataTimeout)
		defer cancel()
		_ = x.editor.Call(ctx, protocol.MethodTerminalRelease, protocol.ReleaseTerminalRequest{SessionID: es.ID(), TerminalID: made.TerminalID}, nil)
	}()
	// The editor answers when it has the terminal; the program in it opens the pipe later, or never.
	out, err := pipe.attached(ctx, relayAttachTimeout)
	if err != nil {
		return
	}
	defer out.Close()
	x.mu.Lock()
	x.known[t] = made.TerminalID
	x.mu.Unlock()
	// A card that has its result already must not get an empty terminal in place of it.
	if !t.Ended() {
		es.send("tool_call_update", &protocol.ToolCallUpdate{ToolCallID: d.CallID, Content: []protocol.ToolCallContent{terminalContent(made.TerminalID)}})
	}
	if printRelay(x.ctx, t, out) != nil && !t.Ended() && x.ctx.Err() == nil {
		t.Kill() // the person has closed the terminal, and means the command
	}
}

// shownIn is the id of the editor's terminal that shows a call's command; ok is false when none does.
func (x *relays) shownIn(es *editorSession, d agent.ToolData) (string, bool) {
	id, _ := d.Metadata["terminalId"].(string)
	if id == "" || !x.editor.Client().Caps.Terminal {
		return "", false
	}
	ts := x.source.Terminals(es.ID())
	if ts == nil {
		return "", false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	in := x.known[ts.Get(id)]
	return in, in != ""
}

// terminalContent embeds a terminal of the editor in a tool call's card.
func terminalContent(id string) protocol.ToolCallContent {
	return protocol.ToolCallContent{Type: "terminal", Value: &protocol.Terminal{TerminalID: id}}
}
