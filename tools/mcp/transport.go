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

// maxMessage is the longest message a server may send, in bytes. An attachment of maxAttachment is a third longer as
// base64, which still fits.
const maxMessage = 32 << 20

// endGrace is how long a program has to end after its input was closed, which is how MCP ends a server; then it is killed
// with all it started.
const endGrace = 500 * time.Millisecond

// trouble is what is known about a program whose connection fails; nil for a remote server. explain works on nil, so that
// callers need not tell a program from an address.
type trouble struct {
	stderr *guard.Tail
	exited chan struct{} // closed when the program has ended; nil without one
	err    *error        // how; read after exited
	killed *atomic.Bool  // by us
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
		if t.killed.Load() || !isGone(err) { // we ended it, for what it said
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
	case <-time.After(100 * time.Millisecond): // it lives; the connection broke
	}
	if last := t.stderr.Last(); last != "" {
		return fmt.Errorf("%w (it said: %s)", err, last)
	}
	return err
}

// isGone tells a connection that ended from an answer that could not be used. A program that we ended because of a bad
// answer is not to blame for its end, so only these errors are explained by it.
func isGone(err error) bool {
	for _, gone := range []error{sdk.ErrConnectionClosed, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// connect makes the connection and initializes it. The trouble is nil for a remote server. A sign-in error must not lead
// to the older transport, whose own failure would hide it.
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
	u, err := url.Parse(v.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, nil, fmt.Errorf("%q is no http or https address", v.URL)
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
	// An older server answers with 4xx; the specification says to try its transport then.
	if old, oldErr := v.client().Connect(ctx, &sdk.SSEClientTransport{Endpoint: v.URL, HTTPClient: hc}, nil); oldErr == nil {
		return old, nil, nil
	}
	return nil, nil, err
}

// headers is a transport that adds the configured headers to each request. They stay with the configured host: a redirect
// to another host does not get them.
type headers struct {
	set  map[string]string
	next http.RoundTripper
}

// RoundTrip adds the configured headers, but not to another host that the server redirects
// to: they often hold a key.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(h.set) > 0 && (r.Response == nil || r.Response.Request.URL.Host == r.URL.Host) {
		r = r.Clone(r.Context())
		for k, v := range h.set {
			r.Header.Set(k, v)
		}
	}
	return h.next.RoundTrip(r)
}

// origin is the reason that the server's program and connections give to the gate. It is a copy, so the Server of the
// configuration stays as it is.
func (v *server) origin() guard.Reason {
	r := v.Reason
	r.Who = guard.MCP
	return r
}

// httpClient is the one for all requests about this server, its sign-in included. It adds the configured headers.
func (v *server) httpClient() *http.Client {
	return &http.Client{Transport: guard.Gate(v.origin(), headers{v.Headers, v.set.network()})}
}

// plainClient is httpClient without the configured headers, for an authorization server, which may be somebody else's.
func (v *server) plainClient() *http.Client {
	return &http.Client{Transport: guard.Gate(v.origin(), v.set.network())}
}

// network holds the connections of all of a set's servers. One transport shares idle connections among requests; it is
// made at its first use.
func (s *Set) network() http.RoundTripper {
	s.netOnce.Do(func() { s.net = guard.Transport(guard.Reason{Who: guard.MCP}, guard.Network{}) })
	return s.net
}

// pipes is a program's standard input and output as a transport.
type pipes struct {
	sdk.IOTransport
	end func()
}

// program starts the server's program. The program has its own process group and ends with end, which is safe to call
// more than once. Its context is not a caller's, because it outlives the call that started it.
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
		select { // Wait closes the pipe: what the program said last is read before
		case <-drained:
		case <-v.set.ctx.Done():
		}
		*why = cmd.Wait()
		kill() // what it left behind
		close(exited)
	}()
	// The SDK and connect may both end the program.
	var once sync.Once
	end := func() {
		once.Do(func() {
			_ = stdin.Close()
			// Wait is called only once the output is drained, so without this a reader that has given up would block the
			// end.
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

// drain reads a program's messages and tells when they have come to an end. Many programs print other things to standard
// output too, against the specification: a line that is no message is treated like standard error instead of breaking the
// connection. Only one goroutine reads; stop may be called from any.
type drain struct {
	io.ReadCloser
	lines *bufio.Reader
	said  io.Writer
	line  []byte // what of the present message has not been read yet; part of kept
	kept  []byte // memory of one line, used again
	once  sync.Once
	done  chan struct{} // closed at the end of the output, or when no one reads any more
}

// Read returns one line of the program at a time; see next for what is skipped.
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

// next reads a line, which counts when it is a message, or longer than one may be: that is for the reader to refuse. A
// message is a line (MCP, "stdio"). Each line is checked for JSON here and parsed again by the SDK; a line that breaks
// the SDK's decoder would end the connection.
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

func (d *drain) stop() { d.once.Do(func() { close(d.done) }) }

// Close stops reading. The program is ended by its own handle.
func (d *drain) Close() error {
	d.stop()
	return nil
}

// closer ends the program when the connection's writing side is closed.
type closer struct {
	io.WriteCloser
	end func()
}

// Close ends the program, since the SDK closes only the pipe.
func (c closer) Close() error {
	c.end()
	return nil
}

// inherited are the variables of ours that a server gets without being given them. Keys and tokens are not among
// them: what a server needs is configured for it.
var inherited = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ", "XDG_*", "LC_*",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST",
	"APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "COMSPEC", "WINDIR"}

// environment is what is inherited, with the server's own over it. Names are compared in upper case, which is how Windows
// treats them; on other systems http_proxy counts as HTTP_PROXY, which is meant.
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
	for _, k := range slices.Sorted(maps.Keys(own)) {
		env = append(env, k+"="+own[k])
	}
	return env
}
