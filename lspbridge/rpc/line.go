package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"go.lsp.dev/jsonrpc2"
)

// lineStream frames one message per line, as ACP does.
type lineStream struct {
	r    io.Reader
	w    io.Writer
	in   *bufio.Reader
	o    StreamOptions
	acc  []byte   // the line being read; reused while small
	more [][]byte // frames taken out of a batch
	gave bool     // the caller of ReadFrame owns what it got last
}

// NewLineStream reads and writes one JSON-RPC message per line. The stream survives bad input: a line that
// is not a message is answered with its error (-32700 or -32600); blank lines are skipped; the last line
// may lack its newline. A line longer than MaxMessage is skipped and answered with -32600. Close closes w,
// then r, if they implement io.Closer.
func NewLineStream(r io.Reader, w io.Writer, o StreamOptions) Stream {
	o.defaults()
	return &lineStream{r: r, w: w, in: bufio.NewReaderSize(r, 64<<10), o: o}
}

// edge is how many bytes of each end of a too long message are kept. The id is found there: encoders write
// it first or last.
const edge = 4 << 10

// A line above longLine bytes has a buffer of its own. It grows in few steps, since each leaves the one before as garbage; what of it is
// not written to takes no memory.
const (
	longLine   = 1 << 20
	lineGrowth = 6
)

// line reads up to a newline. size is the line's whole length in bytes; it exceeds len(text) when the line
// is too long, and text is then only its beginning. text is valid until the next call.
func (s *lineStream) line() (text []byte, size int64, err error) {
	acc := s.acc[:0]
	for {
		chunk, err := s.in.ReadSlice('\n')
		size += int64(len(chunk))
		if size <= int64(s.o.MaxMessage)+1 { // the newline is not part of the message
			if size > longLine && int(size) > cap(acc) {
				acc = append(make([]byte, 0, min(cap(acc)*lineGrowth, s.o.MaxMessage+1)), acc...)
			}
			acc = append(acc, chunk...)
		} else if acc = acc[:min(len(acc), edge)]; len(acc) < edge {
			acc = append(acc, chunk[:min(len(chunk), edge-len(acc))]...)
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && size > 0:
			if s.acc = acc; cap(acc) > longLine {
				s.acc = nil // else a long message would stay in memory until the next one has come
			}
			return acc, size, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return nil, size, err
		}
	}
}

// ReadFrame returns the next message and the length of its line in bytes. The slice is valid until the
// next call.
func (s *lineStream) ReadFrame(ctx context.Context) ([]byte, int64, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if len(s.more) > 0 {
			f := s.more[0]
			s.more, s.gave = s.more[1:], false
			return f, 0, nil
		}
		line, size, err := s.line()
		s.gave = s.acc == nil
		if err != nil {
			return nil, 0, err
		}
		var j judged
		if size > int64(len(line)) {
			j = tooLong(line, nil, size, s.o.MaxMessage)
		} else if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		} else {
			if s.o.Trace != nil {
				s.o.Trace('<', line)
			}
			j = check(line, false)
		}
		switch j.verdict {
		case deliver:
			s.more = append(s.more, j.more...)
			return j.frame, size, nil
		case refuse:
			s.o.OnBad(fmt.Errorf("refused a message: %s", j.reason))
			if _, err := s.WriteFrame(ctx, errorResponse(j.id, j.code, j.reason)); err != nil {
				return nil, 0, err
			}
		case drop:
			s.o.OnBad(fmt.Errorf("dropped a message: %s", j.reason))
		}
	}
}

// given implements giver.
func (s *lineStream) given() bool { return s.gave }

// Read implements jsonrpc2.Stream.
func (s *lineStream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	return decode(ctx, s)
}

// Write implements jsonrpc2.Stream.
func (s *lineStream) Write(_ context.Context, msg jsonrpc2.Message) (int64, error) {
	return s.send(jsonrpc2.AppendMessage(make([]byte, 0, 256), msg))
}

// WriteFrame sends a message that is already encoded.
func (s *lineStream) WriteFrame(_ context.Context, data []byte) (int64, error) {
	return s.send(append(make([]byte, 0, len(data)+1), data...))
}

// send writes b as one line. It changes b: a raw line break inside the JSON would end the message early.
func (s *lineStream) send(b []byte) (int64, error) {
	oneLine(b)
	if s.o.Trace != nil {
		s.o.Trace('>', b)
	}
	return send(s.w, append(b, '\n'))
}

// Close implements jsonrpc2.Stream.
func (s *lineStream) Close() error { return closeBoth(s.w, s.r) }

// closeBoth closes w before r: closing the output tells the peer that no more requests come, and a blocked
// Read of r ends.
func closeBoth(w io.Writer, r io.Reader) error {
	var errs []error
	if c, ok := w.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	if c, ok := r.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
