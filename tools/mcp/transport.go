package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools/guard"
)

// maxMessage is the longest message that a program may send, in bytes. An attachment of maxAttachment, which base64 makes a third longer,
// still fits.
const maxMessage = 32 << 20

// endGrace is how long a program may take to end after its standard input was closed, which is how a client ends a server (MCP,
// "Shutdown"). After that its process group is killed.
const endGrace = 500 * time.Millisecond

// trouble is what is known about a program whose connection fails. It is nil for a remote server; explain accepts that, so that callers
// need not distinguish.
type trouble struct {
	stderr *guard.Tail
	exited chan struct{} // closed when the program has ended
	err    *error        // the program's exit error; it may be read only after exited is closed
	killed *atomic.Bool  // this package killed the program
}

// explain adds to an error how the program ended and the last line of its standard error, which usually names the cause;
// "EOF" alone does not help the person who configured it. It waits up to 100 ms for the program's end, since the pipe
// usually breaks a moment before the process is gone.
func (t *trouble) explain(err error) error {
	if t == nil || t.exited == nil {
		return err
	}
	select {
	case <-t.exited:
		if t.killed.Load() || !isGone(err) { // killed because of err, which is the cause then
			break
		}
		text := "it ended"
		if *t.err != nil {
			text = (*t.err).Error()
		}
		if last := t.stderr.Last(); last != "" {
			text += ": " + last
		}
		return errors.New(text)
	case <-time.After(100 * time.Millisecond): // the program still runs; only the connection is broken
	}
	if last := t.stderr.Last(); last != "" {
		return fmt.Errorf("%w (it said: %s)", err, last)
	}
	return err
}

// isGone reports whether an error means that the connection has ended, and not that an answer was unusable. Only then does the program's
// exit explain the error: after an unusable answer the exit is the consequence.
func isGone(err error) bool {
	for _, gone := range []error{sdk.ErrConnectionClosed, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// connect opens the connection and initializes it. For an address it tries streamable HTTP and then the older transport, except after a
// sign-in error, which the older transport's failure would hide. The trouble is nil for a remote server.
func (v *server) connect(ctx context.Context) (*sdk.ClientSession, *trouble, error) {
	client := v.client()
	if len(v.Command) > 0 {
		tr, why, err := v.program()
		if err != nil {
			return nil, nil, err
		}
		s, err := client.Connect(ctx, tr, nil)
		if err != nil {
			// The program must not outlive a failed initialization.
			tr.end()
		}
		return s, why, err
	}
	// Checked here, as the error of an HTTP client for such an address does not name the mistake.
	u, err := url.Parse(v.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, nil, fmt.Errorf("%q is not an http or https address", v.URL)
	}
	hc := v.httpClient()
	if v.SSE {
		s, err := client.Connect(ctx, &sdk.SSEClientTransport{Endpoint: v.URL, HTTPClient: hc}, nil)
		return s, nil, err
	}
	s, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: v.URL, HTTPClient: hc, OAuthHandler: v.stored()}, nil)
	var signIn *signInError
	if err == nil || errors.As(err, &signIn) || ctx.Err() != nil {
		return s, nil, err
	}
	// A server of the older transport answers with 4xx, and the client should try that transport then (MCP, "Backwards Compatibility").
	if old, oldErr := v.client().Connect(ctx, &sdk.SSEClientTransport{Endpoint: v.URL, HTTPClient: hc}, nil); oldErr == nil {
		return old, nil, nil
	}
	return nil, nil, err
}

// headers is a transport that adds the configured headers to each request to the configured host.
type headers struct {
	set  map[string]string
	next http.RoundTripper
}

// RoundTrip adds the headers, except after a redirect to another host: they often hold a key, which a server could send anywhere
// that way. r.Response is the redirect that led to r.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(h.set) > 0 && (r.Response == nil || r.Response.Request.URL.Host == r.URL.Host) {
		// A RoundTripper must not change the request that it is given (net/http).
		r = r.Clone(r.Context())
		for k, v := range h.set {
			r.Header.Set(k, v)
		}
	}
	return h.next.RoundTrip(r)
}

// origin is the guard.Reason for the server's program and connections. It is a copy, so the configuration stays unchanged.
func (v *server) origin() guard.Reason {
	r := v.Reason
	r.Who = guard.MCP
	return r
}

// httpClient is the client for requests to the server itself. It adds the configured headers.
func (v *server) httpClient() *http.Client {
	return &http.Client{Transport: guard.Gate(v.origin(), headers{v.Headers, v.set.network()})}
}

// plainClient is the client for an authorization server. It adds no configured headers, as that server may belong to someone else.
func (v *server) plainClient() *http.Client {
	return &http.Client{Transport: guard.Gate(v.origin(), v.set.network())}
}

// network is the transport of all of a set's servers, so that they share idle connections. It is made at its first use.
func (s *Set) network() http.RoundTripper {
	s.netOnce.Do(func() { s.net = guard.Transport(guard.Reason{Who: guard.MCP}, guard.Network{}) })
	return s.net
}

// pipes is a program's standard input and output as a transport of the SDK. end ends the program.
type pipes struct {
	sdk.IOTransport
	end func()
}

