// Package fakelsp is a scripted language server over in-memory pipes: it speaks the wire, so it cannot drift from real
// servers, and does on request what real ones do only on bad days. Left alone it is a small linter: a line that says
// "BAD something" has the error "something".
//
//	s := fakelsp.New(fakelsp.Options{Push: true, Versions: true})
//	r, w := s.Pipes() // the server's output and input
package fakelsp

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
)

// Options say what kind of server it is.
type Options struct {
	Capabilities map[string]any // laid over {"textDocumentSync": 2}
	Pull         bool           // answers textDocument/diagnostic
	Push         bool           // publishes on every change
	Versions     bool           // … and says for which version
	Marker       bool           // … between progress "diagnosing …", as gopls does
	// Hold, when set, is asked before a publish leaves; a false answer drops it.
	Hold func(uri string, version int32) bool
	// On answers a request or notification before the server itself does; handled false leaves it to the server.
	On func(ctx context.Context, s *Server, method string, params json.RawMessage) (result any, handled bool, err error)
	// Aside are methods that On may answer when it likes; the messages after them do not wait.
	Aside []string
}

// Server is one run.
type Server struct {
	o    Options
	peer *rpc.Peer
	out  *rpc.Outbox
	r    *io.PipeReader
	cr   *io.PipeReader // client's end of our output
	cw   *io.PipeWriter // client's end of our input
	sw   *io.PipeWriter

	frozen atomic.Bool

	mu    sync.Mutex // guards what follows
	docs  map[string]doc
	seen  []string // methods, in order
	token int
	last  chan struct{} // closed when the message before has been handled
}

type doc struct {
	text    string
	version int32
}

// New starts a server.
func New(o Options) *Server {
	s := &Server{o: o, docs: map[string]doc{}}
	var sr *io.PipeReader
	s.cr, s.sw = io.Pipe()
	sr, s.cw = io.Pipe()
	s.r = sr
	s.out = rpc.NewOutbox(mouth{s.sw, &s.frozen}, rpc.OutboxOptions{})
	s.peer = rpc.NewPeer(rpc.NewHeaderStream(sr, s.out, rpc.StreamOptions{}), rpc.PeerOptions{Handler: s.handle, Cancel: rpc.CancelLSP})
	return s
}

// Pipes are the client's ends: what the server writes, and where it reads.
func (s *Server) Pipes() (io.ReadCloser, io.WriteCloser) { return s.cr, s.cw }

// Peer is the server's end, to ask the client things.
func (s *Server) Peer() *rpc.Peer { return s.peer }

// Raw writes bytes as they are, garbage included.
func (s *Server) Raw(b string) { _, _ = s.out.Write([]byte(b)) }

// Freeze makes it read on and say nothing any more.
func (s *Server) Freeze() { s.frozen.Store(true) }

// mouth is where a server speaks, as long as it is not frozen.
type mouth struct {
	*io.PipeWriter
	shut *atomic.Bool
}

func (m mouth) Write(b []byte) (int, error) {
	if m.shut.Load() {
		return len(b), nil
	}
	return m.PipeWriter.Write(b)
}

// Die ends the server as a crash does.
func (s *Server) Die() { _ = s.sw.Close(); _ = s.r.Close() }

// Done is closed when the connection has ended.
func (s *Server) Done() <-chan struct{} { return s.peer.Done() }

// Seen are the methods received so far.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

// Text is an open document's.
func (s *Server) Text(uri string) (text string, version int32, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.docs[uri]
	return d.text, d.version, ok
}

