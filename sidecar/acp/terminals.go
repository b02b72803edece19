package acp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// Terminals finds the terminals of sessions. Package main implements it with the app.
type Terminals interface {
	// Terminals are a session's; nil once it has ended.
	Terminals(session string) *run.Terminals
}

// terminals answer _pillion/terminal/*.
type terminals struct {
	*conn
	sessions *sessionTable
	source   Terminals
	followed followedTerminals // those that the editor follows
}

// followedTerminals are the terminals whose output this editor gets.
type followedTerminals struct {
	mu    sync.Mutex
	pumps map[*run.Terminal]*pump  // guarded by mu
	typed map[string]chan struct{} // by terminal: closed when what was typed last has been; guarded by mu
}

// pump sends one terminal's output to the editor, at the pace of the editor. Each has a goroutine, which ends with
// the terminal, the subscription or the connection.
type pump struct {
	stop context.CancelFunc
	done chan struct{}
	at   int64 // bytes sent so far; read after done
}

// Pace of a terminal: output within one interval is sent together, so that a flood of it does not fill the
// connection.
const (
	outputInterval = 15 * time.Millisecond
	inputTimeout   = 5 * time.Second // how long a program may take to read what was typed
)

// terminalInfo describes a terminal for the wire; seq counts bytes of output. A command ends with a code or by a
// signal, so one of the two is missing.
func terminalInfo(t *run.Terminal) protocol.TerminalInfo {
	i := t.Info()
	seq := t.Printed()
	out := protocol.TerminalInfo{TerminalID: t.ID(), Title: i.Title, Command: i.Command, Cwd: i.Dir, ToolCallID: i.Call, State: "running", Seq: &seq}
	if i.Cols > 0 {
		cols, rows := int64(i.Cols), int64(i.Rows)
		out.Columns, out.Rows = &cols, &rows
	}
	if t.Ended() {
		out.State = "exited"
		code, signal := t.Exit()
		if out.Signal = signal; code >= 0 {
			n := int64(code)
			out.ExitCode = &n
		}
	}
	return out
}

// terminal finds a terminal of a session, else NotFound.
func (m *terminals) terminal(es *editorSession, id string) (*run.Terminal, error) {
	if ts := m.source.Terminals(es.ID()); ts != nil {
		if t := ts.Get(id); t != nil {
			return t, nil
		}
	}
	return nil, protocol.NotFound("no terminal %q in this session; _pillion/terminal/list shows them", id)
}

// terminalList lists a session's terminals.
func (m *terminals) terminalList(_ context.Context, es *editorSession, _ *protocol.TerminalListRequest) (*protocol.TerminalListResponse, error) {
	out := &protocol.TerminalListResponse{Terminals: []protocol.TerminalInfo{}}
	if ts := m.source.Terminals(es.ID()); ts != nil {
		for _, t := range ts.List() {
			out.Terminals = append(out.Terminals, terminalInfo(t))
		}
	}
	return out, nil
}

// terminalCreate starts a terminal for the person. It is their own shell: no approval, no sandbox. A relative cwd is
// relative to the session's folder.
func (m *terminals) terminalCreate(_ context.Context, es *editorSession, p *protocol.TerminalCreateRequest) (*protocol.TerminalCreateResponse, error) {
	dir := p.Cwd
	if dir == "" {
		dir = es.Info().Cwd
	} else if !filepath.IsAbs(dir) {
		dir = filepath.Join(es.Info().Cwd, dir)
	}
	c := run.TerminalCommand{Text: p.Command, Dir: filepath.Clean(dir), Title: p.Title, Env: ownEnviron(os.Environ()), Rows: dimension(p.Rows), Cols: dimension(p.Columns)}
	if p.Command == "" {
		c.Shell = os.Getenv("SHELL") // the person's, whatever its grammar
		if _, err := os.Stat(c.Shell); err != nil {
			c.Shell = ""
		}
	}
	ts := m.source.Terminals(es.ID())
	if ts == nil {
		return nil, protocol.NotFound("the session has ended; no terminal can be started in it")
	}
	t, err := ts.Start(c)
	if err != nil {
		return nil, err
	}
	return &protocol.TerminalCreateResponse{Terminal: terminalInfo(t)}, nil
}

