package lspbridge

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeText decodes a file as tools/files does: without a byte order mark, from UTF-16 if it has a mark for that, and else, if it is not
// UTF-8, each byte as one rune (Latin-1). Both decoders must agree, or the servers check another text than the one that is edited.
func decodeText(b []byte) string {
	if rest, ok := bytes.CutPrefix(b, []byte("\xef\xbb\xbf")); ok && utf8.Valid(rest) {
		return string(rest)
	}
	// Only with a byte order mark: without one UTF-16 cannot be told from other text.
	if len(b) >= 2 && len(b)%2 == 0 {
		var order binary.ByteOrder
		switch [2]byte(b[:2]) {
		case [2]byte{0xff, 0xfe}:
			order = binary.LittleEndian
		case [2]byte{0xfe, 0xff}:
			order = binary.BigEndian
		}
		if order != nil {
			units := make([]uint16, 0, len(b)/2)
			for i := 2; i < len(b); i += 2 {
				units = append(units, order.Uint16(b[i:]))
			}
			return string(utf16.Decode(units))
		}
	}
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	// A byte above 0x7F becomes two bytes in UTF-8; most text has few of them.
	s.Grow(len(b) + len(b)/8)
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return s.String()
}