func (s *Server) handle(ctx context.Context, r *rpc.Request) (any, error) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Method)
	s.mu.Unlock()
	if s.o.On != nil {
		// A script may ask the client something, so reading must go on; but one message is handled after the other.
		mine := make(chan struct{})
		open := sync.OnceFunc(func() { close(mine) })
		defer open()
		s.mu.Lock()
		before := s.last
		s.last = mine
		s.mu.Unlock()
		r.Async()
		if before != nil {
			select {
			case <-before: // also when it was cancelled meanwhile: what comes after it must not pass
			case <-s.peer.Done():
			}
		}
		if slices.Contains(s.o.Aside, r.Method) {
			open()
		}
		if result, handled, err := s.o.On(ctx, s, r.Method, r.Params); handled {
			return result, err
		}
	}
	var p struct {
		TextDocument struct {
			URI     string
			Version int32
			Text    string
		}
		ContentChanges []change
	}
	_ = json.Unmarshal(r.Params, &p)
	uri := p.TextDocument.URI
	switch r.Method {
	case "initialize":
		caps := map[string]any{"textDocumentSync": 2}
		if s.o.Pull {
			caps["diagnosticProvider"] = map[string]any{"interFileDependencies": false}
		}
		for k, v := range s.o.Capabilities {
			caps[k] = v
		}
		return map[string]any{"capabilities": caps, "serverInfo": map[string]string{"name": "fake"}}, nil
	case "initialized":
		if s.o.Marker {
			s.diagnose("initial workspace load", func() {})
		}
	case "textDocument/didOpen":
		s.set(uri, doc{p.TextDocument.Text, p.TextDocument.Version}, "opened files")
	case "textDocument/didChange":
		text, _, _ := s.Text(uri)
		for _, c := range p.ContentChanges {
			text = c.apply(text)
		}
		s.set(uri, doc{text, p.TextDocument.Version}, "changed files")
	case "textDocument/didClose":
		s.mu.Lock()
		delete(s.docs, uri)
		s.mu.Unlock()
		s.diagnose("close files", func() { s.Publish(uri, 0, nil) })
	case "textDocument/didSave":
		s.diagnose("saved files", func() {})
	case "workspace/didChangeWatchedFiles":
		s.diagnose("files changed on disk", func() {})
	case "textDocument/diagnostic":
		text, _, _ := s.Text(uri)
		return map[string]any{"kind": "full", "items": Problems(text)}, nil
	case "shutdown":
		return nil, nil
	case "exit":
		s.Die()
	default:
		if r.IsCall {
			return nil, rpc.MethodNotFound(r.Method)
		}
	}
	return nil, nil
}

func (s *Server) set(uri string, d doc, cause string) {
	s.mu.Lock()
	s.docs[uri] = d
	s.mu.Unlock()
	s.diagnose(cause, func() {
		if s.o.Push && (s.o.Hold == nil || s.o.Hold(uri, d.version)) {
			s.Publish(uri, d.version, Problems(d.text))
		}
	})
}

// diagnose does a diagnosis, between markers where the server has them.
func (s *Server) diagnose(cause string, f func()) {
	if !s.o.Marker {
		f()
		return
	}
	s.mu.Lock()
	s.token++
	token := s.token
	s.mu.Unlock()
	progress := func(value map[string]string) {
		_ = s.peer.Notify(context.Background(), "$/progress", map[string]any{"token": token, "value": value})
	}
	progress(map[string]string{"kind": "begin", "title": "diagnosing " + cause})
	f()
	progress(map[string]string{"kind": "end"})
}

// Publish publishes; version 0 is left out, and so is every version of a server without Versions.
func (s *Server) Publish(uri string, version int32, items []map[string]any) {
	if items == nil {
		items = []map[string]any{}
	}
	p := map[string]any{"uri": uri, "diagnostics": items}
	if version > 0 && s.o.Versions {
		p["version"] = version
	}
	_ = s.peer.Notify(context.Background(), "textDocument/publishDiagnostics", p)
}

// Problems are the linter's findings in a text.
func Problems(text string) []map[string]any {
	out := []map[string]any{}
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		if _, says, ok := strings.Cut(line, "BAD "); ok {
			out = append(out, map[string]any{"severity": 1, "source": "fake", "message": says,
				"range": map[string]any{"start": map[string]int{"line": n, "character": 0}, "end": map[string]int{"line": n, "character": len(line)}}})
		}
		n++
	}
	return out
}

// change is a content change: a range (ASCII is all the tests use) or the whole.
type change struct {
	Range *struct{ Start, End struct{ Line, Character int } }
	Text  string
}

func (c change) apply(text string) string {
	if c.Range == nil {
		return c.Text
	}
	at := func(line, char int) int {
		off := 0
		for range line {
			i := strings.IndexByte(text[off:], '\n')
			if i < 0 {
				return len(text)
			}
			off += i + 1
		}
		return min(off+char, len(text))
	}
	return text[:at(c.Range.Start.Line, c.Range.Start.Character)] + c.Text + text[at(c.Range.End.Line, c.Range.End.Character):]
}