// dimension is a number of rows or columns, limited to what ttys accept; 0 means unknown.
func dimension(n *int64) int {
	if n == nil {
		return 0
	}
	// The kernel keeps both in 16 bits (struct winsize, ioctl_tty(2)).
	return int(min(max(*n, 0), 1<<14))
}

// ownEnviron is the environment of a person's terminal: everything except what describes this process. PILLION_JOB
// marks children that end with this process; TERM is that of the terminal to be made.
func ownEnviron(env []string) []string {
	out := make([]string, 0, len(env))
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if name != "PILLION_JOB" && name != "PWD" && name != "OLDPWD" && name != "TERM" {
			out = append(out, e)
		}
	}
	return out
}

// terminalSubscribe answers with the output that is kept, and sends later output as notifications. All subscriptions
// of a terminal share one stream, so bytes may arrive twice after another subscription; seq tells which. Seq in the
// answer is that of the first byte of Data; it is greater than the one asked for where the terminal has dropped older
// output.
func (m *terminals) terminalSubscribe(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.TerminalSubscribeRequest](r)
	if err != nil {
		return nil, err
	}
	r.Async()
	es, err := m.sessions.find(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := m.terminal(es, p.TerminalID)
	if err != nil {
		return nil, err
	}
	from := int64(0)
	if p.Seq != nil {
		from = *p.Seq
	}
	if from < 0 || from > t.Printed() {
		return nil, rpc.InvalidParams("seq: %d is not between 0 and %d, which is what was printed", from, t.Printed())
	}
	// The stream starts again at the older of the two ends: what another subscription has not been sent yet must not
	// be skipped.
	at, followed := m.followed.stopFollowing(t)
	data, next := t.Kept(from)
	// Without an earlier stream this one begins where the answer ends.
	if !followed {
		at = next
	}
	c := m.editor.Client()
	if c.Does(protocol.MethodPillionTerminalOutput) || c.Does(protocol.MethodPillionTerminalExited) {
		m.wire.afterAnswer(r, func() { m.follow(es.ID(), t, min(at, next)) })
	}
	return &protocol.TerminalSubscribeResponse{Data: base64.StdEncoding.EncodeToString(data), Seq: next - int64(len(data)), Terminal: terminalInfo(t)}, nil
}

// stopFollowing stops sending a terminal's output, and says how many bytes were sent; was is false when it was not
// followed. It waits for the pump, so that nothing is sent after it.
func (x *followedTerminals) stopFollowing(t *run.Terminal) (at int64, was bool) {
	x.mu.Lock()
	p := x.pumps[t]
	delete(x.pumps, t)
	x.mu.Unlock()
	if p == nil {
		return 0, false
	}
	p.stop()
	<-p.done
	return p.at, true
}

// follow sends a terminal's output from a byte on. It returns at once: it is called when an answer is queued.
func (m *terminals) follow(session string, t *run.Terminal, at int64) {
	ctx, stop := context.WithCancel(m.ctx)
	p := &pump{stop: stop, done: make(chan struct{}), at: at}
	m.followed.mu.Lock()
	if m.followed.pumps == nil {
		m.followed.pumps = map[*run.Terminal]*pump{}
	}
	if other := m.followed.pumps[t]; other != nil { // two subscriptions at the same time: the later one serves both
		other.stop()
	}
	m.followed.pumps[t] = p
	m.followed.mu.Unlock()
	go func() {
		defer close(p.done)
		defer stop()
		m.pump(ctx, session, t, p)
		m.followed.mu.Lock()
		defer m.followed.mu.Unlock()
		if m.followed.pumps[t] == p {
			delete(m.followed.pumps, t)
		}
	}()
}

