package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// ErrUnencodable is the error for a text with a character that its file's encoding cannot represent, such as "€" in Latin-1.
var ErrUnencodable = errors.New("cannot be written in the file's encoding")

var (
	// Byte order marks (The Unicode Standard, section 23.8). UTF-16 is recognized by its mark only.
	bom8  = "\xEF\xBB\xBF"
	bomLE = "\xFF\xFE"
	bomBE = "\xFE\xFF"
)

// Decode reads a file's bytes as text. Encode with the returned encoding gives exactly the same bytes back, whatever they are: what
// cannot be decoded without loss is read as Bytes. It does not guess from letter frequencies, since a wrong guess would write other
// bytes than it read.
func Decode(b []byte) (string, Encoding) { return decode(string(b)) }

// decode is Decode for bytes that are in a string already. UTF-8 text shares its memory.
func decode(b string) (string, Encoding) {
	switch {
	case strings.HasPrefix(b, bom8) && utf8.ValidString(b[3:]):
		return b[3:], UTF8BOM
	case strings.HasPrefix(b, bomLE):
		if s, ok := decode16([]byte(b[2:]), binary.LittleEndian); ok {
			return s, UTF16LE
		}
	case strings.HasPrefix(b, bomBE):
		if s, ok := decode16([]byte(b[2:]), binary.BigEndian); ok {
			return s, UTF16BE
		}
	}
	if utf8.ValidString(b) {
		return b, UTF8
	}
	var sb strings.Builder
	sb.Grow(len(b) + len(b)/8)
	for i := range len(b) {
		// Each byte as the code point of its number, which is Latin-1.
		sb.WriteRune(rune(b[i]))
	}
	return sb.String(), Bytes
}

// decode16 refuses what Encode would not give back unchanged: odd lengths and lone surrogates. It also refuses UTF-32, whose mark
// FF FE 00 00 begins with that of UTF-16.
func decode16(b []byte, order binary.ByteOrder) (string, bool) {
	if len(b)%2 != 0 || len(b) >= 2 && b[0] == 0 && b[1] == 0 {
		return "", false
	}
	var sb strings.Builder
	sb.Grow(len(b))
	for i := 0; i < len(b); i += 2 {
		u := order.Uint16(b[i:])
		if !utf16.IsSurrogate(rune(u)) {
			sb.WriteRune(rune(u))
			continue
		}
		if i+4 > len(b) {
			return "", false
		}
		r := utf16.DecodeRune(rune(u), rune(order.Uint16(b[i+2:])))
		if r == utf8.RuneError {
			return "", false
		}
		sb.WriteRune(r)
		i += 2
	}
	return sb.String(), true
}

// CheckEncodable returns the error of Encode, without the bytes: UTF-8 takes every text.
func CheckEncodable(text string, e Encoding) error {
	switch e {
	case "", UTF8, UTF8BOM, LinkTarget:
		return nil
	}
	_, err := Encode(text, e)
	return err
}

// Encode writes a text in an encoding; an empty encoding is UTF-8. The bytes must not be changed: they may be those of the text itself. The
// error matches ErrUnencodable and says which character it is and where.
func Encode(text string, e Encoding) ([]byte, error) {
	switch e {
	case UTF8BOM:
		return append([]byte(bom8), text...), nil
	case UTF16LE, UTF16BE:
		var order binary.AppendByteOrder = binary.LittleEndian
		b := make([]byte, 0, 2*len(text)+2)
		if e == UTF16BE {
			order = binary.BigEndian
			b = append(b, bomBE...)
		} else {
			b = append(b, bomLE...)
		}
		for i, r := range text {
			// range gives RuneError for a stray byte and for a U+FFFD in the text; only the first has width 1.
			if r == utf8.RuneError {
				if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
					return nil, fmt.Errorf("line %d contains bytes that are not text: %w (%s)", 1+strings.Count(text[:i], "\n"), ErrUnencodable, e)
				}
			}
			if r >= 0x10000 {
				hi, lo := utf16.EncodeRune(r)
				b = order.AppendUint16(order.AppendUint16(b, uint16(hi)), uint16(lo))
			} else {
				b = order.AppendUint16(b, uint16(r))
			}
		}
		return b, nil
	case LinkTarget:
		return []byte(text), nil
	case Bytes:
		b := make([]byte, 0, len(text))
		for i, r := range text {
			if r > 0xFF {
				return nil, fmt.Errorf("%q (%U, line %d) %w: it is not UTF-8, so only the characters U+0000 to U+00FF fit; write it without that character, or convert the file to UTF-8 first",
					r, r, 1+strings.Count(text[:i], "\n"), ErrUnencodable)
			}
			b = append(b, byte(r))
		}
		return b, nil
	}
	if text == "" {
		return []byte{}, nil // not nil, which is no bytes for a Move
	}
	return unsafe.Slice(unsafe.StringData(text), len(text)), nil // a long text is not copied
}

// EOL is how a text ends its lines.
type EOL string

// The line endings of a text; None is a text without any.
const (
	None  EOL = ""
	LF    EOL = "\n"
	CRLF  EOL = "\r\n"
	Mixed EOL = "mixed"
)

// EOLOf looks at every line ending of the text. A CR alone is none, as in Git.
func EOLOf(text string) EOL {
	crlf := strings.Count(text, "\r\n")
	all := strings.Count(text, "\n")
	switch {
	case all == 0:
		return None
	case crlf == 0:
		return LF
	case crlf == all:
		return CRLF
	}
	return Mixed
}
