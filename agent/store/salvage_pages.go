package store

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
)

// pageSize4k is the page size of our files, SQLite's own choice since 2016.
const pageSize4k = 4096

// pages is a database file that is read page by page, without SQLite: rows whose table can no longer be reached are still on their pages.
// The layout is that of SQLite's file format, sections 1.6 (b-tree pages), 2.1 (records) and 1.5 (overflow).
type pages struct {
	data []byte
}

// openPages reads the whole file into memory, which is acceptable because it happens once, after damage.
func openPages(path string) (*pages, error) {
	data, err := os.ReadFile(path)
	return &pages{data}, err
}

// page is the 1-based page n, nil when the file has none.
func (p *pages) page(n uint32) []byte {
	if n == 0 || int64(n)*pageSize4k > int64(len(p.data)) {
		return nil
	}
	return p.data[(int64(n)-1)*pageSize4k:][:pageSize4k]
}

// ours reports that the bytes are pages of a database, as far as that can be told when the first page is lost: most pages begin like one,
// and at least one holds rows. A text file at our path is none and is left alone.
func (p *pages) ours() bool {
	if bytes.HasPrefix(p.data, []byte("SQLite format 3\x00")) {
		return true
	}
	all, like, leaves := 0, 0, 0
	// Section 1.6: 0x0d is a leaf of a table, 0x05 an inner page of one; 0x02 and 0x0a are pages of an index. Overflow pages begin with
	// 0.
	for n := uint32(2); p.page(n) != nil; n++ {
		all++
		switch p.page(n)[0] {
		case 0x0d:
			leaves++
			like++
		case 0x02, 0x05, 0x0a, 0x00:
			like++
		}
	}
	return leaves > 0 && 2*like > all
}

// rows yields the key and the columns of each row on each leaf page of a table with integer keys. Cells that do not read as a record are
// skipped.
func (p *pages) rows(yield func(key int64, columns []any)) {
	for n := uint32(1); p.page(n) != nil; n++ {
		// Page 1 begins with the file's header of 100 bytes.
		page, head := p.page(n), 0
		if n == 1 {
			head = 100
		}
		if page[head] != 0x0d {
			continue
		}
		// The header of a leaf has 8 bytes, with the number of cells at offset 3; the offsets of the cells follow, 2 bytes each.
		cells := int(binary.BigEndian.Uint16(page[head+3:]))
		for i := range cells {
			at := head + 8 + 2*i
			if at+2 > len(page) {
				break
			}
			if key, payload, ok := p.cell(page, int(binary.BigEndian.Uint16(page[at:]))); ok {
				if columns, ok := record(payload); ok {
					yield(key, columns)
				}
			}
		}
	}
}

// cell reads the cell at an offset of a page: its key and its whole payload, with the overflow pages that hold the rest.
func (p *pages) cell(page []byte, at int) (key int64, payload []byte, ok bool) {
	if at < 8 || at >= len(page) {
		return 0, nil, false
	}
	// Each number is checked against the size of the file: damaged bytes may say anything.
	size, n := varint(page[at:])
	at += n
	if n == 0 || size < 0 || size > int64(len(p.data)) || at >= len(page) {
		return 0, nil, false
	}
	key, n = varint(page[at:])
	at += n
	// Section 1.6, with U the page size: U-35 and (U-12)*32/255-23 bytes of a payload are on the leaf itself.
	const most, least = pageSize4k - 35, (pageSize4k-12)*32/255 - 23
	local := int(size)
	if size > most {
		local = least + int((size-least)%(pageSize4k-4))
		if local > most {
			local = least
		}
	}
	if n == 0 || at+local > len(page) {
		return 0, nil, false
	}
	payload = bytes.Clone(page[at : at+local])
	if int64(local) == size {
		return key, payload, true
	}
	if at+local+4 > len(page) {
		return 0, nil, false
	}
	next := binary.BigEndian.Uint32(page[at+local:])
	for int64(len(payload)) < size { // ends: each page adds a byte at least, and size is bounded
		more := p.page(next)
		if more == nil {
			return 0, nil, false
		}
		next = binary.BigEndian.Uint32(more)
		payload = append(payload, more[4:min(len(more), 4+int(size)-len(payload))]...)
	}
	return key, payload, true
}

// record decodes a payload (section 2.1) into int64, float64, string, []byte and nil.
func record(b []byte) (columns []any, ok bool) {
	head, n := varint(b)
	// Our rows have eight columns at most, whose header is far shorter than 64 bytes.
	if n == 0 || head < int64(n) || head > int64(len(b)) || head > 64 {
		return nil, false
	}
	body := b[head:]
	for types := b[n:head]; len(types) > 0; {
		kind, n := varint(types)
		if n == 0 {
			return nil, false
		}
		types = types[n:]
		size := int64(0)
		// The serial types: 1 to 6 are integers, 7 is a float, 8 and 9 are the constants 0 and 1, from 12 on blobs (even) and texts
		// (odd). 10 and 11 do not occur in files.
		switch {
		case kind >= 12:
			size = (kind - 12) / 2
		case kind == 7:
			size = 8
		case kind >= 1 && kind <= 6:
			size = [...]int64{0, 1, 2, 3, 4, 6, 8}[kind]
		case kind == 10, kind == 11:
			return nil, false
		}
		if size > int64(len(body)) {
			return nil, false
		}
		value := body[:size]
		body = body[size:]
		switch {
		case kind == 0:
			columns = append(columns, nil)
		case kind == 8, kind == 9:
			columns = append(columns, kind-8)
		case kind <= 6:
			// Big-endian two's complement: the first byte has the sign.
			v := int64(int8(value[0]))
			for _, c := range value[1:] {
				v = v<<8 | int64(c)
			}
			columns = append(columns, v)
		case kind == 7:
			columns = append(columns, math.Float64frombits(binary.BigEndian.Uint64(value)))
		case kind%2 == 0:
			columns = append(columns, value)
		default:
			columns = append(columns, string(value))
		}
	}
	return columns, len(body) == 0
}

// varint is SQLite's variable-length integer: seven bits in each byte, eight in the ninth. n is its length in bytes, 0 when it is cut
// off.
func varint(b []byte) (v int64, n int) {
	for i := range min(len(b), 9) {
		if i == 8 {
			return v<<8 | int64(b[i]), 9
		}
		v = v<<7 | int64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
