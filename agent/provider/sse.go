package provider

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxEvent bounds one SSE event in bytes. Real events of 20 MB pass; a server that never ends an event cannot fill the memory.
const maxEvent = 64 << 20

var errEventTooLong = errors.New("an event of the stream is longer than 64 MiB")

// sseReader reads server-sent events: LF, CRLF or CR, comments, several data lines. An event is returned as soon as its blank line has
// arrived. It allocates only when an event outgrows its buffers.
type sseReader struct {
	r   io.Reader
	buf []byte
	// fill moves the unread bytes to the front of buf, so slices of it are valid until the next read only.
	start, end int // unread bytes of buf
	seen       int // bytes after start that hold no newline
	data       []byte
	has        bool // data lines were seen, even empty ones
	eol        byte // what ends a line; 0: the first end has not come
	err        error
	pooled     *[sseBuffer]byte // what buf began as
}

const sseBuffer = 32 << 10 // bytes

// sseBuffers are the buffers of streams that are over. With twenty sessions at work, new ones for each step would keep the garbage
// collector busy.
var sseBuffers = sync.Pool{New: func() any { return new([sseBuffer]byte) }}

// newSSEReader takes a buffer from the pool; close gives it back.
func newSSEReader(r io.Reader) *sseReader {
	b := sseBuffers.Get().(*[sseBuffer]byte)
	return &sseReader{r: r, buf: b[:], pooled: b}
}

// close gives the buffer back; what next returned must not be used after it.
func (s *sseReader) close() {
	if s.pooled != nil {
		sseBuffers.Put(s.pooled)
	}
	// A reader that is used after close finds the end of the stream instead of another stream's bytes.
	*s = sseReader{err: io.EOF}
}

// next returns the data of the next event, valid until the next call. Some servers leave out the blank line after the last event: at the
// end of the stream such an event is returned with last set. The call after it returns the error: io.EOF, or what cut the stream.
func (s *sseReader) next() (data []byte, last bool, err error) {
	s.data, s.has = s.data[:0], false
	for {
		line, ok := s.line()
		if !ok {
			if s.has && len(s.data) > 0 {
				s.has = false
				return s.take(), true, nil
			}
			return nil, true, s.err
		}
		if len(line) == 0 {
			// An event without data is a keep-alive.
			if s.has && len(s.data) > 0 {
				return s.take(), false, nil
			}
			s.has = false
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data"))
		if !ok {
			// The lines event, id, retry and comments are passed over: the formats repeat in the data what matters. A line that begins
			// with { is data without its field name: an error as plain JSON, whose message must be found.
			if line[0] != '{' {
				continue
			}
			value = line
		} else if len(value) > 0 {
			if value[0] != ':' {
				continue // a field that only begins with data
			}
			value = bytes.TrimPrefix(value[1:], []byte(" "))
		}
		if !s.has && len(value) > longPiece {
			// It takes the buffer along, in which little else has come.
			rest := s.buf[s.start:s.end]
			s.buf = make([]byte, max(sseBuffer, len(rest)))
			s.start, s.end = 0, copy(s.buf, rest)
			s.data, s.has = value[:len(value):len(value)], true
			continue
		}
		if s.has {
			s.data = append(s.data, '\n')
		}
		s.has = true
		if len(s.data)+len(value) > maxEvent {
			s.err = errEventTooLong
			s.has = false
			return nil, true, s.err
		}
		s.data = append(s.data, value...)
	}
}

// take returns the data. A long one is not kept for the next event.
func (s *sseReader) take() []byte {
	data := s.data
	if cap(data) > longPiece {
		s.data = nil
	}
	return data
}

// first returns the first byte that is not white space or a byte order mark, without reading it; 0 at the end of the stream. run chooses
// by it how the body is read.
func (s *sseReader) first() byte {
	for {
		s.start += len(s.buf[s.start:s.end]) - len(bytes.TrimLeft(s.buf[s.start:s.end], " \t\r\n"))
		rest := s.buf[s.start:s.end]
		mark := min(len(rest), len(byteOrderMark))
		switch {
		// The mark may be cut between two reads: what has come of it is compared.
		case mark > 0 && string(rest[:mark]) == byteOrderMark[:mark]:
			if mark == len(byteOrderMark) {
				s.start += mark
				continue
			}
		case len(rest) > 0:
			return rest[0]
		}
		if s.err != nil {
			return 0
		}
		s.fill()
	}
}

const byteOrderMark = "\ufeff"

// lineEnd finds the end of the next line; -1 when it has not come. The first line decides what ends all lines: a lone CR inside CRLF text
// must not cut a line.
func (s *sseReader) lineEnd(b []byte) int {
	// WHATWG HTML, "Parsing an event stream": lines end with CRLF, LF or CR.
	if s.eol == 0 {
		i := bytes.IndexAny(b, "\r\n")
		switch {
		case i < 0, b[i] == '\r' && i+1 == len(b) && s.err == nil: // the next byte tells
			return -1
		case b[i] == '\r' && (i+1 == len(b) || b[i+1] != '\n'):
			s.eol = '\r'
		default:
			s.eol = '\n'
		}
	}
	return bytes.IndexByte(b, s.eol)
}

// line returns the next line without its end; ok is false when the stream has ended and err is set.
func (s *sseReader) line() ([]byte, bool) {
	for {
		if i := s.lineEnd(s.buf[s.start+s.seen : s.end]); i >= 0 {
			line := s.buf[s.start : s.start+s.seen+i]
			s.start += s.seen + i + 1
			s.seen = 0
			return bytes.TrimSuffix(line, []byte("\r")), true
		}
		// A CR at the very end is looked at again: the next byte tells whether it is half of a CRLF.
		if s.seen = s.end - s.start; s.eol == 0 && s.seen > 0 && s.buf[s.end-1] == '\r' {
			s.seen--
		}
		if s.err != nil {
			s.seen = s.end - s.start
			if s.seen == 0 {
				return nil, false
			}
			line := s.buf[s.start:s.end]
			s.start, s.seen = s.end, 0
			return line, true
		}
		s.fill()
	}
}

// fill reads more into buf and sets err at the end of the stream. Unread bytes move to the front; the buffer grows only when an event
// does not fit, and a grown one does not go back to the pool.
func (s *sseReader) fill() {
	if s.start > 0 {
		copy(s.buf, s.buf[s.start:s.end])
		s.end -= s.start
		s.start = 0
	}
	if s.end == len(s.buf) {
		if len(s.buf) > maxEvent {
			s.err = errEventTooLong
			s.start, s.end, s.seen = 0, 0, 0
			return
		}
		n := 2 * len(s.buf)
		if n > longPiece {
			n = min(4*len(s.buf), len(s.buf)+24<<20) // each step leaves a buffer as garbage; an event of 32 MB fits into 40
		}
		buf := make([]byte, min(n, maxEvent+sseBuffer))
		copy(buf, s.buf)
		s.buf = buf
	}
	// io.Reader allows (0, nil), and some decompressors do so.
	for range 100 { // a reader that returns nothing, for ever, is broken
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err != nil {
			s.err = err
			return
		}
		if n > 0 {
			return
		}
	}
	s.err = io.ErrNoProgress
}
