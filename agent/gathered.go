package agent

import (
	"bytes"
	"strings"
	"unsafe"
)

// Sizes of the chunks in which a gathered text is kept, in bytes: small ones for the usual answer, large ones so that a long text has few.
const (
	firstChunk = 512
	lastChunk  = 1 << 20
)

// gathered is a text that arrives in pieces: an answer, the arguments of a call. A slice that grows is copied again and again, and at its
// last growth the old and the new one take more than twice the text; chunks stay where they are. The zero value is empty.
type gathered struct {
	chunks [][]byte
	n      int // bytes in all chunks
}

// longPart is the size in bytes from which a piece is kept as it is. Pieces of one long text then share it.
const longPart = 64 << 10

// add appends a piece. A short one is copied.
func (g *gathered) add(s string) {
	g.n += len(s)
	if len(s) >= longPart {
		g.chunks = append(g.chunks, unsafe.Slice(unsafe.StringData(s), len(s))) // it is full, so nothing is written to it
		return
	}
	for s != "" {
		last := len(g.chunks) - 1
		if last < 0 || len(g.chunks[last]) == cap(g.chunks[last]) {
			g.chunks = append(g.chunks, make([]byte, 0, min(max(firstChunk, g.n, len(s)), lastChunk)))
			last++
		}
		c := g.chunks[last]
		k := min(cap(c)-len(c), len(s))
		g.chunks[last] = append(c, s[:k]...)
		s = s[k:]
	}
}

// set replaces the text by b, which is not copied and must not be changed afterwards.
func (g *gathered) set(b []byte) { g.chunks, g.n = [][]byte{b[:len(b):len(b)]}, len(b) }

// bytes is the text in one piece. It is joined once: later calls return the same slice, which must not be changed.
func (g *gathered) bytes() []byte {
	switch len(g.chunks) {
	case 0:
		return nil
	case 1:
		c := g.chunks[0]
		return c[:len(c):len(c)]
	}
	all := make([]byte, 0, g.n)
	for _, c := range g.chunks {
		all = append(all, c...)
	}
	g.set(all)
	return all
}

// String is the text as a string, which is a copy.
func (g *gathered) String() string {
	var b strings.Builder
	b.Grow(g.n)
	for _, c := range g.chunks {
		b.Write(c)
	}
	return b.String()
}

// isBlank reports whether the text has nothing but white space.
func (g *gathered) isBlank() bool {
	for _, c := range g.chunks {
		if len(bytes.TrimSpace(c)) > 0 {
			return false
		}
	}
	return true
}
