package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// The time limits of an agent's process.
const (
	startLimit  = 2 * time.Minute  // from the start until the session is open; npx may have to download the agent
	cancelLimit = 5 * time.Second  // for the answer to a cancelled prompt; after that the process is stopped
	endLimit    = time.Second      // between closing its standard input and the kill
	reapLimit   = 10 * time.Second // between a lost connection and the exit of the process, whose last line of standard error explains it
)

// link is one running agent process with one ACP session in it.
type link struct {
	agents  *Agents
	agent   Agent
	info    agent.SessionInfo // as it was when the process started
	place   *Process
	said    *guard.Tail // the end of its standard error
	program Program
	peer    *rpc.Peer
	once    sync.Once // for stop

	can    protocol.AgentCapabilities // from initialize; set by open
	auth   []protocol.AuthMethod      // from initialize; for signIn
	lent   http.Handler               // serves Pillion's tools to the agent; nil: it takes none
	fresh  bool                       // the agent's conversation is empty: it has seen none of the session's messages
	memory memory                     // written by open, then only with prompting held
	opened bool                       // the conversation is open; written by start, before others see the link

	prompting sync.Mutex // held while a prompt runs: ACP allows one at a time in a session

	mu        sync.Mutex
	bad       string               // guarded by mu; the first line of its standard output that is no message
	turn      *turn                // guarded by mu; nil between prompts
	terminals map[string]*terminal // guarded by mu
	lastID    int                  // guarded by mu; the number of the last terminal
}

// start runs the agent's program and opens its conversation: the stored one of an earlier process where the agent can continue it, else a
// new one.
func (x *Agents) start(ctx context.Context, a Agent, s agent.SessionInfo) (*link, error) {
	p, err := x.o.Place.Process(ctx, s, a)
	if err != nil {
		return nil, a.notStarted(err)
	}
	l := &link{agents: x, agent: a, info: s, place: p, said: &guard.Tail{}, terminals: map[string]*terminal{}}
	if l.program, err = p.Start(ctx, l.environ(), l.said); err != nil {
		return nil, a.notStarted(err)
	}
	l.peer = rpc.NewPeer(rpc.NewLineStream(l.program.Output(), l.program, rpc.StreamOptions{OnBad: func(err error) {
		x.o.Log.Debug("agent", "agent", a.ID, "bad", err)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.bad == "" {
			l.bad = err.Error()
		}
	}}), rpc.PeerOptions{Handler: l.handle, Log: func(err error) { x.o.Log.Warn("agent", "agent", a.ID, "err", err) }})
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := l.open(ctx); err != nil {
		l.stop()
		return nil, l.why(err)
	}
	l.opened = true
	return l, nil
}

// notStarted words why an agent's program could not be started, and what to do about it.
func (a Agent) notStarted(err error) error {
	program := a.Command[0]
	setting := "correct agents." + a.ID + ".acp in your settings"
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return failure("%s cannot be started: %s was not found on PATH; install it, or %s", a.Name, program, setting)
	case errors.Is(err, fs.ErrNotExist):
		return failure("%s cannot be started: %s does not exist; %s", a.Name, program, setting)
	case errors.Is(err, fs.ErrPermission):
		return failure("%s cannot be started: %s is not executable; run chmod +x %s, or %s", a.Name, program, program, setting)
	case errors.Is(err, syscall.EISDIR):
		return failure("%s cannot be started: %s is a folder; %s", a.Name, program, setting)
	}
	return failure("%s cannot be started: %w", a.Name, err)
}

// notAnAgent words that the program answered, but not as an agent does.
func (l *link) notAnAgent(how string) error {
	return failure("%s does not answer like an agent of the Agent Client Protocol (%s); some programs need an option for it, such as --acp. Its command is: %s", l.agent.Name, visible.Text(how), strings.Join(l.agent.Command, " "))
}

// environ returns what the process gets besides the environment of all children: the configured variables, and the keys that the agent
// signs in with, which guard has removed together with all other keys.
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

// alive reports whether the process runs and its connection is open.
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

