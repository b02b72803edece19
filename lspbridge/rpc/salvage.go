package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// salvage reads a message whose header lies about its length: some servers count characters where bytes are meant, and
// some count what they do not send. ok is false when the body is broken in another way.
func (s *headerStream) salvage() (j judged, ok bool, err error) {
	values := json.NewDecoder(bytes.NewReader(s.body))
	var first json.RawMessage
	if values.Decode(&first) == nil && first[0] == '{' { // too long: the next message begins in it
		if j = check(first, true); j.verdict == deliver {
			s.unread(s.body[values.InputOffset():])
			return j, true, nil
		}
	}
	for most := 4 * len(s.body); cutShort(s.body) && len(s.body) < most; {
		more, err := s.in.ReadSlice('}')
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

// cutShort reports JSON that is right as far as it goes.
func cutShort(b []byte) bool {
	var whole json.RawMessage
	var e *json.SyntaxError
	return errors.As(json.Unmarshal(b, &whole), &e) && e.Offset >= int64(len(b))
}

// unread puts b back in front of what is read next.
func (s *headerStream) unread(b []byte) {
	waiting, _ := s.in.Peek(s.in.Buffered())
	s.src.front = append(bytes.Clone(b), append(waiting[:len(waiting):len(waiting)], s.src.front...)...)
	s.in.Reset(&s.src)
}

// source is a reader with something in front of it.
type source struct {
	front []byte
	r     io.Reader
}

func (s *source) Read(b []byte) (int, error) {
	if len(s.front) == 0 {
		return s.r.Read(b)
	}
	n := copy(b, s.front)
	s.front = s.front[n:]
	return n, nil
}