// pump sends output until the terminal, the subscription or the connection ends. The last output and the exit are
// sent in this order, by this goroutine.
func (m *terminals) pump(ctx context.Context, session string, t *run.Terminal, p *pump) {
	c := m.editor.Client()
	for {
		data, next, _, err := t.Read(ctx, p.at)
		if err != nil {
			if ctx.Err() == nil && c.Does(protocol.MethodPillionTerminalExited) {
				_ = m.wire.peer.Notify(ctx, protocol.MethodPillionTerminalExited, protocol.TerminalExited{SessionID: session, Terminal: terminalInfo(t)})
			}
			return
		}
		if c.Does(protocol.MethodPillionTerminalOutput) {
			err = m.wire.peer.Notify(ctx, protocol.MethodPillionTerminalOutput, protocol.TerminalOutput{
				SessionID: session, TerminalID: t.ID(), Data: base64.StdEncoding.EncodeToString(data), Seq: next - int64(len(data))})
			if err != nil {
				return
			}
		}
		p.at = next
		if m.wire.out.Flush(ctx) != nil { // wait for the editor; what it cannot keep up with is dropped by the terminal's buffer, and takes no memory here
			return
		}
		select {
		case <-time.After(outputInterval):
		case <-t.Done():
		case <-ctx.Done():
			return
		}
	}
}

// inputTurn gives a place in the order of what is typed into one terminal: each key may be a request of its own.
func (x *followedTerminals) inputTurn(terminal string) (before <-chan struct{}, done func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.typed == nil {
		x.typed = map[string]chan struct{}{}
	}
	last := x.typed[terminal]
	if last == nil {
		last = closedChan()
	}
	mine := make(chan struct{})
	x.typed[terminal] = mine
	return last, func() {
		close(mine)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.typed[terminal] == mine {
			delete(x.typed, terminal)
		}
	}
}

// terminalInput types into a terminal. It fails when the program reads nothing for inputTimeout.
func (m *terminals) terminalInput(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.TerminalInputRequest](r)
	if err != nil {
		return nil, err
	}
	// The place is taken before Async, while messages are handled in the order of the wire.
	before, done := m.followed.inputTurn(p.SessionID + " " + p.TerminalID)
	defer done()
	r.Async()
	select {
	case <-before:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	es, err := m.sessions.find(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := m.terminal(es, p.TerminalID)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil {
		return nil, rpc.InvalidParams("data: not base64: %v", err)
	}
	// The buffer of a terminal is small; a write to it blocks while its program does not read.
	limited, cancel := context.WithTimeout(ctx, inputTimeout)
	defer cancel()
	err = t.Input(limited, data)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("%s: its program does not read its input; wait, or kill the terminal", t.ID())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.ID(), err)
	}
	return &protocol.TerminalInputResponse{}, nil
}

// terminalResize sets the size of a terminal in characters.
func (m *terminals) terminalResize(_ context.Context, es *editorSession, p *protocol.TerminalResizeRequest) (*protocol.TerminalResizeResponse, error) {
	t, err := m.terminal(es, p.TerminalID)
	if err != nil {
		return nil, err
	}
	if p.Columns < 1 || p.Rows < 1 {
		return nil, rpc.InvalidParams("columns, rows: %d by %d is not a size", p.Columns, p.Rows)
	}
	if err := t.Resize(dimension(&p.Rows), dimension(&p.Columns)); err != nil {
		return nil, fmt.Errorf("%s: %w", t.ID(), err)
	}
	return &protocol.TerminalResizeResponse{}, nil
}

// terminalKill ends a terminal's program; with release the terminal is forgotten as well.
func (m *terminals) terminalKill(_ context.Context, es *editorSession, p *protocol.TerminalKillRequest) (*protocol.TerminalKillResponse, error) {
	t, err := m.terminal(es, p.TerminalID)
	if err != nil {
		return nil, err
	}
	t.Kill()
	if p.Release {
		m.source.Terminals(es.ID()).Release(t.ID())
	}
	return &protocol.TerminalKillResponse{Terminal: terminalInfo(t)}, nil
}