// program starts the server's program in a process group of its own. The end function of the pipes ends it, and may be called more than
// once. The program does not run under a caller's context, because it outlives the call that started it.
func (v *server) program() (*pipes, *trouble, error) {
	cmd := guard.CommandFor(context.Background(), v.origin(), v.Command...)
	cmd.Dir = v.Dir
	if cmd.Dir == "" {
		cmd.Dir = v.set.o.Root
	} else if !filepath.IsAbs(cmd.Dir) {
		cmd.Dir = filepath.Join(v.set.o.Root, cmd.Dir)
	}
	// Not our whole environment: see inherited.
	cmd.Env = environment(v.Env)
	stderr := &guard.Tail{}
	cmd.Stderr = stderr
	cmd.WaitDelay = endGrace
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	guard.OwnGroup(cmd)
	start := v.set.o.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := start(cmd); err != nil {
		return nil, nil, err
	}
	kill := func() { guard.KillGroup(cmd) }
	exited, drained, why, killed := make(chan struct{}), make(chan struct{}), new(error), new(atomic.Bool)
	out := &drain{ReadCloser: stdout, lines: bufio.NewReaderSize(stdout, 64<<10), said: stderr, done: drained}
	go func() {
		select { // Wait closes the pipe, so it must not run before the last output has been read
		case <-drained:
		case <-v.set.ctx.Done():
		}
		*why = cmd.Wait()
		kill() // processes that the program has left behind
		close(exited)
	}()
	// The SDK and connect may both end the program.
	var once sync.Once
	end := func() {
		once.Do(func() {
			_ = stdin.Close()
			// Wait runs only when the output is drained. If the reader has given up, nothing else would ever report that.
			out.stop()
			select {
			case <-exited:
			case <-time.After(endGrace):
				killed.Store(true)
				kill()
				<-exited
			}
		})
	}
	p := &pipes{end: end}
	p.Reader, p.Writer, p.MaxLineLength = out, closer{stdin, end}, maxMessage
	return p, &trouble{stderr: stderr, exited: exited, err: why, killed: killed}, nil
}

// drain reads a program's messages and closes done at their end. Many programs also print other text to standard output, against the
// specification. Such a line is treated like standard error instead of breaking the connection. Only one goroutine reads; stop may be
// called from any.
type drain struct {
	io.ReadCloser
	lines *bufio.Reader
	said  io.Writer
	line  []byte        // the unread rest of the present message; a part of kept
	kept  []byte        // the buffer of one line, which is reused
	once  sync.Once     // guards the closing of done
	done  chan struct{} // closed at the end of the output, or when the reader has stopped
}

// Read implements io.Reader. It returns at most one message at a time; see next for the lines that it skips.
func (d *drain) Read(p []byte) (int, error) {
	for len(d.line) == 0 {
		if err := d.next(); err != nil {
			d.stop()
			return 0, err
		}
	}
	n := copy(p, d.line)
	d.line = d.line[n:]
	return n, nil
}

// next reads one line; each message is a line (MCP, "stdio"). It sets d.line if the line is a JSON-RPC message, or is longer than
// maxMessage, which the SDK then refuses. Any other line goes to the tail of standard error. The line is checked for JSON here, although
// the SDK parses it again, because text that is not JSON would make the SDK end the connection.
func (d *drain) next() error {
	if cap(d.kept) > 1<<20 {
		d.kept = nil
	}
	d.kept = d.kept[:0]
	for {
		part, err := d.lines.ReadSlice('\n')
		d.kept = append(d.kept, part...)
		switch {
		case err == bufio.ErrBufferFull && len(d.kept) <= maxMessage:
			continue
		case len(d.kept) > maxMessage || bytes.Contains(d.kept, []byte(`"jsonrpc"`)) && json.Valid(d.kept):
			d.line = d.kept
			return nil
		}
		_, _ = d.said.Write(d.kept)
		return err
	}
}

// stop reports that nobody reads any more, so that Wait may close the pipe.
func (d *drain) stop() { d.once.Do(func() { close(d.done) }) }

// Close stops reading. It does not end the program; closer does.
func (d *drain) Close() error {
	d.stop()
	return nil
}

// closer ends the program when the connection's writing side is closed.
type closer struct {
	io.WriteCloser
	end func()
}

// Close ends the program: the SDK itself would only close the pipe.
func (c closer) Close() error {
	c.end()
	return nil
}

// inherited are the environment variables of this process that a server gets. Keys and tokens are not among them: a server gets only those
// that are configured for it. A * at the end stands for any suffix.
var inherited = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ", "XDG_*", "LC_*",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST",
	"APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "COMSPEC", "WINDIR"}

// environment is a server's environment: the inherited variables, then its own, which win. Names are compared in upper case, as Windows
// ignores case; elsewhere this also lets http_proxy pass, which is intended.
func environment(own map[string]string) []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		name = strings.ToUpper(name)
		if slices.ContainsFunc(inherited, func(p string) bool {
			prefix, wild := strings.CutSuffix(p, "*")
			return p == name || wild && strings.HasPrefix(name, prefix)
		}) {
			env = append(env, e)
		}
	}
	// Of two entries with one name the last counts (os/exec), so the server's own come last.
	for _, k := range slices.Sorted(maps.Keys(own)) {
		env = append(env, k+"="+own[k])
	}
	return env
}
