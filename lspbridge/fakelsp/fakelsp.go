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

// Options say how the server behaves. The zero value reports no problems at all: it neither publishes nor
// can be asked.
type Options struct {
	Capabilities map[string]any // laid over {"textDocumentSync": 2}
	Pull         bool           // answers textDocument/diagnostic
	Push         bool           // publishes on every change
	Versions     bool           // … and says for which version of the document; some real servers do not
	Marker       bool           // … between $/progress "diagnosing …" begin and end, as gopls does
	// Hold is called before a publish leaves; false drops it, like a server that coalesces or is late.
	Hold func(uri string, version int32) bool
	// On sees a request or notification before the server does. With handled false the server handles it as
	// usual.
	On func(ctx context.Context, s *Server, method string, params json.RawMessage) (result any, handled bool, err error)
	// Aside are methods whose On may take its time: later messages are handled meanwhile.
	Aside []string
}

// Server is one run of the fake server. Its methods may be called concurrently.
type Server struct {
	o    Options
	peer *rpc.Peer
	out  *rpc.Outbox
	r    *io.PipeReader // our end of our input
	cr   *io.PipeReader // client's end of our output
	cw   *io.PipeWriter // client's end of our input
	sw   *io.PipeWriter // our end of our output

	frozen atomic.Bool

	mu    sync.Mutex // guards what follows
	docs  map[string]doc
	seen  []string      // methods, in order
	token int           // of the last progress
	last  chan struct{} // closed when the message before has been handled
}

// doc is an open document, as the client has sent it.
type doc struct {
	text    string
	version int32
}

// New starts a server. It ends when the client closes its input, on "exit", or with Die.
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

// Pipes are the client's ends: r reads what the server writes, w is the server's input.
func (s *Server) Pipes() (io.ReadCloser, io.WriteCloser) { return s.cr, s.cw }

// Peer is the server's end, to ask the client things.
func (s *Server) Peer() *rpc.Peer { return s.peer }

// Raw writes bytes without a header, to imitate a server that prints garbage. They keep their place among
// the messages.
func (s *Server) Raw(b string) { _, _ = s.out.Write([]byte(b)) }

// Freeze makes the server read on but write nothing, like a process that hangs in a computation. It cannot
// be undone.
func (s *Server) Freeze() { s.frozen.Store(true) }

// mouth is the output of a server until it is frozen; then it discards what is written.
type mouth struct {
	*io.PipeWriter
	shut *atomic.Bool
}

// Write pretends to have written: a server that hangs does not see that nobody reads it.
func (m mouth) Write(b []byte) (int, error) {
	if m.shut.Load() {
		return len(b), nil
	}
	return m.PipeWriter.Write(b)
}

// Die closes both pipes without a shutdown, as a crash does.
func (s *Server) Die() { _ = s.sw.Close(); _ = s.r.Close() }

// Done is closed when the connection has ended.
func (s *Server) Done() <-chan struct{} { return s.peer.Done() }

// Seen are the methods received so far, in order.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

// Text is the text and version of an open document; open is false when the client has not opened it.
func (s *Server) Text(uri string) (text string, version int32, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.docs[uri]
	return d.text, d.version, ok
}

// handle is the server: it keeps the documents and answers what a linter must. Other requests get
// MethodNotFound.
func (s *Server) handle(ctx context.Context, r *rpc.Request) (any, error) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Method)
	s.mu.Unlock()
	if s.o.On != nil {
		// A script may ask the client something, so reading must continue; but one message is handled after the other.
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

// set replaces a document and diagnoses it, as after didOpen and didChange.
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

// diagnose runs f, between the progress markers when Options.Marker is set.
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

// Publish sends textDocument/publishDiagnostics. Version 0 is left out, and every version when
// Options.Versions is not set. No items clear the file's problems.
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

// Problems are the linter's diagnostics for a text: one error for every line that contains "BAD ".
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

// change is a content change: a range, or (nil) the whole document. Columns count bytes, which is right
// only for the ASCII texts of tests.
type change struct {
	Range *struct{ Start, End struct{ Line, Character int } }
	Text  string
}

// apply returns text after the change.
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
