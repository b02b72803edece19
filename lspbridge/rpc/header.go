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

// Bounds of what a server may print between two messages before it is taken for something else than a server.
const (
	maxGarbage = 1 << 20 // bytes
	maxDrain   = 1 << 30 // bytes: a longer message ends the connection
)

// NotLSP begins what OnBad hears of output that is no message; the output follows.
const NotLSP = "skipped output that is not LSP: "

// ErrNotLSP is what reading ends with when a peer prints without end but never a header.
var ErrNotLSP = errors.New("no Content-Length header in the last 1 MiB of output: this is not a language server speaking on stdout")

// headerStream frames messages with Content-Length headers, as LSP does.
type headerStream struct {
	r    io.Reader
	w    io.Writer
	in   *bufio.Reader // over src
	src  source
	o    StreamOptions
	body []byte
	more [][]byte
}

// NewHeaderStream reads and writes Content-Length framed messages. What a server prints beside them (logs, banners) is
// skipped and told to OnBad; bodies that are no message are skipped; a body beyond MaxMessage is read past, and when it
// answers a call, that call ends with an error. Close closes w, then r, where they can be closed.
func NewHeaderStream(r io.Reader, w io.Writer, o StreamOptions) Stream {
	o.defaults()
	s := &headerStream{r: r, w: w, src: source{r: r}, o: o}
	s.in = bufio.NewReaderSize(&s.src, 64<<10)
	return s
}

// header reads to the end of the next header block.
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

func isContentType(line []byte) bool {
	const name = "content-type:"
	return len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name)
}

// contentLength reads the header's value. Output without a newline may stand before it on the same line.
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

// ReadFrame returns the next message. The slice is valid until the next call.
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
		if j.verdict == refuse && j.code == jsonrpc2.ParseError {
			fixed, ok, err := s.salvage()
			if err != nil {
				return nil, 0, err
			}
			if ok {
				s.o.OnBad(fmt.Errorf("the header of a message said %d bytes, which is wrong; read %d", length, len(fixed.frame)))
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

func (s *headerStream) read(n int) error {
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

// drain reads past a body that is too long, keeping its edges.
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

// room for "Content-Length: 1234567890\r\n\r\n" in front of a body.
const headerRoom = 40

// Write implements jsonrpc2.Stream.
func (s *headerStream) Write(_ context.Context, msg jsonrpc2.Message) (int64, error) {
	return s.send(jsonrpc2.AppendMessage(make([]byte, headerRoom, headerRoom+512), msg))
}

// WriteFrame sends a message that is already encoded.
func (s *headerStream) WriteFrame(_ context.Context, data []byte) (int64, error) {
	return s.send(append(make([]byte, headerRoom, headerRoom+len(data)), data...))
}

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
