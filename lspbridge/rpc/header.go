package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.lsp.dev/jsonrpc2"
)

// Limits on what a server may print between two messages. Beyond them the stream ends, because the program
// is not a language server, or its output can no longer be followed.
const (
	maxGarbage = 1 << 20 // bytes of lines that are not a header, before one message
	maxDrain   = 1 << 30 // bytes: a greater length is taken for a broken header, and ends the connection
)

// NotLSP is the prefix of the errors that OnBad receives for output that is not a message; the text of the
// output follows it. Callers cut it off to show the output alone.
const NotLSP = "skipped output that is not LSP: "

// ErrNotLSP ends the stream when a peer prints more than maxGarbage bytes without a header, e.g. because
// the configured command is not a language server.
var ErrNotLSP = errors.New("no Content-Length header in the last 1 MiB of output: this is not a language server speaking on stdout")

// headerStream frames messages with Content-Length headers ("Base Protocol" in the LSP specification).
type headerStream struct {
	r    io.Reader
	w    io.Writer
	in   *bufio.Reader // over src
	src  source
	o    StreamOptions
	body []byte   // of the message being read; reused for the next one
	more [][]byte // frames of a batch that ReadFrame has not returned yet
}

// NewHeaderStream reads and writes messages framed with Content-Length headers. It is made for real
// servers, which break the framing:
//
//   - lines that a server prints between messages (logs, banners) are skipped and reported to OnBad;
//   - a message that is not valid JSON-RPC is skipped, or repaired where its meaning is clear;
//   - a body longer than MaxMessage is skipped; when it answers a call, that call ends with an error.
//
// Only a request that cannot be repaired is answered with an error. Close closes w, then r, if they
// implement io.Closer.
func NewHeaderStream(r io.Reader, w io.Writer, o StreamOptions) Stream {
	o.defaults()
	s := &headerStream{r: r, w: w, src: source{r: r}, o: o}
	s.in = bufio.NewReaderSize(&s.src, 64<<10)
	return s
}

// header reads up to the end of the next header block and returns the length of the body in bytes. Lines
// that are not a header are skipped. It fails with ErrNotLSP after maxGarbage bytes of them, and with
// io.ErrUnexpectedEOF when the output ends inside a header.
func (s *headerStream) header() (length int64, err error) {
	length = -1
	skipped, midLine := 0, false // midLine: the line is longer than the buffer
	for {
		line, err := s.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && length >= 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		more := err != nil
		text := bytes.TrimSpace(line)
		switch n, ok := contentLength(text); {
		case ok && !more:
			length = n
		case len(text) == 0 && !midLine && length >= 0:
			return length, nil
		case length >= 0 && bytes.IndexByte(text, ':') > 0: // Content-Type and others
		case !more && skipped == 0 && isContentType(text): // may come first
		case len(text) > 0:
			length = -1 // a header must not be interrupted
			if skipped == 0 {
				s.o.OnBad(fmt.Errorf("%s%s", NotLSP, clip(text)))
			}
			if skipped += len(line); skipped > maxGarbage {
				return 0, ErrNotLSP
			}
		}
		midLine = more
	}
}

// isContentType reports a Content-Type header. It is the only header that may come before Content-Length;
// any other line in that place is output of the program.
func isContentType(line []byte) bool {
	const name = "content-type:"
	return len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name)
}

// contentLength returns the value of a Content-Length header. The header need not begin the line: a server
// that prints without a newline puts its output in front of it. ok is false when lowering the case changes
// the line's length, because the offset of the name would then be wrong.
func contentLength(line []byte) (int64, bool) {
	const name = "content-length:"
	if len(line) < len(name) {
		return 0, false
	}
	i := bytes.LastIndex(bytes.ToLower(line), []byte(name))
	if i < 0 || len(line) != len(bytes.ToLower(line)) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(line[i+len(name):])), 10, 64)
	return n, err == nil && n >= 0
}

