package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
)

// Limits of restarts and lists. A server that ends is restarted, but not after maxFailures within failureSpan.
const (
	maxFailures = 5
	failureSpan = 10 * time.Minute
	firstPause  = 500 * time.Millisecond // pause before the first restart; each further one is twice as long
	maxListed   = 1000                   // tools or prompts read from one server, which could send endless pages
)

// server is one MCP server with its connection, which may be lost and made again. Lock order: reading before mu. Nothing is sent to the
// server while mu is held. To wait for a connection, read came under mu and wait without the lock: dropSession replaces the channel.
type server struct {
	Server
	set   *Set
	tried chan struct{} // closed when the first attempt to connect has ended
	once  sync.Once     // guards the closing of tried

	reading sync.Mutex // held while the lists are read; never taken with mu held

	mu      sync.Mutex
	session *sdk.ClientSession      // guarded by mu; nil: not connected
	came    chan struct{}           // guarded by mu; closed when session is set; a new one after the loss
	state   State                   // guarded by mu
	reason  string                  // guarded by mu; the reason for the state, for the person
	tools   []*sdk.Tool             // guarded by mu; kept while the server is restarted, see listing
	caps    *sdk.ServerCapabilities // guarded by mu; kept like tools
	prompts []*sdk.Prompt           // guarded by mu

	calls  calls
	long   *longTexts
	known  knownResources
	signIn *signInFile
}

// newServer makes a server that is not started.
func newServer(s *Set, c Server) *server {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	v := &server{Server: c, set: s, signIn: &signInFile{server: c.Name, url: c.URL, dir: s.o.StateDir, log: s.o.Log}, tried: make(chan struct{}), came: make(chan struct{}), state: Starting}
	v.long = &longTexts{}
	if s.o.StateDir != "" {
		v.long.dir = filepath.Join(s.o.StateDir, "tool-output")
	}
	// Use the set's context: a listing continues after the request that started it.
	v.known.read = func() ([]Resource, error) { return v.resources(s.ctx) }
	v.known.failed = func(err error) { s.o.Log.Debug("mcp: resources", "server", c.Name, "err", err) }
	return v
}

// live keeps the server connected until ctx ends. It gives up, with state Off or SignIn, when a retry cannot help: after maxFailures within
// failureSpan, if the program does not exist, or without a sign-in. Only this goroutine connects for calls, so a server has at most one
// such connection.
func (v *server) live(ctx context.Context) {
	var failures []time.Time
	defer v.markTried()
	for ctx.Err() == nil {
		began := time.Now()
		err := v.serve(ctx)
		// Calls must wait for the next connection instead of using the lost one.
		v.dropSession(nil)
		if ctx.Err() != nil {
			return
		}
		var signIn *signInError
		if errors.As(err, &signIn) {
			v.setState(SignIn, err.Error())
			v.set.changed() // its tools are gone
			v.set.notice("warning", fmt.Sprintf("The MCP server %s needs you to sign in: pillion mcp login %s", v.Name, v.Name))
			return
		}
		if errors.Is(err, sdk.ErrSessionMissing) && time.Since(began) > firstPause {
			continue // a remote server may drop a session, which is no failure; comparing with firstPause prevents a busy loop
		}
		// After a connection that lasted long, earlier failures do not count.
		if time.Since(began) > failureSpan {
			failures = nil
		}
		failures = append(failures, time.Now())
		failures = slices.DeleteFunc(failures, func(t time.Time) bool { return time.Since(t) > failureSpan })
		// A missing program will not appear by itself, so it is not retried.
		if n := len(failures); n >= maxFailures || errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			v.setState(Off, err.Error())
			v.set.changed()
			v.set.notice("warning", fmt.Sprintf("The MCP server %s is off: %v. Its tools are missing; pillion mcp test %s shows more.", v.Name, err, v.Name))
			return
		}
		v.setState(Failed, err.Error())
		// One notice for a series of failures; the next one is that the server is off.
		if len(failures) == 1 {
			v.set.notice("warning", fmt.Sprintf("The MCP server %s failed: %v. Pillion starts it again.", v.Name, err))
		}
		v.markTried()
		select {
		// The pauses are 0.5, 1, 2 and 4 seconds; the fifth failure is the last.
		case <-time.After(firstPause << (len(failures) - 1)):
		case <-ctx.Done():
		}
	}
}