// stop closes the process's standard input, and kills the process when it has not exited after endLimit. It returns when the process has
// exited, and may be called more than once.
func (l *link) stop() {
	l.once.Do(func() {
		l.agents.lend.end(l)
		l.mu.Lock()
		all := l.terminals
		l.terminals = map[string]*terminal{}
		l.mu.Unlock()
		for _, t := range all {
			t.kill(nil)
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

// why turns the error of a failed request into one for a person. Where the process has exited, its exit status and its last line of
// standard error say more than the lost connection.
func (l *link) why(err error) error {
	var known *provider.Error
	if errors.As(err, &known) {
		return known
	}
	var answered *jsonrpc2.Error
	if errors.As(err, &answered) {
		if int(answered.Code) == int(protocol.ErrorCodeAuthenticationRequired) {
			return failure("%s needs you to sign in: %s%s", l.agent.Name, l.signIn(), l.advice(errorText(answered)))
		}
		return failure("%s failed: %s%s", l.agent.Name, visible.Text(errorText(answered)), l.advice(errorText(answered)))
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	// Before the exit status: start has stopped the process by now.
	if errors.Is(err, context.DeadlineExceeded) {
		l.mu.Lock()
		wrote := l.bad
		l.mu.Unlock()
		if wrote != "" {
			wrote = " (" + visible.Text(wrote) + ")"
		}
		return failure("%s did not answer within %s%s; check that its command speaks the Agent Client Protocol on standard input and output, some programs need an option such as --acp: %s", l.agent.Name, startLimit, wrote, strings.Join(l.agent.Command, " "))
	}
	// A lost connection nearly always means that the process has exited; wait until it is reaped.
	timer := time.NewTimer(reapLimit)
	defer timer.Stop()
	select {
	case <-l.program.Exited():
		how := "it ended"
		if err := l.program.Err(); err != nil {
			how = err.Error()
		}
		if last := l.said.Reason(); last != "" {
			how += ": " + visible.Text(last)
		}
		if !l.opened {
			next := l.advice("")
			if next == "" {
				next = "; try its command in a terminal: " + strings.Join(l.agent.Command, " ")
			}
			return failure("%s stopped before it was ready (%s)%s", l.agent.Name, how, next)
		}
		return failure("%s stopped (%s); it is started again at the next prompt", l.agent.Name, how)
	case <-timer.C:
	}
	return failure("%s failed: %w", l.agent.Name, err)
}

// variable matches the name of an environment variable in a text, and unwritable how systems and Node word that a file cannot be made. Node
// says ENOENT for a folder on a file system that is read-only.
var (
	variable   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`) })
	unwritable = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\bE(?:NOENT|ROFS|ACCES|PERM)\b|read-only file system|permission denied|not permitted|no such file or directory`)
	})
)

// advice returns what a person can set so that a failed agent works, as the rest of a sentence; "" where nothing is known. text is its error.
// An agent that Pillion does not know fails for want of a key that it is not given, or because it cannot write its own state, and says only
// that.
func (l *link) advice(text string) string {
	text += "\n" + l.said.Reason()
	row := " to agents." + l.agent.ID + " in your settings"
	if folder := l.stateFolder(text); folder != "" {
		return `; it may not write there until its row names the folder: add "folders": [` + string(quoted(folder)) + "]" + row
	}
	methods, _ := json.Marshal(l.auth)
	given := append(guard.Environ(guard.Agent, l.agent.Command[0]), l.environ()...)
	for _, name := range variable().FindAllString(text+"\n"+string(methods), -1) {
		if os.Getenv(name) == "" || slices.ContainsFunc(given, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			continue
		}
		return "; " + name + ` is set, but an agent gets only the keys that its row names: add "keys": [` + string(quoted(name)) + "]" + row
	}
	return ""
}

// stateFolder returns the folder of an agent's own state that a text says it could not write, with ~/ for the home folder; "" where it names
// none. Only what is hidden in the home folder counts: the agent's other files there are a person's.
func (l *link) stateFolder(text string) string {
	home, err := os.UserHomeDir()
	if err != nil || !unwritable().MatchString(text) {
		return ""
	}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, home+string(filepath.Separator))
		if !found {
			return ""
		}
		rest = after
		path := after
		if end := strings.IndexAny(path, "'\"`: ,;)\n"); end >= 0 {
			path = path[:end]
		}
		full := filepath.Join(home, path)
		if !strings.HasPrefix(path, ".") || paths.Within(l.place.Cwd, full) || slices.ContainsFunc(l.agent.Folders, func(f string) bool { return paths.Within(f, full) }) {
			continue
		}
		parts := strings.Split(filepath.ToSlash(path), "/")
		deep := map[string]int{".config": 2, ".cache": 2, ".local": 3}[parts[0]] // those that programs share
		if deep = max(deep, 1); len(parts) < deep {
			continue
		}
		return "~/" + strings.Join(parts[:deep], "/")
	}
}

// errorText returns the message of an error with the details in its data member: the message alone is often "Internal error". JSON-RPC
// leaves the form of data open, so these are the forms that agents are known to use.
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

// signIn tells a person how to sign in: with the agent's SignIn command where one is known, else by the methods that the agent listed in
// its answer to initialize.
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
	return "use its own program for that, then prompt again; agents." + l.agent.ID + ".sign_in in your settings can name the command"
}

