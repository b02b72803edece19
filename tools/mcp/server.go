package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
)

// A server that ends is started again, later and later; after maxFailures within failureSpan it stays off.
const (
	maxFailures = 5
	failureSpan = 10 * time.Minute
	firstPause  = 500 * time.Millisecond
	maxListed   = 1000 // tools or prompts of one server that are read; a server could page without end
)

// server is one server's life: connected, lost, connected again. Lock order: reading before mu. Nothing
// is sent to the server while mu is held. A caller that waits for came takes the channel under mu and waits without the
// lock, because dropSession replaces it.
type server struct {
	Server
	set   *Set
	tried chan struct{} // closed when the first attempt has ended
	once  sync.Once

	reading sync.Mutex // held while the lists are read; never taken with mu held

	mu      sync.Mutex
	session *sdk.ClientSession      // guarded by mu; nil: not connected
	came    chan struct{}           // guarded by mu; closed when session is there again
	state   State                   // guarded by mu
	reason  string                  // guarded by mu; why the state is what it is, for the person
	tools   []*sdk.Tool             // guarded by mu; they stay while the server is started again
	caps    *sdk.ServerCapabilities // guarded by mu; as tools
	prompts []*sdk.Prompt           // guarded by mu

	calls  calls
	known  knownResources
	signIn *signInFile
}

// newServer makes a server that is not started.
func newServer(s *Set, c Server) *server {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	v := &server{Server: c, set: s, signIn: &signInFile{server: c.Name, url: c.URL, dir: s.o.StateDir, log: s.o.Log}, tried: make(chan struct{}), came: make(chan struct{}), state: Starting}
	v.known.read = func() ([]Resource, error) { return v.resources(s.ctx) }
	v.known.failed = func(err error) { s.o.Log.Debug("mcp: resources", "server", c.Name, "err", err) }
	return v
}

// live keeps the server connected until ctx ends. It gives up, and the server is Off or wants SignIn, when trying again
// cannot help: five failures in ten minutes, a program that does not exist, a missing sign-in. It is the only goroutine
// that connects for calls, so a server has at most one such connection.
func (v *server) live(ctx context.Context) {
	var failures []time.Time
	defer v.markTried()
	for ctx.Err() == nil {
		began := time.Now()
		err := v.serve(ctx)
		v.dropSession(nil)
		if ctx.Err() != nil {
			return
		}
		var signIn *signInError
		if errors.As(err, &signIn) {
			v.setState(SignIn, err.Error())
			v.set.changed() // its tools are gone
			v.set.notice("warning", fmt.Sprintf("The MCP server %s wants you to sign in: pillion mcp login %s", v.Name, v.Name))
			return
		}
		if errors.Is(err, sdk.ErrSessionMissing) && time.Since(began) > firstPause {
			continue // a remote server forgot the session: a new one is no failure
		}
		// A connection that lasted long was a good one; what failed before it does not count.
		if time.Since(began) > failureSpan {
			failures = nil
		}
		failures = append(failures, time.Now())
		failures = slices.DeleteFunc(failures, func(t time.Time) bool { return time.Since(t) > failureSpan })
		if n := len(failures); n >= maxFailures || errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			v.setState(Off, err.Error())
			v.set.changed()
			v.set.notice("warning", fmt.Sprintf("The MCP server %s is off: %v. Its tools are missing; pillion mcp test %s shows more.", v.Name, err, v.Name))
			return
		}
		v.setState(Failed, err.Error())
		if len(failures) == 1 {
			v.set.notice("warning", fmt.Sprintf("The MCP server %s failed: %v. It is tried again.", v.Name, err))
		}
		v.markTried()
		select {
		// The pauses are 0.5, 1, 2 and 4 seconds; the fifth failure is the last.
		case <-time.After(firstPause << (len(failures) - 1)):
		case <-ctx.Done():
		}
	}
}

// markTried records that the first attempt to connect has ended, with or without success: Ready and Await stop waiting.
func (v *server) markTried() { v.once.Do(func() { close(v.tried) }) }

// serve connects and stays until the connection ends; the error says why. The connection counts as ready only after its
// lists were read, so Tools never sees a server without its tools.
func (v *server) serve(ctx context.Context) error {
	v.setState(Starting, "")
	ctx, cancel := context.WithCancelCause(ctx) // lives as long as the connection: some transports stream on it
	defer cancel(nil)
	reached := time.AfterFunc(connectMax, func() { cancel(fmt.Errorf("no answer to initialize within %s", connectMax)) })
	session, tr, err := v.connect(ctx)
	if err == nil {
		defer session.Close()
		err = v.read(ctx, session)
	}
	if !reached.Stop() && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return tr.explain(err)
	}
	v.mu.Lock()
	v.session, v.caps, v.state, v.reason = session, session.InitializeResult().Capabilities, Ready, ""
	close(v.came)
	v.mu.Unlock()
	v.set.changed()
	v.markTried()
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = session.Close()
		<-ended
		return ctx.Err()
	}
	if err == nil {
		err = errors.New("it closed the connection")
	}
	return tr.explain(err)
}

