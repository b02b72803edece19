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

// maxMessage is the longest message that a server may send, in bytes, beside its long texts (longTexts). An attachment of maxAttachment,
// which base64 makes a third longer, still fits.
const maxMessage = 32 << 20

// endGrace is how long a program may take to exit after its standard input was closed, which is how a client ends a server (MCP,
// "Shutdown"). After that its process group is killed.
const endGrace = 500 * time.Millisecond

// trouble describes why the connection to a program failed. It is nil for a remote server; explain accepts nil, so that callers need not
// distinguish.
type trouble struct {
	stderr *guard.Tail
	exited chan struct{} // closed when the program has ended
	err    *error        // the program's exit error; it may be read only after exited is closed
	killed *atomic.Bool  // this package killed the program
}

// explain adds to an error how the program ended and the last line of its standard error, which usually names the cause: "EOF" alone does
// not help the person who configured it. It waits up to 100 ms for the program to exit, because the pipe usually breaks a moment earlier.
func (t *trouble) explain(err error) error {
	if t == nil || t.exited == nil {
		return err
	}
	select {
	case <-t.exited:
		if t.killed.Load() || !isGone(err) { // killed because of err, so err is the cause
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

// isGone reports whether an error means that the connection has ended, rather than that an answer was unusable. Only then does the
// program's exit explain the error: after an unusable answer the exit is a consequence.
func isGone(err error) bool {
	for _, gone := range []error{sdk.ErrConnectionClosed, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// connect opens the connection and initializes it. For an address it tries streamable HTTP and then the older transport, but not after a
// sign-in error, which the failure of the older transport would hide. The trouble is nil for a remote server.
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
	// Check the address here: the error of an HTTP client does not name the mistake.
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
	// A server with only the older transport answers with 4xx, after which the client should try that transport (MCP, "Backwards
	// Compatibility").
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

// RoundTrip adds the headers, but not after a redirect to another host: they often hold a key, and a redirect could send it anywhere.
// r.Response is the redirect that led to r.
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

// origin returns the guard.Reason for the server's program and connections. It is a copy, so the configuration stays unchanged.
func (v *server) origin() guard.Reason {
	r := v.Reason
	r.Who = guard.MCP
	return r
}

// httpClient returns the client for requests to the server itself, which adds the configured headers.
func (v *server) httpClient() *http.Client {
	return &http.Client{Transport: guard.Gate(v.origin(), cutBodies{v.long, headers{v.Headers, v.set.network()}})}
}

// plainClient returns the client for an authorization server. It does not add the configured headers, because that server may belong to
// someone else.
func (v *server) plainClient() *http.Client {
	return &http.Client{Transport: guard.Gate(v.origin(), v.set.network())}
}

// network returns the transport of all of a set's servers, which share idle connections. It is made at the first use.
func (s *Set) network() http.RoundTripper {
	s.netOnce.Do(func() { s.net = guard.Transport(guard.Reason{Who: guard.MCP}, guard.Network{}) })
	return s.net
}

// pipes is a program's standard input and output as a transport of the SDK. end ends the program.
type pipes struct {
	sdk.IOTransport
	end func()
}

// program starts the server's program in a process group of its own. The end function of the pipes ends it and may be called more than
// once. The program does not run under a caller's context, because it outlives the call that started it.
func (v *server) program() (*pipes, *trouble, error) {
	cmd := guard.CommandFor(context.Background(), v.origin(), v.Command...)
	cmd.Dir = v.Dir
	if cmd.Dir == "" {
		cmd.Dir = v.set.o.Root
	} else if !filepath.IsAbs(cmd.Dir) {
		cmd.Dir = filepath.Join(v.set.o.Root, cmd.Dir)
	}
	// Not the whole environment of this process; see inherited.
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
	out := &drain{ReadCloser: stdout, lines: bufio.NewReaderSize(stdout, 64<<10), cut: cutter{long: v.long}, said: stderr, done: drained}
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
			// Wait runs only after the output is drained; if the reader has given up, only stop reports that.
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
// specification; such a line is treated like standard error instead of breaking the connection. Only one goroutine reads; stop may be
// called from any.
type drain struct {
	io.ReadCloser
	lines *bufio.Reader
	cut   cutter
	said  io.Writer     // gets the lines that are not messages
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

// next reads one line; each message is a line (MCP, "stdio"). It sets d.line if the line is a JSON-RPC message. Any other line is added to the tail of standard error. The line is checked for JSON although the
// SDK parses it again, because text that is not JSON would make the SDK end the connection.
func (d *drain) next() error {
	if cap(d.kept) > 1<<20 {
		d.kept = nil
	}
	d.kept = d.kept[:0]
	for {
		part, err := d.lines.ReadSlice('\n')
		d.kept = d.cut.feed(d.kept, part)
		switch {
		case len(d.kept) > maxMessage || d.cut.over:
			return errTooLong
		case err == bufio.ErrBufferFull:
			continue
		}
		d.kept = d.cut.end(d.kept)
		switch {
		case bytes.Contains(d.kept, []byte(`"jsonrpc"`)) && json.Valid(d.kept):
			d.line = d.kept
			return nil
		}
		_, _ = d.said.Write(d.kept)
		return err
	}
}

// stop announces that reading has ended, so that Wait may close the pipe.
func (d *drain) stop() { d.once.Do(func() { close(d.done) }) }

// Close stops reading. It does not end the program; closer does.
func (d *drain) Close() error {
	d.stop()
	return nil
}

// closer ends the program when the writing side of the connection is closed.
type closer struct {
	io.WriteCloser
	end func()
}

// Close ends the program; the SDK alone would only close the pipe.
func (c closer) Close() error {
	c.end()
	return nil
}

// inherited are the environment variables that a server inherits from this process. Keys and tokens are not among them: a server gets only
// those that are configured for it. A * at the end stands for any suffix.
var inherited = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ", "XDG_*", "LC_*",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST",
	"APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "COMSPEC", "WINDIR"}

// environment returns a server's environment: the inherited variables, then its own, which win. Names are compared in upper case, because
// Windows ignores case; elsewhere this also admits http_proxy, which is intended.
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
	// The last of two entries with one name counts (os/exec), so the server's own come last.
	for _, k := range slices.Sorted(maps.Keys(own)) {
		env = append(env, k+"="+own[k])
	}
	return env
}