// open sends initialize, then continues the stored conversation or creates a new one.
func (l *link) open(ctx context.Context) error {
	// In a draft the agent's own reads see the draft, with what the person had not saved, and what it writes is reviewed at the end of the
	// turn. Agents handle their own errors better than a client's: Gemini CLI 0.61 could not create a file, because it did not see from the
	// error that there was none. A write through the client takes 3 ms more: a call of the draft's worker with the session's rules. An agent
	// with Asks has no other way to write.
	fs := &protocol.FileSystemCapabilities{ReadTextFile: !l.place.Held, WriteTextFile: !l.place.Held || l.agent.Asks}
	request := protocol.InitializeRequest{ProtocolVersion: 1, ClientInfo: &protocol.Implementation{Name: "pillion", Title: "Pillion", Version: l.agents.o.Version},
		ClientCapabilities: &protocol.ClientCapabilities{Fs: fs, Terminal: true}}
	var hello protocol.InitializeResponse
	if err := l.call(ctx, "initialize", request, &hello); err != nil {
		var known *provider.Error
		var answered *jsonrpc2.Error
		switch {
		case errors.As(err, &known):
			return l.notAnAgent(strings.TrimPrefix(known.Message, l.agent.Name+": "))
		case errors.As(err, &answered) && answered.Code == jsonrpc2.MethodNotFound:
			return l.notAnAgent("initialize: " + errorText(answered))
		}
		return err
	}
	if hello.ProtocolVersion != 1 {
		return failure("%s speaks version %d of the Agent Client Protocol, and Pillion version 1; update the older of the two", l.agent.Name, hello.ProtocolVersion)
	}
	l.auth = hello.AuthMethods
	if hello.AgentCapabilities != nil {
		l.can = *hello.AgentCapabilities
	}
	servers := []any{} // the ACP schema requires the list even when it is empty
	if own, err := l.agents.lend.serve(l); err != nil {
		l.agents.o.Log.Warn("lending tools to an agent", "agent", l.agent.ID, "err", err)
	} else if own != nil {
		servers = append(servers, own)
	}
	if m := l.agents.remembered(l.info.ID, l.agent); m.Session != "" && m.Cwd == l.place.Cwd {
		if l.again(ctx, m, servers) {
			l.restore(ctx)
			return nil
		}
	}
	var made protocol.NewSessionResponse
	if err := l.call(ctx, "session/new", l.session(map[string]any{}, servers), &made); err != nil {
		return err
	}
	l.fresh, l.memory = true, memory{Agent: l.agent.ID, Session: made.SessionID, Cwd: l.place.Cwd}
	l.noteOpened(made.Modes, made.ConfigOptions)
	l.begin(ctx)
	l.restore(ctx)
	return nil
}

// session adds to more what all requests for a session have.
func (l *link) session(more map[string]any, servers []any) map[string]any {
	more["cwd"], more["mcpServers"] = l.place.Cwd, servers
	if l.agent.Meta != nil {
		more["_meta"] = l.agent.Meta
	}
	return more
}

// again continues the conversation of an earlier process. It reports false where the agent cannot: it stores no conversations, or this one
// was removed.
func (l *link) again(ctx context.Context, m memory, servers []any) bool {
	l.memory = m // the replay of session/load arrives as updates of this session, which update drops because no turn runs
	var err error = errors.New("it does not keep conversations")
	switch {
	// session/resume is preferred: it does not replay the conversation, which the session already has.
	case l.can.SessionCapabilities != nil && l.can.SessionCapabilities.Resume != nil:
		var back protocol.ResumeSessionResponse
		if err = l.call(ctx, "session/resume", l.session(map[string]any{"sessionId": m.Session}, servers), &back); err == nil {
			l.noteOpened(back.Modes, back.ConfigOptions)
		}
	case l.can.LoadSession:
		var back protocol.LoadSessionResponse
		if err = l.call(ctx, "session/load", l.session(map[string]any{"sessionId": m.Session}, servers), &back); err == nil {
			l.noteOpened(back.Modes, back.ConfigOptions)
		}
	}
	if err != nil {
		l.agents.o.Log.Info("an agent's conversation begins anew", "agent", l.agent.ID, "err", err)
		return false
	}
	return true
}

// call sends a request and decodes the answer leniently: one wrong member must not make an agent unusable.
func (l *link) call(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	if err := l.peer.Call(ctx, method, params, &raw); err != nil {
		return err
	}
	if err := protocol.Decode(raw, result); err != nil {
		return failure("%s: the answer to %s cannot be read: %w", l.agent.Name, method, err)
	}
	return nil
}

// maxNamed is how many values of an option Try names: OpenCode offers 130 models.
const maxNamed = 10

// Try starts an agent in a session, opens its conversation, and returns a few lines for a terminal: how fast it answered, where it works,
// and what it offers. The process ends before Try returns.
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
	options, _ := x.Menu(s.ID, a)
	for _, o := range options {
		var names []string
		for _, v := range o.Options[:min(len(o.Options), maxNamed)] {
			names = append(names, visible.Text(v.Name))
		}
		if more := len(o.Options) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		fmt.Fprintf(&b, "%-10s %s\n", visible.Text(o.Name)+":", strings.Join(names, ", "))
	}
	return b.String(), nil
}
