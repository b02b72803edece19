package provider

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// template recognises events that differ from an earlier one only in one string (and a running number): nearly all of a stream. Such an
// event is recognised by comparing bytes, many times faster than decoding JSON. It is exact: the bytes around the string are the same,
// and the string is a JSON string, so the event means the same with another text. Every event that is decoded in full replaces or clears
// the template.
type template struct {
	a, b, c []byte // the event's bytes: a, the string, b, c — with the number between a and b, or between b and c
	number  numberPlace
	apply   func(text string) error
	off     bool // tests switch it off to compare with full decoding
}

// numberPlace says where an event's running number is: the Responses API counts its events.
type numberPlace int

const (
	noNumber     numberPlace = iota // a string c
	numberBefore                    // a number b string c
	numberAfter                     // a string b number c
)

var sequenceNumber = []byte(`"sequence_number":`)

// clear forgets the template; every full decode begins with it.
func (t *template) clear() { t.apply = nil }

// learn makes data the template; raw is the string in it, with its quotes, as it was decoded. A string that occurs
// twice in the event teaches nothing.
func (t *template) learn(data, raw []byte, apply func(text string) error) {
	// With fewer than three bytes the string is empty, and would be found everywhere.
	if t.off || len(raw) < 3 || raw[0] != '"' {
		return
	}
	at := bytes.Index(data, raw)
	if at < 0 || bytes.LastIndex(data, raw) != at {
		return
	}
	from, to := at+1, at+len(raw)-1 // inside the quotes
	t.number, t.apply = noNumber, apply
	a, b, c := data[:from], []byte(nil), data[to:]
	// A second "sequence_number" may be part of a text, so then no number is expected.
	if n := bytes.Index(data, sequenceNumber); n >= 0 && bytes.LastIndex(data, sequenceNumber) == n {
		start := n + len(sequenceNumber)
		end := start
		for end < len(data) && data[end] >= '0' && data[end] <= '9' {
			end++
		}
		switch {
		// No digits, or nothing after them: the template is made without a number.
		case end == start || end == len(data):
		case end <= at:
			t.number, a, b = numberBefore, data[:start], data[end:from]
		case n >= to:
			t.number, b, c = numberAfter, data[to:start], data[end:]
		}
	}
	// Copies, because the reader uses its buffer again.
	t.a, t.b, t.c = append(t.a[:0], a...), append(t.b[:0], b...), append(t.c[:0], c...)
}

// try applies an event that fits; ok is false when it must be decoded in full.
func (t *template) try(data []byte) (ok bool, err error) {
	if t.apply == nil {
		return false, nil
	}
	rest, ok := bytes.CutPrefix(data, t.a)
	if !ok {
		return false, nil
	}
	if t.number == numberBefore {
		if rest = skipNumber(rest); rest == nil {
			return false, nil
		}
		if rest, ok = bytes.CutPrefix(rest, t.b); !ok {
			return false, nil
		}
	}
	n, plain := stringEnd(rest)
	if n < 0 {
		return false, nil
	}
	text := rest[:n]
	rest = rest[n:]
	if t.number == numberAfter {
		if rest, ok = bytes.CutPrefix(rest, t.b); !ok {
			return false, nil
		}
		if rest = skipNumber(rest); rest == nil {
			return false, nil
		}
	}
	if !bytes.Equal(rest, t.c) {
		return false, nil
	}
	s := string(text)
	if !plain {
		// The string with its quotes is decoded by encoding/json: escapes are rare and worth no code of their own.
		quoted := data[len(data)-len(rest)-n-1:]
		if t.number == numberAfter {
			quoted = data[len(t.a)-1:]
		}
		if json.Unmarshal(quoted[:n+2], &s) != nil {
			return false, nil
		}
	}
	// an empty piece is not an event, as in a full decode
	if s == "" {
		return true, nil
	}
	return true, t.apply(s)
}

// skipNumber cuts a JSON integer off b; nil when there is none.
func skipNumber(b []byte) []byte {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	// JSON has no leading zeros, and 18 digits fit an int64.
	if n == 0 || n > 18 || b[0] == '0' && n > 1 {
		return nil
	}
	return b[n:]
}

// stringEnd is the length in bytes of a JSON string's inside at the beginning of b, and whether those
// bytes are its value (no escapes, valid UTF-8); -1 when it does not end or is not JSON.
func stringEnd(b []byte) (n int, plain bool) {
	plain = true
	high := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			if high && !utf8.Valid(b[:i]) {
				plain = false
			}
			return i, plain
		case c == '\\':
			plain = false
			// the escaped byte may be a quote
			i++
		case c < 0x20:
			return -1, false
		case c >= utf8.RuneSelf:
			high = true
		}
	}
	return -1, false
}