// read reads the server's lists of tools and prompts. Readings do not overlap: of two that did, the older answer could be
// stored last. An error in either list leaves both as they were: serve then fails the connection, reread goes on with the
// old ones.
func (v *server) read(ctx context.Context, session *sdk.ClientSession) error {
	v.reading.Lock()
	defer v.reading.Unlock()
	var listed []*sdk.Tool
	named := map[string]bool{} // a page that comes again, or a name twice, is one tool
	var prompts []*sdk.Prompt
	caps := session.InitializeResult().Capabilities
	if caps == nil {
		caps = &sdk.ServerCapabilities{}
	}
	if caps.Tools != nil {
		again := 0
		for t, err := range session.Tools(ctx, nil) {
			if err != nil {
				return fmt.Errorf("tools/list: %w", err)
			}
			if named[t.Name] {
				// A server whose pages repeat would otherwise be read for ever.
				if again++; again == maxListed {
					break
				}
				continue
			}
			named[t.Name] = true
			if listed = append(listed, t); len(listed) == maxListed {
				break
			}
		}
	}
	if caps.Prompts != nil {
		for p, err := range session.Prompts(ctx, nil) {
			if err != nil {
				return fmt.Errorf("prompts/list: %w", err)
			}
			if prompts = append(prompts, p); len(prompts) == maxListed {
				break
			}
		}
	}
	v.mu.Lock()
	v.tools, v.prompts = listed, prompts
	v.mu.Unlock()
	return nil
}

// reread reads the lists again after the server said that they changed. If that fails the old ones stay. It must not run
// on the connection's reader, see client.
func (v *server) reread(ctx context.Context, session *sdk.ClientSession) {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	if err := v.read(ctx, session); err != nil {
		v.set.o.Log.Warn("mcp: lists", "server", v.Name, "err", err)
		return
	}
	v.set.changed()
}

// dropSession records that a connection is gone; nil means the present one. A later connection is left alone: two calls may
// notice the same loss, one of them after the reconnect.
func (v *server) dropSession(which *sdk.ClientSession) {
	v.mu.Lock()
	had := v.session != nil && (which == nil || which == v.session)
	if had {
		v.session, v.came = nil, make(chan struct{})
	}
	v.mu.Unlock()
	if had {
		v.known.expire()
		v.set.changed()
	}
}

// setState sets the state and the reason that people see. It calls nobody; live tells the person where that is due.
func (v *server) setState(s State, reason string) {
	v.mu.Lock()
	v.state, v.reason = s, reason
	v.mu.Unlock()
}

// connected returns the connection and waits for it at most five seconds: a server that has just crashed may be back in a
// moment. The error is a *tools.Error that tells the model to go on without the server, or the context's. Off and SignIn
// are told at once, since waiting cannot change them.
func (v *server) connected(ctx context.Context) (*sdk.ClientSession, error) {
	v.mu.Lock()
	session, came, state, reason := v.session, v.came, v.state, v.reason
	v.mu.Unlock()
	if session != nil {
		return session, nil
	}
	if state != Off && state != SignIn {
		select {
		case <-came:
			return v.connected(ctx)
		case <-time.After(startWait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		v.mu.Lock()
		state, reason = v.state, v.reason
		v.mu.Unlock()
	}
	if reason != "" {
		reason = ": " + reason
	}
	return nil, &tools.Error{Kind: "unavailable", Message: fmt.Sprintf("The MCP server %s is not there (%s%s). Go on without it, or tell the user.", v.Name, state, reason)}
}

// listing returns the tools of a server and what it can do. After a crash it still returns them: the server is being
// restarted, a call waits for it, and tools that come and go would cost the model's prompt cache. The slice is shared.
func (v *server) listing() ([]*sdk.Tool, *sdk.ServerCapabilities) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.session == nil && (v.state == Off || v.state == SignIn) {
		return nil, nil
	}
	return v.tools, v.caps
}

// maxInstructions bounds what a server may say in the system prompt, in bytes.
const maxInstructions = 2 << 10

// instructions are the server's own words for the system prompt, at most 2 KiB; "" while it is not connected.
func (v *server) instructions() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.session == nil {
		return ""
	}
	return tools.Cut(strings.TrimSpace(v.session.InitializeResult().Instructions), maxInstructions)
}

// status is the server as a person sees it.
func (v *server) status() Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := Status{Name: v.Name, State: v.state, Reason: v.reason}
	if v.session != nil {
		r := v.session.InitializeResult()
		if r.ServerInfo != nil {
			out.Title = strings.TrimSpace(cmp.Or(r.ServerInfo.Title, r.ServerInfo.Name) + " " + r.ServerInfo.Version)
		}
		out.Tools, out.Prompts = len(v.tools), len(v.prompts)
		out.Resources = r.Capabilities != nil && r.Capabilities.Resources != nil
	}
	return out
}
