package provider

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxEvent bounds one SSE event in bytes. A 20 MB delta passes; a server that never ends an event does not eat the
// machine.
const maxEvent = 64 << 20

var errEventTooLong = errors.New("an event of the stream is longer than 64 MiB")

// sseReader reads server-sent events: LF, CRLF or CR, comments, several data lines. It holds nothing back: an event is
// returned at its blank line. It allocates only when an event outgrows its buffers.
type sseReader struct {
	r   io.Reader
	buf []byte
	// buf is compacted by fill, so slices of it are valid until the next read only
	start, end int // unread bytes of buf
	seen       int // bytes after start that hold no newline
	data       []byte
	has        bool // data lines were seen, even empty ones
	eol        byte // what ends a line; 0: the first end has not come
	err        error
	pooled     *[sseBuffer]byte // what buf began as
}

const sseBuffer = 32 << 10 // bytes

// sseBuffers are those of streams that are over: twenty sessions' steps would make the collector run for them alone.
var sseBuffers = sync.Pool{New: func() any { return new([sseBuffer]byte) }}

// newSSEReader takes a buffer from the pool; close gives it back.
func newSSEReader(r io.Reader) *sseReader {
	b := sseBuffers.Get().(*[sseBuffer]byte)
	return &sseReader{r: r, buf: b[:], pooled: b}
}

// close gives the buffer back; nothing that next returned may be used after it.
func (s *sseReader) close() {
	if s.pooled != nil {
		sseBuffers.Put(s.pooled)
	}
	// A reader that is used after close finds the end of the stream instead of another stream's bytes.
	*s = sseReader{err: io.EOF}
}

// next returns the data of the next event; it is valid until the next call. At the end of the stream an event
// without its blank line is returned too (some servers leave it out after the last one), with last set, and then
// the error: io.EOF, or what cut the stream.
func (s *sseReader) next() (data []byte, last bool, err error) {
	s.data, s.has = s.data[:0], false
	for {
		line, ok := s.line()
		if !ok {
			if s.has && len(s.data) > 0 {
				s.has = false
				return s.data, true, nil
			}
			return nil, true, s.err
		}
		if len(line) == 0 {
			// an event without data is a comment or a keep-alive
			if s.has && len(s.data) > 0 {
				return s.data, false, nil
			}
			s.has = false
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data"))
		if !ok {
			// event, id, retry and comments: the formats repeat what matters in the data. A body that is no event
			// stream at all (an error as plain JSON) is taken as data, so that its message is found.
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

// first is the first byte that is not white space or a byte order mark; it stays unread. 0 when there
// is none.
// run chooses by it how the body is read, before any event.
func (s *sseReader) first() byte {
	for {
		s.start += len(s.buf[s.start:s.end]) - len(bytes.TrimLeft(s.buf[s.start:s.end], " \t\r\n"))
		rest := s.buf[s.start:s.end]
		mark := min(len(rest), len(byteOrderMark))
		switch {
		// The mark may be cut between two reads: it is compared as far as it has come.
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

// lineEnd finds the end of the next line. The first line decides what ends all lines, since a lone CR
// inside CRLF text would cut lines.
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

// fill reads more into buf, which grows only when an event does not fit. It sets err at the end of the stream.
// Unread bytes move to the front first; a buffer that grew stays with the reader and does not go back to the pool.
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
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
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
