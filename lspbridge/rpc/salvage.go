package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// salvage recovers a message whose header gives a wrong length. Some servers count characters where LSP
// counts bytes (the length is then too short), some count more than they send. ok is false when the body
// is broken in another way; err is an error of the connection.
func (s *headerStream) salvage() (j judged, ok bool, err error) {
	// Too long: a whole message, and after it the beginning of the next one's header.
	values := json.NewDecoder(bytes.NewReader(s.body))
	var first json.RawMessage
	if values.Decode(&first) == nil && first[0] == '{' {
		if j = check(first, true); j.verdict == deliver {
			s.unread(s.body[values.InputOffset():])
			return j, true, nil
		}
	}
	// Too short: read on, one closing brace at a time, until the JSON is complete. Four bytes is the
	// longest UTF-8 encoding of a character, so a length in characters is short by at most that factor.
	for most := 4 * len(s.body); cutShort(s.body) && len(s.body) < most; {
		more, err := s.in.ReadSlice('}')
		// The next message has begun: this one is broken, but the next one can still be read.
		if i := bytes.Index(more, []byte("Content-Length: ")); i >= 0 {
			s.unread(more[i:])
			return judged{}, false, nil
		}
		s.body = append(s.body, more...)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return judged{}, false, err
		}
		if j = check(s.body, true); j.verdict == deliver {
			return j, true, nil
		}
	}
	return judged{}, false, nil
}

// cutShort reports JSON that is valid up to its end but incomplete.
func cutShort(b []byte) bool {
	var whole json.RawMessage
	var e *json.SyntaxError
	return errors.As(json.Unmarshal(b, &whole), &e) && e.Offset >= int64(len(b))
}

// unread puts b back in front of the input, before what the bufio.Reader has already buffered.
func (s *headerStream) unread(b []byte) {
	waiting, _ := s.in.Peek(s.in.Buffered())
	s.src.front = append(bytes.Clone(b), append(waiting[:len(waiting):len(waiting)], s.src.front...)...)
	s.in.Reset(&s.src)
}

// source is a reader that returns front before it reads r.
type source struct {
	front []byte
	r     io.Reader
}

// Read never mixes the two: a short read is allowed, and the caller comes back.
func (s *source) Read(b []byte) (int, error) {
	if len(s.front) == 0 {
		return s.r.Read(b)
	}
	n := copy(b, s.front)
	s.front = s.front[n:]
	return n, nil
}