// ReadFrame returns the next message and the size of its body in bytes. The slice is valid until the next
// call.
func (s *headerStream) ReadFrame(ctx context.Context) ([]byte, int64, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if len(s.more) > 0 {
			f := s.more[0]
			s.more = s.more[1:]
			return f, 0, nil
		}
		length, err := s.header()
		if err != nil {
			return nil, 0, err
		}
		var j judged
		if length > int64(s.o.MaxMessage) {
			j, err = s.drain(length)
		} else if err = s.read(int(length)); err == nil {
			if s.o.Trace != nil {
				s.o.Trace('<', s.body)
			}
			j = check(s.body, true)
		}
		if err != nil {
			return nil, 0, err
		}
		if j.verdict == deliver {
			s.more = append(s.more, j.more...)
			return j.frame, length, nil
		}
		// Invalid JSON is most often a wrong length: servers that count characters instead of bytes get it
		// wrong at the first non-ASCII text.
		if j.verdict == refuse && j.code == jsonrpc2.ParseError {
			fixed, ok, err := s.salvage()
			if err != nil {
				return nil, 0, err
			}
			if ok {
				s.o.OnBad(fmt.Errorf("the header of a message gave a wrong length (%d bytes); read %d", length, len(fixed.frame)))
				s.more = append(s.more, fixed.more...)
				return fixed.frame, length, nil
			}
		}
		s.o.OnBad(fmt.Errorf("skipped a message: %s", j.reason))
		if j.verdict == refuse && j.id != nil { // a server's request waits; anything else a server could not use
			if _, err := s.WriteFrame(ctx, errorResponse(j.id, j.code, j.reason)); err != nil {
				return nil, 0, err
			}
		}
	}
}

// read reads n bytes into s.body.
func (s *headerStream) read(n int) error {
	// After one large message, do not keep its memory for small ones.
	if cap(s.body) > 1<<20 && n < 1<<16 {
		s.body = nil
	}
	// Grow as it arrives: a header that lies about its length must not cost its length.
	s.body = s.body[:0]
	for len(s.body) < n {
		step := min(n-len(s.body), max(64<<10, len(s.body)))
		s.body = append(s.body, make([]byte, step)...)
		if _, err := io.ReadFull(s.in, s.body[len(s.body)-step:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// drain skips a body of n bytes that exceeds MaxMessage. It keeps the first and the last bytes, where the
// message's id is, so that the call that waits for the answer ends with an error and not with a timeout.
func (s *headerStream) drain(n int64) (judged, error) {
	if n > maxDrain {
		return judged{}, fmt.Errorf("message of %d bytes exceeds every limit", n)
	}
	if err := s.read(edge); err != nil {
		return judged{}, err
	}
	head := bytes.Clone(s.body)
	if _, err := io.CopyN(io.Discard, s.in, n-2*edge); err != nil {
		return judged{}, io.ErrUnexpectedEOF
	}
	if err := s.read(edge); err != nil {
		return judged{}, err
	}
	return tooLong(head, s.body[edge-256:], n, s.o.MaxMessage), nil
}

// Read implements jsonrpc2.Stream.
func (s *headerStream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	return decode(ctx, s)
}

// headerRoom is the space for "Content-Length: 1234567890\r\n\r\n", in bytes. Write leaves it in front of
// the body, so that header and body leave in one slice without copying the body.
const headerRoom = 40

// Write implements jsonrpc2.Stream.
func (s *headerStream) Write(_ context.Context, msg jsonrpc2.Message) (int64, error) {
	return s.send(jsonrpc2.AppendMessage(make([]byte, headerRoom, headerRoom+512), msg))
}

// WriteFrame sends a message that is already encoded.
func (s *headerStream) WriteFrame(_ context.Context, data []byte) (int64, error) {
	return s.send(append(make([]byte, headerRoom, headerRoom+len(data)), data...))
}

// send fills in the header. b begins with headerRoom unused bytes.
func (s *headerStream) send(b []byte) (int64, error) {
	if s.o.Trace != nil {
		s.o.Trace('>', b[headerRoom:])
	}
	head := fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(b)-headerRoom)
	b = b[headerRoom-len(head):]
	copy(b, head)
	return send(s.w, b)
}

// Close implements jsonrpc2.Stream.
func (s *headerStream) Close() error { return closeBoth(s.w, s.r) }