// markTried records that the first attempt to connect has ended, successfully or not, for which Ready and Await wait.
func (v *server) markTried() { v.once.Do(func() { close(v.tried) }) }

// serve connects, and returns when the connection has ended; the error says why. The server becomes Ready only after its lists are read, so
// Tools never sees a ready server without its tools.
func (v *server) serve(ctx context.Context) error {
	v.setState(Starting, "")
	ctx, cancel := context.WithCancelCause(ctx) // not a timeout: some transports stream under this context as long as the connection lasts
	defer cancel(nil)
	reached := time.AfterFunc(connectMax, func() { cancel(fmt.Errorf("no answer to initialize within %s", connectMax)) })
	session, tr, err := v.connect(ctx)
	if err == nil {
		defer session.Close()
		err = v.read(ctx, session)
	}
	// If the timer has fired, its error names the limit; the transport's error says only that the context ended.
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

// read reads the server's lists of tools and prompts and stores them. The lock reading keeps two runs from overlapping: else the older
// answer could be stored last. After an error both lists are unchanged: serve then fails the connection, and reread keeps the old lists.
func (v *server) read(ctx context.Context, session *sdk.ClientSession) error {
	v.reading.Lock()
	defer v.reading.Unlock()
	var listed []*sdk.Tool
	named := map[string]bool{} // a repeated name or page counts once
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
				// Without this limit a server that repeats its pages would be read for ever.
				if again++; again == maxListed {
					break
				}
				continue
			}
			named[t.Name] = true
			if v.Tools != nil && !slices.Contains(v.Tools, t.Name) {
				continue
			}
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

// reread reads the lists again after the server has announced a change. If that fails, the old lists stay. It must not run on the goroutine
// that reads the connection; see client.
func (v *server) reread(ctx context.Context, session *sdk.ClientSession) {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	if err := v.read(ctx, session); err != nil {
		v.set.o.Log.Warn("mcp: lists", "server", v.Name, "err", err)
		return
	}
	v.set.changed()
}

// dropSession records the loss of a connection; nil means the present one. A newer connection is kept: two calls may notice the same loss,
// one of them after the reconnect.
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

// setState sets the state and the reason that people see. It gives no notice; live does.
func (v *server) setState(s State, reason string) {
	v.mu.Lock()
	v.state, v.reason = s, reason
	v.mu.Unlock()
}

// connected returns the connection. It waits up to startWait for one, because a server that has crashed may be back in a moment, but not in
// the states Off and SignIn, which do not change by themselves. The error is the context's, or a *tools.Error that tells the model to
// continue without the server.
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
	return nil, &tools.Error{Kind: "unavailable", Message: fmt.Sprintf("The MCP server %s is not available (%s%s). Continue without it, or tell the user.", v.Name, state, reason)}
}

// listing returns a server's tools and capabilities, also after a crash: the server is being restarted, a call waits for it, and tools that
// come and go would invalidate the model's prompt cache. The slice is shared.
func (v *server) listing() ([]*sdk.Tool, *sdk.ServerCapabilities) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.session == nil && (v.state == Off || v.state == SignIn) {
		return nil, nil
	}
	return v.tools, v.caps
}

// maxInstructions limits a server's text in the system prompt, in bytes.
const maxInstructions = 2 << 10

// instructions returns the server's own text for the system prompt, cut to maxInstructions; "" while it is not connected.
func (v *server) instructions() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.session == nil {
		return ""
	}
	return ownWords(v.session.InitializeResult().Instructions, maxInstructions)
}

// status returns the server's state for a person.
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
