package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// The time limits of an agent's process.
const (
	startLimit  = 2 * time.Minute  // until a session is open: npx downloads the agent the first time
	cancelLimit = 5 * time.Second  // until a cancelled prompt is answered; then the process is ended
	endLimit    = time.Second      // between the end of its input and the kill
	reapLimit   = 10 * time.Second // between a lost connection and the end of the process, whose last words explain it
)

// link is one running agent with one session in it.
type link struct {
	agents  *Agents
	agent   Agent
	info    agent.SessionInfo // when it was started
	place   *Process
	said    *guard.Tail
	program Program
	peer    *rpc.Peer
	once    sync.Once // ends it

	can    protocol.AgentCapabilities
	auth   []protocol.AuthMethod
	fresh  bool // a new conversation, which knows nothing of the session's messages
	memory memory

	prompting sync.Mutex // held while a prompt runs: an agent takes one at a time

	mu        sync.Mutex
	turn      *turn                // guarded by mu; nil between prompts
	terminals map[string]*terminal // guarded by mu
	lastID    int                  // guarded by mu; counts terminals
	offered   offered              // guarded by mu
}

// offered is what an agent says that a person can choose.
type offered struct {
	modes   []protocol.SessionMode
	options []protocol.SessionConfigOption
}

// start runs the agent's program and opens its conversation: the one that an earlier process had with this session where the agent can
// load it, else a new one.
func (x *Agents) start(ctx context.Context, a Agent, s agent.SessionInfo) (*link, error) {
	p, err := x.o.Place.Process(ctx, s, a)
	if err != nil {
		return nil, failure("%s cannot be started: %w", a.Name, err)
	}
	l := &link{agents: x, agent: a, info: s, place: p, said: &guard.Tail{}, terminals: map[string]*terminal{}}
	if l.program, err = p.Start(ctx, l.environ(), l.said); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, failure("%s is not installed: %s was not found on PATH", a.Name, a.Command[0])
		}
		return nil, failure("%s cannot be started: %w", a.Name, err)
	}
	l.peer = rpc.NewPeer(rpc.NewLineStream(l.program.Output(), l.program, rpc.StreamOptions{OnBad: func(err error) {
		x.o.Log.Debug("agent", "agent", a.ID, "bad", err)
	}}), rpc.PeerOptions{Handler: l.handle, Log: func(err error) { x.o.Log.Warn("agent", "agent", a.ID, "err", err) }})
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := l.open(ctx); err != nil {
		l.stop()
		return nil, l.why(err)
	}
	return l, nil
}

