//go:build unix

package files

import (
	"bytes"
	"path/filepath"
	"testing"
)

// What one atomic write of a file of 590 KB costs here; most of it is the disk's flush.
func BenchmarkCommit(b *testing.B) {
	dir := b.TempDir()
	x, y := bytes.Repeat([]byte("x"), 590<<10), bytes.Repeat([]byte("y"), 590<<10)
	p := filepath.Join(dir, "a")
	if err := Commit(bg, []Op{{Kind: Write, Path: p, Data: x}}, nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Commit(bg, []Op{{Kind: Write, Path: p, Data: y, Base: Hash(x)}}, nil); err != nil {
			b.Fatal(err)
		}
		x, y = y, x
	}
}
