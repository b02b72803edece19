package trigram

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Sizes of a writer's work.
const (
	groupText = 8 << 10 // bytes of text after which a group is full: neighbours share most trigrams, so groups keep the lists short
	groupDocs = 64      // documents after which it is full
	runPairs  = 1 << 20 // pairs of a trigram and a group that are sorted at once, 8 bytes each, twice
)

// Writer writes a segment. Documents come folder by folder:
//
//	w, err := trigram.NewWriter(path, root)
//	w.Text(text)                    // as often as needed, in pieces
//	w.Doc("src", "a.go", state)     // names what Text was given since the last document
//	err = w.Close()                 // or Abort
//
// The file appears under its name when Close has written all of it. What does not fit into memory is sorted in files beside it.
type Writer struct {
	path, root string
	out        *os.File // the temporary file that becomes path
	err        error    // the first one; it ends all further work

	last    []uint32 // by trigram: one more than the group that has it already
	carry   uint32   // the last two bytes of the text
	carried int      // how many of them there are
	group   uint32
	text    int // bytes of the group so far
	docs    int // documents of the group so far
	pairs   []uint64
	spare   []uint64
	runs    []*os.File // sorted pairs that did not fit

	table  []byte // the documents of the finished folders
	folder string
	count  uint64 // documents of folder
	entry  []byte // the documents of folder
	total  int64  // documents
}

// NewWriter begins a segment of the documents of a root.
func NewWriter(path, root string) (*Writer, error) {
	out, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*.tmp") // mode 0600
	if err != nil {
		return nil, err
	}
	return &Writer{path: path, root: root, out: out, last: make([]uint32, 1<<24)}, nil
}

// Text adds a piece of the present document's text.
func (w *Writer) Text(p []byte) {
	c, n := w.carry, w.carried
	for _, b := range p {
		if b == '\n' { // no match crosses a line end
			n = 0
			continue
		}
		c = (c<<8 | uint32(b)) & 0xffffff
		if n++; n < 3 {
			continue
		}
		if w.last[c] != w.group+1 {
			w.last[c] = w.group + 1
			w.pairs = append(w.pairs, uint64(c)<<32|uint64(w.group))
		}
	}
	w.carry, w.carried = c, min(n, 2)
	w.text += len(p)
}

// Skip ends the present document without naming it: it could not be read to its end, or changed meanwhile.
func (w *Writer) Skip() { w.carried = 0 }

// Doc ends the present document and names it. Folders are relative to the root and ascend.
func (w *Writer) Doc(folder, name string, state State) {
	if folder != w.folder || w.total == 0 {
		w.endFolder()
		w.folder = folder
	}
	w.entry = appendText(w.entry, name)
	for _, n := range []uint64{uint64(state.Size), uint64(state.Modified), uint64(state.Changed), state.Inode, uint64(w.group)} {
		w.entry = binary.AppendUvarint(w.entry, n)
	}
	w.carried = 0
	w.count++
	w.total++
	if w.docs++; w.text >= groupText || w.docs >= groupDocs {
		w.group++
		w.text, w.docs = 0, 0
		if len(w.pairs) >= runPairs {
			w.spill()
		}
	}
}

// endFolder moves the documents of the folder to the table.
func (w *Writer) endFolder() {
	if w.count > 0 {
		w.table = appendText(w.table, w.folder)
		w.table = binary.AppendUvarint(w.table, w.count)
		w.table = append(w.table, w.entry...)
	}
	w.entry, w.count = w.entry[:0], 0
}

// appendText writes what partReader.text reads.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// sort orders the pairs by trigram. Groups ascend already, and both passes keep the order of equal keys.
func (w *Writer) sort() {
	if cap(w.spare) < len(w.pairs) {
		w.spare = make([]uint64, len(w.pairs))
	}
	from, to := w.pairs, w.spare[:len(w.pairs)]
	for _, shift := range [...]int{32, 44} {
		var at [1 << 12]int
		for _, p := range from {
			at[p>>shift&0xfff]++
		}
		sum := 0
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, p := range from {
			k := p >> shift & 0xfff
			to[at[k]] = p
			at[k]++
		}
		from, to = to, from
	}
}

// spill writes the sorted pairs to a file of their own.
func (w *Writer) spill() {
	if w.err != nil {
		w.pairs = w.pairs[:0]
		return
	}
	w.sort()
	f, err := os.CreateTemp(filepath.Dir(w.path), filepath.Base(w.path)+"-*.run")
	if err != nil {
		w.err = err
		return
	}
	_ = os.Remove(f.Name()) // it lives as long as it is open, so a kill leaves nothing
	w.runs = append(w.runs, f)
	out := bufio.NewWriterSize(f, 64<<10)
	var b [2 * binary.MaxVarintLen32]byte
	gram := uint64(0)
	for i := 0; i < len(w.pairs); {
		n := i
		for n < len(w.pairs) && w.pairs[n]>>32 == w.pairs[i]>>32 {
			n++
		}
		g := w.pairs[i] >> 32
		_, _ = out.Write(binary.AppendUvarint(binary.AppendUvarint(b[:0], g-gram), uint64(n-i)))
		gram = g
		before := uint64(0)
		for ; i < n; i++ {
			group := w.pairs[i] & 0xffffffff
			_, _ = out.Write(binary.AppendUvarint(b[:0], group-before))
			before = group
		}
	}
	w.pairs = w.pairs[:0]
	if w.err = out.Flush(); w.err == nil {
		_, w.err = f.Seek(0, io.SeekStart)
	}
}

