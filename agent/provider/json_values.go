package provider

import (
	"encoding/json"
	"io"
)

// jsonValues reads an answer that is not an event stream: one JSON value, a list of them, or several one after the other. Some gateways
// send those where a stream was asked for.
type jsonValues struct {
	dec  *json.Decoder
	list bool // within the brackets of a list
}

// newJSONValues continues where s stopped; first is the first byte that s has not used.
func newJSONValues(s *sseReader, first byte) *jsonValues {
	// The limit holds for the whole answer, not for one value.
	v := &jsonValues{dec: json.NewDecoder(io.LimitReader(unread{s}, maxEvent))}
	if first == '[' {
		_, _ = v.dec.Token()
		v.list = true
	}
	return v
}

// next has the contract of sseReader.next: the next value, or an error, which is io.EOF after the last one. last is only true together
// with an error, because a value that was decoded is whole.
func (v *jsonValues) next() (data []byte, last bool, err error) {
	if v.list && !v.dec.More() {
		if _, err := v.dec.Token(); err != nil && err != io.EOF {
			return nil, true, notJSON(err)
		}
		v.list = false
	}
	var raw json.RawMessage
	if err := v.dec.Decode(&raw); err != nil {
		return nil, true, notJSON(err)
	}
	return raw, false, nil
}

// notJSON replaces a syntax error by errBadEvent; other errors are those of the connection and stay.
func notJSON(err error) error {
	if _, ok := err.(*json.SyntaxError); ok {
		return errBadEvent
	}
	return err
}

// unread reads what an sseReader has buffered, then the rest of its source: the reader has looked at the first bytes to find out what the
// body is.
type unread struct{ s *sseReader }

func (u unread) Read(p []byte) (int, error) {
	if s := u.s; s.start < s.end {
		n := copy(p, s.buf[s.start:s.end])
		s.start += n
		return n, nil
	} else if s.err != nil {
		return 0, s.err
	}
	return u.s.r.Read(p)
}