// environ is what its process gets besides the environment of all children: what is configured, and the keys that its own sign-in reads,
// which guard has taken out with all other keys.
func (l *link) environ() (env []string) {
	for _, name := range slices.Sorted(maps.Keys(l.agent.Env)) {
		env = append(env, name+"="+l.agent.Env[name])
	}
	for _, name := range l.agent.Keys {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// alive reports that the process runs and its connection is open.
func (l *link) alive() bool {
	select {
	case <-l.program.Exited():
		return false
	case <-l.peer.Done():
		return false
	default:
		return l.peer.Err() == nil
	}
}

// stop ends the process: its input is closed, and it is killed when it does not end by itself. It returns when the process has ended, and
// may be called more than once.
func (l *link) stop() {
	l.once.Do(func() {
		l.mu.Lock()
		all := l.terminals
		l.terminals = map[string]*terminal{}
		l.mu.Unlock()
		for _, t := range all {
			t.kill()
		}
		_ = l.program.Close()
		timer := time.NewTimer(endLimit)
		defer timer.Stop()
		select {
		case <-l.program.Exited():
		case <-timer.C:
			l.program.Kill()
		}
	})
	<-l.program.Exited()
	_ = l.peer.Close()
}

// why explains a failed request. Where the process has ended, how it ended and its last words say more than the lost connection.
func (l *link) why(err error) error {
	var known *provider.Error
	if errors.As(err, &known) {
		return known
	}
	var answered *jsonrpc2.Error
	if errors.As(err, &answered) {
		if int(answered.Code) == int(protocol.ErrorCodeAuthenticationRequired) {
			return failure("%s needs you to sign in: %s", l.agent.Name, l.signIn())
		}
		return failure("%s failed: %s", l.agent.Name, visible.Text(errorText(answered)))
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	// A connection that is lost is nearly always the end of the process; it is given a moment to be reaped.
	timer := time.NewTimer(reapLimit)
	defer timer.Stop()
	select {
	case <-l.program.Exited():
		how := "it ended"
		if err := l.program.Err(); err != nil {
			how = err.Error()
		}
		if last := l.said.Last(); last != "" {
			how += ": " + visible.Text(last)
		}
		return failure("%s stopped (%s); it is started again at the next prompt", l.agent.Name, how)
	case <-timer.C:
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return failure("%s did not answer within %s; try it in a terminal: %s", l.agent.Name, startLimit, strings.Join(l.agent.Command, " "))
	}
	return failure("%s failed: %w", l.agent.Name, err)
}

// errorText is the message of an error with its details, which agents put into data: the message alone is often "Internal error".
func errorText(e *jsonrpc2.Error) string {
	text := e.Message
	var data any
	if json.Unmarshal([]byte(e.Data), &data) != nil {
		return text
	}
	switch d := data.(type) {
	case string:
		text += ": " + d
	case map[string]any:
		for _, name := range []string{"details", "message", "error"} {
			if s, ok := d[name].(string); ok && s != "" && !strings.Contains(text, s) {
				return text + ": " + s
			}
		}
	}
	return text
}

// signIn says how a person signs in: with the maker's own program.
func (l *link) signIn() string {
	if l.agent.SignIn != "" {
		return "run " + l.agent.SignIn + " in a terminal, then prompt again"
	}
	var ways []string
	for _, m := range l.auth {
		raw, _ := json.Marshal(m)
		var v struct{ Name, Description string }
		if json.Unmarshal(raw, &v) == nil && v.Name != "" {
			ways = append(ways, strings.TrimSpace(v.Name+" "+v.Description))
		}
	}
	if len(ways) > 0 {
		return "it offers " + visible.Text(strings.Join(ways, "; "))
	}
	return "run " + l.agent.Command[0] + " in a terminal"
}

// open makes the handshake and opens the conversation.
func (l *link) open(ctx context.Context) error {
	request := protocol.InitializeRequest{ProtocolVersion: 1, ClientInfo: &protocol.Implementation{Name: "pillion", Title: "Pillion", Version: l.agents.o.Version},
		ClientCapabilities: &protocol.ClientCapabilities{Fs: &protocol.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true}}
	var hello protocol.InitializeResponse
	if err := l.call(ctx, "initialize", request, &hello); err != nil {
		return err
	}
	if hello.ProtocolVersion != 1 {
		return failure("%s speaks version %d of the Agent Client Protocol, and Pillion version 1; update the older of the two", l.agent.Name, hello.ProtocolVersion)
	}
	l.auth = hello.AuthMethods
	if hello.AgentCapabilities != nil {
		l.can = *hello.AgentCapabilities
	}
	servers := []any{} // the schema requires the list, also an empty one
	if l.agents.o.Servers != nil {
		servers = append(servers, l.agents.o.Servers(l.info)...)
	}
	if m := l.agents.remembered(l.info.ID, l.agent); m.Session != "" && m.Cwd == l.place.Cwd {
		if l.again(ctx, m, servers) {
			return nil
		}
	}
	var made protocol.NewSessionResponse
	if err := l.call(ctx, "session/new", map[string]any{"cwd": l.place.Cwd, "mcpServers": servers}, &made); err != nil {
		return err
	}
	l.fresh, l.memory = true, memory{Agent: l.agent.ID, Session: made.SessionID, Cwd: l.place.Cwd}
	l.note(made.Modes, made.ConfigOptions)
	return nil
}

// again continues a conversation of an earlier process. It reports false where the agent cannot: it does not keep conversations, or this one
// was removed.
func (l *link) again(ctx context.Context, m memory, servers []any) bool {
	l.memory = m // updates of the replay name this session; without a turn they are dropped
	var err error = errors.New("it does not keep conversations")
	switch {
	// resume does not replay the conversation, which nobody would read.
	case l.can.SessionCapabilities != nil && l.can.SessionCapabilities.Resume != nil:
		var back protocol.ResumeSessionResponse
		if err = l.call(ctx, "session/resume", map[string]any{"sessionId": m.Session, "cwd": m.Cwd, "mcpServers": servers}, &back); err == nil {
			l.note(back.Modes, back.ConfigOptions)
		}
	case l.can.LoadSession:
		var back protocol.LoadSessionResponse
		if err = l.call(ctx, "session/load", map[string]any{"sessionId": m.Session, "cwd": m.Cwd, "mcpServers": servers}, &back); err == nil {
			l.note(back.Modes, back.ConfigOptions)
		}
	}
	if err != nil {
		l.agents.o.Log.Info("an agent's conversation begins anew", "agent", l.agent.ID, "err", err)
		return false
	}
	return true
}

// call sends a request and decodes the answer leniently: a member that is wrong must not make an agent unusable.
func (l *link) call(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	if err := l.peer.Call(ctx, method, params, &raw); err != nil {
		return err
	}
	if err := protocol.Decode(raw, result); err != nil {
		return failure("%s answered %s in a way that cannot be read: %w", l.agent.Name, method, err)
	}
	return nil
}

// note keeps what the agent offers.
func (l *link) note(modes *protocol.SessionModeState, options []protocol.SessionConfigOption) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if modes != nil {
		l.offered.modes = modes.AvailableModes
	}
	if options != nil {
		l.offered.options = options
	}
}

// Try starts an agent in a session and says in a few lines what it is and offers.
func (x *Agents) Try(ctx context.Context, a Agent, s agent.SessionInfo) (string, error) {
	began := time.Now()
	l, err := x.link(ctx, a, s)
	if err != nil {
		return "", err
	}
	defer x.Forget(s.ID)
	var b strings.Builder
	fmt.Fprintf(&b, "%s answers (%s)\n", a.Name, time.Since(began).Round(10*time.Millisecond))
	where := "beside the project, which is read-only for it"
	if l.place.Held {
		where = "in a draft"
	}
	fmt.Fprintf(&b, "works:     %s\n", where)
	kept := "no: a new process is told in words what was said"
	if l.can.LoadSession || l.can.SessionCapabilities != nil && l.can.SessionCapabilities.Resume != nil {
		kept = "yes"
	}
	fmt.Fprintf(&b, "continues: %s\n", kept)
	l.mu.Lock()
	defer l.mu.Unlock()
	var modes []string
	for _, m := range l.offered.modes {
		modes = append(modes, visible.Text(m.Name))
	}
	if len(modes) > 0 {
		fmt.Fprintf(&b, "modes:     %s\n", strings.Join(modes, ", "))
	}
	for _, o := range l.offered.options {
		var names []string
		for _, v := range o.Options {
			names = append(names, visible.Text(v.Name))
		}
		fmt.Fprintf(&b, "%s: %s\n", visible.Text(o.Name), strings.Join(names, ", "))
	}
	return b.String(), nil
}