// run reads a spilled file.
type run struct {
	in   *bufio.Reader
	gram uint64 // of the list that comes next
	n    uint64 // its groups
	done bool
}

// advance reads the head of the next list.
func (r *run) advance() error {
	d, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		r.done = true
		return nil
	}
	if err == nil {
		r.gram += d
		r.n, err = binary.ReadUvarint(r.in)
	}
	return err
}

// take appends the groups of the list.
func (r *run) take(groups []uint32) ([]uint32, error) {
	group := uint64(0)
	for range r.n {
		d, err := binary.ReadUvarint(r.in)
		if err != nil {
			return nil, err
		}
		group += d
		groups = append(groups, uint32(group))
	}
	return groups, r.advance()
}

// Abort removes what was written.
func (w *Writer) Abort() {
	for _, f := range w.runs {
		f.Close()
	}
	w.runs = nil
	w.out.Close()
	_ = os.Remove(w.out.Name())
}

// Close writes the segment and gives it its name.
func (w *Writer) Close() error {
	w.endFolder()
	w.last = nil
	if w.docs > 0 || w.text > 0 {
		w.group++
	}
	w.spill()
	if w.err == nil {
		w.err = w.write()
	}
	if w.err == nil {
		// Without this a power failure may leave a named file without its content; the checksums would tell, but the work would be lost.
		w.err = w.out.Sync()
	}
	if w.err == nil {
		w.err = os.Rename(w.out.Name(), w.path)
	}
	w.Abort() // after the rename there is nothing to remove
	return w.err
}

// write merges the runs into the file.
func (w *Writer) write() error {
	out := &blockWriter{out: bufio.NewWriterSize(w.out, 64<<10)}
	foot := footer{groups: int64(w.group), docs: w.total}
	runs := make([]*run, len(w.runs))
	for i, f := range w.runs {
		runs[i] = &run{in: bufio.NewReaderSize(f, 32<<10)}
		if err := runs[i].advance(); err != nil {
			return err
		}
	}
	var grams, b []byte
	var groups []uint32
	for {
		g, any := uint64(0), false
		for _, r := range runs {
			if !r.done && (!any || r.gram < g) {
				g, any = r.gram, true
			}
		}
		if !any {
			break
		}
		groups = groups[:0]
		for _, r := range runs { // in the order of their groups
			if !r.done && r.gram == g {
				var err error
				if groups, err = r.take(groups); err != nil {
					return err
				}
			}
		}
		at := uint64(out.n)
		if len(groups) == 1 {
			at = uint64(groups[0])
		} else {
			b = w.list(b[:0], groups)
			out.write(b)
		}
		grams = binary.LittleEndian.AppendUint32(grams, uint32(g)<<8|uint32(at>>32))
		grams = binary.LittleEndian.AppendUint32(grams, uint32(len(groups)))
		grams = binary.LittleEndian.AppendUint32(grams, uint32(at))
		foot.grams++
	}
	foot.gramsAt = out.n
	out.write(grams)
	foot.docsAt = out.n
	out.write(w.table)
	foot.rootAt = out.n
	out.write([]byte(w.root))
	foot.end = out.n
	table := out.sums()
	foot.checks = crc32.Checksum(table, castagnoli)
	out.write(table)
	out.write(foot.bytes())
	if out.err != nil {
		return out.err
	}
	return out.out.Flush()
}

// list appends the groups as gaps or as a bitmap.
func (w *Writer) list(b []byte, groups []uint32) []byte {
	if dense(int64(len(groups)), int64(w.group)) {
		start := len(b)
		b = append(b, make([]byte, (int(w.group)+7)/8)...)
		for _, g := range groups {
			b[start+int(g/8)] |= 1 << (g % 8)
		}
		return b
	}
	before := uint32(0)
	for _, g := range groups {
		b = binary.AppendUvarint(b, uint64(g-before))
		before = g
	}
	return b
}

// blockWriter counts and sums what it writes.
type blockWriter struct {
	out   *bufio.Writer
	n     int64
	sum   uint32 // of the block so far
	table []byte // of the finished blocks
	err   error
}

func (w *blockWriter) write(p []byte) {
	for len(p) > 0 && w.err == nil {
		room := int(blockSize - w.n%blockSize)
		part := p[:min(room, len(p))]
		w.sum = crc32.Update(w.sum, castagnoli, part)
		_, w.err = w.out.Write(part)
		w.n += int64(len(part))
		if p = p[len(part):]; w.n%blockSize == 0 {
			w.table = binary.LittleEndian.AppendUint32(w.table, w.sum)
			w.sum = 0
		}
	}
}

// sums is the table of all blocks, the last one included.
func (w *blockWriter) sums() []byte {
	if w.n%blockSize != 0 {
		return binary.LittleEndian.AppendUint32(slices.Clone(w.table), w.sum)
	}
	return slices.Clone(w.table)
}
