package textutil

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Tree decodes JSON as a json.Decoder with UseNumber does: to map[string]any, []any, string, json.Number, bool and nil. It is for long
// texts: a Decoder first copies everything into a buffer that doubles, and a string with escapes is made twice. data must be valid
// (json.Valid); else Tree may panic.
func Tree(data []byte) any {
	r := treeReader{b: data}
	return r.value()
}

// treeReader reads valid JSON from the byte i on.
type treeReader struct {
	b []byte
	i int
}

// next returns the next byte that is not white space, without reading it.
func (r *treeReader) next() byte {
	for {
		switch c := r.b[r.i]; c {
		case ' ', '\t', '\r', '\n':
			r.i++
		default:
			return c
		}
	}
}

func (r *treeReader) value() any {
	switch r.next() {
	case '{':
		m := map[string]any{}
		r.i++
		for r.next() != '}' {
			key := r.text()
			r.next() // the colon
			r.i++
			m[key] = r.value()
			if r.next() == ',' {
				r.i++
			}
		}
		r.i++
		return m
	case '[':
		list := []any{}
		r.i++
		for r.next() != ']' {
			list = append(list, r.value())
			if r.next() == ',' {
				r.i++
			}
		}
		r.i++
		return list
	case '"':
		return r.text()
	case 't':
		r.i += len("true")
		return true
	case 'f':
		r.i += len("false")
		return false
	case 'n':
		r.i += len("null")
		return nil
	}
	from := r.i
	for r.i < len(r.b) && strings.IndexByte("+-.0123456789eE", r.b[r.i]) >= 0 {
		r.i++
	}
	return json.Number(r.b[from:r.i])
}

// text reads a string.
func (r *treeReader) text() string {
	r.next()
	r.i++
	end := r.i
	for r.b[end] != '"' {
		if r.b[end] == '\\' {
			end++
		}
		end++
	}
	raw := r.b[r.i:end]
	r.i = end + 1
	return unquote(raw)
}

// Raw is a JSON value as it stands in the message that is decoded, of which it is a part: unlike json.RawMessage it is not a copy. It is
// for values that are looked at before the message changes, and only for json.Unmarshal: a Decoder uses its buffer again.
type Raw []byte

// UnmarshalJSON implements json.Unmarshaler.
func (r *Raw) UnmarshalJSON(value []byte) error {
	*r = value
	return nil
}

// Text is the value of a valid JSON string, with its quotation marks; "" for anything else.
func Text[T ~[]byte](quoted T) string {
	n := len(quoted)
	if n < 2 || quoted[0] != '"' {
		return ""
	}
	return unquote([]byte(quoted[1 : n-1]))
}

// unquote is the value of a JSON string, given without its quotation marks. As in encoding/json, what is not UTF-8 or half of a surrogate
// pair becomes U+FFFD.
func unquote(raw []byte) string {
	var sb strings.Builder
	sb.Grow(len(raw))
	start := 0 // raw[start:i] is as it is in the string
	for i := 0; i < len(raw); {
		c := raw[i]
		if c >= utf8.RuneSelf {
			if x, n := utf8.DecodeRune(raw[i:]); x != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			sb.Write(raw[start:i])
			sb.WriteRune(utf8.RuneError)
			i++
			start = i
			continue
		}
		if c != '\\' {
			i++
			continue
		}
		sb.Write(raw[start:i])
		switch e := raw[i+1]; e {
		case 'u':
			x := hex4(raw[i+2:])
			i += 6
			if utf16.IsSurrogate(x) {
				pair := rune(utf8.RuneError)
				if i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
					pair = utf16.DecodeRune(x, hex4(raw[i+2:]))
				}
				if x = pair; pair != utf8.RuneError {
					i += 6
				}
			}
			sb.WriteRune(x)
			start = i
			continue
		case 'b':
			sb.WriteByte('\b')
		case 'f':
			sb.WriteByte('\f')
		case 'n':
			sb.WriteByte('\n')
		case 'r':
			sb.WriteByte('\r')
		case 't':
			sb.WriteByte('\t')
		default: // the character itself
			sb.WriteByte(e)
		}
		i += 2
		start = i
	}
	sb.Write(raw[start:])
	return sb.String()
}

// hex4 is the number that four hexadecimal digits mean.
func hex4(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 32)
	return rune(n)
}
